"""One document, from bytes to an outcome in the store."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from extractor import prompts
from extractor.attempts import Policy
from extractor.calling import perform
from extractor.chain import opening, until_success
from extractor.conversation import KEPT, Rules
from extractor.documents import Document, load
from extractor.documents.loading import read_bytes
from extractor.drivers import Put, arun, kept, request_key
from extractor.errors import DocumentError, ExtractorError, UnreadableDocument
from extractor.fields.style import Style
from extractor.functions import Context, Function
from extractor.messages import Ask, Calls, Reply, Sampling, ToolCall, ToolResult, Unanswered, Verdict
from extractor.models import Model
from extractor.outcome import Outcome, Status
from extractor.store.codec import call_hash
from extractor.store.ledger import Seen, Work
from extractor.store.records import Link, Written
from extractor.store.store import Store


@dataclass(frozen=True, slots=True)
class Source:
    """Where a document comes from: a path, or bytes under a name. ``values`` are what the host supplies with it."""

    name: str
    path: Path | None = None
    data: bytes | None = None
    values: Mapping[str, Any] | None = None
    key: Any = None
    """Whatever the caller wants to know the document by; never shown to a model."""

    def read(self) -> bytes:
        """The bytes.

        :raises DocumentError: when the file cannot be read, or is too large to be a document.
        """
        if self.data is not None:
            return self.data
        if self.path is None:
            raise UnreadableDocument(f"{self.name}: there is nothing to read", source=self.name)
        return read_bytes(self.path, self.name)


def readable(path: Path | str) -> str:
    """A path as text that can be stored and printed: bytes that are no UTF-8 stand as escapes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


@dataclass(frozen=True, slots=True)
class Plan:
    """What a pipeline does to every document, resolved once for a run."""

    pipeline: str
    functions: Mapping[str, Function]
    models: tuple[Model, ...]
    policy: Policy
    rules: Rules
    sampling: Sampling
    instructions: str
    style: Mapping[str, Any]
    fingerprint: str
    store: Store
    put: Put
    """Puts a question to the model of its rank, or answers from what is kept."""
    run: int | None = None
    busy: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    """Documents in hand, by hash: a file that lies there twice is read once."""

    def one_at_a_time(self, document: str) -> asyncio.Lock:
        """Held while a document is in hand; the second of two equal ones then finds it settled."""
        lock = self.busy.get(document)
        if lock is None:
            lock = self.busy[document] = asyncio.Lock()
        return lock


def putting(models: Sequence[Model], store: Store) -> Put:
    """How questions are put in a run: kept replies first, and one question at a time for equal ones."""

    async def ask(question: Ask) -> Reply | Unanswered:
        return await models[question.rank].ask(question)

    return kept(ask, store, lambda rank: models[rank].identity)


async def extract(plan: Plan, source: Source) -> Outcome:
    """Take one document through a pipeline. Whatever is wrong with the document is in the outcome, never raised.

    :raises StoreError: when the database cannot be read or written.
    """
    return replace(await _extract(plan, source), key=source.key)


async def _extract(plan: Plan, source: Source) -> Outcome:
    begun = time.monotonic()
    try:
        data = await asyncio.to_thread(source.read)
    except DocumentError as error:
        return await _unread(plan, source, error, begun)
    seen = Seen(hashlib.sha256(data).hexdigest(), source.name, len(data))
    async with plan.one_at_a_time(seen.hash):
        return await _read(plan, source, data, seen, begun)


async def _read(plan: Plan, source: Source, data: bytes, seen: Seen, begun: float) -> Outcome:
    work = await plan.store.begin(seen, plan.pipeline, plan.fingerprint, plan.run)
    if work.is_settled:
        return plan.store.outcome(work, plan.fingerprint, source.name)
    passage = Passage(plan, source, work)
    try:
        document = await asyncio.to_thread(load, data, name=source.name)
    except DocumentError as error:
        outcome = Outcome(Status.FAILED, error=str(error))
    else:
        outcome = await _taken(passage, document)
    outcome = replace(outcome, source=source.name, document=seen.hash)
    return await plan.store.finish(work, outcome, passage.keys, time.monotonic() - begun, frozenset(passage.claimed))


async def _taken(passage: Passage, document: Document) -> Outcome:
    """One document's trouble is its own: whatever breaks on its way never ends the run."""
    try:
        return await passage.take(document)
    except (ExtractorError, AssertionError):  # no model, no database; or a script of a test that has ended
        raise
    except Exception as error:
        cause = "".join(traceback.format_exception(error))
        return Outcome(Status.FAILED, error=f"an unexpected {type(error).__name__} on the way", cause=cause)


async def _unread(plan: Plan, source: Source, error: DocumentError, begun: float) -> Outcome:
    """A document without bytes is in the ledger too, under the hash of its name."""
    name = hashlib.sha256(f"unread:{source.name}".encode("utf-8", "surrogatepass")).hexdigest()
    work = await plan.store.begin(Seen(name, source.name, 0), plan.pipeline, plan.fingerprint, plan.run)
    outcome = Outcome(Status.FAILED, error=str(error), source=source.name, document=name)
    return await plan.store.finish(work, outcome, (), time.monotonic() - begun, ())


class Passage:
    """The passage of one document through the loop: which replies it met, and which of its calls are written."""

    def __init__(self, plan: Plan, source: Source, work: Work) -> None:
        self._plan = plan
        self._source = source
        self._work = work
        self._written = {} if work.is_new else {(x["reply"], x["position"]): x for x in plan.store.links(work)}
        self._context = Context(document=None, values=source.values or {})
        self._validation: dict[str, Any] = {}
        self.keys: list[str | None] = []
        self.claimed: set[Link] = set()

    async def take(self, document: Document) -> Outcome:
        """Ask until success, on the document's text."""
        plan = self._plan
        style = await asyncio.to_thread(lambda: Style.of(document.text, **plan.style))
        self._context = replace(self._context, document=document, style=style)
        self._validation = {"style": style, "text": document.text}
        offers = [function.offer for function in plan.functions.values()]
        state = opening(prompts.opening(document.text, plan.instructions), offers, plan.rules, plan.sampling)
        outcome = await arun(until_success(state, plan.policy), self._put, self._perform)
        if not document.is_complete:
            pages = ", ".join(str(page.number) for page in document.failed_pages)
            outcome = replace(outcome, flags=(*outcome.flags, f"incomplete: page {pages} could not be read"))
        return outcome

    async def _put(self, ask: Ask) -> Reply | Unanswered:
        answer = await self._plan.put(ask)
        if isinstance(answer, Reply):
            self.keys.append(request_key(self._plan.models[ask.rank].identity, ask))
        return answer

    async def _perform(self, calls: Calls) -> tuple[ToolResult, ...]:
        """Run the calls of one reply and write what is accepted; calls that were written before are reloaded."""
        key = self.keys[-1] or ""
        results: dict[int, ToolResult] = {}
        for call, position in zip(calls.calls, calls.positions, strict=True):
            reloaded = self._reload(call, Link(key, position))
            if reloaded is not None:
                results[position] = reloaded
        todo = [(c, p) for c, p in zip(calls.calls, calls.positions, strict=True) if p not in results]
        if todo:
            context = replace(self._context, is_last_attempt=calls.is_last)
            ran = await perform([c for c, _ in todo], self._plan.functions, context, self._validation)
            results |= {position: result for (_, position), result in zip(todo, ran, strict=True)}
            results |= await self._flush(key, {p: c for c, p in todo}, results)
        return tuple(results[position] for position in calls.positions)

    def _reload(self, call: ToolCall, link: Link) -> ToolResult | None:
        found = self._written.get((link.reply, link.position))
        if found is None or found["call"] != call_hash(call.name, call.arguments):
            return None
        row = self._plan.store.reload(found)
        if row is None and found["table"] is not None:
            return None
        self.claimed.add(link)
        return ToolResult(
            call.id, call.name, found["content"], Verdict(found["verdict"]), row, found["arguments"],
            flags=tuple(found["flags"]),
        )  # fmt: skip

    async def _flush(
        self, key: str, calls: Mapping[int, ToolCall], results: Mapping[int, ToolResult]
    ) -> dict[int, ToolResult]:
        """Write what was accepted; the database may still find a duplicate, or reject."""
        accepted = [p for p in calls if results[p].verdict is Verdict.ACCEPTED]
        if not accepted:
            return {}
        written = [
            Written(key, p, call_hash(calls[p].name, calls[p].arguments), results[p]) for p in accepted
        ]  # fmt: skip
        final = dict(
            zip(accepted, await self._plan.store.flush(self._work, written, frozenset(self.claimed)), strict=True)
        )
        self.claimed.update(Link(key, p) for p, result in final.items() if result.verdict in KEPT)
        return final
