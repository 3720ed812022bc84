"""Conversations as turns of two sides: what every provider whose turns hold parts can rely on."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from extractor.messages import Ask, Image, Message, Offer, ToolCall, ToolResult
from extractor.models.wires import turns as told
from extractor.models.wires.turns import Part, Side


class Plain:
    """Parts that show what they are."""

    def text(self, text: str, side: Side) -> Part:
        return {"text": text}

    def image(self, image: Image) -> Part:
        return {"image": image.media_type}

    def call(self, call: ToolCall, arguments: dict[str, Any]) -> Part:
        return {"call": call.id, "name": call.name, "arguments": arguments}

    def result(self, result: ToolResult) -> Part:
        return {"result": result.call_id, "name": result.name, "content": result.content}


def words(*messages: Message) -> list[tuple[str, list[Part]]]:
    return [(turn.side, turn.parts) for turn in told.turns(Ask(messages, (Offer("f", "", {}),)), Plain())]


def test_neighbours_of_one_side_are_one_turn() -> None:
    """Two texts of a user are one turn; blank texts and turns are left out; system texts stand apart."""
    messages = (
        Message("system", "a"), Message("user", "one"), Message("user", " "), Message("user", "two"),
        Message("assistant", ""), Message("system", "b"),
    )  # fmt: skip
    assert words(*messages) == [("user", [{"text": "one"}, {"text": "two"}])]
    assert told.system(Ask(messages)) == "a\n\nb"


def test_a_result_that_belongs_to_no_call_is_text() -> None:
    """What was found out is not lost, and no provider sees a result without its call."""
    turn = Message("tool", tool_results=(ToolResult("x", "f", "recorded"),))
    assert words(Message("user", "one"), turn) == [("user", [{"text": "one"}, {"text": "f: recorded"}])]


def test_results_stand_before_what_is_said_beside_them() -> None:
    """Results come first in the turn after their calls, in call order."""
    calls = (ToolCall("a", "f", {}), ToolCall("b", "f", {}))
    results = Message("tool", "beside", tool_results=(ToolResult("a", "f", "1"), ToolResult("b", "f", "2")))
    (_, parts) = words(Message("assistant", "x", calls), results, Message("user", "after"))[1]
    assert [next(iter(part)) for part in parts] == ["result", "result", "text", "text"]


def test_halves_of_surrogate_pairs_are_replaced() -> None:
    """A reply may hold what no request can: in text, in arguments and in what is escaped within them."""
    calls = (ToolCall("\ud800", "f", '{"a": "\\ud800"}'), ToolCall("b", "\udfff", {"a": ["\ud800"]}))
    results = (ToolResult("\ud800", "f", "\ud800"), ToolResult("b", "\udfff", "x"))
    found = words(Message("assistant", "\ud800", calls), Message("tool", tool_results=results))
    json.dumps(found, ensure_ascii=False).encode()
    assert [part["arguments"] for part in found[0][1][1:]] == [{"a": "?"}, {"a": ["?"]}]


def test_numbers_that_are_none_become_text() -> None:
    """JSON of a model may hold NaN, which no request can."""
    assert told.as_object('{"a": NaN, "b": [Infinity]}') == {"a": "NaN", "b": ["Infinity"]}
    assert told.as_object({"a": float("nan")}) == {"a": "NaN"}


TEXT = st.text(max_size=6)
CALL = st.builds(ToolCall, TEXT, TEXT | st.just("f"), TEXT | st.none() | st.dictionaries(TEXT, st.integers()))


@st.composite
def conversations(draw: st.DrawFn) -> tuple[Message, ...]:
    """Rounds of calls with a result each, and words between them."""
    messages = [Message("user", "document")]
    for _ in range(draw(st.integers(0, 4))):
        calls = draw(st.lists(CALL, max_size=3, unique_by=lambda call: call.id))
        messages.append(Message("assistant", draw(TEXT), tuple(calls)))
        results = tuple(ToolResult(call.id, call.name, draw(TEXT)) for call in calls)
        messages += [Message("tool", tool_results=results)] if results else []
        messages.append(Message("user", draw(TEXT)))
    return tuple(messages)


@given(conversations())
@settings(max_examples=200, deadline=None)
def test_any_conversation_is_one_that_providers_take(messages: tuple[Message, ...]) -> None:
    """Sides alternate, no turn is empty, ids are spelt plainly and come once, and each call has its result next."""
    found = words(*messages)
    assert all(parts for _, parts in found)
    assert [side for side, _ in found] == (["user", "assistant"] * len(found))[: len(found)]
    calls = [part for _, parts in found for part in parts if "call" in part]
    assert len({part["call"] for part in calls}) == len(calls) == sum(len(message.tool_calls) for message in messages)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", word) for part in calls for word in (part["call"], part["name"]))
    for (_, parts), (_, after) in itertools.pairwise(found):
        made = [part["call"] for part in parts if "call" in part]
        assert made == [part["result"] for part in after if "result" in part]
    json.dumps(found, ensure_ascii=False).encode()


@given(conversations(), conversations())
@settings(max_examples=50, deadline=None)
def test_what_was_said_is_worded_the_same_later(messages: tuple[Message, ...], more: tuple[Message, ...]) -> None:
    """A longer conversation begins with the same turns, so that providers find them in their caches."""
    shorter, longer = words(*messages), words(*messages, *more)
    assert longer[: len(shorter) - 1] == shorter[:-1]
