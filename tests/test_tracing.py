"""OpenTelemetry spans, with the real SDK and its exporter in memory."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from extractor import tracing
from extractor.chain import opening, until_success
from extractor.conversation import Rules
from extractor.drivers import arun, kept
from extractor.errors import MissingExtra
from extractor.events import Handlers, live
from extractor.messages import Ask, Calls, Message, Offer, Reply, Sampling, ToolResult, Unanswered, Usage, Verdict
from extractor.outcome import Outcome
from extractor.testing import Scripted, call, reply

OFFERS = (Offer("create_invoice", "Record one.", {"type": "object"}),)
SECRET = "Rosa Luxemburg owes 99.00"
MODEL = "openai/gpt-5-mini"
GOOD = reply(call("create_invoice", total="1.00"), text=SECRET, usage=Usage(10, 5, 4))
BAD = reply(call("create_invoice", total="bad"), usage=Usage(20, 7))


class Traced:
    """A tracer provider of its own, and what was exported."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("caller")

    def handlers(self, **options: Any) -> Handlers:
        return Handlers(tracing.handler(provider=self.provider, **options))

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        return self.exporter.get_finished_spans()

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name == name]

    def parent(self, span: ReadableSpan) -> str:
        """The name of the span that a span stands below."""
        above = span.parent
        return "" if above is None else next(one.name for one in self.spans if one.context.span_id == above.span_id)


class Memory(dict[str, Reply]):
    """Replies, kept."""

    async def get(self, key: str) -> Reply | None:  # type: ignore[override]
        return super().get(key)

    async def keep(self, key: str, reply: Reply) -> None:
        self[key] = reply


async def perform(calls: Calls) -> tuple[ToolResult, ...]:
    await asyncio.sleep(0)
    verdicts = [Verdict.REJECTED if "bad" in str(one.arguments) else Verdict.ACCEPTED for one in calls.calls]
    return tuple(
        ToolResult(one.id, one.name, SECRET, verdict, processed_content=one)
        for one, verdict in zip(calls.calls, verdicts, strict=True)
    )


async def take(
    handlers: Handlers, *models: Scripted, document: str = "d1", memory: Memory | None = None, performing: Any = perform
) -> Outcome:
    """One document through the loop, watched as a pipeline has it watched."""

    async def ask(question: Ask) -> Reply | Unanswered:
        return await models[question.rank].ask(question)

    put = kept(live(ask), Memory() if memory is None else memory, lambda rank: models[rank].identity)
    messages = (Message("system", "Extract."), Message("user", f"{document} {SECRET}"))
    state = opening(messages, OFFERS, Rules(ranks=len(models)), Sampling(temperature=0.5, max_tokens=100))
    with handlers.document(document, f"{document}.pdf", "invoices", 7, [one.name for one in models]) as watch:
        return watch.finished(await arun(until_success(state), watch.put(put), watch.perform(performing)))


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_a_span_for_each_document_ask_and_call() -> None:
    """Asks and calls stand below their document, which stands below the caller's span, in one trace."""
    traced = Traced()
    with traced.tracer.start_as_current_span("caller"):
        asyncio.run(take(traced.handlers(), Scripted(BAD, GOOD, name=MODEL)))
    assert [(span.name, traced.parent(span)) for span in traced.spans] == [
        ("chat gpt-5-mini", "extract invoices"),
        ("execute_tool create_invoice", "extract invoices"),
        ("chat gpt-5-mini", "extract invoices"),
        ("execute_tool create_invoice", "extract invoices"),
        ("extract invoices", "caller"),
        ("caller", ""),
    ]
    assert len({span.context.trace_id for span in traced.spans}) == 1
    (document,) = traced.named("extract invoices")
    assert attributes(document) == {
        "extractor.pipeline": "invoices", "extractor.document": "d1", "extractor.source": "d1.pdf", "extractor.run": 7,
        "extractor.status": "done", "extractor.attempts": 2, "extractor.is_replayed": False, "extractor.records": 1,
    }  # fmt: skip
    assert [one.name for one in document.events] == ["extractor.retry"]
    assert document.status.status_code is StatusCode.UNSET


def test_an_ask_after_the_conventions() -> None:
    """An ask's span has the attributes of the GenAI conventions."""
    traced = Traced()
    asyncio.run(take(traced.handlers(), Scripted(Reply(**{**fields(GOOD), "model": MODEL}), name=MODEL)))
    (ask,) = traced.named("chat gpt-5-mini")
    assert ask.kind is SpanKind.CLIENT
    assert attributes(ask) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-5-mini",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.max_tokens": 100,
        "gen_ai.response.model": "gpt-5-mini",
        "gen_ai.response.finish_reasons": ("tool_call",),
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.cache_read.input_tokens": 4,
        "extractor.attempt": 1,
        "extractor.rank": 0,
    }
    (tool,) = traced.named("execute_tool create_invoice")
    assert attributes(tool) == {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "create_invoice", "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "call_1", "extractor.is_replayed": False, "extractor.verdict": "accepted",
    }  # fmt: skip
    assert ask.start_time is not None
    assert ask.end_time is not None
    assert tool.start_time is not None
    assert ask.start_time <= ask.end_time <= tool.start_time


def fields(one: Reply) -> dict[str, Any]:
    return {name: getattr(one, name) for name in ("content", "tool_calls", "finish_reason", "usage")}


def test_our_names_are_those_of_the_conventions() -> None:
    """Every attribute of ours under ``gen_ai`` is one that the conventions know."""
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as known

    traced = Traced()
    asyncio.run(take(traced.handlers(content=True), Scripted(BAD, GOOD, name=MODEL)))
    names = {name for span in traced.spans for name in attributes(span) if name.startswith("gen_ai.")}
    assert len(names) > 15
    assert names <= {value for key, value in vars(known).items() if key.startswith("GEN_AI_")}
    providers = {one.value for one in known.GenAiProviderNameValues}
    assert set(tracing.PROVIDERS.values()) <= providers


@pytest.mark.parametrize(
    ("name", "provider", "model"),
    [
        ("mistral/large", "mistral_ai", "large"),
        ("openrouter/meta/llama", "openrouter", "meta/llama"),
        ("local:/home/rosa/tiny.gguf", "local", "tiny.gguf"),
        ("mine", "mine", "mine"),
    ],
)
def test_provider_and_model(name: str, provider: str, model: str) -> None:
    """A model's name is told apart into the provider, by the conventions' word, and the model; no folder is shown."""
    traced = Traced()
    asyncio.run(take(traced.handlers(), Scripted(GOOD, name=name)))
    (ask,) = traced.named(f"chat {model}")
    assert attributes(ask)["gen_ai.provider.name"] == provider
    assert attributes(ask)["gen_ai.request.model"] == model


def test_what_goes_wrong() -> None:
    """An ask without an answer, a rejected call and a document without a record are errors, each of its type."""
    traced = Traced()
    silent = Unanswered("rate_limited", "too many", usage=Usage(3, 0))
    bad = [reply(call("create_invoice", total=f"bad {n}")) for n in range(3)]
    asyncio.run(take(traced.handlers(), Scripted(silent, name="a/first"), Scripted(*bad, name="b/second")))
    (first,) = traced.named("chat first")
    assert attributes(first)["error.type"] == "rate_limited"
    assert attributes(first)["gen_ai.usage.input_tokens"] == 3
    assert first.status.status_code is StatusCode.ERROR
    calls = traced.named("execute_tool create_invoice")
    assert [attributes(one)["error.type"] for one in calls] == ["rejected"] * 3
    (document,) = traced.named("extract invoices")
    assert [one.name for one in document.events] == ["extractor.model_changed", *["extractor.retry"] * 2]
    assert attributes(document)["extractor.status"] == "exhausted"


def test_a_document_that_breaks_off() -> None:
    """Every span that was begun has its end when a document breaks off, and the caller's span is current again."""
    traced = Traced()

    async def broken(_: Calls) -> tuple[ToolResult, ...]:
        raise KeyError(SECRET)

    async def one() -> None:
        before = trace.get_current_span()
        with pytest.raises(KeyError):
            await take(traced.handlers(), Scripted(GOOD), performing=broken)
        assert trace.get_current_span() is before

    asyncio.run(one())
    assert [(span.name, attributes(span).get("error.type")) for span in traced.spans] == [
        ("chat scripted", None), ("execute_tool create_invoice", "KeyError"), ("extract invoices", "KeyError"),
    ]  # fmt: skip


def test_no_content_by_default() -> None:
    """Nothing of what was asked, answered or called stands in a span."""
    traced = Traced()
    asyncio.run(take(traced.handlers(), Scripted(BAD, GOOD)))
    assert len(traced.spans) == 5
    assert "Rosa" not in "".join(span.to_json() for span in traced.spans)


@pytest.mark.parametrize("by", ["argument", "environment"])
def test_content_where_it_is_wanted(by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With content turned on, spans hold messages, functions, arguments and results, as the conventions write them."""
    traced = Traced()
    if by == "environment":
        monkeypatch.setenv(tracing.CONTENT, "True")
    asyncio.run(take(traced.handlers(**({"content": True} if by == "argument" else {})), Scripted(GOOD, name=MODEL)))
    (ask,) = traced.named("chat gpt-5-mini")
    held = attributes(ask)
    assert json.loads(held["gen_ai.system_instructions"]) == [{"type": "text", "content": "Extract."}]
    assert json.loads(held["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": f"d1 {SECRET}"}]}
    ]
    (answered,) = json.loads(held["gen_ai.output.messages"])
    assert answered["finish_reason"] == "tool_call"
    assert answered["parts"][0] == {"type": "text", "content": SECRET}
    assert answered["parts"][1]["name"] == "create_invoice"
    assert json.loads(held["gen_ai.tool.definitions"])[0]["description"] == "Record one."
    (tool,) = traced.named("execute_tool create_invoice")
    assert attributes(tool)["gen_ai.tool.call.arguments"] == '{"total": "1.00"}'
    assert attributes(tool)["gen_ai.tool.call.result"] == SECRET


def test_content_with_halves_of_characters() -> None:
    """What no exporter could encode is written as escapes."""
    traced = Traced()
    asyncio.run(take(traced.handlers(content=True), Scripted(reply(call("create_invoice", total="\ud800")))))
    for span in traced.spans:
        span.to_json().encode()
        for value in attributes(span).values():
            str(value).encode()


def test_a_reply_that_is_played_again_has_no_span() -> None:
    """Nothing was asked for a kept reply: the document says so, and there is no ask that a bill could be made of."""
    traced, memory = Traced(), Memory()
    asyncio.run(take(Handlers(), Scripted(GOOD), memory=memory))
    asyncio.run(take(traced.handlers(), Scripted(), memory=memory))
    assert [span.name for span in traced.spans] == ["execute_tool create_invoice", "extract invoices"]
    assert [one.name for one in traced.spans[-1].events] == ["extractor.replayed"]
    assert attributes(traced.spans[0])["extractor.is_replayed"] is True


def test_64_documents_at_once_do_not_mix() -> None:
    """Of 64 documents at once each has a trace of its own; what its model and its functions trace stands in it."""
    traced = Traced()

    async def answer(question: Ask) -> Reply:
        document = question.messages[1].content.split()[0]
        with traced.tracer.start_as_current_span("POST", attributes={"of": document}):
            for _ in range(64 - int(document)):
                await asyncio.sleep(0)
        return BAD if len(question.messages) == 2 else GOOD

    async def work(name: str, handlers: Handlers) -> None:
        async def traced_perform(calls: Calls) -> tuple[ToolResult, ...]:
            with traced.tracer.start_as_current_span("SELECT", attributes={"of": name}):
                return await perform(calls)

        with traced.tracer.start_as_current_span("request", attributes={"of": name}):
            await take(handlers, Scripted(answer, name=MODEL), document=name, performing=traced_perform)

    async def all_of_them() -> None:
        handlers = traced.handlers()
        await asyncio.gather(*(work(str(n), handlers) for n in range(64)))

    asyncio.run(all_of_them())
    by_trace: dict[int, list[ReadableSpan]] = {}
    for span in traced.spans:
        by_trace.setdefault(span.context.trace_id, []).append(span)
    assert len(by_trace) == 64
    for spans in by_trace.values():
        assert sorted((span.name, traced.parent(span)) for span in spans) == sorted(
            [
                ("request", ""), ("extract invoices", "request"),
                *[("chat gpt-5-mini", "extract invoices"), ("POST", "chat gpt-5-mini")] * 2,
                *[("execute_tool create_invoice", "extract invoices"), ("SELECT", "extract invoices")] * 2,
            ]
        )  # fmt: skip
        of = [attributes(one).get("of") or attributes(one).get("extractor.document") for one in spans]
        assert len({one for one in of if one}) == 1


def test_nothing_is_left_over() -> None:
    """The handler holds nothing of a document that is finished."""
    traced = Traced()
    handlers = traced.handlers()
    for n in range(3):
        asyncio.run(take(handlers, Scripted(BAD, GOOD), document=str(n)))
    (spans,) = handlers.all
    assert spans._passages == {}  # type: ignore[attr-defined]


def test_without_opentelemetry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package the handler says which extra brings it."""
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(MissingExtra, match=r"OpenTelemetry is not installed; .*'extractor\[otel\]'"):
        tracing.handler()


def test_imports_nothing_of_opentelemetry() -> None:
    """The module alone imports nothing of OpenTelemetry."""
    code = "import sys, extractor.tracing; print([m for m in sys.modules if m.startswith('opentelemetry')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
