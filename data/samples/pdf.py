"""Sample invoices as PDF pages, in several layouts."""

from __future__ import annotations

from decimal import Decimal
from io import BytesIO

from reportlab.lib.pagesizes import A4, landscape, letter
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfgen.canvas import Canvas

from samples.model import Invoice, Line

ROWS_A_PAGE = 9
MARGIN = 56


def classic(one: Invoice) -> bytes:
    """A letter: letterhead on top, address window to the left, facts to the right."""
    return _drawn(one, A4, facts_x=340)


def wide(one: Invoice) -> bytes:
    """US letter, landscape."""
    return _drawn(one, landscape(letter), facts_x=520)


def two_columns(one: Invoice) -> bytes:
    """Seller and buyer side by side, the facts in a band below."""
    return _drawn(one, A4, facts_x=MARGIN, band=True)


def paged(one: Invoice) -> bytes:
    """A long table on two pages, with what is carried forward."""
    return _drawn(one, A4, facts_x=340, rows=ROWS_A_PAGE)


class _Page:
    """A canvas with a place to write on."""

    def __init__(self, size: tuple[float, float]) -> None:
        self.out = BytesIO()
        self.canvas = Canvas(self.out, pagesize=size, invariant=1)
        self.width, self.height = size
        self.y = self.height - 60

    def text(self, x: float, text: str, *, font: str = "Helvetica", size: float = 10, right: bool = False) -> None:
        """Write at the present height."""
        self.canvas.setFont(font, size)
        if right:
            self.canvas.drawRightString(x, self.y, text)
        else:
            self.canvas.drawString(x, self.y, text)

    def rule(self, width: float = 0.6) -> None:
        """A line across the page."""
        self.canvas.setLineWidth(width)
        self.canvas.line(MARGIN, self.y, self.width - MARGIN, self.y)


def _drawn(
    one: Invoice, size: tuple[float, float], *, facts_x: float, band: bool = False, rows: int | None = None
) -> bytes:
    page = _Page(size)
    _letterhead(page, one)
    _head(page, one, facts_x, band)
    lines = list(one.lines)
    if rows and len(lines) > rows:
        _table(page, one, lines[:rows])
        carried = sum((Decimal(line.amount) for line in lines[:rows]), Decimal(0))
        page.y -= 6
        page.text(page.width - MARGIN, f"{one.labels['carry']}   {one.money(carried)}", right=True)
        page.canvas.showPage()
        page.y = page.height - 70
        page.text(MARGIN, f"{one.labels['number']} {one.number}, page 2", size=9)
        page.y -= 26
        page.text(page.width - MARGIN, f"{one.labels['carry']}   {one.money(carried)}", right=True)
        page.y -= 20
        lines = lines[rows:]
    _table(page, one, lines)
    _totals(page, one)
    _footer(page, one)
    page.canvas.save()
    return page.out.getvalue()


def _letterhead(page: _Page, one: Invoice) -> None:
    page.text(MARGIN, one.seller[0], font="Helvetica-Bold", size=16)
    page.y -= 16
    page.text(MARGIN, " · ".join(one.seller[1:]), size=9)
    page.y -= 10
    page.rule(1.2)
    page.y -= 44


def _head(page: _Page, one: Invoice, facts_x: float, band: bool) -> None:
    facts = [(one.labels["number"], one.number), (one.labels["date"], one.day(one.issued)), *one.extra]
    if one.due:
        facts.append((one.labels["due"], one.day(one.due)))
    top = page.y
    page.text(MARGIN, one.labels["to"], size=8)
    for line in one.buyer:
        page.y -= 14
        page.text(MARGIN, line)
    below = page.y
    page.y = top if not band else below - 34
    for name, value in facts:
        page.text(facts_x, f"{name}:")
        page.text(facts_x + 110, value, font="Helvetica-Bold")
        page.y -= 14
    page.y = min(page.y, below) - 30
    page.text(MARGIN, one.labels["title"], font="Helvetica-Bold", size=13)
    page.y -= 28


def _table(page: _Page, one: Invoice, lines: list[Line]) -> None:
    right = page.width - MARGIN
    stops = (right - 190, right - 95, right)
    page.text(MARGIN, one.labels["item"], font="Helvetica-Bold", size=9)
    for x, name in zip(stops, ("qty", "price", "amount"), strict=True):
        page.text(x, one.labels[name], font="Helvetica-Bold", size=9, right=True)
    page.y -= 5
    page.rule()
    for line in lines:
        page.y -= 18
        page.text(MARGIN, line.description)
        values = (
            one.quantity(line.quantity),
            one.money(line.unit_price) if line.unit_price else "",
            one.money(line.amount),
        )
        for x, value in zip(stops, values, strict=True):
            page.text(x, value, right=True)
        page.y -= 5
        page.rule(0.25)


def _totals(page: _Page, one: Invoice) -> None:
    right = page.width - MARGIN
    page.y -= 8
    rows = [(one.labels["net"], one.net, False), *((name, value, False) for name, value in one.taxes)]
    for name, value, bold in [*rows, (one.labels["total"], one.total, True)]:
        page.y -= 16
        font = "Helvetica-Bold" if bold else "Helvetica"
        page.text(right - 110, name, font=font, right=True)
        page.text(right, one.priced(value), font=font, right=True)


def _footer(page: _Page, one: Invoice) -> None:
    if one.note:
        page.y -= 40
        page.text(MARGIN, one.note)
    page.y = 52
    text = "   ".join(one.footer)
    size = 8.0
    while pdfmetrics.stringWidth(text, "Helvetica", size) > page.width - 2 * MARGIN:
        size -= 0.5
    page.text(MARGIN, text, size=size)
