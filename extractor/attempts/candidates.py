"""A closed choice for a value at fault: the spans of the document that could be it.

What a field takes is told by its schema, by what its refusal says, and by its name, in this order: amounts and other
numbers, dates, currencies, identifiers, or a line of text. A candidate reads as such a value in the document's own
style. Nearest to the field's own words, and to the value that was refused, comes first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any

from extractor.attempts.places import Place, Wanted, is_nullable, value_at
from extractor.conversation import Conversation
from extractor.fields.characters import plain
from extractor.fields.currencies import CODES, is_currency, parse_currency
from extractor.fields.dates import parse_date
from extractor.fields.numbers import parse_amount
from extractor.fields.style import Style
from extractor.matching import Arguments, decoded
from extractor.messages import Verdict
from extractor.parameters import Schema, branches, kind_of

MOST = 40
"""Candidates that are offered for one value."""

LONGEST_LINE = 80
LONGEST_DOCUMENT = 200_000
"""Characters of a document that are searched."""

_DOCUMENT = re.compile(r"<document>\n(.*?)\n</document>", re.DOTALL)
_NUMBER = re.compile(
    r"(?<![\w.,/-])-?(?:\d{1,3}(?:[ ']\d{3})+(?:[.,]\d{1,4})?|(?:0|[1-9]\d*)(?:[.,']\d+)*)(?![\w/]|-\w|[.,]\d)"
)
_TOKEN = re.compile(r"[^\s|;,()<>\[\]{}\"]+")
_COLUMN = re.compile(r" {2,}|\t|\|")
_WORD = re.compile(r"[^\W\d_]{2,}")
_FRACTION = re.compile(r"[.,]\d\d$")
_COUNTED = re.compile(r"quantity|qty|count|menge|anzahl|number|rate|percent|days|year", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the document that reads as a value: as printed, what it comes to, and where it stands."""

    printed: str
    value: object
    line: int
    column: int


Finder = Callable[[str, Style], Iterator[tuple[int, str, object]]]
"""Where in a line which stretches read as a value, and as which."""


def narrowed(state: Conversation, records: Sequence[Wanted]) -> tuple[Wanted, ...]:
    """The records with a closed choice at each place that has one; none at all when no place has."""
    text = document_of(state)
    style = Style.of(text) if text else Style()
    closed = tuple(
        replace(one, places=tuple(_closed(place, one, state, text, style) for place in one.places)) for one in records
    )
    return closed if any(place.choices for one in closed for place in one.places) else ()


def document_of(state: Conversation) -> str:
    """The document's text, as it stands in the opening."""
    for message in state.messages[: state.opened]:
        found = _DOCUMENT.search(message.content) if message.role == "user" else None
        if found is not None:
            return found[1][:LONGEST_DOCUMENT]
    return ""


def _closed(place: Place, one: Wanted, state: Conversation, text: str, style: Style) -> Place:
    root = one.offer.parameters
    branch = next((b for b in branches(place.schema, root) if kind_of(b) != "null"), None)
    if branch is None or kind_of(branch) not in ("string", "number", "integer"):
        return place
    refused = _refused(place, one, state) if place.is_alone else ()
    if "enum" in branch:
        left = [value for value in branch["enum"] if value not in refused]
        return _with_choices(place, branch, left, root)
    kind = kind_of_value(place, branch, one.obligation.error)
    read = _READERS[kind]
    out = {value for one_of in refused if (value := read(str(one_of), style)) is not None}
    pattern = branch.get("pattern")
    spans = [span for span in spans_of(text, kind, style) if span.value not in out]
    spans = [span for span in spans if pattern is None or re.search(pattern, span.printed)]
    ranked = sorted(spans, key=_distance(place, kind, value_at(one.values, place.path), text))
    unique = list({span.value: span.printed for span in reversed(ranked)}.items())[::-1]
    values: list[Any] = [printed for _, printed in unique[:MOST]]
    if kind_of(branch) in ("number", "integer"):
        whole = kind_of(branch) == "integer"
        values = [int(v) if whole else float(v) for v, _ in unique[:MOST] if isinstance(v, Decimal)
                  and (not whole or v == v.to_integral_value())]  # fmt: skip
    return _with_choices(place, branch, values, root)


def _with_choices(place: Place, branch: Schema, values: Sequence[Any], root: Schema) -> Place:
    """The place with these values to choose from; as it is where there is nothing to choose."""
    if len(values) < 2:
        return place
    kept = {key: value for key, value in branch.items() if key in ("type", "description")}
    schema: dict[str, Any] = {**kept, "enum": list(values)}
    choices = tuple(map(str, values))
    if is_nullable(place.schema, root):
        about = {"description": schema.pop("description")} if "description" in schema else {}
        about |= {"description": place.schema["description"]} if "description" in place.schema else {}
        schema, choices = {"anyOf": [schema, {"type": "null"}], **about}, (*choices, "null")
    return replace(place, schema=schema, choices=choices)


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
)  # fmt: skip
_REFUSALS = (
    ("date", re.compile(r"\bdate\b")),
    ("number", re.compile(r"\b(?:an amount|a quantity|a percentage|one number|a number)\b")),
    ("currency", re.compile(r"\bcurrency\b")),
    ("identifier", re.compile(r"\bidentifier\b|does not stand in the document")),
)


def kind_of_value(place: Place, branch: Schema, error: str) -> str:
    """``number``, ``date``, ``currency``, ``identifier`` or ``text``."""
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


# -- spans -------------------------------------------------------------------------------------------------------------


def spans_of(text: str, kind: str, style: Style) -> Iterator[Span]:
    """Every stretch of a text that reads as a value of this kind."""
    find = _FINDERS[kind]
    for number, line in enumerate(text.splitlines()):
        for column, printed, value in find(line, style):
            yield Span(printed, value, number, column)


def _numbers(line: str, style: Style) -> Iterator[tuple[int, str, object]]:
    for found in _NUMBER.finditer(plain(line)):
        printed = found.group().rstrip(".,'")
        value = _as_number(printed, style)
        if value is not None and len(printed) <= 19:
            yield found.start(), printed, value


def _dates(line: str, style: Style) -> Iterator[tuple[int, str, object]]:
    """The shortest runs of words that read as a date; one of several words names its month."""
    tokens = list(_TOKEN.finditer(line))
    taken: set[int] = set()
    for length in range(1, 5):
        for first in range(len(tokens) - length + 1):
            run = range(first, first + length)
            printed = line[tokens[first].start() : tokens[run[-1]].end()].strip(".,:")
            is_dated = length == 1 or any(len(word) > 2 for word in _WORD.findall(printed))
            value = _as_date(printed, style) if is_dated and taken.isdisjoint(run) else None
            if value is not None:
                taken.update(run)
                yield tokens[first].start(), printed, value


def _currencies(line: str, style: Style) -> Iterator[tuple[int, str, object]]:
    for found in re.finditer(r"[^\W\d_]{2,}|[$¢£¥฿€₹₽₩]", line):
        word = found.group()
        value = _as_currency(word, style) if word in CODES or (is_currency(word) and word != word.lower()) else None
        if value is not None:
            yield found.start(), word, value


def _identifiers(line: str, style: Style) -> Iterator[tuple[int, str, object]]:
    for found in _TOKEN.finditer(line):
        printed = found.group().strip(".:#*")
        is_one = len(printed) > 1 and any(map(str.isdigit, printed)) and not re.fullmatch(r"-?\d+[.,]\d\d", printed)
        if is_one and len(printed) <= LONGEST_LINE and _as_date(printed, style) is None:
            yield found.start(), printed, printed.casefold()


def _lines(line: str, _: Style) -> Iterator[tuple[int, str, object]]:
    """A line, each of its columns, and what stands behind a label."""
    for part in dict.fromkeys((line, *_COLUMN.split(line))):
        for text in dict.fromkeys((part.strip(), part.partition(":")[2].strip())):
            if 1 < len(text) <= LONGEST_LINE and _WORD.search(text) and not text.endswith(":"):
                yield max(0, line.find(text)), text, " ".join(text.casefold().split())


def _as_number(text: str, style: Style) -> object:
    try:
        return parse_amount(text, style.decimal)[0]
    except ValueError:
        return None


def _as_date(text: str, style: Style) -> date | None:
    if not any(map(str.isdigit, text)):
        return None
    try:
        return parse_date(text, style.date_order)
    except ValueError:
        return None


def _as_currency(text: str, style: Style) -> object:
    try:
        return parse_currency(text, style.named, style.preferred)
    except ValueError:
        return None


def _as_text(text: str, _: Style) -> object:
    return " ".join(text.casefold().split())


_FINDERS: Mapping[str, Finder] = {
    "number": _numbers, "date": _dates, "currency": _currencies, "identifier": _identifiers, "text": _lines,
}  # fmt: skip
_READERS: Mapping[str, Callable[[str, Style], object]] = {
    "number": _as_number, "date": _as_date, "currency": _as_currency, "identifier": _as_text, "text": _as_text,
}  # fmt: skip


# -- which comes first -------------------------------------------------------------------------------------------------


def _distance(place: Place, kind: str, refused: Any, text: str) -> Callable[[Span], tuple[float, int, int]]:
    """How far a span is from the field's own words, and from where the refused value stands."""
    about = f"{place.path[-1]} {place.schema.get('title', '')} {place.schema.get('description', '')}".replace("_", " ")
    words = {word.casefold() for word in _WORD.findall(about)} - {"as", "printed", "the", "of", "this", "with", "all"}
    lines = [line.casefold() for line in text.splitlines()]
    labels = {n: hits for n, line in enumerate(lines) if (hits := sum(word in line for word in words))}
    wrong = " ".join(str(refused).casefold().split()) if refused not in (None, "") else None
    there = [n for n, line in enumerate(lines) if wrong is not None and wrong in line]

    is_money = kind == "number" and not _COUNTED.search(str(place.path[-1]))

    def of(span: Span) -> tuple[float, int, int]:
        to_label = min((_lines_away(span.line, n) - 0.4 * hits for n, hits in labels.items()), default=30.0)
        to_wrong = min((abs(span.line - n) + 2.0 for n in there), default=30.0)
        unlikely = 20.0 if is_money and not _FRACTION.search(span.printed) else 0.0
        return min(to_label, to_wrong) + unlikely, span.line, span.column

    return of


def _lines_away(line: int, label: int) -> float:
    """A value stands behind its label or below it, seldom above."""
    return line - label if line >= label else 2.0 * (label - line)
