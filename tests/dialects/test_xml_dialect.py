"""XML replies, typed by the schema."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from dialect_samples import ASK, DOCUMENT, ONE, TWO, as_json, calls, invoices, said

from extractor.dialects import xml
from extractor.messages import Ask, Message, Offer, Reply, ToolCall, ToolResult, Verdict

BLOCK = "<create_invoice><invoice_number>A-1</invoice_number><total>12.00</total><due/><line_items/></create_invoice>"
SECOND = """
<create_invoice>
  <invoice_number>A-2</invoice_number>
  <total>7.00</total>
  <due>2024-05-01</due>
  <line_items>
    <item>
      <description>tea</description>
      <amount>7.00</amount>
    </item>
  </line_items>
</create_invoice>
"""


def fields(inside: str, **properties: Any) -> Any:
    """The arguments read from a block of a function with these fields; ``None`` where there is no call."""
    offer = Offer("note", "", {"type": "object", "properties": properties, "additionalProperties": False})
    found = calls(xml, f"<note>{inside}</note>", Ask(DOCUMENT, (offer,)))
    return found[0][1] if found else None


TEXT = {"type": "string"}
LINES = {"type": "array", "items": {"type": "object", "properties": {"what": TEXT, "much": TEXT}}}


@pytest.mark.parametrize("text", [BLOCK, f"Here:\n```xml\n<?xml version='1.0'?>\n<answer>{BLOCK}</answer>\n```\nDone."])
def test_a_block_is_a_call(text: str) -> None:
    """Whatever stands around it."""
    assert calls(xml, text) == invoices(ONE)


def test_several_blocks_are_several_records() -> None:
    """Where several calls are allowed, none is dropped."""
    assert calls(xml, BLOCK + SECOND) == invoices(ONE, TWO)


def test_the_last_block_wins_where_one_call_is_allowed() -> None:
    """Those before it are drafts; another function's block is no draft of it."""
    single = replace(ASK, parallel=False)
    shop = "<create_receipt><shop>Corner</shop></create_receipt>"
    assert calls(xml, BLOCK + SECOND, single) == invoices(TWO)
    assert calls(xml, BLOCK + shop + SECOND, single) == [*invoices(TWO), ("create_receipt", {"shop": "Corner"})]
    assert calls(xml, BLOCK + SECOND, single, finish="length") == []


@pytest.mark.parametrize(
    ("inside", "schema", "value"),
    [
        ("<f> 12.50 </f>", {"type": "number"}, "12.50"),
        ("<f>007</f>", {"type": "integer"}, "007"),
        ("<f>True</f>", {"type": "boolean"}, True),
        ("<f>true</f>", TEXT, "true"),
        ("<f></f>", TEXT, ""),
        ("<f/>", {"type": ["string", "null"]}, None),
        ("<f> </f>", {"anyOf": [TEXT, {"type": "null"}]}, None),
        ("<f>2</f>", {"enum": [1, 2]}, 2),
        ("<f>a &lt; b &amp;amp; &#65;&#x42; &eacute; AT&T</f>", TEXT, "a < b &amp; AB &eacute; AT&T"),
        ("<f>a < b > c <b>bold</b> <br/></f>", TEXT, "a < b > c <b>bold</b> <br/>"),
        ("<f><![CDATA[<f>&lt;</f>]]><!-- seen --></f>", TEXT, "<f>&lt;</f>"),
        ("<f><item>a</item><item/></f>", {"type": "array", "items": TEXT}, ["a", ""]),
        ("<f>a</f><f>b</f>", {"type": "array", "items": TEXT}, ["a", "b"]),
        ('<f>["a"]</f>', {"type": "array", "items": TEXT}, '["a"]'),
        ("<f/>", {"type": "array", "items": TEXT}, []),
        ("<f></f>", {"anyOf": [LINES, {"type": "null"}]}, None),
        ("<f><item><what>a</what></item></f>", LINES, [{"what": "a"}]),
        ("<f><line n='1'><what>a</what></line><line><much>2</much></line></f>", LINES, [{"what": "a"}, {"much": "2"}]),
        ("<f><what>a</what><much>2</much></f>", LINES, [{"what": "a", "much": "2"}]),
        ("<f><what>a</what></f><f><what>b</what></f>", LINES, [{"what": "a"}, {"what": "b"}]),
        ("<f><what>a</what></f>", LINES["items"], {"what": "a"}),
        ("<f>1</f><f>1</f>", TEXT, "1"),
    ],
)  # fmt: skip
def test_a_value_is_typed_by_the_schema(inside: str, schema: Any, value: Any) -> None:
    """Numbers stay as they are printed; lists, objects, truth values and null are what the schema says."""
    assert fields(inside, f=schema) == {"f": value}


def test_an_element_that_nobody_declared_is_kept() -> None:
    """Whether it is ignored or refused is decided with the other arguments."""
    assert fields("<f>1</f><g>2</g>", f=TEXT) == {"f": "1", "g": "2"}


def test_names_that_are_no_tags_are_spelt_as_such() -> None:
    """A field may have any name; it is shown, and read, with what a tag can hold."""
    offer = Offer("note", "", {"type": "object", "properties": {"net total": TEXT, "1st": TEXT}})
    ask = Ask(DOCUMENT, (offer,))
    assert "<net_total>…</net_total>" in xml.word(ask).messages[-1].content
    inside = "<net_total>5</net_total><_1st>a</_1st>"
    assert calls(xml, f"<note>{inside}</note>", ask) == [("note", {"net total": "5", "1st": "a"})]


@pytest.mark.parametrize(
    "broken",
    [
        "<create_invoice><invoice_number>A-2<total>1</total></create_invoice>",
        "<create_invoice><total>1</total><total>2</total></create_invoice>",
        "<create_invoice><total>1</create_invoice>",
        "<create_invoice><line_items><item></line_items></create_invoice>",
        "<create_invoice><total>1</total>",
        "<create_invoice>" + "<x>" * 100,
    ],
)
def test_a_broken_block_ends_the_reading_and_is_asked_again(broken: str) -> None:
    """A tag without its end swallows nothing, and no value is chosen from two: the reply counts as cut off there."""
    reply = xml.read(Reply(BLOCK + broken + SECOND), ASK)
    assert (said(reply), reply.finish_reason) == (invoices(ONE), "length")


def test_a_function_that_is_only_spoken_of_is_no_block() -> None:
    """Its name in brackets, before the block itself."""
    assert calls(xml, f"I use <create_invoice> for it:\n{BLOCK}") == invoices(ONE)


def test_entities_of_a_documents_own_are_not_known() -> None:
    """No declaration is read, nothing is expanded or fetched."""
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;"><!ENTITY c SYSTEM "file:///etc/passwd">]>'
    text = f"{bomb}<create_receipt><shop>&b;&c;</shop></create_receipt>"
    assert calls(xml, text) == [("create_receipt", {"shop": "&b;&c;"})]


def test_text_without_a_block_stays_text() -> None:
    """The reply has no calls, which the loop feeds back."""
    for text in ("", "none", "<invoice><total>1</total></invoice>", "</create_invoice>"):
        assert xml.read(Reply(text), ASK) == Reply(text)


def test_nothing_to_extract_is_a_block_like_any_other() -> None:
    """With its reason."""
    text = "<nothing_to_extract><reason>a letter</reason></nothing_to_extract>"
    assert calls(xml, text) == [("nothing_to_extract", {"reason": "a letter"})]


def test_the_shape_of_each_record_stands_in_the_prompt() -> None:
    """After the document, with the fields in words; nothing is on offer over the wire."""
    asked = xml.word(ASK)
    rest = asked.messages[-1].content.partition("</document>")[2]
    shape = "  <line_items>\n    <item>\n      <description>…</description>\n      <amount>…</amount>\n    </item>\n"
    assert shape in rest
    assert "- invoice_number: the invoice's own number\n" in rest
    assert "nothing to record, answer <nothing_to_extract><reason>" in rest
    assert rest.endswith("</create_receipt>")
    assert (asked.offers, asked.schema, asked.tool_choice) == ((), None, "auto")
    assert xml.word(Ask(DOCUMENT)).messages == DOCUMENT


def test_an_echo_of_the_shape_is_no_call() -> None:
    """Dots in place of values are what the prompt showed, not what the document says."""
    shown = xml.word(ASK).messages[-1].content.partition("One block for each record:")[2]
    assert shown.count("…") > 5
    assert xml.read(Reply(shown), ASK) == Reply(shown)


def test_earlier_turns_are_worded_back_as_xml() -> None:
    """Calls as blocks, results in words."""
    turns = (
        Message("assistant", "", (ToolCall("1", "create_invoice", as_json(ONE)),)),
        Message("tool", tool_results=(ToolResult("1", "create_invoice", "total: is wrong", Verdict.REJECTED),)),
    )
    asked = xml.word(replace(ASK, messages=(*DOCUMENT, *turns)))
    assert calls(xml, asked.messages[2].content) == invoices(ONE)
    assert asked.messages[3].role == "user"
    assert asked.messages[3].content.startswith("create_invoice 1: total: is wrong\n")
    assert "is given up by <nothing_to_extract>" in asked.messages[3].content
