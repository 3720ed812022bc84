"""Amazon Bedrock's ``converse``, by boto3.

The SDK knows no event loop: each request has a thread of its own while it lasts. The payload of the functions on offer
is instructor's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from extractor.errors import ConfigurationError, MissingExtra
from extractor.messages import Ask, FinishReason, Image, Offer, Reply, ToolCall, ToolResult, Unanswered, Usage
from extractor.models.settings import Provider, Settings, host_of
from extractor.models.transport import Trouble
from extractor.models.wires import Dropped, Sent, count, mapping, text
from extractor.models.wires.payloads import held, parameters_of, requests_by_instructor
from extractor.models.wires.shapes import OfferKey, offer_key
from extractor.models.wires.turns import Part, Side, argument, cut, listed, numbered, system, turns
from extractor.threads import in_own_thread

REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
CONNECTIONS = 256
CUT = ("max_tokens", "model_context_window_exceeded")
STOPPED = ("guardrail_intervened", "content_filtered")
MISSPELT = ("malformed_model_output", "malformed_tool_use")
FACTS = (
    ("toolchoice", {"code": "unsupported_parameter", "param": "tool_choice"}),
    ("model identifier is invalid", {"code": "ResourceNotFoundException"}),
)
"""What some messages of one and the same error come to, in the words that others have for it."""


class BedrockWire:
    """``converse`` with one model.

    :raises ConfigurationError: when an address is none.
    """

    def __init__(self, provider: Provider, model: str, settings: Settings) -> None:
        self._provider = provider
        self._model = model
        self._settings = settings
        self._region = next((os.environ[name].strip() for name in REGIONS if os.environ.get(name, "").strip()), "")
        said = settings.endpoint or any(os.environ.get(name, "").strip() for name in provider.addresses)
        self._base_url, origin = provider.address(settings) if said else ("", "")
        region = f".{self._region}" if self._region else ""
        self.host = host_of(self._base_url, origin) if said else f"bedrock-runtime{region}.amazonaws.com"

    def prepare(self) -> None:
        """Check region and credentials, and import what a first ask would wait for."""
        self._client().close()
        _tools(offer_key((Offer("nothing", "", {"type": "object"}),)), is_strict=False)

    async def open(self) -> Any:
        """A client."""
        return await in_own_thread(self._client, "bedrock")

    async def close(self, client: Any) -> None:
        """Close its connections."""
        client.close()

    def word(self, ask: Ask, unfit: frozenset[str]) -> dict[str, Any]:
        """The request for an ask. The provider knows no way to allow one call alone."""
        messages = [{"role": turn.side, "content": turn.parts} for turn in turns(ask, _Parts())]
        request: dict[str, Any] = {"modelId": self._model, "messages": messages}
        said = system(ask)
        if said:
            request["system"] = [{"text": said}]
        if ask.offers:
            is_strict = self._provider.strict and "strict" not in unfit
            request["toolConfig"] = {"tools": _tools(offer_key(ask.offers), is_strict=is_strict)}
            if "tool_choice" not in unfit:
                request["toolConfig"]["toolChoice"] = _choice(ask)
        sampling = {"temperature": ask.sampling.temperature, "max_tokens": ask.sampling.max_tokens}
        names = {"max_tokens": "maxTokens"}
        config = {names.get(name, name): value for name, value in sampling.items() if name not in unfit}
        return request | ({"inferenceConfig": config} if config else {})

    async def send(self, client: Any, request: dict[str, Any]) -> Sent:
        """Make one request."""
        from botocore.exceptions import (
            BotoCoreError,
            ClientError,
            ConnectionError,  # noqa: A004
            ConnectTimeoutError,
            HTTPClientError,
            ReadTimeoutError,
        )
        from botocore.parsers import ResponseParserError

        try:
            sent = await in_own_thread(lambda: client.converse(**request), "bedrock")
        except ClientError as error:
            return _refused(error.response)
        except (ReadTimeoutError, ConnectTimeoutError):
            raise TimeoutError from None
        except (HTTPClientError, ConnectionError, ResponseParserError) as error:
            raise Dropped(type(error).__name__) from None
        except BotoCoreError as error:
            name = type(error).__name__
            if "Credential" not in name and "Token" not in name:
                raise
            # Credentials that have ended, or cannot be had: nobody was asked.
            return Sent(403, {}, {"code": name})
        except Exception as error:
            # The SDK parses whatever comes as if it were an answer, and trips over a body that is none.
            raise Dropped(type(error).__name__) from None
        return Sent(200, mapping(sent.get("ResponseMetadata")).get("HTTPHeaders", {}), sent)

    def read(self, answer: Mapping[str, Any]) -> Reply | Unanswered | Trouble:
        """Read the body of an answer."""
        usage, reason = _usage(answer.get("usage")), answer.get("stopReason")
        if reason in STOPPED:
            return Unanswered("refused", f"the content filter of {self.host} stopped the answer", usage=usage)
        blocks = listed(mapping(mapping(answer.get("output")).get("message")).get("content"))
        content = "".join(text(block.get("text")) for block in blocks)
        calls = numbered(
            (text(call.get("toolUseId")), text(call.get("name")), argument(call.get("input")))
            for call in (mapping(block["toolUse"]) for block in blocks if "toolUse" in block)
        )
        finish: FinishReason = "length" if reason in CUT else "stop"
        if finish == "length":
            calls = cut(calls, is_last=bool(blocks) and "toolUse" in blocks[-1])
        elif not content and not calls and not usage.output_tokens and reason not in MISSPELT:
            return Trouble("unavailable", f"{self.host} answered 200 without content", usage=usage)
        return Reply(content, calls, finish, usage)

    def _client(self) -> Any:
        key = self._provider.secret(self._settings)
        try:
            import boto3
            from botocore import UNSIGNED
            from botocore.config import Config
        except ImportError:
            raise MissingExtra("the AWS SDK", "bedrock") from None
        session = boto3.Session()
        region = self._region or session.region_name or ("us-east-1" if self._base_url else "")
        if not region:
            raise ConfigurationError(f"{REGIONS[0]} is not set", hint="set it to a region that has the model")
        if not key and session.get_credentials() is None:
            variable = self._provider.key_variable(self._settings)
            raise ConfigurationError(f"{variable} is not set", hint="set it, or give AWS credentials in the usual way")
        timeout = self._settings.timeout
        config = Config(
            connect_timeout=min(timeout, 20.0),
            read_timeout=timeout,
            retries={"total_max_attempts": 1, "mode": "standard"},
            max_pool_connections=CONNECTIONS,
            **({"signature_version": UNSIGNED} if key else {}),
        )
        # Instructor's builder takes no address, timeout, number of retries or bearer key, so the client is made here.
        client = session.client(
            "bedrock-runtime", region_name=region, endpoint_url=self._base_url or None, config=config
        )
        headers = {**({"Authorization": f"Bearer {key}"} if key else {}), **self._settings.headers}

        def add(params: dict[str, Any], **_: Any) -> None:
            params["headers"].update(headers)

        client.meta.events.register("before-call.bedrock-runtime.Converse", add)
        return client


class _Parts:
    """Bedrock's content blocks."""

    def text(self, text: str, side: Side) -> Part:  # noqa: ARG002
        return {"text": text}

    def image(self, image: Image) -> Part:
        kind = image.media_type.rpartition("/")[2]
        return {"image": {"format": {"jpg": "jpeg"}.get(kind, kind), "source": {"bytes": image.data}}}

    def call(self, call: ToolCall, arguments: dict[str, Any]) -> Part:
        return {"toolUse": {"toolUseId": call.id, "name": call.name, "input": arguments}}

    def result(self, result: ToolResult) -> Part:
        said = {"toolUseId": result.call_id, "content": [{"text": result.content}]}
        return {"toolResult": {**said, "status": "error" if result.is_error else "success"}}


@lru_cache(maxsize=128)
def _tools(offers: OfferKey, *, is_strict: bool) -> list[Part]:
    strict = held(offers) if is_strict else frozenset()
    tools: list[Part] = []
    for offer, request in zip(offers, requests_by_instructor("BEDROCK", "TOOLS", offers), strict=True):
        name, description, parameters, _ = offer
        (tool,) = request["toolConfig"]["tools"]
        # Instructor names a tool after its class, and has words of its own where a description is missing.
        spec = {**tool["toolSpec"], "name": name, "inputSchema": {"json": parameters_of(parameters)}}
        spec["description"] = description or name
        tools.append({"toolSpec": spec | ({"strict": True} if name in strict else {})})
    return tools


def _choice(ask: Ask) -> dict[str, Any]:
    if ask.tool_choice in ("auto", "required"):
        return {"any" if ask.tool_choice == "required" else "auto": {}}
    return {"tool": {"name": ask.tool_choice}}


def _refused(response: Mapping[str, Any]) -> Sent:
    """An error as the other providers send theirs: boto takes the name of the exception apart from the message."""
    error, about = mapping(response.get("Error")), mapping(response.get("ResponseMetadata"))
    message = text(error.get("Message"))
    known = next((facts for phrase, facts in FACTS if phrase in message.lower()), {})
    status = about.get("HTTPStatusCode")
    body = {"code": text(error.get("Code")), "message": message, **known}
    return Sent(status if isinstance(status, int) else 502, about.get("HTTPHeaders", {}), body)


def _usage(usage: Any) -> Usage:
    """Tokens read from a cache and written to it are reported beside those that were neither."""
    usage = mapping(usage)
    cached = count(usage.get("cacheReadInputTokens"))
    fresh = count(usage.get("inputTokens")) + count(usage.get("cacheWriteInputTokens"))
    return Usage(fresh + cached, count(usage.get("outputTokens")), cached)
