"""The leaves of a record: each value as the model sent it, with what validation made of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import Any

MOST = 5000
"""Leaves of one record that are looked for."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One value of a record.

    :ivar path: such as ``line_items.0.amount``.
    :ivar sent: as the model sent it.
    :ivar value: as it was validated: a :class:`~decimal.Decimal`, a :class:`~datetime.date`, a text.
    """

    path: str
    sent: Any
    value: Any

    @property
    def parent(self) -> str:
        """The path of the object that it belongs to."""
        return self.path.rpartition(".")[0]

    @property
    def name(self) -> str:
        """Its own name: the last part of the path that is no number."""
        return next((part for part in reversed(self.path.split(".")) if not part.isdigit()), self.path)


def leaves(sent: Any, value: Any) -> Iterator[Leaf]:
    """Every value of a record that can be printed: no nulls, no truth values, no choices out of a closed list, nothing
    empty.

    :param sent: the arguments as JSON has them.
    :param value: the same, validated; what has no counterpart in it stands for itself.
    """
    return islice(_walk("", sent, value), MOST)


def _walk(path: str, sent: Any, value: Any) -> Iterator[Leaf]:
    if isinstance(sent, Mapping):
        for key, inner in sent.items():
            yield from _walk(f"{path}.{key}" if path else str(key), inner, _part(value, key))
    elif isinstance(sent, (list, tuple)):
        for number, inner in enumerate(sent):
            yield from _walk(f"{path}.{number}" if path else str(number), inner, _item(value, number))
    elif not (sent is None or isinstance(sent, bool) or isinstance(value, (bool, Enum)) or not str(sent).strip()):
        yield Leaf(path, sent, sent if value is None else value)


def _part(value: Any, key: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(key)
    found = getattr(value, key, None) if isinstance(key, str) and key.isidentifier() else None
    if found is not None and not callable(found):
        return found
    fields = getattr(type(value), "model_fields", {})
    named = next((name for name, one in fields.items() if key in (one.alias, one.validation_alias)), None)
    return getattr(value, named, None) if named is not None else None


def _item(value: Any, number: int) -> Any:
    return value[number] if isinstance(value, Sequence) and not isinstance(value, str) and number < len(value) else None
