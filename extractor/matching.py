"""Which record a later call is about.

After a rejection the model answers again, and nothing in its answer says which of its calls is the mended one, which
repeats a record that stands, and which is new. This module decides it by what the calls say. What all known records
of a document have in common (its supplier, its currency) tells none of them from another and is left out of account,
so that a second invoice of one supplier is not taken for a changed version of the first.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

AMENDMENT = 0.5
"""From this share of equal values on, a call in the place of a standing record is about that record, not a new one."""

MOVED = 0.65
"""The same for a call in another place; more is asked for, since a new record mostly stands where none was."""

RESENT = 0.8
"""From this share on, a call is about a standing record even while a rejected call, to which it cannot be compared,
waits for its answer."""

Arguments = Mapping[str, Any]
Path = tuple[str | int, ...]
Says = Counter[tuple[tuple[str, ...], str]]
"""Values by field; lines of a table count in any order, since a mended record may have gained one."""


@dataclass(frozen=True, slots=True)
class Target:
    """Something that a call may be about: an open obligation, or a record that stands."""

    function: str
    position: int
    arguments: Arguments | None
    is_open: bool
    index: int
    """Place in the list of obligations, or of standing records."""
    at_fault: tuple[str, ...] = ()
    """Paths that the rejection named: those are expected to change."""
    is_taken: bool = False
    """A standing record that another call of the same reply repeats word for word."""


def decoded(arguments: str | Arguments | None) -> Arguments | None:
    """The arguments of a call as an object (an empty one when there are none), or ``None`` where they are no object."""
    if arguments is None or (isinstance(arguments, str) and not arguments.strip()):
        return {}
    if not isinstance(arguments, str):
        return arguments
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    return {} if value is None else value if isinstance(value, dict) else None


def canonical(value: object) -> str:
    """One text for equal values, whatever the order of keys."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=_plain)


def _plain(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else str(value)


def said(arguments: str | Arguments | None) -> object:
    """What a call says, hashable, equal for calls that say the same; for arguments that are no object, their text."""
    read = decoded(arguments)
    return arguments if read is None else frozenset(leaves(read))


def leaves(value: object) -> Iterator[tuple[Path, str]]:
    """Every leaf with its path, as comparable text; ``null`` says nothing and is left out."""
    waiting: list[tuple[Path, object]] = [((), value)]  # not recursive: how deep it goes is for the model to say
    while waiting:
        path, item = waiting.pop()
        if isinstance(item, Mapping):
            waiting += [((*path, str(key)), inner) for key, inner in item.items()]
        elif isinstance(item, (list, tuple)):
            waiting += [((*path, number), inner) for number, inner in enumerate(item)]
        elif item is not None:
            yield path, " ".join(str(item).split())


def _says(arguments: Arguments | None) -> Says:
    found = leaves({} if arguments is None else arguments)
    return Counter((tuple(part for part in path if isinstance(part, str)), text) for path, text in found)


def likeness(one: Says, other: Says) -> float:
    """Share of values that are equal, from 0 to 1; measured on the larger of the two."""
    larger = max(one.total(), other.total())
    return (one & other).total() / larger if larger else 1.0


@dataclass(frozen=True, slots=True)
class _Pair:
    """One call beside one target that it may be about."""

    position: int
    order: int
    target: Target
    score: float
    is_comparable: bool
    """Whether the two fill the same fields, so that the values tell whether they are about one record."""
    is_more_due: bool
    """Whether records are due that were in no reply yet."""

    @property
    def is_enough(self) -> bool:
        if self.target.is_open:
            return self.score >= MOVED if self.is_more_due and self.is_comparable else self.score > 0
        return self.score >= (AMENDMENT if self.position == self.target.position else MOVED)

    @property
    def rank(self) -> tuple[float, bool, bool, int, int]:
        in_place = self.position == self.target.position
        return -self.score, not self.target.is_open, not in_place, self.position, self.order


def assign(
    calls: Sequence[tuple[int, str, Arguments | None]],
    targets: Iterable[Target],
    known: frozenset[str],
    *,
    is_more_due: bool = False,
) -> dict[int, Target]:
    """Give each call ``(position, function, arguments)`` the target that it is most like, at most one each.

    An obligation that is like no call is answered by a call that is like nothing, in order: the model may have
    written it anew. Not so when records stand already and the call fills the same fields with other values: that is
    another record, and the obligation stays open. ``known`` are the names of functions on offer: a call to a name
    that does not exist and a call to any function may be about the same record. ``is_more_due``: a reply was cut off,
    and records are to come that nobody knows of; a call then has to be like a rejected record to be about it.
    """
    said_by = [(target, _says(target.arguments)) for target in targets]
    if not said_by:
        return {}
    pairs = [pair for call in calls for pair in _pairs(call, said_by, known, is_more_due)]
    found: dict[int, _Pair] = {}
    taken = {order for order, (target, _) in enumerate(said_by) if target.is_taken}
    for pair in sorted(pairs, key=lambda one: one.rank):
        if pair.is_enough and pair.position not in found and pair.order not in taken:
            found[pair.position] = pair
            taken.add(pair.order)
    standing = known if is_more_due else {target.function for target, _ in said_by if not target.is_open}
    for pair in sorted(pairs, key=lambda one: (one.position, one.order)):
        if pair.target.is_open and pair.order not in taken and _yields(found.get(pair.position), pair, standing):
            found[pair.position] = pair
            taken.add(pair.order)
    return {position: pair.target for position, pair in found.items()}


def _yields(claim: _Pair | None, pair: _Pair, standing: AbstractSet[str]) -> bool:
    """Whether a call answers an obligation that is left over, though nothing that it says speaks for it."""
    if claim is None:
        return not pair.is_comparable or pair.target.function not in standing
    return not claim.target.is_open and claim.score < RESENT and not pair.is_comparable


def _pairs(
    call: tuple[int, str, Arguments | None],
    targets: Sequence[tuple[Target, Says]],
    known: frozenset[str],
    is_more_due: bool,
) -> Iterator[_Pair]:
    position, name, arguments = call
    fitting = [(order, *one) for order, one in enumerate(targets) if _fits(name, one[0], known)]
    others = [says for _, _, says in fitting if says]
    common: Says = reduce(and_, others) if len(others) > 1 else Counter()
    sent = _says(arguments) - common
    for order, target, says in fitting:
        told = says - common
        score = likeness(sent, told) if arguments is not None and target.arguments is not None else 0.0
        is_comparable = len(_fields(sent) & _fields(told, target.at_fault)) > 1
        yield _Pair(position, order, target, score, is_comparable, is_more_due)


def _fits(name: str, target: Target, known: frozenset[str]) -> bool:
    return target.function == name or (target.is_open and not {name, target.function} <= known)


def _fields(says: Says, but: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    """The fields that are filled, but for those at or under some paths."""
    faults = [tuple(part for part in path.split(".") if not part.isdigit()) for path in but]
    return {field for field, _ in says if not any(field[: len(fault)] == fault for fault in faults)}
