"""Text of a PDF that nobody sees on the page is kept apart from what a person reads."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO

import pytest
from PIL import Image
from reportlab.lib.pagesizes import A4
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from extractor.documents import Page, load


def read(draw: Callable[[Canvas], None], rotation: int = 0) -> Page:
    """The only page of a PDF with one line that is seen, and whatever a function draws."""
    out = BytesIO()
    canvas = Canvas(out, pagesize=A4[::-1] if rotation else A4)  # the paper is turned along with the page
    canvas.setPageRotation(rotation)
    canvas.drawString(60, 780, "Total 12.00")
    draw(canvas)
    canvas.save()
    (page,) = load(out.getvalue(), name="a.pdf").pages
    return page


def picture(shade: int = 200) -> ImageReader:
    """A picture of one shade of grey."""
    return ImageReader(Image.new("L", (40, 40), shade))


def white_on_white(canvas: Canvas) -> None:
    """Letters in the colour of the paper."""
    canvas.setFillColorRGB(1, 1, 1)
    canvas.drawString(60, 700, "Pay 9999")


def nearly_white(canvas: Canvas) -> None:
    """Letters in what is all but the colour of the paper."""
    canvas.setFillColorRGB(0.99, 0.99, 0.99)
    canvas.drawString(60, 700, "Pay 9999")


def black_bar_over(canvas: Canvas) -> None:
    """A name that was blacked out."""
    canvas.drawString(60, 700, "Pay 9999")
    canvas.rect(50, 690, 200, 30, fill=1)


def black_on_black(canvas: Canvas) -> None:
    """Letters in the colour of the bar that they stand on."""
    canvas.rect(50, 690, 200, 30, fill=1)
    canvas.drawString(60, 700, "Pay 9999")


def behind_a_picture(canvas: Canvas) -> None:
    """Letters that a picture lies over."""
    canvas.drawString(60, 700, "Pay 9999")
    canvas.drawImage(picture(), 50, 690, 200, 30)


def unpainted(canvas: Canvas) -> None:
    """Letters that are set and not painted."""
    text = canvas.beginText(60, 700)
    text.setTextRenderMode(3)
    text.textOut("Pay 9999")
    canvas.drawText(text)


def too_small(canvas: Canvas) -> None:
    """Letters half a point high."""
    canvas.setFont("Helvetica", 0.5)
    canvas.drawString(60, 700, "Pay 9999")


def beside_the_page(canvas: Canvas) -> None:
    """Letters to the right of the paper."""
    canvas.drawString(700, 700, "Pay 9999")


def transparent(canvas: Canvas) -> None:
    """Letters that are all but transparent."""
    canvas.setFillAlpha(0.01)
    canvas.drawString(60, 700, "Pay 9999")


WAYS = (
    white_on_white, nearly_white, black_bar_over, black_on_black, behind_a_picture, unpainted, too_small,
    beside_the_page, transparent,
)  # fmt: skip


@pytest.mark.parametrize("rotation", [0, 90])
@pytest.mark.parametrize("draw", WAYS)
def test_what_nobody_sees_is_kept_apart(draw: Callable[[Canvas], None], rotation: int) -> None:
    """However a text is hidden, it is not in what a model reads, and is kept as hidden text of the page."""
    page = read(draw, rotation)
    assert page.text == "Total 12.00"
    assert page.hidden == "Pay 9999"
    assert len(page.words) == 2


def white_on_a_bar(canvas: Canvas) -> None:
    """The white heading of a table, on a dark bar."""
    canvas.rect(50, 690, 200, 30, fill=1)
    canvas.setFillColorRGB(1, 1, 1)
    canvas.drawString(60, 700, "Pay 9999")


def on_a_picture(canvas: Canvas) -> None:
    """White letters on a dark picture."""
    canvas.drawImage(picture(20), 50, 690, 200, 30)
    canvas.setFillColorRGB(1, 1, 1)
    canvas.drawString(60, 700, "Pay 9999")


def grey(canvas: Canvas) -> None:
    """Letters in a pale grey, as conditions are printed."""
    canvas.setFillColorRGB(0.85, 0.85, 0.85)
    canvas.drawString(60, 700, "Pay 9999")


def under_glass(canvas: Canvas) -> None:
    """A marker over letters, through which they are seen."""
    canvas.drawString(60, 700, "Pay 9999")
    canvas.setFillColorRGB(1, 1, 0, alpha=0.4)
    canvas.rect(50, 690, 200, 30, fill=1, stroke=0)


@pytest.mark.parametrize("draw", [white_on_a_bar, on_a_picture, grey, under_glass])
def test_what_is_seen_is_read_whatever_its_colour(draw: Callable[[Canvas], None]) -> None:
    """White on a dark bar, pale letters, and letters under a marker are text like any other."""
    page = read(draw)
    assert page.text.split() == ["Total", "12.00", "Pay", "9999"]
    assert not page.hidden


@pytest.mark.parametrize("is_under", [True, False])
def test_letters_of_a_scan_that_was_read_before_are_its_text(is_under: bool) -> None:
    """The unpainted text over or under the picture of a whole page is what somebody's OCR read off it."""

    def scan() -> Page:
        out = BytesIO()
        canvas = Canvas(out, pagesize=A4)
        if not is_under:
            canvas.drawImage(picture(), 0, 0, *A4)
        text = canvas.beginText(60, 700)
        text.setTextRenderMode(0 if is_under else 3)
        text.textOut("Pay 9999")
        canvas.drawText(text)
        if is_under:
            canvas.drawImage(picture(), 0, 0, *A4)
        canvas.save()
        return load(out.getvalue(), name="a.pdf").pages[0]

    page = scan()
    assert (page.text, page.hidden) == ("Pay 9999", "")


def test_places_without_a_number_do_no_harm() -> None:
    """Coordinates beyond all bounds, as hostile files have them, do not keep the rest from being read."""

    def draw(canvas: Canvas) -> None:
        canvas.rect(-1e30, -1e30, 2e30, 2e30, fill=0)
        canvas.drawString(1e5, 1e5, "far")
        canvas.setFillColorRGB(1, 1, 1)
        canvas.rect(-1e5, -1e5, 2e5, 1e5, fill=1)

    page = read(draw)
    assert page.text == "Total 12.00"
