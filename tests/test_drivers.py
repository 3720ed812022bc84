"""Drivers, kept replies and request keys."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any
from weakref import WeakValueDictionary

import pytest

from extractor.chain import opening, until_success
from extractor.conversation import Rules
from extractor.drivers import Asking, arun, kept, request_key, run
from extractor.messages import (
    Ask,
    Calls,
    Message,
    Offer,
    Reply,
    Sampling,
    ToolCall,
    ToolResult,
    Unanswered,
    Verdict,
)
from extractor.outcome import Status
from extractor.testing import Scripted, call, reply

OFFER = Offer("create_invoice", "Record one invoice.", {"type": "object", "properties": {"a": {}, "b": {}}})
ASK = Ask((Message("user", "Invoice 1"),), (OFFER,))


@dataclass
class Shelf:
    """Replies kept in memory, as a store would."""

    replies: dict[str, Reply] = field(default_factory=dict)

    async def get(self, key: str) -> Reply | None:
        await asyncio.sleep(0)
        return self.replies.get(key)

    async def keep(self, key: str, reply: Reply) -> None:
        await asyncio.sleep(0)
        self.replies[key] = reply


def accept(calls: Calls) -> tuple[ToolResult, ...]:
    return tuple(ToolResult(one.id, one.name, "SUCCESS", processed_content=one.arguments) for one in calls.calls)


async def accept_later(calls: Calls) -> tuple[ToolResult, ...]:
    await asyncio.sleep(0)
    return accept(calls)


def reject_first(calls: Calls) -> tuple[ToolResult, ...]:
    if calls.reply == 0:
        return tuple(ToolResult(one.id, one.name, "total: wrong", Verdict.REJECTED) for one in calls.calls)
    return accept(calls)


def flow(**rules: Any) -> Any:
    return until_success(opening(ASK.messages, ASK.offers, Rules(**rules)))


def test_run_and_arun_are_the_same() -> None:
    """The plain and the awaiting driver give the same outcome, transcript and all."""
    answers = [reply(call("create_invoice", total="1")), reply(call("create_invoice", total="2"))]
    plain = run(flow(), _from(answers), reject_first)

    async def later(calls: Calls) -> tuple[ToolResult, ...]:
        return reject_first(calls)

    assert asyncio.run(arun(flow(), Scripted(*answers).ask, later)) == plain
    assert plain.status is Status.DONE


def _from(answers: list[Reply]) -> Callable[[Ask], Reply]:
    waiting = iter(answers)
    return lambda _: next(waiting)


def test_arun_inside_a_running_loop() -> None:
    """Any number of loops are driven at once on one event loop."""

    async def many() -> list[Status]:
        model = Scripted(lambda _: call("create_invoice", total="1"))
        outcomes = await asyncio.gather(*(arun(flow(), model.ask, accept_later) for _ in range(20)))
        return [outcome.status for outcome in outcomes]

    assert asyncio.run(many()) == [Status.DONE] * 20


@pytest.mark.parametrize("wrong", [None, "text", ()])
def test_a_put_that_answers_nothing(wrong: Any) -> None:
    """A ``put`` that gives back no answer is a plain TypeError, not an endless loop."""
    with pytest.raises(TypeError, match="Ask is answered"):
        run(flow(), lambda _: wrong, accept)


def test_errors_pass_through() -> None:
    """What ``put`` or ``perform`` raises is the caller's."""
    with pytest.raises(OSError, match="disk"):
        run(flow(), _raise, accept)
    with pytest.raises(OSError, match="disk"):
        run(flow(), lambda _: reply(call("create_invoice")), _raise)


def _raise(_: object) -> Any:
    raise OSError("disk")


def test_a_kept_reply_is_not_asked_for_again() -> None:
    """The second conversation over the same document is answered from what is kept."""
    shelf, model = Shelf(), Scripted(call("create_invoice", total="1"), call("create_invoice", total="2"))

    async def once(calls: Calls) -> tuple[ToolResult, ...]:
        return reject_first(calls)

    first = asyncio.run(arun(flow(), kept(model.ask, shelf, lambda _: model.identity), once))
    second = asyncio.run(arun(flow(), kept(model.ask, shelf, lambda _: model.identity), once))
    assert first == second
    assert len(model.asks) == len(shelf.replies) == 2


def test_a_reply_is_kept_before_it_is_answered_with() -> None:
    """A reply that was paid for is durable before anything is done with it."""
    shelf, seen = Shelf(), []

    async def look(calls: Calls) -> tuple[ToolResult, ...]:
        seen.append(len(shelf.replies))
        return accept(calls)

    asyncio.run(arun(flow(), kept(Scripted(call("create_invoice")).ask, shelf, lambda _: "m"), look))
    assert seen == [1]


def test_unanswered_is_not_kept() -> None:
    """That nobody answered is not kept: the next run asks again."""
    shelf, model = Shelf(), Scripted(Unanswered("timeout", "x"), call("create_invoice"))
    put = kept(model.ask, shelf, lambda _: "m")
    assert asyncio.run(arun(flow(), put, accept_later)).status is Status.FAILED
    assert shelf.replies == {}
    assert asyncio.run(arun(flow(), put, accept_later)).status is Status.DONE


def test_models_do_not_answer_for_each_other() -> None:
    """A kept reply of one rank's model is none of another's."""
    shelf, model = Shelf(), Scripted(lambda _: "no call")
    put = kept(model.ask, shelf, lambda rank: f"model-{rank}")
    asyncio.run(arun(flow(max_attempts=1), put, accept_later))
    asyncio.run(_await(put(replace(ASK, rank=1))))
    assert len(model.asks) == 2


def test_equal_questions_at_once_are_put_once() -> None:
    """Of many equal questions asked at once only one is put; the others wait for its reply."""
    shelf, model = Shelf(), Scripted(_slowly(call("create_invoice")))
    put = kept(model.ask, shelf, lambda _: "m")

    async def many() -> set[Reply | Unanswered]:
        return set(await asyncio.gather(*(put(ASK) for _ in range(10)), put(ASK)))

    assert asyncio.run(many()) == {reply(call("create_invoice"))}
    assert len(model.asks) == 1


def test_documents_that_share_their_locks_put_an_equal_question_once() -> None:
    """Each document keeps replies in its own name; an equal question of two is put by one, and the other meets its
    reply."""
    model, replies = Scripted(_slowly(call("create_invoice"))), {}
    asking: Asking = WeakValueDictionary()
    shelves = [Shelf(replies), Shelf(replies)]

    async def two() -> None:
        await asyncio.gather(*(kept(model.ask, shelf, lambda _: "m", asking)(ASK) for shelf in shelves))

    asyncio.run(two())
    assert len(model.asks) == 1
    assert len(asking) == 0


def test_one_question_at_a_time_while_nobody_answers() -> None:
    """While a question goes unanswered, its equals that wait are put one after the other, never two at once."""
    present, most = 0, 0

    async def down(_: Ask) -> Unanswered:
        nonlocal present, most
        present += 1
        most = max(most, present)
        await asyncio.sleep(0)
        present -= 1
        return Unanswered("unavailable", "503")

    put = kept(down, Shelf(), lambda _: "m")

    async def late() -> Any:
        await asyncio.sleep(0.001)
        return await put(ASK)

    async def many() -> None:
        await asyncio.gather(*(put(ASK) for _ in range(20)), *(late() for _ in range(5)))

    asyncio.run(many())
    assert most == 1


def test_other_questions_do_not_wait() -> None:
    """Different questions are put side by side."""
    both = asyncio.Event()
    waiting = 0

    async def together(_: Ask) -> Reply:
        nonlocal waiting
        waiting += 1
        if waiting == 2:
            both.set()
        await both.wait()
        return reply(text="x")

    put = kept(together, Shelf(), lambda _: "m")

    async def two() -> None:
        other = replace(ASK, messages=(Message("user", "Invoice 2"),))
        await asyncio.wait_for(asyncio.gather(put(ASK), put(other)), 5)

    asyncio.run(two())


def test_a_cancelled_question_lets_the_next_one_through() -> None:
    """A question that is cancelled gives its place free."""

    async def stuck_then_free() -> Reply | Unanswered:
        model = Scripted(_slowly(reply(text="x"), 0.05))
        put = kept(model.ask, Shelf(), lambda _: "m")
        first = asyncio.create_task(_await(put(ASK)))
        second = asyncio.create_task(_await(put(ASK)))
        await asyncio.sleep(0.01)
        first.cancel()
        return await asyncio.wait_for(second, 5)

    assert asyncio.run(stuck_then_free()) == reply(text="x")


async def _await(answer: Awaitable[Reply | Unanswered]) -> Reply | Unanswered:
    return await answer


def _slowly(answer: Any, seconds: float = 0.01) -> Any:
    async def answering(_: Ask) -> Any:
        await asyncio.sleep(seconds)
        return answer

    return answering


FULL = Ask(
    (
        Message("system", "Extract."),
        Message("user", "Invoice 1"),
        Message("assistant", "Here", (ToolCall("1", "create_invoice", '{"a": 1}'),)),
        Message("tool", tool_results=(ToolResult("1", "create_invoice", "a: wrong", Verdict.REJECTED),)),
    ),
    (OFFER,),
)


def _with(place: int, **changes: Any) -> Ask:
    messages = list(FULL.messages)
    messages[place] = replace(messages[place], **changes)
    return replace(FULL, messages=tuple(messages))


def _offered(**changes: Any) -> Ask:
    return replace(FULL, offers=(replace(OFFER, **changes),))


CHANGED = {
    "a word of the document": _with(1, content="Invoice 2"),
    "a role": _with(1, role="assistant"),
    "what the model said": _with(2, content="There"),
    "a call's name": _with(2, tool_calls=(ToolCall("1", "create_note", '{"a": 1}'),)),
    "a call's arguments": _with(2, tool_calls=(ToolCall("1", "create_invoice", '{"a": 2}'),)),
    "a call's id": _with(2, tool_calls=(ToolCall("2", "create_invoice", '{"a": 1}'),)),
    "a result's text": _with(3, tool_results=(ToolResult("1", "create_invoice", "a: bad", Verdict.REJECTED),)),
    "a result's being an error": _with(3, tool_results=(ToolResult("1", "create_invoice", "a: wrong"),)),
    "one message fewer": replace(FULL, messages=FULL.messages[:-1]),
    "an offer's name": _offered(name="f"),
    "an offer's description": _offered(description="x"),
    "an offer's schema": _offered(parameters={"type": "object"}),
    "the order of fields": _offered(parameters={"type": "object", "properties": {"b": {}, "a": {}}}),
    "strictness": _offered(strict=True),
    "no offers": replace(FULL, offers=()),
    "temperature": replace(FULL, sampling=Sampling(temperature=0.5)),
    "the cap": replace(FULL, sampling=Sampling(max_tokens=1)),
    "the sample": replace(FULL, sampling=Sampling(sample=1)),
}


def test_request_key_tells_questions_apart() -> None:
    """Whatever is shown to a model, or decides how it answers, is part of the key, and so is the model."""
    keys = {what: request_key("m", ask) for what, ask in CHANGED.items()} | {"another model": request_key("n", FULL)}
    assert request_key("m", FULL) not in keys.values()
    assert len(set(keys.values())) == len(keys)


def test_request_key_is_the_same_for_equal_questions() -> None:
    """The key survives copying and JSON, and holds nothing that the model is not shown."""
    key = request_key("m", FULL)
    assert key == request_key("m", copy.deepcopy(FULL))
    assert key == request_key("m", replace(FULL, rank=1))
    assert key == request_key("m", _offered(parameters=json.loads(json.dumps(OFFER.parameters))))
    assert key == request_key("m", _offered(parameters=MappingProxyType(dict(OFFER.parameters))))
    unseen = ToolResult(
        "1", "create_invoice", "a: wrong", Verdict.REJECTED, object(), {"a": 1}, ("a",), ("flag",), "Traceback"
    )
    assert key == request_key("m", _with(3, tool_results=(unseen,)))


def test_request_key_of_any_text() -> None:
    """Lone surrogates and arguments in any form have a key; an object has one whatever the order of its keys."""
    assert request_key("m", _with(1, content="\ud800")) != request_key("m", _with(1, content="\ud801"))

    def of(arguments: Any) -> str:
        return request_key("m", _with(2, tool_calls=(ToolCall("1", "f", arguments),)))

    assert of({"a": 1, "b": 2}) == of({"b": 2, "a": 1}) == of(MappingProxyType({"a": 1, "b": 2}))
    assert len({of(None), of(""), of("{}"), of({})}) == 4


def test_request_key_does_not_depend_on_the_process() -> None:
    """The key of a question is a constant: what was kept last year is found again."""
    assert request_key("m", FULL) == "093776f39690d4966dc73f13f4c11186884482fb8d415f10e6ea7de856a4435b"
