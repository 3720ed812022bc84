"""Replies and attempts as JSON, and back."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from extractor.feedback import clean
from extractor.matching import canonical, decoded
from extractor.messages import Reply, ToolCall, ToolResult, Usage


def reply_to_json(reply: Reply) -> str:
    """A reply as text; :func:`reply_from_json` gives an equal one back."""
    body = {
        "content": reply.content,
        "calls": [[call.id, call.name, call.arguments] for call in reply.tool_calls],
        "finish_reason": reply.finish_reason,
        "usage": [reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cached_tokens],
        "model": reply.model,
    }
    return json.dumps(body, default=str)  # in ASCII: a model may send halves of characters, which no database takes


def reply_from_json(text: str) -> Reply:
    """The reply that :func:`reply_to_json` wrote."""
    body = json.loads(text)
    return Reply(
        content=body["content"],
        tool_calls=tuple(ToolCall(*call) for call in body["calls"]),
        finish_reason=body["finish_reason"],
        usage=Usage(*body["usage"]),
        model=body["model"],
    )


def call_hash(name: str, arguments: Any) -> str:
    """One hash for equal calls: a call is reloaded after a crash only while it says the same."""
    read = decoded(arguments)
    return hashlib.sha256(canonical([name, arguments if read is None else read]).encode("utf-8", "replace")).hexdigest()


def result_summary(result: ToolResult) -> dict[str, Any]:
    """What the transcript keeps of a result."""
    call, name, content = map(clean, (result.call_id, result.name, result.content))
    return {"call": call, "name": name, "verdict": str(result.verdict), "content": content}


def jsonable(value: Any) -> Any:
    """Arguments as the JSON column takes them: what JSON has no word for becomes its text."""
    return json.loads(json.dumps(value, ensure_ascii=False, default=str))
