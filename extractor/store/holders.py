"""Who holds a record's unique keys already."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from extractor.store import graph


def paths(record: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """A record and its children, each with the path that leads to its fields (``""``, ``"line_items.0."``)."""
    yield prefix, record
    for relation in graph.children(record):
        for number, child in enumerate(graph.loaded(record, relation)):
            step = f"{relation.key}.{number}." if relation.uselist else f"{relation.key}."
            yield from paths(child, prefix + step)


def holder(session: Session, record: Any) -> tuple[str, Any] | None:
    """The first row outside the record that holds one of its unique keys, and the path of what it holds."""
    for path, instance in paths(record):
        mapped = type(instance)
        for key in graph.unique_keys(mapped):
            values = [getattr(instance, name) for name in key]
            if any(value is None for value in values):
                continue
            same = [getattr(mapped, name) == value for name, value in zip(key, values, strict=True)]
            row = session.execute(select(mapped).where(*same)).scalars().first()
            if row is not None:
                return path, row
    return None
