"""What stands on a PDF page over its content: filled-in fields, ticked boxes, stamps, and comments that nobody sees.

pdfium gives the text of the content alone. So fields and remarks that show on the page are made part of the content
first, as printing does it; a box that is ticked or not gets a sign, since its tick is a drawing. The change is to the
copy in memory.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

MOST = 5_000
"""Fields and remarks of one page that are looked at, at the most."""
TICKED, BLANK = "☒", "☐"


class Sign(NamedTuple):
    """A box to tick: left, top, right and bottom on the page before it is turned, y grows upwards."""

    text: str
    sides: tuple[float, float, float, float]


class Over(NamedTuple):
    """What stands over the content of a page.

    :ivar is_drawn: whether something of it is text on the page, so that the content has to be read together with it.
    :ivar signs: boxes to tick.
    :ivar comments: what is written in remarks that do not show on the page.
    """

    is_drawn: bool
    signs: tuple[Sign, ...]
    comments: str


NOTHING = Over(False, (), "")


def over(page: Any, form: Any) -> Over:
    """What stands over the content of a page.

    :param page: as pypdfium2 opened it.
    :param form: the handle of the document's form; ``None`` where it has none.
    """
    import pypdfium2.raw as pdfium

    count = min(pdfium.FPDFPage_GetAnnotCount(page.raw), MOST)
    if count <= 0:
        return NOTHING
    is_drawn, signs, comments = False, [], []
    for at in range(count):
        one = pdfium.FPDFPage_GetAnnot(page.raw, at)
        if not one:
            continue
        kind = pdfium.FPDFAnnot_GetSubtype(one)
        if kind == pdfium.FPDF_ANNOT_WIDGET:
            sign = _sign(one, form) if form else None
            if sign:
                signs.append(sign)
            is_drawn = True
        elif kind in (pdfium.FPDF_ANNOT_FREETEXT, pdfium.FPDF_ANNOT_STAMP):
            is_drawn = True
        elif kind != pdfium.FPDF_ANNOT_LINK and (said := _said(one)):
            comments.append(said)
        pdfium.FPDFPage_CloseAnnot(one)
    return Over(is_drawn, tuple(signs), "\n".join(comments))


def drawn_in(page: Any) -> bool:
    """Make what stands over a page part of its content; the page has to be opened anew.

    :returns: whether anything changed.
    """
    import pypdfium2.raw as pdfium

    return bool(pdfium.FPDFPage_Flatten(page.raw, pdfium.FLAT_NORMALDISPLAY) == pdfium.FLATTEN_SUCCESS)


def _sign(annotation: Any, form: Any) -> Sign | None:
    """The sign for a field that is a box to tick, if people see it."""
    import pypdfium2.raw as pdfium

    kinds = (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON)
    if pdfium.FPDFAnnot_GetFormFieldType(form, annotation) not in kinds:
        return None
    if pdfium.FPDFAnnot_GetFlags(annotation) & (pdfium.FPDF_ANNOT_FLAG_HIDDEN | pdfium.FPDF_ANNOT_FLAG_NOVIEW):
        return None
    box = pdfium.FS_RECTF()
    if not pdfium.FPDFAnnot_GetRect(annotation, box):
        return None
    text = TICKED if pdfium.FPDFAnnot_IsChecked(form, annotation) else BLANK
    return Sign(text, (box.left, box.top, box.right, box.bottom))


def _said(annotation: Any) -> str:
    """The words of a remark."""
    import pypdfium2.raw as pdfium

    length = pdfium.FPDFAnnot_GetStringValue(annotation, b"Contents", None, 0)
    if not 2 < length <= 100_000:
        return ""
    buffer = (ctypes.c_ushort * (length // 2 + 1))()
    pdfium.FPDFAnnot_GetStringValue(annotation, b"Contents", buffer, length)
    return bytes(buffer)[: length - 2].decode("utf-16-le", "ignore")
