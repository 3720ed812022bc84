"""Exact money: Decimals that come out of SQLite as they went in.

SQLite has no decimal type, and SQLAlchemy's ``Numeric`` goes through a float there: ``12345678901234567.8912`` comes
back as ``12345678901234568.0000`` with no warning. :func:`make_exact` gives each such column a text form for SQLite
alone; other databases keep their ``NUMERIC``.

Text does not compare or add up as numbers do. Equality works, because equal amounts have one text. For an order, a
range or a sum in SQL on SQLite, cast the column (``cast(Invoice.total, Float)``), or do it in Python, which is exact.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from sqlalchemy import CheckConstraint, Column, Float, MetaData, Numeric, String, Table
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import Connection, Dialect
from sqlalchemy.exc import CompileError
from sqlalchemy.sql.elements import ClauseElement
from sqlalchemy.types import TypeDecorator

from extractor.errors import StoreError

DIGITS = 1000
"""The most digits that are kept on either side of the point: enough for any amount, and it bounds a hostile one."""


def plain(value: Decimal | float, scale: int | None = None) -> str:
    """The one fixed-point text of an amount: ``1E+3`` is ``1000``, ``-0`` is ``0``.

    :param scale: digits after the point, rounded half away from zero as PostgreSQL does it; without one the digits
        stay as they are, less the zeros at their end. A float counts as the decimal that Python prints for it.
    :raises ValueError: for NaN, an infinity, and amounts of more than :data:`DIGITS` digits.
    """
    number = value if isinstance(value, Decimal) else Decimal(repr(value))
    if not number.is_finite():
        raise ValueError("an amount of money is a finite number")
    exponent = int(number.as_tuple().exponent)
    if number.adjusted() > DIGITS or exponent < -DIGITS:
        raise ValueError(f"an amount of money has at most {DIGITS} digits on either side of the point")
    if scale is not None and exponent != -scale:
        number = number.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, Context(prec=2 * DIGITS + 2))
    text = format(number, "f") if number else format(abs(number), "f")
    if scale is None and "." in text:
        text = text.rstrip("0").rstrip(".")
    return text


class ExactDecimal(TypeDecorator[Decimal]):
    """A Decimal kept as plain fixed-point text.

    :param scale: digits after the point; ``None`` keeps as many as a value has.
    """

    impl = String
    cache_ok = True

    def __init__(self, scale: int | None = None) -> None:
        super().__init__()
        self.scale = scale

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:  # noqa: ARG002 - SQLAlchemy's signature
        """The text that is stored."""
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (Decimal, int, float)):
            raise TypeError(f"an amount of money is a Decimal, not {type(value).__name__}")
        return plain(value, self.scale)

    def process_result_value(self, value: Any, dialect: Dialect) -> Decimal | None:  # noqa: ARG002
        """The Decimal that is read; a number too, where SQL did arithmetic or an older column holds one."""
        return None if value is None else Decimal(value if isinstance(value, str) else repr(value))


def make_exact(tables: MetaData | Iterable[Table]) -> None:
    """Give every Decimal ``Numeric`` column of these tables an exact form for SQLite; call it before their first use.

    An engine that has written to a table before keeps speaking to it as it did; others learn the exact form, also for
    statements that were built already. Calling it again changes nothing. ``Float`` columns, columns that have a form
    for SQLite already, and other databases are left as they are.
    """
    for table in _tables(tables):
        for column in table.columns:
            kind = _decimal_type(column)
            if kind is None or "sqlite" in kind._variant_mapping:  # noqa: SLF001 - no public reader
                continue
            # In place, not with a new type on the column: statements that were built before hold this one, and would
            # look for a float and find nothing.
            exact = kind.with_variant(ExactDecimal(kind.scale), "sqlite")
            kind._variant_mapping = exact._variant_mapping  # noqa: SLF001 - no public writer


def is_decimal(column: Column[Any]) -> bool:
    """Whether a column keeps Decimals (``Float(asdecimal=True)`` asks for a float, and gets one)."""
    return _decimal_type(column) is not None


def scale_of(column: Column[Any]) -> int | None:
    """How many digits after the point a Decimal column keeps; ``None`` for any number of them."""
    kind = _decimal_type(column)
    return None if kind is None else kind.scale


def check_constraints(tables: MetaData | Iterable[Table], dialect_name: str) -> None:
    """Refuse rules of the database that would count on exact money as numbers where it is text.

    :raises StoreError: naming each table, rule and column, and what to do instead. ``IS NULL`` and ``IS NOT NULL`` may
        stay, and on other databases than SQLite everything may.
    """
    if dialect_name != "sqlite":
        return
    found = [line for table in _tables(tables) for line in _rules_on_money(table)]
    if found:
        raise StoreError(
            "; ".join(found),
            hint="SQLite keeps exact money as text, where such a rule refuses true sums: take it off the table and "
            "check it in Python, in the extraction function",
        )


def check_storage(connection: Connection, tables: MetaData | Iterable[Table]) -> None:
    """Refuse tables in SQLite, made by someone else, whose money columns turn exact text into floats again.

    :raises StoreError: naming each table and column; a column whose declared type holds ``CHAR`` or ``TEXT`` is good.
    """
    if connection.dialect.name != "sqlite":
        return
    found = []
    for table in _tables(tables):
        quoted = table.name.replace('"', '""')
        declared = {row[1]: row[2] for row in connection.exec_driver_sql(f'PRAGMA table_info("{quoted}")')}
        for column in filter(is_decimal, table.columns):
            kind = str(declared.get(column.name, "TEXT")).upper()
            if "INT" in kind or not re.search("CHAR|CLOB|TEXT|BLOB", kind):
                found.append(f"column {column.name!r} of table {table.name!r} is {kind or 'of no type'}")
    if found:
        raise StoreError(
            "; ".join(found),
            hint="SQLite turns long amounts into floats there and loses digits: make the column TEXT in the database",
        )


def _decimal_type(column: Column[Any]) -> Numeric[Any] | None:
    """The ``Numeric`` of a Decimal column, also where a type of the user's is wrapped around it."""
    kind: Any = column.type
    while isinstance(kind, TypeDecorator):
        kind = kind.impl_instance
    return kind if isinstance(kind, Numeric) and not isinstance(kind, Float) and kind.asdecimal else None


def _tables(tables: MetaData | Iterable[Table]) -> Iterator[Table]:
    yield from tables.tables.values() if isinstance(tables, MetaData) else tables


def _rules_on_money(table: Table) -> Iterator[str]:
    """A line for each CHECK or computed column of a table that does more with a money column than look for NULL."""
    money = [column.name for column in table.columns if is_decimal(column)]
    checks = [rule for rule in table.constraints if isinstance(rule, CheckConstraint)]
    rules = [(f"CHECK {_name(rule)}", _sql(rule.sqltext)) for rule in checks]
    rules += [
        (f"computed column {column.name!r}", _sql(column.computed.sqltext))
        for column in table.columns
        if column.computed is not None
    ]
    for label, sql in sorted(rules):
        used = [name for name in money if _counts_on(name, sql)]
        if used:
            yield f"{label} of table {table.name!r} counts with {', '.join(map(repr, used))}"


def _name(rule: CheckConstraint) -> str:
    return repr(str(rule.name)) if rule.name else f"({_sql(rule.sqltext)[:120]})"


def _sql(clause: ClauseElement) -> str:
    try:
        return str(clause.compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True}))
    except CompileError:  # a literal that SQL cannot spell: the columns and the operators are there all the same
        return str(clause.compile(dialect=sqlite.dialect()))


def _counts_on(column: str, sql: str) -> bool:
    """Whether a rule uses a column for more than ``IS NULL`` and ``IS NOT NULL``; text in quotes is no column."""
    without_text = re.sub(r"'[^']*'", "''", sql)
    word = rf'(?<!\w)["`\[]?{re.escape(column)}["`\]]?(?!\w)'
    without_null = re.sub(rf"{word}\s+(IS\s+(NOT\s+)?NULL|NOTNULL|ISNULL)\b", "", without_text, flags=re.IGNORECASE)
    return re.search(word, without_null, re.IGNORECASE) is not None
