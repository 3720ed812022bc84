"""What the database refuses, as text with a path that a model can act on.

What can be known before the flush is looked up (types, parents of foreign keys: SQLite does not name the key that
failed); what the flush itself refuses is read from the driver's error, and mapped to a field where a column is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from sqlalchemy import CheckConstraint, select
from sqlalchemy import inspect as sa_inspect
from sqlalchemy.exc import StatementError
from sqlalchemy.orm import Session

from extractor.coercion import broken_text
from extractor.store import graph
from extractor.store.holders import paths

Problem = tuple[str, str]
"""Field path (empty where none is known) and message."""


def wrong_types(record: Any) -> list[Problem]:
    """Values of another type than their column takes: a table class does not validate what it is given."""
    found = []
    for path, instance in paths(record):
        for name, kind in _typed(graph.mapper_of(instance)):
            value = getattr(instance, name)
            if type(value) is kind and kind not in (int, str):
                continue
            if isinstance(value, int) and not -(2**63) <= value < 2**63 and kind is int:
                found.append((f"{path}{name}", "is a larger number than the column takes"))
            if isinstance(value, str) and not value.isascii() and list(broken_text(value)):
                found.append((f"{path}{name}", "holds characters that are no valid text"))
            if value is None or kind is None or isinstance(value, kind) or (kind is float and isinstance(value, int)):
                continue
            if hasattr(value, "compile") or hasattr(value, "__clause_element__"):
                continue  # an SQL expression: the database computes it
            found.append((f"{path}{name}", f"is {type(value).__name__}, the column takes {kind.__name__}"))
    return found


def missing_parents(session: Session, record: Any) -> list[Problem]:
    """Foreign keys whose parent row does not exist."""
    found = []
    for path, instance in paths(record):
        for name, parents in _referring(graph.mapper_of(instance)):
            value = getattr(instance, name)
            found += [
                (f"{path}{name}", f"no {parent.table.name} with this {parent.name} exists")
                for parent in (parents if value is not None else ())
                if session.execute(select(parent).where(parent == value)).first() is None
            ]
    return found


@lru_cache(maxsize=512)
def _typed(mapper: Any) -> tuple[tuple[str, type[Any] | None], ...]:
    """Of each column of a class: its attribute, and the Python type that it takes."""
    return tuple((attribute.key, _python_type(attribute.columns[0])) for attribute in mapper.column_attrs)


@lru_cache(maxsize=512)
def _referring(mapper: Any) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """Of each column of a class that refers to others: its attribute, and the columns that it refers to."""
    return tuple(
        (attribute.key, tuple(key.column for key in attribute.columns[0].foreign_keys))
        for attribute in mapper.column_attrs
        if len(_constraint(attribute.columns[0])) == 1
    )


def refusal(error: StatementError, record: Any) -> list[Problem]:
    """A refusal of the flush: every missing value at once, else the column or rule that the driver names."""
    missing = [
        (f"{path}{name}", "a value is required")
        for path, instance in paths(record)
        for name, column, value in _columns(instance)
        if value is None and not column.nullable and not column.primary_key and not column.foreign_keys
        and column.default is None and column.server_default is None
    ]  # fmt: skip
    if missing:
        return missing
    text = str(error.orig).splitlines()[0] if error.orig is not None else ""
    named = re.search(r"CHECK constraint failed: (.{1,120})", text)
    if named:
        rule = _rule(named[1], record)
        return [(_path_in(rule, record), f"the database wants {rule}")]
    named = re.search(r"UNIQUE constraint failed: (.{1,200})", text)
    if named:
        columns = ", ".join(part.split(".")[-1] for part in named[1].split(", "))
        return [(_path_in(named[1], record), f"two records have the same {columns}")]
    return [("", "the database does not take this record")]


def _rule(name: str, record: Any) -> str:
    """The text of a CHECK rule by its name; SQLite names it, or gives its text where it has no name."""
    for _, instance in paths(record):
        for rule in sa_inspect(type(instance)).local_table.constraints:
            if isinstance(rule, CheckConstraint) and rule.name == name:
                return str(rule.sqltext)
    return name


def _path_in(text: str, record: Any) -> str:
    """The path of the first column of the record that a text names."""
    words = set(re.findall(r"\w+", text))
    for path, instance in paths(record):
        for name, column, _ in _columns(instance):
            if column.name in words and not column.primary_key:
                return f"{path}{name}"
    return ""


def _columns(instance: Any) -> Iterator[tuple[str, Any, Any]]:
    mapper = sa_inspect(type(instance))
    for attribute in mapper.column_attrs:
        yield attribute.key, attribute.columns[0], getattr(instance, attribute.key)


def _constraint(column: Any) -> tuple[Any, ...]:
    """The columns of the first foreign-key constraint of a column; one that spans several is left to the flush."""
    for key in column.foreign_keys:
        return tuple(key.constraint.columns) if key.constraint is not None else (column,)
    return ()


def _python_type(column: Any) -> type[Any] | None:
    try:
        kind = column.type.python_type
    except NotImplementedError:
        return None
    return None if kind in (dict, list, object) or not isinstance(kind, type) else kind
