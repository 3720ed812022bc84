"""What the tests of the wires share: a conversation, and a model of each provider in front of a stub."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from stub_answers import Answer, Fault, Said, in_turn
from stub_server import StubServer

from extractor.messages import Ask, Image, Message, Offer, Reply, ToolCall, ToolResult, Unanswered, Verdict
from extractor.models.hosted import HostedModel
from extractor.models.providers import PROVIDERS
from extractor.models.settings import Settings
from extractor.models.transport import Patience
from extractor.models.wires import Wire

KEY = "sk-secret-0123456789"
SECRET = "the-document-says-4711"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"total": {"type": "string"}, "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}}},
    "required": ["total", "lines"],
    "additionalProperties": False,
    "$defs": {
        "Line": {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
            "additionalProperties": False,
        }
    },
}
LOOSE: dict[str, Any] = {"type": "object", "properties": {"total": {"type": "string", "maxLength": 9}}}
OFFERS = (
    Offer("create_invoice", "Record one invoice.", {**SCHEMA, "title": "Invoice", "description": "twice"}, strict=True),
    Offer("create_receipt", "Record one receipt.", LOOSE, strict=True),
)
ASK = Ask((Message("system", "Read."), Message("user", SECRET)), OFFERS)
PICTURE = Image(b"\x89PNG", "image/png")

FIRST = (
    ToolCall("tool:u/1", "create_invoice", '{"total": "1"}'),
    ToolCall("b", "make up", {"a": 1}),
    ToolCall("c", "create_receipt", '{"total'),
)
"""An earlier reply, of another provider: an id that few take, a name that nobody offered, arguments that are broken."""

ROUNDS = Ask(
    (
        *ASK.messages,
        Message("assistant", "Here.", FIRST),
        Message(
            "tool",
            tool_results=(
                ToolResult("tool:u/1", "create_invoice", "recorded"),
                ToolResult("b", "make up", "no such function", Verdict.REJECTED),
                ToolResult("c", "create_receipt", "not JSON", Verdict.REJECTED),
            ),
        ),
        Message("user", "Still to be mended: one."),
        Message("assistant", "", (ToolCall("b", "create_receipt", None),)),
        Message("tool", tool_results=(ToolResult("b", "create_receipt", "total: is missing", Verdict.REJECTED),)),
    ),
    OFFERS,
)
"""A conversation of three rounds, with an id that comes twice."""

QUICK = Patience(first=0.001, longest=0.002)
AT_ROOT = ("anthropic", "azure", "bedrock", "google")
"""Providers whose address is that of the server, without a version."""


def configure(monkeypatch: pytest.MonkeyPatch, provider: str, server: StubServer, key: str = KEY) -> None:
    """Point the environment at a stub."""
    row = PROVIDERS[provider]
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv(row.addresses[0], server.url if provider in AT_ROOT else server.base_url)
    for name in row.keys:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(row.keys[0], key)


def hosted(provider: str, **settings: Any) -> HostedModel:
    """A model of a provider, with its own tool calls."""
    said = Settings(**{"timeout": 20.0, "dialect": "tools", **settings})
    return HostedModel(PROVIDERS[provider], "test-model", said, patience=QUICK)


def wire_of(model: HostedModel) -> Wire:
    """The wire of a model."""
    return model._wire


@contextmanager
def asking(
    monkeypatch: pytest.MonkeyPatch, provider: str, *answers: Answer | Said | Fault, key: str = KEY
) -> Iterator[StubServer]:
    """A stub that answers in turn, with the environment pointing at it."""
    with StubServer(in_turn(*answers)) as server:
        configure(monkeypatch, provider, server, key)
        yield server


def put(model: HostedModel, *asks: Ask) -> list[Reply | Unanswered]:
    """Put one ask after another, in one event loop."""

    async def main() -> list[Reply | Unanswered]:
        return [await model.ask(ask) for ask in asks]

    return asyncio.run(main())


def one(model: HostedModel, ask: Ask = ASK) -> Reply | Unanswered:
    """Put one ask; what comes back holds neither key nor document."""
    (answer,) = put(model, ask)
    assert KEY not in repr(answer)
    assert SECRET not in repr(answer)
    return answer
