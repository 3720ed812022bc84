"""pdfium, which reads PDF files: opened under its lock, and its functions that are called for every word.

ctypes takes longer to convert arguments than most of pdfium's functions take to answer. So those that are called once
for each word are bound a second time: addresses are passed as numbers, and the interpreter's lock is kept.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from extractor.documents import passwords
from extractor.errors import EncryptedDocument, UnreadableDocument

PAGES = 20_000
"""Pages of one file at the most; a file that has more is made to stop programs, not to be read."""

LOCK = threading.Lock()
"""pdfium is not safe to call from two threads at once; it is held for a page at a time."""

_NEEDS_PASSWORD, _UNKNOWN_ENCRYPTION = 4, 5


@dataclass(frozen=True, slots=True)
class Quick:
    """Functions of pdfium by address; a text page is the number that :func:`address` gives.

    :ivar letter_box: ``(textpage, letter, rectangle to fill)``: as wide as its advance, as tall as its font.
    :ivar object_of: ``(textpage, letter)`` ▸ the object that draws it; ``None`` for what pdfium put in.
    :ivar unicode: ``(textpage, letter)`` ▸ its code; 0 where the font does not say.
    :ivar matrix: ``(textpage, letter, six floats to fill)``.
    :ivar origin: ``(textpage, letter, double to fill, double to fill)``: where on its line it begins.
    :ivar font_size: ``(textpage, letter)`` ▸ before the matrix scales it.
    :ivar count: ``(page)`` ▸ how many objects are drawn on it, those within a form not counted.
    :ivar nth: ``(page, number)`` ▸ one of them.
    :ivar kind: ``(object)`` ▸ one of pdfium's ``FPDF_PAGEOBJ_`` numbers.
    :ivar bounds: ``(object, four addresses of a float)``: left, bottom, right, top.
    :ivar color: ``(object, four addresses of an unsigned int)``: red, green, blue and opacity, up to 255.
    :ivar draw_mode: ``(path, address of an int, address of an int)``: how it is filled, and whether it is stroked.
    :ivar render_mode: ``(text object)`` ▸ 3 for letters that are not painted, 7 for those that only clip.
    """

    letter_box: Callable[[int, int, int], int]
    object_of: Callable[[int, int], int | None]
    unicode: Callable[[int, int], int]
    matrix: Callable[[int, int, int], int]
    origin: Callable[[int, int, int, int], int]
    font_size: Callable[[int, int], float]
    count: Callable[[int], int]
    nth: Callable[[int, int], int | None]
    kind: Callable[[int], int]
    bounds: Callable[[int, int, int, int, int], int]
    color: Callable[[int, int, int, int, int], int]
    draw_mode: Callable[[int, int, int], int]
    render_mode: Callable[[int], int]


@cache
def quick() -> Quick:
    """The functions, bound once."""
    import pypdfium2.raw as pdfium

    number, pointer = ctypes.c_int, ctypes.c_void_p
    return Quick(
        ctypes.PYFUNCTYPE(number, pointer, number, pointer)(address(pdfium.FPDFText_GetLooseCharBox)),
        ctypes.PYFUNCTYPE(pointer, pointer, number)(address(pdfium.FPDFText_GetTextObject)),
        ctypes.PYFUNCTYPE(ctypes.c_uint, pointer, number)(address(pdfium.FPDFText_GetUnicode)),
        ctypes.PYFUNCTYPE(number, pointer, number, pointer)(address(pdfium.FPDFText_GetMatrix)),
        ctypes.PYFUNCTYPE(number, pointer, number, pointer, pointer)(address(pdfium.FPDFText_GetCharOrigin)),
        ctypes.PYFUNCTYPE(ctypes.c_double, pointer, number)(address(pdfium.FPDFText_GetFontSize)),
        ctypes.PYFUNCTYPE(number, pointer)(address(pdfium.FPDFPage_CountObjects)),
        ctypes.PYFUNCTYPE(pointer, pointer, number)(address(pdfium.FPDFPage_GetObject)),
        ctypes.PYFUNCTYPE(number, pointer)(address(pdfium.FPDFPageObj_GetType)),
        ctypes.PYFUNCTYPE(number, *[pointer] * 5)(address(pdfium.FPDFPageObj_GetBounds)),
        ctypes.PYFUNCTYPE(number, *[pointer] * 5)(address(pdfium.FPDFPageObj_GetFillColor)),
        ctypes.PYFUNCTYPE(number, pointer, pointer, pointer)(address(pdfium.FPDFPath_GetDrawMode)),
        ctypes.PYFUNCTYPE(number, pointer)(address(pdfium.FPDFTextObj_GetTextRenderMode)),
    )


def address(of: Any) -> int:
    """Where a function or an object of pdfium stands in memory."""
    return ctypes.cast(of, ctypes.c_void_p).value or 0


def opened(data: bytes, source: str) -> tuple[Any, int]:
    """A PDF, and how many pages it has; whoever opens it closes it, under the lock.

    :raises EncryptedDocument: when it asks for a password.
    :raises UnreadableDocument: when pdfium cannot open it, or it claims to have more pages than are read.
    """
    with LOCK:
        pdf = _opened(data, source)
        if pdf.get_formtype():
            pdf.init_forms()
        count = len(pdf)
        if 0 < count <= PAGES:
            return pdf, count
        pdf.close()
    raise broken(source, f"it claims to have {count} pages")


def _opened(data: bytes, source: str) -> Any:
    import pypdfium2

    for password in (None, *passwords.known()):
        try:
            return pypdfium2.PdfDocument(data, password=password)
        except pypdfium2.PdfiumError as error:
            if error.err_code == _UNKNOWN_ENCRYPTION:
                raise EncryptedDocument(
                    f"{source}: the PDF is encrypted in a way that is not known", source=source,
                    hint="save a copy without encryption",
                ) from None  # fmt: skip
            if error.err_code != _NEEDS_PASSWORD:
                raise broken(source, "it cannot be opened") from None
    why = "none of the known passwords opens the PDF" if passwords.known() else "the PDF asks for a password"
    raise EncryptedDocument(f"{source}: {why}", source=source, hint=passwords.HINT)


def broken(source: str, why: str) -> UnreadableDocument:
    """The error for a PDF that is not as it should be."""
    return UnreadableDocument(f"{source}: the PDF is broken: {why}", source=source)
