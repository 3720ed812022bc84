"""One document, from bytes to an outcome in the store."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from extractor import prompts
from extractor.attempts import Policy
from extractor.budget import Account
from extractor.calling import perform
from extractor.chain import opening, until_success
from extractor.conversation import KEPT, Conversation, Rules
from extractor.documents import Document, load
from extractor.documents.loading import is_quick, read_bytes
from extractor.drivers import arun, kept
from extractor.engines.local import LeftForLater, at_work
from extractor.errors import DocumentError, ExtractorError, UnreadableDocument
from extractor.events import Handlers, Watch, live
from extractor.evidence.finding import Finder
from extractor.evidence.policy import Examine, Policies, examiner
from extractor.fields.style import Style
from extractor.functions import Context, Function
from extractor.messages import Ask, Calls, Image, Offer, Reply, Sampling, ToolCall, ToolResult, Unanswered, Verdict
from extractor.models import Model
from extractor.outcome import Outcome, Status
from extractor.store.codec import call_hash
from extractor.store.ledger import Asked, Seen, Work
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
    account: Account
    """What the run has spent, and may."""
    tags: tuple[str, ...] = ()
    """Under which what it costs is counted."""
    fresh_since: datetime | None = None
    """Replies that were kept before are not used."""
    run: int | None = None
    vision: bool = False
    """The model is shown the pages as pictures too."""
    evidence: Policies = field(default_factory=Policies)
    """What is asked of where values stand in the document."""
    handlers: Handlers = field(default_factory=Handlers)
    """Who wants to know what happens."""
    offers: tuple[Offer, ...] = field(init=False)
    """What the functions offer; the same objects for every document, by which their texts are known again."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "offers", tuple(function.offer for function in self.functions.values()))

    def opening(self, text: str, images: Sequence[Image] = ()) -> Conversation:
        """The conversation about a document before the first ask."""
        return opening(prompts.opening(text, self.instructions, images), self.offers, self.rules, self.sampling)

    def watch(self, document: str, source: str) -> AbstractContextManager[Watch]:
        """Tells the handlers of one document, from here to the end of the block."""
        names = [model.name for model in self.models]
        return self.handlers.document(document, source, self.pipeline, self.run, names)

    def one_at_a_time(self, document: str) -> asyncio.Lock:
        """Held while a document is in hand, also by another call; the second of two equal ones finds it settled."""
        busy, key = self.store.in_hand().documents, f"{self.pipeline} {document}"
        lock = busy.get(key)
        if lock is None:
            lock = busy[key] = asyncio.Lock()
        return lock


async def extract(plan: Plan, source: Source) -> Outcome:
    """Take one document through a pipeline. Whatever is wrong with the document is in the outcome, never raised.

    :raises LeftForLater: when the budget does not allow its next question; a later run goes on from here.
    :raises StoreError: when the database cannot be read or written.
    """
    return replace(await _extract(plan, source), key=source.key)


async def _extract(plan: Plan, source: Source) -> Outcome:
    begun = time.monotonic()
    try:
        data = source.data if source.data is not None else await asyncio.to_thread(source.read)
    except DocumentError as error:
        return await _unread(plan, source, error, begun)
    seen = Seen(hashlib.sha256(data).hexdigest(), source.name, len(data))
    async with plan.one_at_a_time(seen.hash):
        with plan.watch(seen.hash, source.name) as watch:
            return watch.finished(await _read(plan, source, data, seen, watch))


async def _read(plan: Plan, source: Source, data: bytes, seen: Seen, watch: Watch) -> Outcome:
    begun = time.monotonic()
    work = await plan.store.begin(seen, plan.pipeline, plan.fingerprint, plan.run)
    if work.is_settled:
        return plan.store.outcome(work, plan.fingerprint, source.name)
    passage = Passage(plan, source, work, watch)
    outcome = await _taken(passage, partial(_understood, data, source.name, plan), is_quick(data))
    outcome = replace(outcome, source=source.name, document=seen.hash)
    seconds = time.monotonic() - begun
    claimed = frozenset(passage.claimed)
    return await plan.store.finish(work, outcome, passage.replies.keys, seconds, claimed, passage.document)


@dataclass(frozen=True, slots=True)
class Understood:
    """A document, the pictures that a model is shown of it, and how it writes numbers and dates."""

    document: Document
    images: tuple[Image, ...]
    style: Style


def _understood(data: bytes, name: str, plan: Plan) -> Understood:
    """What can be known of a document without asking anybody.

    :raises DocumentError: when there is nothing to show to a model.
    """
    if plan.vision:
        from extractor.documents.pictures import load_seen

        document, images = load_seen(data, name)
    else:
        document, images = load(data, name=name), ()
    return Understood(document, images, Style.of(document.text, **plan.style))


async def _taken(passage: Passage, understand: Callable[[], Understood], is_quick: bool) -> Outcome:
    """One document's trouble is its own: whatever breaks on its way never ends the run."""
    try:
        return await passage.take(understand() if is_quick else await asyncio.to_thread(understand))
    except DocumentError as error:
        return Outcome(Status.FAILED, error=str(error))
    except (ExtractorError, LeftForLater, AssertionError):  # no model, database or money; or a test's script has ended
        raise
    except Exception as error:
        cause = "".join(traceback.format_exception(error))
        return Outcome(Status.FAILED, error=f"an unexpected {type(error).__name__} on the way", cause=cause)


async def _unread(plan: Plan, source: Source, error: DocumentError, begun: float) -> Outcome:
    """A document without bytes is in the ledger too, under the hash of its name."""
    name = hashlib.sha256(f"unread:{source.name}".encode("utf-8", "surrogatepass")).hexdigest()
    with plan.watch(name, source.name) as watch:
        work = await plan.store.begin(Seen(name, source.name, 0), plan.pipeline, plan.fingerprint, plan.run)
        outcome = Outcome(Status.FAILED, error=str(error), source=source.name, document=name)
        return watch.finished(await plan.store.finish(work, outcome, (), time.monotonic() - begun, ()))


class DocumentReplies:
    """The replies that one document meets: those that are kept, and the live ones, which are charged to it."""

    def __init__(self, plan: Plan, work: Work) -> None:
        self._plan = plan
        self._work = work
        self._asked: Asked | None = None
        self._safe: Callable[[], object] = lambda: None
        self.keys: list[str | None] = []
        """The request key of each reply, in order."""

    async def get(self, key: str) -> Reply | None:
        """The kept reply, if there is one that may be used."""
        reply = await self._plan.store.get(key, self._plan.fresh_since)
        if reply is not None:
            self.keys.append(key)
        return reply

    async def ask(self, ask: Ask) -> Reply | Unanswered:
        """Put a question to the model of its rank. That nobody answered is charged here, a reply where it is kept."""
        plan = self._plan
        model = plan.models[ask.rank]
        async with at_work() as place:
            answer, cost = await plan.account.put(ask, live(model.ask))
            if isinstance(answer, Unanswered):
                place.keep()  # it may be the provider's last word: then nobody else is to ask
            else:
                self._safe = place.owe()
        work = self._work
        self._asked = Asked(
            plan.run, work.id, plan.pipeline, work.document, model.name, ask.rank, answer, cost, plan.tags
        )  # fmt: skip
        if isinstance(answer, Unanswered):
            await plan.store.charge(self._asked)
        return answer

    async def keep(self, key: str, reply: Reply) -> None:
        """Keep the reply of the live ask, with what it cost."""
        self.keys.append(key)
        is_fresh = self._plan.fresh_since is not None
        await self._plan.store.keep(key, reply, self._asked, replace=is_fresh, then=self._safe)


class Passage:
    """The passage of one document through the loop: which replies it met, and which of its calls are written."""

    def __init__(self, plan: Plan, source: Source, work: Work, watch: Watch) -> None:
        self._plan = plan
        self._watch = watch
        self._source = source
        self._work = work
        self._written = {} if work.is_new else {(x["reply"], x["position"]): x for x in plan.store.links(work)}
        self._evidence = {} if work.is_new else plan.store.evidence(work)
        self._context = Context(document=None, values=source.values or {})
        self._validation: dict[str, Any] = {}
        self._examine: Examine | None = None
        self.document: Document | None = None
        """Once it is read."""
        self.replies = DocumentReplies(plan, work)
        self.claimed: set[Link] = set()

    async def take(self, understood: Understood) -> Outcome:
        """Ask until success, on what is known of the document."""
        plan, document = self._plan, understood.document
        self.document = document
        self._context = replace(self._context, document=document, style=understood.style)
        self._validation = {"style": understood.style, "text": document.text}
        if not plan.evidence.is_off and not document.text.isspace() and document.text:
            self._examine = examiner(Finder(document, understood.style), plan.evidence)
        state = plan.opening(document.text, understood.images)
        put = kept(
            self.replies.ask, self.replies, lambda rank: plan.models[rank].identity, plan.store.in_hand().questions
        )
        flow = until_success(state, plan.policy)
        outcome = await arun(flow, self._watch.put(put), self._watch.perform(self._perform))
        if document.flags:
            outcome = replace(outcome, flags=(*outcome.flags, *document.flags))
        if not document.is_complete:
            pages = ", ".join(str(page.number) for page in document.failed_pages)
            outcome = replace(outcome, flags=(*outcome.flags, f"incomplete: page {pages} could not be read"))
        return outcome

    async def _perform(self, calls: Calls) -> tuple[ToolResult, ...]:
        """Run the calls of one reply and write what is accepted; calls that were written before are reloaded."""
        key = self.replies.keys[-1] or ""
        results: dict[int, ToolResult] = {}
        for call, position in zip(calls.calls, calls.positions, strict=True):
            reloaded = self._reload(call, Link(key, position))
            if reloaded is not None:
                results[position] = reloaded
        todo = [(c, p) for c, p in zip(calls.calls, calls.positions, strict=True) if p not in results]
        if todo:
            context = replace(self._context, is_last_attempt=calls.is_last)
            ran = await perform([c for c, _ in todo], self._plan.functions, context, self._validation, self._examine)
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
            flags=tuple(found["flags"]), evidence=self._evidence.get(found["id"], ()),
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
