"""PDF files by their text layer, page by page, through pdfium.

pdfium gives the text in the order in which the file draws it: a table that is drawn column by column comes out column
by column. So every word is taken with its place, and :mod:`extractor.documents.layout` puts them where they stand on
the page. Text that is turned is read upright, whether the page or its content is what is turned.
"""

from __future__ import annotations

import ctypes
import hashlib
import struct
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import atan2, hypot, inf, isfinite, pi
from typing import Any

from extractor.documents import layout
from extractor.documents.document import Document, Page
from extractor.documents.layout import Word
from extractor.documents.text import clean
from extractor.errors import DocumentError, EmptyDocument, EncryptedDocument, UnreadableDocument

LETTERS = 500_000
"""Letters of one page at the most; a page that has more is made to stop programs, not to be read."""
PAGES = 20_000
"""Pages of one file at the most, for the same reason."""

LOCK = threading.Lock()
"""pdfium is not safe to call from two threads at once; it is held for a page at a time."""

_NAMED = {0x00: "\ufffd", 0x02: "-", 0xAD: "-", 0xFFFE: "-"}
"""A letter that its font does not name, which must leave a trace within a word; a hyphen at the end of a line as pdfium
gives it, and a soft one that is drawn."""
_SPACES = frozenset((*range(0x2000, 0x200C), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0xFEFF))
_NEEDS_PASSWORD, _UNKNOWN_ENCRYPTION = 4, 5
_ASIDE = -1
"""The direction of text that stands aslant, such as a watermark."""
_NO_TEXT = "it holds no text layer, only pictures; a scan has to be read by OCR first"
_NO_MEANING = "its fonts do not say which letters they draw; it has to be read by OCR first"
_CUT = "it is blank, and the file is cut off"


def load(data: bytes, source: str) -> Document:
    """Read a PDF's text layer.

    A page that cannot be read is there, as failed, with the reason; so is one that holds nothing but pictures among
    pages with text.

    :raises EncryptedDocument: when it asks for a password.
    :raises UnreadableDocument: when pdfium cannot open it, or the file ends in the midst of a page's content.
    :raises EmptyDocument: when no page has a text layer.
    """
    is_cut = b"%%EOF" not in data[-65536:].rstrip(b"\0\t\r\n ")[-2048:]
    if is_cut and data.rfind(b"stream") > data.rfind(b"endstream") + 3:
        raise _broken(source, "it is cut off")
    pdf, count = opened(data, source)
    try:
        pages = tuple(_page(pdf, index, is_cut) for index in range(count))
    finally:
        with LOCK:
            pdf.close()
    if not any(page.text for page in pages):
        raise _empty(pages, source)
    return Document(hashlib.sha256(data).hexdigest(), source, "application/pdf", pages, len(data))


def opened(data: bytes, source: str) -> tuple[Any, int]:
    with LOCK:
        import pypdfium2

        try:
            pdf = pypdfium2.PdfDocument(data)
        except pypdfium2.PdfiumError as error:
            if error.err_code == _NEEDS_PASSWORD:
                raise EncryptedDocument(
                    f"{source}: the PDF asks for a password", source=source, hint="save a copy without one"
                ) from None
            if error.err_code == _UNKNOWN_ENCRYPTION:
                raise EncryptedDocument(
                    f"{source}: the PDF is encrypted in a way that is not known", source=source,
                    hint="save a copy without encryption",
                ) from None  # fmt: skip
            raise _broken(source, "it cannot be opened") from None
        count = len(pdf)
        if 0 < count <= PAGES:
            return pdf, count
        pdf.close()
    raise _broken(source, f"it claims to have {count} pages")


def _broken(source: str, why: str) -> UnreadableDocument:
    return UnreadableDocument(f"{source}: the PDF is broken: {why}", source=source)


def _empty(pages: tuple[Page, ...], source: str) -> DocumentError:
    """What to say of a file without any text."""
    failed = [page.reason for page in pages if page.status == "failed"]
    unread = [reason for reason in failed if reason not in (_NO_TEXT, _NO_MEANING)]
    if unread:
        return _broken(source, f"no page can be read ({unread[0]})")
    if _NO_MEANING in failed:
        why = f"no text layer that can be read on {len(pages)} pages; their fonts do not say which letters they draw"
        return EmptyDocument(f"{source}: {why}", source=source, hint="the pages need OCR")
    number = f"{len(pages)} page{'s' if len(pages) > 1 else ''}"
    return EmptyDocument(f"{source}: no text layer on {number}", source=source, hint="scans need OCR")


# -- one page ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Found:
    """What pdfium knows of a page: words by the direction in which they run, in quarters of a turn."""

    words: dict[int, list[Word]]
    nameless: int
    """Letters that are drawn, but of which the font does not say what they are."""
    has_pictures: bool
    width: float
    height: float


def _page(pdf: Any, index: int, is_cut: bool) -> Page:
    try:
        with LOCK:
            found = _found(pdf, index)
    except _PageError as error:
        return Page(index + 1, "", status="failed", reason=str(error))
    groups = sorted(found.words.items(), key=lambda item: -sum(len(word.text) for word in item[1]))
    if groups and groups[0][0] in (1, 3):
        width, height = found.height, found.width
    else:
        width, height = found.width, found.height
    text = "\n\n".join(_text(quarter, words) for quarter, words in groups).strip("\n")
    reason = ""
    if not text:
        reason = _NO_MEANING if found.nameless else _NO_TEXT if found.has_pictures else _CUT if is_cut else ""
    return Page(index + 1, text, width, height, status="failed" if reason else "read", reason=reason)


def _text(quarter: int, words: list[Word]) -> str:
    written = [" ".join(word.text for word in words)] if quarter == _ASIDE else layout.lines(words)
    return clean("\n".join(written))


class _PageError(Exception):
    """Why a page cannot be read."""


def _found(pdf: Any, index: int) -> _Found:
    import pypdfium2

    try:
        page = pdf[index]
    except pypdfium2.PdfiumError:
        raise _PageError("the page is broken or missing") from None
    try:
        width, height = page.get_size()
        if page.get_rotation() in (90, 270):  # the text is placed on the page before it is turned
            width, height = height, width
        textpage = page.get_textpage()
        try:
            words, nameless = _words(textpage.raw)
        finally:
            textpage.close()
        return _Found(words, nameless, not words and _has_pictures(page.raw), width, height)
    except pypdfium2.PdfiumError:
        raise _PageError("its text cannot be read") from None
    finally:
        page.close()


def _has_pictures(page: Any) -> bool:
    import pypdfium2.raw as pdfium

    count = pdfium.FPDFPage_CountObjects(page)
    types = Counter(pdfium.FPDFPageObj_GetType(pdfium.FPDFPage_GetObject(page, at)) for at in range(min(count, 2000)))
    drawn_letters = types[pdfium.FPDF_PAGEOBJ_PATH] > 100
    return bool(types[pdfium.FPDF_PAGEOBJ_IMAGE] or types[pdfium.FPDF_PAGEOBJ_FORM] or drawn_letters)


def _words(raw: Any) -> tuple[dict[int, list[Word]], int]:
    """The words of a page by direction, and how many letters have no name."""
    import pypdfium2.raw as pdfium

    count = pdfium.FPDFText_CountChars(raw)
    if count > LETTERS:
        raise _PageError(f"it holds more than {LETTERS:,} letters")
    name, box = pdfium.FPDFText_GetUnicode, pdfium.FPDFText_GetLooseCharBox
    codes = [name(raw, at) for at in range(count)]
    boxes = (pdfium.FS_RECTF * count)()
    for at in range(count):
        box(raw, at, boxes[at])
    sides = struct.unpack(f"{4 * count}f", bytes(boxes))  # at once: far quicker than a field at a time
    upright = _Sides(sides[0::4], sides[2::4], sides[3::4], sides[1::4])
    sideways = _Sides(upright.low, upright.high, upright.start, upright.end)
    found: dict[int, list[Word]] = {}
    at = 0
    while at < count:
        if not _is_letter(codes[at]):
            at += 1
            continue
        first, pen = at, _Pen.at(raw, at)
        quarter = pen.quarter
        reach = inf if quarter == _ASIDE else 1.0
        at, start, end, largest = _end_of_word(codes, sideways if quarter in (1, 3) else upright, at, reach)
        text = _spelled(codes[first:at])
        if text and isfinite(start) and isfinite(end):
            if largest != first:
                pen = _Pen.at(raw, largest)
            left, right = (-end, -start) if quarter in (2, 3) else (start, end)
            found.setdefault(quarter, []).append(Word(text, left, right, pen.base, pen.em))
    return found, codes.count(0)


@dataclass(frozen=True, slots=True)
class _Sides:
    """The boxes of all letters: where each begins and ends along the line, and across it."""

    start: Sequence[float]
    end: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


def _end_of_word(codes: list[int], sides: _Sides, at: int, reach: float) -> tuple[int, float, float, int]:
    """Where the word that begins at a letter ends: the next letter, its sides, and the largest letter in it.

    A word ends before white space, and where the next letter stands somewhere else: pdfium runs two cells that stand
    one below the other into one word when nothing else is between them, 12 above 6 as 126.

    :param reach: how far off the next letter may be, in ems.
    """
    starts, ends, lows, highs = sides.start, sides.end, sides.low, sides.high
    start, end, largest = starts[at], ends[at], at
    size = highs[at] - lows[at]
    middle = lows[at] + highs[at]
    for place in range(at + 1, len(codes)):
        if codes[place] and not _is_letter(codes[place]):
            return place, start, end, largest
        left, right, low, high = starts[place], ends[place], lows[place], highs[place]
        if right > left:  # a mark without a width has no place of its own
            far = reach * max(size, 1.0)
            if left - end > far or start - right > far or abs(low + high - middle) > 1.2 * far:
                return place, start, end, largest
            start, end = min(start, left), max(end, right)
        if high - low > 1.1 * size:  # a small raised mark before a word is no measure of it
            largest, size, middle = place, high - low, low + high
    return len(codes), start, end, largest


def _is_letter(code: int) -> bool:
    return 32 < code < 127 or (code > 160 and code not in _SPACES) or code == 0x02


def _spelled(codes: list[int]) -> str:
    text = "".join(_NAMED.get(code) or chr(code) for code in codes)
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")  # pairs come as two letters


@dataclass(frozen=True, slots=True)
class _Pen:
    """How a letter is set: the size, the line that it stands on, and the direction in which it is read.

    :ivar base: height of the line over the edge of the page, when the page is turned so that the text is upright.
    """

    quarter: int
    base: float
    em: float

    @classmethod
    def at(cls, raw: Any, index: int) -> _Pen:
        """The pen of one letter."""
        import pypdfium2.raw as pdfium

        matrix, x, y = pdfium.FS_MATRIX(), ctypes.c_double(), ctypes.c_double()
        pdfium.FPDFText_GetMatrix(raw, index, matrix)
        pdfium.FPDFText_GetCharOrigin(raw, index, x, y)
        em = pdfium.FPDFText_GetFontSize(raw, index) * hypot(matrix.c, matrix.d)
        turn = atan2(matrix.b, matrix.a) / (pi / 2)
        quarter = round(turn) % 4 if abs(turn - round(turn)) < 0.17 else _ASIDE
        base = (y.value, -x.value, -y.value, x.value, y.value)[quarter]
        return cls(quarter, base if isfinite(base) else 0.0, em if 0.1 < em < 1e5 else 10.0)
