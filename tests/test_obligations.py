"""What stands, what has to be mended, and what is given up: driven by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from by_hand import BAD, OK, ONE, THREE, TWO, TWO_MENDED, begin, results, send, turn

from extractor.errors import OutcomeError
from extractor.messages import (
    NOTHING_TO_EXTRACT,
    Ask,
    ToolCall,
    Verdict,
)
from extractor.outcome import Status
from extractor.testing import call, reply


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


def test_chat_closes_no_obligation() -> None:
    """In chat use text does not close an obligation either."""
    flow, _ = begin(text_is_an_answer=True, max_attempts=2)
    turn(flow, reply(TWO), BAD)
    outcome = send(flow, reply(text="It is done"))
    assert outcome.status is Status.EXHAUSTED
    assert "Still to be mended" in outcome.transcript[-1].content


def test_a_cut_call_leaves_no_obligation() -> None:
    """A call that was cut off was never judged: nobody has to mend it. A whole one that is rejected has to be."""
    flow, _ = begin(max_attempts=4)
    turn(flow, reply(ONE, ToolCall("b", "create_invoice", '{"number": "2'), cut=True), OK)
    assert send(flow, reply(ONE)).status is Status.DONE
    flow, _ = begin(max_attempts=4)
    turn(flow, reply(TWO, ToolCall("b", "create_invoice", '{"number": "3'), cut=True), BAD)
    ask = turn(flow, reply(THREE), OK)
    assert f"Still to be mended: create_invoice (call 1): {BAD}" in ask.messages[-1].content
    assert turn(flow, reply(TWO_MENDED), OK).status is Status.DONE


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


def test_a_duplicate_closes_an_obligation_and_stands() -> None:
    """A mended call that turns out a duplicate closes its obligation, and is not run again."""
    flow, _ = begin()
    turn(flow, reply(TWO, THREE), BAD, BAD)
    turn(flow, reply(TWO_MENDED), Verdict.DUPLICATE)
    calls = send(flow, reply(TWO_MENDED, THREE))
    assert calls.positions == (1,)
    assert send(flow, results(calls, OK)).status is Status.DONE
