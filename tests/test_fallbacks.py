"""Lists of models, asks that nobody answers, and policies: driven by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from by_hand import BAD, DOCUMENT, INVOICE, OK, ONE, TWO, TWO_MENDED, begin, results, send, turn

from extractor.attempts import NextModel, Plan, Stop, reask
from extractor.chain import opening, until_success
from extractor.conversation import Conversation, Rules
from extractor.messages import (
    Ask,
    Message,
    Reply,
    Sampling,
    Unanswered,
    UnansweredKind,
    Usage,
)
from extractor.outcome import Status
from extractor.testing import reply, shown


def test_limits_fit_the_models() -> None:
    """One limit for each model, no more and no fewer."""
    with pytest.raises(ValueError, match="2 limits for 1 models"):
        Rules(max_attempts=(1, 2))


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
