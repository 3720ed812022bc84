"""Which record a later call is about.

After a rejection the model answers again, and nothing in its answer says which of its calls is the mended one, which
repeats a record that stands, and which is new. This module decides it by what the calls say.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

AMENDMENT = 0.5
"""From this share of equal values on, a call is about the record that stands, and not a new one."""

UNKNOWN = 0.7
"""Likeness assumed to a rejected call whose arguments could not be read: a record that stands must be closer than
that to claim the answer."""

Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Target:
    """Something that a call may be about: an open obligation, or a record that stands."""

    function: str
    position: int
    arguments: Arguments | None
    is_open: bool
    index: int
    """Place in the list of obligations, or of standing records."""


def decoded(arguments: str | Arguments | None) -> Arguments | None:
    """The arguments of a call as an object, or ``None`` where they are no JSON object."""
    if not isinstance(arguments, str):
        return arguments
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def canonical(value: object) -> str:
    """One text for equal values, whatever the order of keys."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)


def leaves(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Every leaf with its path, as comparable text; ``null`` says nothing and is left out."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from leaves(item, f"{path}.{key}")
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            yield from leaves(item, f"{path}.{number}")
    elif value is not None:
        yield path, " ".join(str(value).split())


def likeness(one: Arguments, other: Arguments) -> float:
    """Share of leaves that are equal, from 0 to 1; measured on the larger of the two."""
    left, right = dict(leaves(one)), dict(leaves(other))
    if not left or not right:
        return 1.0 if left == right else 0.0
    equal = sum(1 for path, text in left.items() if right.get(path) == text)
    return equal / max(len(left), len(right))


def assign(
    calls: Sequence[tuple[int, str, Arguments | None]], targets: Iterable[Target], known: frozenset[str]
) -> dict[int, Target]:
    """Give each call ``(position, function, arguments)`` the target that it is most like, at most one each.

    A call that is like nothing takes an obligation that is left over, in order: the model may have written its answer
    anew. ``known`` are the names of functions on offer: a rejected call to a name that does not exist may be answered
    by any function.
    """
    targets = tuple(targets)
    pairs = sorted(
        (
            (_score(arguments, target), target.is_open, position == target.position, -position, -order)
            for position, name, arguments in calls
            for order, target in enumerate(targets)
            if target.function == name or (target.is_open and target.function not in known)
        ),
        reverse=True,
    )
    found: dict[int, Target] = {}
    taken: set[int] = set()
    for score, is_open, _, negative_position, negative_order in pairs:
        position, order = -negative_position, -negative_order
        enough = score > 0 if is_open else score >= AMENDMENT
        if enough and position not in found and order not in taken:
            found[position] = targets[order]
            taken.add(order)
    _fill(found, taken, calls, targets, known)
    return found


def _score(arguments: Arguments | None, target: Target) -> float:
    if target.arguments is None:
        return UNKNOWN
    return likeness(arguments, target.arguments) if arguments is not None else 0.0


def _fill(
    found: dict[int, Target],
    taken: set[int],
    calls: Sequence[tuple[int, str, Arguments | None]],
    targets: tuple[Target, ...],
    known: frozenset[str],
) -> None:
    for position, name, _ in calls:
        if position in found:
            continue
        for order, target in enumerate(targets):
            fits = target.function == name or target.function not in known
            if target.is_open and order not in taken and fits:
                found[position] = target
                taken.add(order)
                break
