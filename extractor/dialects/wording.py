"""What the dialects without tool calls have in common when they word an ask: plain turns, fields, results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from extractor.coercion import Unusable, decode
from extractor.dialects.calls import functions
from extractor.messages import NOTHING_TO_EXTRACT, Ask, Message, Offer, ToolCall, Verdict

# -- turns -------------------------------------------------------------------------------------------------------------


def plain_turns(
    messages: tuple[Message, ...], worded: Callable[[Message], str], instructions: str
) -> tuple[Message, ...]:
    """The turns as text, each with its pictures; results become the user's.

    :param worded: the text of one turn.
    :param instructions: put after the first turn of the user: the document stands there, and what is asked for stands
        last.
    """
    turns = [Message("user" if one.role == "tool" else one.role, worded(one), images=one.images) for one in messages]
    first = next((n for n, turn in enumerate(turns) if turn.role == "user"), None)
    if instructions and first is not None:
        turns[first] = replace(turns[first], content=f"{turns[first].content}\n\n{instructions}")
    return tuple(turns)


def joined(turns: tuple[Message, ...]) -> tuple[Message, ...]:
    """Turns of one role that follow each other as one: some chat templates refuse two in a row."""
    found: list[Message] = []
    for turn in turns:
        if found and turn.role == found[-1].role != "system":
            last = found[-1]
            found[-1] = replace(last, content=f"{last.content}\n\n{turn.content}", images=last.images + turn.images)
        else:
            found.append(turn)
    return tuple(found)


def content(message: Message) -> str:
    """A turn as text: calls as one JSON object with a list for each function, results as a list with numbers."""
    if message.role == "assistant" and message.tool_calls:
        answer: dict[str, list[object]] = {}
        for call in message.tool_calls:
            answer.setdefault(call.name, []).append(call.arguments)
        return json.dumps(answer, ensure_ascii=False, default=str)
    return results_in_words(message) if message.role == "tool" else message.content


def results_in_words(message: Message) -> str:
    """What became of each call, and what is to be done."""
    lines = []
    for number, result in enumerate(message.tool_results, start=1):
        state = "accepted" if result.verdict in (Verdict.ACCEPTED, Verdict.DUPLICATE) else result.content
        lines.append(f"{result.name} {number}: {state}")
    lines.append("Answer again with the records that were not accepted, corrected from the document.")
    return "\n".join(lines)


def has_refusals(message: Message) -> bool:
    """Whether a turn tells of a call that has to be mended: the place to say how a record is given up."""
    return any(result.is_error for result in message.tool_results)


def with_objects(message: Message) -> Message:
    """The turn with the arguments of its calls as objects, where they can be read: a conversation may have been begun
    by a model whose provider sends them as text."""
    return replace(message, tool_calls=tuple(replace(call, arguments=_read(call)) for call in message.tool_calls))


def _read(call: ToolCall) -> str | Mapping[str, Any] | None:
    try:
        return decode(call.arguments)
    except Unusable:
        return call.arguments


# -- what is asked for -------------------------------------------------------------------------------------------------


def wanted(ask: Ask) -> tuple[Offer, ...]:
    """The functions that the answer may be about: the one that has to be called, or all."""
    offers = functions(ask)
    chosen = tuple(offer for offer in offers if offer.name == ask.tool_choice)
    return chosen or offers


def may_pass(ask: Ask) -> bool:
    """Whether ``nothing_to_extract`` is on offer."""
    return any(offer.name == NOTHING_TO_EXTRACT.name for offer in ask.offers)


def purpose(offer: Offer) -> str:
    """What a function is for, in one line."""
    lines = offer.description.strip().splitlines()
    return lines[0] if lines else "Record what is found."


def with_schemas(offers: tuple[Offer, ...]) -> Iterator[str]:
    """Each function with its purpose and the JSON schema of its arguments."""
    for offer in offers:
        yield f"{offer.name}: {purpose(offer)} JSON schema of its arguments:"
        yield json.dumps(offer.parameters, ensure_ascii=False, default=str)


def field_lines(schema: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """The fields in words, one a line, those inside a field under it."""
    for name, field in schema.get("properties", {}).items():
        inside = inner_object(field)
        about = field.get("description", "")
        yield f"{indent}{name}" + (f": {about}" if about and about != "as printed" else "")
        if inside is not None:
            yield from field_lines(inside, f"{indent}  ")


def inner_object(field: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The object schema inside a field: its own, its items', or that of the one branch that is no null."""
    if "properties" in field:
        return field
    if isinstance(field.get("items"), Mapping):
        return inner_object(field["items"])
    branches = [b for b in field.get("anyOf", ()) if b.get("type") != "null"]
    return inner_object(branches[0]) if len(branches) == 1 else None
