"""Repairs that have one reading, made before validation so that no attempt is spent on them.

:func:`decode` makes an object of the arguments as they were sent; :func:`repair` walks it together with the JSON
schema. Whatever has several readings is left as it is: the validator refuses it, and the model is told. Nothing is
ever guessed, and a null is never filled.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from extractor.fields.nulls import nullish
from extractor.parameters import Schema, branches, inner, kind_of, properties_of

DEEPEST = 40
"""Levels of nesting that arguments may have."""

_DIGITS = 400
"""Characters that a number may have, and the size that its exponent may reach."""


class Unusable(ValueError):
    """Arguments that are no JSON object. ``str()`` is the detail, where there is one to tell."""

    def __init__(self, kind: Literal["array", "text", "scalar", "broken"], detail: str = "") -> None:
        super().__init__(detail)
        self.kind = kind


# -- text to object ----------------------------------------------------------------------------------------------------


def decode(arguments: str | Mapping[str, Any] | None) -> dict[str, Any]:
    """The arguments of a call as an object.

    An object inside a code fence, and one that was encoded twice, are read too; nothing at all is ``{}``. Numbers with
    a fraction become :class:`~decimal.Decimal`, so that no digit is lost.

    :raises Unusable: when they are something else: an array, plain text, a single value, or broken JSON. Keys that are
        said twice with different values, values that JSON does not have (NaN), numbers and nesting beyond all measure
        are broken too.
    """
    if arguments is None or (isinstance(arguments, str) and not arguments.strip()):
        return {}
    value = read_json(arguments) if isinstance(arguments, str) else arguments
    if isinstance(value, str) and _opens(value, "{`"):
        value = read_json(value)
    if value is None:
        return {}
    if isinstance(value, list):
        raise Unusable("array")
    if not isinstance(value, Mapping):
        raise Unusable("text" if isinstance(value, str) else "scalar")
    if not isinstance(arguments, str):
        _measure(value, 0)
    return dict(value)


def read_json(text: str) -> Any:
    """One JSON value, out of a code fence if need be; numbers with a fraction as Decimal.

    :raises Unusable: when it is broken, or too much.
    """
    try:
        value = _loads(text)
    except Unusable as error:
        fenced = _fenced(text)
        if fenced is None:
            raise _unusable_text(text, error) from None
        value = _loads(fenced)
    if text.count("{") + text.count("[") > DEEPEST:  # all else that is measured, the decoder has seen to
        _measure(value, 0)
    return value


def _unusable_text(text: str, error: Unusable) -> Unusable:
    """Text without any bracket was never meant to be JSON."""
    return error if any(bracket in text for bracket in "{}[]") else Unusable("text")


def _loads(text: str) -> Any:
    try:
        return json.loads(
            text.lstrip("\ufeff"), strict=False, parse_float=_fraction, parse_int=_whole, parse_constant=_constant,
            object_pairs_hook=_object,
        )  # fmt: skip
    except json.JSONDecodeError as error:
        raise Unusable("broken", f"{error.msg} at character {error.pos + 1}") from None
    except RecursionError:
        raise Unusable("broken", "nested too deeply") from None


def _fenced(text: str) -> str | None:
    """What stands between the first line that opens a fence and the last fence."""
    start = text.find("```")
    end = text.rfind("```")
    if start < 0:
        return None
    first = text.find("\n", start)
    opening = text[start + 3 : first if first >= 0 else len(text)]
    start = first + 1 if first >= 0 and not _opens(opening, "{[") else start + 3
    body = text[start:end] if end >= start else text[start:]
    return body.strip().removeprefix("json") if body.strip() else None


def _fraction(text: str) -> Decimal:
    _, _, exponent = text.lower().partition("e")
    if len(text) > _DIGITS or (exponent and (len(exponent) > 5 or abs(int(exponent)) > _DIGITS)):
        raise Unusable("broken", "a number is out of range")
    return Decimal(text)


def _whole(text: str) -> int:
    if len(text) > _DIGITS:
        raise Unusable("broken", "a number is out of range")
    return int(text)


def _constant(text: str) -> Any:
    raise Unusable("broken", f"{text} is not a JSON value; use null where there is no value")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found and found[key] != value:
            raise Unusable("broken", f"the key {key[:60]!r} is given twice, with different values")
        found[key] = value
    return found


def _measure(value: Any, depth: int) -> None:
    """Refuse what is nested too deeply, and what an object that was never text can hold beside JSON."""
    if depth > DEEPEST:
        raise Unusable("broken", "nested too deeply")
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise Unusable("broken", "a key is no string")
            _measure(item, depth + 1)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _measure(item, depth + 1)
    elif isinstance(value, (float, Decimal)) and not math.isfinite(value):
        _constant(str(value))


def _opens(text: str, characters: str) -> bool:
    return text.lstrip()[:1] in tuple(characters)


# -- repairs -----------------------------------------------------------------------------------------------------------


def repair(arguments: Mapping[str, Any], schema: Schema, text: str = "") -> tuple[dict[str, Any], tuple[str, ...]]:
    """Mend what has one reading.

    - A list or an object that arrives as JSON text is decoded; a list of strings may also be lines of text, or blank.
    - "N/A", "none", "-" and their like are null where null is allowed, unless the literal stands in the document as a
      value; a key that is required, may be null, and is left out is null.
    - A member of an enum in other case is taken when only one fits; a number where text is wanted becomes its text.
    - NUL bytes are removed, also where nothing is declared.

    :param arguments: decoded.
    :param schema: of the arguments, as :attr:`extractor.functions.Function.parameters` has it.
    :param text: the document's text.
    :returns: the repaired arguments, and remarks for people about what was lost or rearranged.
    """
    walk = _Walk(schema, text)
    mended = walk.mapping(arguments, schema, "", 0)
    return mended, tuple(dict.fromkeys(walk.remarks))[:_MOST_REMARKS]


def stands_as_value(literal: str, text: str) -> bool:
    """Whether a document gives a literal as the value of something: alone on its line, or after a label or a gap."""
    word = literal.strip()
    if not any(character.isalnum() for character in word):
        return False
    found = -1
    for _ in range(_MOST_PLACES):
        found = text.find(word, found + 1)
        if found < 0:
            return False
        before = text[text.rfind("\n", 0, found) + 1 : found]
        after = text[found + len(word) : found + len(word) + 3]
        begins = not before.strip() or before.rstrip().endswith((":", "|", "=", ";")) or before.endswith(("  ", "\t"))
        ends = not after.strip(" .") or after.lstrip(" .").startswith(("\n", "\r", "|", ";")) or after[:2] in _GAPS
        if begins and ends:
            return True
    return False


def broken_text(value: Any, path: str = "", depth: int = 0) -> Iterator[str]:
    """Paths of texts (and of keys) with halves of surrogate pairs: no file, database or model takes them."""
    if depth > DEEPEST:
        return
    if isinstance(value, str):
        if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
            yield path
    elif isinstance(value, Mapping):
        for key, item in value.items():
            where = f"{path}.{key}" if path else str(key)
            yield from broken_text(key, where, depth + 1)
            yield from broken_text(item, where, depth + 1)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from broken_text(item, f"{path}.{number}", depth + 1)


def echoes_schema(arguments: Mapping[str, Any], schema: Schema) -> bool:
    """Whether a model sent the schema itself, or a piece of it, where values are wanted."""
    declared = schema.get("properties", {})
    for wrapper in ("parameters", "schema"):
        if wrapper not in declared and isinstance(arguments.get(wrapper), Mapping):
            return echoes_schema(arguments[wrapper], schema)
    listed = arguments.get("properties")
    if isinstance(listed, Mapping) and "properties" not in declared:
        return arguments.get("type") == "object" or "required" in arguments or bool(listed.keys() & declared.keys())
    described = [
        key for key, value in arguments.items() if key in declared and _describes(value, declared[key], schema)
    ]
    return bool(described) and len(described) == len(arguments)


_MOST_REMARKS = 20
_MOST_PLACES = 200
_GAPS = ("  ", "\t ", "\t")
_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})


def _describes(value: object, schema: Any, root: Schema) -> bool:
    """Whether a value is a schema, at a place where the schema wants something else."""
    if not isinstance(value, Mapping) or inner(schema, "type", root) is not None:
        return False
    return value.get("type") in tuple(_TYPES) or any(isinstance(value.get(key), list) for key in ("anyOf", "enum"))


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What alternatives say about a text: anything goes, the members of a closed choice, null, text that is free."""

    options: tuple[Schema, ...]
    anything: bool
    members: list[Any]
    nullable: bool
    text: bool
    free_text: bool


_WANTED: dict[int, _Wanted] = {}
_MOST_WANTED = 4096


def _wanted(options: tuple[Schema, ...]) -> _Wanted:
    """What alternatives say, found out once for each tuple of them (which is held, so that its identity is its own)."""
    known = _WANTED.get(id(options))
    if known is None:
        if len(_WANTED) >= _MOST_WANTED:
            _WANTED.clear()
        kinds = [(kind_of(option), bool(_members(option)), "format" in option) for option in options]
        known = _WANTED[id(options)] = _Wanted(
            options,
            anything=any(kind == "" and not closed for kind, closed, _ in kinds),
            members=[member for option in options for member in _members(option)],
            nullable=_is_nullable(options),
            text=any(kind == "string" for kind, _, _ in kinds),
            free_text=any(kind == "string" and not closed and not form for kind, closed, form in kinds),
        )
    return known


class _Walk:
    """One walk over arguments and their schema; collects remarks."""

    def __init__(self, root: Schema, text: str) -> None:
        self._root = root
        self._text = text
        self._printed: dict[str, bool] = {}
        self.remarks: list[str] = []

    def value(self, given: Any, schema: Any, path: str, depth: int) -> Any:
        if given is None or depth > DEEPEST:
            return given
        options = branches(schema, self._root)
        if isinstance(given, (int, float, Decimal)) and not isinstance(given, bool):
            given = _as_text(given, {kind_of(option) for option in options})
        if isinstance(given, str):
            given = self._string(self._without_nul(given, path), options, path)
            if isinstance(given, str):
                return given
        if isinstance(given, Mapping):
            return self.mapping(given, _chosen(given, options), path, depth)
        if isinstance(given, (list, tuple)):
            arrays = [option for option in options if kind_of(option) == "array"]
            items = arrays[0].get("items") if len(arrays) == 1 else None
            return [self.value(item, items, f"{path}.{number}", depth + 1) for number, item in enumerate(given)]
        return given

    def mapping(self, given: Mapping[str, Any], schema: Schema | None, path: str, depth: int) -> dict[str, Any]:
        mended: dict[str, Any] = {}
        below = f"{path}." if path else ""
        declared = properties_of(schema, self._root)
        for sent, value in given.items():
            key = self._without_nul(sent, path)
            known = declared[key] if key in declared else inner(schema, key, self._root)
            mended.setdefault(key, self.value(value, known, below + key, depth + 1))
        properties = (schema or {}).get("properties", {})
        for key in (schema or {}).get("required", ()):
            if key not in mended and _is_nullable(branches(properties.get(key), self._root)):
                mended[key] = None
        return mended

    def _without_nul(self, text: str, path: str) -> str:
        if "\0" in text:
            self.remarks.append(f"{path[:100]}: NUL bytes were removed" if path else "NUL bytes were removed")
        return text.replace("\0", "")

    def _string(self, given: str, options: tuple[Schema, ...], path: str) -> Any:
        wanted = _wanted(options)
        if wanted.anything:
            return given
        if wanted.members:
            if given in wanted.members:
                return given
            alike = {member for member in wanted.members if isinstance(member, str) and _same(member, given)}
            if len(alike) == 1:
                return alike.pop()
        if wanted.nullable and nullish(given) and not (wanted.free_text and self._is_printed(given)):
            return None
        return given if wanted.text else self._container(given, options, path)

    def _is_printed(self, literal: str) -> bool:
        if literal not in self._printed:
            self._printed[literal] = stands_as_value(literal, self._text)
        return self._printed[literal]

    def _container(self, given: str, options: Sequence[Schema], path: str) -> Any:
        """A list or an object that arrived as text."""
        kinds: dict[str, Callable[[Any], bool]] = {
            "array": lambda value: isinstance(value, list),
            "object": lambda value: isinstance(value, dict),
        }
        wanted = [option for option in options if kind_of(option) in kinds]
        if wanted and _opens(given, "[{`"):
            try:
                value = read_json(given)
            except Unusable:
                value = None
            if any(kinds[kind_of(option)](value) for option in wanted):
                return value
        if len(wanted) == 1 and kind_of(wanted[0]) == "array" and _is_text(wanted[0].get("items"), self._root):
            lines = [line.strip() for line in given.splitlines() if line.strip()]
            if len(lines) > 1:
                self.remarks.append(f"{path[:100]}: text was read as a list of {len(lines)} lines")
            return lines
        return given


def _as_text(number: int | float | Decimal, kinds: set[str]) -> Any:
    """A number where only text is wanted; one that is written with an exponent is left to the validator."""
    if "string" not in kinds or kinds & {"number", "integer", ""}:
        return number
    text = str(number)
    return number if "e" in text.lower() else text


def _chosen(given: Mapping[str, Any], options: Sequence[Schema]) -> Schema | None:
    """The one alternative that an object can be: by its tags, where there are several."""
    objects = [option for option in options if kind_of(option) == "object"]
    if len(objects) > 1:
        objects = [option for option in objects if _tags_fit(given, option)]
    return objects[0] if len(objects) == 1 else None


def _tags_fit(given: Mapping[str, Any], option: Schema) -> bool:
    tags = {name: inner for name, inner in option.get("properties", {}).items() if "const" in inner}
    return bool(tags) and all(given.get(name) == tag["const"] for name, tag in tags.items())


def _members(option: Schema) -> list[Any]:
    members = option.get("enum", [option["const"]] if "const" in option else [])
    return list(members)


def _is_nullable(options: Sequence[Schema]) -> bool:
    return any(kind_of(option) == "null" or None in _members(option) for option in options)


def _is_text(items: Any, root: Schema) -> bool:
    options = branches(items, root)
    return bool(options) and all(kind_of(option) == "string" for option in options)


def _same(one: str, other: str) -> bool:
    return one.strip().casefold() == other.strip().casefold()
