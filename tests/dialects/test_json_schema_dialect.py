"""One JSON object that a server holds to a schema: what goes over the wire, and what is read."""

from __future__ import annotations

from dataclasses import replace

from dialect_samples import ASK, DOCUMENT, ONE, TWO, as_json, calls, invoices

from extractor.dialects import json_schema
from extractor.messages import Image, Message, Reply, ToolCall, ToolResult, Verdict

FIELDS = """

Answer with one JSON object. Copy every value as it is printed in the document above.
"create_invoice": a list, one object for each; empty if there is none. Record one invoice. Fields:
- invoice_number: the invoice's own number
- total
- due
- line_items
-   description
-   amount
"create_receipt": a list, one object for each; empty if there is none. Record one receipt. Fields:
- shop
- paid
- copies"""


def test_the_wording_is_this_to_the_letter() -> None:
    """It was measured on small models, whose answers change with every word."""
    turns = (
        Message(
            "assistant", "", (ToolCall("1", "create_invoice", {"total": "é"}), ToolCall("2", "create_receipt", {}))
        ),
        Message(
            "tool",
            tool_results=(
                ToolResult("1", "create_invoice", "total: is wrong", Verdict.REJECTED),
                ToolResult("2", "create_receipt", "SUCCESS"),
            ),
        ),
        Message("user", "Still to be mended."),
    )
    images = (Image(b"png"),)
    asked = json_schema.word(replace(ASK, messages=(DOCUMENT[0], replace(DOCUMENT[1], images=images), *turns)))
    results = (
        "create_invoice 1: total: is wrong\ncreate_receipt 2: accepted\n"
        "Answer again with the records that were not accepted, corrected from the document."
    )
    assert asked.messages == (
        DOCUMENT[0],
        Message("user", DOCUMENT[1].content + FIELDS, images=images),
        Message("assistant", '{"create_invoice": [{"total": "é"}], "create_receipt": [{}]}'),
        Message("user", results),
        Message("user", "Still to be mended."),
    )
    assert asked.schema is not None
    assert (asked.offers, list(asked.schema["properties"])) == ((), ["create_invoice", "create_receipt"])
    assert asked.schema["properties"]["create_invoice"]["items"]["required"] == [
        "invoice_number", "total", "due", "line_items",
    ]  # fmt: skip


def test_the_lists_are_the_calls() -> None:
    """In the order of the answer, which is all of the reply."""
    text = as_json({"create_invoice": [ONE, TWO], "create_receipt": [{"shop": "Corner"}]})
    assert calls(json_schema, text) == [*invoices(ONE, TWO), ("create_receipt", {"shop": "Corner"})]
    assert json_schema.read(Reply(text), ASK).content == ""


def test_all_lists_empty_means_nothing_to_extract() -> None:
    """It is how a small model says so."""
    assert calls(json_schema, '{"create_invoice": [], "create_receipt": []}') == [
        ("nothing_to_extract", {"reason": "the answer lists no record"})
    ]


def test_a_cut_answer_gives_its_whole_records() -> None:
    """The rest is asked again; what holds no whole record stays text."""
    text = as_json({"create_invoice": [ONE, TWO]})
    assert calls(json_schema, text[:-5], finish="length") == invoices(ONE)
    assert json_schema.read(Reply(text[:20], finish_reason="length"), ASK) == Reply(text[:20], finish_reason="length")
