"""One form for each value: as JSON holds it, as the database keeps it, as people read it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Any
from uuid import UUID

from pydantic import BaseModel
from sqlalchemy import JSON, Column
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.types import TypeDecorator

from extractor.store.money import DIGITS, is_decimal, plain, scale_of

EXCERPT = 80
"""Characters of a value that :func:`excerpt` shows."""


def json_text(value: Any) -> str:
    """JSON for a JSON column, with Decimals as exact text; hand it to ``create_engine(json_serializer=…)``."""
    return json.dumps(value, ensure_ascii=False, default=json_value)


def json_value(value: Any) -> Any:
    """What JSON is to hold of a value that it has no word for.

    :raises TypeError: when there is nothing sensible.
    """
    for kinds, form in _JSON_FORMS:
        if isinstance(value, kinds):
            return form(value)
    raise TypeError(f"a value of type {type(value).__name__} has no form in JSON")


DETACHED = sqlite.dialect(json_serializer=json_text)
"""The dialect to speak of values in where no database is at hand."""


def written(column: Column[Any], value: Any, dialect: Dialect) -> Any:
    """One form for a value on its way to the database and for the same value read back from there.

    It is what the driver is handed: a column's type may write a value in a way of its own.
    """
    return None if value is None else writer_of(column, dialect)(value)


@lru_cache(maxsize=4096)
def writer_of(column: Column[Any], dialect: Dialect) -> Callable[[Any], Any]:
    """What :func:`written` does to the values of one column, but for ``None``."""
    kind: Any = column.type
    is_json = isinstance(kind, JSON) or (isinstance(kind, TypeDecorator) and isinstance(kind.impl_instance, JSON))
    speaking = DETACHED if is_json else dialect
    process: Callable[[Any], Any] | None = kind.dialect_impl(speaking).bind_processor(speaking)
    is_number, scale = is_decimal(column), scale_of(column)

    def write(value: Any) -> Any:
        if is_number and isinstance(value, (Decimal, int, float)):
            return plain(value, scale)
        bound = value if process is None else process(value)
        return canonical(json.loads(bound) if is_json and isinstance(bound, str) else bound)

    return write


def is_same(column: Column[Any], one: Any, other: Any) -> bool:
    """Whether two values are kept as one; a value that the column does not take is like no other."""
    try:
        return bool(written(column, one, DETACHED) == written(column, other, DETACHED))
    except (TypeError, ValueError, AttributeError, LookupError, SQLAlchemyError):
        return False


def shown(column: Column[Any], value: Any) -> Any:
    """A value as JSON can hold it and people read it: amounts and moments as text."""
    if is_decimal(column) and isinstance(value, (Decimal, int, float)) and not isinstance(value, bool):
        number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
        scale = scale_of(column)
        return plain(number, scale) if scale is not None and number.is_finite() else _decimal_text(number)
    if isinstance(value, Enum):
        return value.value if isinstance(value.value, (str, int, float)) else value.name
    if isinstance(value, (date, time)):
        return value.isoformat()
    return value if isinstance(value, (bool, int, float)) else canonical(value)


def excerpt(value: Any) -> str:
    """The start of a value, on one line."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = " ".join(text[: EXCERPT * 2].split())
    return text if len(text) <= EXCERPT else text[: EXCERPT - 1] + "…"


def canonical(value: Any) -> Any:
    """Equal JSON for values that a database may give back for one another: ``1``, ``1.0`` and ``True``, or a moment
    in another zone."""
    if type(value) is str:  # the most there are
        return value
    for kinds, form in _CANONICAL_FORMS:
        if isinstance(value, kinds):
            return form(value)
    return str(value)


def _decimal_text(value: Decimal) -> str:
    return format(value, "f") if value.is_finite() and abs(value.adjusted()) <= DIGITS else str(value)


def _float_form(value: float) -> int | str:
    return int(value) if value.is_integer() else repr(value)


def _moment_form(value: datetime) -> str:
    return (value if value.utcoffset() is None else value.astimezone(UTC)).isoformat()


Form = tuple[tuple[type, ...], Callable[[Any], Any]]

_JSON_FORMS: tuple[Form, ...] = (
    ((Decimal,), _decimal_text),
    ((BaseModel,), lambda value: value.model_dump()),
    ((Enum,), lambda value: value.value),
    ((date, time), lambda value: value.isoformat()),
    ((bytes, bytearray, memoryview), lambda value: bytes(value).hex()),
    ((set, frozenset), lambda value: sorted(value, key=str)),
    ((UUID,), str),
)

_CANONICAL_FORMS: tuple[Form, ...] = (
    ((type(None),), lambda value: value),
    ((Enum,), lambda value: canonical(value.value)),
    ((str,), str),
    ((bool, int), int),
    ((float,), _float_form),
    ((Decimal,), lambda value: plain(value) if value.is_finite() else str(value)),
    ((datetime,), _moment_form),
    ((timedelta,), str),
    ((list, tuple), lambda value: [canonical(item) for item in value]),
    ((dict,), lambda value: {str(key): canonical(item) for key, item in value.items()}),
    ((BaseModel, date, time, bytes, bytearray, memoryview, set, frozenset, UUID), lambda v: canonical(json_value(v))),
)
