"""Conversations as two sides that take turns, for providers whose turns hold parts.

Anthropic, Gemini, Bedrock and OpenAI's responses know a system text apart and turns of ``user`` and ``assistant``;
what functions came to stands in a user's turn. Here turns are made, neighbours of one side merged, and ids and names
spelt so that every provider takes them, since a conversation may move from one to another. Pure functions, no SDK.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from extractor.messages import Ask, Image, Message, ToolCall, ToolResult
from extractor.models.wires.chat_shapes import sendable

Side = Literal["user", "assistant"]
Part = dict[str, Any]
"""One part of a turn as it goes over the wire."""

Sent = tuple[str, str, str | Mapping[str, Any] | None]
"""Id, name and arguments of a call as a server sent it; the id may be empty."""

_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64


class Parts(Protocol):
    """How a provider shapes the parts of a turn. Ids and names are such as it takes."""

    def text(self, text: str, side: Side) -> Part:
        """Some text, never empty."""
        ...

    def image(self, image: Image) -> Part:
        """A picture."""
        ...

    def call(self, call: ToolCall, arguments: dict[str, Any]) -> Part:
        """A call that the model made."""
        ...

    def result(self, result: ToolResult) -> Part:
        """What a call came to."""
        ...


@dataclass(slots=True)
class Turn:
    """What one side said."""

    side: Side
    parts: list[Part] = field(default_factory=list)


def system(ask: Ask) -> str:
    """The system text of an ask."""
    texts = (sendable(message.content) for message in ask.messages if message.role == "system")
    return "\n\n".join(text for text in texts if text.strip())


def turns(ask: Ask, parts: Parts) -> list[Turn]:
    """The turns of an ask, without its system text; sides alternate, and no turn or text is empty."""
    told = _Told(parts, frozenset(offer.name for offer in ask.offers))
    for message in ask.messages:
        if message.role != "system":
            told.take(message)
    return told.turns


class _Told:
    """The turns so far."""

    def __init__(self, parts: Parts, known: frozenset[str]) -> None:
        self.turns: list[Turn] = []
        self._parts = parts
        self._known = known
        self._ids: set[str] = set()
        # The calls of the turn before, by the ids that their results name.
        self._called: dict[str, ToolCall] = {}

    def take(self, message: Message) -> None:
        """Word one message."""
        side: Side = "assistant" if message.role == "assistant" else "user"
        parts = [self._parts.image(image) for image in message.images]
        if message.content.strip():
            parts.append(self._parts.text(sendable(message.content), side))
        # Results stand first: some providers read nothing else after a turn with calls.
        parts = [*map(self._result, message.tool_results), *parts]
        if message.role == "assistant":
            self._called = {call.id: self._fitted(call) for call in message.tool_calls}
            made = zip(self._called.values(), message.tool_calls, strict=False)
            parts += [self._parts.call(fit, as_object(call.arguments)) for fit, call in made]
        if not parts:
            return
        if not self.turns or self.turns[-1].side != side:
            self.turns.append(Turn(side))
        self.turns[-1].parts += parts

    def _fitted(self, call: ToolCall) -> ToolCall:
        """The call under an id that no other has, and a name that every provider takes."""
        fit = call.id
        if not _ID.fullmatch(fit) or fit in self._ids:
            told = f"{len(self._ids)}:{call.id}".encode("utf-8", "replace")
            fit = "call_" + hashlib.sha256(told).hexdigest()[:32]
        self._ids.add(fit)
        name = call.name if call.name in self._known else _FOREIGN.sub("_", call.name)[:_LONGEST_NAME] or "unnamed"
        return ToolCall(fit, name, call.arguments)

    def _result(self, result: ToolResult) -> Part:
        call = self._called.get(result.call_id)
        content = sendable(result.content)
        if call is None:
            # A result whose call nobody made would be refused, and the whole request with it.
            return self._parts.text(f"{result.name}: {content}", "user")
        return self._parts.result(replace(result, call_id=call.id, name=call.name, content=content))


def as_object(arguments: str | Mapping[str, Any] | None) -> dict[str, Any]:
    """Arguments as the object that providers want; what is none is wrapped in one."""
    if arguments is None or arguments == "":
        return {}
    text = arguments if isinstance(arguments, str) else json.dumps(dict(arguments), ensure_ascii=False, default=str)
    try:
        found = json.loads(text, parse_constant=str)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        return {"malformed_arguments": sendable(text)}
    # Written once more: an escape may hold half of a surrogate pair, which no request can.
    clean: dict[str, Any] = json.loads(sendable(json.dumps(found, ensure_ascii=False)))
    return clean


def numbered(sent: Iterable[Sent]) -> tuple[ToolCall, ...]:
    """The calls of a reply, each under an id of its own, so that each result finds its call."""
    calls: dict[str, ToolCall] = {}
    for position, (sent_id, name, arguments) in enumerate(sent):
        call_id = sent_id or f"call_{position}"
        while call_id in calls:
            call_id = f"{call_id}_{position}"
        calls[call_id] = ToolCall(call_id, name, arguments)
    return tuple(calls.values())


def cut(calls: tuple[ToolCall, ...], *, is_last: bool) -> tuple[ToolCall, ...]:
    """The calls of a reply that its length cut off, the last without arguments where nothing stands after it.

    Where arguments come as objects, an object that was cut looks like a whole one.
    """
    return (*calls[:-1], replace(calls[-1], arguments=None)) if calls and is_last else calls


def argument(value: Any) -> str | Mapping[str, Any] | None:
    """Arguments as a server sent them, kept as they are."""
    if value is None or isinstance(value, str | Mapping):
        return value
    return json.dumps(value, ensure_ascii=False)


def listed(value: Any) -> Sequence[Mapping[str, Any]]:
    """The objects of a list that a server sent; what is no object is an empty one, what is no list holds none."""
    return [one if isinstance(one, Mapping) else {} for one in value] if isinstance(value, list) else []


__all__ = ["Part", "Parts", "Sent", "Side", "Turn", "argument", "as_object", "cut", "listed", "numbered", "system",
           "turns"]  # fmt: skip
