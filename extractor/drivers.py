"""Drivers: they do what the loop decides.

``run`` and ``arun`` are the same ten lines, once for plain functions and once for awaitables. ``kept`` wraps how a
question is put, so that an answer that was paid for is kept before the next step and never paid for twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import astuple
from typing import Protocol
from weakref import WeakValueDictionary

from extractor.chain import Answer, Flow
from extractor.matching import canonical
from extractor.messages import Ask, Calls, Message, Offer, Reply, ToolResult, Unanswered
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


Asking = WeakValueDictionary[str, asyncio.Lock]
"""Questions that are being put, by request key; a lock lives while somebody holds it."""


def kept(put: Put, replies: Replies, identity: Callable[[int], str], asking: Asking | None = None) -> Put:
    """Answer from what is kept, and keep what is answered; equal questions asked at once are put once.

    ``put`` meets live asks alone, and each of its replies is handed to ``replies`` at once: whoever counts what is
    paid for counts there.

    :param identity: of the model of a rank: what enters the request key beside the question itself.
    :param asking: shared by all whose equal questions are to be put once, such as the documents of one run.
    """
    locks: Asking = WeakValueDictionary() if asking is None else asking

    async def put_once(ask: Ask) -> Reply | Unanswered:
        key = request_key(identity(ask.rank), ask)
        lock = locks.setdefault(key, asyncio.Lock())
        async with lock:
            reply = await replies.get(key)
            if reply is not None:
                return reply
            answer = await put(ask)
            if isinstance(answer, Reply):
                await replies.keep(key, answer)
            return answer

    return put_once


def request_key(identity: str, ask: Ask) -> str:
    """One key for equal questions to the same model: never paths, keys, context or dates enter it."""
    parts = [canonical(identity), canonical([_shown(message) for message in ask.messages]), _offered(ask.offers)]
    parts.append(canonical(astuple(ask.sampling)))
    if (ask.tool_choice, ask.parallel) != ("required", True):
        parts.append(canonical([ask.tool_choice, ask.parallel]))
    return hashlib.sha256(f"[{','.join(parts)}]".encode("utf-8", "surrogatepass")).hexdigest()


_OFFERED: dict[tuple[int, ...], tuple[tuple[Offer, ...], str]] = {}
_MOST_OFFERED = 256


def _offered(offers: tuple[Offer, ...]) -> str:
    """Offers in a request key. The same objects are offered for every document, so that their text is made once; it is
    held together with them, so that no other object can have their identity."""
    identity = tuple(map(id, offers))
    known = _OFFERED.get(identity)
    if known is None:
        if len(_OFFERED) >= _MOST_OFFERED:
            _OFFERED.clear()
        shown = [[one.name, one.description, _in_order(one.parameters), one.strict] for one in offers]
        known = _OFFERED[identity] = (tuple(offers), canonical(shown))
    return known[1]


def _shown(message: Message) -> list[object]:
    """The part of a message that a model sees."""
    calls = [[call.id, call.name, call.arguments] for call in message.tool_calls]
    results = [[result.call_id, result.name, result.content, result.is_error] for result in message.tool_results]
    seen = [[image.media_type, image.hash] for image in message.images]
    return [message.role, message.content, calls, results, *([seen] if seen else [])]


def _in_order(schema: Mapping[str, object]) -> str:
    """A schema as a model sees it: the order of its fields is part of the question."""
    return json.dumps(schema, ensure_ascii=False, default=dict)
