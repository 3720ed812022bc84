"""The vendors' own SDKs, each asking a stub server the same question in its own format."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from stub_asked import Asked, Call, Tool, Turn
from stub_server import StubServer

SCHEMA = {"type": "object", "properties": {"total": {"type": "string"}}, "required": ["total"]}
PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=")
PICTURE = base64.b64encode(PNG).decode()
CALLS = {"a": {"total": "1"}, "b": {"total": "2"}}
RESULTS = {"a": "total: the document says 3", "b": "stands"}
QUESTION = Asked(
    model="stub",
    system="Be exact.",
    turns=(
        Turn("user", "Invoice 17", images=1),
        Turn("assistant", calls=tuple(Call(name, "create_invoice", sent) for name, sent in CALLS.items())),
        Turn("tool", results=RESULTS),
        Turn("user", "Once more."),
    ),
    tools=(Tool("create_invoice", SCHEMA, description="Create one."),),
    tool_choice="required",
    only=("create_invoice",),
    max_tokens=64,
    temperature=0.5,
)
"""What every client below asks, in its own format."""


class Seen(NamedTuple):
    """What a client made of an answer."""

    text: str | None
    calls: list[tuple[str, Any]]
    usage: Mapping[str, int | None]
    finish: str | None


class Refused(NamedTuple):
    """What a client made of an error."""

    kind: str
    status: int
    code: str | None
    retry_after: str | None


def _chat_messages() -> list[dict[str, Any]]:
    calls = [
        {"id": name, "type": "function", "function": {"name": "create_invoice", "arguments": json.dumps(sent)}}
        for name, sent in CALLS.items()
    ]
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}
    return [
        {"role": "system", "content": "Be exact."},
        {"role": "user", "content": [{"type": "text", "text": "Invoice 17"}, picture]},
        {"role": "assistant", "tool_calls": calls},
        *({"role": "tool", "tool_call_id": name, "content": text} for name, text in RESULTS.items()),
        {"role": "user", "content": "Once more."},
    ]


def _chat(client: Any) -> Seen:
    function = {"name": "create_invoice", "description": "Create one.", "parameters": SCHEMA}
    found = client.chat.completions.create(
        model="stub",
        messages=_chat_messages(),
        tools=[{"type": "function", "function": function}],
        tool_choice={"type": "function", "function": {"name": "create_invoice"}},
        max_completion_tokens=64,
        temperature=0.5,
    )
    if not found.choices:
        return Seen(None, [], {}, None)
    message, spent = found.choices[0].message, found.usage
    usage = {"in": spent.prompt_tokens, "out": spent.completion_tokens}
    usage["cached"] = spent.prompt_tokens_details.cached_tokens
    calls = [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or []]
    return Seen(message.refusal or message.content, calls, usage, found.choices[0].finish_reason)


def openai_chat(server: StubServer) -> Seen:
    """OpenAI's SDK, chat completions."""
    from openai import OpenAI

    with OpenAI(base_url=server.base_url, api_key="key-1", max_retries=0) as client:
        return _chat(client)


def azure_deployment(server: StubServer) -> Seen:
    """OpenAI's SDK on Azure's paths with a deployment."""
    from openai import AzureOpenAI

    with AzureOpenAI(azure_endpoint=server.url, api_version="2024-10-21", api_key="key-1", max_retries=0) as client:
        return _chat(client)


def azure_v1(server: StubServer) -> Seen:
    """OpenAI's SDK on Azure's path without a deployment."""
    from openai import OpenAI

    address = f"{server.url}/openai/v1"
    with OpenAI(base_url=address, api_key="-", default_headers={"api-key": "key-1"}, max_retries=0) as client:
        return _chat(client)


def openai_responses(server: StubServer) -> Seen:
    """OpenAI's SDK, responses."""
    from openai import OpenAI

    content = [{"type": "input_text", "text": "Invoice 17"}]
    content.append({"type": "input_image", "detail": "auto", "image_url": f"data:image/png;base64,{PICTURE}"})
    calls = [
        {"type": "function_call", "call_id": name, "name": "create_invoice", "arguments": json.dumps(sent)}
        for name, sent in CALLS.items()
    ]
    results = [{"type": "function_call_output", "call_id": name, "output": text} for name, text in RESULTS.items()]
    sent: Any = [{"role": "user", "content": content}, *calls, *results, {"role": "user", "content": "Once more."}]
    tool: Any = {"type": "function", "name": "create_invoice", "description": "Create one.", "parameters": SCHEMA}
    with OpenAI(base_url=server.base_url, api_key="key-1", max_retries=0) as client:
        found = client.responses.create(
            model="stub",
            instructions="Be exact.",
            input=sent,
            tools=[tool],
            tool_choice={"type": "function", "name": "create_invoice"},
            max_output_tokens=64,
            temperature=0.5,
        )
    spent, texts = found.usage, [part for item in found.output if item.type == "message" for part in item.content]
    assert spent is not None
    usage = {"in": spent.input_tokens, "out": spent.output_tokens, "cached": spent.input_tokens_details.cached_tokens}
    read = [(item.name, json.loads(item.arguments)) for item in found.output if item.type == "function_call"]
    said = next((part.text if part.type == "output_text" else part.refusal for part in texts), None)
    reason = found.incomplete_details.reason if found.incomplete_details else found.status
    return Seen(said, read, usage, reason)


def anthropic_messages(server: StubServer) -> Seen:
    """Anthropic's SDK."""
    from anthropic import Anthropic

    source = {"type": "base64", "media_type": "image/png", "data": PICTURE}
    messages: Any = [
        {"role": "user", "content": [{"type": "image", "source": source}, {"type": "text", "text": "Invoice 17"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": name, "name": "create_invoice", "input": sent}
                for name, sent in CALLS.items()
            ],
        },
        {
            "role": "user",
            "content": [
                *({"type": "tool_result", "tool_use_id": name, "content": text} for name, text in RESULTS.items()),
                {"type": "text", "text": "Once more."},
            ],
        },
    ]
    tool: Any = {"name": "create_invoice", "description": "Create one.", "input_schema": SCHEMA}
    with Anthropic(base_url=server.url, api_key="key-1", max_retries=0) as client:
        found = client.messages.create(
            model="stub",
            system="Be exact.",
            messages=messages,
            tools=[tool],
            tool_choice={"type": "tool", "name": "create_invoice"},
            max_tokens=64,
            extra_body={"temperature": 0.5},
        )
    spent = found.usage
    usage = {"in": spent.input_tokens, "out": spent.output_tokens, "cached": spent.cache_read_input_tokens}
    usage["written"] = spent.cache_creation_input_tokens
    calls = [(part.name, part.input) for part in found.content if part.type == "tool_use"]
    text = next((part.text for part in found.content if part.type == "text"), None)
    return Seen(text, calls, usage, found.stop_reason)


def _gemini_contents() -> Any:
    calls = [{"function_call": {"id": name, "name": "create_invoice", "args": sent}} for name, sent in CALLS.items()]
    results = [
        {"function_response": {"id": name, "name": "create_invoice", "response": {"result": text}}}
        for name, text in RESULTS.items()
    ]
    picture = {"inline_data": {"mime_type": "image/png", "data": PNG}}
    return [
        {"role": "user", "parts": [{"text": "Invoice 17"}, picture]},
        {"role": "model", "parts": calls},
        {"role": "user", "parts": [*results, {"text": "Once more."}]},
    ]


def google_gemini(server: StubServer) -> Seen:
    """Google's SDK."""
    from google import genai

    function = {"name": "create_invoice", "description": "Create one.", "parameters_json_schema": SCHEMA}
    config: Any = {
        "system_instruction": "Be exact.",
        "tools": [{"function_declarations": [function]}],
        "tool_config": {"function_calling_config": {"mode": "ANY", "allowed_function_names": ["create_invoice"]}},
        "max_output_tokens": 64,
        "temperature": 0.5,
    }
    with genai.Client(api_key="key-1", http_options={"base_url": server.url}) as client:
        found = client.models.generate_content(model="stub", contents=_gemini_contents(), config=config)
    if not found.candidates:
        blocked = found.prompt_feedback.block_reason if found.prompt_feedback else None
        return Seen(None, [], {}, blocked.value if blocked else None)
    spent, candidate = found.usage_metadata, found.candidates[0]
    assert spent is not None
    assert candidate.finish_reason is not None
    usage = {"in": spent.prompt_token_count, "out": spent.candidates_token_count}
    usage["cached"] = spent.cached_content_token_count
    parts = (candidate.content.parts if candidate.content else None) or []
    calls = [(str(part.function_call.name), part.function_call.args) for part in parts if part.function_call]
    return Seen(next((part.text for part in parts if part.text), None), calls, usage, candidate.finish_reason.value)


def bedrock_converse(server: StubServer) -> Seen:
    """Amazon's SDK."""
    import boto3  # type: ignore[import-untyped]
    from botocore.config import Config  # type: ignore[import-untyped]

    settings = Config(retries={"total_max_attempts": 1}, proxies={})
    client = boto3.client("bedrock-runtime", endpoint_url=server.url, region_name="eu-north-1", config=settings)
    picture = {"image": {"format": "png", "source": {"bytes": PNG}}}
    calls = [{"toolUse": {"toolUseId": name, "name": "create_invoice", "input": sent}} for name, sent in CALLS.items()]
    results = [{"toolResult": {"toolUseId": name, "content": [{"text": text}]}} for name, text in RESULTS.items()]
    tool = {"name": "create_invoice", "description": "Create one.", "inputSchema": {"json": SCHEMA}}
    found = client.converse(
        modelId="stub",
        system=[{"text": "Be exact."}],
        messages=[
            {"role": "user", "content": [{"text": "Invoice 17"}, picture]},
            {"role": "assistant", "content": calls},
            {"role": "user", "content": [*results, {"text": "Once more."}]},
        ],
        toolConfig={"tools": [{"toolSpec": tool}], "toolChoice": {"tool": {"name": "create_invoice"}}},
        inferenceConfig={"maxTokens": 64, "temperature": 0.5},
    )
    client.close()
    spent, parts = found["usage"], found["output"]["message"]["content"]
    usage = {"in": spent["inputTokens"], "out": spent["outputTokens"]}
    usage |= {"cached": spent["cacheReadInputTokens"], "written": spent["cacheWriteInputTokens"]}
    read = [(part["toolUse"]["name"], part["toolUse"]["input"]) for part in parts if "toolUse" in part]
    return Seen(next((part["text"] for part in parts if "text" in part), None), read, usage, found["stopReason"])


Client = Callable[[StubServer], Seen]
CLIENTS: tuple[Client, ...] = (
    openai_chat, azure_deployment, azure_v1, openai_responses, anthropic_messages, google_gemini, bedrock_converse
)  # fmt: skip


def refused_by(ask: Client, server: StubServer) -> Refused:
    """Ask, and say which error came of it."""
    import anthropic
    import openai
    from botocore.exceptions import ClientError  # type: ignore[import-untyped]
    from google.genai.errors import APIError

    try:
        ask(server)
    except openai.APIStatusError as problem:
        return Refused(
            type(problem).__name__, problem.status_code, problem.code, problem.response.headers.get("retry-after")
        )
    except anthropic.APIStatusError as problem:
        kind: Any = problem.body
        code = kind["error"]["type"]
        return Refused(type(problem).__name__, problem.status_code, code, problem.response.headers.get("retry-after"))
    except APIError as problem:
        response: Any = problem.response
        return Refused(type(problem).__name__, problem.code, problem.status, response.headers.get("retry-after"))
    except ClientError as problem:
        told: Any = problem.response["ResponseMetadata"]
        code = problem.response["Error"]["Code"]
        return Refused(type(problem).__name__, told["HTTPStatusCode"], code, told["HTTPHeaders"].get("retry-after"))
    raise AssertionError("no error came")


__all__ = [
    "CLIENTS",
    "QUESTION",
    "SCHEMA",
    "Client",
    "Refused",
    "Seen",
    "anthropic_messages",
    "bedrock_converse",
    "refused_by",
]
