"""The state after a reply, or after none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from extractor.conversation.sorting import Sorted, one_line
from extractor.conversation.state import (
    CUT_OFF,
    KEPT,
    NO_CALL,
    UNFIT,
    Aside,
    Conversation,
    Merged,
    Obligation,
    Standing,
    read_arguments,
)
from extractor.matching import decoded
from extractor.messages import NOTHING_TO_EXTRACT, Message, Reply, ToolCall, ToolResult, Unanswered, Verdict
from extractor.outcome import Attempt


def after_reply(
    state: Conversation,
    reply: Reply,
    calls: Sorted,
    results: tuple[ToolResult, ...],
    merged: Merged | None = None,
) -> Conversation:
    """The state once every call of a reply has its result.

    :param merged: where the reply is what a policy made of the model's answer.
    """
    state, silent = _judged(state, calls, results)
    is_answer = state.rules.text_is_an_answer and not state.obligations and _is_text(reply)
    fault = _fault(reply, is_answer, merged)
    is_repeat = calls.is_repeat and fault != UNFIT
    attempt = Attempt(state.rank, merged.answer if merged else reply, results, fault, is_repeat=is_repeat)
    if merged is not None:
        attempt = replace(attempt, kind=merged.kind, merged=reply)
        aside = Aside(len(state.messages), _exchange(state, merged, results))
        state = replace(state, asides=(*state.asides, aside))
    turn: tuple[Message, ...] = () if fault == UNFIT else (reply.as_message(),)
    turn += (Message("tool", tool_results=results),) if results else ()
    state = replace(
        state,
        messages=(*state.messages, *turn),
        attempts=(*state.attempts, attempt),
        is_answered=is_answer,
    )
    if state.is_settled or fault == UNFIT:
        return state
    return replace(state, messages=(*state.messages, *nudge(state, silent)))


def _judged(
    state: Conversation, calls: Sorted, results: tuple[ToolResult, ...]
) -> tuple[Conversation, list[Obligation]]:
    """What stands, what is open and what is given up now; and the obligations that the reply was silent about."""
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
        elif result.verdict is Verdict.REJECTED and position in calls.to_run:
            if target is not None:
                earlier[target.index] = _obligation(position, call, result)
            else:
                opened.append(_obligation(position, call, result))
        elif result.verdict is Verdict.DROPPED:
            given_up = result.content
    silent = [one for index, one in enumerate(state.obligations) if earlier[index] is one]
    left = [one for one in earlier.values() if one is not None]
    if given_up is not None:
        flags += [f"{one.function}: given up by the model: {one_line(one.error)}" for one in silent]
        left, silent = [one for one in left if not any(one is dropped for dropped in silent)], []
    state = replace(
        state,
        standing=tuple(standing),
        obligations=(*left, *opened),
        flags=tuple(flags),
        given_up=given_up if given_up is not None else state.given_up,
    )
    return state, silent


def _obligation(position: int, call: ToolCall, result: ToolResult) -> Obligation:
    sent = decoded(call.arguments)
    values = sent if result.arguments is None else result.arguments
    return Obligation(call.name, position, read_arguments(call, result), result.content, result.paths, values)


def with_own_ids(state: Conversation, reply: Reply) -> Reply:
    """The reply with call ids that no earlier call of the conversation has: a question beside it shows its model none
    of them, and the model may begin to count anew."""
    return replace(reply, tool_calls=tuple(replace(call, id=_own_id(state, call.id)) for call in reply.tool_calls))


def _own_id(state: Conversation, ident: str) -> str:
    taken = any(call.id == ident for message in state.messages for call in message.tool_calls)
    return f"{ident}_{len(state.replies)}" if taken else ident


def _exchange(state: Conversation, merged: Merged, results: tuple[ToolResult, ...]) -> tuple[Message, ...]:
    """What was asked beside the conversation and what the model said, every call of it with a result."""
    came_to = {result.call_id: result for result in results}
    calls, told = [], []
    for call in merged.answer.tool_calls:
        result = came_to.get(_own_id(state, call.id))
        text = f"not used: {UNFIT}" if result is None else "merged into the whole record, which follows"
        part = replace(call, id=f"part_{len(state.replies)}_{call.id}")
        calls.append(part)
        told.append(ToolResult(part.id, call.name, text, Verdict.REJECTED if result is None else result.verdict))
    asked = (Message("user", merged.question),) if merged.question else ()
    said = replace(merged.answer.as_message(), tool_calls=tuple(calls))
    return (*asked, said, *((Message("tool", tool_results=tuple(told)),) if told else ()))


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
        lines.append(_cut_short(sum(1 for call in attempt.calls if decoded(call.arguments)), names))
    elif attempt.fault == NO_CALL:
        lines.append(f"Your answer called no function. Answer by calling {names}.")
    lines += [f"Still to be mended: {one.function} (call {one.position + 1}): {one.error}" for one in silent]
    if silent:
        lines.append(f"Send it again, corrected, or call {NOTHING_TO_EXTRACT.name} with the reason.")
    return (Message("user", "\n".join(lines)),) if lines else ()


def _cut_short(complete: int, names: str) -> str:
    """What a model is told whose answer was cut off."""
    if not complete:
        return "Your answer was cut off before its first record was complete. Answer again, and be brief."
    records = "1 record" if complete == 1 else f"{complete} records"
    return (
        f"Your answer was cut off after {records}. What was accepted is kept: do not send it again. Go on by calling "
        f"{names} for the records that are still missing, or call {NOTHING_TO_EXTRACT.name} if there are none."
    )


def _fault(reply: Reply, is_answer: bool, merged: Merged | None) -> str:
    if merged is not None and not reply.tool_calls:
        return UNFIT
    if reply.finish_reason == "length":
        return CUT_OFF
    return "" if reply.tool_calls or is_answer else NO_CALL


def _is_text(reply: Reply) -> bool:
    return not reply.tool_calls and reply.finish_reason == "stop" and bool(reply.content.strip())
