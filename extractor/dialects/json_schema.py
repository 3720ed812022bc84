"""One JSON object in place of tool calls, for models whose server can hold an answer to a schema but not to a call.

The answer is an object with one list for each function: ``{"create_invoice": [{…}, {…}]}``, one entry for each
record. All lists empty is the word for "nothing to extract". A server that constrains an answer to a schema does not
show that schema to the model, so the fields are listed in words, after the document: small models read what stands
last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from extractor.dialects.calls import calls_in, functions
from extractor.dialects.wording import content, field_lines, plain_turns, purpose
from extractor.messages import Ask, Offer, Reply


def word(ask: Ask) -> Ask:
    """The ask in plain text turns, with the JSON schema that the answer is held to."""
    offers = functions(ask)
    messages = plain_turns(ask.messages, content, fields_in_words(offers) if offers else "")
    return replace(ask, messages=messages, offers=(), tool_choice="auto", schema=_answer_schema(offers))


def read(reply: Reply, ask: Ask) -> Reply:
    """The reply with the calls that its text holds; of one that was cut off, with those that are whole."""
    calls = calls_in(reply.content, ask, is_cut=reply.finish_reason == "length")
    return replace(reply, content="" if calls else reply.content, tool_calls=calls)


def fields_in_words(offers: tuple[Offer, ...]) -> str:
    """What is asked for, as a short list of fields."""
    lines = ["Answer with one JSON object. Copy every value as it is printed in the document above."]
    for offer in offers:
        head = f'"{offer.name}": a list, one object for each; empty if there is none.'
        lines.append(f"{head} {purpose(offer)} Fields:")
        lines += [f"- {line}" for line in field_lines(offer.parameters)]
    return "\n".join(lines)


def _is_nullable(field: Mapping[str, Any]) -> bool:
    kind = field.get("type")
    return "null" in kind if isinstance(kind, list) else any(b.get("type") == "null" for b in field.get("anyOf", ()))


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
