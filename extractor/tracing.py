"""OpenTelemetry: a span for each document, each ask and each call, after the GenAI conventions (extra ``otel``).

::

    from extractor import tracing

    invoices = Pipeline(create_invoice, on_event=tracing.handler())

It is a handler of events (:mod:`extractor.events`). Spans go to whichever tracer provider the program has set up; a
document's span stands below the caller's current one. While a document is in hand its span is the current one, and
while a model is asked the ask's is: spans of HTTP clients and of your functions stand below them. That holds for any
number of documents at once, since each is one task with a context of its own, in which its events happen.

What was asked and answered is document text: it is left out, unless the environment says
``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true``, or the argument does.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextvars import Token
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from extractor.errors import MissingExtra
from extractor.events import Event, Handler, Kind
from extractor.messages import Ask, Message, Reply, Usage

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer, TracerProvider

CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_ON = ("true", "1", "span_only", "span_and_event")

PROVIDERS: Mapping[str, str] = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "google": "gcp.gemini",
    "mistral": "mistral_ai",
    "openai-responses": "openai",
    "xai": "x_ai",
}
"""The conventions' word for a provider where it is not ours."""


def handler(*, provider: TracerProvider | None = None, content: bool | None = None) -> Handler:
    """A handler of events that writes spans.

    :param provider: of tracers; the program's own by default.
    :param content: whether spans hold what was asked and answered; the environment decides by default.
    :raises MissingExtra: when OpenTelemetry is not installed.
    """
    try:
        from opentelemetry import trace
    except ImportError:
        raise MissingExtra("OpenTelemetry", "otel") from None
    if content is None:
        content = os.environ.get(CONTENT, "").strip().lower() in _ON
    return _Spans(trace.get_tracer("extractor", tracer_provider=provider), content)


@dataclass(slots=True)
class _Open:
    """A span that has not ended; ``token`` puts back the context that it stands in."""

    span: Span
    token: Token[Context] | None = None


@dataclass(slots=True)
class _Passage:
    """The open spans of one document."""

    document: _Open
    ask: _Open | None = None
    calls: dict[int, _Open] = field(default_factory=dict)


class _Spans:
    def __init__(self, tracer: Tracer, content: bool) -> None:
        self._tracer = tracer
        self._content = content
        self._passages: dict[int, _Passage] = {}
        self._on: Mapping[Kind, Callable[[Event, _Passage], None]] = {
            Kind.ASK: self._asked,
            Kind.REPLY: self._answered,
            Kind.UNANSWERED: self._answered,
            Kind.CALL_STARTED: self._called,
            Kind.CALL_COMPLETED: self._returned,
            Kind.CALL_FAILED: self._returned,
            Kind.RETRY: self._again,
            Kind.MODEL_CHANGED: self._again,
            Kind.DOCUMENT_FINISHED: self._finished,
        }

    def __repr__(self) -> str:
        return f"tracing.handler(content={self._content})"

    def __call__(self, event: Event) -> None:
        if event.kind is Kind.DOCUMENT_STARTED:
            self._passages[event.passage] = _Passage(self._started(event))
            return
        passage, act = self._passages.get(event.passage), self._on.get(event.kind)
        if passage is not None and act is not None:
            act(event, passage)

    # -- a document ------------------------------------------------------------------------------------------------

    def _started(self, event: Event) -> _Open:
        attributes: dict[str, Any] = {
            "extractor.pipeline": event.pipeline,
            "extractor.document": event.document,
            "extractor.source": event.source,
        }
        if event.run is not None:
            attributes["extractor.run"] = event.run
        return self._current(self._tracer.start_span(f"extract {event.pipeline}".strip(), attributes=attributes))

    def _finished(self, event: Event, passage: _Passage) -> None:
        del self._passages[event.passage]
        for left in (*passage.calls.values(), passage.ask):
            if left is not None:
                _fail(left.span, event.error or "unfinished")
                _end(left)
        span = passage.document.span
        span.set_attribute("extractor.status", event.status)
        span.set_attribute("extractor.attempts", event.attempt)
        span.set_attribute("extractor.is_replayed", event.is_replayed)
        if event.outcome is not None:
            span.set_attribute("extractor.records", len(event.outcome.results))
        if event.error or event.status == "failed":
            _fail(span, event.error or event.status)
        _end(passage.document)

    # -- an ask ----------------------------------------------------------------------------------------------------

    def _asked(self, event: Event, passage: _Passage) -> None:
        from opentelemetry.trace import SpanKind

        provider, model = _provider_and_model(event.model)
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
            "extractor.attempt": event.attempt,
            "extractor.rank": event.rank,
        }
        if event.ask is not None:
            attributes["gen_ai.request.temperature"] = event.ask.sampling.temperature
            attributes["gen_ai.request.max_tokens"] = event.ask.sampling.max_tokens
            if self._content:
                attributes |= _asked_content(event.ask)
        passage.ask = self._current(
            self._tracer.start_span(f"chat {model}".strip(), kind=SpanKind.CLIENT, attributes=attributes)
        )

    def _answered(self, event: Event, passage: _Passage) -> None:
        asked, passage.ask = passage.ask, None
        if asked is None:  # played again: nothing was asked, so there is no span of its own
            passage.document.span.add_event("extractor.replayed", {"extractor.attempt": event.attempt})
            return
        for name, value in _tokens(event.usage).items():
            asked.span.set_attribute(name, value)
        if isinstance(event.answer, Reply):
            answered = _provider_and_model(event.answer.model)[1]
            if answered:
                asked.span.set_attribute("gen_ai.response.model", answered)
            asked.span.set_attribute("gen_ai.response.finish_reasons", [_finish(event.answer)])
            if self._content:
                asked.span.set_attribute("gen_ai.output.messages", _text([_answer_content(event.answer)]))
        else:
            _fail(asked.span, event.error)
        _end(asked)

    def _again(self, event: Event, passage: _Passage) -> None:
        attributes: dict[str, Any] = {"extractor.attempt": event.attempt, "extractor.model": event.model}
        attributes["error.type"] = event.error
        passage.document.span.add_event(f"extractor.{event.kind}", attributes)

    # -- a call ----------------------------------------------------------------------------------------------------

    def _called(self, event: Event, passage: _Passage) -> None:
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": event.function,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": event.call_id,
            "extractor.is_replayed": event.is_replayed,
        }
        if self._content and event.call is not None:
            attributes["gen_ai.tool.call.arguments"] = _text(event.call.arguments)
        # several run side by side in this one context: none of them is the current one
        span = self._tracer.start_span(f"execute_tool {event.function}".strip(), attributes=attributes)
        passage.calls[event.position] = _Open(span)

    def _returned(self, event: Event, passage: _Passage) -> None:
        called = passage.calls.pop(event.position, None)
        if called is None:
            return
        called.span.set_attribute("extractor.verdict", event.status)
        if self._content and event.result is not None:
            called.span.set_attribute("gen_ai.tool.call.result", _text(event.result.content))
        if event.error:
            _fail(called.span, event.error)
        _end(called)

    def _current(self, span: Span) -> _Open:
        from opentelemetry import context, trace

        return _Open(span, context.attach(trace.set_span_in_context(span)))


def _end(opened: _Open) -> None:
    from opentelemetry import context

    if opened.token is not None:
        context.detach(opened.token)
    opened.span.end()


def _fail(span: Span, error: str) -> None:
    from opentelemetry.trace import StatusCode

    span.set_attribute("error.type", error)
    span.set_status(StatusCode.ERROR, error)


def _provider_and_model(name: str) -> tuple[str, str]:
    if name.startswith("local:"):  # weights by their file, whose folder is nobody's business
        return "local", PurePath(name.removeprefix("local:")).name
    provider, slash, model = name.partition("/")
    return (PROVIDERS.get(provider, provider), model) if slash else (name, name)


def _finish(reply: Reply) -> str:
    return "tool_call" if reply.tool_calls and reply.finish_reason == "stop" else reply.finish_reason


def _tokens(usage: Usage) -> dict[str, int]:
    if usage == Usage():
        return {}  # not known, which is not none
    known = {"gen_ai.usage.input_tokens": usage.input_tokens, "gen_ai.usage.output_tokens": usage.output_tokens}
    return {**known, "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens} if usage.cached_tokens else known


# -- content -----------------------------------------------------------------------------------------------------------


def _asked_content(ask: Ask) -> dict[str, str]:
    system = [{"type": "text", "content": one.content} for one in ask.messages if one.role == "system"]
    turns = [_message_content(one) for one in ask.messages if one.role != "system"]
    tools = [
        {"type": "function", "name": one.name, "description": one.description, "parameters": one.parameters}
        for one in ask.offers
    ]
    return {
        "gen_ai.system_instructions": _text(system),
        "gen_ai.input.messages": _text(turns),
        "gen_ai.tool.definitions": _text(tools),
    }


def _message_content(message: Message) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"type": "text", "content": message.content}] if message.content else []
    parts += [
        {"type": "tool_call", "id": one.id, "name": one.name, "arguments": one.arguments} for one in message.tool_calls
    ]
    parts += [
        {"type": "tool_call_response", "id": one.call_id, "response": one.content} for one in message.tool_results
    ]
    return {"role": message.role, "parts": parts}


def _answer_content(reply: Reply) -> dict[str, Any]:
    return {**_message_content(reply.as_message()), "finish_reason": _finish(reply)}


def _text(value: str | Mapping[str, Any] | Sequence[Any] | None) -> str:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()  # a model may send halves of characters
    return json.dumps(value, default=_plain)


def _plain(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else str(value)
