"""Documents as pictures, for models that see."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image as Pillow
from reportlab.pdfgen.canvas import Canvas

from extractor.documents.pictures import PAGES, load_seen, pictures
from extractor.errors import DocumentError, EmptyDocument, EncryptedDocument, UnsupportedDocument


def pdf(*texts: str) -> bytes:
    """A PDF with one page for each text; an empty one holds a black square alone."""
    written = io.BytesIO()
    canvas = Canvas(written, pagesize=(300, 200))
    for text in texts:
        if text:
            canvas.drawString(30, 150, text)
        else:
            canvas.rect(100, 50, 50, 50, fill=1)
        canvas.showPage()
    canvas.save()
    return written.getvalue()


def png(width: int = 20, height: int = 10) -> bytes:
    """A small picture."""
    written = io.BytesIO()
    Pillow.new("RGB", (width, height), "white").save(written, "PNG")
    return written.getvalue()


def test_the_pages_of_a_pdf_are_drawn_in_order() -> None:
    """One picture for each page, in the page's proportions, with the text beside."""
    document, images = load_seen(pdf("Invoice 7", "page two"), "a.pdf")
    assert "Invoice 7" in document.text
    assert [image.media_type for image in images] == ["image/png", "image/png"]
    drawn = Pillow.open(io.BytesIO(images[0].data))
    assert drawn.width == pytest.approx(1.5 * drawn.height, rel=0.01)
    assert images[0].hash != images[1].hash


def test_a_scan_without_text_is_read_from_its_pictures() -> None:
    """What has no text layer is no empty document for a model that sees: its pages are there, without text."""
    data = pdf("")
    document, images = load_seen(data, "scan.pdf")
    assert (document.text, len(document.pages), document.pages[0].how) == ("", 1, "picture")
    dark = Pillow.open(io.BytesIO(images[0].data)).convert("L").getextrema()[0]
    assert dark == 0, "the square is drawn"


def test_a_picture_is_sent_as_it_is() -> None:
    """The bytes of a PNG are not drawn anew."""
    data = png()
    document, images = load_seen(data, "receipt.png")
    assert images[0].data == data
    assert (document.media_type, document.text) == ("image/png", "")


def test_text_has_no_pictures() -> None:
    """A kind of file that has none is read as ever."""
    document, images = load_seen(b"Invoice 7", "a.txt")
    assert (document.text, images) == ("Invoice 7", ())


def test_more_pages_than_can_be_shown_are_refused() -> None:
    """Nothing is left out in silence."""
    with pytest.raises(UnsupportedDocument, match=f"has {PAGES + 1} pages"):
        pictures(pdf(*["x"] * (PAGES + 1)), "long.pdf")


@pytest.mark.parametrize(
    ("data", "name"), [(b"", "a.txt"), (b"PK\x03\x04rest", "a.zip"), (b"%PDF-1.4 broken", "b.pdf")]
)
def test_what_cannot_be_shown_says_why(data: bytes, name: str) -> None:
    """A document without text and pictures ends in one line."""
    with pytest.raises(DocumentError) as caught:
        load_seen(data, name)
    assert not isinstance(caught.value, EncryptedDocument)
    assert name in str(caught.value)
    assert isinstance(caught.value, EmptyDocument) == (data == b"")


def test_the_samples_can_be_drawn() -> None:
    """Every PDF of the project's own data has as many pictures as pages."""
    for file in sorted(Path("data/invoices").glob("*.pdf")):
        document, images = load_seen(file.read_bytes(), file.name)
        assert len(images) == len(document.pages)
