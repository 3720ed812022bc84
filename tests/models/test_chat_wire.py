"""The tool-call dialect: what is sent, and what is read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from extractor.messages import Ask, Message, Offer, ToolCall, ToolResult
from extractor.models.wires import chat_shapes as chat

SCHEMA = {
    "type": "object",
    "properties": {"total": {"type": "string"}, "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}}},
    "required": ["total", "lines"],
    "additionalProperties": False,
    "$defs": {
        "Line": {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
            "additionalProperties": False,
        }
    },
}


def test_history_is_sent_as_strict_servers_take_it() -> None:
    """Made-up names, long ids, broken arguments and lone surrogates in the history go out in a form that all accept."""
    calls = (
        ToolCall("x" * 60, "functions.create invoice", '{"a'),
        ToolCall("b", "", "[1]"),
        ToolCall("c", "ok", "\ud800"),
    )
    results = tuple(ToolResult(call.id, call.name, "no \udfff") for call in calls)
    messages, _ = chat.word(Ask((Message("assistant", "", calls), Message("tool", tool_results=results))))
    turn, *answers = messages
    json.dumps(messages, ensure_ascii=False).encode()
    assert [call["function"]["name"] for call in turn["tool_calls"]] == ["functions_create_invoice", "unnamed", "ok"]
    assert [call["id"] for call in turn["tool_calls"]] == [answer["tool_call_id"] for answer in answers]
    assert all(len(call["id"]) <= 40 for call in turn["tool_calls"])
    sent = [json.loads(call["function"]["arguments"]) for call in turn["tool_calls"]]
    assert sent == [{"malformed_arguments": '{"a'}, {"malformed_arguments": "[1]"}, {"malformed_arguments": "?"}]


@pytest.mark.parametrize(
    ("message", "calls"),
    [
        ({"tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]}, [("call_0", "f", {"a": 1})]),
        ({"tool_calls": [{"id": "i", "function": {"name": "f"}}]}, [("i", "f", None)]),
        ({"tool_calls": [{"id": "i"}, None, {"id": "i"}]}, [("i", "", None), ("call_1", "", None), ("i_2", "", None)]),
        ({"tool_calls": [{"id": "i", "custom": {"name": "f", "input": "x"}}]}, [("i", "f", "x")]),
        ({"tool_calls": [{"id": "i", "function": {"name": "f", "arguments": [1]}}]}, [("i", "f", "[1]")]),
        ({"function_call": {"name": "f", "arguments": "{}"}}, [("call_0", "f", "{}")]),
        ({"tool_calls": "none", "content": [{"type": "text", "text": "a"}, 7]}, []),
    ],
)
def test_calls_are_read_in_every_shape(message: dict[str, Any], calls: list[tuple[str, str, Any]]) -> None:
    """Calls come as objects, without ids or arguments, custom or in the old shape: all are read, with its own id."""
    assert [(call.id, call.name, call.arguments) for call in chat.read(message).tool_calls] == calls


def test_strict_is_for_closed_schemas() -> None:
    """A schema is fit for constrained decoding when every object in it is closed and requires all of its fields."""
    assert chat.takes_strict(SCHEMA)
    line = {"type": "object", "properties": {"text": {}}, "required": [], "additionalProperties": False}
    assert not chat.takes_strict({**SCHEMA, "$defs": {"Line": line}})
    assert not chat.takes_strict({"anyOf": [{"type": "null"}, {"type": "object"}]})
    assert chat.takes_strict({"anyOf": [{"type": "null"}, {"type": "string"}]})
    _, payload = chat.word(Ask((), (Offer("f", "d", {**SCHEMA, "required": []}, strict=True),)))
    assert "strict" not in payload[0]["function"]
