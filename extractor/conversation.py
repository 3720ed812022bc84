"""The state of the loop, and every decision about it, as pure functions of frozen values.

An *obligation* is a call that was rejected and has to be mended: it closes by an accepted call that is about the same
record, or when the model drops it by ``nothing_to_extract``, never by silence. A *standing* record was accepted; it is
not run again, and a change to it that nobody asked for is answered "stands" and flagged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from extractor.matching import Arguments, Target, assign, decoded, said
from extractor.messages import (
    NOTHING_TO_EXTRACT,
    Calls,
    Message,
    Offer,
    Reply,
    Sampling,
    ToolCall,
    ToolResult,
    Unanswered,
    Usage,
    Verdict,
)
from extractor.outcome import Attempt

KEPT = (Verdict.ACCEPTED, Verdict.DUPLICATE)
CUT_OFF = "the answer was cut off before it was complete"
NO_CALL = "no function was called"


@dataclass(frozen=True, slots=True)
class Rules:
    """What the loop is held to.

    :param max_attempts: replies that each model may spend; one number, or one for each rank.
    :param ranks: how many models stand in the list.
    :param text_is_an_answer: whether a reply without any call ends the loop well (chat use); it is a failed attempt
        otherwise.
    """

    max_attempts: int | tuple[int, ...] = 3
    ranks: int = 1
    text_is_an_answer: bool = False

    def __post_init__(self) -> None:
        if min(self.limits) < 1:
            raise ValueError("max_attempts must be at least 1: with 0 nothing would ever be asked")
        if len(self.limits) != self.ranks:
            raise ValueError(f"max_attempts names {len(self.limits)} limits for {self.ranks} models")

    @property
    def limits(self) -> tuple[int, ...]:
        """The limit of each rank."""
        return (self.max_attempts,) * self.ranks if isinstance(self.max_attempts, int) else self.max_attempts


@dataclass(frozen=True, slots=True)
class Obligation:
    """A rejected call: its function, its place in its reply, what it said, what it was told, and the paths at fault."""

    function: str
    position: int
    arguments: Arguments | None
    error: str
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Standing:
    """An accepted (or duplicate) call, as the model sent it, and its place in its reply."""

    position: int
    call: ToolCall
    result: ToolResult

    @property
    def arguments(self) -> Arguments | None:
        """The arguments as sent, or as the function read them where the text was no object."""
        return _read(self.call, self.result)


@dataclass(frozen=True, slots=True)
class Conversation:
    """Everything the loop knows. ``messages`` is what the next question shows."""

    messages: tuple[Message, ...]
    offers: tuple[Offer, ...]
    rules: Rules = Rules()
    sampling: Sampling = Sampling()
    rank: int = 0
    attempts: tuple[Attempt, ...] = ()
    standing: tuple[Standing, ...] = ()
    obligations: tuple[Obligation, ...] = ()
    flags: tuple[str, ...] = ()
    given_up: str | None = None
    """The reason by which the model dropped what was open, or said that there is nothing."""
    is_answered: bool = False
    """A reply in plain text ended the conversation (chat use)."""

    @property
    def replies(self) -> tuple[Reply, ...]:
        """Every reply so far, of whichever model."""
        return tuple(attempt.answer for attempt in self.attempts if isinstance(attempt.answer, Reply))

    @property
    def spent(self) -> int:
        """Attempts that the present model has used up; an ask that nobody answered is none."""
        return sum(1 for one in self.attempts if one.rank == self.rank and isinstance(one.answer, Reply))

    @property
    def is_last_attempt(self) -> bool:
        """Whether the present attempt is the last one of the last model."""
        return self.rank + 1 == self.rules.ranks and self.spent + 1 >= self.rules.limits[self.rank]

    @property
    def unanswered(self) -> Unanswered | None:
        """Why the last ask was not answered, if it was not."""
        last = self.attempts[-1].answer if self.attempts else None
        return last if isinstance(last, Unanswered) else None

    @property
    def bug(self) -> ToolResult | None:
        """The first call that broke a user's function."""
        found = (r for attempt in self.attempts for r in attempt.results if r.verdict is Verdict.FAILED)
        return next(found, None)

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left to ask: all accepted, all given up, answered in text, or broken by a bug."""
        if self.bug is not None or self.is_answered:
            return True
        return not self.obligations and bool(self.standing or self.given_up is not None)

    @property
    def next_sampling(self) -> Sampling:
        """The answer's cap is doubled once when a reply was cut off by it."""
        cut = any(reply.finish_reason == "length" for reply in self.replies)
        return replace(self.sampling, max_tokens=2 * self.sampling.max_tokens) if cut else self.sampling

    @property
    def usage(self) -> Usage:
        """Summed over every ask, failed ones too."""
        return sum((attempt.answer.usage for attempt in self.attempts), Usage())


@dataclass(frozen=True, slots=True)
class Sorted:
    """The calls of one reply, sorted: which to run, and what is answered without running."""

    calls: tuple[ToolCall, ...]
    to_run: tuple[int, ...]
    answered: dict[int, ToolResult]
    about: dict[int, Target]

    def as_effect(self, state: Conversation) -> Calls:
        """The calls to run, as one effect."""
        to_run = tuple(self.calls[position] for position in self.to_run)
        return Calls(to_run, len(state.replies), self.to_run, state.is_last_attempt)

    def in_order(self, results: tuple[ToolResult, ...]) -> tuple[ToolResult, ...]:
        """Every call's result, in call order.

        :raises ValueError: when the driver did not answer each call once, in order.
        """
        if [self.calls[position].id for position in self.to_run] != [result.call_id for result in results]:
            raise ValueError("a driver answers every call once, in call order")
        everything = {**self.answered, **dict(zip(self.to_run, results, strict=True))}
        return tuple(everything[position] for position in range(len(self.calls)))


def sort_calls(state: Conversation, reply: Reply) -> Sorted:
    """Decide, before anything runs, which calls of a reply run at all."""
    calls = reply.tool_calls
    if reply.finish_reason == "length":
        answered = {p: _not_run(call) for p, call in enumerate(calls)}
        return Sorted(calls, (), answered, {})
    answered = {p: _dropped(call) for p, call in enumerate(calls) if call.name == NOTHING_TO_EXTRACT.name}
    sent = {p: decoded(call.arguments) for p, call in enumerate(calls) if p not in answered}
    kept = {(one.call.name, said(one.call.arguments)) for one in state.standing}
    again = {key for p in sent if (key := (calls[p].name, said(calls[p].arguments))) in kept}
    answered |= {p: _stands(call) for p, call in enumerate(calls) if (call.name, said(call.arguments)) in again}
    open_calls = [(p, calls[p].name, arguments) for p, arguments in sent.items() if p not in answered]
    about = assign(open_calls, _targets(state, again), frozenset(offer.name for offer in state.offers))
    for position, target in about.items():
        if not target.is_open:
            answered[position] = _kept_as_it_was(calls[position])
    to_run = tuple(p for p in range(len(calls)) if p not in answered)
    return Sorted(calls, to_run, answered, {p: about[p] for p in to_run if p in about})


def after_reply(state: Conversation, reply: Reply, calls: Sorted, results: tuple[ToolResult, ...]) -> Conversation:
    """The state once every call of a reply has its result."""
    standing, flags = list(state.standing), list(state.flags)
    earlier: dict[int, Obligation | None] = dict(enumerate(state.obligations))
    opened: list[Obligation] = []
    given_up: str | None = None
    for position, (call, result) in enumerate(zip(calls.calls, results, strict=True)):
        target = calls.about.get(position)
        flags += [flag for flag in result.flags if flag not in flags]
        if result.verdict in KEPT:
            standing.append(Standing(position, call, result))
            if target is not None:
                earlier[target.index] = None
        elif result.verdict is Verdict.REJECTED and reply.finish_reason != "length":
            obligation = Obligation(call.name, position, _read(call, result), result.content, result.paths)
            if target is not None:
                earlier[target.index] = obligation
            else:
                opened.append(obligation)
        elif result.verdict is Verdict.DROPPED:
            given_up = result.content
    silent = [one for index, one in enumerate(state.obligations) if earlier[index] is one]
    left = [one for one in earlier.values() if one is not None]
    if given_up is not None:
        flags += [f"{one.function}: given up by the model: {_one_line(one.error)}" for one in silent]
        left, silent = [one for one in left if not any(one is dropped for dropped in silent)], []
    is_answer = state.rules.text_is_an_answer and not left and _is_text(reply)
    turn = [reply.as_message()] + ([Message("tool", tool_results=results)] if results else [])
    state = replace(
        state,
        messages=(*state.messages, *turn),
        attempts=(*state.attempts, Attempt(state.rank, reply, results, _fault(reply, is_answer))),
        standing=tuple(standing),
        obligations=(*left, *opened),
        flags=tuple(flags),
        given_up=given_up if given_up is not None else state.given_up,
        is_answered=is_answer,
    )
    return state if state.is_settled else replace(state, messages=(*state.messages, *nudge(state, silent)))


def after_silence(state: Conversation, unanswered: Unanswered) -> Conversation:
    """The state when nobody answered; the conversation goes on with the next model, if there is one."""
    return replace(state, attempts=(*state.attempts, Attempt(state.rank, unanswered)))


def nudge(state: Conversation, silent: Sequence[Obligation]) -> tuple[Message, ...]:
    """What has to be said beside the results of the calls, so that no obligation is closed by silence.

    :param silent: the obligations that the last reply did nothing about.
    """
    attempt = state.attempts[-1]
    names = ", ".join(offer.name for offer in state.offers if offer is not NOTHING_TO_EXTRACT)
    lines = []
    if attempt.fault == CUT_OFF:
        lines.append("Your answer was cut off before it was complete, and nothing of it was used. Answer again.")
    elif attempt.fault == NO_CALL:
        lines.append(f"Your answer called no function. Answer by calling {names}.")
    lines += [f"Still to be mended: {one.function} (call {one.position + 1}): {one.error}" for one in silent]
    if silent:
        lines.append(f"Send it again, corrected, or call {NOTHING_TO_EXTRACT.name} with the reason.")
    return (Message("user", "\n".join(lines)),) if lines else ()


def _read(call: ToolCall, result: ToolResult) -> Arguments | None:
    """The arguments as sent, or as the function read them where the text as such is no object."""
    sent = decoded(call.arguments)
    return result.arguments if sent is None else sent


def _targets(state: Conversation, again: set[tuple[str, object]]) -> Iterator[Target]:
    for index, one in enumerate(state.obligations):
        yield Target(one.function, one.position, one.arguments, True, index, at_fault=one.paths)
    for index, kept in enumerate(state.standing):
        is_taken = (kept.call.name, said(kept.call.arguments)) in again
        yield Target(kept.call.name, kept.position, kept.arguments, False, index, is_taken=is_taken)


def _not_run(call: ToolCall) -> ToolResult:
    return ToolResult(call.id, call.name, f"not run: {CUT_OFF}", Verdict.REJECTED)


def _dropped(call: ToolCall) -> ToolResult:
    reason = (decoded(call.arguments) or {}).get("reason")
    text = _one_line(str(reason)) if reason else "no reason given"
    return ToolResult(call.id, call.name, text, Verdict.DROPPED)


def _stands(call: ToolCall) -> ToolResult:
    text = "stands: this record was accepted before and is kept; it need not be sent again"
    return ToolResult(call.id, call.name, text, Verdict.STANDS)


def _kept_as_it_was(call: ToolCall) -> ToolResult:
    text = "stands: this record was accepted before and is kept as it was; nobody asked for it to be changed"
    flag = f"{call.name}: the model later sent a changed version of an accepted record; the first one is kept"
    return ToolResult(call.id, call.name, text, Verdict.STANDS, flags=(flag,))


def _fault(reply: Reply, is_answer: bool) -> str:
    if reply.finish_reason == "length":
        return CUT_OFF
    return "" if reply.tool_calls or is_answer else NO_CALL


def _is_text(reply: Reply) -> bool:
    return not reply.tool_calls and reply.finish_reason == "stop" and bool(reply.content.strip())


def _one_line(text: str, width: int = 200) -> str:
    line = " ".join(text.split())
    return line if len(line) <= width else f"{line[: width - 1]}…"
