"""Any endpoint that speaks OpenAI's chat completions: ``openai/<name>``.

The key comes from ``OPENAI_API_KEY``, the address from ``OPENAI_BASE_URL`` (OpenAI's own without it). The key is read
when a client is made, handed to it, and kept nowhere else.

What is instructor's: the client (``from_provider``, with the SDK's retries off), the payload of the functions on offer
(its request handler for tools, called once for each set of offers), and the shape of an answered turn (its re-ask
handler, whose one text for all calls is replaced by each call's own).

What is ours: everything whose loss could not be seen from instructor's return values. The SDK is called for raw
responses, and :mod:`extractor.models.chat` reads every call in them. :mod:`extractor.models.transport` is the only
retry layer. Our offers are JSON schemas already, so the request handler is given a stand-in class that hands out the
schema as it is; its ``tool_choice``, which would force one function of several, is not used; ``strict`` is set here,
for those schemas alone that a provider's constrained decoding can take.

The SDK and instructor are imported at first use, or by :meth:`HostedModel.prepare`; together they take over a second.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from extractor.errors import ConfigurationError
from extractor.messages import Ask, FinishReason, Offer, Reply, ToolResult, Unanswered, UnansweredKind, Usage
from extractor.models import chat
from extractor.models.transport import Pace, Patience, Trouble, persist, retry_after

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI

KEY = "OPENAI_API_KEY"
BASE_URL = "OPENAI_BASE_URL"


def model(name: str) -> HostedModel:
    """The model of that name at the endpoint that the environment names.

    :param name: as the provider knows it, without the leading ``openai/``; it may hold slashes of its own.
    :raises ConfigurationError: the name is empty, or ``OPENAI_BASE_URL`` is no http(s) address.
    """
    return HostedModel(name)


class HostedModel:
    """A model behind an OpenAI-compatible endpoint; safe to use from any number of event loops, one after another or
    side by side.

    :param name: as the provider knows it.
    :param patience: how long an ask goes on when the provider gives no answer.
    :param timeout: seconds after which one request is given up.
    :raises ConfigurationError: the name is empty, or ``OPENAI_BASE_URL`` is no http(s) address.
    """

    def __init__(self, name: str, *, patience: Patience | None = None, timeout: float = 300.0) -> None:
        if not name.strip():
            raise ConfigurationError("a hosted model needs a name", hint="write it as openai/NAME")
        self.name = f"openai/{name}"
        self._wire_name = name
        self._patience = patience or Patience()
        self._timeout = timeout
        self._base_url = os.environ.get(BASE_URL, "").strip() or "https://api.openai.com/v1"
        self._host = _host(self._base_url)
        self._pace = Pace()
        # Parameters that this model refused: dropped or renamed from then on.
        self._unfit: set[str] = set()
        # One client for each loop: a client's open connections belong to the loop that opened them.
        self._clients: dict[asyncio.AbstractEventLoop, tuple[AsyncOpenAI, AsyncGenerator[None, None]]] = {}

    def __repr__(self) -> str:
        return f"HostedModel({self.name!r}, host={self._host!r})"

    @property
    def identity(self) -> str:
        """Provider, model, host and dialect: what a request key needs to tell this model from others. Never the key."""
        return f"{self.name}@{self._host}#tools"

    def prepare(self) -> None:
        """Check what can be checked without a request, and import what asking needs.

        :raises ConfigurationError: ``OPENAI_API_KEY`` is missing or cannot be a key.
        """
        _key()
        # The client is thrown away: making it imports what a first ask would wait for, over a second inside the run.
        client = _new_client(self._wire_name, self._base_url, self._timeout)
        _ = client.chat.completions, _shapes().offered((Offer("nothing", "", {"type": "object"}),))

    async def ask(self, ask: Ask) -> Reply | Unanswered:
        """Put one ask to the model.

        :returns: the reply; or, as a value, why there is none. Nothing but cancellation is raised.
        """
        try:
            client = await self._client()
        except ConfigurationError as error:
            return Unanswered("unauthorized", str(error), self.name)
        messages, tools = chat.word(ask, _shapes())
        request: dict[str, Any] = {"model": self._wire_name, "messages": messages}
        if tools:
            request |= {"tools": tools, "tool_choice": "required"}

        async def send() -> Reply | Unanswered | Trouble:
            return await self._send(client, request, ask)

        answer: Reply | Unanswered | Trouble = await persist(send, self._patience, self._pace)
        return Unanswered(answer.kind, answer.cause, self.name) if isinstance(answer, Trouble) else answer

    async def aclose(self) -> None:
        """Close this loop's connections. A loop that ends by ``asyncio.run`` closes them by itself."""
        held = self._clients.get(asyncio.get_running_loop())
        if held is not None:
            await held[1].aclose()

    async def _client(self) -> AsyncOpenAI:
        loop = asyncio.get_running_loop()
        held = self._clients.get(loop)
        if held is None:
            for ended in [known for known in self._clients if known.is_closed()]:
                self._clients.pop(ended, None)
            client = _new_client(self._wire_name, self._base_url, self._timeout)
            held = self._clients[loop] = (client, self._keep(loop, client))
            await anext(held[1])
        return held[0]

    async def _keep(self, loop: asyncio.AbstractEventLoop, client: AsyncOpenAI) -> AsyncGenerator[None, None]:
        """Hold a client until its loop ends: ``asyncio.run`` closes the generators of its loop before the loop itself,
        which is the one moment at which connections that nobody closed can still be closed."""
        try:
            yield
        finally:
            self._clients.pop(loop, None)
            await client.close()

    async def _send(self, client: AsyncOpenAI, request: dict[str, Any], ask: Ask) -> Reply | Unanswered | Trouble:
        """Make one request; another one at once when a parameter was refused that the request can do without."""
        from openai import APIConnectionError, APIStatusError, APITimeoutError

        sampling = {"temperature": ask.sampling.temperature, "max_tokens": ask.sampling.max_tokens}
        while True:
            unfit = frozenset(self._unfit)
            try:
                async with asyncio.timeout(self._timeout):
                    sent = await client.chat.completions.with_raw_response.create(**request, **_fit(sampling, unfit))
                return self._read(sent.http_response.content, sent.headers)
            except APIStatusError as error:
                refused = _refused_parameter(error)
                if not refused or refused in unfit:
                    return self._judge(error.status_code, error.response.headers, error.body)
                self._unfit.add(refused)
            except (APITimeoutError, TimeoutError):
                return Trouble("timeout", f"{self._host} did not answer within {self._timeout:.0f} s")
            except APIConnectionError as error:
                return Trouble("unavailable", f"no connection to {self._host} ({type(error.__cause__).__name__})")
            except Exception as error:
                # A value, as for any other end; the class alone, since the text may hold what was sent.
                cause = f"the request to {self._host} could not be made ({type(error).__name__})"
                return Trouble("unavailable", cause, passing=False)

    def _read(self, body: bytes, headers: Mapping[str, str]) -> Reply | Unanswered | Trouble:
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            return Trouble("unavailable", f"{self._host} answered 200 with a body that is no JSON")
        answer = answer if isinstance(answer, dict) else {}
        choices = answer.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
        problem = choice.get("error") or answer.get("error")
        if isinstance(problem, dict):
            # Routers in front of several providers pass an error on with status 200 and its own status as code.
            code = problem.get("code")
            return self._judge(code if isinstance(code, int) and 400 <= code < 600 else 502, headers, problem)
        usage, finish, message = _usage(answer.get("usage")), choice.get("finish_reason"), choice.get("message")
        if finish == "content_filter":
            return Unanswered("refused", f"the content filter of {self._host} stopped the answer", self.name, usage)
        if not isinstance(message, dict):
            return Trouble("unavailable", f"{self._host} answered 200 without a choice")
        spoken = chat.read(message)
        if spoken.refusal and not spoken.tool_calls:
            return Unanswered("refused", f"{self.name} declined to answer", self.name, usage)
        reason: FinishReason = "length" if finish == "length" else "stop"
        return Reply(spoken.content, spoken.tool_calls, reason, usage, self.name)

    def _judge(self, status: int, headers: Mapping[str, str], body: Any) -> Trouble:
        return judge(status, body, headers, host=self._host, name=self._wire_name)


class _InstructorShapes:
    """Instructor's payloads and message shapes for chat completions with tools."""

    def __init__(self) -> None:
        from instructor.v2 import Mode, Provider, mode_registry

        self._handlers = mode_registry.get_handlers(Provider.OPENAI, Mode.TOOLS)
        self._payload = lru_cache(maxsize=128)(self._build)

    def offered(self, offers: Sequence[Offer]) -> list[chat.Wire]:
        """The payload of these offers, from the cache when they were offered before."""
        key = tuple(
            (offer.name, offer.description, json.dumps(dict(offer.parameters)), offer.strict) for offer in offers
        )
        return self._payload(key)

    def answered(self, turn: chat.Wire, results: Sequence[ToolResult]) -> list[chat.Wire]:
        """The turn and the results of its calls, each under the id of its call."""
        from openai.types.chat import ChatCompletion

        choice = {"index": 0, "finish_reason": "tool_calls", "message": turn}
        frame = {"id": "", "object": "chat.completion", "created": 0, "model": "", "choices": [choice]}
        reply = ChatCompletion.model_validate(frame)
        # The handler appends to the list that it is given, and writes the error's text to every call.
        shaped = self._handlers.reask_handler({"messages": []}, reply, ValueError())["messages"]
        texts = {result.call_id: result.content for result in results}
        return [shaped[0], *({**answer, "content": texts.get(answer["tool_call_id"], "")} for answer in shaped[1:])]

    def _build(self, offers: tuple[tuple[str, str, str, bool], ...]) -> list[chat.Wire]:
        payload: list[chat.Wire] = []
        for name, description, text, strict in offers:
            parameters = json.loads(text)
            schema = {**parameters, "title": name, "description": description}
            _, request = self._handlers.request_handler(_stand_in(schema), {"messages": []})
            payload.extend(request["tools"])
            if strict and chat.takes_strict(parameters):
                payload[-1]["function"]["strict"] = True
        return payload


@cache
def _shapes() -> _InstructorShapes:
    return _InstructorShapes()


def _stand_in(schema: dict[str, Any]) -> type[Any]:
    """A model class that hands out ``schema`` as its own: what instructor makes a payload from is a class."""
    from pydantic import BaseModel

    # No docstring below: instructor would read it for descriptions of parameters.
    class Offered(BaseModel):
        @classmethod
        def model_json_schema(cls, *_: Any, **__: Any) -> dict[str, Any]:
            return schema

    return Offered


def _new_client(name: str, base_url: str, timeout: float) -> AsyncOpenAI:
    import instructor
    from openai import Timeout

    client: AsyncOpenAI | None = instructor.from_provider(
        f"openai/{name}",
        async_client=True,
        api_key=_key(),
        base_url=base_url,
        max_retries=0,
        timeout=Timeout(timeout, connect=min(timeout, 20.0)),
    ).client
    assert client is not None
    return client


def _key() -> str:
    key = os.environ.get(KEY, "").strip()
    if not key:
        hint = "set it to your provider's key, or to any word for a server that asks for none"
        raise ConfigurationError(f"{KEY} is not set", hint=hint)
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise ConfigurationError(f"{KEY} holds characters that no key has", hint="copy the key once more")
    return key


def _host(base_url: str) -> str:
    """Host and port of the address, without a user or password that it may hold."""
    try:
        parts = urlsplit(base_url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        parts, host, port = urlsplit(""), "", None
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigurationError(f"{BASE_URL} is no address", hint="give it as https://HOST/v1")
    return f"{host}:{port}" if port else host


def _fit(sampling: Mapping[str, Any], unfit: frozenset[str]) -> dict[str, Any]:
    """``max_tokens`` is what compatible servers know; the models that refuse it know ``max_completion_tokens``."""
    renamed = {"max_tokens": "max_completion_tokens"} if "max_tokens" in unfit else {}
    dropped = unfit & {"temperature"}
    return {renamed.get(key, key): value for key, value in sampling.items() if key not in dropped}


def _refused_parameter(error: APIStatusError) -> str:
    """The parameter that the provider does not take for this model, if that is what it says and we can do without."""
    if error.status_code not in (400, 422):
        return ""
    code, _, text, param = _facts(error.body)
    if code not in ("unsupported_parameter", "unsupported_value") and not any(
        phrase in text for phrase in ("unsupported", "not support", "deprecated")
    ):
        return ""
    return next((name for name in ("max_tokens", "temperature") if name in (param or text)), "")


def _facts(body: Any) -> tuple[str, str, str, str]:
    """Code, type, message and parameter of an error body in lower case, bounded; empty where it has none."""
    body = body if isinstance(body, Mapping) else {}
    code, kind, text, param = (str(body.get(key) or "").lower()[:2000] for key in ("code", "type", "message", "param"))
    return code, kind, text, param


_QUOTA = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "insufficient_balance"}
_FILTERED = {"content_filter", "content_policy_violation", "invalid_prompt", "moderation_blocked"}
_TOO_LONG_CODES = {"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"}
_TOO_LONG = ("maximum context length", "context length", "context size", "context window", "prompt is too long")


def judge(status: int, body: Any, headers: Mapping[str, str], *, host: str, name: str) -> Trouble:
    """What an answer with an error status comes to.

    :param status: the HTTP status.
    :param body: the error object of the answer, or anything else; none of its prose enters the cause.
    :param headers: read for how long to wait.
    :param host: who answered.
    :param name: the model asked for.
    """
    code, kind, text, _ = _facts(body)
    said = f"{host} answered {status}" + "".join(f" ({word})" for word in [_word(code) or _word(kind)] if word)
    named = {code, kind}
    final: list[tuple[bool, UnansweredKind, str]] = [
        (status == 402 or bool(named & _QUOTA), "unauthorized", f"the quota or credit of the key in {KEY} is used up"),
        (code in _FILTERED or (status == 403 and "moderation" in text), "refused", "a content filter stopped it"),
        (
            status == 413 or bool(named & _TOO_LONG_CODES) or _is_too_long(status, text),
            "refused",
            "document and prompt are longer than the model's context",
        ),
        (status in (401, 403), "unauthorized", f"the key in {KEY} is not accepted"),
        (
            status == 404 or code == "model_not_found",
            "unknown_model",
            f"no model {name!r} there; check the name and {BASE_URL}",
        ),
    ]
    for applies, what, why in final:
        if applies:
            return Trouble(what, f"{said}: {why}", passing=False)
    if status == 429:
        return Trouble("rate_limited", said, spends=False, wait=retry_after(headers))
    if status in (408, 409) or status >= 500:
        return Trouble("timeout" if status == 408 else "unavailable", said, wait=retry_after(headers))
    why = f"it does not take the request; check that {name!r} can call functions"
    return Trouble("bad_request", f"{said}: {why}", passing=False)


def _is_too_long(status: int, text: str) -> bool:
    # A cap on the answer that is too large for the model is a matter of settings, not of one document.
    return status in (400, 422) and "max_tokens" not in text and any(phrase in text for phrase in _TOO_LONG)


def _word(text: str) -> str:
    """A code or type as providers spell them; anything else might be an echo of what was sent."""
    return text if len(text) <= 48 and text.replace("_", "").isalpha() and text.isascii() else ""


def _usage(usage: Any) -> Usage:
    usage = usage if isinstance(usage, dict) else {}
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else 0
    return Usage(_count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")), _count(cached))


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


__all__ = ["BASE_URL", "KEY", "HostedModel", "judge", "model"]
