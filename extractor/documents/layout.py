"""From words with places to lines as a person reads them; pure.

Words that share a line are joined from left to right (from right to left where the script runs so), with two or more
spaces where there is a wide gap: so the columns of a table row stay on one line. Running text that is set in columns is
read one column after the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from operator import attrgetter
from statistics import median
from typing import NamedTuple

GUTTER = 0.7
"""What parts two columns of running text, at the least, in ems."""
WIDE = 1.0
"""A gap between words from which on they are in different columns of a table, in ems."""
PROSE = 10.0
"""From how many ems on a piece of a line is running text rather than a cell; about twenty letters."""

RIGHT_TO_LEFT = re.compile(r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe]")
_LEFT_TO_RIGHT = re.compile(r"[^\W\d_]")


class Word(NamedTuple):
    """A word on the page as it is read: turned upright, in points, with the origin at the bottom left.

    Several words that stand in one line, one space apart, may come as one.

    :ivar base: height of the line that it stands on.
    :ivar em: size of its letters.
    :ivar first: the number by which who asks knows the word, or the first of the words, which follow one another.
    :ivar words: how many words it is.
    """

    text: str
    left: float
    right: float
    base: float
    em: float
    first: int = 0
    words: int = 1


Row = list[Word]

_LEFT, _BASE = attrgetter("left"), attrgetter("base")


def lines(words: Sequence[Word]) -> list[str]:
    """The text of a page, line by line; an empty line where there is a wide gap between two lines.

    :param words: in any order; no letter of them is lost.
    """
    return [line(row) for row in rows(words)]


def rows(words: Sequence[Word], depth: int = 3) -> list[Row]:
    """The words of a page as they are read, line by line; an empty line where there is a wide gap between two lines.

    :param depth: how often columns may be looked for within columns.
    """
    found = _rows(words)
    gutter = _gutter(found) if depth else None
    if gutter is None:
        return _spaced(found)
    text: list[Row] = []
    for is_crossed, band in _bands(found, gutter.place):
        if is_crossed or not gutter.parts(band):
            part = _spaced(band)
        else:
            left, right = (
                [word for row in band for word in row if (word.left < gutter.place) is side] for side in (True, False)
            )
            part = [*rows(left, depth - 1), [], *rows(right, depth - 1)]
        text += [[], *part] if text else part
    return text


def line(row: Row) -> str:
    """One line, further apart where its words stand further apart."""
    if len(row) < 2:
        return row[0].text if row else ""
    text, left, right, _, em, _, _ = row[0]
    for word in row[1:]:
        said, start, end, _, size, _, _ = word
        unit = min(size, em)
        gap = (start - right if start > left else max(start - right, left - end)) / (unit if unit > 1 else 1.0)
        text += (" " if gap < WIDE else " " * min(2 + int(gap / 4), 8)) + said
        if end > right or start < left:
            left, right, em = start, end, size
    return text


def _rows(words: Sequence[Word]) -> list[Row]:
    """Words that share a line, from the top of the page; each row from left to right.

    Each row is known by its largest word, so that rows that stand close do not chain; a small figure above the line
    belongs to it.
    """
    rows: list[Row] = []
    anchors: list[Word] = []
    place, base, em = 0, inf, 0.0
    for word in sorted(words, key=_BASE, reverse=True):
        if word.base == base and word.em == em:  # as the word before
            rows[place].append(word)
            continue
        base, em = word.base, word.em
        first = max(0, len(anchors) - 6)
        fits = [
            (abs(anchor.base - base), at)
            for at, anchor in enumerate(anchors[first:], first)
            if anchor.base - base <= 0.5 * max(em, anchor.em) and _shares_a_line(word, anchor)
        ]
        if not fits:
            place = len(rows)
            rows.append([word])
            anchors.append(word)
            continue
        place = min(fits)[1]
        rows[place].append(word)
        if em > 1.1 * anchors[place].em:
            anchors[place] = word
    order = sorted(range(len(rows)), key=lambda one: -anchors[one].base)
    return [sorted(rows[place], key=_LEFT) for place in order]


def _shares_a_line(one: Word, other: Word) -> bool:
    apart = abs(one.base - other.base)
    small, large = (one.em, other.em) if one.em < other.em else (other.em, one.em)
    if apart <= 0.5 * small:
        return True
    if apart > 0.4 * large or large > 2 * small:
        return False
    overlap = min(one.base + 0.78 * one.em, other.base + 0.78 * other.em) - max(
        one.base - 0.22 * one.em, other.base - 0.22 * other.em
    )
    return overlap >= 0.5 * small


def _spaced(found: list[Row]) -> list[Row]:
    """Rows in the order of reading, with an empty one where there is a wide gap."""
    tallest = [max(row, key=lambda one: one.em) for row in found]
    steps = [above.base - below.base for above, below in pairwise(tallest)]
    usual = median(steps) if steps else 0.0
    text: list[Row] = []
    for place, row in enumerate(found):
        if place and steps[place - 1] > max(1.7 * tallest[place].em, 1.25 * usual):
            text.append([])
        text.append(_mirrored(row) if _runs_right_to_left(row) else row)
    return text


def _runs_right_to_left(row: Row) -> bool:
    text = "".join([word.text for word in row])
    if text.isascii():
        return False
    right_to_left = len(RIGHT_TO_LEFT.findall(text))
    return right_to_left > 0 and 2 * right_to_left >= len(_LEFT_TO_RIGHT.findall(text))


def _mirrored(row: Row) -> Row:
    """A row of a script that runs from right to left; words of the other direction that stand together keep theirs."""
    order: Row = []
    run: Row = []
    for word in reversed(row):
        is_foreign = not RIGHT_TO_LEFT.search(word.text)
        if run and (not is_foreign or run[-1].left - word.right > WIDE * word.em):
            order += reversed(run)
            run = []
        if is_foreign:
            run.append(word)
        else:
            order.append(word)
    return order + run[::-1]


# -- columns -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Gutter:
    """What parts two columns of running text; ``start`` and ``end`` are where these two columns begin and end."""

    start: float
    place: float
    end: float

    def parts(self, rows: list[Row]) -> bool:
        """Whether rows hold running text on both sides of it."""
        start, place, end = self.start, self.place, self.end
        left = [part for row in rows if (part := [word for word in row if start <= word.left < place])]
        return _is_prose(left) and _is_prose(
            [part for row in rows if (part := [word for word in row if place <= word.left < end])]
        )


def _gutter(rows: list[Row]) -> Gutter | None:
    """The first upright strip that hardly any row crosses and that has running text on both sides."""
    strips = _strips(rows) if len(rows) >= 6 else []
    for start, place, end in zip([-inf, *strips], strips, [*strips[1:], inf], strict=False):
        gutter = Gutter(start, place, end)
        if gutter.parts([row for row in rows if not _crosses(row, place)]):
            return gutter
    return None


def _strips(rows: list[Row]) -> list[float]:
    """The middles of the upright strips of a page that hardly any row crosses."""
    words = [word for row in rows for word in row]
    wide = GUTTER * median([word.em for word in words])
    most = 0.25 * len(rows)
    edges = sorted([(word.left, 1) for word in words] + [(word.right, -1) for word in words])
    strips: list[float] = []
    count, free_from = 0, inf  # the margin on the left is no strip
    for place, step in edges:
        was_free = count <= most
        count += step
        if was_free and count > most:
            if place - free_from >= wide:
                strips.append((free_from + place) / 2)
        elif not was_free and count <= most:
            free_from = place
    return strips


def _crosses(row: Row, place: float) -> bool:
    return any(word.left < place < word.right for word in row)


def _bands(rows: list[Row], gutter: float) -> Iterator[tuple[bool, list[Row]]]:
    """Rows that follow one another and all cross the gutter, or all do not."""
    band: list[Row] = []
    was_crossed = False
    for row in rows:
        is_crossed = _crosses(row, gutter)
        if band and is_crossed != was_crossed:
            yield was_crossed, band
            band = []
        band.append(row)
        was_crossed = is_crossed
    if band:
        yield was_crossed, band


def _is_prose(rows: list[Row]) -> bool:
    """Whether rows are running text: several of them, most of it in pieces longer than what a cell holds."""
    if len(rows) < 4:
        return False
    long = total = 0.0
    for row in rows:
        piece, end = 0.0, row[0].right
        for _, left, right, _, em, _, _ in row:
            if left - end > WIDE * em:
                long += piece if piece >= PROSE * em else 0
                piece = 0
            piece += right - left
            total += right - left
            end = right
        long += piece if piece >= PROSE * row[-1].em else 0
    return long >= 0.7 * total
