"""A validated draft becomes a record with its related records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from sqlalchemy.orm import Mapper, RelationshipProperty
from sqlalchemy.orm.attributes import set_attribute

from extractor.drafts.columns import columns, mapper_of, missing
from extractor.errors import DefinitionError
from extractor.plugins import suggestion

Record = TypeVar("Record")
Relation = RelationshipProperty[Any]


@dataclass(frozen=True, slots=True)
class _Plan:
    """How one draft class becomes a row of one table."""

    mapper: Mapper[Any]
    path: str
    scalars: tuple[str, ...]
    relations: tuple[Relation, ...]
    defaults: tuple[tuple[str, FieldInfo], ...]


def build(table: type[Record], draft: BaseModel, /, **given: Any) -> Record:
    """Make a table's record, with its related records, out of a validated draft.

    Nothing is validated or coerced again: each value of the draft is the value of the record. Drafts in a list become
    records of the class that the relation of the same name leads to. The record is not in any session.

    :param table: the ``SQLModel`` class with ``table=True``.
    :param draft: what the model supplied: an instance of the derived draft, or of a class of your own.
    :param given: columns and relations that the host supplies, such as ``tenant_id=7``; those of related records by
        path: ``**{"line_items.tenant_id": 7}``. They win over a value of the draft.
    :raises DefinitionError: for a field of the draft or a given name that has no home in the table, and for a column
        that needs a value and gets none.
    """
    own, nested = _split(given)
    return _build(table, draft, own, nested, None, "")  # type: ignore[no-any-return]


def _build(
    table: Any,
    draft: Any,
    given: Mapping[str, Any],
    nested: Mapping[str, Mapping[str, Any]],
    parent: Relation | None,
    path: str,
) -> Any:
    if not isinstance(draft, BaseModel):
        where = f"{path.rstrip('.')}: " if path else ""
        raise DefinitionError(
            f"{where}{table.__name__} is built from a pydantic model, not from {type(draft).__name__}"
        )
    plan = _plan(table, type(draft), frozenset(given), frozenset(nested), parent, path)
    if draft.__pydantic_extra__:
        raise _homeless(plan, next(iter(draft.__pydantic_extra__)), type(draft))
    values = {name: getattr(draft, name) for name in plan.scalars}
    for relation in plan.relations:
        related = getattr(draft, relation.key)
        inner, deeper = _split(nested.get(relation.key, {}))
        values[relation.key] = _related(relation, related, inner, deeper, f"{path}{relation.key}.")
    values.update(given)
    for name, field in plan.defaults:
        values[name] = field.get_default(call_default_factory=True, validated_data=values)
    return _instance(plan.mapper, values)


def _related(
    relation: Relation,
    value: Any,
    given: Mapping[str, Any],
    nested: Mapping[str, Mapping[str, Any]],
    path: str,
) -> Any:
    target = relation.mapper.class_

    def made(item: Any, step: str) -> Any:
        return item if isinstance(item, target) else _build(target, item, given, nested, relation, step)

    if not relation.uselist:
        return None if value is None else made(value, path)
    if value is None:
        return []
    if not isinstance(value, (list, tuple, set, frozenset)):
        raise DefinitionError(f"{path.rstrip('.')}: the relation takes a list, not {type(value).__name__}")
    return [made(item, path) for item in value]


def _instance(mapper: Mapper[Any], values: Mapping[str, Any]) -> Any:
    """A transient row. Its ``__init__`` is passed by: with ``validate_assignment`` it would validate value by value."""
    record = mapper.class_manager.new_instance()
    for name, value in values.items():
        set_attribute(record, name, value)
    object.__setattr__(record, "__pydantic_fields_set__", set(values))
    if mapper.class_.__pydantic_post_init__:
        record.model_post_init(None)
    return record


@lru_cache(maxsize=1024)
def _plan(
    table: Any,
    draft_type: Any,
    given: frozenset[str],
    nested: frozenset[str],
    parent: Relation | None,
    path: str,
) -> _Plan:
    mapper = mapper_of(table)
    homes = columns(mapper)
    relations = {relation.key: relation for relation in mapper.relationships}
    plan = _Plan(mapper, path, (), (), ())
    names = [name for name in draft_type.model_fields if name not in given]
    for name in names:
        if name not in homes and name not in relations:
            raise _homeless(plan, name, draft_type)
    for name in sorted((given - homes.keys() - relations.keys()) | (nested - relations.keys())):
        hint = suggestion(name, [*homes, *relations])
        raise DefinitionError(f"given {path + name!r} has no home in table {table.__name__}", hint=hint)
    for name in sorted(nested - draft_type.model_fields.keys()):
        raise DefinitionError(f"given {path + name!r}: {draft_type.__name__} has no {name!r} to give anything to")
    supplied = {*names, *given}
    wanting = missing(mapper, supplied, parent)
    if wanting:
        raise DefinitionError(
            f"{', '.join(path + name for name in wanting)}: table {table.__name__} needs a value that neither "
            f"{draft_type.__name__} nor the table's defaults supply",
            hint=f"give it: build(…, **{{{path + wanting[0]!r}: …}})",
        )
    fields = table.model_fields.items()
    defaults = tuple((name, field) for name, field in fields if name not in supplied and not field.is_required())
    return _Plan(
        mapper=mapper,
        path=path,
        scalars=tuple(name for name in names if name in homes),
        relations=tuple(relations[name] for name in names if name in relations),
        defaults=defaults,
    )


def _homeless(plan: _Plan, name: str, draft_type: type[BaseModel]) -> DefinitionError:
    table = plan.mapper.class_
    homes = [*columns(plan.mapper), *(relation.key for relation in plan.mapper.relationships)]
    return DefinitionError(
        f"field {plan.path + name!r} of {draft_type.__name__} has no home in table {table.__name__}",
        hint=f"{suggestion(name, homes)} Add it to the table, or take it off the draft",
    )


def _split(names: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The names of this table, and those of related ones by relation."""
    own: dict[str, Any] = {}
    nested: dict[str, dict[str, Any]] = {}
    for name, value in names.items():
        relation, dot, rest = name.partition(".")
        if dot:
            nested.setdefault(relation, {})[rest] = value
        else:
            own[name] = value
    return own, nested
