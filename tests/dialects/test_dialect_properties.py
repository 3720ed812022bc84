"""What holds for every dialect, whatever a model sends."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from dialect_samples import ASK, NASTY, Said, answers, as_json, said, worded
from hypothesis import given, settings
from hypothesis import strategies as st

from extractor.dialects import json as prompted
from extractor.dialects import json_schema, react, tools, xml
from extractor.messages import NOTHING_TO_EXTRACT, FinishReason, Reply

ALL = {"tools": tools, "json_schema": json_schema, "json": prompted, "react": react, "xml": xml}
in_text = pytest.mark.parametrize("dialect", [json_schema, prompted, react, xml], ids=lambda one: one.__name__)
every = pytest.mark.parametrize("dialect", ALL.values(), ids=ALL)

PIECES = [
    '{"create_invoice": [', '{"name": "create_invoice", "arguments": ', '{"invoice_number": "', "}", "]}", '"',
    "\\", ",",
    "\n", "```json\n", "Action: create_invoice\n", "Action Input: ", "Observation: ", "Final Answer: ", "Thought: ",
    "<create_invoice>", "</create_invoice>", "<total>", "</total>", "<line_items>", "<item>", "</item>", "<!--", "-->",
    "<![CDATA[", "]]>", "&#55296;", "&#0;", "\ud800", "\0", "null", "-1.5e3", "nothing_to_extract", "<tool_call>",
]  # fmt: skip
hostile = st.text() | st.text(NASTY, max_size=60) | st.lists(st.sampled_from(PIECES) | st.text(max_size=3)).map("".join)


@every
@settings(deadline=None)
@given(
    text=hostile,
    finish=st.sampled_from(["stop", "length"]),
    choice=st.sampled_from(["required", "auto", "create_invoice"]),
    parallel=st.booleans(),
)
def test_any_text_is_read(dialect: Any, text: str, finish: FinishReason, choice: str, parallel: bool) -> None:
    """Nothing that a model sends raises; what is no call stays text, and every call has an id of its own."""
    reply = dialect.read(Reply(text, finish_reason=finish), replace(ASK, tool_choice=choice, parallel=parallel))
    assert len({call.id for call in reply.tool_calls}) == len(reply.tool_calls)
    assert all(isinstance(call.arguments, (str, dict, type(None))) for call in reply.tool_calls)
    if finish == "length":
        assert reply.finish_reason == "length"
    for call in reply.tool_calls:
        json.dumps(call.arguments)


@in_text
@settings(deadline=None)
@given(records=answers)
def test_an_answer_of_a_dialects_own_form_is_read_back(dialect: Any, records: Said) -> None:
    """What is shown of earlier calls is what would be read as those calls."""
    text = worded(dialect, records)
    assert sorted(said(dialect.read(Reply(text), ASK)), key=as_json) == sorted(records, key=as_json)


@in_text
@settings(deadline=None)
@given(records=answers, data=st.data())
def test_a_cut_answer_gives_the_first_of_its_calls(dialect: Any, records: Said, data: st.DataObject) -> None:
    """Wherever the cut went through: whole records, in order, none changed, none invented."""
    text = worded(dialect, records)
    check_prefix(dialect, text, data)


shapes = st.sampled_from(["list", "calls", "pretty", "fence", "apart", "written"])


@pytest.mark.parametrize("dialect", [tools, prompted, json_schema], ids=lambda one: one.__name__)
@settings(deadline=None)
@given(records=answers, shape=shapes, data=st.data())
def test_a_cut_answer_of_any_shape_gives_the_first_of_its_calls(
    dialect: Any, records: Said, shape: str, data: st.DataObject
) -> None:
    """Lists, calls, fences, objects one after another."""
    called = [{"name": name, "arguments": value} for name, value in records]
    bare = [value for _, value in records]
    text = {
        "list": as_json(bare),
        "calls": as_json(called),
        "pretty": json.dumps(called, indent=2),
        "fence": f"Here {{you}} are:\n```json\n{as_json(bare)}\n```\nThat is all.",
        "apart": "\n".join(map(as_json, bare)),
        "written": "".join(f"<tool_call>{as_json(one)}</tool_call>" for one in called),
    }[shape]
    check_prefix(dialect, text, data)


def check_prefix(dialect: Any, text: str, data: st.DataObject) -> None:
    """A cut anywhere in a text leaves calls that begin the whole answer's, ids and all."""
    whole = dialect.read(Reply(text), ASK).tool_calls
    cut = data.draw(st.integers(0, len(text)), label="cut")
    reply = dialect.read(Reply(text[:cut], finish_reason="length"), ASK)
    assert reply.finish_reason == "length"
    assert reply.tool_calls == whole[: len(reply.tool_calls)]
    assert NOTHING_TO_EXTRACT.name not in {call.name for call in reply.tool_calls}


FLOODS = [
    *"{[`<\"\\&\n* ", '{"a":', '{"a":[', '{"invoice_number":"1"},', '["a" ', '{"\\"', "<!--", "<![CDATA[", "<a ",
    "<item>",
    "<create_invoice>", "<create_invoice><total>", "<create_invoice><total><!--</total></create_invoice>", "\nAction:",
    '\nAction: x\nAction Input: {"a', '\nAction: x\nAction Input: "', '\nAction: x\nAction Input: {"a":"\\"', "\n   ",
    "&#1",
    "\nThought:", "\nFinal Answer:", "\nObservation:", "<create_invoice><total>" + "<b>" * 1000,
    '{"create_invoice": ["{',
]  # fmt: skip


@every
@pytest.mark.parametrize("piece", FLOODS)
def test_a_flood_is_read_in_one_pass(dialect: Any, piece: str) -> None:
    """A quarter of a megabyte of one piece comes to an end; read again from every bracket, it would not."""
    text = piece * (250_000 // len(piece))
    for finish in ("stop", "length"):
        dialect.read(Reply(text, finish_reason=finish), ASK)
