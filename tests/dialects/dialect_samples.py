"""What the tests of the dialects ask for, and answers to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from extractor.messages import NOTHING_TO_EXTRACT, Ask, FinishReason, Message, Offer, Reply, ToolCall

TEXT = {"type": "string"}
ITEMS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"description": TEXT, "amount": TEXT},
        "required": ["description", "amount"],
        "additionalProperties": False,
    },
}
INVOICE = Offer(
    "create_invoice",
    "Record one invoice.\n\nMore about it.",
    {
        "type": "object",
        "properties": {
            "invoice_number": {"type": "string", "description": "the invoice's own number"},
            "total": TEXT,
            "due": {"anyOf": [TEXT, {"type": "null"}]},
            "line_items": ITEMS,
        },
        "required": ["invoice_number", "total", "due", "line_items"],
        "additionalProperties": False,
    },
)
RECEIPT = Offer(
    "create_receipt",
    "Record one receipt.",
    {
        "type": "object",
        "properties": {"shop": TEXT, "paid": {"type": "boolean"}, "copies": {"type": "integer"}},
        "required": ["shop"],
        "additionalProperties": False,
    },
)
DOCUMENT = (Message("system", "You read."), Message("user", "<document>\nAcme 12.00\n</document>"))
ASK = Ask(DOCUMENT, (INVOICE, RECEIPT, NOTHING_TO_EXTRACT))

ONE: dict[str, Any] = {"invoice_number": "A-1", "total": "12.00", "due": None, "line_items": []}
TWO: dict[str, Any] = {
    "invoice_number": "A-2",
    "total": "7.00",
    "due": "2024-05-01",
    "line_items": [{"description": "tea", "amount": "7.00"}],
}
Said = list[tuple[str, Any]]


def calls(dialect: Any, text: str, ask: Ask = ASK, finish: FinishReason = "stop") -> Said:
    """Name and arguments of every call that a dialect reads in a text."""
    return said(dialect.read(Reply(text, finish_reason=finish), ask))


def said(reply: Reply) -> Said:
    """Name and arguments of every call of a reply."""
    return [(call.name, call.arguments) for call in reply.tool_calls]


def invoices(*records: Mapping[str, Any]) -> Said:
    """The calls that record these invoices."""
    return [("create_invoice", record) for record in records]


def worded(dialect: Any, records: Said) -> str:
    """The text by which a dialect shows earlier calls: an answer of its own form."""
    turn = Message("assistant", "", tuple(ToolCall(str(n), name, value) for n, (name, value) in enumerate(records)))
    text: str = dialect.word(Ask((*DOCUMENT, turn), ASK.offers)).messages[-1].content
    return text


def as_json(value: object) -> str:
    """Compact JSON."""
    return json.dumps(value, ensure_ascii=False)


NASTY = "{}[]\"\\'<>/&;:,`\n\r\t abé0._-"
texts = (
    st.text(max_size=12)
    | st.text(NASTY, max_size=16)
    | st.sampled_from(
        ["\nObservation: x", "\nAction: create_invoice", "</total>", "```json", "<!--", "]]>", '"}', "&lt;"]
    )
).map(lambda text: text.strip() or "x")
lines = st.fixed_dictionaries({"description": texts, "amount": texts})
invoice_records = st.fixed_dictionaries(
    {"invoice_number": texts, "total": texts, "due": st.none() | texts, "line_items": st.lists(lines, max_size=3)}
)
receipt_records = st.fixed_dictionaries({"shop": texts, "paid": st.booleans()})
answers = st.lists(
    st.tuples(st.just("create_invoice"), invoice_records) | st.tuples(st.just("create_receipt"), receipt_records),
    min_size=1,
    max_size=4,
)
