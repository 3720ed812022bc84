"""The loop, driven by hand: what is sent in is a reply, what comes out is the next effect or the outcome."""

from __future__ import annotations

import ast
import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from by_hand import BAD, DOCUMENT, INVOICE, NOTE, OK, ONE, THREE, TWO, TWO_MENDED, begin, results, send, turn

from extractor import chain
from extractor.chain import opening, until_success
from extractor.conversation import Rules
from extractor.messages import (
    NOTHING_TO_EXTRACT,
    Ask,
    Message,
    Reply,
    ToolCall,
    ToolResult,
    Unanswered,
    Verdict,
)
from extractor.outcome import Outcome, Status
from extractor.testing import call, reply, shown


def test_one_good_call_is_done() -> None:
    """One accepted call ends the loop with its native object as the record."""
    flow, ask = begin()
    assert ask.messages == DOCUMENT
    assert ask.offers == (INVOICE, NOTE, NOTHING_TO_EXTRACT)
    outcome = turn(flow, reply(ONE), OK)
    assert outcome.status is Status.DONE
    assert outcome.record == outcome.processed_content == ONE.arguments
    assert outcome.error == ""


def test_fails_once_then_ok() -> None:
    """A call that fails once and is then mended takes two asks, and the transcript ends in a good result (row 1)."""
    flow, _ = begin()
    ask = turn(flow, reply(TWO), BAD)
    assert ask.messages[-1].tool_results[0].content == BAD
    outcome = turn(flow, reply(TWO_MENDED), OK)
    assert (outcome.status, len(outcome.attempts)) == (Status.DONE, 2)
    assert outcome.transcript[-1].role == "tool"
    assert not outcome.transcript[-1].tool_results[0].is_error


def test_always_fails() -> None:
    """With a limit of three there are exactly three asks, and every attempt keeps its error text (row 2)."""
    flow, _ = begin(max_attempts=3)
    assert isinstance(turn(flow, reply(TWO), "total: first"), Ask)
    assert isinstance(turn(flow, reply(TWO), "total: second"), Ask)
    outcome = turn(flow, reply(TWO), "total: third\nnet: third")
    assert outcome.status is Status.EXHAUSTED
    assert [attempt.errors for attempt in outcome.attempts] == [
        ("total: first",),
        ("total: second",),
        ("total: third\nnet: third",),
    ]
    assert outcome.error == "after 3 attempts: total: third net: third"
    assert outcome.records == ()


def test_limit_of_one() -> None:
    """With a limit of one a failing call ends the loop after one ask (row 3)."""
    flow, _ = begin(max_attempts=1)
    assert turn(flow, reply(TWO), BAD).status is Status.EXHAUSTED


@pytest.mark.parametrize("limits", [0, -1, (1, 0)])
def test_limit_of_zero(limits: Any) -> None:
    """A limit of zero is an error before anything is asked (row 3)."""
    with pytest.raises(ValueError, match="at least 1"):
        Rules(max_attempts=limits, ranks=2 if isinstance(limits, tuple) else 1)


def test_plain_text_is_a_failed_attempt() -> None:
    """Text without a call is a failed attempt, and the model is told which functions there are (row 7)."""
    flow, _ = begin(max_attempts=2)
    ask = send(flow, reply(text="Here is your invoice: ..."))
    assert ask.messages[-1].content == "Your answer called no function. Answer by calling create_invoice, create_note."
    outcome = send(flow, reply(text="As I said"))
    assert outcome.status is Status.EXHAUSTED
    assert [attempt.errors for attempt in outcome.attempts] == [("no function was called",)] * 2
    assert outcome.error == "after 2 attempts: no function was called"


def test_plain_text_for_chat() -> None:
    """With ``text_is_an_answer`` text ends the loop well (row 7, opt-out)."""
    flow, _ = begin(text_is_an_answer=True)
    outcome = send(flow, reply(text="Good morning"))
    assert (outcome.status, outcome.records) == (Status.DONE, ())
    assert outcome.attempts[0].errors == ()


@pytest.mark.parametrize("answer", [reply(text="  "), reply(text="Good mor", cut=True)])
def test_no_text_is_no_answer(answer: Reply) -> None:
    """In chat use an empty or a cut text is still a failed attempt."""
    flow, _ = begin(text_is_an_answer=True)
    assert isinstance(send(flow, answer), Ask)


def test_cut_reply_runs_nothing() -> None:
    """Nothing of a reply that was cut off is run; the model is told, and the cap is doubled once (row 8)."""
    flow, first = begin(max_attempts=4)
    ask = send(flow, reply(ONE, TWO, cut=True))
    assert [one.content.partition(":")[0] for one in ask.messages[-2].tool_results] == ["not run", "not run"]
    assert "cut off" in ask.messages[-1].content
    assert ask.sampling.max_tokens == 2 * first.sampling.max_tokens
    again = send(flow, reply(text="Invoi", cut=True))
    assert again.messages[-1].content.startswith("Your answer was cut off")
    assert again.sampling.max_tokens == 2 * first.sampling.max_tokens
    assert turn(flow, reply(ONE), OK).records == (ONE.arguments,)


def test_cut_to_the_end() -> None:
    """Cut replies spend attempts, and the outcome says what was wrong."""
    flow, _ = begin(max_attempts=1)
    outcome = send(flow, reply(ONE, cut=True))
    assert outcome.status is Status.EXHAUSTED
    assert outcome.error == "after 1 attempts: the answer was cut off before it was complete"


@pytest.mark.parametrize("arguments", [None, "", "{}", {}, "null"])
def test_no_arguments(arguments: Any) -> None:
    """Null, empty and ``{}`` are the same call of a function without parameters (row 10)."""
    flow, _ = begin()
    turn(flow, reply(ToolCall("", "create_note", arguments), TWO), OK, BAD)
    calls = send(flow, reply(call("create_note"), TWO_MENDED))
    assert calls.positions == (1,)


@pytest.mark.parametrize("arguments", ['[{"total": "1.00"}]', '"1.00"', '{"total": '])
def test_arguments_that_are_no_object(arguments: str) -> None:
    """A JSON array, a bare string and broken JSON are handed on as sent, and a good call closes them (row 11)."""
    flow, _ = begin()
    calls = send(flow, reply(ToolCall("a", "create_invoice", arguments)))
    assert calls.calls[0].arguments == arguments
    send(flow, results(calls, "the arguments are no JSON object"))
    assert turn(flow, reply(ONE), OK).status is Status.DONE


def test_result_is_taken_as_it_is() -> None:
    """The function's result reaches the outcome untouched, native object and all (row 16)."""
    flow, _ = begin()
    native = object()
    calls = send(flow, reply(ONE))
    result = ToolResult(calls.calls[0].id, "create_invoice", "SUCCESS", processed_content=native)
    outcome = send(flow, (result,))
    assert outcome.results == (result,)
    assert outcome.record is native


def test_results_stand_in_call_order() -> None:
    """Several calls get one tool message with a result for each, in call order, matched by id (row 17)."""
    flow, _ = begin()
    turn(flow, reply(ONE, TWO), OK, BAD)
    outcome = turn(flow, reply(TWO_MENDED, ONE, THREE), OK, OK)
    said, answered = outcome.transcript[-2:]
    assert answered.role == "tool"
    assert [one.call_id for one in answered.tool_results] == [one.id for one in said.tool_calls]
    assert [one.verdict for one in answered.tool_results] == [OK, Verdict.STANDS, OK]


@pytest.mark.parametrize("wrong", [(), (1, 0), (0, 0), (0, 1, 1)])
def test_driver_answers_every_call(wrong: tuple[int, ...]) -> None:
    """A driver that leaves out, repeats or shuffles results is told so at once."""
    flow, _ = begin()
    right = results(send(flow, reply(ONE, TWO)), OK, OK)
    with pytest.raises(ValueError, match="every call once, in call order"):
        flow.send(tuple(right[place] for place in wrong))


def test_wrong_answers_to_effects() -> None:
    """An ask that is answered with results, or calls with a reply, is a plain TypeError."""
    flow, _ = begin()
    with pytest.raises(TypeError, match="Ask is answered"):
        flow.send(())
    flow, _ = begin()
    send(flow, reply(ONE))
    with pytest.raises(TypeError, match="one ToolResult each"):
        flow.send(reply(ONE))


def test_native_objects_are_never_shown() -> None:
    """What a function returned is never part of what the next question shows (row 19)."""
    flow, _ = begin()
    ask = turn(flow, reply(call("create_note", secret="s3cret"), TWO), OK, BAD)
    assert "s3cret" not in shown(ask)
    assert ask.messages[-1].tool_results[0].processed_content is not None


def test_second_run_counts_anew() -> None:
    """A second run over the same transcript has all of its attempts again (rows 20, 27)."""
    flow, _ = begin(max_attempts=2)
    turn(flow, reply(TWO), BAD)
    outcome = turn(flow, reply(TWO), BAD)
    state = opening((*outcome.transcript, Message("user", "Once more")), (INVOICE,), Rules(max_attempts=2))
    flow = until_success(state)
    assert next(flow).messages[-1].content == "Once more"  # type: ignore[union-attr]
    assert isinstance(turn(flow, reply(TWO), BAD), Ask)
    assert turn(flow, reply(TWO_MENDED), OK).status is Status.DONE


def test_every_call_has_its_result_at_the_end() -> None:
    """After the last attempt every call has a result, so that the chain can go on (row 27)."""
    flow, _ = begin(max_attempts=2)
    turn(flow, reply(ONE, TWO), OK, BAD)
    outcome = turn(flow, reply(TWO, ONE, replace(THREE, name="nope")), BAD, "no such function")
    asked = [one.id for message in outcome.transcript for one in message.tool_calls]
    told = [one.call_id for message in outcome.transcript for one in message.tool_results]
    assert asked == told


def test_a_bug_in_a_function() -> None:
    """A bug in a function fails the document with its traceback; nothing more is asked, and the other call is kept."""
    flow, _ = begin()
    calls = send(flow, reply(ONE, TWO))
    good, _ = results(calls, OK, OK)
    bug = ToolResult(calls.calls[1].id, "create_invoice", "", Verdict.FAILED, cause="Traceback ... KeyError: 'x'")
    outcome = send(flow, (good, bug))
    assert (outcome.status, outcome.records) == (Status.FAILED, (ONE.arguments,))
    assert outcome.cause == "Traceback ... KeyError: 'x'"
    assert "create_invoice" in outcome.error
    assert "KeyError" not in outcome.error


def test_duplicates() -> None:
    """All duplicate is ``duplicate``; beside an accepted one it is ``done``; nobody is asked to mend either."""
    flow, _ = begin()
    outcome = turn(flow, reply(ONE), Verdict.DUPLICATE)
    assert (outcome.status, outcome.records) == (Status.DUPLICATE, (ONE.arguments,))
    flow, _ = begin()
    assert turn(flow, reply(ONE, TWO), Verdict.DUPLICATE, OK).status is Status.DONE


def test_flags_of_functions_are_gathered() -> None:
    """Remarks for people reach the outcome, each once."""
    flow, _ = begin()
    calls = send(flow, reply(ONE, TWO))
    outcome = send(flow, tuple(replace(one, flags=("differs from row 7",)) for one in results(calls, OK, OK)))
    assert outcome.flags == ("differs from row 7",)


def test_replies_are_numbered() -> None:
    """A call is named by the number of its reply and its place in it, whatever came between."""
    flow, _ = begin(ranks=2)
    send(flow, reply(text="hm"))
    send(flow, Unanswered("timeout", "x"))
    calls = send(flow, reply(ONE, call("nothing_to_extract", reason="y"), TWO))
    assert (calls.reply, calls.positions) == (1, (0, 2))


def test_hostile_arguments() -> None:
    """Deep nesting, huge numbers, lone surrogates and NaN neither break the loop nor the matching."""
    deep = '{"a":' + "[" * 900 + "]" * 900 + "}"
    hostile = [
        deep,
        '{"a":' + "[" * 100_000,
        '{"a":' + "9" * 10_000 + "}",
        '{"a":"\\ud800"}',
        '{"a":NaN}',
        '{"a":1,"a":2}',
    ]
    flow, _ = begin(max_attempts=2)
    calls = reply(*(ToolCall("", "create_invoice", one) for one in hostile))
    ask = turn(flow, calls, OK, *["bad"] * 5)
    assert isinstance(ask, Ask)
    sent = send(flow, calls)
    assert sent.positions == (1, 2, 3, 4, 5)
    outcome: Outcome = send(flow, results(sent, *[OK] * 5))
    assert outcome.status is Status.DONE


def test_the_loop_reads_on_one_screen() -> None:
    """The loop is at most forty lines, and its file knows no vendor, database, command line or event loop."""
    assert len(inspect.getsource(until_success).splitlines()) <= 40
    tree = ast.parse(Path(inspect.getfile(chain)).read_text(encoding="utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    ours = {"attempts", "conversation", "messages", "outcome", "verdicts"}
    assert imported <= {"__future__", "collections.abc", "dataclasses", *(f"extractor.{name}" for name in ours)}
