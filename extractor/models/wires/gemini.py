"""Google's Gemini, by instructor's client of Google's SDK.

The functions on offer are shaped here: instructor turns a schema into Google's older dialect, which has no references,
and forces one function of several.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from functools import lru_cache
from json import JSONDecodeError
from typing import TYPE_CHECKING, Any

from extractor.errors import MissingExtra
from extractor.messages import Ask, FinishReason, Image, Reply, ToolCall, ToolResult, Unanswered, Usage
from extractor.models.settings import Provider, Settings, host_of
from extractor.models.transport import Trouble
from extractor.models.wires import Dropped, Sent, count, mapping, text
from extractor.models.wires.gemini_schema import for_gemini
from extractor.models.wires.payloads import parameters_of
from extractor.models.wires.shapes import OfferKey, offer_key
from extractor.models.wires.turns import Part, Side, argument, cut, listed, numbered, system, turns

if TYPE_CHECKING:
    from google.genai import Client

UNSIGNED = base64.urlsafe_b64decode("skip_thought_signature_validator")
"""The documented signature of a call that comes without one: newer models refuse a history whose calls are unsigned,
and a call may be another provider's. The SDK writes bytes in base64, which makes the words above of these."""

STOPPED = frozenset(
    {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT",
     "IMAGE_RECITATION", "MODEL_ARMOR", "LANGUAGE"}
)  # fmt: skip
MISSPELT = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE"})


class GeminiWire:
    """``generateContent`` of one model at one address.

    :raises ConfigurationError: when an address is none.
    """

    def __init__(self, provider: Provider, model: str, settings: Settings) -> None:
        self._provider = provider
        self._model = model
        self._settings = settings
        base_url, origin = provider.address(settings)
        self.host = host_of(base_url, origin)
        # The SDK adds the version, its own unless told; people copy addresses with and without one.
        root, slash, last = base_url.rpartition("/")
        is_version = bool(slash and re.fullmatch(r"v1(beta|alpha)?[0-9]*", last))
        self._base_url = root if is_version else base_url
        self._version = last if is_version else None

    def prepare(self) -> None:
        """Check the key, and import what a first ask would wait for."""
        self._client().close()

    async def open(self) -> Client:
        """A client for the running event loop."""
        return self._client()

    async def close(self, client: Client) -> None:
        """Close its connections."""
        await client.aio.aclose()
        client.close()

    def word(self, ask: Ask, unfit: frozenset[str]) -> dict[str, Any]:
        """The request for an ask, as the SDK spells it. The provider knows no way to allow one call alone."""
        roles = {"user": "user", "assistant": "model"}
        contents = [{"role": roles[turn.side], "parts": _signed(turn.parts)} for turn in turns(ask, _Parts())]
        return {"model": self._model, "contents": contents, "config": self._config(ask, unfit)}

    async def send(self, client: Client, request: dict[str, Any]) -> Sent:
        """Make one request."""
        from aiohttp import ClientError  # what the SDK asks by where it is there, and it comes with us
        from google.genai import types
        from google.genai.errors import APIError

        config = types.GenerateContentConfig(**request["config"], should_return_http_response=True)
        try:
            sent = await client.aio.models.generate_content(**{**request, "config": config})
        except APIError as error:
            body = error.details if isinstance(error.details, Mapping) else {}
            headers = getattr(error.response, "headers", None) or {}
            return Sent(error.code, _with_wait(headers, body), body)
        except TimeoutError:
            raise
        except (ClientError, OSError, JSONDecodeError) as error:
            # The last is an error's body that ended early, or is none; its status is lost in the SDK.
            raise Dropped(type(error).__name__) from None
        answer = sent.sdk_http_response
        assert answer is not None
        return Sent(200, answer.headers or {}, (answer.body or "").encode("utf-8", "replace"))

    def read(self, answer: Mapping[str, Any]) -> Reply | Unanswered | Trouble:
        """Read the body of an answer."""
        usage, candidates = _usage(answer.get("usageMetadata")), listed(answer.get("candidates"))
        candidate = candidates[0] if candidates else {}
        reason = text(candidate.get("finishReason"))
        if mapping(answer.get("promptFeedback")).get("blockReason"):
            return Unanswered("refused", f"{self.host} blocked the question", usage=usage)
        if reason in STOPPED:
            return Unanswered("refused", f"the content filter of {self.host} stopped the answer", usage=usage)
        parts = [part for part in listed(mapping(candidate.get("content")).get("parts")) if not part.get("thought")]
        content = "".join(text(part.get("text")) for part in parts)
        calls = numbered(
            (text(call.get("id")), text(call.get("name")), argument(call.get("args")))
            for call in (mapping(part["functionCall"]) for part in parts if "functionCall" in part)
        )
        finish: FinishReason = "length" if reason == "MAX_TOKENS" else "stop"
        if finish == "length":
            calls = cut(calls, is_last=bool(parts) and "functionCall" in parts[-1])
        elif not content and not calls and not usage.output_tokens and reason not in MISSPELT:
            return Trouble("unavailable", f"{self.host} answered 200 without content", usage=usage)
        return Reply(content, calls, finish, usage)

    def _config(self, ask: Ask, unfit: frozenset[str]) -> dict[str, Any]:
        config: dict[str, Any] = {"automatic_function_calling": {"disable": True}}
        said = system(ask)
        if said:
            config["system_instruction"] = {"parts": [{"text": said}]}
        if ask.offers:
            config["tools"] = [{"function_declarations": _tools(offer_key(ask.offers))}]
            config["tool_config"] = {"function_calling_config": _choice(ask, unfit)}
        if ask.schema is not None and "response_json_schema" not in unfit:
            config["response_mime_type"] = "application/json"
            config["response_json_schema"] = for_gemini(ask.schema)
        sampling = {"temperature": ask.sampling.temperature, "max_tokens": ask.sampling.max_tokens}
        if ask.sampling.sample:
            sampling["seed"] = ask.sampling.sample
        names = {"max_tokens": "max_output_tokens"}
        return config | {names.get(name, name): value for name, value in sampling.items() if name not in unfit}

    def _client(self) -> Client:
        key = self._provider.secret(self._settings)
        try:
            from google.genai import types
        except ImportError:
            raise MissingExtra("Google's SDK", "google") from None
        import instructor

        options = types.HttpOptions(
            base_url=self._base_url,
            api_version=self._version,
            headers=dict(self._settings.headers),
            timeout=round(self._settings.timeout * 1000),
            # Without a word about retries the SDK makes one of its own after a dropped connection.
            retry_options=types.HttpRetryOptions(attempts=1),
        )
        client: Client | None = instructor.from_provider(
            f"google/{self._model}", async_client=True, api_key=key, http_options=options
        ).client
        assert client is not None
        return client


class _Parts:
    """Gemini's parts, as the SDK spells them."""

    def text(self, text: str, side: Side) -> Part:  # noqa: ARG002
        return {"text": text}

    def image(self, image: Image) -> Part:
        return {"inline_data": {"mime_type": image.media_type, "data": image.data}}

    def call(self, call: ToolCall, arguments: dict[str, Any]) -> Part:
        return {"function_call": {"id": call.id, "name": call.name, "args": arguments}}

    def result(self, result: ToolResult) -> Part:
        said = {"error" if result.is_error else "output": result.content}
        return {"function_response": {"id": result.call_id, "name": result.name, "response": said}}


def _signed(parts: list[Part]) -> list[Part]:
    """The parts with the first call signed, which is the one that is looked at."""
    first = next((position for position, part in enumerate(parts) if "function_call" in part), None)
    return [
        {**part, "thought_signature": UNSIGNED} if position == first else part for position, part in enumerate(parts)
    ]


@lru_cache(maxsize=128)
def _tools(offers: OfferKey) -> list[Part]:
    return [
        {
            "name": name,
            "description": description,
            "parameters_json_schema": for_gemini(parameters_of(parameters)),
        }
        for name, description, parameters, _ in offers
    ]


def _choice(ask: Ask, unfit: frozenset[str]) -> dict[str, Any]:
    if ask.tool_choice == "auto" or "tool_choice" in unfit:
        return {"mode": "AUTO"}
    if ask.tool_choice == "required":
        return {"mode": "ANY"}
    return {"mode": "ANY", "allowed_function_names": [ask.tool_choice]}


def _with_wait(headers: Mapping[str, str], body: Mapping[str, Any]) -> Mapping[str, str]:
    """The headers with the wait that the provider asks for in the body of a refusal."""
    for detail in listed(mapping(body.get("error")).get("details")):
        delay = re.fullmatch(r"([0-9.]{1,12})s", text(detail.get("retryDelay")))
        if delay and not headers.get("retry-after"):
            return {**{name.lower(): value for name, value in headers.items()}, "retry-after": delay[1]}
    return headers


def _usage(usage: Any) -> Usage:
    """Tokens; what a model thinks is paid for as output, and what is read from a cache is part of the input."""
    usage = mapping(usage)
    read = count(usage.get("promptTokenCount")) + count(usage.get("toolUsePromptTokenCount"))
    written = count(usage.get("candidatesTokenCount")) + count(usage.get("thoughtsTokenCount"))
    return Usage(read, written, count(usage.get("cachedContentTokenCount")))
