"""OpenAI's chat completions: an ask in their shape, and a reply read from it.

Pure functions, no SDK. :func:`word` turns an :class:`~extractor.messages.Ask` into messages and tools, :func:`read`
turns the message of a reply into text and calls. Every call is read, whatever its name, with its arguments untouched.

What we send is a little stricter than what we read, since servers check the history that is sent back to them, and one
refused request would stop a whole run: names that a model made up are spelt with the characters that providers allow,
arguments that are no JSON object are wrapped in one, and halves of surrogate pairs are replaced.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from extractor.messages import Ask, Image, Message, Offer, ToolCall, ToolResult

Wire = dict[str, Any]
"""One JSON object as it goes over the wire."""

_LONGEST_ID = 40
_LONGEST_NAME = 64
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True)
class Spoken:
    """What a model's message holds; ``refusal`` is set when it says in so many words that it will not answer."""

    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    refusal: str = ""


class Shapes(Protocol):
    """The two shapes that providers differ in."""

    def offered(self, offers: Sequence[Offer]) -> list[Wire]:
        """The functions on offer."""
        ...

    def answered(self, turn: Wire, results: Sequence[ToolResult]) -> list[Wire]:
        """A turn with calls, and after it the result of each call."""
        ...


class ChatShapes:
    """The shapes of chat completions, in our own words."""

    def offered(self, offers: Sequence[Offer]) -> list[Wire]:
        """One tool for each offer."""
        return [{"type": "function", "function": _function(offer)} for offer in offers]

    def answered(self, turn: Wire, results: Sequence[ToolResult]) -> list[Wire]:
        """The turn, then one tool message for each result, in the order of the results."""
        names = {call["id"]: call["function"]["name"] for call in turn["tool_calls"]}
        return [turn, *(_answer(result, names) for result in results)]


def word(ask: Ask, shapes: Shapes | None = None) -> tuple[list[Wire], list[Wire]]:
    """Word an ask.

    :param ask: messages and offers.
    :param shapes: who shapes tools and results; our own :class:`ChatShapes` unless told otherwise.
    :returns: the messages, and the tools (empty when nothing is on offer).
    """
    shapes = shapes or ChatShapes()
    known = frozenset(offer.name for offer in ask.offers)
    messages: list[Wire] = []
    for message in ask.messages:
        results = tuple(map(_result, message.tool_results))
        if message.role != "tool":
            messages.append(_turn(message, known))
        elif messages and "tool_calls" in messages[-1]:
            messages.extend(shapes.answered(messages.pop(), results))
        else:
            messages.extend(_answer(result, {}) for result in results)
    return messages, shapes.offered(ask.offers) if ask.offers else []


def read(message: Mapping[str, Any]) -> Spoken:
    """Read the message of a reply; it may be anything that JSON can hold.

    :param message: ``choices[0].message``.
    :returns: its text and every one of its calls, in order. A call without an id, or with one that an earlier call of
        the same message has, is given one of its own, so that each result finds its call.
    """
    calls: dict[str, ToolCall] = {}
    for position, (sent_id, name, arguments) in enumerate(_sent(message)):
        call_id = sent_id or f"call_{position}"
        while call_id in calls:
            call_id = f"{call_id}_{position}"
        calls[call_id] = ToolCall(call_id, name, arguments)
    return Spoken(_text(message.get("content")), tuple(calls.values()), _str(message.get("refusal")))


def takes_strict(schema: Any) -> bool:
    """Whether a schema fits a provider's constrained decoding: every object closed, every property required."""
    if isinstance(schema, Mapping):
        properties = schema.get("properties")
        if schema.get("type") == "object" or isinstance(properties, Mapping):
            properties = properties if isinstance(properties, Mapping) else {}
            if schema.get("additionalProperties") is not False or set(properties) != set(schema.get("required", ())):
                return False
        return all(map(takes_strict, _inner(schema)))
    return True


def _inner(schema: Mapping[str, Any]) -> Iterator[Any]:
    for key, value in schema.items():
        if key in ("properties", "$defs", "definitions") and isinstance(value, Mapping):
            yield from value.values()
        elif key in ("anyOf", "oneOf", "allOf", "prefixItems") and isinstance(value, Sequence):
            yield from value
        elif key in ("items", "additionalProperties", "not"):
            yield value


def _function(offer: Offer) -> Wire:
    # The description stands beside the parameters; a second one, and a title, inside them would be paid for twice.
    parameters = {key: value for key, value in offer.parameters.items() if key not in ("title", "description")}
    parameters.setdefault("required", [])
    function: Wire = {"name": offer.name, "description": offer.description, "parameters": parameters}
    if offer.strict and takes_strict(offer.parameters):
        function["strict"] = True
    return function


def response_format(schema: Mapping[str, Any], *, strict: bool) -> Wire:
    """The answer's text held to a JSON schema."""
    answer: Wire = {"name": "answer", "schema": dict(schema)}
    return {
        "type": "json_schema",
        "json_schema": answer | ({"strict": True} if strict and takes_strict(schema) else {}),
    }


def without_strict(tools: Sequence[Wire]) -> list[Wire]:
    """The tools for a provider that does not know ``strict``."""
    plain = [{key: value for key, value in tool["function"].items() if key != "strict"} for tool in tools]
    return [{**tool, "function": function} for tool, function in zip(tools, plain, strict=True)]


def data_url(image: Image) -> str:
    """A picture as an address that holds it."""
    return f"data:{image.media_type};base64,{base64.b64encode(image.data).decode('ascii')}"


def _turn(message: Message, known: frozenset[str]) -> Wire:
    turn: Wire = {"role": message.role, "content": sendable(message.content)}
    if message.images:
        seen = [{"type": "image_url", "image_url": {"url": data_url(image)}} for image in message.images]
        turn["content"] = [*seen, {"type": "text", "text": turn["content"]}]
    if message.tool_calls:
        turn["tool_calls"] = [_call(call, known) for call in message.tool_calls]
    return turn


def _call(call: ToolCall, known: frozenset[str]) -> Wire:
    name = call.name if call.name in known else _FOREIGN.sub("_", call.name)[:_LONGEST_NAME] or "unnamed"
    function = {"name": name, "arguments": sendable(_arguments(call.arguments))}
    return {"id": _wire_id(call.id), "type": "function", "function": function}


def _answer(result: ToolResult, names: Mapping[str, str]) -> Wire:
    name = names.get(result.call_id, result.name)
    return {"role": "tool", "tool_call_id": result.call_id, "name": name, "content": result.content}


def _result(result: ToolResult) -> ToolResult:
    return ToolResult(_wire_id(result.call_id), result.name, sendable(result.content), result.verdict)


def _arguments(arguments: str | Mapping[str, Any] | None) -> str:
    if arguments is None or arguments == "":
        return "{}"
    if not isinstance(arguments, str):
        return json.dumps(dict(arguments), ensure_ascii=False, default=str)
    try:
        is_object = isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        is_object = False
    # Some servers parse the history and answer 400 or 500 to arguments that are no object.
    return arguments if is_object else json.dumps({"malformed_arguments": arguments}, ensure_ascii=False)


def _wire_id(call_id: str) -> str:
    """A call's id within the length that the strictest provider allows: a conversation may move between providers."""
    call_id = sendable(call_id)
    return call_id if len(call_id) <= _LONGEST_ID else "call_" + hashlib.sha256(call_id.encode()).hexdigest()[:32]


def sendable(text: str) -> str:
    """The text without halves of surrogate pairs, which a JSON reply can hold but UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, Mapping))
    return "".join(text for text in texts if isinstance(text, str))


def _sent(message: Mapping[str, Any]) -> Iterator[tuple[str, str, str | Mapping[str, Any] | None]]:
    """Id, name and arguments of each call, in each of the shapes that servers send."""
    calls = message.get("tool_calls")
    calls = calls if isinstance(calls, list) else []
    for call in calls:
        call = call if isinstance(call, Mapping) else {}  # noqa: PLW2901 - a call that cannot be read is still a call
        function = call.get("function") or call.get("custom") or {}
        yield _str(call.get("id")), *_named(function if isinstance(function, Mapping) else {})
    legacy = message.get("function_call")
    if isinstance(legacy, Mapping) and not calls:
        yield "", *_named(legacy)


def _named(function: Mapping[str, Any]) -> tuple[str, str | Mapping[str, Any] | None]:
    arguments = function.get("arguments", function.get("input"))
    if arguments is not None and not isinstance(arguments, str | Mapping):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return _str(function.get("name")), arguments


def _str(value: Any) -> str:
    return value if isinstance(value, str) else ""


__all__ = [
    "ChatShapes",
    "Shapes",
    "Spoken",
    "Wire",
    "data_url",
    "read",
    "response_format",
    "sendable",
    "takes_strict",
    "without_strict",
    "word",
]
