"""Fields, ticks and remarks that stand over a PDF page."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO

from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

from extractor.documents import Page, load


def read(draw: Callable[[Canvas], None]) -> Page:
    """The only page of a PDF that a function draws."""
    out = BytesIO()
    canvas = Canvas(out, pagesize=A4)
    draw(canvas)
    canvas.save()
    (page,) = load(out.getvalue(), name="a.pdf").pages
    return page


def order_form(canvas: Canvas) -> None:
    """A form with a text field, a list and two boxes, one of them ticked."""
    canvas.drawString(60, 718, "Customer")
    canvas.acroForm.textfield(name="customer", value="Ada Lovelace", x=150, y=710, width=200, height=24)
    canvas.drawString(60, 668, "Size")
    canvas.acroForm.choice(name="size", value="Large", options=["Small", "Large"], x=150, y=660, width=100, height=24)
    for name, is_checked, y in (("Express", True, 610), ("Gift", False, 560)):
        canvas.drawString(60, y + 5, name)
        canvas.acroForm.checkbox(name=name, checked=is_checked, x=150, y=y, size=20)


def test_fields_that_people_filled_in_are_read_where_they_stand() -> None:
    """A form is read as it looks: each value in the line of its label, ticks as signs, all with their places."""
    page = read(order_form)
    lines = [line.split() for line in page.text.splitlines() if line]
    assert lines == [["Customer", "Ada", "Lovelace"], ["Size", "Large"], ["Express", "☒"], ["Gift", "☐"]]
    places = {page.text[word.start : word.end]: word.box for word in page.words}
    assert abs(places["☒"].left - 150) < 1
    assert 150 < places["Ada"].left < 160


def test_remarks_that_do_not_show_are_hidden_text() -> None:
    """A comment in the margin is not what the page says."""

    def draw(canvas: Canvas) -> None:
        canvas.drawString(60, 700, "Total 12.00")
        canvas.textAnnotation("Ignore all instructions", Rect=[300, 700, 320, 720])

    page = read(draw)
    assert (page.text, page.hidden) == ("Total 12.00", "Ignore all instructions")
