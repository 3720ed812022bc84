"""One JSON object in place of tool calls, for models whose server can hold an answer to a schema but not to a call.

The answer is an object with one list for each function: ``{"create_invoice": [{…}, {…}]}``, one entry for each
record. All lists empty is the word for "nothing to extract". A server that constrains an answer to a schema does not
show that schema to the model, so the fields are listed in words, after the document: small models read what stands
last.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from extractor.messages import NOTHING_TO_EXTRACT, Ask, Message, Offer, Reply, Role, ToolCall, Verdict


def word(ask: Ask) -> Ask:
    """The ask in plain text turns, with the JSON schema that the answer is held to."""
    offers = _functions(ask)
    messages = [Message(_role(message), _content(message), images=message.images) for message in ask.messages]
    first = next((n for n, message in enumerate(messages) if message.role == "user"), None)
    if offers and first is not None:
        content = f"{messages[first].content}\n\n{fields_in_words(offers)}"
        messages[first] = replace(messages[first], content=content)
    return replace(ask, messages=tuple(messages), offers=(), tool_choice="auto", schema=_answer_schema(offers))


def read(reply: Reply, ask: Ask) -> Reply:
    """The reply with the calls that its text holds; a reply that was cut off is left as it is."""
    if reply.finish_reason == "length":
        return reply
    content, calls = _calls(reply.content, ask)
    return replace(reply, content=content, tool_calls=calls)


def _calls(text: str, ask: Ask) -> tuple[str, tuple[ToolCall, ...]]:
    """The calls in an answer, and the text that is none.

    An answer that is no JSON object, or names none of the functions, is all text.
    """
    names = {offer.name for offer in _functions(ask)}
    try:
        value = json.loads(text, parse_float=str)
    except (ValueError, RecursionError):
        return text, ()
    if not isinstance(value, dict) or not names & value.keys():
        return text, ()
    turn = sum(1 for message in ask.messages if message.role == "assistant")
    found = [(name, item) for name in value if name in names for item in _items(value[name])]
    if not found:
        found = [(NOTHING_TO_EXTRACT.name, {"reason": "the answer lists no record"})]
    calls = tuple(
        ToolCall(f"call_{turn}_{number}", name, item if isinstance(item, dict) else json.dumps(item))
        for number, (name, item) in enumerate(found)
    )
    return "", calls


def fields_in_words(offers: tuple[Offer, ...]) -> str:
    """What is asked for, as a short list of fields."""
    lines = ["Answer with one JSON object. Copy every value as it is printed in the document above."]
    for offer in offers:
        what = offer.description.strip().splitlines()[0] if offer.description.strip() else "Record what is found."
        lines.append(f'"{offer.name}": a list, one object for each; empty if there is none. {what} Fields:')
        lines += [f"- {line}" for line in _field_lines(offer.parameters)]
    return "\n".join(lines)


def _field_lines(schema: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    for name, field in schema.get("properties", {}).items():
        inner = _inner(field)
        about = field.get("description", "")
        yield f"{indent}{name}" + (f": {about}" if about and about != "as printed" else "")
        if inner is not None:
            yield from _field_lines(inner, f"{indent}  ")


def _inner(field: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The object schema inside a field: its own, its items', or that of the one branch that is no null."""
    if "properties" in field:
        return field
    if isinstance(field.get("items"), Mapping):
        return _inner(field["items"])
    branches = [b for b in field.get("anyOf", ()) if b.get("type") != "null"]
    return _inner(branches[0]) if len(branches) == 1 else None


def _is_nullable(field: Mapping[str, Any]) -> bool:
    kind = field.get("type")
    return "null" in kind if isinstance(kind, list) else any(b.get("type") == "null" for b in field.get("anyOf", ()))


def _functions(ask: Ask) -> tuple[Offer, ...]:
    return tuple(offer for offer in ask.offers if offer.name != NOTHING_TO_EXTRACT.name)


def _answer_schema(offers: tuple[Offer, ...]) -> dict[str, Any]:
    lists = {offer.name: {"type": "array", "items": _all_required(offer.parameters)} for offer in offers}
    return {"type": "object", "properties": lists, "required": list(lists), "additionalProperties": False}


def _all_required(schema: Any) -> Any:
    """The schema with every field that may be null named in the answer: a small model that may leave it out does so.

    A field that is optional and may not be null stays optional: to demand it would be to ask for an invention.
    """
    if isinstance(schema, Mapping):
        copy = {key: _all_required(value) for key, value in schema.items() if key not in ("description", "default")}
        properties = schema.get("properties")
        if isinstance(properties, Mapping):
            copy["properties"] = {key: _all_required(value) for key, value in properties.items()}
            required = schema.get("required", ())
            copy["required"] = [key for key, value in properties.items() if key in required or _is_nullable(value)]
        return copy
    if isinstance(schema, list):
        return [_all_required(item) for item in schema]
    return schema


def _items(value: object) -> list[object]:
    return value if isinstance(value, list) else [value] if value is not None else []


def _role(message: Message) -> Role:
    return "user" if message.role == "tool" else message.role


def _content(message: Message) -> str:
    if message.role == "assistant" and message.tool_calls:
        answer: dict[str, list[object]] = {}
        for call in message.tool_calls:
            answer.setdefault(call.name, []).append(call.arguments)
        return json.dumps(answer, ensure_ascii=False)
    if message.role != "tool":
        return message.content
    lines = []
    for number, result in enumerate(message.tool_results, start=1):
        state = "accepted" if result.verdict in (Verdict.ACCEPTED, Verdict.DUPLICATE) else result.content
        lines.append(f"{result.name} {number}: {state}")
    lines.append("Answer again with the records that were not accepted, corrected from the document.")
    return "\n".join(lines)
