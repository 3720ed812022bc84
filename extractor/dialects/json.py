"""JSON that is asked for in the prompt, for models without tool calls behind servers that hold no answer to a schema.

The schema is shown in words of the prompt, after the document, and the answer is one object with a list for each
function, as in :mod:`extractor.dialects.json_schema`. What comes back is read as leniently as one reading allows: in a
fence or bare, with chatter around it, as a list of records, as one record alone. All of several records are taken,
also where one alone was asked for: no call of a reply is dropped.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from extractor.dialects.calls import SHOWN, calls_in
from extractor.dialects.wording import content, has_refusals, joined, plain_turns, wanted, with_objects, with_schemas
from extractor.messages import NOTHING_TO_EXTRACT, Ask, Message, Reply
from extractor.parameters import Schema, branches, kind_of


def word(ask: Ask) -> Ask:
    """The ask in plain text turns, with the schema in the first turn of the user."""
    turns = plain_turns(tuple(map(with_objects, ask.messages)), _content, _instructions(ask))
    return replace(ask, messages=joined(turns), offers=(), tool_choice="auto")


def read(reply: Reply, ask: Ask) -> Reply:
    """The reply with the calls that its text holds; of one that was cut off, with those that are whole."""
    calls = calls_in(reply.content, ask, is_cut=reply.finish_reason == "length")
    return replace(reply, content="" if calls else reply.content, tool_calls=calls)


def _instructions(ask: Ask) -> str:
    """What is to be written stands last: small models copy that. How a record is given up is said with the results."""
    offers = wanted(ask)
    if not offers:
        return ""
    shape = {offer.name: [_shape(offer.parameters, offer.parameters, 0)] for offer in offers}
    number = "one object for each record" if ask.parallel else "at most one object in all"
    lines = [*with_schemas(offers)]
    if ask.tool_choice == "auto":
        lines.append("Where no record is wanted, answer in plain words, without JSON.")
    lines += [
        "Answer with one JSON object and nothing else. Copy every value as it is printed in the document above.",
        f"It has one list for each function, {number}, and an empty list where there is none:",
        json.dumps(shape, ensure_ascii=False),
    ]
    return "\n".join(lines)


def _shape(schema: Any, root: Schema, depth: int) -> Any:
    """A value without what is to be read, as an example: small models copy whatever shape they are shown."""
    parts = [branch for branch in branches(schema, root) if kind_of(branch) in ("array", "object")]
    if not parts or depth > _DEEPEST_SHAPE:
        return SHOWN
    if kind_of(parts[0]) == "array":
        return [_shape(parts[0].get("items"), root, depth + 1)]
    fields = parts[0].get("properties", {})
    return {name: _shape(field, root, depth + 1) for name, field in fields.items()}


_DEEPEST_SHAPE = 6


def _content(message: Message) -> str:
    text = content(message)
    return f"{text}\n{_GIVE_UP}" if has_refusals(message) else text


_GIVE_UP = (
    "A record that the document does not hold after all is given up by "
    f'{{"{NOTHING_TO_EXTRACT.name}": [{{"reason": "why, in one sentence"}}]}}.'
)
