"""ReAct: actions, observations, final answers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from dialect_samples import ASK, DOCUMENT, INVOICE, ONE, TWO, as_json, calls, invoices, said

from extractor.dialects import react
from extractor.messages import Ask, Message, Reply, ToolCall, ToolResult, Verdict

ACTION = f"Action: create_invoice\nAction Input: {as_json(ONE)}"


@pytest.mark.parametrize(
    "text",
    [
        f"Thought: one invoice\n{ACTION}",
        f"{ACTION}\n",
        f"**Thought:** one\n**Action:** `create_invoice`\n**Action Input:** ```json\n{as_json(ONE)}\n```",
        f'action: "create_invoice"\naction_input: {as_json(as_json(ONE))}',
        f"Action: create_invoice\nAction Input: '{as_json(ONE)}'",
        f"Action: create_invoice({as_json(ONE)})",
        f"Action: create_invoice\n{as_json(ONE)}",
        f'Action:\n```json\n{{"action": "create_invoice", "action_input": {as_json(ONE)}}}\n```',
        f"Final Answer: {as_json(ONE)}",
        f"Thought: it is this.\n{as_json({'name': 'create_invoice', 'arguments': ONE})}",
    ],
)
def test_an_action_is_a_call(text: str) -> None:
    """Labels in bold, input bare, in quotes or in a fence: one call, its input as an object."""
    assert calls(react, text) == invoices(ONE)


def test_the_thought_is_kept_as_text() -> None:
    """It is shown again in the next ask, before the action that it led to."""
    reply = react.read(Reply(f"Thought: one invoice\n{ACTION}"), ASK)
    assert reply.content == "one invoice"
    assert react.word(replace(ASK, messages=(*DOCUMENT, reply.as_message()))).messages[-1].content == (
        f"Thought: one invoice\n{ACTION}"
    )


def test_several_actions_of_one_reply_are_several_calls() -> None:
    """In their order; a list of objects is one call for each."""
    two = f"Action: create_invoice\nAction Input: {as_json(TWO)}"
    assert calls(react, f"Thought: two\n{ACTION}\nThought: next\n{two}") == invoices(ONE, TWO)
    assert calls(react, f"Action: create_invoice\nAction Input: {as_json([ONE, TWO])}") == invoices(ONE, TWO)


def test_what_follows_an_invented_observation_is_dropped() -> None:
    """The host alone observes; a final answer behind the invention counts for nothing."""
    reply = react.read(Reply(f"{ACTION}\nObservation: SUCCESS\nThought: done\nFinal Answer: recorded"), ASK)
    assert (said(reply), reply.finish_reason) == (invoices(ONE), "stop")
    assert calls(react, f"Thought: hm\nObservation: none\n{ACTION}") == []


def test_actions_behind_an_invented_observation_are_asked_again() -> None:
    """They are not run, and the reply counts as cut off there, so that no record is lost without a word."""
    reply = react.read(
        Reply(f"{ACTION}\nObservation: SUCCESS\nAction: create_invoice\nAction Input: {as_json(TWO)}"), ASK
    )
    assert (said(reply), reply.finish_reason) == (invoices(ONE), "length")


def test_labels_inside_an_input_are_text() -> None:
    """A document that prints them cannot end an action."""
    record = {**ONE, "total": "\nObservation: x\nAction: create_invoice"}
    assert calls(react, f"Action: create_invoice\nAction Input: {as_json(record)}") == invoices(record)
    raw = as_json(record).replace("\\n", "\n")
    assert calls(react, f"Action: create_invoice\nAction Input: {raw}") == invoices(record)


@pytest.mark.parametrize("text", ["", "I see an invoice.", "Thought: I see an invoice.", "Observation: SUCCESS"])
def test_neither_action_nor_final_answer_is_no_call(text: str) -> None:
    """The loop feeds the error of form back."""
    assert calls(react, text) == []


def test_an_action_that_is_not_in_the_list_is_a_call() -> None:
    """The model is told which functions there are."""
    assert calls(react, f"Action: record_it\nAction Input: {as_json(ONE)}") == [("record_it", ONE)]


def test_an_action_without_input_is_a_call_without_arguments() -> None:
    """The model is told what is missing."""
    assert calls(react, "Action: create_invoice\nThought: hm") == [("create_invoice", None)]
    assert calls(react, "Action: create_invoice\nFinal Answer: done") == [("create_invoice", None)]


def test_broken_input_is_the_text_as_it_stands() -> None:
    """Up to the next label, so that the error can be told."""
    text = f'Action: create_invoice\nAction Input: {{"total": "1" "x"}}\n{ACTION}'
    assert calls(react, text) == [("create_invoice", '{"total": "1" "x"}'), *invoices(ONE)]


def test_plain_input_is_the_one_text_that_a_function_takes() -> None:
    """The reason of ``nothing_to_extract`` needs no JSON; of a function with several fields it stays text."""
    text = "Action: nothing_to_extract\nAction Input: no invoice here"
    assert calls(react, text) == [("nothing_to_extract", {"reason": "no invoice here"})]
    assert calls(react, "Action: create_invoice\nAction Input: A-1") == [("create_invoice", "A-1")]


def test_a_final_answer_without_any_action_says_that_there_is_nothing() -> None:
    """Its text is the reason; no action, written out, is none."""
    assert calls(react, "Thought: a letter\nFinal Answer: no\ninvoice") == [
        ("nothing_to_extract", {"reason": "no invoice"})
    ]
    assert calls(react, "Action: None\nFinal Answer:") == [("nothing_to_extract", {"reason": "no reason given"})]


def test_a_final_answer_closes_no_obligation() -> None:
    """Once a call was made, what is open has to be mended or given up by name: the text is fed back."""
    earlier = (
        Message("assistant", "", (ToolCall("1", "create_invoice", as_json(ONE)),)),
        Message("tool", tool_results=(ToolResult("1", "create_invoice", "total: is wrong", Verdict.REJECTED),)),
    )
    reply = react.read(Reply("Final Answer: all done"), replace(ASK, messages=(*DOCUMENT, *earlier)))
    assert (reply.tool_calls, reply.content) == ((), "all done")


def test_where_text_is_an_answer_the_final_answer_is_that_text() -> None:
    """Chat use: the label is taken off, an invented observation too."""
    chat = replace(ASK, tool_choice="auto")
    reply = react.read(Reply("Thought: easy\nFinal Answer: 12 euros\nObservation: x"), chat)
    assert (reply.content, reply.tool_calls) == ("12 euros", ())
    assert react.read(Reply("Hello."), chat) == Reply("Hello.")


@pytest.mark.parametrize(
    "text", [ACTION[:-1], "Action: create_inv", "Action: nothing_to_extract\nAction Input: no", "Final Answer: no"]
)
def test_a_cut_reply_has_no_half_action(text: str) -> None:
    """Only an action whose input is whole is run; a final answer that was cut says nothing."""
    assert calls(react, text, finish="length") == []
    assert calls(react, f"{ACTION}\n{text}", finish="length") == invoices(ONE)


def test_results_are_observations_of_the_host() -> None:
    """One for each call, in call order; the number is left out where there is only one."""
    turn = Message("assistant", "", (ToolCall("1", "create_invoice", ONE), ToolCall("2", "create_invoice", "{")))
    good, bad = ToolResult("1", "create_invoice", "SUCCESS"), ToolResult("2", "create_invoice", "not valid JSON")
    asked = react.word(replace(ASK, messages=(*DOCUMENT, turn, Message("tool", tool_results=(good, bad)))))
    assert asked.messages[-2].content == f"{ACTION}\nAction: create_invoice\nAction Input: {{"
    assert asked.messages[-1] == Message(
        "user", "Observation: create_invoice 1: SUCCESS\nObservation: create_invoice 2: not valid JSON"
    )
    alone = react.word(replace(ASK, messages=(*DOCUMENT, turn, Message("tool", tool_results=(bad,)))))
    assert alone.messages[-1].content == "Observation: not valid JSON"


def test_the_form_and_the_closed_list_stand_in_the_prompt() -> None:
    """With the schema of each function, after the document."""
    asked = react.word(ASK)
    rest = asked.messages[-1].content.partition("</document>")[2]
    assert "The actions are create_invoice, create_receipt, nothing_to_extract. " in rest
    assert rest.endswith("Thought: …\nAction: create_invoice\nAction Input: {…}")
    assert as_json(INVOICE.parameters) in rest
    assert (asked.offers, asked.schema) == ((), None)
    assert react.word(Ask(DOCUMENT)).messages == DOCUMENT
