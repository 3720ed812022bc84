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
    assert isinstance(turn(flow, reply(ONE), "total: first"), Ask)
    assert isinstance(turn(flow, reply(TWO), "total: second"), Ask)
    outcome = turn(flow, reply(THREE), "total: third\nnet: third")
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


def test_complete_calls_of_a_cut_reply_are_run() -> None:
    """The complete calls of a cut-off reply are run and kept; the model is told where it stopped (L31, L33)."""
    flow, first = begin(max_attempts=4)
    ask = turn(flow, reply(ONE, TWO, ToolCall("c", "create_invoice", '{"number": "3", "da'), cut=True), OK, OK)
    one, two, broken = ask.messages[-2].tool_results
    assert (one.verdict, two.verdict, broken.verdict) == (OK, OK, Verdict.REJECTED)
    assert broken.content == "not run: the answer was cut off before it was complete"
    assert ask.messages[-1].content == (
        "Your answer was cut off after 2 records. What was accepted is kept: do not send it again. Go on by calling "
        "create_invoice, create_note for the records that are still missing, or call nothing_to_extract if there are "
        "none."
    )
    assert ask.sampling.max_tokens == 2 * first.sampling.max_tokens
    outcome = turn(flow, reply(TWO, THREE), OK)
    assert (outcome.status, len(outcome.attempts)) == (Status.DONE, 2)
    assert outcome.records == (ONE.arguments, TWO.arguments, THREE.arguments)
    assert outcome.transcript[-1].tool_results[0].verdict is Verdict.STANDS


def test_the_cap_is_doubled_once() -> None:
    """Where nothing of a cut reply is complete the model is told so, and the cap is doubled only once (row 8)."""
    flow, first = begin(max_attempts=4)
    ask = send(flow, reply(text="Invoice 1", cut=True))
    assert ask.messages[-1].content.startswith("Your answer was cut off before its first record was complete")
    again = send(flow, reply(text="Invoi", cut=True))
    assert again.sampling.max_tokens == ask.sampling.max_tokens == 2 * first.sampling.max_tokens
    assert turn(flow, reply(ONE), OK).records == (ONE.arguments,)


@pytest.mark.parametrize("arguments", ["", None, "{}", '{"number": "3"', "[1]", '{"number": "3"}}'])
def test_the_last_call_of_a_cut_reply(arguments: Any) -> None:
    """The last call of a cut reply runs only when its arguments are one whole object that says something."""
    flow, _ = begin()
    calls = send(flow, reply(ONE, ToolCall("c", "create_invoice", arguments), cut=True))
    assert calls.positions == ((0, 1) if arguments == "{}" else (0,))


def test_cut_to_the_end() -> None:
    """Cut replies spend attempts; records are kept, and the outcome says that others may be missing."""
    flow, _ = begin(max_attempts=1)
    outcome = turn(flow, reply(ONE, cut=True), OK)
    assert (outcome.status, outcome.records) == (Status.EXHAUSTED, (ONE.arguments,))
    assert outcome.error == (
        "after 1 attempts: the answer was cut off before it was complete; records may be missing, since an answer was "
        "cut off"
    )


def test_text_after_a_cut_reply_is_not_the_end() -> None:
    """After a cut reply nothing is settled by silence: text is none, "there are none left" is said by a call."""
    flow, _ = begin(max_attempts=4)
    turn(flow, reply(ONE, cut=True), OK)
    ask = send(flow, reply(text="That was all."))
    assert ask.messages[-1].content.startswith("Your answer called no function.")
    outcome = send(flow, reply(call("nothing_to_extract", reason="that was all")))
    assert (outcome.status, outcome.records, outcome.error) == (Status.DONE, (ONE.arguments,), "")


def test_a_repetition_after_a_cut_reply_is_an_end() -> None:
    """A whole reply that repeats what stands says that nothing is missing."""
    flow, _ = begin()
    turn(flow, reply(ONE, TWO, cut=True), OK, OK)
    assert send(flow, reply(ONE, TWO)).status is Status.DONE


def test_an_answer_that_repeats_ends_the_turn() -> None:
    """The same answer once more ends the model's turn: with one model the document is exhausted, and says why."""
    flow, _ = begin(max_attempts=5)
    turn(flow, reply(ONE, TWO), OK, BAD)
    calls = send(flow, reply(ONE, TWO))
    assert calls.is_last
    outcome = send(flow, results(calls, BAD))
    assert (outcome.status, outcome.records, len(outcome.attempts)) == (Status.EXHAUSTED, (ONE.arguments,), 2)
    assert outcome.error == f"after 2 attempts, the last of which repeats the one before: {BAD}"


def test_a_repetition_is_put_to_the_next_model() -> None:
    """Where another model is left it goes on, and a repetition of what the first one said is its own first word."""
    flow, _ = begin(max_attempts=5, ranks=2)
    turn(flow, reply(TWO), BAD)
    calls = send(flow, reply(TWO))
    assert not calls.is_last
    assert send(flow, results(calls, BAD)).rank == 1
    assert turn(flow, reply(TWO), BAD).rank == 1
    assert turn(flow, reply(TWO_MENDED), OK).status is Status.DONE


@pytest.mark.parametrize("second", [reply(ONE, TWO, THREE), reply(THREE), reply(ONE), reply(text="hm")])
def test_what_is_no_repetition(second: Reply) -> None:
    """A new record beside the old error, another record, silence about it, text: none of them repeats the answer."""
    flow, _ = begin(max_attempts=5)
    turn(flow, reply(ONE, TWO), OK, BAD)
    effect = send(flow, second)
    if not isinstance(effect, Ask):
        effect = send(flow, results(effect, *[BAD] * len(effect.calls)))
    assert effect.rank == 0


def test_silence_that_repeats() -> None:
    """The same text twice, and the same standing record twice while another is open, are repetitions too."""
    flow, _ = begin(max_attempts=5)
    send(flow, reply(text="Here you are"))
    assert send(flow, reply(text="Here you are")).status is Status.EXHAUSTED
    flow, _ = begin(max_attempts=5)
    turn(flow, reply(ONE, TWO), OK, BAD)
    assert isinstance(send(flow, reply(ONE)), Ask)
    assert send(flow, reply(ONE)).status is Status.EXHAUSTED


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
    turn(flow, reply(ONE), BAD)
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
