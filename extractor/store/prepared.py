"""Statements over our own tables that are compiled once, and handed to the driver as text.

SQLAlchemy looks a statement up in a cache, works out its parameters and wraps its result each time it is executed;
that costs more than SQLite takes for the row. What stands here are statements of ours alone, whose text never holds a
value: values are parameters, in the form that SQLAlchemy's own types give them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import StatementError

Bind = tuple[str, Callable[[Any], Any] | None]
"""The key of a value, and what the driver is given for it."""


class Prepared:
    """A statement that is executed for many rows, each a mapping with the same keys.

    :param statement: an insert, an update or a delete.
    :param names: the columns that it sets.
    """

    def __init__(self, statement: Any, names: Sequence[str] = ()) -> None:
        self._statement = statement
        self._names = list(names)
        self._compiled: dict[str, tuple[str, tuple[Bind, ...]]] = {}

    def execute(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Execute it for each of the rows."""
        text, binds = self._text(connection.dialect)
        connection.exec_driver_sql(text, _bound(text, binds, rows))

    def _text(self, dialect: Dialect) -> tuple[str, tuple[Bind, ...]]:
        known = self._compiled.get(dialect.name)
        if known is None:
            compiled = self._statement.compile(dialect=dialect, column_keys=self._names)
            binds = tuple((name, _processor(compiled.binds[name].type, dialect)) for name in compiled.positiontup)
            known = self._compiled[dialect.name] = (str(compiled), binds)
        return known


class PreparedInsert:
    """An insert of several rows into one of our tables that gives columns back."""

    def __init__(self, table: Table, names: Sequence[str], returned: Sequence[str]) -> None:
        self._columns = [table.c[name] for name in names]
        quoted = ", ".join(f'"{name}"' for name in names)  # "table" is a word of SQL
        self._head = f"INSERT INTO {table.name} ({quoted}) VALUES "  # noqa: S608 - names of ours
        self._row = f"({', '.join('?' * len(names))})"
        self._tail = f" RETURNING {', '.join(returned)}"
        self._binds: dict[str, tuple[Bind, ...]] = {}

    def execute(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> Sequence[Sequence[Any]]:
        """Insert the rows; what the database gives back for them, as it is kept."""
        dialect = connection.dialect
        binds = self._binds.get(dialect.name)
        if binds is None:
            binds = tuple((column.name, _processor(column.type, dialect)) for column in self._columns)
            self._binds[dialect.name] = binds
        text = f"{self._head}{', '.join([self._row] * len(rows))}{self._tail}"
        values = tuple(chain.from_iterable(_bound(text, binds, rows)))
        return connection.exec_driver_sql(text, values).fetchall()


def _bound(text: str, binds: tuple[Bind, ...], rows: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """The parameters of each row.

    :raises StatementError: when a value has no form in the database.
    """
    try:
        return [
            tuple([row[name] if process is None else process(row[name]) for name, process in binds]) for row in rows
        ]
    except Exception as error:
        raise StatementError(str(error), text, None, error) from error


def _processor(kind: Any, dialect: Dialect) -> Callable[[Any], Any] | None:
    process: Callable[[Any], Any] | None = kind.dialect_impl(dialect).bind_processor(dialect)
    return process


__all__ = ["Prepared", "PreparedInsert"]
