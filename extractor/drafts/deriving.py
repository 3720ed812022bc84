"""A table class alone says what a model must supply."""

from __future__ import annotations

import types
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Optional, get_args

from pydantic import BaseModel, Field, PydanticUserError
from sqlalchemy.orm import Mapper, RelationshipProperty
from sqlalchemy.orm.interfaces import RelationshipDirection

from extractor.drafts import copying
from extractor.drafts.columns import (
    columns,
    fills_itself,
    mapper_of,
    missing,
    relations,
    supplied_by,
    write_the_function,
)
from extractor.errors import DefinitionError
from extractor.plugins import suggestion

Relation = RelationshipProperty[Any]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in the graph a table stands: the relation that leads to it, the tables above it, its path."""

    parent: Relation | None = None
    above: tuple[type[Any], ...] = ()
    path: str = ""


def draft_of(table: type[Any], *, exclude: Collection[str] = (), given: Collection[str] = ()) -> type[BaseModel]:
    """Derive from a table class what a model must supply.

    That is every column but generated keys, foreign keys, and columns that fill themselves (server defaults, computed
    and identity columns, ``onupdate``, and moments or UUIDs whose default is a function). Columns with another default
    stay, optional. One-to-many relations become lists of drafts, one-to-one relations a draft, at any depth.
    Validators, constraints, descriptions, docstring and configuration are those of the table class.

    :param table: an ``SQLModel`` class with ``table=True``.
    :param exclude: columns and relations that nobody supplies; those of related tables by path
        (``line_items.note``).
    :param given: columns and relations that the host supplies to :func:`~extractor.drafts.build`, named likewise.
    :raises DefinitionError: for a relation of another kind, a validator that cannot be copied, a name that does not
        exist, and a column that needs a value and gets none.
    """
    for names in (exclude, given):
        if isinstance(names, str):
            raise DefinitionError(f"exclude= and given= take a collection of names, not the text {names!r}")
    return _derive(table, frozenset(exclude), frozenset(given), _Place())


def _derive(table: type[Any], exclude: frozenset[str], given: frozenset[str], place: _Place) -> type[BaseModel]:
    mapper = mapper_of(table)
    if not table.__pydantic_complete__:
        _complete(table)
    left_out = exclude | given
    _check_names(mapper, left_out, place)
    fields: dict[str, tuple[Any, Any]] = {
        name: copying.field_copy(table.model_fields[name]) for name in _asked(mapper, left_out)
    }
    _check_orm_validators(mapper, fields)
    for relation in _nested(mapper, left_out, place):
        inner = _Place(relation, (*place.above, table), f"{place.path}{relation.key}.")
        target = relation.mapper.class_
        draft = _derive(target, _below(exclude, relation), _below(given, relation), inner)
        fields[relation.key] = _relation_field(table, relation, draft)
    wanting = missing(mapper, {*fields, *given}, place.parent)
    if wanting:
        raise DefinitionError(
            f"{', '.join(repr(place.path + name) for name in wanting)} of table {table.__name__} needs a value that "
            "the draft does not supply",
            hint=f"name it in given= and hand it to build, or {write_the_function(table)}",
        )
    return _draft_class(table, fields)


def _asked(mapper: Mapper[Any], left_out: frozenset[str]) -> list[str]:
    """The names of the columns that a model is asked for."""
    return [
        name
        for name, column in columns(mapper).items()
        if name in mapper.class_.model_fields
        and name not in left_out
        and not column.foreign_keys
        and not fills_itself(column)
    ]


def _nested(mapper: Mapper[Any], left_out: frozenset[str], place: _Place) -> list[Relation]:
    """The relations that become drafts within the draft.

    :raises DefinitionError: for a relation that is none of them, and is neither left out nor the way back.
    """
    homes = columns(mapper)
    settled = {*supplied_by(place.parent), *(homes[name] for name in left_out if name in homes)}
    found = []
    for relation in relations(mapper):
        own = supplied_by(relation)
        if relation.key in left_out or (relation.direction is RelationshipDirection.MANYTOONE and own <= settled):
            continue
        reason = _unfit(relation, (*place.above, mapper.class_))
        if reason:
            raise DefinitionError(
                f"relation {place.path + relation.key!r} of table {mapper.class_.__name__} {reason}",
                hint=f"leave it out with exclude= or given=, or {write_the_function(mapper.class_)}",
            )
        found.append(relation)
    return found


def _unfit(relation: Relation, above: tuple[type[Any], ...]) -> str:
    """Why a relation cannot be a list of drafts; empty when it can."""
    target = relation.mapper.class_
    if relation.direction is RelationshipDirection.MANYTOONE:
        return f"refers to a record of its own, {target.__name__}, and is not one-to-many"
    if relation.direction is RelationshipDirection.MANYTOMANY:
        return f"links many records of {target.__name__} with many, and is not one-to-many"
    if target in above:
        return f"leads back to {target.__name__}, without end"
    if relation.uselist and relation.collection_class not in (None, list):
        return "keeps its records in something other than a list"
    if relation.lazy in ("dynamic", "write_only", "noload"):
        return f"is loaded in the way {relation.lazy!r}, and holds no list"
    return ""


def _relation_field(table: type[Any], relation: Relation, draft: type[BaseModel]) -> tuple[Any, Any]:
    if relation.uselist:
        return list[draft], Field()  # type: ignore[valid-type]
    if _may_be_absent(table, relation.key):
        return Optional[draft], Field(default=None)  # noqa: UP045 - the class is a value here
    return draft, Field()


def _may_be_absent(table: type[Any], name: str) -> bool:
    """Whether the annotation of a one-to-one relation says that there may be none."""
    annotation = next((vars(base).get("__annotations__", {}).get(name) for base in table.__mro__), None)
    inner = next(iter(get_args(annotation)), annotation)
    text = inner if isinstance(inner, str) else getattr(inner, "__forward_arg__", "")
    return type(None) in get_args(inner) or "None" in text or "Optional" in text


def _draft_class(table: type[Any], fields: dict[str, tuple[Any, Any]]) -> type[BaseModel]:
    members = copying.members_copy(table, fields)

    def body(namespace: dict[str, Any]) -> None:
        annotations = members.pop("__annotations__")
        namespace.update(members)
        namespace.update({name: definition for name, (_, definition) in fields.items()})
        namespace["__annotations__"] = {**annotations, **{name: kind for name, (kind, _) in fields.items()}}
        namespace["__module__"] = table.__module__
        namespace["__doc__"] = vars(table).get("__doc__")
        namespace["model_config"] = copying.settings_copy(table)

    try:
        return types.new_class(f"{table.__name__}Draft", (BaseModel,), {}, body)
    except (PydanticUserError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise DefinitionError(
            f"no draft can be derived from table {table.__name__}: {reason}", hint=write_the_function(table)
        ) from None


def _check_names(mapper: Mapper[Any], names: frozenset[str], place: _Place) -> None:
    known = [*columns(mapper), *mapper.relationships.keys()]
    for name in sorted(names):
        first, dot, _ = name.partition(".")
        if first not in (mapper.relationships.keys() if dot else known):
            raise DefinitionError(
                f"table {mapper.class_.__name__} has no {'relation' if dot else 'column or relation'} "
                f"{place.path + first!r}",
                hint=suggestion(first, list(mapper.relationships.keys()) if dot else known),
            )


def _check_orm_validators(mapper: Mapper[Any], fields: Collection[str]) -> None:
    for name in sorted(set(mapper.validators) & set(fields)):
        raise DefinitionError(
            f"SQLAlchemy's validates({name!r}) of table {mapper.class_.__name__} cannot be copied to its draft",
            hint=f"make it a pydantic field_validator, or {write_the_function(mapper.class_)}",
        )


def _complete(table: type[Any]) -> None:
    try:
        done = table.model_rebuild(raise_errors=False)
    except (NameError, PydanticUserError):
        done = False
    if done is False:
        raise DefinitionError(f"table {table.__name__} names a type in an annotation that does not exist")


def _below(names: frozenset[str], relation: Relation) -> frozenset[str]:
    """Of dotted names, the rest of those that lead through a relation."""
    prefix = f"{relation.key}."
    return frozenset(name.removeprefix(prefix) for name in names if name.startswith(prefix))
