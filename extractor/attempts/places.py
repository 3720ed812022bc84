"""The values of a rejected record that have to be read again: where each stands, and what it is asked for by.

The paths that a rejection names are looked up in the record. Where one leads to something that the record does not
have, whatever would hold it is asked for as a whole. A rule over several fields ("total: 12 is not net 9 + tax 2")
names one of them, and another may be the wrong one: the fields beside it that the text names are at fault as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from extractor.conversation import Conversation, Obligation
from extractor.matching import Arguments
from extractor.messages import Offer
from extractor.parameters import Schema, branches, inner, kind_of

Path = tuple[str | int, ...]

LONGEST_NAME = 64
"""Characters that providers allow a property's name to have."""

_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_COMMON = (
    "amount currency date day description document field identifier list month name number object percentage quantity "
    "record text time title type unit value year"
)
"""Field names that messages use as plain words: they name a field only where its value follows."""


@dataclass(frozen=True, slots=True)
class Place:
    """One value at fault.

    ``path`` is where it stands in the record, ``name`` what it is asked for by (its own name at the top, a flat one
    deeper down: a nested object is more than a small model can be asked to fill), ``is_alone`` whether its own value
    was refused rather than a rule over several.
    """

    path: Path
    name: str
    schema: Schema
    is_required: bool
    is_alone: bool
    choices: tuple[str, ...] = ()
    """The candidates, where the choice is closed."""
    joint: Mapping[str, Mapping[Path, Any]] = field(default_factory=dict)
    """Where one answer decides several values: what each choice puts where."""

    @property
    def dotted(self) -> str:
        """The path as error texts write it."""
        return ".".join(map(str, self.path))

    @property
    def covered(self) -> frozenset[Path]:
        """Every path that the answer decides."""
        return frozenset(path for values in self.joint.values() for path in values) or frozenset((self.path,))


@dataclass(frozen=True, slots=True)
class Wanted:
    """A rejected record: what it is merged into, and its values at fault."""

    obligation: Obligation
    offer: Offer
    values: Arguments
    places: tuple[Place, ...]


def wanted(state: Conversation) -> tuple[Wanted, ...]:
    """Every open record with its values at fault, in order; none at all when one of them cannot be mended in part."""
    offers = {offer.name: offer for offer in state.offers}
    found = [_wanted(one, offers.get(one.function)) for one in state.obligations]
    known = tuple(one for one in found if one is not None)
    return known if len(known) == len(found) else ()


def _wanted(one: Obligation, offer: Offer | None) -> Wanted | None:
    if offer is None or one.values is None:
        return None
    root = offer.parameters
    named = [_found(path, root, one.values) for path in one.paths]
    if not named or () in named:
        return None
    beside = [[*_beside(path, found, one, root)] for path, found in zip(one.paths, named, strict=True)]
    grouped = {path for path, others in zip(named, beside, strict=True) if others}
    whole = _outermost([*named, *(path for others in beside for path in others)])
    names: dict[str, Path] = {}
    places = []
    for path in sorted(whole, key=lambda path: _order(path, root)):
        name = _name(path, root, names)
        names[name] = path
        is_alone = path in named and path not in grouped
        schema = _schema_at(path, root)
        places.append(Place(path, name, schema, _has_to_be_answered(path, schema, root), is_alone))
    return Wanted(one, offer, one.values, tuple(places))


# -- paths -------------------------------------------------------------------------------------------------------------


def value_at(values: Any, path: Sequence[str | int]) -> Any:
    """What stands at a path; ``None`` where there is nothing."""
    for key in path:
        if isinstance(values, Mapping):
            values = values.get(str(key))
        elif isinstance(values, (list, tuple)) and isinstance(key, int) and key < len(values):
            values = values[key]
        else:
            return None
    return values


def _found(path: str, root: Schema, values: Any) -> Path:
    """The path as far as both schema and record have it; the last part may be missing in the record."""
    found: list[str | int] = []
    node: Any = root
    for part in path.split("."):
        key: str | int = int(part) if isinstance(values, (list, tuple)) and part.isdecimal() else part
        node = inner(node, key, root)
        is_there = isinstance(values, Mapping) if isinstance(key, str) else key < len(values)
        if node is None or not is_there:
            break
        found.append(key)
        values = values.get(key) if isinstance(values, Mapping) else values[key]
    return tuple(found)


def _outermost(paths: Sequence[Path]) -> list[Path]:
    """Each path once, and none under another."""
    unique = list(dict.fromkeys(paths))
    return [path for path in unique if not any(path[: len(one)] == one for one in unique if one != path)]


def _schema_at(path: Path, root: Schema) -> Schema:
    node: Any = root
    for key in path:
        node = inner(node, key, root)
    return node if isinstance(node, Mapping) else {}


def _order(path: Path, root: Schema) -> tuple[int, Path]:
    """As the fields are declared, elements of a list by their number."""
    declared = list(root.get("properties", {}))
    deeper = tuple(f"{part:09d}" if isinstance(part, int) else part for part in path[1:])
    return declared.index(path[0]) if path[0] in declared else len(declared), deeper


def _name(path: Path, root: Schema, taken: Mapping[str, Path]) -> str:
    if len(path) == 1:
        return str(path[0])
    name = re.sub(r"[^A-Za-z0-9_-]", "_", "_".join(map(str, path)))
    is_free = name not in taken and name not in root.get("properties", {}) and len(name) <= LONGEST_NAME
    return name if is_free else f"value_{len(taken) + 1}"


def _has_to_be_answered(path: Path, schema: Schema, root: Schema) -> bool:
    """A field that may be left out and may not be null is the model's to answer: to demand it would be to ask
    for an invention."""
    if isinstance(path[-1], int) or is_nullable(schema, root):
        return True
    holders = branches(_schema_at(path[:-1], root) if path[:-1] else root, root)
    return any(path[-1] in one.get("required", ()) for one in holders)


def is_nullable(schema: Schema, root: Schema) -> bool:
    """Whether a field may be null."""
    return any(kind_of(branch) == "null" for branch in branches(schema, root))


# -- fields that a text names ------------------------------------------------------------------------------------------


def _beside(path: str, found: Path, one: Obligation, root: Schema) -> Iterator[Path]:
    """The fields beside a place that the text of its rejection names; a list that was refused is itself the likeliest
    to be wrong, whatever it is compared with."""
    holder = found[:-1]
    if isinstance(value_at(one.values, found), (list, Mapping)):
        return
    holders = branches(_schema_at(holder, root) if holder else root, root)
    names = {str(name) for branch in holders for name in branch.get("properties", {})}
    for name in names_in(told(one, path), names):
        if name != found[-1]:
            yield (*holder, name)


def names_in(text: str, names: Iterable[str]) -> list[str]:
    """Which of these names a text names; longer ones first, so that "total tax" is not also "tax"."""
    found = []
    for name in sorted(set(names), key=lambda name: (-len(name), name)):
        rest = _naming(name).sub("", text)
        if rest != text:
            found.append(name)
        text = rest
    return found


def told(one: Obligation, path: str) -> str:
    """What the rejection says of a path: not what it says of others, and not what it quotes."""
    said, is_mine = [], False
    for part in one.error.split("; "):
        head, _, message = part.partition(": ")
        is_head = head in one.paths
        is_mine = head == path if is_head else is_mine
        if is_mine:
            said.append(message if is_head else part)
    return _QUOTED.sub("''", "; ".join(said))


def _naming(name: str) -> re.Pattern[str]:
    forms = {re.escape(name), re.escape(name.replace("_", " "))}
    value = r"\W{1,2}-?\d" if name in _COMMON.split() else r"(?!\w)"
    return re.compile(rf"(?<!\w)(?:{'|'.join(sorted(forms))}){value}")


# -- what it saves -----------------------------------------------------------------------------------------------------


def share(one: Wanted) -> float:
    """How much of the whole record an answer with only the values at fault is, in characters."""
    part = {place.name: value_at(one.values, place.path) for place in one.places}
    return len(compact(part)) / max(1, len(compact(one.values)))


def compact(value: object) -> str:
    """JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
