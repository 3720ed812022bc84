"""The wire formats that a stub server answers in: which one a path asks for, and how an answer looks in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from stub_answers import Fault, Said, Spent, written

Format = Literal["chat", "responses", "anthropic", "gemini", "bedrock"]

SUFFIXES: tuple[tuple[str, Format], ...] = (
    ("/chat/completions", "chat"),
    ("/responses", "responses"),
    ("/messages", "anthropic"),
    (":generateContent", "gemini"),
    ("/converse", "bedrock"),
)


def format_of(path: str) -> Format:
    """The format that a path asks for; an unknown path is answered in OpenAI's."""
    bare = path.partition("?")[0]
    return next((name for suffix, name in SUFFIXES if bare.endswith(suffix)), "chat")


@dataclass(frozen=True, slots=True)
class Rendered:
    """An answer in one format."""

    status: int
    body: dict[str, Any]
    headers: Mapping[str, str]


def rendered(said: Said | Fault, wire: Format) -> Rendered:
    """An answer or an error as a server of this format sends it."""
    if isinstance(said, Fault):
        body, headers = _FAULTS[wire](said)
        return Rendered(said.status, body, {**headers, **said.headers})
    return Rendered(200, _ANSWERS[wire](said), {})


def _object(arguments: Any) -> dict[str, Any]:
    """Arguments as an object; what is none becomes ``{}``, as in servers that carry objects."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return {}
    return arguments if isinstance(arguments, dict) else {}


def _chat(said: Said) -> dict[str, Any]:
    refused = said.finish == "refusal"
    message: dict[str, Any] = {
        "role": "assistant",
        "content": None if refused else said.text,
        "refusal": (said.text or "I cannot help with that.") if refused else None,
    }
    if said.calls:
        message["tool_calls"] = [
            {"id": f"call_{position}", "type": "function", "function": {"name": name, "arguments": written(sent)}}
            for position, (name, sent) in enumerate(said.calls)
        ]
    reason = {"length": "length", "content_filter": "content_filter"}.get(
        said.finish, "tool_calls" if said.calls else "stop"
    )
    body = {"id": "chatcmpl-stub", "object": "chat.completion", "created": 0, "model": "stub"}
    choices = [{"index": 0, "message": message, "finish_reason": reason, "logprobs": None}]
    return {**body, "choices": [] if said.finish == "empty" else choices, **_usage(said, _chat_usage)}


def _usage(said: Said, shape: Callable[[Spent], dict[str, Any]], name: str = "usage") -> dict[str, Any]:
    return {} if said.spent is None else {name: shape(said.spent)}


def _chat_usage(spent: Spent) -> dict[str, Any]:
    return {
        "prompt_tokens": spent.input,
        "completion_tokens": spent.output,
        "total_tokens": spent.input + spent.output,
        "prompt_tokens_details": {"cached_tokens": spent.cached},
    }


def _responses(said: Said) -> dict[str, Any]:
    reason = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(said.finish)
    return {
        "id": "resp_stub",
        "object": "response",
        "created_at": 0,
        "model": "stub",
        "status": "incomplete" if reason else "completed",
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "output": [] if said.finish == "empty" else _responses_output(said, "incomplete" if reason else "completed"),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        **_usage(said, _responses_usage),
    }


def _responses_output(said: Said, status: str) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = []
    if said.finish == "refusal":
        content = [{"type": "refusal", "refusal": said.text or "I cannot help with that."}]
    elif said.text is not None:
        content = [{"type": "output_text", "text": said.text, "annotations": []}]
    message = {"type": "message", "id": "msg_stub", "role": "assistant", "status": status, "content": content}
    calls = [
        {
            "type": "function_call",
            "id": f"fc_{position}",
            "call_id": f"call_{position}",
            "name": name,
            "arguments": written(sent),
            "status": status,
        }
        for position, (name, sent) in enumerate(said.calls)
    ]
    return [*([message] if content else []), *calls]


def _responses_usage(spent: Spent) -> dict[str, Any]:
    return {
        "input_tokens": spent.input,
        "input_tokens_details": {"cached_tokens": spent.cached, "cache_write_tokens": spent.written},
        "output_tokens": spent.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": spent.input + spent.output,
    }


def _anthropic(said: Said) -> dict[str, Any]:
    content: list[dict[str, Any]] = [] if said.text is None else [{"type": "text", "text": said.text}]
    content += [
        {"type": "tool_use", "id": f"toolu_{position}", "name": name, "input": _object(sent)}
        for position, (name, sent) in enumerate(said.calls)
    ]
    reason = {"length": "max_tokens", "refusal": "refusal", "content_filter": "refusal"}.get(
        said.finish, "tool_use" if said.calls else "end_turn"
    )
    return {
        "id": "msg_stub",
        "type": "message",
        "role": "assistant",
        "model": "stub",
        "content": [] if said.finish == "empty" else content,
        "stop_reason": reason,
        "stop_sequence": None,
        **_usage(said, _anthropic_usage),
    }


def _anthropic_usage(spent: Spent) -> dict[str, Any]:
    return {
        "input_tokens": spent.input - spent.cached - spent.written,
        "cache_read_input_tokens": spent.cached,
        "cache_creation_input_tokens": spent.written,
        "output_tokens": spent.output,
    }


def _gemini(said: Said) -> dict[str, Any]:
    body = {"modelVersion": "stub", "responseId": "stub", **_usage(said, _gemini_usage, "usageMetadata")}
    if said.finish == "empty":
        return body
    if said.finish == "refusal":
        return {**body, "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}
    parts: list[dict[str, Any]] = [] if said.text is None else [{"text": said.text}]
    parts += [
        {"functionCall": {"id": f"call_{position}", "name": name, "args": _object(sent)}}
        for position, (name, sent) in enumerate(said.calls)
    ]
    reason = {"length": "MAX_TOKENS", "content_filter": "SAFETY"}.get(said.finish, "STOP")
    candidate: dict[str, Any] = {"index": 0, "finishReason": reason}
    if said.finish != "content_filter":
        candidate["content"] = {"role": "model", "parts": parts}
    return {**body, "candidates": [candidate]}


def _gemini_usage(spent: Spent) -> dict[str, Any]:
    counted = {"promptTokenCount": spent.input, "candidatesTokenCount": spent.output}
    cached = {"cachedContentTokenCount": spent.cached} if spent.cached else {}
    return {**counted, **cached, "totalTokenCount": spent.input + spent.output}


def _bedrock(said: Said) -> dict[str, Any]:
    content: list[dict[str, Any]] = [] if said.text is None else [{"text": said.text}]
    content += [
        {"toolUse": {"toolUseId": f"tooluse_{position}", "name": name, "input": _object(sent)}}
        for position, (name, sent) in enumerate(said.calls)
    ]
    reasons = {"length": "max_tokens", "refusal": "guardrail_intervened", "content_filter": "content_filtered"}
    return {
        "output": {"message": {"role": "assistant", "content": [] if said.finish == "empty" else content}},
        "stopReason": reasons.get(said.finish, "tool_use" if said.calls else "end_turn"),
        "metrics": {"latencyMs": 1},
        **_usage(said, _bedrock_usage),
    }


def _bedrock_usage(spent: Spent) -> dict[str, Any]:
    return {
        "inputTokens": spent.input - spent.cached - spent.written,
        "outputTokens": spent.output,
        "totalTokens": spent.input + spent.output,
        "cacheReadInputTokens": spent.cached,
        "cacheWriteInputTokens": spent.written,
    }


Worded = tuple[dict[str, Any], dict[str, str]]


def _openai_fault(fault: Fault) -> Worded:
    kinds = {400: "invalid_request_error", 401: "invalid_request_error", 404: "invalid_request_error"}
    codes = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}
    kind = "requests" if fault.status == 429 else kinds.get(fault.status, "server_error")
    code = fault.code or codes.get(fault.status)
    return {"error": {"message": fault.message, "type": kind, "param": None, "code": code}}, {}


def _anthropic_fault(fault: Fault) -> Worded:
    kinds = {
        400: "invalid_request_error",
        401: "authentication_error",
        403: "permission_error",
        404: "not_found_error",
        413: "request_too_large",
        429: "rate_limit_error",
        504: "timeout_error",
        529: "overloaded_error",
    }
    kind = fault.code or kinds.get(fault.status, "api_error")
    body = {"type": "error", "error": {"type": kind, "message": fault.message}, "request_id": "req_stub"}
    return body, {"request-id": "req_stub"}


def _gemini_fault(fault: Fault) -> Worded:
    kinds = {
        400: "INVALID_ARGUMENT",
        401: "UNAUTHENTICATED",
        403: "PERMISSION_DENIED",
        404: "NOT_FOUND",
        429: "RESOURCE_EXHAUSTED",
        500: "INTERNAL",
        504: "DEADLINE_EXCEEDED",
    }
    kind = fault.code or kinds.get(fault.status, "UNAVAILABLE")
    return {"error": {"code": fault.status, "message": fault.message, "status": kind}}, {}


def _bedrock_fault(fault: Fault) -> Worded:
    kinds = {
        400: "ValidationException",
        403: "AccessDeniedException",
        404: "ResourceNotFoundException",
        408: "ModelTimeoutException",
        424: "ModelErrorException",
        429: "ThrottlingException",
        500: "InternalServerException",
    }
    kind = fault.code or kinds.get(fault.status, "ServiceUnavailableException")
    return {"message": fault.message}, {"x-amzn-errortype": f"{kind}:http://internal.amazon.com/coral/"}


_ANSWERS: dict[Format, Callable[[Said], dict[str, Any]]] = {
    "chat": _chat,
    "responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "bedrock": _bedrock,
}
_FAULTS: dict[Format, Callable[[Fault], Worded]] = {
    "chat": _openai_fault,
    "responses": _openai_fault,
    "anthropic": _anthropic_fault,
    "gemini": _gemini_fault,
    "bedrock": _bedrock_fault,
}


__all__ = ["SUFFIXES", "Format", "Rendered", "format_of", "rendered"]
