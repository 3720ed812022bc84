"""A closed choice for a value at fault: the spans of the document that could be it.

What a field takes is told by its schema, by what its refusal says, and by its name, in this order: amounts and other
numbers, dates, currencies, identifiers, or a line of text. A candidate reads as such a value in the document's own
style. Nearest to the field's own words, and to the value that was refused, comes first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any

from extractor.attempts.places import LONGEST_NAME, Place, Wanted, is_nullable, value_at
from extractor.attempts.spans import READERS, WORD, Span, spans_of
from extractor.attempts.sums import Sum, adding_up
from extractor.conversation import Conversation
from extractor.fields.style import Style
from extractor.matching import Arguments, decoded
from extractor.messages import Verdict
from extractor.parameters import Schema, branches, kind_of

MOST = 40
"""Candidates that are offered for one value."""

LONGEST_DOCUMENT = 200_000
"""Characters of a document that are searched."""

_DOCUMENT = re.compile(r"<document>\n(.*?)\n</document>", re.DOTALL)
_FRACTION = re.compile(r"[.,]\d\d$")
_COUNTED = re.compile(r"quantity|qty|count|menge|anzahl|number|rate|percent|days|year", re.IGNORECASE)


def narrowed(state: Conversation, records: Sequence[Wanted]) -> tuple[Wanted, ...]:
    """The records with a closed choice at each place that has one; none at all when no place has.

    A list or an object that stands beside a choice is not asked for: it is most of the record, and what was refused of
    it may have been what it adds up to.
    """
    text = document_of(state)
    style = Style.of(text) if text else Style()
    amounts = list(spans_of(text, "number", style))
    closed = []
    for one in records:
        places = tuple(_closed(place, one, state, text, style) for place in one.places)
        chosen = tuple(place for place in places if place.choices or not _is_there(place, one))
        closed.append(_added_up(replace(one, places=chosen), amounts, style) if chosen else one)
    return tuple(closed) if any(place.choices for one in closed for place in one.places) else ()


def _added_up(one: Wanted, amounts: Sequence[Span], style: Style) -> Wanted:
    """The record with no more to choose from than what adds up, where a sum was refused."""
    for found in adding_up(one, amounts, style):
        asked = _separately(found, one) if len(found.values) == 1 else [_jointly(found, one)]
        others = [place for place in one.places if place not in found.places]
        one = replace(one, places=(*others, *asked))
    return one


def _separately(found: Sum, one: Wanted) -> Iterator[Place]:
    """Of the one sum there is, the values that were answered otherwise."""
    for place, value, was in zip(found.places, found.values[0], found.answered, strict=True):
        branch = _branch(place, one.offer.parameters)
        if value != was and branch is not None:
            yield _with_choices(place, branch, [found.printed[value]], one.offer.parameters)


def _jointly(found: Sum, one: Wanted) -> Place:
    """One place for the three values of a sum."""
    total, *parts = found.places
    words = [str(place.path[-1]) for place in (*parts, total)]
    joint = {}
    for amounts in found.values:
        values = {
            place.path: _typed(found.printed[value], _branch(place, one.offer.parameters))
            for place, value in zip(found.places, amounts, strict=True)
        }
        joint[found.shown(amounts)] = values
    about = f"{' + '.join(words[:-1])} = {words[-1]}"
    name = "_".join(place.name for place in (*parts, total))
    taken = {place.name for place in one.places} | one.offer.parameters.get("properties", {}).keys()
    name = f"sum_{len(taken)}" if name in taken or len(name) > LONGEST_NAME else name
    schema = {"type": "string", "enum": list(joint), "description": about}
    return Place(total.path, name, schema, True, False, tuple(joint), joint)


def _typed(printed: str, branch: Schema | None) -> Any:
    kind = kind_of(branch) if branch is not None else ""
    return _as_json(printed, kind) if kind in ("number", "integer") else printed


def _branch(place: Place, root: Schema) -> Schema | None:
    return next((branch for branch in branches(place.schema, root) if kind_of(branch) != "null"), None)


def _is_there(place: Place, one: Wanted) -> bool:
    """Whether the record has a list or an object there already."""
    return isinstance(value_at(one.values, place.path), (list, Mapping))


def is_in_doubt(one: Wanted) -> bool:
    """Whether an identifier is at fault: what says which record it is. A document may hold no such record at all, and a
    closed choice would make one up."""
    found = ((place, _branch(place, one.offer.parameters)) for place in one.places)
    kinds = [kind_of_value(place, branch, one.obligation.error) for place, branch in found if branch is not None]
    return "identifier" in kinds


def document_of(state: Conversation) -> str:
    """The document's text, as it stands in the opening."""
    for message in state.messages[: state.opened]:
        found = _DOCUMENT.search(message.content) if message.role == "user" else None
        if found is not None:
            return found[1][:LONGEST_DOCUMENT]
    return ""


def _closed(place: Place, one: Wanted, state: Conversation, text: str, style: Style) -> Place:
    root = one.offer.parameters
    branch = _branch(place, root)
    if branch is None or kind_of(branch) not in ("string", "number", "integer"):
        return place
    refused = _refused(place, one, state) if place.is_alone else ()
    if "enum" in branch:
        left = [value for value in branch["enum"] if value not in refused]
        return _with_choices(place, branch, left, root)
    kind = kind_of_value(place, branch, one.obligation.error)
    read = READERS[kind]
    out = {value for one_of in refused if (value := read(str(one_of), style)) is not None}
    pattern = branch.get("pattern")
    spans: Sequence[Span] = [span for span in spans_of(text, kind, style) if span.value not in out]
    spans = [span for span in spans if pattern is None or re.search(pattern, span.printed)]
    if kind == "number" and not _COUNTED.search(str(place.path[-1])):
        spans = _with_cents(spans)
    unique: dict[object, str] = {}
    for span in sorted(spans, key=_distance(place, value_at(one.values, place.path), text)):
        unique.setdefault(span.value, span.printed)
    return _with_choices(place, branch, [*unique.values()][:MOST], root)


def _with_cents(spans: Sequence[Span]) -> Sequence[Span]:
    """Those that look like money, where enough do."""
    money = [span for span in spans if _FRACTION.search(span.printed)]
    return money if len({span.value for span in money}) > 1 else spans


def _with_choices(place: Place, branch: Schema, values: Sequence[Any], root: Schema) -> Place:
    """The place with these values to choose from. A single one is named to the model, which is not held to it: that
    would be to answer in its place."""
    if kind_of(branch) in ("number", "integer"):
        values = [number for value in values if (number := _as_json(value, kind_of(branch))) is not None]
    if len(values) < 2:
        return replace(place, choices=tuple(map(str, values)))
    kept = {key: value for key, value in branch.items() if key in ("type", "description")}
    schema: dict[str, Any] = {**kept, "enum": list(values)}
    choices = tuple(map(str, values))
    if is_nullable(place.schema, root):
        about = {"description": schema.pop("description")} if "description" in schema else {}
        about |= {"description": place.schema["description"]} if "description" in place.schema else {}
        schema, choices = {"anyOf": [schema, {"type": "null"}], **about}, (*choices, "null")
    return replace(place, schema=schema, choices=choices)


def _as_json(value: object, kind: str) -> int | float | None:
    """A number that JSON is to have as a number; only whole ones where they have to be."""
    try:
        number = Decimal(str(value).replace(",", ".").replace(" ", "").replace("'", ""))
    except InvalidOperation:
        return None
    if kind == "number":
        return float(number)
    return int(number) if number == number.to_integral_value() else None


def _refused(place: Place, one: Wanted, state: Conversation) -> tuple[Any, ...]:
    """What was refused for this value of this record, in all attempts."""
    found = [value_at(one.values, place.path)]
    for attempt in state.attempts:
        for call, result in zip(attempt.calls, attempt.results, strict=True):
            values = decoded(call.arguments) if result.arguments is None else result.arguments
            if result.verdict is Verdict.REJECTED and place.dotted in result.paths and _is_same(values, one):
                found.append(value_at(values, place.path))
    return tuple(value for value in found if isinstance(value, (str, int, float, Decimal)))


def _is_same(values: Arguments | None, one: Wanted) -> bool:
    """Whether these are the arguments of an earlier try at this record: equal in all that is not at fault."""
    faults = {place.path[0] for place in one.places}
    mine = {key: value for key, value in one.values.items() if key not in faults}
    return values is not None and {key: value for key, value in values.items() if key not in faults} == mine


# -- what a field takes ------------------------------------------------------------------------------------------------

_NAMES = (
    ("date", re.compile(r"date|datum|dato\b|fecha|\bdue\b", re.IGNORECASE)),
    ("currency", re.compile(r"currency|w[äa]hrung|devise|moneda|valuta", re.IGNORECASE)),
    ("identifier", re.compile(
        r"\b(?:number|no|nr|num|id|code|ref|reference|iban|bic|sku|vin|isin|identifier|barcode|ean)\b", re.IGNORECASE
    )),
    ("address", re.compile(r"address|anschrift|adresse|direcci[oó]n|indirizzo", re.IGNORECASE)),
)  # fmt: skip
_REFUSALS = (
    ("date", re.compile(r"\bdate\b")),
    ("number", re.compile(r"\b(?:an amount|a quantity|a percentage|one number|a number)\b")),
    ("currency", re.compile(r"\bcurrency\b")),
    ("identifier", re.compile(r"\bidentifier\b")),
)


def kind_of_value(place: Place, branch: Schema, error: str) -> str:
    """``number``, ``date``, ``currency``, ``identifier``, ``address`` or ``text``."""
    if kind_of(branch) in ("number", "integer") or str(branch.get("pattern", "")).startswith("^-?[0-9]"):
        return "number"
    if branch.get("format") in ("date", "date-time"):
        return "date"
    own = next((part for part in error.split("; ") if part.startswith(f"{place.dotted}: ")), "")
    told = [kind for kind, pattern in _REFUSALS if place.is_alone and pattern.search(own.partition(": ")[2])]
    if told:
        return told[0]
    name = f"{place.path[-1]} {branch.get('title', '')}".replace("_", " ")
    return next((kind for kind, pattern in _NAMES if pattern.search(name)), "text")


# -- which comes first -------------------------------------------------------------------------------------------------


def _distance(place: Place, refused: Any, text: str) -> Callable[[Span], tuple[float, int, int]]:
    """How far a span is from the field's own words, and from where the refused value stands."""
    about = f"{place.path[-1]} {place.schema.get('title', '')} {place.schema.get('description', '')}".replace("_", " ")
    words = {word.casefold() for word in WORD.findall(about)} - {"as", "printed", "the", "of", "this", "with", "all"}
    lines = [line.casefold() for line in text.splitlines()]
    labels = {n: hits for n, line in enumerate(lines) if (hits := sum(word in line for word in words))}
    wrong = " ".join(str(refused).casefold().split()) if refused not in (None, "") else None
    there = [n for n, line in enumerate(lines) if wrong is not None and wrong in line]

    def of(span: Span) -> tuple[float, int, int]:
        to_label = min((_lines_away(span.line, n) - 0.4 * hits for n, hits in labels.items()), default=30.0)
        to_wrong = min((abs(span.line - n) + 2.0 for n in there), default=30.0)
        return min(to_label, to_wrong), span.line, span.column

    return of


def _lines_away(line: int, label: int) -> float:
    """A value stands behind its label or below it, seldom above."""
    return line - label if line >= label else 2.0 * (label - line)
