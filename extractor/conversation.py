"""The state of the loop, and every decision about it, as pure functions of frozen values.

An *obligation* is a call that was rejected and has to be mended: it closes by an accepted call that is about the same
record, or when the model drops it by ``nothing_to_extract``, never by silence. A *standing* record was accepted; it is
not run again, and a change to it that nobody asked for is answered "stands" and flagged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from extractor.matching import Arguments, Target, assign, canonical, decoded
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
    """A rejected call: its function, its place in its reply, what it said, and what it was told."""

    function: str
    position: int
    arguments: Arguments | None
    error: str


@dataclass(frozen=True, slots=True)
class Standing:
    """An accepted (or duplicate) call. ``arguments`` as the model sent them."""

    position: int
    arguments: Arguments | None
    result: ToolResult


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

    def as_effect(self, reply: int) -> Calls:
        """The calls to run, as one effect."""
        return Calls(tuple(self.calls[position] for position in self.to_run), reply, self.to_run)

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
    kept = {(one.result.name, canonical(one.arguments)) for one in state.standing}
    for position, arguments in sent.items():
        if (calls[position].name, canonical(arguments)) in kept:
            answered[position] = _stands(calls[position], amended=False)
    open_calls = [(p, calls[p].name, arguments) for p, arguments in sent.items() if p not in answered]
    about = assign(open_calls, _targets(state), frozenset(offer.name for offer in state.offers))
    for position, target in about.items():
        if not target.is_open:
            answered[position] = _stands(calls[position], amended=True)
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
            standing.append(Standing(position, decoded(call.arguments), result))
            if target is not None:
                earlier[target.index] = None
        elif result.verdict is Verdict.REJECTED and reply.finish_reason != "length":
            obligation = Obligation(call.name, position, decoded(call.arguments), result.content)
            if target is not None:
                earlier[target.index] = obligation
            else:
                opened.append(obligation)
        elif result.verdict is Verdict.DROPPED:
            given_up = result.content
    left = [obligation for obligation in earlier.values() if obligation is not None]
    if given_up is not None and left:
        flags.append(f"given up after {len(left)} rejected: {_one_line(left[0].error)}")
        left = [one for one in left if not any(one is earlier_one for earlier_one in state.obligations)]
    turn = [reply.as_message()] + ([Message("tool", tool_results=results)] if results else [])
    state = replace(
        state,
        messages=(*state.messages, *turn),
        attempts=(*state.attempts, Attempt(state.rank, reply, results)),
        standing=tuple(standing),
        obligations=(*left, *opened),
        flags=tuple(flags),
        given_up=given_up if given_up is not None else state.given_up,
        is_answered=not results and state.rules.text_is_an_answer and reply.finish_reason == "stop",
    )
    return state if state.is_settled else replace(state, messages=(*state.messages, *nudge(state)))


def after_silence(state: Conversation, unanswered: Unanswered) -> Conversation:
    """The state when nobody answered; the conversation goes on with the next model, if there is one."""
    return replace(state, attempts=(*state.attempts, Attempt(state.rank, unanswered)))


def nudge(state: Conversation) -> tuple[Message, ...]:
    """What has to be said beside the results of the calls, so that no obligation is closed by silence."""
    attempt = state.attempts[-1]
    reply = attempt.answer
    names = ", ".join(offer.name for offer in state.offers if offer is not NOTHING_TO_EXTRACT)
    lines = []
    if isinstance(reply, Reply) and reply.finish_reason == "length":
        lines.append("Your answer was cut off before it was complete, and nothing of it was used. Answer again.")
    elif not attempt.results:
        lines.append(f"Your answer called no function. Answer by calling {names}.")
    told = {result.content for result in attempt.results}
    silent = [obligation for obligation in state.obligations if obligation.error not in told]
    lines += [f"Still to be mended: {one.function} (call {one.position + 1}): {one.error}" for one in silent]
    if silent:
        lines.append(f"Send it again, corrected, or call {NOTHING_TO_EXTRACT.name} with the reason.")
    return (Message("user", "\n".join(lines)),) if lines else ()


def _targets(state: Conversation) -> tuple[Target, ...]:
    return (
        *(Target(o.function, o.position, o.arguments, True, index) for index, o in enumerate(state.obligations)),
        *(Target(s.result.name, s.position, s.arguments, False, index) for index, s in enumerate(state.standing)),
    )


def _not_run(call: ToolCall) -> ToolResult:
    text = "not run: the answer was cut off before it was complete"
    return ToolResult(call.id, call.name, text, Verdict.REJECTED)


def _dropped(call: ToolCall) -> ToolResult:
    reason = (decoded(call.arguments) or {}).get("reason")
    text = _one_line(str(reason)) if reason else "no reason given"
    return ToolResult(call.id, call.name, text, Verdict.DROPPED)


def _stands(call: ToolCall, *, amended: bool) -> ToolResult:
    if not amended:
        text = "stands: this record was accepted before and is kept; it need not be sent again"
        return ToolResult(call.id, call.name, text, Verdict.STANDS)
    text = "stands: this record was accepted before and is kept as it was; nobody asked for it to be changed"
    flag = f"{call.name}: the model later sent a changed version of an accepted record; the first one is kept"
    return ToolResult(call.id, call.name, text, Verdict.STANDS, flags=(flag,))


def _one_line(text: str, width: int = 200) -> str:
    line = " ".join(text.split())
    return line if len(line) <= width else f"{line[: width - 1]}…"
