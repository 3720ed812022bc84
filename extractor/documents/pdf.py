"""PDF files by their text layer, page by page, through pdfium.

pdfium gives the text in the order in which the file draws it: a table that is drawn column by column comes out column
by column. So every word is taken with its place, and :mod:`extractor.documents.layout` puts them where they stand on
the page. Text that is turned is read upright, whether the page or its content is what is turned.
"""

from __future__ import annotations

import hashlib
import re
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from extractor.documents import layout, pdf_forms, pdf_words
from extractor.documents.document import Document, Page, Words
from extractor.documents.pdf_hidden import unseen
from extractor.documents.pdf_letters import ASIDE
from extractor.documents.pdf_words import Found, TooManyLetters
from extractor.documents.pdfium import LOCK, broken, opened
from extractor.documents.text import clean
from extractor.errors import DocumentError, EmptyDocument

_WORD = re.compile(r"[^ \n]+")
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
        raise broken(source, "it is cut off")
    pdf, count = opened(data, source)
    try:
        pages = tuple(_page(pdf, index, is_cut) for index in range(count))
    finally:
        with LOCK:
            pdf.close()
    if not any(page.text for page in pages):
        raise _empty(pages, source)
    return Document(hashlib.sha256(data).hexdigest(), source, "application/pdf", pages, len(data))


def _empty(pages: tuple[Page, ...], source: str) -> DocumentError:
    """What to say of a file without any text."""
    failed = [page.reason for page in pages if page.status == "failed"]
    unread = [reason for reason in failed if reason not in (_NO_TEXT, _NO_MEANING)]
    if unread:
        return broken(source, f"no page can be read ({unread[0]})")
    if _NO_MEANING in failed:
        why = f"no text layer that can be read on {len(pages)} pages; their fonts do not say which letters they draw"
        return EmptyDocument(f"{source}: {why}", source=source, hint="the pages need OCR")
    number = f"{len(pages)} page{'s' if len(pages) > 1 else ''}"
    return EmptyDocument(f"{source}: no text layer on {number}", source=source, hint="scans need OCR")


# -- one page ----------------------------------------------------------------------------------------------------------


class _PageError(Exception):
    """Why a page cannot be read."""


@dataclass(frozen=True, slots=True)
class _Content:
    """What pdfium knows of a page.

    :ivar found: the words that are seen.
    :ivar hidden: text that is not.
    :ivar has_pictures: whether something is drawn where no words are.
    """

    found: Found
    frame: _Frame
    hidden: str
    has_pictures: bool


def _page(pdf: Any, index: int, is_cut: bool) -> Page:
    try:
        with LOCK:
            content = _content(pdf, index)
    except _PageError as error:
        return Page(index + 1, "", status="failed", reason=str(error))
    found, frame = content.found, content.frame
    groups = sorted(found.words.items(), key=lambda item: -sum(len(word.text) for word in item[1]))
    quarter = max(groups[0][0], 0)
    text, order = _read(groups)
    reason = ""
    if not text:
        reason = _NO_MEANING if found.nameless else _NO_TEXT if content.has_pictures else _CUT if is_cut else ""
    boxes = frame.boxes(found.sides, quarter)
    return Page(
        index + 1, text, *frame.size(quarter), status="failed" if reason else "read", reason=reason,
        words=Words(array("I", _spans(text)), array("f", chain.from_iterable(boxes[place] for place in order))),
        hidden=clean(content.hidden), rotation=(90.0 * quarter - frame.rotation) % 360,
    )  # fmt: skip


def _read(groups: list[tuple[int, list[layout.Word]]]) -> tuple[str, list[int]]:
    """The text of a page, and the numbers of its words in the order of the text."""
    texts: list[str] = []
    order: list[int] = []
    for quarter, words in groups:
        if words:
            rows = [words] if quarter == ASIDE else layout.rows(words)
            lines = [" ".join(word.text for word in words)] if quarter == ASIDE else list(map(layout.line, rows))
            texts.append("\n".join(lines))
            for row in rows:
                for word in row:
                    order += range(word.first, word.first + word.words)
    return "\n\n".join(texts), order


def _spans(text: str) -> Iterator[int]:
    """Start and end of each word of a text."""
    return chain.from_iterable(match.span() for match in _WORD.finditer(text))


@dataclass(frozen=True, slots=True)
class _Frame:
    """The part of a page that is shown, before it is turned.

    :ivar rotation: by which a viewer turns it, in degrees, clockwise.
    """

    left: float
    bottom: float
    width: float
    height: float
    rotation: int

    @classmethod
    def of(cls, page: Any) -> _Frame:
        """The frame of an open page."""
        import pypdfium2.raw as pdfium

        shown = pdfium.FS_RECTF()
        pdfium.FPDF_GetPageBoundingBox(page.raw, shown)
        width, height = page.get_size()
        rotation = page.get_rotation()
        if rotation in (90, 270):  # the text is placed on the page before it is turned
            width, height = height, width
        return cls(shown.left, shown.bottom, width, height, rotation)

    @property
    def sides(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom."""
        return self.left, self.bottom + self.height, self.left + self.width, self.bottom

    def size(self, quarter: int) -> tuple[float, float]:
        """Width and height when text that runs in a direction is upright."""
        return (self.height, self.width) if quarter in (1, 3) else (self.width, self.height)

    def boxes(self, sides: Sequence[tuple[float, ...]], quarter: int) -> list[tuple[float, ...]]:
        """Rectangles of the page as boxes of the upright page: left, top, right, bottom from its top left."""
        x, y = self.left, self.bottom
        right, top = x + self.width, y + self.height
        if quarter == 1:
            return [(low - y, left - x, high - y, end - x) for left, high, end, low in sides]
        if quarter == 2:
            return [(right - end, low - y, right - left, high - y) for left, high, end, low in sides]
        if quarter == 3:
            return [(top - high, right - end, top - low, right - left) for left, high, end, low in sides]
        return [(left - x, top - high, end - x, top - low) for left, high, end, low in sides]


def _content(pdf: Any, index: int) -> _Content:
    import pypdfium2

    try:
        page = pdf[index]
    except pypdfium2.PdfiumError:
        raise _PageError("the page is broken or missing") from None
    try:
        above = pdf_forms.over(page, pdf.formenv)
        if above.is_drawn and pdf_forms.drawn_in(page):
            page.close()
            page = pdf[index]
        return _read_off(page, above)
    except TooManyLetters:
        raise _PageError(f"it holds more than {pdf_words.LETTERS:,} letters") from None
    except pypdfium2.PdfiumError:
        raise _PageError("its text cannot be read") from None
    finally:
        page.close()


def _read_off(page: Any, above: pdf_forms.Over) -> _Content:
    """The words of an open page, and of what stands over it."""
    frame = _Frame.of(page)
    textpage = page.get_textpage()
    try:
        found = Found(textpage.raw)
    finally:
        textpage.close()
    gone = unseen(page, found.objects, found.sides, frame.sides)
    hidden = [found.hide(gone), above.comments]
    has_pictures = len(gone) == len(found.sides) and _has_pictures(page.raw)
    for sign in above.signs:
        found.put(sign.text, sign.sides)
    return _Content(found, frame, "\n".join(filter(None, hidden)), has_pictures)


def _has_pictures(page: Any) -> bool:
    import pypdfium2.raw as pdfium

    count = pdfium.FPDFPage_CountObjects(page)
    types = Counter(pdfium.FPDFPageObj_GetType(pdfium.FPDFPage_GetObject(page, at)) for at in range(min(count, 2000)))
    drawn_letters = types[pdfium.FPDF_PAGEOBJ_PATH] > 100
    return bool(types[pdfium.FPDF_PAGEOBJ_IMAGE] or types[pdfium.FPDF_PAGEOBJ_FORM] or drawn_letters)
