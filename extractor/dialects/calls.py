"""The calls in an answer that is text: what of its JSON is a record, and of which function.

An object is a record when it names its function (``{"name": …, "arguments": {…}}`` and its like), stands in a list
under the function's name, or has the fields of exactly one function. Everything else is chatter, and so is an echo of
the schema. Of several objects those are taken that fit, all of them, in their order; what only says again what another
one says is none of its own.

An object that was broken off is a call as well, with its text as it stands, so that the model is told what is wrong
with it; in a reply that was cut off it is left out, since the rest is asked again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from extractor.coercion import echoes_schema
from extractor.dialects.json_text import Found, Open, values
from extractor.messages import NOTHING_TO_EXTRACT, Ask, Offer, ToolCall
from extractor.parameters import branches, kind_of

Arguments = str | Mapping[str, Any] | None

_NAMES = ("name", "function", "tool", "action", "tool_name", "function_name")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "action_input", "tool_input")
_BESIDE = frozenset({*_NAMES, *_ARGUMENTS, "type", "id", "index"})
_MOST_COMPARED = 20

SHOWN = "…"
"""What stands for a value where a prompt shows the shape of an answer."""


@dataclass(frozen=True, slots=True)
class Record:
    """One call before it has an id.

    ``shape``: it names its function, is listed under the function's name, or is told by its fields. ``fits`` is false
    when it was told by its fields and lacks one that is required, or has one that nobody declared.
    """

    name: str
    arguments: Arguments
    shape: Literal["call", "listed", "bare"] = "call"
    fits: bool = True


def functions(ask: Ask) -> tuple[Offer, ...]:
    """What is on offer, but for ``nothing_to_extract``."""
    return tuple(offer for offer in ask.offers if offer.name != NOTHING_TO_EXTRACT.name)


def numbered(found: Iterable[tuple[str, Arguments]], ask: Ask) -> tuple[ToolCall, ...]:
    """Calls with ids of ours, which no other reply of the conversation has; without echoes of the shown shape."""
    turn = sum(1 for message in ask.messages if message.role == "assistant")
    told = ((name, arguments) for name, arguments in found if not (arguments and _is_untold(arguments)))
    return tuple(ToolCall(f"call_{turn}_{n}", name, arguments) for n, (name, arguments) in enumerate(told))


def nothing(reason: str) -> tuple[str, Arguments]:
    """What a model says that found nothing, in whatever words."""
    return NOTHING_TO_EXTRACT.name, {"reason": reason}


def calls_in(text: str, ask: Ask, *, is_cut: bool = False, named_only: bool = False) -> tuple[ToolCall, ...]:
    """The calls in a text.

    :param text: of the reply.
    :param ask: what was asked.
    :param is_cut: the text ends where the reply was cut off: whole records alone are taken.
    :param named_only: take what names its function, and nothing that is told by its fields alone.
    """
    shapes = _Shapes(ask.offers)
    found = values(text)
    records = _distinct([tuple(shapes.of_found(one, is_cut)) for one in found])
    records = [one for one in records if (one.fits or not is_cut) and (one.shape != "bare" or not named_only)]
    if not records and not is_cut and not named_only and shapes.says_nothing(found):
        return numbered([nothing("the answer lists no record")], ask)
    return numbered([(one.name, one.arguments) for one in records], ask)


def is_nullable(field: Any, root: Mapping[str, Any]) -> bool:
    """Whether a field may be null."""
    return any(kind_of(branch) == "null" or None in branch.get("enum", ()) for branch in branches(field, root))


class _Shapes:
    """The shapes in which models write calls."""

    def __init__(self, offers: Sequence[Offer]) -> None:
        self._offers = {offer.name: offer for offer in offers}
        self._told_by_fields = [
            (offer.name, offer.parameters, frozenset(offer.parameters["properties"]), _required(offer.parameters))
            for offer in offers
            if offer.name != NOTHING_TO_EXTRACT.name and offer.parameters.get("properties")
        ]

    def of_found(self, found: Found, is_cut: bool) -> Iterator[Record]:
        """The records in one value."""
        if not isinstance(found.value, Open):
            yield from self._of_value(found.value)
        elif is_cut or self._only_brackets_missing(found.value):
            yield from self._of_open(found.value)
        else:
            meant = self._meant(found.value)
            if meant is not None:
                yield replace(meant, arguments=found.text.rstrip().rstrip("`").rstrip(), fits=True)

    def says_nothing(self, found: Sequence[Found]) -> bool:
        """Whether an answer lists the functions, and every list is empty."""
        whole = [one.value for one in found if isinstance(one.value, Mapping)]
        lists = [one[name] for one in whole for name in self._listed(one)]
        return bool(lists) and not any(lists) and not any(isinstance(one.value, Open) for one in found)

    def _of_value(self, value: Any) -> Iterator[Record]:
        if isinstance(value, list):
            for item in value:
                yield from self._of_value(item)
        elif isinstance(value, Mapping):
            yield from self._of_object(value)

    def _of_object(self, given: Mapping[str, Any]) -> Iterator[Record]:
        named, listed, bare = _named(given), self._listed(given), self._bare(given)
        if named is not None and named[0] in self._offers:
            yield from self._records(*named, "call")
        elif isinstance(given.get("tool_calls"), list):
            yield from self._of_value(given["tool_calls"])
        elif listed and not (bare and bare.fits):
            for name in listed:
                yield from self._records(name, given[name], "listed")
        elif bare:
            yield bare
        elif named is not None and isinstance(named[1], Mapping):
            if not any(echoes_schema(named[1], offer.parameters) for offer in self._offers.values()):
                yield Record(*named)
        elif len(given) == 1:
            yield from self._of_value(next(iter(given.values())))

    def _of_open(self, opened: Open) -> Iterator[Record]:
        """The whole records in the lists that are open."""
        inside = opened.value
        if isinstance(inside, list):
            for item in inside:
                yield from self._of_open(item) if isinstance(item, Open) else self._of_value(item)
        elif isinstance(inside.get("tool_calls"), Open):
            yield from self._of_open(inside["tool_calls"])
        else:
            for name in self._listed(inside):
                kept = inside[name]
                if isinstance(kept, Open):
                    kept = [item for item in kept.value if not isinstance(item, Open)] if _is_list(kept) else None
                yield from self._records(name, kept, "listed")

    def _only_brackets_missing(self, opened: Open) -> bool:
        """Whether the text ends right after a whole record, with its lists not closed."""
        inside = opened.value
        last = inside[-1] if isinstance(inside, list) and inside else None
        if isinstance(inside, dict) and inside:
            key, last = list(inside.items())[-1]
            if key not in self._offers:
                return False
            if isinstance(last, Open):
                return _is_list(last) and last.is_tidy
        return self._only_brackets_missing(last) if isinstance(last, Open) else opened.is_tidy

    def _meant(self, opened: Open) -> Record | None:
        """The record that was broken off, by its function and shape."""
        inside = opened.value
        if isinstance(inside, list):
            last = inside[-1] if inside else None
            last = Open(last) if isinstance(last, dict) else last
            return self._meant(last) if isinstance(last, Open) else None
        named, listed = _named(inside), self._listed(inside)
        if named is not None and named[0] in self._offers:
            return Record(named[0], None, "call")
        if listed:
            return Record(listed[-1], None, "listed")
        last = list(inside.values())[-1] if len(inside) == 1 else None
        return self._bare(inside) or (self._meant(last) if isinstance(last, Open) else None)

    def _listed(self, given: Mapping[str, Any]) -> list[str]:
        return [name for name in given if name in self._offers and not isinstance(given[name], (bool, int))]

    def _records(self, name: str, value: Any, shape: Literal["call", "listed"]) -> Iterator[Record]:
        if shape == "call" and value is None:
            yield Record(name, None)
        for item in _items(value):
            if not isinstance(item, Mapping):
                yield Record(name, item if isinstance(item, str) else json.dumps(item), shape)
            elif not echoes_schema(item, self._offers[name].parameters):
                yield Record(name, item, shape)

    def _bare(self, given: Mapping[str, Any]) -> Record | None:
        """The record of the one function whose fields an object has; at least half of them have to be its own."""
        about: list[tuple[bool, int, str]] = []
        for name, schema, declared, required in self._told_by_fields:
            known = len(given.keys() & declared)
            if known and 2 * known >= len(given) and not echoes_schema(given, schema):
                about.append((required <= given.keys() and known == len(given), known, name))
        if not about:
            return None
        best = max(about)
        is_one = sum(one[0] if best[0] else one[1] == best[1] for one in about) == 1
        return Record(best[2], given, "bare", best[0]) if is_one else None


def _named(given: Mapping[str, Any]) -> tuple[str, Any] | None:
    """Name and arguments, of an object that holds nothing else."""
    inner = given.get("function")
    if isinstance(inner, Mapping) and given.keys() <= _BESIDE:
        return _named(inner) if "name" in inner else None
    name = next((given[key] for key in _NAMES if isinstance(given.get(key), str)), None)
    if name is None or not given.keys() <= _BESIDE:
        return None
    return name, next((given[key] for key in _ARGUMENTS if key in given), None)


def _items(value: Any) -> list[Any]:
    """What a list holds; also one that was encoded as text."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        found = values(value)
        if len(found) == 1 and not isinstance(found[0].value, Open):
            value = found[0].value
    return value if isinstance(value, list) else [value] if value is not None else []


def _distinct(groups: Sequence[Sequence[Record]]) -> list[Record]:
    """All records, without what was only said again: an answer that is repeated, and a first draft of a record."""
    records: list[Record] = []
    seen: set[str] = set()
    for group in groups:
        key = json.dumps([(one.name, one.arguments) for one in group], sort_keys=True)
        if key not in seen or any(one.shape == "call" for one in group):
            records += group
        seen.add(key)
    whole = [one for one in records if one.fits][:_MOST_COMPARED]
    return [one for one in records if one.fits or not any(_is_part(one, other) for other in whole)]


def _is_part(one: Record, other: Record) -> bool:
    mine, theirs = one.arguments, other.arguments
    if one.name != other.name or not isinstance(mine, Mapping) or not isinstance(theirs, Mapping):
        return False
    return all(key in theirs and theirs[key] == value for key, value in mine.items())


def _is_untold(value: Any) -> bool:
    """Whether nothing is told but dots, as in the shape that a prompt shows."""
    if isinstance(value, Mapping):
        return bool(value) and all(map(_is_untold, value.values()))
    if isinstance(value, list):
        return bool(value) and all(map(_is_untold, value))
    return isinstance(value, str) and value.strip() in (SHOWN, "...")


def _required(schema: Mapping[str, Any]) -> frozenset[str]:
    """What has to be there; null is supplied where it is allowed."""
    fields = schema["properties"]
    return frozenset(key for key in schema.get("required", ()) if not is_nullable(fields.get(key), schema))


def _is_list(opened: Open) -> bool:
    return isinstance(opened.value, list)
