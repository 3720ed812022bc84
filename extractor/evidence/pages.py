"""A document made ready to be searched: each page indexed once, when something on it is first looked for."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Any, TypeVar

from extractor.documents.document import Box, Page
from extractor.evidence.printed import Place, aligned, currencies_in, dates_in, numbers_in
from extractor.evidence.texts import MOST_PLACES, Squeezed, squeezed
from extractor.evidence.values import Match
from extractor.fields.currencies import CODES
from extractor.fields.style import Style

AROUND = 40
"""Letters of a snippet before and after the place."""

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Found:
    """One place where a value may stand.

    :ivar line: the line of the document that it begins on, counted through all pages.
    """

    page: Searched
    start: int
    end: int
    match: Match
    score: float
    line: int

    @property
    def printed(self) -> str:
        """The text at the place."""
        return self.page.text[self.start : self.end]


class Searched:
    """One page, or what is hidden on it, by what stands there."""

    def __init__(self, page: Page, style: Style, first_line: int, *, hidden: bool = False) -> None:
        self.page = page
        self.text = page.hidden if hidden else page.text
        self.is_hidden = hidden
        self._style = style
        self._first_line = first_line

    @cached_property
    def squeezed(self) -> Squeezed:
        """The page by its letters and digits."""
        return Squeezed.of(self.text)

    @cached_property
    def _blurred(self) -> Squeezed:
        return self.squeezed.blurred()

    @cached_property
    def _plain(self) -> str:
        return aligned(self.text)

    @cached_property
    def _numbers(self) -> Mapping[Decimal, list[Place]]:
        return _by_value(numbers_in, self._plain, self._style)

    @cached_property
    def _dates(self) -> Mapping[date, list[Place]]:
        return _by_value(dates_in, self._plain, self._style)

    @cached_property
    def _currencies(self) -> Mapping[str, list[Place]]:
        return _by_value(currencies_in, self._plain, self._style)

    @cached_property
    def _lines(self) -> list[int]:
        return [0, *(at + 1 for at, character in enumerate(self.text) if character == "\n")]

    def line_of(self, place: int) -> int:
        """The line that a place is on, counted through all pages."""
        return self._first_line + bisect_right(self._lines, place) - 1

    def before(self, place: int) -> str:
        """What stands on the line before a place."""
        return self.text[self.text.rfind("\n", 0, place) + 1 : place]

    def above(self, place: int) -> str:
        """The line above a place."""
        start = self.text.rfind("\n", 0, place)
        return self.text[self.text.rfind("\n", 0, max(0, start)) + 1 : start] if start > 0 else ""

    # -- places ----------------------------------------------------------------------------------------------------

    def places(self, sent: Any, value: Any) -> list[Found]:
        """Where a value stands, by its kind."""
        if isinstance(value, bool):
            return []
        if isinstance(value, (Decimal, int, float)):
            return self._of_number(sent, value)
        if isinstance(value, date):
            return self._of_date(sent, value)
        text = str(sent).strip()
        found = self._of_text(text)
        if not found and text in CODES:
            found = self._as_found(self._currencies.get(text, ()), text)
        if not found:
            found = self._of_untyped(text)
        if not found and isinstance(value, str) and value != sent:
            found = self._of_text(value.strip())
        return found

    def _of_number(self, sent: Any, value: Decimal | float) -> list[Found]:
        try:
            number = abs(value if isinstance(value, Decimal) else Decimal(repr(value)))
        except InvalidOperation:
            return []
        return self._as_found(self._numbers.get(number, ()), sent) if number.is_finite() else []

    def _of_date(self, sent: Any, value: date) -> list[Found]:
        day = value.date() if isinstance(value, datetime) else value
        return self._as_found(self._dates.get(day, ()), sent)

    def _of_untyped(self, text: str) -> list[Found]:
        """Text that is a number or a date in the form that programs write."""
        try:
            return self._of_date(text, date.fromisoformat(text))
        except ValueError:
            pass
        plain = text.removeprefix("-")
        if plain.replace(".", "", 1).isascii() and plain.replace(".", "", 1).isdigit() and not plain.isdigit():
            return self._of_number(text, Decimal(text))
        return []

    def _of_text(self, text: str) -> list[Found]:
        wanted = squeezed(text)
        if not wanted.letters:
            return self._of_signs(text)
        found = []
        for start, end, _ in self.squeezed.find(wanted):
            is_same = self.text[start:end] == text or self._around(start, text)
            found.append(self._found(start, end, "exact" if is_same else "normalised", 1.0 if is_same else 0.95))
        if not found:
            found = [
                self._found(start, end, "fuzzy", 1 - 0.1 * gaps) for start, end, gaps in self.squeezed.scattered(wanted)
            ]
        if not found and self.page.confidence is not None and len(wanted.letters) > 3:
            found = [self._found(start, end, "fuzzy", 0.8) for start, end, _ in self._blurred.find(wanted.blurred())]
        return found

    def _around(self, start: int, text: str) -> bool:
        """Whether the page has it letter by letter, with the signs at its ends that are no letters."""
        offset = next((n for n, character in enumerate(text) if character == self.text[start]), 0)
        return self.text.startswith(text, start - offset) if start >= offset else False

    def _of_signs(self, text: str) -> list[Found]:
        at = self.text.find(text) if text else -1
        return [self._found(at, at + len(text), "exact", 1.0)] if at >= 0 else []

    def _as_found(self, places: Iterable[Place], sent: Any) -> list[Found]:
        text = str(sent).strip()
        found = []
        for start, end in places:
            is_same = self.text[start:end] == text or self._around(start, text)
            found.append(self._found(start, end, "exact" if is_same else "normalised", 1.0))
        return found

    def _found(self, start: int, end: int, match: Match, score: float) -> Found:
        return Found(self, start, end, "hidden" if self.is_hidden else match, score, self.line_of(start))

    # -- how it looks ----------------------------------------------------------------------------------------------

    def boxes(self, start: int, end: int) -> tuple[Box, ...]:
        """Around the words of a place, one for each line."""
        if self.is_hidden:
            return ()
        lines: list[Box] = []
        for word in self.page.words.within(start, end):
            box = word.box
            last = lines[-1] if lines else None
            if last is not None and _is_beside(last, box):
                lines[-1] = Box(
                    min(last.left, box.left), min(last.top, box.top), max(last.right, box.right),
                    max(last.bottom, box.bottom),
                )  # fmt: skip
            else:
                lines.append(box)
        return tuple(lines)

    def snippet(self, start: int, end: int) -> str:
        """The words around a place, on one line."""
        first, last = max(0, start - AROUND), min(len(self.text), end + AROUND)
        words = self.text[first:last].split()
        if first and not self.text[first - 1].isspace() and not self.text[first].isspace() and len(words) > 1:
            words = words[1:]
        return " ".join(words)


def _is_beside(last: Box, box: Box) -> bool:
    middle = (box.top + box.bottom) / 2
    return last.top <= middle <= last.bottom and box.left >= last.left


def _by_value(
    find: Callable[[str, Style], Iterator[tuple[Key, Place]]], text: str, style: Style
) -> Mapping[Key, list[Place]]:
    found: dict[Key, dict[Place, None]] = defaultdict(dict)
    for value, place in find(text, style):
        places = found[value]
        if len(places) < MOST_PLACES:
            places[place] = None
    return {value: list(places) for value, places in found.items()}
