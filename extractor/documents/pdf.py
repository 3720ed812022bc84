"""PDF files by their text layer, page by page, through pdfium.

pdfium gives the text in the order in which the file draws it: a table that is drawn column by column comes out column
by column. So the words are put where they stand on the page: those that share a line are joined from left to right,
with a gap where there is a gap.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import pi
from typing import Any

from extractor.documents.document import Document, Page
from extractor.documents.text import clean
from extractor.errors import EmptyDocument, EncryptedDocument, UnreadableDocument

_LOCK = threading.Lock()
"""pdfium is not safe to call from two threads at once."""

PROSE = 30
"""Characters from which on a piece of a line is taken for running text rather than a cell."""

_WORD = re.compile(r"\S+")
_OUTER = (min, max, min, max)

Box = tuple[float, float, float, float]
"""Left, right, bottom, top."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A word, or a piece of a line: its box on the upright page, in points, origin at the bottom left."""

    text: str
    left: float
    right: float
    bottom: float
    top: float
    quarter: int
    """How the text is turned on the page, in quarters of a full turn."""


def load(data: bytes, source: str) -> Document:
    """Read a PDF's text layer.

    :raises EncryptedDocument: when it asks for a password.
    :raises UnreadableDocument: when pdfium cannot open it.
    :raises EmptyDocument: when no page has a text layer.
    """
    with _LOCK:
        pages = _pages(data, source)
    if not any(page.text.strip() for page in pages):
        failed = [page.reason for page in pages if page.status == "failed"]
        why = f"no page can be read: {failed[0]}" if failed else f"no text layer on {len(pages)} pages"
        raise EmptyDocument(f"{source}: {why}", source=source, hint="a scan has to be read by OCR first")
    return Document(hashlib.sha256(data).hexdigest(), source, "application/pdf", pages, len(data))


def _pages(data: bytes, source: str) -> tuple[Page, ...]:
    import pypdfium2

    try:
        pdf = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise EncryptedDocument(
                f"{source}: the PDF asks for a password", source=source, hint="save a copy without one"
            ) from None
        raise UnreadableDocument(f"{source}: the PDF is broken and cannot be opened", source=source) from None
    try:
        return tuple(_page(pdf, index) for index in range(len(pdf)))
    finally:
        pdf.close()


def _page(pdf: Any, index: int) -> Page:
    import pypdfium2

    try:
        page = pdf[index]
    except pypdfium2.PdfiumError:
        return Page(index + 1, "", status="failed", reason="the page is broken")
    try:
        textpage = page.get_textpage()
        try:
            width, height = page.get_size()
            return Page(index + 1, _text(textpage), width, height, how="text layer")
        finally:
            textpage.close()
    except pypdfium2.PdfiumError:
        return Page(index + 1, "", status="failed", reason="its text cannot be read")
    finally:
        page.close()


def _text(textpage: Any) -> str:
    stretches = list(_stretches(textpage))
    if not stretches:
        return ""
    upright = Counter(one.quarter for one in stretches).most_common(1)[0][0]
    main = [_turned(one) for one in stretches if one.quarter == upright]
    aside = [one.text for one in stretches if one.quarter != upright]
    return clean("\n".join([*_lines(main), *aside]))


def _stretches(textpage: Any) -> Iterator[Stretch]:
    """The words of a page, in the order in which the file draws them, each with its place."""
    import pypdfium2.raw as pdfium

    text = textpage.get_text_range()
    sides = [ctypes.c_double() for _ in range(4)]

    def char(place: int) -> int:
        index: int = pdfium.FPDFText_GetCharIndexFromTextIndex(textpage, place)
        return index

    def box(place: int) -> Box:
        pdfium.FPDFText_GetCharBox(textpage, char(place), *sides)
        left, right, bottom, top = (side.value for side in sides)
        return left, right, bottom, top

    for found in _WORD.finditer(text):
        angle = pdfium.FPDFText_GetCharAngle(textpage, char(found.start()))
        quarter = round(angle / (pi / 2)) % 4 if angle >= 0 else 0
        for begin, end in _runs(found.start(), found.end(), box, quarter):
            word = text[begin:end].replace("\x02", "-").replace("\ufffe", "-")
            first, last = box(begin), box(end - 1)
            left, right, bottom, top = (
                pick(pair) for pick, pair in zip(_OUTER, zip(first, last, strict=True), strict=True)
            )
            yield Stretch(word, left, right, bottom, top, quarter)


def _runs(begin: int, end: int, box: Callable[[int], Box], quarter: int) -> Iterator[tuple[int, int]]:
    """A word, cut where it leaves its line.

    pdfium runs two cells that stand one below the other into one word when nothing else stands between them: a
    quantity of 12 above one of 6 comes out as 126.
    """
    if quarter not in (0, 2) or _share_a_line(box(begin), box(end - 1)):
        yield begin, end
        return
    start = begin
    for place in range(begin + 1, end):
        if not _share_a_line(box(place - 1), box(place)):
            yield start, place
            start = place
    yield start, end


def _share_a_line(one: Box, other: Box) -> bool:
    """Whether two characters overlap from top to bottom; a mark without height is nowhere and fits everywhere."""
    return min(one[3], other[3]) > max(one[2], other[2]) - 0.6 * max(one[3] - one[2], other[3] - other[2], 1.0)


def _turned(one: Stretch) -> Stretch:
    """The stretch as it stands when its text is upright."""
    left, right, bottom, top = one.left, one.right, one.bottom, one.top
    if one.quarter == 1:
        left, right, bottom, top = -top, -bottom, left, right
    elif one.quarter == 2:
        left, right, bottom, top = -right, -left, -top, -bottom
    elif one.quarter == 3:
        left, right, bottom, top = bottom, top, -right, -left
    return Stretch(one.text, left, right, bottom, top, one.quarter)


def _lines(words: list[Stretch]) -> list[str]:
    rows = [_pieces(row) for row in _rows(words)]
    if _is_in_columns(rows):
        middle = (min(one.left for one in words) + max(one.right for one in words)) / 2
        halves = [[one for one in words if (one.left < middle) is left] for left in (True, False)]
        return [_line(_pieces(row)) for half in halves for row in _rows(half)]
    lines: list[str] = []
    floor = 0.0
    for row in rows:
        height = max(one.top - one.bottom for one in row)
        if lines and floor - max(one.top for one in row) > 2.6 * height:
            lines.append("")
        lines.append(_line(row))
        floor = min(one.bottom for one in row)
    return lines


def _rows(words: list[Stretch]) -> list[list[Stretch]]:
    """Words that share a line, from the top of the page; each row from left to right.

    A word belongs to the line above it when its middle is above that line's lowest bottom.
    """
    rows: list[list[Stretch]] = []
    floor = 0.0
    for one in sorted(words, key=lambda word: -(word.top + word.bottom)):
        middle = (one.top + one.bottom) / 2
        if rows and middle > floor:
            rows[-1].append(one)
            floor = max(floor, min(one.bottom, middle - 1))
        else:
            rows.append([one])
            floor = one.bottom
    return [sorted(row, key=lambda word: word.left) for row in rows]


def _pieces(row: list[Stretch]) -> list[Stretch]:
    """The words of a row, joined where nothing but a space is between them."""
    pieces: list[Stretch] = []
    for one in row:
        last = pieces[-1] if pieces else None
        if last is None or one.left - last.right > 1.2 * max(one.top - one.bottom, last.top - last.bottom, 4.0):
            pieces.append(one)
            continue
        apart = "" if one.left - last.right < 0.05 * (last.top - last.bottom) else " "
        pieces[-1] = Stretch(
            f"{last.text}{apart}{one.text}", last.left, max(last.right, one.right), min(last.bottom, one.bottom),
            max(last.top, one.top), one.quarter,
        )  # fmt: skip
    return pieces


def _line(pieces: list[Stretch]) -> str:
    """The pieces of a row, further apart where they stand further apart."""
    text, end = pieces[0].text, pieces[0].right
    for one in pieces[1:]:
        gap = (one.left - end) / max(one.top - one.bottom, 4.0)
        text += " " * min(2 + int(gap / 3), 12) + one.text
        end = max(end, one.right)
    return text


def _is_in_columns(rows: list[list[Stretch]]) -> bool:
    """Whether a page is set in two columns of running text, which are read one after the other."""
    pairs = sum(1 for row in rows if len(row) == 2 and all(len(one.text) >= PROSE for one in row))
    return pairs >= 8 and pairs >= 0.5 * len(rows)
