"""What holds for the loop whatever a model answers, by hypothesis over random scripts of replies."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from extractor.attempts import Step, reask
from extractor.chain import opening, until_success
from extractor.conversation import KEPT, Conversation, Rules
from extractor.drivers import arun, kept, request_key, run
from extractor.matching import decoded, said
from extractor.messages import (
    FATAL,
    Ask,
    Calls,
    Message,
    Offer,
    Reply,
    ToolCall,
    ToolResult,
    Unanswered,
    Usage,
    Verdict,
)
from extractor.outcome import Outcome, Status
from extractor.testing import reply

T = TypeVar("T")

OFFERS = tuple(Offer(name, name, {"type": "object"}) for name in ("f", "g"))
MESSAGES = (Message("user", "two invoices"),)

GOOD = [
    '{"number": "1", "total": "10", "supplier": "M"}',
    '{"total": "10", "number": "1", "supplier": "M"}',
    '{"number": "1", "total": "11", "supplier": "M"}',
    '{"number": "2", "total": "20", "supplier": "M"}',
    '{"number": "2", "total": "21", "supplier": "M"}',
    '{"number": "3", "total": "10", "supplier": "M", "lines": [{"price": "1"}, {"price": "2"}]}',
    "{}",
]
BAD = ["{broken", '["number"]', ""]
TEXT = "there is nothing here"


def mostly(usual: st.SearchStrategy[T], rare: st.SearchStrategy[T], odds: int) -> st.SearchStrategy[T]:
    """The rare one once in ``odds`` draws."""
    return st.integers(1, odds).flatmap(lambda drawn: rare if drawn == odds else usual)


calls = st.builds(ToolCall, st.just(""), st.sampled_from("fffffffgh"), st.sampled_from(GOOD * 3 + BAD))
nothing = st.just(ToolCall("", "nothing_to_extract", '{"reason": "no more"}'))
replies = st.builds(
    lambda sent, cut, tokens: reply(*sent, text="" if sent else TEXT, cut=cut, usage=Usage(tokens, 1)),
    mostly(st.lists(mostly(calls, nothing, 15), min_size=1, max_size=4), st.just([]), 9),
    st.sampled_from([False] * 9 + [True]),
    st.integers(0, 9),
)
silences = st.builds(
    Unanswered,
    st.sampled_from(["rate_limited", "unavailable", "timeout", "refused", "unavailable", "bad_request"]),
    st.just("no answer"),
    usage=st.builds(Usage, st.integers(0, 9)),
)
scripts = st.lists(mostly(replies, silences, 12), min_size=5, max_size=9)
judgements = st.fixed_dictionaries(
    {
        (name, arguments): st.sampled_from([Verdict.ACCEPTED] * 5 + [Verdict.REJECTED] * 4 + [Verdict.DUPLICATE])
        for name in "fg"
        for arguments in GOOD
    }
)
rules = st.integers(1, 3).flatmap(
    lambda ranks: st.builds(
        Rules, st.tuples(*[st.integers(1, 5)] * ranks), ranks=st.just(ranks), text_is_an_answer=st.booleans()
    )
)


@dataclass
class World:
    """A model that answers from a script, and functions that judge equal calls equally; both remember everything."""

    script: Sequence[Reply | Unanswered]
    verdicts: Mapping[tuple[str, str], Verdict]
    broken: str = ""
    asks: list[Ask] = field(default_factory=list)
    answers: list[Reply | Unanswered] = field(default_factory=list)
    performed: list[tuple[Calls, tuple[ToolResult, ...]]] = field(default_factory=list)
    states: list[Conversation] = field(default_factory=list)

    def put(self, ask: Ask) -> Reply | Unanswered:
        place = len(self.asks)
        self.asks.append(ask)
        self.answers.append(self.script[place] if place < len(self.script) else reply(text=TEXT))
        return self.answers[-1]

    def perform(self, effect: Calls) -> tuple[ToolResult, ...]:
        results = tuple(self._judge(call) for call in effect.calls)
        self.performed.append((effect, results))
        return results

    def policy(self, state: Conversation) -> Step:
        self.states.append(state)
        return reask(state)

    def drive(self, held_to: Rules) -> Outcome:
        return run(until_success(opening(MESSAGES, OFFERS, held_to), self.policy), self.put, self.perform)

    def _judge(self, call: ToolCall) -> ToolResult:
        arguments = str(call.arguments)
        if call.name == self.broken:
            return ToolResult(call.id, call.name, "", Verdict.FAILED, cause="Traceback")
        same = next(one for one in [*GOOD, arguments] if said(one) == said(arguments))
        verdict = self.verdicts.get((call.name, same), Verdict.REJECTED)
        paths = ("total",) if verdict is Verdict.REJECTED and "21" in arguments else ()
        return ToolResult(call.id, call.name, f"{verdict}: {arguments}", verdict, arguments, decoded(arguments), paths)


worlds = st.builds(World, scripts, judgements, st.sampled_from([""] * 19 + ["g"]))


@settings(deadline=None, max_examples=60)
@given(worlds, rules)
def test_asks_never_exceed_attempts(world: World, held_to: Rules) -> None:
    """Each model is asked no more often than its attempts allow, not counting asks that nobody answered."""
    outcome = world.drive(held_to)
    silent = sum(isinstance(answer, Unanswered) for answer in world.answers)
    assert len(world.asks) <= sum(held_to.limits) + silent
    for rank, limit in enumerate(held_to.limits):
        answered = [a for ask, a in zip(world.asks, world.answers, strict=True) if ask.rank == rank]
        assert sum(isinstance(answer, Reply) for answer in answered) <= limit
        assert sum(isinstance(answer, Unanswered) for answer in answered) <= 1
    assert [attempt.answer for attempt in outcome.attempts] == world.answers
    assert outcome.usage == sum((answer.usage for answer in world.answers), Usage())
    assert [ask.rank for ask in world.asks] == sorted(ask.rank for ask in world.asks)


@settings(deadline=None, max_examples=60)
@given(worlds, rules)
def test_every_call_is_answered_once_in_order(world: World, held_to: Rules) -> None:
    """Each reply with calls is followed by one message with a result for each, in order; each ask shows the same."""
    transcript = world.drive(held_to).transcript
    for place, message in enumerate(transcript):
        if message.tool_calls:
            results = transcript[place + 1].tool_results
            assert [one.id for one in message.tool_calls] == [one.call_id for one in results]
            assert [one.name for one in message.tool_calls] == [one.name for one in results]
        assert bool(message.tool_results) == (message.role == "tool")
        assert message.role != "tool" or transcript[place - 1].tool_calls
    assert all(transcript[: len(ask.messages)] == ask.messages for ask in world.asks)
    said_by_models = [message for message in transcript if message.role == "assistant"]
    assert said_by_models == [answer.as_message() for answer in world.answers if isinstance(answer, Reply)]


@settings(deadline=None, max_examples=100)
@given(worlds, rules)
def test_an_accepted_record_is_never_lost_or_repeated(world: World, held_to: Rules) -> None:
    """What was accepted is in the outcome, once, in order; no call that stands is ever run again."""
    outcome = world.drive(held_to)
    accepted = [one for _, results in world.performed for one in results if one.verdict in KEPT]
    assert list(outcome.results) == accepted
    stands: set[object] = set()
    for effect, results in world.performed:
        assert not stands & {(call.name, said(call.arguments)) for call in effect.calls}
        stands |= {
            (call.name, said(call.arguments))
            for call, result in zip(effect.calls, results, strict=True)
            if result.verdict in KEPT
        }


@settings(deadline=None, max_examples=60)
@given(worlds, rules)
def test_what_runs_and_what_does_not(world: World, held_to: Rules) -> None:
    """Of a cut reply the complete calls run, ``nothing_to_extract`` never does, the rest runs or is told it stands."""
    transcript = world.drive(held_to).transcript
    told = [message.tool_results for message in transcript if message.role == "tool"]
    with_calls = [answer for answer in world.answers if isinstance(answer, Reply) and answer.tool_calls]
    ran = [one.call_id for _, results in world.performed for one in results]
    for answer, everything in zip(with_calls, told, strict=True):
        names = {call.id: call.name for call in answer.tool_calls}
        results = [one for one in everything if not one.content.startswith("not run")]
        if answer.finish_reason == "length":
            last = answer.tool_calls[-1]
            is_broken = decoded(last.arguments) is None or not last.arguments
            unsaid = [n == "nothing_to_extract" or (k == last.id and is_broken) for k, n in names.items()]
            assert sum(unsaid) == len(everything) - len(results)
        else:
            assert len(results) == len(everything)
        own = [one.verdict in (Verdict.STANDS, Verdict.DROPPED) for one in results]
        assert ran[: own.count(False)] == [one.call_id for one, is_own in zip(results, own, strict=True) if not is_own]
        del ran[: own.count(False)]
        dropped = [one.verdict is Verdict.DROPPED for one in results]
        assert dropped == [names[one.call_id] == "nothing_to_extract" for one in results]
    assert ran == []


@settings(deadline=None, max_examples=100)
@given(worlds, rules)
def test_no_rejected_record_is_lost_in_silence(world: World, held_to: Rules) -> None:
    """A good end means that each call of a reply that was rejected was mended later, or dropped with a flag."""
    outcome = world.drive(held_to)
    if not outcome.status.is_good:
        assert outcome.error
        return
    dropped = sum("given up by the model" in flag for flag in outcome.flags)
    for place, (_, results) in enumerate(world.performed):
        rejected = sum(one.verdict is Verdict.REJECTED for one in results)
        later = sum(one.verdict in KEPT for _, after in world.performed[place + 1 :] for one in after)
        assert rejected <= later + dropped


@settings(deadline=None, max_examples=60)
@given(worlds, rules)
def test_the_status_says_what_happened(world: World, held_to: Rules) -> None:
    """The status follows from what was accepted, what is open, and why the asking ended."""
    outcome = world.drive(held_to)
    last = world.answers[-1]
    verdicts = {one.verdict for _, results in world.performed for one in results}
    match outcome.status:
        case Status.FAILED:
            assert Verdict.FAILED in verdicts or (isinstance(last, Unanswered) and last.kind != "refused")
            assert (outcome.cause is not None) == (Verdict.FAILED in verdicts)
        case Status.REFUSED:
            assert isinstance(last, Unanswered)
            assert (last.kind, outcome.results) == ("refused", ())
        case Status.EXHAUSTED:
            assert outcome.error.startswith("after") or isinstance(last, Unanswered)
        case Status.DONE:
            assert Verdict.ACCEPTED in verdicts or held_to.text_is_an_answer
        case Status.DUPLICATE:
            assert {one.verdict for one in outcome.results} == {Verdict.DUPLICATE}
        case Status.EMPTY:
            assert outcome.results == ()
    assert (outcome.unanswered is None) == isinstance(last, Reply)
    fatal = [isinstance(answer, Unanswered) and answer.kind in FATAL for answer in world.answers]
    assert not any(fatal[:-1])


@settings(deadline=None, max_examples=60)
@given(worlds, rules)
def test_asked_only_while_something_is_open(world: World, held_to: Rules) -> None:
    """A question is put only while nothing was accepted yet, while an obligation is open, which it shows, or while
    records may be missing after a reply that was cut off."""
    world.drive(held_to)
    for state in world.states:
        assert state.obligations or not state.standing or state.is_cut_off
        told = "\n".join(
            [message.content for message in state.messages]
            + [result.content for message in state.messages for result in message.tool_results]
        )
        assert all(one.error in told for one in state.obligations)


@settings(deadline=None, max_examples=50)
@given(worlds, rules)
def test_run_and_arun_are_the_same(world: World, held_to: Rules) -> None:
    """Both drivers give one transcript and one outcome."""
    other = World(world.script, world.verdicts, world.broken)

    async def put(ask: Ask) -> Reply | Unanswered:
        await asyncio.sleep(0)
        return other.put(ask)

    async def perform(effect: Calls) -> tuple[ToolResult, ...]:
        await asyncio.sleep(0)
        return other.perform(effect)

    outcome = asyncio.run(arun(until_success(opening(MESSAGES, OFFERS, held_to), reask), put, perform))
    assert outcome == world.drive(held_to)
    assert (other.asks, other.performed) == (world.asks, world.performed)


@dataclass
class Shelf:
    """Replies kept in memory, as a store would."""

    replies: dict[str, Reply] = field(default_factory=dict)

    async def get(self, key: str) -> Reply | None:
        return self.replies.get(key)

    async def keep(self, key: str, reply: Reply) -> None:
        assert key not in self.replies
        self.replies[key] = reply


def _identity(rank: int) -> str:
    return f"model-{rank}"


@settings(deadline=None, max_examples=100)
@given(worlds, rules, st.integers(0, 9))
def test_replay_asks_nothing_again(world: World, held_to: Rules, crash: int) -> None:
    """After a crash at any ask, and over the whole again, no kept reply is asked for again; the end is the same."""
    shelf = Shelf()
    silent: dict[str, Unanswered] = {}
    paid: list[str] = []
    crashed: list[bool] = []

    class Crash(Exception):
        """The machine stops."""

    async def live(ask: Ask) -> Reply | Unanswered:
        key = request_key(_identity(ask.rank), ask)
        if key in silent:
            return silent[key]  # what nobody answered is asked for again, and goes unanswered again
        if len(paid) == crash and not crashed:
            crashed.append(True)
            raise Crash
        answer = world.put(ask)
        paid.append(key)
        if isinstance(answer, Unanswered):
            silent[key] = answer
        return answer

    async def perform(effect: Calls) -> tuple[ToolResult, ...]:
        return world.perform(effect)

    def again() -> Outcome:
        flow = until_success(opening(MESSAGES, OFFERS, held_to))
        return asyncio.run(arun(flow, kept(live, shelf, _identity), perform))

    try:
        outcome = again()
    except Crash:
        outcome = again()
    asked = len(paid)
    assert again() == outcome
    assert len(paid) == asked == len(set(paid))
    whole = World(world.script, world.verdicts, world.broken)
    assert whole.drive(held_to) == outcome


@settings(deadline=None, max_examples=100)
@given(worlds, rules)
def test_every_question_of_a_conversation_has_its_own_key(world: World, held_to: Rules) -> None:
    """No two asks of one conversation share a key: a kept reply never answers a later question."""
    world.drive(held_to)
    keys = [request_key(_identity(ask.rank), ask) for ask in world.asks]
    assert len(set(keys)) == len(keys)
