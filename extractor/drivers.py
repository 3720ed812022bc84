"""Drivers: they do what the loop decides.

``run`` and ``arun`` are the same ten lines, once for plain functions and once for awaitables. ``kept`` wraps how a
question is put, so that an answer that was paid for is kept before the next step and never paid for twice.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Protocol

from extractor.chain import Answer, Flow
from extractor.matching import canonical
from extractor.messages import Ask, Calls, Message, Reply, ToolResult, Unanswered
from extractor.outcome import Outcome

Put = Callable[[Ask], Awaitable[Reply | Unanswered]]
Perform = Callable[[Calls], Awaitable[tuple[ToolResult, ...]]]


def run(
    flow: Flow,
    put: Callable[[Ask], Reply | Unanswered],
    perform: Callable[[Calls], tuple[ToolResult, ...]],
) -> Outcome:
    """Drive a loop with plain functions: ``put`` asks a model, ``perform`` runs the calls of a reply."""
    answer: Answer | None = None
    while True:
        try:
            effect = flow.send(answer) if answer is not None else next(flow)
        except StopIteration as end:
            return _outcome(end)
        answer = put(effect) if isinstance(effect, Ask) else perform(effect)


async def arun(flow: Flow, put: Put, perform: Perform) -> Outcome:
    """Drive a loop on the running event loop; the same as :func:`run` with awaitables."""
    answer: Answer | None = None
    while True:
        try:
            effect = flow.send(answer) if answer is not None else next(flow)
        except StopIteration as end:
            return _outcome(end)
        answer = await put(effect) if isinstance(effect, Ask) else await perform(effect)


def _outcome(end: StopIteration) -> Outcome:
    outcome: Outcome = end.value
    return outcome


class Replies(Protocol):
    """Where replies are kept, by request key."""

    async def get(self, key: str) -> Reply | None:
        """The kept reply, if there is one."""

    async def keep(self, key: str, reply: Reply) -> None:
        """Keep a reply; it is durable no later than the next ask."""


def kept(put: Put, replies: Replies, identity: Callable[[int], str]) -> Put:
    """Answer from what is kept, and keep what is answered; equal questions asked at once are put once.

    :param identity: of the model of a rank: what enters the request key beside the question itself.
    """
    asking: dict[str, asyncio.Lock] = {}

    async def put_once(ask: Ask) -> Reply | Unanswered:
        key = request_key(identity(ask.rank), ask)
        async with asking.setdefault(key, asyncio.Lock()):
            try:
                reply = await replies.get(key)
                answer = reply if reply is not None else await put(ask)
                if reply is None and isinstance(answer, Reply):
                    await replies.keep(key, answer)
                return answer
            finally:
                asking.pop(key, None)

    return put_once


def request_key(identity: str, ask: Ask) -> str:
    """One key for equal questions to the same model: never paths, keys, context or dates enter it."""
    parts = [
        identity,
        [_shown(message) for message in ask.messages],
        [asdict(offer) for offer in ask.offers],
        asdict(ask.sampling),
    ]
    return hashlib.sha256(canonical(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _shown(message: Message) -> list[object]:
    """The part of a message that a model sees."""
    calls = [[call.id, call.name, call.arguments] for call in message.tool_calls]
    results = [[result.call_id, result.name, result.content] for result in message.tool_results]
    return [message.role, message.content, calls, results]
