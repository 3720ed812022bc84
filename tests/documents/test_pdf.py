"""PDF files by their text layer."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO

import pytest
from reportlab.lib.pagesizes import A4
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfgen.canvas import Canvas

from extractor.documents import load
from extractor.errors import EmptyDocument, EncryptedDocument, UnreadableDocument


def pdf(draw: Callable[[Canvas], None], **options: object) -> bytes:
    """A PDF that a function draws."""
    out = BytesIO()
    canvas = Canvas(out, pagesize=A4, **options)
    draw(canvas)
    canvas.save()
    return out.getvalue()


def test_a_table_drawn_column_by_column_is_read_row_by_row() -> None:
    """Cells that share a line stand on one line, in whatever order the file draws them."""

    def draw(canvas: Canvas) -> None:
        for x, cells in ((60, ("Screws", "Paint")), (300, ("12", "6")), (420, ("57.60", "348.00"))):
            for row, cell in enumerate(cells):
                canvas.drawString(x, 700 - 20 * row, cell)

    lines = [line.split() for line in load(pdf(draw), name="a.pdf").text.splitlines() if line.strip()]
    assert lines == [["Screws", "12", "57.60"], ["Paint", "6", "348.00"]]


def test_two_columns_of_running_text_are_read_one_after_the_other() -> None:
    """A page set in two columns is not read across its gutter."""

    def draw(canvas: Canvas) -> None:
        for x, side in ((50, "left"), (310, "right")):
            for row in range(12):
                canvas.drawString(x, 760 - 14 * row, f"{side} column, line {row:02}, of running text")

    text = load(pdf(draw), name="a.pdf").text
    assert text.index("left column, line 11") < text.index("right column, line 00")


@pytest.mark.parametrize("turn", [90, 180, 270])
def test_turned_pages_are_read_upright(turn: int) -> None:
    """A page whose content is turned is read in the order in which a person reads it."""

    def draw(canvas: Canvas) -> None:
        canvas.translate(300, 400)
        canvas.rotate(turn)
        canvas.drawString(-150, 50, "Invoice 4711")
        canvas.drawString(100, 50, "5 March 2024")
        canvas.drawString(-150, 20, "Total 12.00 EUR")

    lines = [line.split() for line in load(pdf(draw), name="a.pdf").text.splitlines() if line.strip()]
    assert lines == [["Invoice", "4711", "5", "March", "2024"], ["Total", "12.00", "EUR"]]


def test_an_encrypted_pdf_says_so() -> None:
    """A password is named as the reason."""
    data = pdf(lambda canvas: canvas.drawString(60, 700, "secret"), encrypt=StandardEncryption("user", "owner"))
    with pytest.raises(EncryptedDocument, match=r"a\.pdf: the PDF asks for a password"):
        load(data, name="a.pdf")


def test_a_scan_is_a_failure_that_names_ocr() -> None:
    """Pages without a text layer are counted, and what would help is named."""
    with pytest.raises(EmptyDocument, match=r"no text layer on 2 pages; .*OCR"):
        load(pdf(lambda canvas: (canvas.rect(9, 9, 99, 99), canvas.showPage(), canvas.rect(9, 9, 9, 9))), name="a.pdf")


def test_broken_and_mislabelled_files_are_unreadable() -> None:
    """A PDF that pdfium cannot open is one clear line; so is a file that only calls itself one."""
    with pytest.raises(UnreadableDocument, match="broken"):
        load(b"%PDF-1.7\nnothing of it", name="a.pdf")
    with pytest.raises(UnreadableDocument, match="no PDF"):
        load(bytes(range(256)), name="a.pdf")


def test_the_pages_of_a_long_file_are_numbered() -> None:
    """Every page is there, in order."""

    def draw(canvas: Canvas) -> None:
        for number in range(40):
            canvas.drawString(60, 700, f"this is page {number + 1}")
            canvas.showPage()

    document = load(pdf(draw), name="a.pdf")
    assert [page.text for page in document.pages] == [f"this is page {n + 1}" for n in range(40)]
    assert document.is_complete
