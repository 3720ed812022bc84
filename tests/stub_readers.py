"""From each wire format to the same :class:`stub_asked.Asked`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from stub_asked import Asked, Call, Tool, Turn, merged
from stub_formats import Format

_FORCED: Mapping[Any, str] = {"any": "required", "tool": "required"}
_GEMINI_PARAMETERS = ("parametersJsonSchema", "parameters_json_schema", "parameters")  # Google's SDK sends the second
_GEMINI_MODES: Mapping[Any, str] = {"ANY": "required", "AUTO": "auto", "NONE": "none", "VALIDATED": "auto"}


def _parsed(text: Any) -> Any:
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _parts(content: Any) -> list[dict[str, Any]]:
    if content is None:
        return []
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _text(content: Any) -> str:
    """The text of string or block content, in every vendor's shape; what a block holds beside text as JSON."""
    said = (part.get("text", json.dumps(part["json"]) if "json" in part else "") for part in _parts(content))
    return "\n".join(part for part in said if part)


def _is_picture(part: Mapping[str, Any]) -> bool:
    kinds = ("image", "image_url", "input_image", "file", "input_file", "document")
    return part.get("type") in kinds or any(name in part for name in ("inlineData", "fileData", "image", "document"))


def _pictures(content: Any) -> int:
    return sum(_is_picture(part) for part in _parts(content))


def _is_system(message: Mapping[str, Any]) -> bool:
    return message.get("role") in ("system", "developer")


def _system(messages: Iterable[Mapping[str, Any]], *more: str | None) -> str | None:
    said = [*more, *(_text(message["content"]) for message in messages if _is_system(message))]
    return "\n".join(part for part in said if part) or None


def _chat(body: dict[str, Any]) -> Asked:
    messages = body.get("messages") or []
    mode, only = _openai_choice(body.get("tool_choice"))
    form = body.get("response_format") or {}
    return Asked(
        model=body.get("model"),
        system=_system(messages),
        turns=merged(_chat_turn(message) for message in messages if not _is_system(message)),
        tools=tuple(_openai_tool(tool["function"]) for tool in body.get("tools") or []),
        tool_choice=mode,
        only=only,
        parallel=body.get("parallel_tool_calls"),
        max_tokens=body.get("max_completion_tokens", body.get("max_tokens")),
        temperature=body.get("temperature"),
        schema=_openai_schema(form, form.get("json_schema")),
    )


def _chat_turn(message: Mapping[str, Any]) -> Turn:
    content = message.get("content")
    if message["role"] == "tool":
        return Turn("tool", results={message["tool_call_id"]: _text(content)})
    calls = tuple(
        Call(call["id"], call["function"]["name"], _parsed(call["function"]["arguments"]))
        for call in message.get("tool_calls") or []
    )
    return Turn(message["role"], _text(content), calls, images=_pictures(content))


def _openai_tool(tool: Mapping[str, Any]) -> Tool:
    return Tool(tool["name"], tool.get("parameters"), tool.get("strict"), tool.get("description"))


def _openai_choice(choice: Any) -> tuple[str | None, tuple[str, ...]]:
    if choice is None or isinstance(choice, str):
        return choice, ()
    if choice["type"] == "allowed_tools":
        allowed = choice.get("allowed_tools", choice)
        return allowed["mode"], tuple(tool.get("function", tool)["name"] for tool in allowed["tools"])
    return "required", (choice.get("function", choice)["name"],)


def _openai_schema(form: Mapping[str, Any], described: Mapping[str, Any] | None) -> Any:
    if form.get("type") == "json_schema" and described is not None:
        return described.get("schema")
    return {} if form.get("type") == "json_object" else None


def _responses(body: dict[str, Any]) -> Asked:
    sent = body.get("input") or []
    items = [{"role": "user", "content": sent}] if isinstance(sent, str) else sent
    mode, only = _openai_choice(body.get("tool_choice"))
    form = (body.get("text") or {}).get("format") or {}
    return Asked(
        model=body.get("model"),
        system=_system(items, body.get("instructions")),
        turns=merged(turn for item in items if not _is_system(item) for turn in _responses_turn(item)),
        tools=tuple(_openai_tool(tool) for tool in body.get("tools") or [] if tool["type"] == "function"),
        tool_choice=mode,
        only=only,
        parallel=body.get("parallel_tool_calls"),
        max_tokens=body.get("max_output_tokens"),
        temperature=body.get("temperature"),
        schema=_openai_schema(form, form),
    )


def _responses_turn(item: Mapping[str, Any]) -> Iterator[Turn]:
    kind = item.get("type", "message")
    if kind == "function_call":
        yield Turn("assistant", calls=(Call(item["call_id"], item["name"], _parsed(item["arguments"])),))
    elif kind == "function_call_output":
        yield Turn("tool", results={item["call_id"]: _text(item["output"])})
    elif kind == "message":
        yield Turn(item["role"], _text(item["content"]), images=_pictures(item["content"]))


def _anthropic(body: dict[str, Any]) -> Asked:
    choice = body.get("tool_choice") or {}
    form = (body.get("output_config") or {}).get("format") or {}
    single, kind = choice.get("disable_parallel_tool_use"), choice.get("type")
    return Asked(
        model=body.get("model"),
        system=_text(body.get("system")) or None,
        turns=merged(turn for message in body.get("messages") or [] for turn in _anthropic_turns(message)),
        tools=tuple(
            Tool(tool["name"], tool.get("input_schema"), tool.get("strict"), tool.get("description"))
            for tool in body.get("tools") or []
        ),
        tool_choice=_FORCED.get(kind, kind),
        only=(choice["name"],) if "name" in choice else (),
        parallel=None if single is None else not single,
        max_tokens=body.get("max_tokens"),
        temperature=body.get("temperature"),
        schema=form.get("schema"),
    )


def _anthropic_turns(message: Mapping[str, Any]) -> Iterator[Turn]:
    for part in _parts(message["content"]):
        if part["type"] == "tool_result":
            content = part.get("content")
            yield Turn("tool", results={part["tool_use_id"]: _text(content)}, images=_pictures(content))
        elif part["type"] == "tool_use":
            yield Turn("assistant", calls=(Call(part["id"], part["name"], part["input"]),))
        else:
            yield Turn(message["role"], _text([part]), images=_pictures([part]))


def _gemini(body: dict[str, Any]) -> Asked:
    settings = body.get("generationConfig") or {}
    choice = (body.get("toolConfig") or {}).get("functionCallingConfig") or {}
    mode = choice.get("mode")
    offered = (tool for tools in body.get("tools") or [] for tool in tools.get("functionDeclarations") or [])
    schema = settings.get("responseJsonSchema", settings.get("responseSchema"))
    is_json = settings.get("responseMimeType") == "application/json"
    return Asked(
        model=body.get("model"),
        system=_text((body.get("systemInstruction") or {}).get("parts")) or None,
        turns=merged(turn for content in body.get("contents") or [] for turn in _gemini_turns(content)),
        tools=tuple(
            Tool(
                tool["name"],
                next((tool[name] for name in _GEMINI_PARAMETERS if name in tool), None),
                True if mode == "VALIDATED" else None,
                tool.get("description"),
            )
            for tool in offered
        ),
        tool_choice=_GEMINI_MODES.get(mode),
        only=tuple(choice.get("allowedFunctionNames") or ()),
        max_tokens=settings.get("maxOutputTokens"),
        temperature=settings.get("temperature"),
        schema={} if is_json and schema is None else schema,
    )


def _gemini_turns(content: Mapping[str, Any]) -> Iterator[Turn]:
    calls = results = 0
    for part in content["parts"]:
        if "functionCall" in part:
            call = part["functionCall"]
            name = call.get("id") or f"{call['name']}:{calls}"
            calls += 1
            yield Turn("assistant", calls=(Call(name, call["name"], call.get("args") or {}),))
        elif "functionResponse" in part:
            result = part["functionResponse"]
            name = result.get("id") or f"{result['name']}:{results}"
            results += 1
            yield Turn("tool", results={name: _gemini_result(result["response"])})
        else:
            role = "assistant" if content.get("role") == "model" else "user"
            yield Turn(role, _text([part]), images=_pictures([part]))


def _gemini_result(response: Mapping[str, Any]) -> str:
    values = list(response.values())
    return values[0] if len(values) == 1 and isinstance(values[0], str) else json.dumps(response)


def _bedrock(body: dict[str, Any]) -> Asked:
    settings = body.get("inferenceConfig") or {}
    config = body.get("toolConfig") or {}
    choice = config.get("toolChoice") or {}
    offered = (tool["toolSpec"] for tool in config.get("tools") or [] if "toolSpec" in tool)
    form = ((body.get("outputConfig") or {}).get("textFormat") or {}).get("structure") or {}
    mode = next(iter(choice), None)
    return Asked(
        model=body.get("model"),
        system=_text(body.get("system")) or None,
        turns=merged(turn for message in body.get("messages") or [] for turn in _bedrock_turns(message)),
        tools=tuple(
            Tool(tool["name"], tool["inputSchema"]["json"], tool.get("strict"), tool.get("description"))
            for tool in offered
        ),
        tool_choice=_FORCED.get(mode, mode),
        only=(choice["tool"]["name"],) if "tool" in choice else (),
        max_tokens=settings.get("maxTokens"),
        temperature=settings.get("temperature"),
        schema=_parsed(form["jsonSchema"]["schema"]) if "jsonSchema" in form else None,
    )


def _bedrock_turns(message: Mapping[str, Any]) -> Iterator[Turn]:
    for part in message["content"]:
        if "toolResult" in part:
            result = part["toolResult"]
            content = result["content"]
            yield Turn("tool", results={result["toolUseId"]: _text(content)}, images=_pictures(content))
        elif "toolUse" in part:
            call = part["toolUse"]
            yield Turn("assistant", calls=(Call(call["toolUseId"], call["name"], call["input"]),))
        else:
            yield Turn(message["role"], _text([part]), images=_pictures([part]))


READERS: dict[Format, Callable[[dict[str, Any]], Asked]] = {
    "chat": _chat,
    "responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "bedrock": _bedrock,
}


__all__ = ["READERS"]
