"""PDF files by their text layer, page by page, through pdfium.

pdfium gives the text in the order in which the file draws it, in stretches that each stay on one line. A table that is
drawn column by column comes out column by column. So the stretches are put where they stand on the page: those that
share a line are joined from left to right, with a gap where there is a gap.
"""

from __future__ import annotations

import ctypes
import hashlib
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import pi
from typing import Any

from extractor.documents.document import Document, Page
from extractor.documents.text import clean
from extractor.errors import EmptyDocument, EncryptedDocument, UnreadableDocument

_LOCK = threading.Lock()
"""pdfium is not safe to call from two threads at once."""

PROSE = 30
"""Characters from which on a stretch is taken for a line of running text rather than a cell."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some text that stands on one line: its box on the upright page, in points, origin at the bottom left."""

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
    """The page's text, cut where pdfium begins a new line, with the place of each piece."""
    import pypdfium2.raw as pdfium

    text = textpage.get_text_range()
    box = [ctypes.c_double() for _ in range(4)]
    start = 0
    for piece in text.splitlines(keepends=True):
        inner = piece.strip()
        if inner:
            first = start + piece.index(inner[0])
            ends = []
            for place in (first, start + len(piece.rstrip()) - 1):
                char = pdfium.FPDFText_GetCharIndexFromTextIndex(textpage, place)
                pdfium.FPDFText_GetCharBox(textpage, char, *box)
                ends.append([value.value for value in box])
            angle = pdfium.FPDFText_GetCharAngle(textpage, pdfium.FPDFText_GetCharIndexFromTextIndex(textpage, first))
            quarter = round(angle / (pi / 2)) % 4 if angle >= 0 else 0
            (left, right, bottom, top), (left2, right2, bottom2, top2) = ends
            words = inner.replace("\x02", "-").replace("\ufffe", "-")
            yield Stretch(words, min(left, left2), max(right, right2), min(bottom, bottom2), max(top, top2), quarter)
        start += len(piece)


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


def _lines(stretches: list[Stretch]) -> list[str]:
    rows = _rows(stretches)
    if _is_in_columns(rows):
        middle = (min(one.left for one in stretches) + max(one.right for one in stretches)) / 2
        halves = [[one for one in stretches if (one.left < middle) is left] for left in (True, False)]
        return [_line(row) for half in halves for row in _rows(half)]
    lines: list[str] = []
    floor = 0.0
    for row in rows:
        height = max(one.top - one.bottom for one in row)
        if lines and floor - max(one.top for one in row) > 2.6 * height:
            lines.append("")
        lines.append(_line(row))
        floor = min(one.bottom for one in row)
    return lines


def _rows(stretches: list[Stretch]) -> list[list[Stretch]]:
    """Stretches that share a line, from the top of the page; each row from left to right."""
    rows: list[list[Stretch]] = []
    floor = 0.0
    for one in sorted(stretches, key=lambda stretch: -(stretch.top + stretch.bottom)):
        middle = (one.top + one.bottom) / 2
        if rows and middle > floor:
            rows[-1].append(one)
        else:
            rows.append([one])
            floor = one.bottom
    return [sorted(row, key=lambda stretch: stretch.left) for row in rows]


def _line(row: list[Stretch]) -> str:
    """The stretches of a row, with two or more spaces where they stand apart."""
    text, end = "", row[0].left
    for one in row:
        size = max(one.top - one.bottom, 4.0)
        gap = (one.left - end) / size
        text += (" " if gap < 1.0 else " " * min(2 + int(gap / 2), 12)) if text else ""
        text += one.text
        end = max(end, one.right)
    return text


def _is_in_columns(rows: list[list[Stretch]]) -> bool:
    """Whether a page is set in two columns of running text, which are read one after the other."""
    pairs = sum(1 for row in rows if len(row) == 2 and all(len(one.text) >= PROSE for one in row))
    return pairs >= 8 and pairs >= 0.5 * len(rows)
