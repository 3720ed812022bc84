"""OpenAI's chat completions, and everybody who speaks them.

The payload of the functions on offer and the shape of an answered turn are instructor's
(:mod:`extractor.models.wires.shapes`); what is read is read by :mod:`extractor.models.wires.chat_shapes`, every call of
it. Requests go by a lean HTTP client, or by the vendor's SDK (``transport="sdk"``); they are the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from extractor.errors import ConfigurationError
from extractor.messages import Ask, FinishReason, Offer, Reply, Unanswered, Usage
from extractor.models.settings import Provider, Settings, host_of
from extractor.models.transport import Trouble
from extractor.models.wires import Sent, chat_shapes, count, lean, mapping
from extractor.models.wires.shapes import chat_shapes_of_instructor

CAPS = {"max_tokens": "max_completion_tokens"}
"""``max_tokens`` is what compatible servers know; the models that refuse it know the other name."""


class Sender(Protocol):
    """Who makes the requests."""

    def prepare(self) -> None:
        """Import what asking needs."""

    async def open(self) -> Any:
        """A client for the running event loop."""

    async def close(self, client: Any) -> None:
        """Close its connections."""

    async def send(self, client: Any, request: dict[str, Any]) -> Sent:
        """Make one request."""
        ...


class ChatWire:
    """Chat completions of one model at one address.

    :raises ConfigurationError: when an address or a setting is none.
    """

    def __init__(self, provider: Provider, model: str, settings: Settings) -> None:
        self._provider = provider
        self._model = model
        self._base_url, self._origin = provider.address(settings)
        self.host = host_of(self._base_url, self._origin)
        self._sender = self._sender_of(settings)

    def prepare(self) -> None:
        """Check the key, and import what asking needs: it takes longer than a first answer may."""
        self._provider.secret(self._settings)
        self._sender.prepare()
        chat_shapes_of_instructor().offered((Offer("nothing", "", {"type": "object"}),))

    async def open(self) -> Any:
        """A client for the running event loop."""
        return await self._sender.open()

    async def close(self, client: Any) -> None:
        """Close its connections."""
        await self._sender.close(client)

    def word(self, ask: Ask, unfit: frozenset[str]) -> dict[str, Any]:
        """The request for an ask."""
        messages, tools = chat_shapes.word(ask, chat_shapes_of_instructor())
        request: dict[str, Any] = {"model": self._model, "messages": messages}
        if tools:
            request["tools"] = tools if self._takes_strict(unfit) else chat_shapes.without_strict(tools)
            request["tool_choice"] = self._choice(ask, unfit)
            if not ask.parallel and self._provider.parallel and "parallel_tool_calls" not in unfit:
                request["parallel_tool_calls"] = False
        if ask.schema is not None:
            request["response_format"] = chat_shapes.response_format(ask.schema, strict=self._takes_strict(unfit))
        sampling = {"temperature": ask.sampling.temperature, "max_tokens": ask.sampling.max_tokens}
        if ask.sampling.sample and "seed" not in unfit:
            sampling["seed"] = ask.sampling.sample
        return request | {
            CAPS.get(name, name) if name in unfit else name: value
            for name, value in sampling.items()
            if name not in unfit or name in CAPS
        }

    async def send(self, client: Any, request: dict[str, Any]) -> Sent:
        """Make one request."""
        return await self._sender.send(client, request)

    def read(self, answer: Mapping[str, Any]) -> Reply | Unanswered | Trouble:
        """Read the body of an answer."""
        choices = answer.get("choices")
        choice = mapping(choices[0]) if isinstance(choices, list) and choices else {}
        usage, finish, message = usage_of(answer.get("usage")), choice.get("finish_reason"), choice.get("message")
        if finish == "content_filter":
            return Unanswered("refused", f"the content filter of {self.host} stopped the answer", usage=usage)
        if not isinstance(message, Mapping):
            return Trouble("unavailable", f"{self.host} answered 200 without a choice", usage=usage)
        spoken = chat_shapes.read(message)
        if spoken.refusal and not spoken.tool_calls:
            return Unanswered("refused", f"{self._model} declined to answer", usage=usage)
        reason: FinishReason = "length" if finish == "length" else "stop"
        return Reply(spoken.content, spoken.tool_calls, reason, usage)

    def _sender_of(self, settings: Settings) -> Sender:
        self._settings = settings
        if settings.transport == "sdk":
            from extractor.models.wires.sdk import SdkSender

            return SdkSender(self._provider, self._model, settings, self._base_url)
        if settings.transport != "lean":
            raise ConfigurationError(f"there is no transport {settings.transport!r}", hint="it is lean or sdk")
        return LeanSender(self._provider, self._model, settings, self._base_url)

    def _takes_strict(self, unfit: frozenset[str]) -> bool:
        return self._provider.strict and "strict" not in unfit

    def _choice(self, ask: Ask, unfit: frozenset[str]) -> str | dict[str, Any]:
        if ask.tool_choice == "auto" or "tool_choice" in unfit:
            return "auto"
        if ask.tool_choice == "required":
            return self._provider.forced
        return {"type": "function", "function": {"name": ask.tool_choice}}


class LeanSender:
    """Requests by our own HTTP client."""

    def __init__(self, provider: Provider, model: str, settings: Settings, base_url: str) -> None:
        self._provider = provider
        self._settings = settings
        self._url = _url(provider, model, settings, base_url)

    def prepare(self) -> None:
        """Import the client: it takes longer than a first answer may."""
        import aiohttp

        _ = aiohttp.ClientSession

    async def open(self) -> Any:
        """A session for the running event loop."""
        key = self._provider.secret(self._settings)
        name, form = ("api-key", "{}") if self._provider.name == "azure" else ("Authorization", "Bearer {}")
        headers = {name: form.format(key)} if key else {}
        return lean.open_session(self._url, {**headers, **self._settings.headers}, self._settings.timeout)

    async def close(self, client: Any) -> None:
        """Close the session."""
        await client.close()

    async def send(self, client: Any, request: dict[str, Any]) -> Sent:
        """Make one request."""
        return await lean.post(client, self._url, request)


def _url(provider: Provider, model: str, settings: Settings, base_url: str) -> str:
    """Where chat completions stand. Azure's dated API names the deployment in the path, its undated one does not."""
    if provider.name != "azure":
        return f"{base_url}/chat/completions"
    root = base_url.removesuffix("/v1").removesuffix("/openai")
    if settings.api_version:
        return f"{root}/openai/deployments/{model}/chat/completions?api-version={settings.api_version}"
    return f"{root}/openai/v1/chat/completions"


def usage_of(usage: Any) -> Usage:
    """Tokens as chat completions report them."""
    usage = mapping(usage)
    cached = mapping(usage.get("prompt_tokens_details")).get("cached_tokens")
    if cached is None:
        cached = usage.get("prompt_cache_hit_tokens")  # as DeepSeek has it
    return Usage(count(usage.get("prompt_tokens")), count(usage.get("completion_tokens")), count(cached))
