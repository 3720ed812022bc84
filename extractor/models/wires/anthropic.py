"""Anthropic's messages, by its SDK.

The payload of the functions on offer is instructor's. What is asked again in a second round, the functions, the system
text and the document, is marked for the provider's cache; it is read from there at a tenth of the price.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from extractor.errors import MissingExtra
from extractor.messages import Ask, FinishReason, Image, Offer, Reply, ToolCall, ToolResult, Unanswered, Usage
from extractor.models.settings import Provider, Settings, host_of
from extractor.models.transport import Trouble
from extractor.models.wires import Sent, count, mapping, text
from extractor.models.wires.payloads import compiles, held, parameters_of, requests_by_instructor
from extractor.models.wires.sdk import raw
from extractor.models.wires.shapes import OfferKey, offer_key
from extractor.models.wires.turns import Part, Side, argument, cut, listed, numbered, system, turns

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

CUT = ("max_tokens", "model_context_window_exceeded")


class AnthropicWire:
    """Messages of one model at one address.

    :raises ConfigurationError: when an address is none.
    """

    def __init__(self, provider: Provider, model: str, settings: Settings) -> None:
        self._provider = provider
        self._model = model
        self._settings = settings
        base_url, origin = provider.address(settings)
        self.host = host_of(base_url, origin)
        # The SDK adds the version by itself; people copy addresses with and without it.
        self._base_url = base_url.removesuffix("/v1")

    def prepare(self) -> None:
        """Check the key, and import what a first ask would wait for."""
        _ = self._client().messages
        _tools(offer_key((Offer("nothing", "", {"type": "object"}),)), is_strict=False)

    async def open(self) -> AsyncAnthropic:
        """A client for the running event loop."""
        return self._client()

    async def close(self, client: AsyncAnthropic) -> None:
        """Close its connections."""
        await client.close()

    def word(self, ask: Ask, unfit: frozenset[str]) -> dict[str, Any]:
        """The request for an ask. ``max_tokens`` is always there: the provider asks for it."""
        request: dict[str, Any] = {"model": self._model, "max_tokens": ask.sampling.max_tokens}
        said = system(ask)
        if said:
            request["system"] = [{"type": "text", "text": said}]
        request["messages"] = [{"role": turn.side, "content": turn.parts} for turn in turns(ask, _Parts())]
        if ask.offers:
            is_strict = self._provider.strict and "strict" not in unfit
            request["tools"] = _tools(offer_key(ask.offers), is_strict=is_strict)
            request["tool_choice"] = _choice(ask, unfit)
        if ask.schema is not None and "output_config" not in unfit and compiles(ask.schema):
            request["output_config"] = {"format": {"type": "json_schema", "schema": dict(ask.schema)}}
        if "temperature" not in unfit:
            # Newer models know no temperature, nor do newer SDKs; one that refuses it is asked without from then on.
            request["extra_body"] = {"temperature": ask.sampling.temperature}
        return request

    async def send(self, client: AsyncAnthropic, request: dict[str, Any]) -> Sent:
        """Make one request."""
        import anthropic

        return await raw(client.messages.with_raw_response.create(**request), anthropic)

    def read(self, answer: Mapping[str, Any]) -> Reply | Unanswered | Trouble:
        """Read the body of an answer."""
        usage, reason = _usage(answer.get("usage")), answer.get("stop_reason")
        if reason == "refusal":
            return Unanswered("refused", f"{self._model} declined to answer", usage=usage)
        blocks = listed(answer.get("content"))
        content = "".join(text(block.get("text")) for block in blocks if block.get("type") == "text")
        calls = numbered(
            (text(block.get("id")), text(block.get("name")), argument(block.get("input")))
            for block in blocks
            if block.get("type") == "tool_use"
        )
        finish: FinishReason = "length" if reason in CUT else "stop"
        if finish == "length":
            calls = cut(calls, is_last=bool(blocks) and blocks[-1].get("type") == "tool_use")
        elif not content and not calls and not usage.output_tokens:
            return Trouble("unavailable", f"{self.host} answered 200 without content", usage=usage)
        return Reply(content, calls, finish, usage)

    def _client(self) -> AsyncAnthropic:
        key, timeout = self._provider.secret(self._settings), self._settings.timeout
        try:
            from anthropic import AsyncAnthropic, Timeout
        except ImportError:
            raise MissingExtra("the Anthropic SDK", "anthropic") from None
        # Instructor's builder takes no address, headers, timeout or number of retries, so the client is made here.
        return AsyncAnthropic(
            api_key=key,
            base_url=self._base_url,
            max_retries=0,
            timeout=Timeout(timeout, connect=min(timeout, 20.0)),
            default_headers=dict(self._settings.headers),
        )


class _Parts:
    """Anthropic's content blocks."""

    def text(self, text: str, side: Side) -> Part:  # noqa: ARG002
        return {"type": "text", "text": text}

    def image(self, image: Image) -> Part:
        data = base64.b64encode(image.data).decode("ascii")
        return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": data}}

    def call(self, call: ToolCall, arguments: dict[str, Any]) -> Part:
        return {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments}

    def result(self, result: ToolResult) -> Part:
        return {
            "type": "tool_result",
            "tool_use_id": result.call_id,
            "content": result.content,
            "is_error": result.is_error,
        }


@lru_cache(maxsize=128)
def _tools(offers: OfferKey, *, is_strict: bool) -> list[Part]:
    strict = held(offers) if is_strict else frozenset()
    tools = []
    for offer, request in zip(offers, requests_by_instructor("ANTHROPIC", "TOOLS", offers), strict=True):
        name, description, parameters, _ = offer
        (tool,) = request["tools"]
        # Instructor puts words of its own where a description is missing.
        tool = {**tool, "name": name, "description": description, "input_schema": parameters_of(parameters)}
        tools.append(tool | ({"strict": True} if name in strict else {}))
    return tools


def _choice(ask: Ask, unfit: frozenset[str]) -> dict[str, Any]:
    if ask.tool_choice == "auto" or "tool_choice" in unfit:
        choice: dict[str, Any] = {"type": "auto"}
    elif ask.tool_choice == "required":
        choice = {"type": "any"}
    else:
        choice = {"type": "tool", "name": ask.tool_choice}
    if not ask.parallel and "parallel_tool_calls" not in unfit:
        choice["disable_parallel_tool_use"] = True
    return choice


def _usage(usage: Any) -> Usage:
    """Tokens read from the cache and written to it are reported beside those that were neither."""
    usage = mapping(usage)
    cached = count(usage.get("cache_read_input_tokens"))
    fresh = count(usage.get("input_tokens")) + count(usage.get("cache_creation_input_tokens"))
    return Usage(fresh + cached, count(usage.get("output_tokens")), cached)
