"""Asking for some values of a record, and putting the answer into it.

An answer is applied whole or not at all, record by record: every name in it has to be one that was asked for, and
every place it goes to has to be there. Where it does not fit, nothing of the record is changed. A model that sends the
whole record again, against what it was asked, is taken at its word: the record is checked anew as a whole.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from extractor.attempts.places import Path, Place, Wanted, compact, value_at
from extractor.attempts.steps import Plan
from extractor.coercion import Unusable, decode
from extractor.conversation import Conversation
from extractor.messages import Ask, Message, Offer, Reply, Sampling, ToolCall
from extractor.parameters import Schema

EXCERPT = 80
"""Characters that are shown of a value that stands."""

MOST_SHOWN = 24
"""Values that are shown of a record, besides those at fault."""

GONE: Final = object()
"""In place of a value: the field is left out, as it may be."""


def plan(state: Conversation, records: Sequence[Wanted], kind: str, question: str) -> Plan:
    """Ask for the values at fault: the opening, with the question behind the document, and the smaller functions."""
    offers = offers_for(records)
    choice = offers[0].name if len(offers) == 1 else "required"
    ask = Ask(
        _with_question(state.messages[: state.opened], question), offers, state.rank, drawn_anew(state),
        tool_choice=choice, parallel=len(records) > 1,
    )  # fmt: skip
    return Plan(ask, partial(merged, tuple(records)), kind, question)


def _with_question(opening: Sequence[Message], question: str) -> tuple[Message, ...]:
    """The question stands last, in the turn of the document: many models know no two turns of one side in a row."""
    last = len(opening) - 1
    if last >= 0 and opening[last].role == "user":
        return (*opening[:last], replace(opening[last], content=f"{opening[last].content}\n\n{question}"))
    return (*opening, Message("user", question))


# -- what is asked for -------------------------------------------------------------------------------------------------


def offers_for(records: Sequence[Wanted]) -> tuple[Offer, ...]:
    """Each function under its own name, with no more than the values at fault.

    Where several records of one function are open, a value that only some of them need may be left out.
    """
    by_name: dict[str, list[Wanted]] = {}
    for one in records:
        by_name.setdefault(one.offer.name, []).append(one)
    return tuple(_smaller(group) for group in by_name.values())


def _smaller(group: Sequence[Wanted]) -> Offer:
    offer = group[0].offer
    places = [place for one in group for place in one.places]
    needed = Counter(place.name for place in places if place.is_required)
    properties: dict[str, Any] = {}
    for place in places:
        properties.setdefault(place.name, _described(place))
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if needed[name] == len(group)],
        "additionalProperties": False,
    }
    if "$defs" in offer.parameters:
        parameters["$defs"] = offer.parameters["$defs"]
    return Offer(offer.name, "Values of a record that have to be read again.", parameters, offer.strict)


def _described(place: Place) -> Schema:
    """The field's own schema; one from deeper down says where it stands."""
    if len(place.path) == 1:
        return place.schema
    about = place.schema.get("description")
    return {**place.schema, "description": f"{place.dotted}: {about}" if about else place.dotted}


def what_stands(one: Wanted) -> str:
    """The values of a record that are not at fault, short: those at the top, and those beside each one at fault."""
    faults = {path for place in one.places for path in place.covered}
    known = _plain_values(one.values, (), faults)
    for holder in dict.fromkeys(place.path[:-1] for place in one.places if len(place.path) > 1):
        beside = _plain_values(value_at(one.values, holder), holder, faults)
        if beside:
            known[".".join(map(str, holder))] = beside
    return compact(dict(list(known.items())[:MOST_SHOWN]))


def _plain_values(values: Any, holder: Path, faults: set[Path]) -> dict[str, Any]:
    if not isinstance(values, Mapping):
        return {}
    return {
        str(key): f"{value[: EXCERPT - 1]}…" if isinstance(value, str) and len(value) > EXCERPT else value
        for key, value in values.items()
        if (*holder, key) not in faults and isinstance(value, (str, int, float, bool))
    }


# -- what is answered --------------------------------------------------------------------------------------------------


def merged(records: tuple[Wanted, ...], reply: Reply) -> Reply:
    """The reply with full calls in place of partial ones; without a call where nothing of it fits.

    Calls of one function answer its records in order, so there have to be as many as records.
    """
    sent, asked = Counter(call.name for call in reply.tool_calls), Counter(one.offer.name for one in records)
    left = list(records)
    calls = []
    for call in reply.tool_calls:
        one = next((one for one in left if one.offer.name == call.name), None)
        if one is None or sent[call.name] != asked[call.name]:
            continue
        left.remove(one)
        whole = applied(one, call)
        if whole is not None:
            calls.append(whole)
    return replace(reply, content="", tool_calls=tuple(calls), finish_reason="stop")


def applied(one: Wanted, call: ToolCall) -> ToolCall | None:
    """The full call, or ``None`` where the answer does not fit the record."""
    try:
        sent = decode(call.arguments)
    except Unusable:
        return None
    asked = {place.name for place in one.places}
    foreign = [key for key in sent if key not in asked]
    if any(key not in one.values or compact(one.values[key]) != compact(sent[key]) for key in foreign):
        is_whole = sent.keys() >= {*one.values, *one.offer.parameters.get("required", ())}
        return call if is_whole else None  # the model has sent the whole record again, and may
    needed = {*one.offer.parameters.get("required", ())}
    # A model that repeats the record without a value that nobody needs has taken it back.
    taken_back = {place.name for place in one.places if place.path[:1] == place.path and place.path[0] not in needed}
    left_out = {place.name for place in one.places if place.is_required and place.name not in sent}
    if left_out - (taken_back if foreign and sent.keys() >= needed else set()):
        return None
    found: dict[Path, Any] = {}
    for place in one.places:
        answer = sent.get(place.name, GONE)
        if place.joint and str(answer) not in place.joint:
            return None
        found |= place.joint[str(answer)] if place.joint else {place.path: answer}
    return with_values(one, call, found)


def with_values(one: Wanted, call: ToolCall, found: Mapping[Path, Any]) -> ToolCall | None:
    """The record with the values found, under the call's id; ``None`` where it has no place for one of them."""
    whole: Any = one.values
    if not found or not all(_is_there(whole, path) for path in found):
        return None
    for path, value in found.items():
        whole = _left_out(whole, path) if value is GONE else _put(whole, path, value)
    return replace(call, name=one.offer.name, arguments=json.dumps(whole, ensure_ascii=False, default=str))


def _is_there(values: Any, path: Path) -> bool:
    """Whether the record has a place for this: an object for a name, an element for a number."""
    holder = value_at(values, path[:-1])
    if isinstance(path[-1], int):
        return isinstance(holder, (list, tuple)) and path[-1] < len(holder)
    return isinstance(holder, Mapping)


def _put(values: Any, path: Path, value: Any) -> Any:
    """A copy of the values with one of them exchanged."""
    if not path:
        return value
    key, rest = path[0], path[1:]
    if isinstance(values, Mapping):
        return {**values, key: _put(values.get(str(key)), rest, value)}
    copy = list(values)
    if isinstance(key, int):
        copy[key] = _put(copy[key], rest, value)
    return copy


def _left_out(values: Any, path: Path) -> Any:
    holder = value_at(values, path[:-1])
    return _put(values, path[:-1], {key: value for key, value in holder.items() if key != path[-1]})


def drawn_anew(state: Conversation, temperature: float | None = None) -> Sampling:
    """A draw with a number of its own: a question beside the conversation may be put twice in the same words, and a
    kept answer to the first is none to the second."""
    sampling = state.next_sampling
    warmth = sampling.temperature if temperature is None else temperature
    return replace(sampling, temperature=warmth, sample=len(state.replies))
