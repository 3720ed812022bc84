"""Invoices and credit notes, with their line items in a table of their own."""

from decimal import Decimal
from typing import Optional

from sqlmodel import Field, Relationship, SQLModel

from extractor import Context, Rejected, build
from extractor.fields import Amount, Currency, Identifier, PrintedDate, PrintedText, Quantity

CENT = Decimal("0.01")
"""Sums are compared to the cent: each printed amount has been rounded by itself."""


class LineItemFields(SQLModel):
    """One line of an invoice."""

    description: PrintedText
    quantity: Quantity | None = None
    unit_price: Amount | None = None
    amount: Amount = Field(description="total of this line", max_digits=18, decimal_places=2)


class InvoiceFields(SQLModel):
    """The head and the totals of an invoice."""

    invoice_number: Identifier = Field(index=True)
    issue_date: PrintedDate
    due_date: PrintedDate | None = None
    seller: PrintedText = Field(description="company that sends the invoice, name only")
    buyer: PrintedText | None = Field(default=None, description="customer, name only")
    currency: Currency
    net: Amount = Field(description="total before tax", max_digits=18, decimal_places=2)
    tax: Amount = Field(description="total of all taxes", max_digits=18, decimal_places=2)
    total: Amount = Field(description="total with tax", max_digits=18, decimal_places=2)


class LineItemDraft(LineItemFields):
    """One line as the model reads it."""


class InvoiceDraft(InvoiceFields):
    """One invoice as the model reads it."""

    line_items: list[LineItemDraft]


class LineItem(LineItemFields, table=True):
    """One line as the database keeps it."""

    __tablename__ = "line_item"

    id: int | None = Field(default=None, primary_key=True)
    invoice_id: int | None = Field(default=None, foreign_key="invoice.id", index=True)
    invoice: Optional["Invoice"] = Relationship(back_populates="line_items")


class Invoice(InvoiceFields, table=True):
    """One invoice as the database keeps it."""

    id: int | None = Field(default=None, primary_key=True)
    line_items: list["LineItem"] = Relationship(back_populates="invoice", cascade_delete=True)


def create_invoice(draft: InvoiceDraft, context: Context) -> Invoice:
    """Record one invoice or credit note found in the document."""
    wrong = []
    text = context.document.text if context.document is not None else ""
    if text and not stands_in(draft.invoice_number, text):
        wrong.append(f"invoice_number: {draft.invoice_number} does not stand in the document")
    if abs(draft.net + draft.tax - draft.total) > CENT:
        wrong.append(f"total: {draft.total} is not net {draft.net} + tax {draft.tax}")
    remark = wrong_lines(draft)
    if remark and not context.is_last_attempt:
        wrong.append(remark)
    if wrong:
        raise Rejected(*wrong)
    if remark:
        context.flag(remark)  # the totals agree: better a record that a person looks at than none
    return build(Invoice, draft)


def stands_in(identifier: str, text: str) -> bool:
    """Whether an identifier is printed in the document, whatever its case and spacing."""
    return "".join(identifier.split()).casefold() in "".join(text.split()).casefold()


def wrong_lines(draft: InvoiceDraft) -> str:
    """What is wrong with the line items as a whole: they sum to net, or to the total where prices include tax."""
    if not draft.line_items:
        return ""
    lines = sum((line.amount for line in draft.line_items), Decimal(0))
    tolerance = CENT * len(draft.line_items)
    if min(abs(lines - draft.net), abs(lines - draft.total)) <= tolerance:
        return ""
    return f"line_items: the amounts sum to {lines}, which is neither net {draft.net} nor total {draft.total}"
