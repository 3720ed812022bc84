"""The loop, driven by hand: what is sent in is a reply, what comes out is the next effect or the outcome."""

from __future__ import annotations

import ast
import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from extractor import chain
from extractor.attempts import NextModel, Plan, Stop, reask
from extractor.chain import Flow, opening, until_success
from extractor.conversation import Conversation, Rules
from extractor.errors import OutcomeError
from extractor.messages import (
    NOTHING_TO_EXTRACT,
    Ask,
    Calls,
    Message,
    Offer,
    Reply,
    Sampling,
    ToolCall,
    ToolResult,
    Unanswered,
    UnansweredKind,
    Usage,
    Verdict,
)
from extractor.outcome import Outcome, Status
from extractor.testing import call, reply, shown

INVOICE = Offer("create_invoice", "Record one invoice.", {"type": "object"})
NOTE = Offer("create_note", "Record one credit note.", {"type": "object"})
DOCUMENT = (Message("system", "Extract."), Message("user", "Invoice 1 and invoice 2"))

ONE = call("create_invoice", number="1", date="2024-01-01", net="8.00", total="10.00")
TWO = call("create_invoice", number="2", date="2024-02-01", net="16.00", total="21.00")
TWO_MENDED = call("create_invoice", number="2", date="2024-02-01", net="16.00", total="20.00")
THREE = call("create_invoice", number="3", date="2024-03-01", net="24.00", total="30.00")

BAD = "total: 21.00 is not net + tax"


def begin(*, offers: tuple[Offer, ...] = (INVOICE, NOTE), **rules: Any) -> tuple[Flow, Ask]:
    flow = until_success(opening(DOCUMENT, offers, Rules(**rules)))
    ask = next(flow)
    assert isinstance(ask, Ask)
    return flow, ask


def send(flow: Flow, answer: Reply | Unanswered | tuple[ToolResult, ...]) -> Any:
    try:
        return flow.send(answer)
    except StopIteration as end:
        return end.value


def results(calls: Calls, *texts: str | Verdict) -> tuple[ToolResult, ...]:
    """One result for each call: a text rejects it with that text, a verdict is the verdict."""
    assert isinstance(calls, Calls)
    assert len(calls.calls) == len(texts), f"{len(calls.calls)} calls to run, not {len(texts)}"
    return tuple(
        ToolResult(one.id, one.name, str(text), text, processed_content=one.arguments)
        if isinstance(text, Verdict)
        else ToolResult(one.id, one.name, text, Verdict.REJECTED)
        for one, text in zip(calls.calls, texts, strict=True)
    )


def turn(flow: Flow, answer: Reply, *texts: str | Verdict) -> Any:
    """Send a reply, and the result of each of its calls that are to run."""
    return send(flow, results(send(flow, answer), *texts))


OK = Verdict.ACCEPTED


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


def test_limits_fit_the_models() -> None:
    """One limit for each model, no more and no fewer."""
    with pytest.raises(ValueError, match="2 limits for 1 models"):
        Rules(max_attempts=(1, 2))


def test_both_sent_again() -> None:
    """Of two calls one fails; both sent again: the good one is not run again, and both records are kept (4, 6)."""
    flow, _ = begin()
    turn(flow, reply(ONE, TWO), OK, BAD)
    calls = send(flow, reply(ONE, TWO_MENDED))
    assert (calls.positions, calls.reply) == ((1,), 1)
    outcome = send(flow, results(calls, OK))
    assert outcome.status is Status.DONE
    assert outcome.records == (ONE.arguments, TWO_MENDED.arguments)
    first, second = outcome.transcript[-1].tool_results
    assert (first.verdict, second.verdict) == (Verdict.STANDS, OK)
    assert first.content.startswith("stands")
    assert outcome.flags == ()


def test_only_the_failed_one_sent_again() -> None:
    """Of two calls one fails; it alone is sent again: both records are kept (row 5)."""
    flow, _ = begin()
    turn(flow, reply(ONE, TWO), OK, BAD)
    outcome = turn(flow, reply(TWO_MENDED), OK)
    assert outcome.status is Status.DONE
    assert outcome.records == (ONE.arguments, TWO_MENDED.arguments)


def test_only_the_good_one_sent_again() -> None:
    """Of two calls one fails; the good one alone is sent again: not done, and the model hears what is open (6a)."""
    flow, _ = begin(max_attempts=2)
    turn(flow, reply(ONE, TWO), OK, BAD)
    outcome = send(flow, reply(ONE))
    assert outcome.status is Status.EXHAUSTED
    assert outcome.records == (ONE.arguments,)
    assert f"Still to be mended: create_invoice (call 2): {BAD}" in outcome.transcript[-1].content
    assert NOTHING_TO_EXTRACT.name in outcome.transcript[-1].content


def test_the_open_one_is_mended_later() -> None:
    """An obligation that a reply was silent about is closed by a later one."""
    flow, _ = begin()
    turn(flow, reply(ONE, TWO), OK, BAD)
    assert isinstance(send(flow, reply(ONE)), Ask)
    assert turn(flow, reply(TWO_MENDED), OK).status is Status.DONE


def test_silence_is_noticed_behind_an_equal_error() -> None:
    """Two calls with one and the same error: when one of them is sent again, the other is asked for by name."""
    flow, _ = begin()
    turn(flow, reply(TWO, THREE), "due: missing", "due: missing")
    ask = turn(flow, reply(TWO_MENDED), "due: missing")
    assert "Still to be mended: create_invoice (call 2): due: missing" in ask.messages[-1].content
    assert "(call 1)" not in ask.messages[-1].content


def test_two_equal_calls_in_one_reply() -> None:
    """Two equal calls within one reply are two records: identical lines are legal (6b)."""
    flow, _ = begin()
    outcome = turn(flow, reply(ONE, ONE), OK, OK)
    assert outcome.status is Status.DONE
    assert len(outcome.records) == 2
    with pytest.raises(OutcomeError, match="2 records"):
        _ = outcome.record


def test_two_equal_records_sent_again() -> None:
    """Two equal records that stand are both answered "stands" when they are sent again."""
    flow, _ = begin()
    turn(flow, reply(ONE, ONE, TWO), OK, OK, BAD)
    calls = send(flow, reply(ONE, ONE, TWO_MENDED))
    assert calls.positions == (2,)
    assert len(send(flow, results(calls, OK)).records) == 3


def test_amended_standing_record() -> None:
    """A changed version of a standing record is answered "stands" and flagged, and one record is kept (6b)."""
    flow, _ = begin()
    turn(flow, reply(ONE, TWO), OK, BAD)
    amended = call("create_invoice", number="1", date="2024-01-01", net="8.00", total="11.00")
    calls = send(flow, reply(amended, TWO_MENDED))
    assert calls.positions == (1,)
    outcome = send(flow, results(calls, OK))
    assert outcome.records == (ONE.arguments, TWO_MENDED.arguments)
    assert "changed version" in outcome.flags[0]
    assert outcome.transcript[-1].tool_results[0].content.startswith("stands")


def test_the_same_record_written_otherwise() -> None:
    """Another order of keys, a number for a text, a null that says nothing: the same record, and no flag."""
    flow, _ = begin()
    turn(flow, reply(call("create_invoice", number="1", lines=[{"price": "2"}]), TWO), OK, BAD)
    calls = send(flow, reply(call("create_invoice", lines=[{"price": 2}], number=1, note=None), TWO_MENDED))
    assert calls.positions == (1,)
    assert send(flow, results(calls, OK)).flags == ()


def test_three_calls_the_second_bad() -> None:
    """Of three records the second is bad: one and three are kept, and only two runs again."""
    flow, _ = begin()
    turn(flow, reply(ONE, TWO, THREE), OK, BAD, OK)
    calls = send(flow, reply(TWO_MENDED))
    assert calls.calls[0].arguments == TWO_MENDED.arguments
    outcome = send(flow, results(calls, OK))
    assert outcome.records == (ONE.arguments, THREE.arguments, TWO_MENDED.arguments)


def test_mended_and_a_forgotten_one() -> None:
    """The mended record and one that was forgotten before: both run, and all three are kept."""
    flow, _ = begin()
    turn(flow, reply(ONE, TWO), OK, BAD)
    outcome = turn(flow, reply(TWO_MENDED, THREE), OK, OK)
    assert outcome.status is Status.DONE
    assert len(outcome.records) == 3
    assert outcome.flags == ()


def test_forgotten_one_does_not_close_the_open_one() -> None:
    """A new record alone leaves the rejected one open: no obligation is closed by silence."""
    flow, _ = begin()
    turn(flow, reply(ONE, TWO), OK, BAD)
    ask = turn(flow, reply(THREE), OK)
    assert f"Still to be mended: create_invoice (call 2): {BAD}" in ask.messages[-1].content
    assert len(turn(flow, reply(TWO_MENDED), OK).records) == 3


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


def test_chat_closes_no_obligation() -> None:
    """In chat use text does not close an obligation either."""
    flow, _ = begin(text_is_an_answer=True, max_attempts=2)
    turn(flow, reply(TWO), BAD)
    outcome = send(flow, reply(text="It is done"))
    assert outcome.status is Status.EXHAUSTED
    assert "Still to be mended" in outcome.transcript[-1].content


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


def test_cut_reply_leaves_no_obligation() -> None:
    """A call of a cut reply was never judged: nobody has to mend it."""
    flow, _ = begin()
    send(flow, reply(ONE, TWO, cut=True))
    assert turn(flow, reply(ONE), OK).status is Status.DONE


def test_cut_to_the_end() -> None:
    """Cut replies spend attempts, and the outcome says what was wrong."""
    flow, _ = begin(max_attempts=1)
    outcome = send(flow, reply(ONE, cut=True))
    assert outcome.status is Status.EXHAUSTED
    assert outcome.error == "after 1 attempts: the answer was cut off before it was complete"


def test_cut_reply_closes_no_obligation() -> None:
    """``nothing_to_extract`` in a cut reply counts for nothing."""
    flow, _ = begin(max_attempts=2)
    turn(flow, reply(TWO), BAD)
    assert send(flow, reply(call("nothing_to_extract", reason="x"), cut=True)).status is Status.EXHAUSTED


def test_unknown_function_then_the_right_one() -> None:
    """An unknown name is that call's error, the other calls still run, and the right name closes it (row 9)."""
    flow, _ = begin()
    wrong = replace(TWO_MENDED, name="create_invoise")
    turn(flow, reply(ONE, wrong), OK, "there is no function 'create_invoise'; did you mean 'create_invoice'?")
    outcome = turn(flow, reply(TWO_MENDED), OK)
    assert outcome.status is Status.DONE
    assert len(outcome.records) == 2


def test_mended_under_a_wrong_name() -> None:
    """A mended call under a name that does not exist is still about its record: one obligation, not two."""
    flow, _ = begin()
    turn(flow, reply(TWO), BAD)
    turn(flow, reply(replace(TWO_MENDED, name="invoice")), "there is no function 'invoice'")
    assert turn(flow, reply(TWO_MENDED), OK).status is Status.DONE


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


def test_usage_is_summed() -> None:
    """Tokens of every ask are summed, failed and unanswered ones too (row 26)."""
    flow, _ = begin(ranks=2)
    turn(flow, reply(TWO, usage=Usage(10, 1, 4)), BAD)
    send(flow, reply(text="hm", usage=Usage(20, 2)))
    send(flow, Unanswered("timeout", "no answer in 300 s", usage=Usage(30, 0)))
    assert turn(flow, reply(TWO_MENDED, usage=Usage(40, 4)), OK).usage == Usage(100, 7, 4)


def test_fallback_takes_everything_along() -> None:
    """The next model gets the conversation, the standing records and attempts of its own (row 21)."""
    flow, _ = begin(max_attempts=2, ranks=2)
    turn(flow, reply(ONE, TWO), OK, BAD)
    ask = send(flow, Unanswered("rate_limited", "429 for 60 s", "first"))
    assert ask.rank == 1
    assert BAD in shown(ask)
    assert isinstance(turn(flow, reply(TWO), BAD), Ask)
    outcome = turn(flow, reply(TWO_MENDED), OK)
    assert outcome.status is Status.DONE
    assert outcome.records == (ONE.arguments, TWO_MENDED.arguments)
    assert [attempt.rank for attempt in outcome.attempts] == [0, 0, 1, 1]


def test_fallback_after_attempts() -> None:
    """When a model has spent its attempts the next one goes on, each by its own limit."""
    flow, ask = begin(max_attempts=(1, 2), ranks=2)
    ranks = [ask.rank]
    for _ in range(2):
        ask = turn(flow, reply(TWO), BAD)
        ranks.append(ask.rank)
    assert ranks == [0, 1, 1]
    assert turn(flow, reply(TWO), BAD).status is Status.EXHAUSTED


def test_all_causes_are_kept() -> None:
    """When no model answers, every cause is kept, and the document is not settled (row 21)."""
    flow, _ = begin(ranks=2)
    send(flow, Unanswered("unavailable", "503 for 60 s", "first"))
    outcome = send(flow, Unanswered("timeout", "no answer in 300 s", "second"))
    assert outcome.status is Status.FAILED
    assert not outcome.status.is_settled
    assert outcome.error == "second: no answer in 300 s; first: 503 for 60 s"
    assert outcome.unanswered.kind == "timeout"


@pytest.mark.parametrize("kind", ["unauthorized", "bad_request", "unknown_model"])
def test_fatal_is_returned_at_once(kind: UnansweredKind) -> None:
    """A wrong key or a bad request ends the loop at once, whatever models are left (row 22)."""
    flow, _ = begin(ranks=3)
    outcome = send(flow, Unanswered(kind, "401", "first"))
    assert outcome.status is Status.FAILED
    assert outcome.unanswered.is_fatal


def test_unanswered_spends_no_attempt() -> None:
    """An ask that nobody answered is no attempt of the model that comes next, nor of the last."""
    flow, _ = begin(max_attempts=1, ranks=2)
    send(flow, Unanswered("unavailable", "503"))
    assert turn(flow, reply(ONE), OK).status is Status.DONE


def test_refused_goes_to_the_next_model() -> None:
    """A refusal is put to the next model."""
    flow, _ = begin(ranks=2)
    assert send(flow, Unanswered("refused", "content filter")).rank == 1
    assert turn(flow, reply(ONE), OK).status is Status.DONE


def test_refused_by_the_last() -> None:
    """Refused by the last model is refused, and settled; with records it is exhausted, and they are kept."""
    flow, _ = begin()
    outcome = send(flow, Unanswered("refused", "content filter"))
    assert outcome.status is Status.REFUSED
    assert outcome.status.is_settled
    flow, _ = begin()
    turn(flow, reply(ONE, TWO), OK, BAD)
    outcome = send(flow, Unanswered("refused", "content filter", "first"))
    assert (outcome.status, outcome.records) == (Status.EXHAUSTED, (ONE.arguments,))
    assert outcome.error == f"first: content filter; after 1 attempts: {BAD}"


def test_transport_trouble_settles_nothing() -> None:
    """Records accepted before the provider went away are in the outcome, which is failed, to be taken up again."""
    flow, _ = begin()
    turn(flow, reply(ONE, TWO), OK, BAD)
    outcome = send(flow, Unanswered("unavailable", "503"))
    assert (outcome.status, outcome.records) == (Status.FAILED, (ONE.arguments,))


def test_nothing_to_extract_is_empty() -> None:
    """``nothing_to_extract`` in the first reply makes the document empty, with the reason."""
    flow, _ = begin()
    outcome = send(flow, reply(call("nothing_to_extract", reason="a cooking recipe")))
    assert (outcome.status, outcome.error, outcome.flags) == (Status.EMPTY, "a cooking recipe", ())
    assert outcome.transcript[-1].tool_results[0].verdict is Verdict.DROPPED


@pytest.mark.parametrize("arguments", ["{broken", None, "[]", '{"reason": null}', '{"reason": {"a": 1}}'])
def test_nothing_to_extract_with_any_arguments(arguments: str | None) -> None:
    """Whatever its arguments are, ``nothing_to_extract`` says what it says."""
    flow, _ = begin()
    outcome = send(flow, reply(ToolCall("1", "nothing_to_extract", arguments)))
    assert outcome.status is Status.EMPTY
    assert outcome.error


def test_dropped_and_flagged() -> None:
    """``nothing_to_extract`` after rejections drops each of them with a flag; what was accepted is kept."""
    flow, _ = begin()
    turn(flow, reply(ONE, TWO, THREE), OK, BAD, "number: missing")
    outcome = send(flow, reply(call("nothing_to_extract", reason="illegible")))
    assert (outcome.status, outcome.records) == (Status.DONE, (ONE.arguments,))
    assert outcome.flags == (
        f"create_invoice: given up by the model: {BAD}",
        "create_invoice: given up by the model: number: missing",
    )


def test_dropped_without_a_record_is_empty() -> None:
    """When all that was rejected is given up, the document is empty, and flagged."""
    flow, _ = begin()
    turn(flow, reply(TWO), BAD)
    outcome = send(flow, reply(call("nothing_to_extract", reason="no invoice after all")))
    assert outcome.status is Status.EMPTY
    assert len(outcome.flags) == 1


def test_nothing_beside_a_rejected_call() -> None:
    """``nothing_to_extract`` beside a call that is rejected does not drop it: the model had not heard of it yet."""
    flow, _ = begin(max_attempts=2)
    ask = turn(flow, reply(TWO, call("nothing_to_extract", reason="that is all")), BAD)
    assert isinstance(ask, Ask)
    assert ask.messages[-1].role == "tool"
    outcome = turn(flow, reply(TWO), BAD)
    assert outcome.status is Status.EXHAUSTED


def test_nothing_beside_a_call_rejected_again() -> None:
    """``nothing_to_extract`` drops what the reply is silent about, not what it tries again, and flags only that."""
    flow, _ = begin()
    turn(flow, reply(TWO, THREE), BAD, "number: missing")
    ask = turn(flow, reply(TWO, call("nothing_to_extract", reason="the other is none")), BAD)
    assert isinstance(ask, Ask)
    outcome = turn(flow, reply(TWO_MENDED), OK)
    assert outcome.status is Status.DONE
    assert outcome.flags == ("create_invoice: given up by the model: number: missing",)


def test_nothing_beside_an_accepted_call() -> None:
    """``nothing_to_extract`` beside an accepted call ("nothing more") changes nothing."""
    flow, _ = begin()
    outcome = turn(flow, reply(ONE, call("nothing_to_extract", reason="nothing more")), OK)
    assert (outcome.status, outcome.flags, outcome.error) == (Status.DONE, (), "")


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


def test_a_duplicate_closes_an_obligation_and_stands() -> None:
    """A mended call that turns out a duplicate closes its obligation, and is not run again."""
    flow, _ = begin()
    turn(flow, reply(TWO, THREE), BAD, BAD)
    turn(flow, reply(TWO_MENDED), Verdict.DUPLICATE)
    calls = send(flow, reply(TWO_MENDED, THREE))
    assert calls.positions == (1,)
    assert send(flow, results(calls, OK)).status is Status.DONE


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


def test_a_policy_decides_what_is_asked() -> None:
    """A policy words the ask and merges the reply: the full call is run."""

    def only_the_total(state: Conversation) -> Plan:
        def merge(answer: Reply) -> Reply:
            return replace(answer, tool_calls=(replace(TWO_MENDED, id="merged"),))

        if not state.obligations:
            return Plan(Ask(state.messages, state.offers))
        return Plan(Ask((Message("user", "Only the total, please"),)), merge)

    flow = until_success(opening(DOCUMENT, (INVOICE,)), only_the_total)
    next(flow)
    ask = turn(flow, reply(TWO), BAD)
    assert shown(ask) == "Only the total, please"
    calls = send(flow, reply(text="20.00"))
    assert calls.calls[0].arguments == TWO_MENDED.arguments
    assert send(flow, results(calls, OK)).status is Status.DONE


def test_a_policy_skips_models_and_stops() -> None:
    """A policy may pass over any number of models, and may stop; nothing was asked then."""

    def last_only(state: Conversation) -> Plan | NextModel:
        step = reask(state)
        return step if state.rank == 2 and isinstance(step, Plan) else NextModel()

    ask = next(until_success(opening(DOCUMENT, (INVOICE,), Rules(ranks=3)), last_only))
    assert isinstance(ask, Ask)
    assert ask.rank == 2
    for step in (Stop(), NextModel()):
        with pytest.raises(StopIteration) as end:
            next(until_success(opening(DOCUMENT, (INVOICE,)), lambda _, step=step: step))  # type: ignore[misc]
        assert end.value.value.status is Status.EXHAUSTED
        assert end.value.value.attempts == ()


def test_sampling_is_asked_with() -> None:
    """The sampling that the conversation was opened with is that of the ask."""
    ask = next(until_success(opening(DOCUMENT, (INVOICE,), sampling=Sampling(max_tokens=7))))
    assert isinstance(ask, Ask)
    assert ask.sampling == Sampling(max_tokens=7)


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
