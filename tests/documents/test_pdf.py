"""PDF files by their text layer."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import pytest
from reportlab.lib.pagesizes import A4
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from extractor.documents import load, pdf_words
from extractor.errors import DocumentError, EmptyDocument, EncryptedDocument, UnreadableDocument


def drawn(draw: Callable[[Canvas], object], **options: object) -> bytes:
    """A PDF that a function draws; uncompressed, so that tests can change its bytes."""
    out = BytesIO()
    canvas = Canvas(out, pagesize=A4, pageCompression=0, **options)
    draw(canvas)
    canvas.save()
    return out.getvalue()


def letter(canvas: Canvas) -> None:
    """Two lines, the first of two pieces."""
    canvas.drawString(-150, 50, "Invoice 4711")
    canvas.drawString(100, 50, "5 March 2024")
    canvas.drawString(-150, 20, "Total 12.00 EUR")


def cells(text: str) -> list[list[str]]:
    """The lines of a text, each cut at its wide gaps."""
    return [re.split(r" {2,}", line) for line in text.splitlines() if line.strip()]


LETTER = [["Invoice 4711", "5 March 2024"], ["Total 12.00 EUR"]]


def test_a_table_drawn_column_by_column_is_read_row_by_row() -> None:
    """Cells that share a line stand on one line, in whatever order the file draws them."""

    def draw(canvas: Canvas) -> None:
        for x, column in ((60, ("Wood screws", "Paint")), (300, ("12", "6")), (420, ("57.60", "348.00"))):
            for row, cell in enumerate(column):
                canvas.drawString(x, 700 - 20 * row, cell)

    assert cells(load(drawn(draw), name="a.pdf").text) == [["Wood screws", "12", "57.60"], ["Paint", "6", "348.00"]]


def test_cells_below_one_another_are_not_run_together() -> None:
    """12 above 6, with nothing drawn between them, is no 126."""

    def draw(canvas: Canvas) -> None:
        canvas.setFont("Helvetica", 10)
        for row, number in enumerate(("12", "6", "40")):
            canvas.drawRightString(300, 700 - 11 * row, number)

    assert load(drawn(draw), name="a.pdf").text.split() == ["12", "6", "40"]


def test_letters_beyond_the_first_plane_shift_nothing() -> None:
    """Words keep their places after a letter that some libraries count as two."""
    names = b"/CIDInit /ProcSet findresource begin begincmap 1 beginbfchar <7E> <D83DDCDE> endbfchar endcmap"
    data = drawn(lambda c: (c.drawString(60, 700, "~ 040 1234"), c.drawString(300, 700, "net 5.00")))
    data = data.replace(b"/Subtype /Type1", b"/ToUnicode 99 0 R /Subtype /Type1").replace(
        b"xref\n", b"99 0 obj\n<</Length %d>>stream\n%s\nendstream\nendobj\nxref\n" % (len(names), names), 1
    )
    assert cells(load(data, name="a.pdf").text) == [["\U0001f4de 040 1234", "net 5.00"]]


def test_two_columns_of_running_text_are_read_one_after_the_other() -> None:
    """A page set in two columns is not read across its gutter, its title is read first."""

    def draw(canvas: Canvas) -> None:
        canvas.drawString(50, 800, "General terms and conditions that hold for everything that is written below them")
        for x, side in ((50, "left"), (310, "right")):
            for row in range(12):
                canvas.drawString(x, 760 - 14 * row, f"{side} column, line {row:02}, of running text")

    text = load(drawn(draw), name="a.pdf").text
    places = [text.index(part) for part in ("General", "left column, line 11", "right column, line 00")]
    assert places == sorted(places)


@pytest.mark.parametrize("content", [0, 90, 180, 270])
@pytest.mark.parametrize("page", [0, 90, 180, 270])
def test_turned_pages_are_read_upright(content: int, page: int) -> None:
    """Whether the page is turned, its content, or both: it is read, and measured, as a person holds it."""

    def draw(canvas: Canvas) -> None:
        canvas.setPageRotation(page)
        canvas.translate(300, 400)
        canvas.rotate(content)
        letter(canvas)

    (read,) = load(drawn(draw), name="a.pdf").pages
    assert cells(read.text) == LETTER
    is_wide = page in (90, 270)  # before it is turned: reportlab swaps the sides of a page that it turns
    assert (read.width > read.height) == (is_wide != (content in (90, 270)))


def test_text_in_the_margin_and_across_the_page_stays_out_of_the_lines() -> None:
    """A turned note and a slanting watermark are read, after what they are drawn over."""

    def draw(canvas: Canvas) -> None:
        canvas.translate(300, 400)
        letter(canvas)
        canvas.rotate(45)
        canvas.drawCentredString(0, 0, "PAID IN FULL")
        canvas.rotate(45)
        canvas.drawString(0, 250, "Form 12-B")

    assert sorted(cells(load(drawn(draw), name="a.pdf").text)[2:]) == [["Form 12-B"], ["PAID IN FULL"]]
    assert cells(load(drawn(draw), name="a.pdf").text)[:2] == LETTER


def test_an_encrypted_pdf_says_so() -> None:
    """A password is named as the reason; a PDF that merely forbids copying is read."""

    def draw(canvas: Canvas) -> None:
        canvas.drawString(60, 700, "for your eyes")

    with pytest.raises(EncryptedDocument, match=r"^a\.pdf: the PDF asks for a password; put its password into EXT"):
        load(drawn(draw, encrypt=StandardEncryption("user", "owner")), name="a.pdf")
    assert load(drawn(draw, encrypt=StandardEncryption("", "owner", canCopy=0)), name="a").text == "for your eyes"


def picture(canvas: Canvas) -> None:
    """A scan, or what is like one."""
    from PIL import Image

    canvas.drawImage(ImageReader(Image.new("RGB", (20, 20), "grey")), 0, 0, 500, 800)


def test_a_scan_is_a_failure_that_names_ocr() -> None:
    """Pages without a text layer are counted, and what would help is named."""
    with pytest.raises(EmptyDocument, match=r"^a\.pdf: no text layer on 2 pages; scans need OCR$"):
        load(drawn(lambda canvas: (picture(canvas), canvas.showPage(), picture(canvas))), name="a.pdf")
    with pytest.raises(EmptyDocument, match="no text layer on 1 page;"):
        load(drawn(lambda canvas: canvas.showPage()), name="a.pdf")


def test_a_scanned_page_among_others_is_a_failed_page_and_a_blank_one_is_not() -> None:
    """What was not read is said: a picture has something to read, an empty back has not."""

    def draw(canvas: Canvas) -> None:
        canvas.drawString(60, 700, "page one")
        for content in (picture, lambda canvas: canvas.rect(9, 9, 99, 99)):
            canvas.showPage()
            content(canvas)

    document = load(drawn(draw), name="a.pdf")
    assert [page.status for page in document.pages] == ["read", "failed", "read"]
    assert "OCR" in document.failed_pages[0].reason
    assert not document.is_complete


def pages_of(count: int) -> bytes:
    """A PDF of so many pages."""

    def draw(canvas: Canvas) -> None:
        for number in range(count):
            canvas.drawString(60, 700, f"this is page {number + 1}")
            canvas.showPage()

    return drawn(draw)


def test_a_page_that_is_missing_is_a_failed_page() -> None:
    """A document is never silently shorter than its file says."""
    data = pages_of(3)
    kids = re.search(rb"/Kids \[ (\d+ 0 R) (\d+ 0 R)", data)
    assert kids is not None
    document = load(data[: kids.start(2)] + b"99 0 R" + data[kids.end(2) :], name="a.pdf")
    assert [page.status for page in document.pages] == ["read", "failed", "read"]
    assert document.failed_pages[0].reason == "the page is broken or missing"
    assert "--- page 2 ---\n(this page could not be read)" in document.text


def test_a_file_that_is_cut_off_is_never_read_as_if_it_were_whole() -> None:
    """Wherever the file ends too early, there is an error or a failed page."""
    whole = pages_of(3)
    last = whole.rindex(b"endstream")
    for end in range(40, last, 37):
        try:
            document = load(whole[:end], name="a.pdf")
        except DocumentError:
            continue
        assert not document.is_complete, end


def test_broken_files_are_unreadable() -> None:
    """A PDF that pdfium cannot open, or that is made to stop programs, is one clear line."""
    with pytest.raises(UnreadableDocument, match=r"^a\.pdf: the PDF is broken: it cannot be opened$"):
        load(b"%PDF-1.7\nnothing of it", name="a.pdf")
    with pytest.raises(UnreadableDocument, match="it claims to have 900000 pages"):
        load(re.sub(rb"/Count 1 ", b"/Count 900000 ", pages_of(1)), name="a.pdf")


def test_a_page_of_endless_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work on one page is bounded."""
    monkeypatch.setattr(pdf_words, "LETTERS", 10)
    with pytest.raises(UnreadableDocument, match="more than 10 letters"):
        load(pages_of(1), name="a.pdf")


def test_what_stands_before_the_first_bytes_does_not_matter() -> None:
    """A PDF with a few bytes of mail header before it, under any name, is a PDF."""
    data = pages_of(1)
    assert load(b"\r\n\r\n" + data, name="a.pdf").media_type == "application/pdf"
    assert load(data, name="a.txt").text == "this is page 1"


def test_the_pages_of_a_long_file_are_numbered() -> None:
    """Every page is there, in order."""
    document = load(pages_of(40), name="a.pdf")
    assert [page.text for page in document.pages] == [f"this is page {n + 1}" for n in range(40)]
    assert [page.number for page in document.pages] == list(range(1, 41))
    assert document.is_complete


def test_many_threads_may_read_at_once() -> None:
    """The library underneath is not safe for threads; ours is."""
    data = pages_of(30)
    alone = load(data, name="a.pdf")
    with ThreadPoolExecutor(6) as pool:
        assert all(read == alone for read in pool.map(lambda _: load(data, name="a.pdf"), range(18)))
