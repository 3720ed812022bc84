"""Text of a PDF page that a person does not see on it: white on white, under a picture, beside the page, too small.

What cannot be seen is found in two steps. Colours, sizes and what lies over what tell which text may be unseen, in next
to no time. Of those few, if any, the page is drawn twice, with them and without: where both drawings are alike, nobody
sees the text. So a white heading on a dark bar is read, and black letters under a black bar are not.

A scan that was read by OCR before has its letters under the picture, unpainted. There nothing else is to be seen, and
the letters count as the text of the picture.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

from extractor.documents.pdfium import quick

Sides = tuple[float, float, float, float]
"""Left, top, right and bottom on the page before it is turned; y grows upwards."""

TINY = 1.2
"""Points; letters that are less high are not read by anybody."""
ALIKE = 12
"""Shades of 255 by which two drawings of a place may differ where nothing is to be seen."""
NEAR = 48
"""Shades by which two colours differ that may be the same to an eye; such text is looked at in the drawings."""
THIN = 4.0
"""Points; what is less wide or less high is a line, and covers nothing."""
HUGE = 1e6
"""Points; numbers above it are no places on a page."""
COVERS = 5_000
"""Objects of a page that are asked whether they cover text, at the most."""
SHADES = 1_500_000
"""Dots of a drawing at the most."""
_BAND = 16.0
"""Points; what may lie over a word is kept by horizontal bands of this height."""
BANDS = 2_000
"""Of them to either side of the origin; a page is not higher."""
_WHITE = (255, 255, 255)
_INVISIBLE = (3, 7)


class Cover(NamedTuple):
    """Something that may lie over or under text.

    :ivar order: how late it is drawn.
    :ivar color: of its filling; ``None`` for a picture, or where it is not known.
    :ivar is_picture: whether it is one, or has one in it.
    """

    order: int
    sides: Sides
    color: tuple[int, int, int] | None
    is_picture: bool


class Shape:
    """What is drawn on a page beside text.

    :ivar orders: of the text objects, by address; those within forms are not among them.
    """

    def __init__(self, page: int) -> None:
        """Look through the objects of the page at an address."""
        import pypdfium2.raw as pdfium

        text = pdfium.FPDF_PAGEOBJ_TEXT
        self.orders: dict[int, int] = {}
        self.covers: list[Cover] = []
        self._bands: dict[int, list[Cover]] = {}
        calls, box = quick(), (ctypes.c_float * 4)()
        kind_of, bounds, nth = calls.kind, calls.bounds, calls.nth
        one, two, three, four = (ctypes.addressof(box) + 4 * side for side in range(4))
        for order in range(min(calls.count(page), COVERS)):
            drawn = nth(page, order) or 0
            kind = kind_of(drawn)
            if kind == text:
                self.orders[drawn] = order
            elif bounds(drawn, one, two, three, four):
                left, bottom, right, top = box
                if THIN < right - left < HUGE and THIN < top - bottom < HUGE:
                    self._keep(drawn, kind, order, (left, top, right, bottom))

    def _keep(self, drawn: int, kind: int, order: int, sides: Sides) -> None:
        """Keep an object that is large enough to cover something, unless it is not filled."""
        import pypdfium2.raw as pdfium

        color = None
        if kind == pdfium.FPDF_PAGEOBJ_PATH:
            mode, at = (ctypes.c_int * 2)(), quick().draw_mode
            painted = (
                _color(drawn) if at(drawn, ctypes.addressof(mode), ctypes.addressof(mode) + 4) and mode[0] else None
            )
            if painted is None or painted[3] < 32:
                return
            color = painted[:3]
        is_picture = kind == pdfium.FPDF_PAGEOBJ_IMAGE or (kind == pdfium.FPDF_PAGEOBJ_FORM and _has_picture(drawn))
        cover = Cover(order, sides, color, is_picture)
        self.covers.append(cover)
        low, high = int(max(sides[3], -HUGE) // _BAND), int(min(sides[1], HUGE) // _BAND)
        for band in range(max(low, -BANDS), min(high, BANDS) + 1):
            if band in self._bands:
                self._bands[band].append(cover)
            else:
                self._bands[band] = [cover]

    def at(self, x: float, y: float) -> list[Cover]:
        """What lies at a point, in the order of drawing."""
        covers = self._bands.get(int(y // _BAND)) if abs(y) < HUGE else None
        if not covers:
            return []
        return [one for one in covers if one[1][0] <= x <= one[1][2] and one[1][3] <= y <= one[1][1]]

    def is_scan(self, frame: Sides) -> bool:
        """Whether one picture takes up half of the page or more."""
        area = max(1.0, (frame[2] - frame[0]) * (frame[1] - frame[3]))
        pictures = (cover.sides for cover in self.covers if cover.is_picture)
        return any((side[2] - side[0]) * (side[1] - side[3]) >= area / 2 for side in pictures)


def _has_picture(form: int) -> bool:
    """Whether there is a picture among the first objects of a form."""
    import pypdfium2.raw as pdfium

    drawn = ctypes.cast(form, pdfium.FPDF_PAGEOBJECT)
    objects = (pdfium.FPDFFormObj_GetObject(drawn, at) for at in range(min(pdfium.FPDFFormObj_CountObjects(drawn), 50)))
    return any(pdfium.FPDFPageObj_GetType(one) == pdfium.FPDF_PAGEOBJ_IMAGE for one in objects)


def _color(one: int) -> tuple[int, int, int, int] | None:
    """Red, green, blue and opacity of what fills an object."""
    return _UNPACK(_COLOR) if quick().color(one, *_PARTS) else None


_COLOR = ctypes.create_string_buffer(16)
"""Filled by pdfium, and emptied before anybody else calls it: its lock is held."""
_PARTS = [ctypes.addressof(_COLOR) + 4 * part for part in range(4)]
_UNPACK = cast("Callable[[Any], tuple[int, int, int, int]]", struct.Struct("4I").unpack)


def unseen(page: Any, objects: Sequence[int], sides: Sequence[Sides], frame: Sides) -> set[int]:
    """Which words of a page nobody sees.

    :param page: as pypdfium2 opened it.
    :param objects: of each word, the text object that draws it; 0 where that is not known.
    :param sides: of each word.
    :param frame: the part of the page that is shown.
    :returns: numbers of words.
    """
    words: dict[int, list[int]] = {}
    for number, one in enumerate(objects):
        words.setdefault(one, []).append(number)
    nowhere = _outside(sides, frame)
    shape = Shape(ctypes.cast(page.raw, ctypes.c_void_p).value or 0)
    invisible, doubtful = _doubtful(words, sides, shape)
    if doubtful:
        places = {one: _around([sides[number] for number in words[one]]) for one in doubtful}
        invisible |= _indifferent(page, places, frame)
    gone = {number for one in invisible for number in words[one]}
    if len(gone) >= 0.9 * (len(sides) - len(nowhere)) and shape.is_scan(frame):
        gone = set()  # what was read off the picture
    return gone | nowhere


def _outside(sides: Sequence[Sides], frame: Sides) -> set[int]:
    """Words that stand beside the page, or are too small to read."""
    left, top, right, bottom = frame
    return {
        number
        for number, (start, high, end, low) in enumerate(sides)
        if end <= left or start >= right or high <= bottom or low >= top
        or (high - low < TINY and end - start < TINY * 40)
    }  # fmt: skip


def _doubtful(words: Mapping[int, list[int]], sides: Sequence[Sides], shape: Shape) -> tuple[set[int], set[int]]:
    """Text objects that are not painted at all, and those of which only a drawing tells whether they are seen."""
    invisible, doubtful = set(), set()
    mode = quick().render_mode
    for one, numbers in words.items():
        if not one:
            continue
        if mode(one) in _INVISIBLE:
            invisible.add(one)
            continue
        painted = _color(one)
        if painted is None:
            continue
        left, high, right, low = sides[numbers[0]]
        under = shape.at((left + right) / 2, (high + low) / 2)
        order = shape.orders.get(one, -1)
        if painted[3] < 64 or (under and under[-1].order > order >= 0) or _melts(painted[:3], under, order):
            doubtful.add(one)
    return invisible, doubtful


def _melts(color: tuple[int, int, int], under: Sequence[Cover], order: int) -> bool:
    """Whether text may have the colour of what it stands on."""
    ground: tuple[int, int, int] | None = _WHITE
    for cover in under:
        if order < 0 or cover.order < order:
            ground = cover.color
    if ground is None:
        return min(color) > 255 - NEAR  # over a picture: dark letters are seen as a rule
    return all(abs(one - other) < NEAR for one, other in zip(color, ground, strict=True))


def _around(sides: Sequence[Sides]) -> Sides:
    return (
        min(side[0] for side in sides), max(side[1] for side in sides),
        max(side[2] for side in sides), min(side[3] for side in sides),
    )  # fmt: skip


# -- drawings ----------------------------------------------------------------------------------------------------------


def _indifferent(page: Any, places: Mapping[int, Sides], frame: Sides) -> set[int]:
    """Objects without which the page looks the same where they stand."""
    width, height = frame[2] - frame[0], frame[1] - frame[3]
    scale = min(1.5, (SHADES / max(1.0, width * height)) ** 0.5)
    with _upright(page):
        whole = _Drawing(page, scale)
        with _without(places):
            bare = _Drawing(page, scale)
    return {
        one
        for one, (left, top, right, bottom) in places.items()
        if not whole.differs(bare, left - frame[0], frame[1] - top, right - frame[0], frame[1] - bottom)
    }


class _Drawing:
    """A page in shades of grey."""

    def __init__(self, page: Any, scale: float) -> None:
        bitmap = page.render(scale=scale, grayscale=True, may_draw_forms=False, optimize_mode=None)
        self._scale, self._stride, self._height, self._width = scale, bitmap.stride, bitmap.height, bitmap.width
        self._shades = bytes(bitmap.buffer)
        bitmap.close()

    def differs(self, other: _Drawing, left: float, top: float, right: float, bottom: float) -> bool:
        """Whether anything looks different within a box, in points from the top left."""
        first, last = max(0, int(left * self._scale)), min(self._width, int(right * self._scale) + 1)
        for row in range(max(0, int(top * self._scale)), min(self._height, int(bottom * self._scale) + 1)):
            start, end = row * self._stride + first, row * self._stride + last
            mine, yours = self._shades[start:end], other._shades[start:end]
            if mine != yours and max(abs(a - b) for a, b in zip(mine, yours, strict=True)) > ALIKE:
                return True
        return False


@contextmanager
def _upright(page: Any) -> Iterator[None]:
    """The page as it is before it is turned, so that places of text are places of the drawing."""
    rotation = page.get_rotation()
    if rotation:
        page.set_rotation(0)
    try:
        yield
    finally:
        if rotation:
            page.set_rotation(rotation)


@contextmanager
def _without(objects: Mapping[int, Any]) -> Iterator[None]:
    """The page without some of its objects."""
    import pypdfium2.raw as pdfium

    pointers = [ctypes.cast(one, pdfium.FPDF_PAGEOBJECT) for one in objects]
    for pointer in pointers:
        pdfium.FPDFPageObj_SetIsActive(pointer, 0)
    try:
        yield
    finally:
        for pointer in pointers:
            pdfium.FPDFPageObj_SetIsActive(pointer, 1)
