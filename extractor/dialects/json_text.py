"""JSON values in any text: in code fences, between chatter, one after another, cut off.

One pass, from left to right, in time that is linear in the text, whatever stands in it. Where a bracket opens what is
no JSON, it is taken for chatter. Where an object was begun and then broken off, the rest of the text belongs to it and
is not searched for more: what lies inside a broken record is no record of its own.

A trailing comma, a line break inside a string, and a key without quotes are read. What has several readings is broken:
a key that is given twice with different values, NaN, a number beyond all measure.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from extractor.coercion import DEEPEST

_OPENING = re.compile(r"[{\[]")
_TOKEN = re.compile(
    r"\s*+(?:(?P<mark>[{}\[\]:,])"
    r'|(?P<text>"[^"\\]*+(?:\\.[^"\\]*+)*+")'
    r"|(?P<number>-?+(?:0|[1-9][0-9]*+)(?P<fraction>\.[0-9]++)?+(?P<exponent>[eE][+-]?+[0-9]++)?+)(?![\w.+-])"
    r"|(?P<bare>[A-Za-z_][\w-]*+)(?=\s*+:)"
    r"|(?P<word>true|false|null)\b)",
    re.DOTALL,
)
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}
_LONGEST_NUMBER = 400


@dataclass(frozen=True, slots=True)
class Open:
    """A list or an object without its end: what of it is whole, and at its end maybe one more that is open in turn.

    ``is_tidy``: nothing but closing brackets is missing, as far as one can tell.
    """

    value: dict[str, Any] | list[Any]
    is_tidy: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """One value, :class:`Open` where the text ends, or breaks, inside it; ``text`` is then all that is left."""

    value: Any
    text: str = ""


def values(text: str) -> tuple[Found, ...]:
    """Every list and object at the top of a text, in order. Only the last one can be :class:`Open`.

    Numbers with a fraction or an exponent are their text, so that no digit is lost.
    """
    text = _unquoted(text)
    found = []
    at = 0
    while opening := _OPENING.search(text, at):
        reading = Reading(text, opening.start())
        one = reading.run()
        if one is not None:
            found.append(one)
            if isinstance(one.value, Open):
                break
        at = reading.at
    return tuple(found)


def _unquoted(text: str) -> str:
    """The text inside one that was encoded as a JSON string as a whole."""
    token = _TOKEN.match(text) if text.lstrip()[:1] == '"' else None
    if token is None or token["text"] is None or text[token.end() :].strip():
        return text
    inner = _string(token["text"])
    return text if inner is None else inner


class _Broken(Exception):
    """What stands here is no JSON, or has several readings."""


class Reading:
    """One value that begins with a bracket.

    :param start: where the bracket stands.
    """

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._start = self.at = start
        """``at`` is how far it was read; a search for the next value goes on from there."""
        self._holders: list[Any] = []
        self._keys: list[str] = []
        self._expected = "value"
        self._is_object = self._is_bare = False
        """An object has begun with a key in quotes, or with one without (chatter has those too) that has a value."""

    def run(self) -> Found | None:
        """The value; ``None`` when it is none, nor the beginning of an object."""
        try:
            while True:
                token = _TOKEN.match(self._text, self.at)
                if token is None:
                    break
                done = self._step(token)
                self.at = token.end()
                if done:
                    return Found(self._holders[0])
        except _Broken:
            pass
        if not self._is_object:
            return None
        is_tidy = self._expected == "more" and not self._text[self.at :].strip()
        return Found(self._opened(is_tidy), self._text[self._start :])

    def _step(self, token: re.Match[str]) -> bool:
        """Take one token; whether it ends the value.

        :raises _Broken: when it does not belong here.
        """
        mark = token["mark"]
        if mark is None:
            self._take(token)
        elif mark in "}]":
            return self._close(mark)
        elif mark in "{[":
            self._open(mark)
        elif mark == ":" and self._expected == "colon":
            self._expected, self._is_object = "value", self._is_object or not self._is_bare
        elif mark == "," and self._expected == "more":
            self._expected = "key" if isinstance(self._holders[-1], dict) else "item"
        else:
            raise _Broken
        return False

    def _open(self, mark: str) -> None:
        if self._expected not in ("value", "item") or len(self._holders) >= DEEPEST:
            raise _Broken
        self._holders.append({} if mark == "{" else [])
        self._keys.append("")
        self._expected = "key" if mark == "{" else "item"

    def _close(self, mark: str) -> bool:
        if self._expected not in ("more", "key", "item"):
            raise _Broken
        holder = self._holders[-1]
        if mark != ("}" if isinstance(holder, dict) else "]"):
            raise _Broken
        if len(self._holders) == 1:
            return True
        self._holders.pop()
        self._keys.pop()
        self._put(holder)
        return False

    def _take(self, token: re.Match[str]) -> None:
        text = _string(token["text"]) if token["text"] is not None else None
        key = text if token["bare"] is None else token["bare"]
        if self._expected == "key" and key is not None:
            self._keys[-1], self._expected, self._is_bare = key, "colon", text is None
        elif self._expected in ("value", "item") and self._holders and token["bare"] is None:
            if (token["text"] is not None and text is None) or (text is None and token.end() == len(self._text)):
                raise _Broken  # the last digit may not be the last one
            self._put(text if text is not None else _scalar(token))
        else:
            raise _Broken

    def _put(self, value: Any) -> None:
        holder, key = self._holders[-1], self._keys[-1]
        if isinstance(holder, list):
            holder.append(value)
        elif holder.setdefault(key, value) != value:
            raise _Broken
        self._is_object = self._is_object or isinstance(holder, dict)
        self._expected = "more"

    def _opened(self, is_tidy: bool) -> Open:
        """What there is, from the innermost holder outwards."""
        found = Open(self._holders[-1], is_tidy)
        for holder, key in zip(reversed(self._holders[:-1]), reversed(self._keys[:-1]), strict=True):
            if isinstance(holder, list):
                holder.append(found)
            else:
                holder.setdefault(key, found)
            found = Open(holder)
        return found


def _string(token: str) -> str | None:
    """What a string says, or ``None`` where its escapes are none."""
    try:
        text = json.loads(token, strict=False)
    except ValueError:
        return None
    return text if isinstance(text, str) else None


def _scalar(token: re.Match[str]) -> Any:
    if token["word"] is not None:
        return _WORDS[token["word"]]
    number = token["number"]
    if len(number) > _LONGEST_NUMBER:
        raise _Broken
    return number if token["fraction"] or token["exponent"] else int(number)


def string_at(text: str, at: int) -> tuple[str, int] | None:
    """The JSON string that begins at a place, white space aside, and where it ends."""
    token = _TOKEN.match(text, at)
    said = _string(token["text"]) if token is not None and token["text"] is not None else None
    return (said, token.end()) if token is not None and said is not None else None
