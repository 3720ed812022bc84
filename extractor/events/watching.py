"""Handlers of events, and the watch over one document that tells them."""

from __future__ import annotations

import contextlib
import inspect
import itertools
import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extractor.errors import UsageError
from extractor.events.event import Event, Kind
from extractor.messages import Ask, Calls, Reply, ToolCall, ToolResult, Unanswered, Usage, Verdict
from extractor.outcome import Outcome

if TYPE_CHECKING:
    from extractor.drivers import Perform, Put

logger = logging.getLogger("extractor.events")

_ID = re.compile(r"[\w.:-]{1,100}", re.ASCII)

Handler = Callable[[Event], object]


class Handlers:
    """Whoever wants to know; false when there is nobody.

    :param on_event: a handler, several, or none.
    :raises UsageError: when one of them is no plain function of an event.
    """

    def __init__(self, on_event: Handlers | Handler | Iterable[Handler] | None = None) -> None:
        handlers = _several(on_event)
        for handler in handlers:
            if inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(type(handler).__call__):
                hint = "let it put the event into a queue that your coroutine reads"
                raise UsageError(f"the handler of events {_named(handler)} is async", hint=hint)
        self.all = handlers

    def __bool__(self) -> bool:
        return bool(self.all)

    def __add__(self, other: Handlers) -> Handlers:
        return Handlers((*self.all, *other.all))

    def __repr__(self) -> str:
        return f"Handlers({', '.join(_named(handler) for handler in self.all)})"

    def emit(self, event: Event) -> None:
        """Tell every handler; one that raises is logged by the class of its error, since the text may hold anything."""
        for handler in self.all:
            try:
                handler(event)
            except Exception as error:
                kind, where = type(error).__name__, _where(error)
                logger.error("the handler %s raised %s (%s) on %s", _named(handler), kind, where, event.kind)

    @contextlib.contextmanager
    def document(
        self, document: str, source: str, pipeline: str, run: int | None = None, models: Sequence[str] = ()
    ) -> Iterator[Watch]:
        """Watch one document on its way: tells its start now and its end at exit, however it is left.

        :param document: hash of its bytes.
        :param source: what people know it by.
        :param models: names of the models, by rank.
        """
        if not self:
            yield _NOBODY
            return
        about = {"document": document, "source": source, "pipeline": pipeline, "run": run}
        watch = _Watching(self, {**about, "passage": next(_passages)}, models)
        try:
            yield watch
        except BaseException as error:
            watch.end(type(error).__name__)
            raise
        watch.end()

    def stopped(self, pipeline: str, run: int | None, model: str, error: str) -> None:
        """Tell that a run ends before its documents do.

        :param error: why, in one word: the kind of an :class:`~extractor.messages.Unanswered`, or ``budget``.
        """
        if self:
            self.emit(Event(Kind.RUN_STOPPED, pipeline=pipeline, run=run, model=model, error=error))


class Watch:
    """One document that nobody watches. The same with handlers tells them what happens."""

    def put(self, put: Put) -> Put:
        """How the document's questions are put, watched. What really asks goes through :func:`live`."""
        return put

    def perform(self, perform: Perform) -> Perform:
        """How the calls of a reply are run and written, watched."""
        return perform

    def finished(self, outcome: Outcome) -> Outcome:
        """What came of the document, to be told at its end; the same outcome comes back."""
        return outcome


_NOBODY = Watch()
_passages = itertools.count(1)
_asking: ContextVar[_Question | None] = ContextVar("extractor_asking", default=None)


def live(put: Put) -> Put:
    """What really puts a question to a model: whatever does not come this far was answered from what is kept.

    It stands around the innermost ``put``, below :func:`extractor.drivers.kept`, and serves all documents.
    """

    async def put_live(ask: Ask) -> Reply | Unanswered:
        question = _asking.get()
        if question is None:
            return await put(ask)
        question.begin()
        try:
            answer = await put(ask)
        except BaseException as error:
            question.broken(error)
            raise
        question.answered(answer)
        return answer

    return put_live


class _Watching(Watch):
    """One document on its way."""

    def __init__(self, handlers: Handlers, about: dict[str, Any], models: Sequence[str]) -> None:
        self._handlers = handlers
        self._about = about
        self._models = models
        self._begun = time.monotonic()
        self._outcome: Outcome | None = None
        self._attempt = 0
        self._rank = 0
        self._trouble = "open"
        self._offered: frozenset[str] = frozenset()
        self._is_replayed = False
        self.tell(Kind.DOCUMENT_STARTED)

    def tell(self, kind: Kind, **more: Any) -> None:
        """Tell the handlers of something in this document."""
        self._handlers.emit(Event(kind, **self._about, **more))

    def put(self, put: Put) -> Put:
        async def put_watched(ask: Ask) -> Reply | Unanswered:
            self._attempt += 1
            self._offered = frozenset(offer.name for offer in ask.offers)
            question = _Question(self, ask, self._attempt, self._model(ask.rank))
            token = _asking.set(question)
            try:
                answer = await put(ask)
            finally:
                _asking.reset(token)
            if not question.is_live:
                question.replayed(answer)
            self._is_replayed = not question.is_live
            self._trouble = _trouble(answer)
            return answer

        return put_watched

    def perform(self, perform: Perform) -> Perform:
        async def perform_watched(calls: Calls) -> tuple[ToolResult, ...]:
            begun = time.monotonic()
            about = [self._of_call(call, place) for call, place in zip(calls.calls, calls.positions, strict=True)]
            for one in about:
                self.tell(Kind.CALL_STARTED, **one)
            try:
                results = await perform(calls)
            except BaseException as error:
                seconds = time.monotonic() - begun
                for one in about:
                    self.tell(Kind.CALL_FAILED, **one, seconds=seconds, error=type(error).__name__)
                raise
            seconds = time.monotonic() - begun
            for one, result in zip(about, results, strict=False):
                kind = Kind.CALL_FAILED if result.is_error else Kind.CALL_COMPLETED
                wrong = str(result.verdict) if result.is_error else ""
                self.tell(kind, **one, seconds=seconds, status=str(result.verdict), error=wrong, result=result)
            if any(result.verdict is Verdict.REJECTED for result in results):
                self._trouble = str(Verdict.REJECTED)
            return results

        return perform_watched

    def finished(self, outcome: Outcome) -> Outcome:
        self._outcome = outcome
        return outcome

    def end(self, error: str = "") -> None:
        """Tell the end, with the outcome if there is one."""
        seconds, outcome = time.monotonic() - self._begun, self._outcome
        if outcome is None:
            self.tell(Kind.DOCUMENT_FINISHED, seconds=seconds, error=error)
            return
        silent = outcome.unanswered
        self.tell(
            Kind.DOCUMENT_FINISHED, seconds=seconds, usage=outcome.usage, status=str(outcome.status), outcome=outcome,
            error=error or (silent.kind if silent is not None else ""), is_replayed=outcome.is_cached,
            model=self._model(self._rank) if self._attempt else "", rank=self._rank, attempt=self._attempt,
        )  # fmt: skip

    def announce(self, question: _Question) -> None:
        """Tell that it is asked again, or another model, where that is so."""
        is_changed, self._rank = question.ask.rank != self._rank, question.ask.rank
        if is_changed:
            self.tell(Kind.MODEL_CHANGED, **question.about, error=self._trouble)
        elif question.attempt > 1:
            self.tell(Kind.RETRY, **question.about, error=self._trouble)

    def _model(self, rank: int) -> str:
        return self._models[rank] if rank < len(self._models) else ""

    def _of_call(self, call: ToolCall, position: int) -> dict[str, Any]:
        known = {"model": self._model(self._rank), "rank": self._rank, "attempt": self._attempt}
        return {
            **known, "call": call, "position": position, "is_replayed": self._is_replayed,
            "function": call.name if call.name in self._offered else "",
            "call_id": call.id if _ID.fullmatch(call.id) else "",
        }  # fmt: skip


class _Question:
    """One question on its way; it learns from :func:`live` that it came to a model."""

    def __init__(self, watch: _Watching, ask: Ask, attempt: int, model: str) -> None:
        self.ask = ask
        self.attempt = attempt
        self.is_live = False
        self.about: dict[str, Any] = {"model": model, "rank": ask.rank, "attempt": attempt, "ask": ask}
        self._watch = watch
        self._begun = 0.0

    def begin(self) -> None:
        """It goes to a model."""
        self.is_live = True
        self.about["is_replayed"] = False
        self._watch.announce(self)
        self._watch.tell(Kind.ASK, **self.about)
        self._begun = time.monotonic()

    def answered(self, answer: Reply | Unanswered) -> None:
        """The model has answered, or nobody did."""
        seconds = time.monotonic() - self._begun
        self._tell(answer, seconds)
        if answer.usage != Usage():
            self._watch.tell(Kind.USAGE, **self.about, usage=answer.usage, answer=answer)

    def replayed(self, answer: Reply | Unanswered) -> None:
        """It was answered from what is kept."""
        self.about["is_replayed"] = True
        self._watch.announce(self)
        self._tell(answer, 0.0)

    def broken(self, error: BaseException) -> None:
        """It was given up, or broke off."""
        seconds = time.monotonic() - self._begun
        self._watch.tell(Kind.UNANSWERED, **self.about, seconds=seconds, error=type(error).__name__)

    def _tell(self, answer: Reply | Unanswered, seconds: float) -> None:
        kind, error = (Kind.REPLY, "") if isinstance(answer, Reply) else (Kind.UNANSWERED, answer.kind)
        self._watch.tell(kind, **self.about, answer=answer, usage=answer.usage, seconds=seconds, error=error)


def _several(on_event: Handlers | Handler | Iterable[Handler] | None) -> tuple[Handler, ...]:
    if isinstance(on_event, Handlers):
        return on_event.all
    if on_event is None or callable(on_event):
        return () if on_event is None else (on_event,)
    several: tuple[object, ...] = tuple(on_event) if isinstance(on_event, Iterable) else (on_event,)
    for one in several:
        if not callable(one):
            raise UsageError(f"a handler of events is a function, not {type(one).__name__}")
    return tuple(one for one in several if callable(one))


def _trouble(answer: Reply | Unanswered) -> str:
    if isinstance(answer, Unanswered):
        return answer.kind
    if answer.finish_reason == "length":
        return "length"
    return "open" if answer.tool_calls else "no_call"


def _named(handler: Handler) -> str:
    return getattr(handler, "__qualname__", type(handler).__name__)


def _where(error: BaseException) -> str:
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    return f"{Path(step.tb_frame.f_code.co_filename).name}:{step.tb_lineno}" if step is not None else "nowhere"
