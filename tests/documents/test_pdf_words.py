"""Where the words of a PDF stand."""

from __future__ import annotations

import re
from collections.abc import Callable
from io import BytesIO

import pytest
from reportlab.lib.pagesizes import A4
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen.canvas import Canvas

from extractor.documents import Page, load
from extractor.documents.document import Box

WIDTH, HEIGHT = A4


def read(draw: Callable[[Canvas], None], change: Callable[[bytes], bytes] = bytes) -> Page:
    """The only page of a PDF that a function draws."""
    out = BytesIO()
    canvas = Canvas(out, pagesize=A4, pageCompression=0)
    draw(canvas)
    canvas.save()
    (page,) = load(change(out.getvalue()), name="a.pdf").pages
    return page


def places(page: Page) -> dict[str, Box]:
    """The words of a page by what they say."""
    return {page.text[word.start : word.end]: word.box for word in page.words}


def is_near(box: Box, left: float, base: float, right: float, size: float) -> bool:
    """Whether a box is around a word on a line so far below the top of the page, at most a fifth of its size off."""
    return (
        abs(box.left - left) < 1
        and abs(box.right - right) < 1
        and base - 1.2 * size < box.top < base - 0.6 * size
        and base - 0.1 * size < box.bottom < base + 0.4 * size
    )


def table(canvas: Canvas) -> None:
    """Two columns that are drawn one after the other, each of its cells by one order."""
    canvas.setFont("Helvetica", 10)
    for x, column in ((60, ("Wood screws", "Paint 5 l")), (300, ("12.00", "348.00"))):
        for row, cell in enumerate(column):
            canvas.drawString(x, 700 - 20 * row, cell)


def test_every_word_has_its_span_and_its_box() -> None:
    """Spans are the words of the text, in order; boxes are where they were drawn, in points from the top left."""
    page = read(table)
    said = [page.text[word.start : word.end] for word in page.words]
    assert said == page.text.split() == ["Wood", "screws", "12.00", "Paint", "5", "l", "348.00"]
    screws = 60 + stringWidth("Wood ", "Helvetica", 10)
    assert is_near(places(page)["screws"], screws, HEIGHT - 700, screws + stringWidth("screws", "Helvetica", 10), 10)
    assert is_near(places(page)["348.00"], 300, HEIGHT - 680, 300 + stringWidth("348.00", "Helvetica", 10), 10)


@pytest.mark.parametrize("content", [0, 90, 180, 270])
@pytest.mark.parametrize("turned", [0, 90, 180, 270])
def test_boxes_are_those_of_the_upright_page(content: int, turned: int) -> None:
    """However page and content are turned, the box is where a person who holds the text upright finds it."""

    def draw(canvas: Canvas) -> None:
        canvas.setPageRotation(turned)
        canvas.translate(300, 400)
        canvas.rotate(content)
        canvas.drawString(-150, 50, "Invoice 4711")
        canvas.drawString(-150, 20, "Total 12.00 EUR")

    page = read(draw)
    first, second = places(page)["Invoice"], places(page)["Total"]
    assert page.text.split() == ["Invoice", "4711", "Total", "12.00", "EUR"]
    assert abs(first.left - second.left) < 0.1
    assert abs(second.top - first.top - 30) < 0.1
    assert all(0 < side < limit for side, limit in zip(first, 2 * (page.width, page.height), strict=True))
    assert page.rotation == (content - turned) % 360
    wide, high = (WIDTH, HEIGHT) if turned in (0, 180) else (HEIGHT, WIDTH)  # reportlab swaps the sides
    middle = {0: 300.0, 90: 400.0, 180: wide - 300, 270: high - 400}[content]
    assert abs(first.left - (middle - 150)) < 0.5


def test_a_page_that_is_cropped_is_measured_from_what_is_shown() -> None:
    """The top left is that of the part that a viewer shows."""

    def crop(data: bytes) -> bytes:
        return data.replace(b"/MediaBox", b"/CropBox [ 50 100 450 750 ] /MediaBox")

    page, whole = read(table, crop), read(table)
    before, after = places(whole)["Paint"], places(page)["Paint"]
    assert (page.width, page.height) == (400, 650)
    assert abs(before.left - after.left - 50) < 0.01
    assert abs(before.top - after.top - (HEIGHT - 750)) < 0.01


def test_words_of_several_pieces_and_of_one_letter_are_boxed_whole() -> None:
    """A word that is drawn letter by letter is one word with one box."""

    def draw(canvas: Canvas) -> None:
        canvas.setFont("Courier", 10)
        for place, letter in enumerate("4711 x"):
            canvas.drawString(100 + 6 * place, 500, letter)

    page = read(draw)
    assert page.text == "4711 x"
    assert is_near(places(page)["4711"], 100, HEIGHT - 500, 124, 10)
    assert is_near(places(page)["x"], 130, HEIGHT - 500, 136, 10)


def test_text_that_is_drawn_twice_to_look_bold_is_read_once() -> None:
    """Letters and words that stand twice in one place are one; letters that are double by spelling stay so."""

    def draw(canvas: Canvas) -> None:
        canvas.setFont("Helvetica", 10)
        x = 60.0
        for letter in "Buffet44":
            canvas.drawString(x, 700, letter)
            canvas.drawString(x + 0.3, 700, letter)
            x += stringWidth(letter, "Helvetica", 10)
        for text, y in (("Total 12.00 EUR", 650), ("Kaffee 1100", 600)):
            canvas.drawString(60, y, text)
            canvas.drawString(60.4, y, text)
        canvas.drawString(60, 550, "aabb 1122 no no")

    assert read(draw).text.split() == [
        "Buffet44",
        "Total",
        "12.00",
        "EUR",
        "Kaffee",
        "1100",
        "aabb",
        "1122",
        "no",
        "no",
    ]


def test_spans_hold_whatever_letters_a_page_has() -> None:
    """Letters of two code units, soft hyphens and letters without a name shift no span."""
    names = b"/CIDInit /ProcSet findresource begin begincmap 1 beginbfchar <7E> <D83DDCDE> endbfchar endcmap"

    def named(data: bytes) -> bytes:
        return data.replace(b"/Subtype /Type1", b"/ToUnicode 99 0 R /Subtype /Type1").replace(
            b"xref\n", b"99 0 obj\n<</Length %d>>stream\n%s\nendstream\nendobj\nxref\n" % (len(names), names), 1
        )

    def draw(canvas: Canvas) -> None:
        canvas.drawString(60, 700, "~ 040 1234")
        canvas.drawString(300, 700, "net 5.00")

    page = read(draw, named)
    said = [page.text[word.start : word.end] for word in page.words]
    assert said == ["\U0001f4de", "040", "1234", "net", "5.00"] == re.findall(r"\S+", page.text)
    assert 330 > places(page)["net"].right > 300
