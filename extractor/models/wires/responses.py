"""OpenAI's responses, by instructor's client of the SDK.

The functions on offer are shaped here: instructor closes a schema and requires all of its fields, which would ask a
model for what a document may not hold, and forces one function of several. Nothing is stored at the provider.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from extractor.messages import Ask, FinishReason, Image, Reply, ToolCall, ToolResult, Unanswered, Usage
from extractor.models.settings import Provider, Settings, host_of
from extractor.models.transport import Trouble
from extractor.models.wires import Sent, count, mapping, text
from extractor.models.wires.chat_shapes import data_url, takes_strict
from extractor.models.wires.payloads import parameters_of
from extractor.models.wires.sdk import SdkSender, raw
from extractor.models.wires.shapes import OfferKey, offer_key
from extractor.models.wires.turns import Part, Side, Turn, argument, listed, numbered, system, turns

if TYPE_CHECKING:
    from openai import AsyncOpenAI


class ResponsesSender(SdkSender):
    """Requests by the SDK, with its retries off."""

    def prepare(self) -> None:
        """Make a client and throw it away: that imports what a first ask would wait for."""
        _ = self._client().responses

    async def send(self, client: AsyncOpenAI, request: dict[str, Any]) -> Sent:
        """Make one request."""
        import openai

        return await raw(client.responses.with_raw_response.create(**request), openai)


class ResponsesWire:
    """Responses of one model at one address.

    :raises ConfigurationError: when an address is none.
    """

    def __init__(self, provider: Provider, model: str, settings: Settings) -> None:
        self._provider = provider
        self._model = model
        self._settings = settings
        base_url, origin = provider.address(settings)
        self.host = host_of(base_url, origin)
        self._sender = ResponsesSender(provider, model, settings, base_url)

    def prepare(self) -> None:
        """Check the key, and import what a first ask would wait for."""
        self._provider.secret(self._settings)
        self._sender.prepare()

    async def open(self) -> AsyncOpenAI:
        """A client for the running event loop."""
        return await self._sender.open()

    async def close(self, client: AsyncOpenAI) -> None:
        """Close its connections."""
        await self._sender.close(client)

    def word(self, ask: Ask, unfit: frozenset[str]) -> dict[str, Any]:
        """The request for an ask."""
        is_strict = self._provider.strict and "strict" not in unfit
        items = [item for turn in turns(ask, _Parts()) for item in _items(turn)]
        request: dict[str, Any] = {"model": self._model, "input": items, "store": False}
        said = system(ask)
        if said:
            request["instructions"] = said
        if ask.offers:
            request["tools"] = _tools(offer_key(ask.offers), is_strict=is_strict)
            request["tool_choice"] = _choice(ask, unfit)
            if not ask.parallel and "parallel_tool_calls" not in unfit:
                request["parallel_tool_calls"] = False
        if ask.schema is not None:
            strict = is_strict and takes_strict(ask.schema)
            form = {"type": "json_schema", "name": "answer", "schema": dict(ask.schema), "strict": strict}
            request["text"] = {"format": form}
        sampling = {"temperature": ask.sampling.temperature, "max_tokens": ask.sampling.max_tokens}
        names = {"max_tokens": "max_output_tokens"}
        return request | {names.get(name, name): value for name, value in sampling.items() if name not in unfit}

    async def send(self, client: AsyncOpenAI, request: dict[str, Any]) -> Sent:
        """Make one request."""
        return await self._sender.send(client, request)

    def read(self, answer: Mapping[str, Any]) -> Reply | Unanswered | Trouble:
        """Read the body of an answer."""
        usage, reason = _usage(answer.get("usage")), mapping(answer.get("incomplete_details")).get("reason")
        if reason == "content_filter":
            return Unanswered("refused", f"the content filter of {self.host} stopped the answer", usage=usage)
        items = listed(answer.get("output"))
        parts = [part for item in items if item.get("type") == "message" for part in listed(item.get("content"))]
        content = "".join(text(part.get("text")) for part in parts if part.get("type") == "output_text")
        calls = numbered(
            (text(item.get("call_id")), text(item.get("name")), argument(item.get("arguments", item.get("input"))))
            for item in items
            if item.get("type") in ("function_call", "custom_tool_call")
        )
        if not calls and any(part.get("type") == "refusal" for part in parts):
            return Unanswered("refused", f"{self._model} declined to answer", usage=usage)
        finish: FinishReason = "length" if answer.get("status") == "incomplete" else "stop"
        if finish == "stop" and not content and not calls and not usage.output_tokens:
            return Trouble("unavailable", f"{self.host} answered 200 without content", usage=usage)
        return Reply(content, calls, finish, usage)


class _Parts:
    """The parts of input items; calls and results are items of their own."""

    def text(self, text: str, side: Side) -> Part:
        return {"type": "input_text" if side == "user" else "output_text", "text": text}

    def image(self, image: Image) -> Part:
        return {"type": "input_image", "detail": "auto", "image_url": data_url(image)}

    def call(self, call: ToolCall, arguments: dict[str, Any]) -> Part:
        written = json.dumps(arguments, ensure_ascii=False)
        return {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": written}

    def result(self, result: ToolResult) -> Part:
        return {"type": "function_call_output", "call_id": result.call_id, "output": result.content}


def _items(turn: Turn) -> Iterator[Part]:
    """A turn as input items: what is said as one message, then its calls; or the results, then what is said."""
    said = [part for part in turn.parts if not part["type"].startswith("function_call")]
    other = [part for part in turn.parts if part["type"].startswith("function_call")]
    if turn.side == "assistant":
        # The SDK's type of a message that the model wrote wants an id; text alone is taken without one.
        message = [{"role": "assistant", "content": "\n\n".join(part["text"] for part in said)}] if said else []
        yield from [*message, *other]
    else:
        yield from [*other, *([{"role": "user", "content": said}] if said else [])]


@lru_cache(maxsize=128)
def _tools(offers: OfferKey, *, is_strict: bool) -> list[Part]:
    return [
        {
            "type": "function",
            "name": name,
            "description": description,
            "parameters": {"required": [], **parameters_of(parameters)},
            # Said in any case: a function without a word about it is taken for a strict one.
            "strict": is_strict and strict and takes_strict(json.loads(parameters)),
        }
        for name, description, parameters, strict in offers
    ]


def _choice(ask: Ask, unfit: frozenset[str]) -> str | dict[str, Any]:
    if ask.tool_choice == "auto" or "tool_choice" in unfit:
        return "auto"
    return "required" if ask.tool_choice == "required" else {"type": "function", "name": ask.tool_choice}


def _usage(usage: Any) -> Usage:
    usage = mapping(usage)
    cached = mapping(usage.get("input_tokens_details")).get("cached_tokens")
    return Usage(count(usage.get("input_tokens")), count(usage.get("output_tokens")), count(cached))
