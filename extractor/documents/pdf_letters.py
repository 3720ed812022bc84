"""A word of a PDF page looked at letter by letter, where it is drawn in more than one piece."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import atan2, hypot, inf, isfinite, pi
from typing import NamedTuple

from extractor.documents.pdfium import quick

ASIDE = -1
"""The direction of text that stands aslant, such as a watermark."""

_NAMED = {0x00: "\ufffd", 0x02: "-", 0xAD: "-", 0xFFFE: "-"}
"""A letter that its font does not name, which must leave a trace within a word; a hyphen at the end of a line as pdfium
gives it, and a soft one that is drawn."""


_SET = struct.Struct("6f2d")
"""A letter's matrix and origin, as pdfium fills them in."""


class Sides(NamedTuple):
    """A rectangle on the page before it is turned, as pdfium gives it: y grows upwards."""

    left: float
    top: float
    right: float
    bottom: float

    def along(self, quarter: int) -> tuple[float, float]:
        """Where it begins and ends along a line of text that runs in a direction."""
        if quarter in (1, 3):
            return (self.bottom, self.top) if quarter == 1 else (-self.top, -self.bottom)
        return (-self.right, -self.left) if quarter == 2 else (self.left, self.right)


class Pen(NamedTuple):
    """How a letter is set: the size, the line that it stands on, and the direction in which it is read.

    :ivar base: height of the line over the edge of the page, when the page is turned so that the text is upright.
    """

    quarter: int
    base: float
    em: float

    @classmethod
    def at(cls, textpage: int, letter: int) -> Pen:
        """The pen of one letter of the text page at an address."""
        calls, buffer = quick(), ctypes.create_string_buffer(_SET.size)
        into = ctypes.addressof(buffer)
        calls.matrix(textpage, letter, into)
        calls.origin(textpage, letter, into + 24, into + 32)
        a, b, c, d, _, _, x, y = _SET.unpack(buffer)
        size = calls.font_size(textpage, letter)
        if b == c == 0 < a:
            quarter, em, base = 0, size * abs(d), y
        else:
            turn = atan2(b, a) / (pi / 2)
            quarter = round(turn) % 4 if abs(turn - round(turn)) < 0.17 else ASIDE
            em, base = size * hypot(c, d), (y, -x, -y, x, y)[quarter]
        return cls(quarter, base if isfinite(base) else 0.0, em if 0.1 < em < 1e5 else 10.0)


@dataclass(frozen=True, slots=True)
class Part:
    """A word, or what stands apart in it.

    :ivar drawn_by: the object that draws its first letter, by address; 0 where there is none.
    """

    text: str
    sides: Sides
    pen: Pen
    drawn_by: int


def parted(textpage: int, text: str, start: int, end: int) -> Iterator[Part]:
    """What stands apart in ``text[start:end]``, which holds no white space.

    pdfium runs two cells that stand one below the other into one word when nothing else is between them, 12 above 6 as
    126. A letter that is drawn twice in one place, to look bold, is one letter.
    """
    boxes = _boxes(textpage, start, end)
    letters, object_of = text[start:end], quick().object_of
    at = 0
    while at < len(letters):
        if letters[at] == "\0":  # begins no word
            at += 1
            continue
        pen = Pen.at(textpage, start + at)
        run = _Run(letters, boxes, at, pen.quarter, lambda one: object_of(textpage, start + one))
        first, at = at, run.end
        if run.largest != first:  # a small raised mark before a word is no measure of it
            largest = Pen.at(textpage, start + run.largest)
            pen = Pen(pen.quarter, largest.base if largest.quarter == pen.quarter else pen.base, largest.em)
        said, sides = spelled("".join(letters[place] for place in run.kept)), run.sides()
        if said and all(map(isfinite, sides)):
            yield Part(said, sides, pen, object_of(textpage, start + first) or 0)


def _boxes(textpage: int, start: int, end: int) -> list[Sides]:
    found = (ctypes.c_float * (4 * (end - start)))()
    box, into = quick().letter_box, ctypes.addressof(found)
    for place in range(end - start):
        box(textpage, start + place, into + 16 * place)
    sides = list(found)
    return list(map(Sides._make, zip(sides[0::4], sides[1::4], sides[2::4], sides[3::4], strict=True)))


class _Run:
    """Letters that belong together, from one on.

    :ivar end: the letter after them.
    :ivar kept: those that are not drawn a second time.
    :ivar largest: the largest of them.
    """

    def __init__(
        self, letters: str, boxes: list[Sides], first: int, quarter: int, object_of: Callable[[int], int | None]
    ) -> None:
        self._boxes = boxes
        self.kept, self.largest, self.end = [first], first, len(letters)
        turned = [_turned(box, quarter) for box in boxes[first:]]
        start, end, low, high = turned[0]
        size, middle = high - low, low + high
        drawn = {letters[first]: [first]}
        for place in range(first + 1, len(letters)):
            here = left, right, low, high = turned[place - first]
            if right > left:  # a mark without a width has no place of its own
                far = (inf if quarter == ASIDE else 1.0) * max(size, 1.0)
                if left - end > far or start - right > far or abs(low + high - middle) > 1.2 * far:
                    self.end = place
                    return
                start, end = min(start, left), max(end, right)
                before = drawn.setdefault(letters[place], [])
                if any(
                    _is_the_same(here, turned[one - first])
                    and (here != turned[one - first] or object_of(one) != object_of(place))  # else both are a ligature
                    for one in before
                ):
                    continue
                before.append(place)
            self.kept.append(place)
            if high - low > 1.1 * size:
                self.largest, size, middle = place, high - low, low + high

    def sides(self) -> Sides:
        """What they take up."""
        wide = [self._boxes[place] for place in self.kept if self._boxes[place].right > self._boxes[place].left]
        boxes = wide or [self._boxes[self.kept[0]]]
        return Sides(
            min(box.left for box in boxes), max(box.top for box in boxes),
            max(box.right for box in boxes), min(box.bottom for box in boxes),
        )  # fmt: skip


def _turned(box: Sides, quarter: int) -> tuple[float, float, float, float]:
    """Start and end along the line, low and high across it."""
    left, top, right, bottom = box
    return (bottom, top, left, right) if quarter in (1, 3) else (left, right, bottom, top)


def _is_the_same(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    """Whether two equal letters stand in one place, a hair's breadth apart."""
    size = min(one[3] - one[2], one[1] - one[0] + 0.3 * (one[3] - one[2]))
    return abs(one[0] - other[0]) < 0.2 * size and abs(one[2] - other[2]) < 0.2 * size


def spelled(letters: str) -> str:
    """A word of pdfium's letters as it is written."""
    if letters.isascii() and "\0" not in letters and "\x02" not in letters:
        return letters
    text = letters.translate(_NAMED)
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")  # pairs come as two letters
