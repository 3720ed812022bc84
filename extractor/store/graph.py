"""A record and what belongs to it, as the store sees them.

The *graph* of a record is the record with its children (one-to-many and one-to-one relations, at any depth). What it
refers to (many-to-one, many-to-many) are records of their own: they are written with it where they are new, but they
are no part of its values.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import Table, UniqueConstraint, select
from sqlalchemy import inspect as sa_inspect
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import LoaderCallableStatus, Mapper, RelationshipProperty, Session, object_session, with_parent
from sqlalchemy.orm.attributes import instance_state, set_committed_value
from sqlalchemy.orm.interfaces import RelationshipDirection

from extractor.drafts.columns import columns, fills_itself, is_surrogate, relations
from extractor.errors import StoreError
from extractor.store import forms

Relation = RelationshipProperty[Any]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Which attributes of a graph's new instances were unset or ``None``; see :func:`snapshot`."""

    instances: tuple[tuple[Any, frozenset[str], frozenset[str]], ...]


def graph(record: Any) -> tuple[Any, ...]:
    """The record and all that is written with it (what a session's ``add`` would cascade to) and is in no database
    yet, parents before those that refer to them."""
    before: dict[int, list[Any]] = {}
    found = [record]
    seen = {id(record)}
    for instance in found:
        for relation in mapper_of(instance).relationships:
            for other in loaded(instance, relation) if relation.cascade.save_update else ():
                is_below = relation.direction is not RelationshipDirection.MANYTOONE
                child, parent = (other, instance) if is_below else (instance, other)
                before.setdefault(id(child), []).append(parent)
                if id(other) not in seen:
                    seen.add(id(other))
                    found.append(other)
    return tuple(one for one in _parents_first(found, before) if instance_state(one).key is None)


def address(record: Any) -> tuple[str, tuple[Any, ...]]:
    """The table's name (with its schema, where it has one) and the primary key of a record that was written.

    :raises StoreError: when it was not.
    """
    state = instance_state(record)
    if state.identity is None:
        raise StoreError(f"the record of {type(record).__name__} is not in the database, and has no address")
    return _table(state.mapper).fullname, tuple(state.identity)


def row_hash(record: Any) -> str:
    """SHA-256 over a record and its children as they are written; call it within a session.

    It is the same when the rows are read again later, and differs after an edit of any of their columns, and after a
    child was added or taken away.
    """
    session = object_session(record)
    dialect = session.get_bind(mapper_of(record)).dialect if session is not None else forms.DETACHED
    text = _TEXT.encode(_as_written(record, dialect))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


_TEXT = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"))
_ORDER = json.JSONEncoder(sort_keys=True)


def values(record: Any) -> dict[str, Any]:
    """A record and its children as JSON can hold them, for display: amounts and moments as text, children nested."""
    shown: dict[str, Any] = {
        name: forms.shown(column, getattr(record, name)) for name, column in columns(mapper_of(record)).items()
    }
    for relation in children(record):
        inner = [values(child) for child in _related(record, relation)]
        shown[relation.key] = inner if relation.uselist else next(iter(inner), None)
    return shown


def diff(old: Any, new: Any) -> tuple[str, ...]:
    """What differs between two records and their children, a line for each value: ``total: 12.00 -> 13.00``.

    Keys that are made up, foreign keys, and columns that fill themselves are no difference. Children are compared by
    their place: ``line_items.0.amount: 1.00 -> 2.00``.
    """
    return tuple(_differences(old, new, ""))


def unique_keys(table: type[Any]) -> tuple[tuple[str, ...], ...]:
    """The attribute names of every key that no two rows share: a primary key that is no made-up number or id, then
    unique constraints and unique indexes over whole columns. A key with a ``None`` in it is not held by anyone."""
    mapped: Any = table
    return _unique_keys(_mapper(mapped))


@lru_cache(maxsize=512)
def _unique_keys(mapper: Any) -> tuple[tuple[str, ...], ...]:
    names = {column: name for name, column in columns(mapper).items()}
    mapped = _table(mapper)
    groups: list[Sequence[Any]] = [
        tuple(rule.columns) for rule in mapped.constraints if isinstance(rule, UniqueConstraint)
    ]
    groups += [tuple(index.expressions) for index in mapped.indexes if index.unique and not _is_partial(index)]
    keys = {tuple(names[column] for column in group) for group in groups if all(one in names for one in group)}
    primary = tuple(names[column] for column in mapper.primary_key if column in names)
    if not any(is_surrogate(column) for column in mapper.primary_key):
        return (primary, *sorted(keys - {primary, ()}))
    return tuple(sorted(keys - {()}))


def snapshot(record: Any) -> Snapshot:
    """Remember, before a flush, what the flush will fill in: generated keys, foreign keys, defaults, relations."""
    kept = []
    for instance in graph(record):
        state = instance_state(instance)
        values = state.dict
        unset = _attributes(state.mapper) - values.keys()
        empty = frozenset([name for name in columns(state.mapper) if name in values and values[name] is None])
        kept.append((instance, unset, empty))
    return Snapshot(tuple(kept))


@lru_cache(maxsize=512)
def _attributes(mapper: Mapper[Any]) -> frozenset[str]:
    return frozenset(attribute.key for attribute in mapper.attrs)


def restore(before: Snapshot) -> None:
    """Put a graph back, after a rollback, as it was when the snapshot was taken, so that it can be flushed again.

    SQLAlchemy leaves generated keys on the objects of a flush that was rolled back, and takes their relations for
    written. Instances that a session still holds are left alone.
    """
    for instance, unset, empty in before.instances:
        state = instance_state(instance)
        if state.key is not None or state.session is not None:
            continue
        for key in unset:
            state.dict.pop(key, None)
            state.committed_state.pop(key, None)
            state.expired_attributes.discard(key)
        for key in empty:
            state.dict[key] = None
        for relation in state.mapper.relationships:
            if state.dict.get(relation.key) is not None:
                # no earlier value: the next flush takes all that is related for new, and carries the new keys over
                state.committed_state[relation.key] = LoaderCallableStatus.NO_VALUE


def load_relations(record: Any) -> None:
    """Load, within a session, the columns and every relation of a record and of its children."""
    _load(record)


def detach(session: Session, record: Any) -> None:
    """Take a record out of its session with all that :func:`load_relations` loads, to be read after it is closed."""
    for instance in _load(record):
        if instance in session:
            session.expunge(instance)


def _load(record: Any) -> list[Any]:
    """Load what belongs to a record, and the columns of what that refers to; returns all of it."""
    found: list[Any] = [record]
    referred: list[Any] = []
    seen = {id(record)}
    for instance in found:
        _load_columns(instance)
        for relation in mapper_of(instance).relationships:
            others = _load_relation(instance, relation)
            if relation.direction is not RelationshipDirection.ONETOMANY:
                referred += [other for other in others if id(other) not in seen]
                continue
            found += [other for other in others if id(other) not in seen]
            seen |= {id(other) for other in others}
    for instance in referred:
        _load_columns(instance)
    return [*found, *referred]


def _load_columns(record: Any) -> None:
    mapper = mapper_of(record)
    if instance_state(record).dict.keys() >= _column_names(mapper):
        return
    for name in columns(mapper):
        getattr(record, name)  # reading is what loads it


@lru_cache(maxsize=512)
def _column_names(mapper: Mapper[Any]) -> frozenset[str]:
    return frozenset(columns(mapper))


def _load_relation(record: Any, relation: Relation) -> tuple[Any, ...]:
    if relation.lazy in ("dynamic", "write_only"):
        return _related(record, relation) if relation.direction is RelationshipDirection.ONETOMANY else ()
    is_guarded = relation.key not in instance_state(record).dict and relation.lazy in ("raise", "raise_on_sql")
    related = _related(record, relation)
    if is_guarded:
        set_committed_value(record, relation.key, list(related) if relation.uselist else next(iter(related), None))
    return related


def _parents_first(found: Sequence[Any], before: dict[int, list[Any]]) -> Iterator[Any]:
    done: set[int] = set()
    for start in found:
        path = [(start, False)]
        while path:
            instance, is_ready = path.pop()
            if is_ready:
                yield instance
            elif id(instance) not in done:
                done.add(id(instance))
                path.append((instance, True))
                path.extend((parent, False) for parent in reversed(before.get(id(instance), [])))


def mapper_of(record: Any) -> Mapper[Any]:
    """The mapper of a record's class."""
    mapped: Any = type(record)
    return _mapper(mapped)


@lru_cache(maxsize=1024)
def _mapper(mapped: Any) -> Mapper[Any]:
    """SQLAlchemy's ``inspect`` finds out anew each time what it is to inspect."""
    mapper: Mapper[Any] = sa_inspect(mapped)
    return mapper


def _table(mapper: Mapper[Any]) -> Table:
    table = mapper.local_table
    if not isinstance(table, Table):
        raise StoreError(f"{mapper.class_.__name__} is not mapped to a table of its own")
    return table


def children(record: Any) -> tuple[Relation, ...]:
    """The relations that lead to what belongs to a record."""
    return _children(mapper_of(record))


@lru_cache(maxsize=512)
def _children(mapper: Mapper[Any]) -> tuple[Relation, ...]:
    return tuple(one for one in relations(mapper) if one.direction is RelationshipDirection.ONETOMANY)


def loaded(record: Any, relation: Relation) -> tuple[Any, ...]:
    """The records that a relation holds in memory; nothing is read from the database."""
    value = instance_state(record).dict.get(relation.key)
    if value is None:
        return ()
    if not relation.uselist:
        return (value,)
    return tuple(value.values() if hasattr(value, "values") else value) if hasattr(value, "__iter__") else ()


def _related(record: Any, relation: Relation) -> tuple[Any, ...]:
    """The records that a relation holds, read from the database where they are not in memory yet."""
    state = instance_state(record)
    if relation.key in state.dict or state.session is None or state.key is None:
        return loaded(record, relation)
    if relation.lazy in ("dynamic", "write_only", "raise", "raise_on_sql", "noload"):
        target = relation.mapper.class_
        query = select(target).where(with_parent(record, getattr(state.mapper.class_, relation.key)))
        return tuple(state.session.scalars(query))
    getattr(record, relation.key)
    return loaded(record, relation)


def _as_written(record: Any, dialect: Dialect) -> list[Any]:
    shape = _written_shape(mapper_of(record), dialect)
    row: dict[str, Any] = {}
    there = instance_state(record).dict
    for attribute, column, write in shape.columns:
        value = there[attribute] if attribute in there else getattr(record, attribute)
        row[column] = None if value is None else write(value)
    below: dict[str, list[Any]] = {}
    for relation in shape.children:
        below[relation.key] = [_as_written(child, dialect) for child in _related(record, relation)]
    for relation in shape.others:
        below[relation.key] = [_key_as_written(other, dialect) for other in _related(record, relation)]
    # the order in which a database gives rows back is not told
    ordered = {key: sorted(rows, key=_ORDER.encode) if len(rows) > 1 else rows for key, rows in below.items()}
    return [shape.table, row, ordered]


@dataclass(frozen=True, slots=True)
class _WrittenShape:
    """What :func:`row_hash` reads of a class: attribute, column and writer of each value, and its relations."""

    table: str
    columns: tuple[tuple[str, str, Callable[[Any], Any]], ...]
    children: tuple[Relation, ...]
    others: tuple[Relation, ...]


@lru_cache(maxsize=512)
def _written_shape(mapper: Mapper[Any], dialect: Dialect) -> _WrittenShape:
    found = columns(mapper).items()
    return _WrittenShape(
        _table(mapper).fullname,
        tuple((name, column.name, forms.writer_of(column, dialect)) for name, column in found),
        _children(mapper),
        tuple(one for one in relations(mapper) if one.direction is RelationshipDirection.MANYTOMANY),
    )


def _key_as_written(record: Any, dialect: Dialect) -> list[Any]:
    mapper = mapper_of(record)
    found = columns(mapper).items()
    return [forms.written(column, getattr(record, name), dialect) for name, column in found if column.primary_key]


def _differences(old: Any, new: Any, path: str) -> Iterator[str]:
    for name, column in columns(mapper_of(new)).items():
        if column.foreign_keys or fills_itself(column):
            continue
        ours, theirs = getattr(old, name, None), getattr(new, name)
        shown = forms.shown(column, ours), forms.shown(column, theirs)
        if shown[0] != shown[1] and not forms.is_same(column, ours, theirs):
            yield f"{path}{name}: {forms.excerpt(shown[0])} -> {forms.excerpt(shown[1])}"
    for relation in children(new):
        before, after = _related(old, relation), _related(new, relation)
        for place in range(max(len(before), len(after))):
            step = f"{path}{relation.key}.{place}" if relation.uselist else f"{path}{relation.key}"
            if place >= len(after):
                yield f"{step}: {forms.excerpt(_content(before[place]))} -> null"
            elif place >= len(before):
                yield f"{step}: null -> {forms.excerpt(_content(after[place]))}"
            else:
                yield from _differences(before[place], after[place], f"{step}.")


def _content(record: Any) -> dict[str, Any]:
    """The values of one row that a document may say."""
    found = columns(mapper_of(record)).items()
    return {
        name: forms.shown(column, getattr(record, name))
        for name, column in found
        if not column.foreign_keys and not fills_itself(column)
    }


def _is_partial(index: Any) -> bool:
    """Whether an index covers only some rows: two others may share its values."""
    return any(options.get("where") is not None for options in index.dialect_options.values())
