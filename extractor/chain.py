"""The heart: a loop without I/O.

``until_success`` is a generator of effects. It yields an :class:`Ask` and is sent a :class:`Reply` (or
:class:`Unanswered`); it yields :class:`Calls` and is sent one :class:`ToolResult` for each; it returns an
:class:`Outcome`. It decides, and a driver (:mod:`extractor.drivers`) does: synchronously, on an event loop, from kept
replies, or by hand in a test::

    flow = until_success(opening(messages, offers))
    ask = next(flow)
    calls = flow.send(Reply(tool_calls=(ToolCall("1", "create_invoice", "{}"),)))
    flow.send((ToolResult("1", "create_invoice", "total: Field required", Verdict.REJECTED),))  # the next Ask
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import replace

from extractor.attempts import NextModel, Plan, Policy, next_step, reask
from extractor.conversation import Conversation, Merged, Rules, after_reply, after_silence, sort_calls, with_own_ids
from extractor.messages import NOTHING_TO_EXTRACT, Ask, Calls, Message, Offer, Reply, Sampling, ToolResult, Unanswered
from extractor.outcome import Outcome
from extractor.verdicts import conclude

Effect = Ask | Calls
Answer = Reply | Unanswered | tuple[ToolResult, ...]
Flow = Generator[Effect, Answer, Outcome]


def opening(
    messages: Iterable[Message],
    offers: Iterable[Offer],
    rules: Rules | None = None,
    sampling: Sampling | None = None,
) -> Conversation:
    """The conversation before the first ask; ``nothing_to_extract`` is offered beside the functions."""
    first = tuple(messages)
    offered = (*offers, NOTHING_TO_EXTRACT)
    return Conversation(first, offered, rules or Rules(), sampling or Sampling(), opened=len(first))


def until_success(state: Conversation, policy: Policy = reask) -> Flow:
    """Ask until everything is accepted, given up, or spent.

    :param state: where to start, from :func:`opening`.
    :param policy: what the next attempt asks.
    :returns: (by ``StopIteration``) what came of it; its transcript has a result for every call.
    """
    while not state.is_settled:
        step = next_step(state, policy)
        while isinstance(step, NextModel) and state.rank + 1 < state.rules.ranks:
            state = replace(state, rank=state.rank + 1)
            step = policy(state)
        if not isinstance(step, Plan):
            break
        answer = yield from _put(step.ask)
        if isinstance(answer, Unanswered):
            state = after_silence(state, answer)
            continue
        reply = step.merge(answer)
        merged = None if reply is answer else Merged(answer, step.kind, step.question)
        reply = reply if merged is None else with_own_ids(state, reply)
        calls = sort_calls(state, reply)
        results = (yield from _perform(calls.as_effect(state))) if calls.to_run else ()
        state = after_reply(state, reply, calls, calls.in_order(results), merged)
    return conclude(state)


def _put(ask: Ask) -> Generator[Effect, Answer, Reply | Unanswered]:
    answer = yield ask
    if not isinstance(answer, (Reply, Unanswered)):
        raise TypeError("an Ask is answered with a Reply or with Unanswered")
    return answer


def _perform(calls: Calls) -> Generator[Effect, Answer, tuple[ToolResult, ...]]:
    answer = yield calls
    if not isinstance(answer, tuple):
        raise TypeError("Calls are answered with one ToolResult each")
    return answer
