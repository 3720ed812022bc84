"""From words with places to lines as a person reads them; pure.

Words that share a line are joined from left to right (from right to left where the script runs so), with two or more
spaces where there is a wide gap: so the columns of a table row stay on one line. Running text that is set in columns is
read one column after the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from math import inf
from statistics import median

GUTTER = 0.7
"""What parts two columns of running text, at the least, in ems."""
WIDE = 1.0
"""A gap between words from which on they are in different columns of a table, in ems."""
PROSE = 10.0
"""From how many ems on a piece of a line is running text rather than a cell; about twenty letters."""

_RIGHT_TO_LEFT = re.compile(r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe]")
_LEFT_TO_RIGHT = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, slots=True)
class Word:
    """A word on the page as it is read: turned upright, in points, with the origin at the bottom left.

    :ivar base: height of the line that it stands on.
    :ivar em: size of its letters.
    """

    text: str
    left: float
    right: float
    base: float
    em: float


Row = list[Word]


def lines(words: Sequence[Word], depth: int = 3) -> list[str]:
    """The text of a page, line by line; an empty line where there is a wide gap between two lines.

    :param words: in any order; no letter of them is lost.
    :param depth: how often columns may be looked for within columns.
    """
    rows = _rows(words)
    gutter = _gutter(rows) if depth else None
    if gutter is None:
        return _written(rows)
    text: list[str] = []
    for is_crossed, band in _bands(rows, gutter.place):
        if is_crossed or not gutter.parts(band):
            part = _written(band)
        else:
            left, right = (
                [word for row in band for word in row if (word.left < gutter.place) is side] for side in (True, False)
            )
            part = [*lines(left, depth - 1), "", *lines(right, depth - 1)]
        text += ["", *part] if text else part
    return text


def _rows(words: Sequence[Word]) -> list[Row]:
    """Words that share a line, from the top of the page; each row from left to right.

    Each row is known by its largest word, so that rows that stand close do not chain; a small figure above the line
    belongs to it.
    """
    rows: list[Row] = []
    anchors: list[Word] = []
    for word in sorted(words, key=lambda one: -one.base):
        fits = [
            place for place in range(max(0, len(anchors) - 6), len(anchors)) if _shares_a_line(word, anchors[place])
        ]
        if not fits:
            rows.append([word])
            anchors.append(word)
            continue
        place = min(fits, key=lambda one: abs(anchors[one].base - word.base))
        rows[place].append(word)
        if word.em > 1.1 * anchors[place].em:
            anchors[place] = word
    order = sorted(range(len(rows)), key=lambda one: -anchors[one].base)
    return [sorted(rows[place], key=lambda one: one.left) for place in order]


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


def _written(rows: list[Row]) -> list[str]:
    tallest = [max(row, key=lambda one: one.em) for row in rows]
    steps = [above.base - below.base for above, below in pairwise(tallest)]
    usual = median(steps) if steps else 0.0
    text: list[str] = []
    for place, row in enumerate(rows):
        if place and steps[place - 1] > max(1.7 * tallest[place].em, 1.25 * usual):
            text.append("")
        text.append(_line(row))
    return text


def _line(row: Row) -> str:
    """One row, further apart where its words stand further apart."""
    if _runs_right_to_left(row):
        row = _mirrored(row)
    text, last = row[0].text, row[0]
    for word in row[1:]:
        gap = max(word.left - last.right, last.left - word.right) / max(min(word.em, last.em), 1.0)
        text += (" " if gap < WIDE else " " * min(2 + int(gap / 4), 8)) + word.text
        last = word if word.right > last.right or word.left < last.left else last
    return text


def _runs_right_to_left(row: Row) -> bool:
    text = "".join(word.text for word in row)
    right_to_left = len(_RIGHT_TO_LEFT.findall(text))
    return right_to_left > 0 and 2 * right_to_left >= len(_LEFT_TO_RIGHT.findall(text))


def _mirrored(row: Row) -> Row:
    """A row of a script that runs from right to left; words of the other direction that stand together keep theirs."""
    order: Row = []
    run: Row = []
    for word in reversed(row):
        is_foreign = not _RIGHT_TO_LEFT.search(word.text)
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
        words = [word for row in rows for word in row]
        left = [word for word in words if self.start <= word.left < self.place]
        right = [word for word in words if self.place <= word.left < self.end]
        return _is_prose(left) and _is_prose(right)


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
    start, end = min(row[0].left for row in rows), max(word.right for row in rows for word in row)
    em = median(word.em for row in rows for word in row)
    unit = max(1.0, (end - start) / 1000)  # a page may claim any size
    change = [0] * (int((end - start) / unit) + 2)
    for word in (word for row in rows for word in row):
        change[int((word.left - start) / unit)] += 1
        change[min(len(change) - 1, int((word.right - start) / unit) + 1)] -= 1
    free = [count <= 0.25 * len(rows) for count in accumulate(change)]
    strips: list[float] = []
    place = 0
    for is_free, run in groupby(free):
        length = len(list(run))
        if is_free and 0 < place < len(free) - length and length * unit >= GUTTER * em:
            strips.append(start + (place + length / 2) * unit)
        place += length
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


def _is_prose(words: Sequence[Word]) -> bool:
    """Whether words are running text: several lines, most of them in pieces longer than what a cell holds."""
    rows = _rows(words)
    if len(rows) < 4:
        return False
    long = total = 0.0
    for row in rows:
        piece, last = 0.0, row[0]
        for word in row:
            if word.left - last.right > WIDE * word.em:
                long += piece if piece >= PROSE * word.em else 0
                piece = 0
            piece += word.right - word.left
            total += word.right - word.left
            last = word
        long += piece if piece >= PROSE * last.em else 0
    return long >= 0.7 * total
