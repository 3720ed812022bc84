"""What a table's columns and relations are to a draft, read from the mapping alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import Column
from sqlalchemy import inspect as sa_inspect
from sqlalchemy.exc import ArgumentError, InvalidRequestError
from sqlalchemy.orm import Mapper, RelationshipProperty
from sqlalchemy.orm.interfaces import RelationshipDirection
from sqlalchemy.types import TypeDecorator

from extractor.errors import DefinitionError

MOMENTS = (datetime, date, time, timedelta, UUID)
"""Types whose default, where it is a function, is a stamp (now, a fresh id) and nothing that a document says."""

FUTURE = (
    "take 'from __future__ import annotations' out of the file that defines the table: SQLModel cannot read its "
    "relations with it"
)


def mapper_of(table: type[Any]) -> Mapper[Any]:
    """The mapping of a table class, with its relations resolved.

    :raises DefinitionError: when the class is no table, or a relation names a class that does not exist.
    """
    mapper = sa_inspect(table, raiseerr=False) if isinstance(table, type) else None
    if not isinstance(mapper, Mapper) or not hasattr(table, "model_fields"):
        name = getattr(table, "__name__", type(table).__name__)
        raise DefinitionError(f"{name} is no table", hint="it takes a class SQLModel with table=True")
    try:
        mapper.relationships  # noqa: B018 - the first look resolves the names of related classes
    except (InvalidRequestError, ArgumentError) as error:
        reason = str(error).splitlines()[0]
        hint = FUTURE if "generic class" in reason else ""
        raise DefinitionError(f"the relations of {table.__name__} cannot be resolved: {reason}", hint=hint) from None
    return mapper


@lru_cache(maxsize=512)
def columns(mapper: Mapper[Any]) -> Mapping[str, Column[Any]]:
    """The columns of a table by the name of their attribute, in the order of the class."""
    found: dict[str, Column[Any]] = {}
    for attribute in mapper.column_attrs:
        column = attribute.columns[0]
        if isinstance(column, Column):
            found[attribute.key] = column
    order = [name for name in getattr(mapper.class_, "model_fields", ()) if name in found]
    return {name: found[name] for name in (*order, *(name for name in found if name not in order))}


def is_surrogate(column: Column[Any]) -> bool:
    """Whether a primary key column is a number or an id that is made up when the row is written."""
    if not column.primary_key or column.foreign_keys:
        return False
    counts_up = column.table.autoincrement_column is column
    return counts_up or column.default is not None or column.server_default is not None or column.identity is not None


def fills_itself(column: Column[Any]) -> bool:
    """Whether the database, or a stamp in the table's definition, supplies a column's value.

    A default of another kind (``"EUR"``, ``list``) is what to take where the document says nothing; it is no stamp.
    """
    if column.server_default is not None or column.computed is not None or column.identity is not None:
        return True
    if column.onupdate is not None or column.server_onupdate is not None or is_surrogate(column):
        return True
    default = column.default
    if default is None or default.is_scalar:
        return False
    return not default.is_callable or issubclass(_python_type(column), MOMENTS)


def supplied_by(relation: RelationshipProperty[Any] | None) -> frozenset[Column[Any]]:
    """The foreign key columns that a relation fills: on the other side for one-to-many, on its own for many-to-one."""
    if relation is None or relation.direction is RelationshipDirection.MANYTOMANY:
        return frozenset()
    side = 1 if relation.direction is RelationshipDirection.ONETOMANY else 0
    filled = (pair[side] for pair in relation.local_remote_pairs or [])
    return frozenset(column for column in filled if isinstance(column, Column))


def relations(mapper: Mapper[Any]) -> Iterator[RelationshipProperty[Any]]:
    """The relations of a table that can be set."""
    return (relation for relation in mapper.relationships if not relation.viewonly)


def missing(
    mapper: Mapper[Any],
    supplied: Collection[str],
    parent: RelationshipProperty[Any] | None,
) -> list[str]:
    """The columns that a row needs and nobody supplies.

    :param supplied: names of the attributes, columns and relations, that are set.
    :param parent: the relation that leads to this table, if there is one.
    """
    filled = set(supplied_by(parent))
    for relation in relations(mapper):
        if relation.key in supplied:
            filled |= supplied_by(relation) if relation.direction is RelationshipDirection.MANYTOONE else frozenset()
    fields = mapper.class_.model_fields
    return [
        name
        for name, column in columns(mapper).items()
        if name not in supplied
        and column not in filled
        and not column.nullable
        and column.default is None
        and not fills_itself(column)
        and not (name in fields and not fields[name].is_required() and fields[name].default is not None)
    ]


def write_the_function(table: type[Any]) -> str:
    """What to do where a table alone does not say enough."""
    name = table.__name__
    return f"write a function that takes a draft class of your own and returns build({name}, draft)"


def _python_type(column: Column[Any]) -> type[Any]:
    declared: Any = column.type
    while isinstance(declared, TypeDecorator):  # it does not say of itself what it keeps
        declared = declared.impl_instance
    try:
        kind = declared.python_type
    except NotImplementedError:
        return object
    return kind if isinstance(kind, type) else object
