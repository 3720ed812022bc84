"""Which calls of a reply run at all, decided before anything does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from extractor.conversation.state import CUT_OFF, UNFIT, Conversation
from extractor.matching import Target, assign, decoded, said
from extractor.messages import NOTHING_TO_EXTRACT, Calls, Reply, ToolCall, ToolResult, Verdict

WIDTH = 200
"""Characters that are kept of a reason or an error that is quoted on one line."""


@dataclass(frozen=True, slots=True)
class Sorted:
    """The calls of one reply, sorted: which to run, and what is answered without running."""

    calls: tuple[ToolCall, ...]
    to_run: tuple[int, ...]
    answered: dict[int, ToolResult]
    about: dict[int, Target]
    is_repeat: bool = False
    """Whether the reply says only what the one before it said: the model's turn is over."""

    def as_effect(self, state: Conversation) -> Calls:
        """The calls to run, as one effect."""
        to_run = tuple(self.calls[position] for position in self.to_run)
        is_last = state.is_last_attempt or (self.is_repeat and state.is_last_model)
        return Calls(to_run, len(state.replies), self.to_run, is_last)

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
    answered = {p: _not_run(calls[p]) for p in _incomplete(reply)}
    answered |= {p: _dropped(c) for p, c in enumerate(calls) if c.name == NOTHING_TO_EXTRACT.name and p not in answered}
    sent = {p: decoded(call.arguments) for p, call in enumerate(calls) if p not in answered}
    kept = {(one.call.name, said(one.call.arguments)) for one in state.standing}
    again = {key for p in sent if (key := _says(calls[p])) in kept} if kept else set()
    answered |= {p: _stands(calls[p]) for p in sent if _says(calls[p]) in again} if again else {}
    open_calls = [(p, calls[p].name, arguments) for p, arguments in sent.items() if p not in answered]
    known = frozenset(offer.name for offer in state.offers)
    about = assign(open_calls, _targets(state, again), known, is_more_due=state.is_cut_off)
    for position, target in about.items():
        if not target.is_open:
            answered[position] = _kept_as_it_was(calls[position])
    to_run = tuple(p for p in range(len(calls)) if p not in answered)
    is_repeat = _is_repeat(state, reply, [calls[p] for p in to_run])
    return Sorted(calls, to_run, answered, {p: about[p] for p in to_run if p in about}, is_repeat)


def _incomplete(reply: Reply) -> Iterator[int]:
    """Which calls of a reply that was cut off do not count: the last, where its arguments are no whole object, and the
    word that there is nothing more, which a model cannot have meant before it had ended."""
    if reply.finish_reason != "length":
        return
    for position, call in enumerate(reply.tool_calls):
        is_last = position + 1 == len(reply.tool_calls)
        is_whole = bool(call.arguments) and decoded(call.arguments) is not None
        if call.name == NOTHING_TO_EXTRACT.name or (is_last and not is_whole):
            yield position


def _is_repeat(state: Conversation, reply: Reply, to_run: Sequence[ToolCall]) -> bool:
    """Whether a reply says of what is open just what the present model's last one said, and nothing else."""
    own = (one for one in reversed(state.attempts) if one.rank == state.rank and one.fault != UNFIT)
    before = next(own, None)
    if before is None or not isinstance(before.answer, Reply):
        return False
    if to_run:
        refused = [c for c, r in zip(before.calls, before.results, strict=True) if r.verdict is Verdict.REJECTED]
        return Counter(map(_says, to_run)) == Counter(map(_says, refused))
    if reply.tool_calls:
        return Counter(map(_says, reply.tool_calls)) == Counter(map(_says, before.calls))
    return not before.calls and reply.content == before.answer.content


def _says(call: ToolCall) -> tuple[str, object]:
    return call.name, said(call.arguments)


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
    text = one_line(str(reason)) if reason else "no reason given"
    return ToolResult(call.id, call.name, text, Verdict.DROPPED)


def _stands(call: ToolCall) -> ToolResult:
    text = "stands: this record was accepted before and is kept; it need not be sent again"
    return ToolResult(call.id, call.name, text, Verdict.STANDS)


def _kept_as_it_was(call: ToolCall) -> ToolResult:
    text = "stands: this record was accepted before and is kept as it was; nobody asked for it to be changed"
    flag = f"{call.name}: the model later sent a changed version of an accepted record; the first one is kept"
    return ToolResult(call.id, call.name, text, Verdict.STANDS, flags=(flag,))


def one_line(text: str, width: int = WIDTH) -> str:
    line = " ".join(text.split())
    return line if len(line) <= width else f"{line[: width - 1]}…"
