"""The provider's own calls, and calls that a model writes as text."""

from __future__ import annotations

from dataclasses import replace

import pytest
from dialect_samples import ASK, INVOICE, ONE, TWO, as_json, calls, invoices, said

from extractor import dialects
from extractor.dialects import json as prompted
from extractor.dialects import json_schema, react, tools, xml
from extractor.errors import ConfigurationError
from extractor.messages import Reply, ToolCall


def test_the_ask_goes_out_as_it_is() -> None:
    """Tools are the provider's business."""
    assert tools.word(ASK) is ASK


def test_calls_stay_as_they_are_whatever_stands_in_the_text() -> None:
    """Text beside calls is no second source of calls."""
    reply = Reply(as_json(TWO), (ToolCall("1", "create_invoice", as_json(ONE)), ToolCall("2", "unknown", "{broken")))
    assert tools.read(reply, ASK) is reply


@pytest.mark.parametrize(
    "text",
    [
        as_json({"name": "create_invoice", "arguments": ONE}),
        as_json({"name": "create_invoice", "arguments": as_json(ONE)}),
        as_json({"function": "create_invoice", "parameters": ONE}),
        as_json({"type": "function", "function": {"name": "create_invoice", "arguments": ONE}}),
        as_json(
            {"tool_calls": [{"id": "x", "type": "function", "function": {"name": "create_invoice", "arguments": ONE}}]}
        ),
        f"<tool_call>\n{as_json({'name': 'create_invoice', 'arguments': ONE})}\n</tool_call>",
        f"[TOOL_CALLS][{as_json({'name': 'create_invoice', 'arguments': ONE})}]",
        f"<function=create_invoice>{as_json(ONE)}</function>",
        f"I will call it:\n```json\n{as_json(ONE)}\n```",
        as_json({"tool": "create_invoice", "tool_input": ONE}),
        as_json({"create_invoice": ONE}),
    ],
)
def test_a_call_that_is_written_as_text_is_a_call(text: str) -> None:
    """Small models write their call into the text; it is read in the shapes that they know."""
    reply = tools.read(Reply(text), ASK)
    assert said(reply) == invoices(ONE)
    assert reply.content == ""


def test_several_written_calls_are_several_calls() -> None:
    """Also two that are equal, which a provider's own calls could be as well."""
    one, two = (as_json({"name": "create_invoice", "arguments": record}) for record in (ONE, TWO))
    assert calls(tools, f"[{one}, {two}]") == invoices(ONE, TWO)
    assert calls(tools, f"<tool_call>{one}</tool_call><tool_call>{one}</tool_call>") == invoices(ONE, ONE)


def test_a_written_call_to_an_unknown_function_is_a_call() -> None:
    """The model is told which functions there are."""
    assert calls(tools, as_json({"name": "create_invoise", "arguments": ONE})) == [("create_invoise", ONE)]


ECHO = as_json({"name": "create_invoice", "parameters": INVOICE.parameters})


@pytest.mark.parametrize("text", ["", "No.", '{"page": 1}', as_json(INVOICE.parameters), ECHO])
def test_text_that_is_no_call_stays_text(text: str) -> None:
    """Chatter, foreign JSON and an echo of the schema are left for the loop to answer."""
    assert tools.read(Reply(text), ASK) == Reply(text)


def test_where_text_is_an_answer_a_call_has_to_name_its_function() -> None:
    """In a chat, JSON that happens to have the fields of a function is quoted, not called."""
    chat = replace(ASK, tool_choice="auto")
    assert calls(tools, f"It says {as_json(ONE)}", chat) == []
    assert calls(tools, '{"invoice_number": "A-1" broken', chat) == []
    assert calls(tools, as_json({"name": "create_invoice", "arguments": ONE}), chat) == invoices(ONE)


@pytest.mark.parametrize("cut", ['{"invoice_number": "A-', "", None, "{"])
def test_the_call_that_a_cut_went_through_is_left_out(cut: str | None) -> None:
    """The whole ones before it are kept, and the reply still says that it was cut."""
    whole = ToolCall("1", "create_invoice", as_json(ONE))
    reply = tools.read(Reply("", (whole, ToolCall("2", "create_invoice", cut)), "length"), ASK)
    assert (reply.tool_calls, reply.finish_reason) == ((whole,), "length")


def test_a_cut_behind_the_last_call_leaves_it() -> None:
    """Arguments that are whole, as text or as an object, were not cut."""
    for arguments in (as_json(ONE), ONE):
        reply = Reply("", (ToolCall("1", "create_invoice", arguments),), "length")
        assert tools.read(reply, ASK) is reply


def test_dialects_are_found_by_name() -> None:
    """Each of ours comes in by the plugin door; a wrong name is told with the nearest one."""
    ours = {"tools": tools, "json_schema": json_schema, "json": prompted, "react": react, "xml": xml}
    assert {name: dialects.named(name) for name in ours} == ours
    with pytest.raises(ConfigurationError, match="did you mean 'json_schema'"):
        dialects.named("jsonschema")
