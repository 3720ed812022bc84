"""What happens in a run, told to handlers: one frozen record for everything."""

from __future__ import annotations

import asyncio
import dataclasses
import io
import logging
import sys
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractor.chain import opening, until_success
from extractor.conversation import Rules
from extractor.drivers import arun, kept
from extractor.errors import UsageError
from extractor.events import Event, Handlers, Kind, Watch, configure_logging, live, log_handler
from extractor.messages import Ask, Calls, Message, Offer, Reply, ToolCall, ToolResult, Unanswered, Usage, Verdict
from extractor.outcome import Outcome, Status
from extractor.testing import Scripted, call, reply

OFFERS = (Offer("create_invoice", "", {"type": "object"}),)
SECRET = "Rosa Luxemburg owes 99.00"
GOOD = reply(call("create_invoice", total="1.00"), usage=Usage(10, 5))
BAD = reply(call("create_invoice", total="bad"), usage=Usage(20, 7))


class Memory:
    """Replies, kept in a dictionary."""

    def __init__(self) -> None:
        self.replies: dict[str, Reply] = {}

    async def get(self, key: str) -> Reply | None:
        return self.replies.get(key)

    async def keep(self, key: str, reply: Reply) -> None:
        self.replies[key] = reply


async def perform(calls: Calls) -> tuple[ToolResult, ...]:
    """Whatever says ``bad`` is rejected, what says ``bug`` breaks."""

    def result(one: ToolCall) -> ToolResult:
        said = str(one.arguments)
        verdict = Verdict.REJECTED if "bad" in said else Verdict.FAILED if "bug" in said else Verdict.ACCEPTED
        return ToolResult(one.id, one.name, f"{said} {SECRET}", verdict, processed_content=said)

    await asyncio.sleep(0)
    return tuple(result(one) for one in calls.calls)


async def take(
    handlers: Handlers, *models: Scripted, memory: Memory | None = None, document: str = "d1", text: str = SECRET,
    performing: Callable[[Calls], Awaitable[tuple[ToolResult, ...]]] = perform,
) -> Outcome:  # fmt: skip
    """One document through the loop, watched as a pipeline has it watched."""

    async def ask(question: Ask) -> Reply | Unanswered:
        return await models[question.rank].ask(question)

    put = kept(live(ask), memory or Memory(), lambda rank: models[rank].identity)
    state = opening((Message("user", text),), OFFERS, Rules(ranks=len(models)))
    with handlers.document(document, f"{document}.pdf", "invoices", 7, [one.name for one in models]) as watch:
        return watch.finished(await arun(until_success(state), watch.put(put), watch.perform(performing)))


def told(*models: Scripted, **options: Any) -> list[Event]:
    """The events of one document."""
    events: list[Event] = []
    asyncio.run(take(Handlers(events.append), *models, **options))
    return events


def kinds(events: list[Event]) -> list[str]:
    return [str(event.kind) for event in events]


def test_a_document_from_start_to_finish() -> None:
    """Everything that happens to a document is told, in order, and all of it is about that document."""
    events = told(Scripted(BAD, GOOD, name="openai/x"))
    assert kinds(events) == [
        "document_started",
        "ask", "reply", "usage", "call_started", "call_failed",
        "retry", "ask", "reply", "usage", "call_started", "call_completed",
        "document_finished",
    ]  # fmt: skip
    about = {(one.document, one.source, one.pipeline, one.run, one.passage) for one in events}
    assert about == {("d1", "d1.pdf", "invoices", 7, events[0].passage)}
    assert {one.model for one in events[1:]} == {"openai/x"}
    assert [one.attempt for one in events] == [0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2]
    failed, retry, completed, finished = events[5], events[6], events[11], events[12]
    assert (failed.function, failed.call_id, failed.status, failed.error) == (
        "create_invoice", "call_1", "rejected", "rejected",
    )  # fmt: skip
    assert retry.error == "rejected"
    assert (completed.status, completed.error) == ("accepted", "")
    assert (finished.status, finished.error, finished.usage) == ("done", "", Usage(30, 12))
    assert not any(one.is_replayed for one in events)


def test_objects_for_those_who_want_them() -> None:
    """The question, the answer, the call, its result and the outcome go with their events."""
    _, ask, answer, usage, started, completed, finished = told(Scripted(GOOD))
    assert ask.ask is not None
    assert ask.ask.messages[0].content == SECRET
    assert answer.answer == usage.answer == GOOD
    assert started.call == completed.call == GOOD.tool_calls[0]
    assert completed.result is not None
    assert completed.result.verdict is Verdict.ACCEPTED
    assert finished.outcome is not None
    assert finished.outcome.status is Status.DONE


def test_a_reply_that_is_played_again() -> None:
    """A kept reply is told as replayed: no question goes out, and nothing is paid."""
    memory = Memory()
    told(Scripted(BAD, GOOD), memory=memory)
    events = told(Scripted(), memory=memory)
    assert kinds(events) == [
        "document_started", "reply", "call_started", "call_failed", "retry", "reply", "call_started",
        "call_completed", "document_finished",
    ]  # fmt: skip
    assert all(one.is_replayed for one in events[1:-1])
    assert events[1].answer == BAD


def test_equal_questions_at_once() -> None:
    """Of two equal documents at once one asks, and the other's reply is told as replayed."""
    events: list[Event] = []

    async def both() -> None:
        memory, model = Memory(), Scripted(GOOD)

        async def ask(question: Ask) -> Reply | Unanswered:
            await asyncio.sleep(0)
            return await model.ask(question)

        put = kept(live(ask), memory, lambda _: "m")

        async def one(name: str) -> None:
            with Handlers(events.append).document(name, name, "p") as watch:
                await watch.put(put)(Ask((Message("user", "x"),)))

        await asyncio.gather(one("a"), one("b"))

    asyncio.run(both())
    assert sorted((one.document, one.is_replayed) for one in events if one.kind is Kind.REPLY) == [
        ("a", False), ("b", True),
    ]  # fmt: skip
    assert [one.usage for one in events if one.kind is Kind.USAGE] == [Usage(10, 5)]


def test_the_next_model() -> None:
    """A model that does not answer is told with its kind and what it cost, and then the change of model."""
    silent = Unanswered("rate_limited", "too many requests", usage=Usage(3, 0))
    events = told(Scripted(silent, name="first"), Scripted(GOOD, name="second"))
    assert kinds(events)[1:6] == ["ask", "unanswered", "usage", "model_changed", "ask"]
    assert (events[2].model, events[2].error, events[2].usage) == ("first", "rate_limited", Usage(3, 0))
    assert (events[4].model, events[4].rank, events[4].error) == ("second", 1, "rate_limited")
    assert events[-1].model == "second"


@pytest.mark.parametrize(
    ("first", "error"),
    [
        (reply(text="hm"), "no_call"),
        (reply(call("create_invoice"), cut=True), "length"),
        (reply(call("create_invoice", total="bad")), "rejected"),
    ],
)
def test_why_it_is_asked_again(first: Reply, error: str) -> None:
    """A retry says in one word what was wrong with the answer before."""
    (retry,) = [one for one in told(Scripted(first, GOOD)) if one.kind is Kind.RETRY]
    assert retry.error == error


def test_a_bug_in_a_function() -> None:
    """A call that broke its function is told as failed."""
    events = told(Scripted(reply(call("create_invoice", total="bug"))))
    assert [(one.status, one.error) for one in events if one.kind is Kind.CALL_FAILED] == [("failed", "failed")]
    assert events[-1].status == "failed"


def test_what_breaks_off_has_its_end() -> None:
    """Whatever was begun is told as ended, by the class of the error, when a document breaks off."""
    events: list[Event] = []

    async def broken(_: Calls) -> tuple[ToolResult, ...]:
        raise KeyError(SECRET)

    with pytest.raises(KeyError):
        asyncio.run(take(Handlers(events.append), Scripted(GOOD), performing=broken))
    assert [(str(one.kind), one.error) for one in events[-2:]] == [
        ("call_failed", "KeyError"), ("document_finished", "KeyError"),
    ]  # fmt: skip
    events.clear()
    with pytest.raises(OSError, match="wire"):
        asyncio.run(take(Handlers(events.append), Scripted(OSError("wire"))))
    assert [(str(one.kind), one.error) for one in events[1:]] == [
        ("ask", ""), ("unanswered", "OSError"), ("document_finished", "OSError"),
    ]  # fmt: skip


def test_a_cancelled_document() -> None:
    """A document that is given up while its model is asked is told as ended."""
    events: list[Event] = []

    async def given_up() -> None:
        begun = asyncio.Event()

        async def never(_: Ask) -> Reply:
            begun.set()
            await asyncio.Event().wait()
            raise AssertionError

        task = asyncio.create_task(take(Handlers(events.append), Scripted(never)))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(given_up())
    assert [(str(one.kind), one.error) for one in events[2:]] == [
        ("unanswered", "CancelledError"), ("document_finished", "CancelledError"),
    ]  # fmt: skip


def test_many_documents_at_once() -> None:
    """Events of 64 documents at once are each told under their own document, in the order of its own way."""
    events: list[Event] = []

    async def answer(question: Ask) -> Reply:
        for _ in range(hash(question.messages[0].content) % 7):
            await asyncio.sleep(0)
        return BAD if len(question.messages) == 1 else GOOD

    async def all_of_them() -> None:
        handlers = Handlers(events.append)
        await asyncio.gather(*(take(handlers, Scripted(answer), document=f"d{n}", text=f"t{n}") for n in range(64)))

    asyncio.run(all_of_them())
    for n in range(64):
        own = [one for one in events if one.document == f"d{n}"]
        assert len({one.passage for one in own}) == 1
        assert kinds(own)[0] == "document_started"
        assert kinds(own)[-1] == "document_finished"
        assert [one.ask.messages[0].content for one in own if one.ask is not None] == [f"t{n}"] * len(
            [one for one in own if one.ask is not None]
        )
    assert len({one.passage for one in events}) == 64


def test_a_handler_that_raises(caplog: pytest.LogCaptureFixture) -> None:
    """A handler that raises is logged by the class of its error, without the error's text; the others are told."""
    events: list[Event] = []

    def wrong(event: Event) -> None:
        raise ValueError(SECRET)

    outcome = asyncio.run(take(Handlers([wrong, events.append]), Scripted(GOOD)))
    assert outcome.status is Status.DONE
    assert len(events) == 7
    assert len(caplog.records) == 7
    line = caplog.records[0]
    assert (line.name, line.levelname) == ("extractor.events", "ERROR")
    assert "wrong raised ValueError (test_events.py:" in line.getMessage()
    assert SECRET not in caplog.text


def test_what_is_no_handler() -> None:
    """A handler that is async, or no function, is refused when it is given."""

    async def later(_: Event) -> None: ...

    with pytest.raises(UsageError, match=r"later is async; let it put the event into a queue"):
        Handlers(later)
    for wrong in (7, ["x"]):
        with pytest.raises(UsageError, match="a handler of events is a function, not"):
            Handlers(wrong)  # type: ignore[arg-type]


def test_handlers_are_added() -> None:
    """Handlers of the pipeline and of the call are told one after the other."""
    seen: list[str] = []
    both = Handlers(lambda _: seen.append("pipeline")) + Handlers([lambda _: seen.append("call")])
    both.stopped("invoices", 7, "openai/x", "unauthorized")
    assert seen == ["pipeline", "call"]
    assert Handlers(both).all == both.all
    assert bool(both)
    assert not Handlers()
    assert not Handlers([])
    assert "<lambda>" in repr(both)


def test_a_stopped_run() -> None:
    """A run that ends early is told with its number, its model and why, in one word."""
    events: list[Event] = []
    Handlers(events.append).stopped("invoices", 7, "openai/x", "unauthorized")
    assert str(events[0]) == "run_stopped pipeline=invoices run=7 model=openai/x error=unauthorized"


def test_nobody_wants_to_know(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without handlers nothing is wrapped, and no record is made."""

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError

    monkeypatch.setattr("extractor.events.watching.Event", never)
    nobody = Handlers()
    with nobody.document("d", "d", "p") as watch:
        assert type(watch) is Watch
        assert watch.perform(perform) is perform
    nobody.stopped("p", None, "", "budget")
    assert asyncio.run(take(nobody, Scripted(GOOD))).status is Status.DONE


def test_frozen() -> None:
    """An event cannot be changed."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        Event(Kind.ASK).model = "x"  # type: ignore[misc]


def test_no_document_text_in_what_is_shown() -> None:
    """Neither the text nor the representation of an event holds what was asked, answered or called."""
    named = reply(ToolCall(SECRET, SECRET, f'{{"total": "{SECRET}"}}'), text=SECRET)
    for event in told(Scripted(named, reply(call("create_invoice", total="1")))):
        assert SECRET not in str(event)
        assert SECRET not in repr(event)
        assert "Rosa" not in f"{event!s}{event!r}"


@given(source=st.text(), name=st.text())
def test_one_line(source: str, name: str) -> None:
    """Whatever a document or a call is named, an event is one line."""
    events: list[Event] = []

    async def one() -> None:
        with Handlers(events.append).document("d" * 64, source, "p") as watch:
            watching = watch.perform(perform)
            await watching(Calls((ToolCall(name, name, "{}"),), 0, (0,)))

    asyncio.run(one())
    for event in events:
        assert len(str(event).splitlines()) == 1
        assert len(repr(event).splitlines()) == 1


def test_log_lines(caplog: pytest.LogCaptureFixture) -> None:
    """The handler for logging writes one line an event: ends at INFO, steps at DEBUG, and no document text."""
    caplog.set_level(logging.DEBUG, "extractor.events")
    asyncio.run(take(Handlers(log_handler), Scripted(GOOD, name="openai/x")))
    levels = [(line.levelname, line.getMessage().split()[0]) for line in caplog.records]
    assert levels == [
        ("DEBUG", "document_started"), ("DEBUG", "ask"), ("DEBUG", "reply"), ("DEBUG", "usage"),
        ("DEBUG", "call_started"), ("DEBUG", "call_completed"), ("INFO", "document_finished"),
    ]  # fmt: skip
    assert SECRET not in caplog.text
    assert "'d1.pdf'" in caplog.records[-1].getMessage()
    assert "status=done" in caplog.records[-1].getMessage()
    caplog.clear()
    caplog.set_level(logging.INFO, "extractor.events")
    asyncio.run(take(Handlers(log_handler), Scripted(GOOD)))
    assert [line.levelname for line in caplog.records] == ["INFO"]


@pytest.fixture
def _own_logging() -> Iterator[None]:
    ours = logging.getLogger("extractor")
    handlers, level = list(ours.handlers), ours.level
    yield
    ours.handlers[:] = handlers
    ours.setLevel(level)


@pytest.mark.usefixtures("_own_logging")
def test_configured_logging(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logging goes to whatever stderr is, in one format, once, from the level on that was named."""
    configure_logging("INFO")
    configure_logging("info")
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    log_handler(Event(Kind.ASK, source="a.pdf"))
    log_handler(Event(Kind.DOCUMENT_FINISHED, source="a.pdf", status="done"))
    assert stderr.getvalue().rstrip().endswith("INFO    extractor.events: document_finished 'a.pdf' status=done")
    assert len(stderr.getvalue().splitlines()) == 1
    configure_logging("debug")
    log_handler(Event(Kind.ASK, source="a.pdf"))
    assert len(stderr.getvalue().splitlines()) == 2
    assert logging.getLogger("openai").level == logging.NOTSET


def test_no_such_level() -> None:
    """A level that there is not is refused with those that there are."""
    with pytest.raises(UsageError, match="there is no log level 'loud'; there is debug, info, warning, error"):
        configure_logging("loud")
