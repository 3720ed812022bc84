"""The scripted model that is shipped for users' own tests."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from decimal import Decimal
from typing import Any

import pytest

from extractor import plugins, testing
from extractor.chain import opening, until_success
from extractor.drivers import arun
from extractor.errors import ConfigurationError
from extractor.messages import Ask, Calls, Message, Offer, Reply, ToolCall, ToolResult, Unanswered, Usage
from extractor.outcome import Status
from extractor.testing import Scripted, call, check_model, model, reply, shown

ASK = Ask((Message("user", "Invoice 1"),))

LIST = ["first", call("create_invoice", total="2.00")]
MODEL = Scripted("x", name="mine")
NUMBER = 7


def echo(ask: Ask) -> Any:
    """What a script on the command line may be: a function of the ask."""
    return call("create_invoice", text=shown(ask))


def ask(scripted: Scripted, question: Ask = ASK) -> Reply | Unanswered:
    return asyncio.run(scripted.ask(question))


def test_answers_in_order() -> None:
    """A script is answered from in order, and remembers what it was asked."""
    unanswered = Unanswered("timeout", "no answer")
    scripted = Scripted("text", reply(text="more"), unanswered, call("f", a=1))
    other = Ask((Message("user", "Invoice 2"),))
    assert ask(scripted) == Reply("text")
    assert ask(scripted, other) == Reply("more")
    assert ask(scripted) is unanswered
    assert ask(scripted) == Reply(tool_calls=(ToolCall("call_1", "f", '{"a": 1}'),))
    assert scripted.asks == [ASK, other, ASK, ASK]


def test_an_exhausted_script() -> None:
    """At its end a script says how many answers it had, and which ask was one too many."""
    scripted = Scripted("one", "two", name="mine")
    ask(scripted)
    ask(scripted)
    with pytest.raises(AssertionError, match="mine: the script has 2 answers, and this was ask number 3"):
        ask(scripted)


def test_answers_by_a_function() -> None:
    """A single callable, plain or async, answers every ask."""

    async def later(question: Ask) -> str:
        await asyncio.sleep(0)
        return shown(question)

    for answering in (shown, later):
        scripted = Scripted(answering)
        assert [ask(scripted), ask(scripted)] == [Reply("Invoice 1")] * 2


def test_raises_what_the_script_holds() -> None:
    """An exception in a script is raised."""
    with pytest.raises(OSError, match="disk"):
        ask(Scripted(OSError("disk")))


@pytest.mark.parametrize("wrong", [None, 1, {"total": 1}, [call("f")]])
def test_what_is_no_answer(wrong: Any) -> None:
    """What is no answer is refused with the list of what is one."""
    with pytest.raises(TypeError, match="a script answers with Reply, Unanswered, ToolCall, str"):
        ask(Scripted(lambda _: wrong))
    with pytest.raises(TypeError, match=type(wrong).__name__):
        ask(Scripted(wrong, "x"))


def test_call_and_reply() -> None:
    """Calls hold JSON text and are numbered within their reply; an id that was given is left."""
    assert call("f", function=1, name="ä", total=Decimal("1.00")) == ToolCall(
        "", "f", '{"function": 1, "name": "ä", "total": "1.00"}'
    )
    made = reply(call("f"), ToolCall("own", "g"), call("h"), text="so", cut=True, usage=Usage(1, 2))
    assert [one.id for one in made.tool_calls] == ["call_1", "own", "call_3"]
    assert (made.content, made.finish_reason, made.usage) == ("so", "length", Usage(1, 2))


def test_shown() -> None:
    """All that a model is shown: contents and results, and no native object."""
    result = ToolResult("1", "f", "a: wrong", processed_content="secret")
    assert shown(Ask((Message("system", "Extract."), Message("tool", tool_results=(result,))))) == "Extract.\na: wrong"


def test_is_a_model() -> None:
    """It has all that a model has."""
    scripted = Scripted(name="mine")
    scripted.prepare()
    asyncio.run(scripted.aclose())
    assert scripted.name == scripted.identity == "mine"
    assert repr(scripted) == "Scripted(name='mine', asks=0)"


def test_drives_a_loop() -> None:
    """A script drives the loop to its outcome."""

    async def accept(calls: Calls) -> tuple[ToolResult, ...]:
        return tuple(ToolResult(one.id, one.name, "SUCCESS", processed_content=one.arguments) for one in calls.calls)

    offers = (Offer("create_invoice", "", {"type": "object"}),)
    flow = until_success(opening(ASK.messages, offers))
    outcome = asyncio.run(arun(flow, Scripted("hm", call("create_invoice", total="1")).ask, accept))
    assert (outcome.status, outcome.record) == (Status.DONE, '{"total": "1"}')


def test_by_name() -> None:
    """``scripted/module:attribute`` answers from a callable, a list, or is the model that stands there."""
    by_function = model("test_testing:echo")
    assert by_function.name == "scripted/test_testing:echo"
    assert ask(by_function) == reply(call("create_invoice", text="Invoice 1"))
    by_list = model("test_testing:LIST")
    assert [ask(by_list), ask(by_list)] == [Reply("first"), reply(call("create_invoice", total="2.00"))]
    assert model("test_testing:MODEL") is sys.modules["test_testing"].MODEL


def test_a_list_serves_each_model_anew() -> None:
    """Two models by the name of one list do not share what is left of it."""
    assert ask(model("test_testing:LIST")) == ask(model("test_testing:LIST")) == Reply("first")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("answers", "scripted/module:attribute"),
        ("test_testing:NUMBER", "test_testing:NUMBER is int, not a script"),
        ("test_testing:nowhere", "has no 'nowhere'"),
        ("no_such_module_at_all:x", "there is no module 'no_such_module_at_all'"),
    ],
)
def test_a_name_that_is_no_script(name: str, says: str) -> None:
    """A name that leads to no script says what is wrong with it."""
    with pytest.raises(ConfigurationError, match=says):
        model(name)


def test_a_model_that_keeps_its_contract() -> None:
    """The scripted model passes the suite for models, whether it calls, is silent for a while, or writes text."""
    scripted = Scripted(lambda _: call("create_invoice", total="1"))
    check_model(scripted)
    assert len(scripted.asks) >= 9
    assert len([one for one in scripted.asks if one.messages[-1].role == "tool"]) == 1
    check_model(Scripted(lambda _: Unanswered("unavailable", "down")))
    check_model(Scripted(lambda _: "text"), ASK)


class Breaking(Scripted):
    """A model that does not keep its contract."""

    def __init__(self, *answers: Any, identity: str = "steady", prepared: Exception | None = None) -> None:
        super().__init__(*answers, name="breaking")
        self._identity = identity
        self._prepared = prepared
        self._read = 0

    @property
    def identity(self) -> str:
        self._read += 1
        return self._identity.format(self._read)

    def prepare(self) -> None:
        if self._prepared is not None:
            raise self._prepared


class Swallowing(Scripted):
    """A model that turns being cancelled into an error of its own."""

    async def ask(self, ask: Ask) -> Reply | Unanswered:
        try:
            await asyncio.sleep(0.05 if ask.messages[-1].role == "user" else 0)
        except asyncio.CancelledError:
            raise ValueError from None
        return await super().ask(ask)


def same_ids(_: Ask) -> Reply:
    return Reply(tool_calls=(ToolCall("1", "f"), ToolCall("1", "g")))


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (Breaking(lambda _: "x", identity=""), "the identity of a model is not empty"),
        (Breaking(lambda _: "x", identity="{}"), "the identity of a model does not change"),
        (Breaking(lambda _: "x", identity="sk-very-secret"), "holds the value of MY_API_KEY"),
        (Breaking(lambda _: "x", prepared=ConfigurationError("no key")), "cannot be prepared here: no key"),
        (Breaking(lambda _: OSError("disk")), "trouble is a value, and ask.. raised OSError"),
        (
            Breaking(lambda _: Unanswered("bad_request", "no tools")),
            "the question was not taken: bad_request: no tools",
        ),
        (Breaking(lambda _: Unanswered("timeout", "a\nb")), "the cause of an Unanswered is one line"),
        (Breaking(lambda _: Reply(usage=Usage(-1))), "no usage is below zero"),
        (Breaking(lambda _: Reply(usage=Usage(1, 1, 2))), "cached tokens are part of the input tokens"),
        (Breaking(lambda _: Reply(finish_reason="done")), "'done' is no finish reason"),  # type: ignore[arg-type]
        (Breaking(lambda _: Reply(tool_calls=(ToolCall("", "f"),))), "every call has an id"),
        (Breaking(same_ids), "no two calls of a reply share an id"),
        (Breaking(lambda _: Reply(tool_calls=(ToolCall("1", "f", {"a": Decimal(1)}),))), "a reply that was kept"),
        (Swallowing(lambda _: "x"), "a cancelled ask ends as cancelled, not with ValueError"),
    ],
)
def test_a_model_that_breaks_its_contract(broken: Scripted, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thing that the loop relies on is named when it does not hold."""
    monkeypatch.setenv("MY_API_KEY", "sk-very-secret")
    with pytest.raises(AssertionError, match=says):
        check_model(broken)


def test_enters_by_the_plugin_door() -> None:
    """The provider ``scripted`` is declared like any other."""
    assert plugins.load("extractor.models", "scripted") is model


def test_public_names() -> None:
    """What the module names as public is there."""
    assert all(hasattr(testing, name) for name in testing.__all__)


def test_imports_light() -> None:
    """The module and the loop import no database, SDK or data frame library."""
    heavy = ("sqlmodel", "sqlalchemy", "instructor", "openai", "pandas", "xllamacpp", "pypdfium2")
    code = f"import sys, extractor.testing, extractor.drivers; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
