"""Another draw of the first question, from which only the values at fault are taken."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from extractor.attempts.patching import GONE, drawn_anew, with_values
from extractor.attempts.places import Path, Wanted, value_at, wanted
from extractor.attempts.steps import Plan, Step, reask
from extractor.coercion import Unusable, decode
from extractor.conversation import Conversation
from extractor.matching import Target, assign
from extractor.messages import Ask, Reply, ToolCall

TEMPERATURE = 0.8


def resample(state: Conversation) -> Step:
    """Put the first question once more, at another temperature and without the errors; values that were not at fault
    stay as they are."""
    records = () if state.is_cut_off else wanted(state)
    if not records:
        return reask(state)
    ask = Ask(state.messages[: state.opened], state.offers, state.rank, drawn_anew(state, TEMPERATURE))
    known = frozenset(offer.name for offer in state.offers)
    return Plan(ask, partial(_taken, records, _standing(state), known), "resample")


def _standing(state: Conversation) -> tuple[Target, ...]:
    return tuple(
        Target(one.call.name, one.position, one.arguments, False, index) for index, one in enumerate(state.standing)
    )


def _taken(records: tuple[Wanted, ...], standing: tuple[Target, ...], known: frozenset[str], reply: Reply) -> Reply:
    """The records with what the draw says of the values at fault; what it says of other records is left aside."""
    drawn = {position: _decoded(call) for position, call in enumerate(reply.tool_calls)}
    named = [(position, reply.tool_calls[position].name, values) for position, values in drawn.items()]
    open_ones = tuple(
        Target(
            one.offer.name, one.obligation.position, one.values, True, index,
            at_fault=tuple(place.dotted for place in one.places),
        )
        for index, one in enumerate(records)
    )  # fmt: skip
    calls = []
    for position, target in sorted(assign(named, (*open_ones, *standing), known).items()):
        values = drawn[position]
        if target.is_open and values is not None:
            one = records[target.index]
            calls.append(with_values(one, reply.tool_calls[position], _found(one, values)))
    whole = tuple(call for call in calls if call is not None)
    return replace(reply, content="", tool_calls=whole, finish_reason="stop")


def _decoded(call: ToolCall) -> dict[str, Any] | None:
    try:
        return decode(call.arguments)
    except Unusable:
        return None


def _found(one: Wanted, drawn: dict[str, Any]) -> dict[Path, Any]:
    """What the draw has at the places at fault. An element of a list is the same one only in a list of equal length."""
    found = {}
    for place in one.places:
        lists = [place.path[:n] for n, part in enumerate(place.path) if isinstance(part, int)]
        holder = value_at(drawn, place.path[:-1])
        if holder is None or any(_length(drawn, path) != _length(one.values, path) for path in lists):
            continue
        is_there = isinstance(place.path[-1], int) or place.path[-1] in holder
        if is_there or not place.is_required:
            found[place.path] = value_at(drawn, place.path) if is_there else GONE
    return found


def _length(values: Any, path: Path) -> int:
    found = value_at(values, path)
    return len(found) if isinstance(found, list) else -1
