"""The provider's own function calls: an ask goes out as it is.

Calls come back as they are. Only where a reply has none is its text read: small models, and servers that know their
model's notation badly, write the call as text. Where plain text is an answer as well (``tool_choice`` ``auto``), JSON
in it is a call only when it names its function.
"""

from __future__ import annotations

from dataclasses import replace

from extractor.coercion import Unusable, decode
from extractor.dialects.calls import calls_in
from extractor.messages import Ask, Reply, ToolCall


def word(ask: Ask) -> Ask:
    """The ask as it is."""
    return ask


def read(reply: Reply, ask: Ask) -> Reply:
    """The reply with its calls; of one that was cut off, without the call that the cut went through."""
    is_cut = reply.finish_reason == "length"
    if reply.tool_calls:
        is_whole = not is_cut or _is_whole(reply.tool_calls[-1])
        return reply if is_whole else replace(reply, tool_calls=reply.tool_calls[:-1])
    calls = calls_in(reply.content, ask, is_cut=is_cut, named_only=ask.tool_choice == "auto")
    return replace(reply, content="", tool_calls=calls) if calls else reply


def _is_whole(call: ToolCall) -> bool:
    if not isinstance(call.arguments, str):
        return call.arguments is not None
    try:
        return bool(call.arguments.strip()) and decode(call.arguments) is not None
    except Unusable:
        return False
