"""Stretches of a document that read as a value of some kind, in the document's own style."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from extractor.fields.characters import plain
from extractor.fields.currencies import CODES, is_currency, parse_currency
from extractor.fields.dates import parse_date
from extractor.fields.numbers import Ambiguous, parse_amount
from extractor.fields.style import Style

LONGEST_LINE = 80

_NUMBER = re.compile(
    r"(?<![\w.,/-])-?(?:\d{1,3}(?:[ ']\d{3})+(?:[.,]\d{1,4})?|(?:0|[1-9]\d*)(?:[.,']\d+)*)(?![\w/]|-\w|[.,]\d)"
)
_TOKEN = re.compile(r"[^\s|;,()<>\[\]{}\"]+")
_COLUMN = re.compile(r" {2,}|\t|\|")
WORD = re.compile(r"[^\W\d_]{2,}")


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the document that reads as a value: as it is to be sent, what it comes to, and where it stands."""

    printed: str
    value: object
    line: int
    column: int


Finder = Callable[[str, Style], Iterator[tuple[int, str, object]]]
"""Where in a line which stretches read as a value, and as which."""


def spans_of(text: str, kind: str, style: Style) -> Iterator[Span]:
    """Every stretch of a text that reads as a value of this kind."""
    find, lines = _FINDERS[kind], text.splitlines()
    if kind == "address":
        yield from _runs(lines)
        return
    for number, line in enumerate(lines):
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
            is_dated = length == 1 or any(len(word) > 2 for word in WORD.findall(printed))
            readings = _dates_of(printed, style) if is_dated and taken.isdisjoint(run) else ()
            for text, value in readings:
                taken.update(run)
                yield tokens[first].start(), text, value


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
        if is_one and len(printed) <= LONGEST_LINE and not _dates_of(printed, style):
            yield found.start(), printed, printed.casefold()


def _lines(line: str, _: Style) -> Iterator[tuple[int, str, object]]:
    """A line, each of its columns, and what stands behind a label."""
    for part in dict.fromkeys((line, *_COLUMN.split(line))):
        for text in dict.fromkeys((part.strip(), part.partition(":")[2].strip())):
            if 1 < len(text) <= LONGEST_LINE and WORD.search(text) and not text.endswith(":"):
                yield max(0, line.find(text)), text, " ".join(text.casefold().split())


def _runs(lines: Sequence[str]) -> Iterator[Span]:
    """Up to four lines in a row as one: an address is seldom printed on one line."""
    texts = [" ".join(line.split()) for line in lines]
    for first in range(len(texts)):
        for length in range(1, 5):
            run = texts[first : first + length]
            whole = " ".join(run)
            is_one = len(run) == length and all(1 < len(text) <= LONGEST_LINE for text in run)
            if is_one and WORD.search(whole) and any(map(str.isdigit, whole)):
                yield Span(whole, whole.casefold(), first, length)


def _as_number(text: str, style: Style) -> object:
    """The number; the text itself where it has two readings and nothing decides."""
    try:
        return parse_amount(text, style.decimal)[0]
    except Ambiguous:
        return text
    except ValueError:
        return None


def _only_date(text: str, style: Style) -> object:
    """The date of a text that has one reading; of two, the other may be the right one."""
    days = [value for _, value in _dates_of(text, style)]
    return days[0] if len(days) == 1 else None


def _dates_of(text: str, style: Style) -> tuple[tuple[str, object], ...]:
    """What a text is to be sent as to be read as a date: as printed, or, where nothing decides between two readings, as
    either of them."""
    if not any(map(str.isdigit, text)):
        return ()
    try:
        return ((text, parse_date(text, style.date_order)),)
    except Ambiguous:
        days = [parse_date(text, order) for order in ("DMY", "MDY")]
        return tuple((day.isoformat(), day) for day in days)
    except ValueError:
        return ()


def _as_currency(text: str, style: Style) -> object:
    try:
        return parse_currency(text, style.named, style.preferred)
    except ValueError:
        return None


def _as_text(text: str, _: Style) -> object:
    return " ".join(text.casefold().split())


_FINDERS: Mapping[str, Finder] = {
    "number": _numbers, "date": _dates, "currency": _currencies, "identifier": _identifiers, "address": _lines,
    "text": _lines,
}  # fmt: skip
READERS: Mapping[str, Callable[[str, Style], object]] = {
    "number": _as_number, "date": _only_date, "currency": _as_currency, "identifier": _as_text, "address": _as_text,
    "text": _as_text,
}  # fmt: skip
