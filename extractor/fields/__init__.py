"""Field types that take what is printed, and the style of the document that decides what it means.

::

    class InvoiceFields(SQLModel):
        invoice_number: Identifier
        issue_date: PrintedDate
        total: Amount
        note: PrintedText | None = None

    InvoiceFields.model_validate(arguments, context={"style": Style.of(document_text), "flags": []})
"""

from __future__ import annotations

from extractor.fields.annotated import Amount, Currency, Identifier, Percent, PrintedDate, PrintedText, Quantity
from extractor.fields.nulls import nullish
from extractor.fields.style import Style

__all__ = [
    "Amount",
    "Currency",
    "Identifier",
    "Percent",
    "PrintedDate",
    "PrintedText",
    "Quantity",
    "Style",
    "nullish",
]
