"""Writing the user's records: the flush of one reply's calls, and what the database has to say about each.

All calls of a reply are flushed in one short transaction, together with the links by which a later run finds their
rows again. The flush is optimistic; the writer runs it again *carefully* (a savepoint for each record) when anything
in it is refused, and then every refusal becomes that one call's verdict.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import delete, insert
from sqlalchemy import inspect as sa_inspect
from sqlalchemy.exc import DataError, IntegrityError, StatementError
from sqlalchemy.orm import Session

from extractor.messages import ToolResult, Verdict
from extractor.store import graph
from extractor.store import tables as t
from extractor.store.codec import jsonable
from extractor.store.holders import holder
from extractor.store.ledger import links, now
from extractor.store.refusals import missing_parents, refusal, wrong_types


@dataclass(frozen=True, slots=True)
class Written:
    """One call to be written: which reply (by request key), which place in it, its hash, and its result."""

    reply: str
    position: int
    call: str
    result: ToolResult


@dataclass(frozen=True, slots=True)
class Link:
    """Names a written call for good."""

    reply: str
    position: int


def is_record(value: object) -> bool:
    """Whether a function's native object is a row of a mapped table."""
    return hasattr(type(value), "__mapper__")


def flush(
    session: Session,
    careful: bool,
    work: int,
    calls: Sequence[Written],
    claimed: Collection[Link],
    before: Sequence[Any],
) -> tuple[ToolResult, ...]:
    """Write the accepted calls of one reply; returns their results with the database's verdicts.

    :param claimed: the links that this run has met so far. Others of the same document come from a path that the
        conversation no longer takes (a prompt or a function was changed after a crash): they are taken back first.
    :param before: snapshots of the record graphs from before they were first flushed. A rollback leaves generated
        keys on the objects; they are put back as they were before each try.
    """
    for snapshot in before:
        graph.restore(snapshot)
    withdraw(session, work, claimed)
    return tuple(_write(session, careful, work, one) for one in calls)


def withdraw(session: Session, work: int, claimed: Collection[Link]) -> tuple[str, ...]:
    """Take back rows of a document that its conversation no longer leads to; returns remarks for people.

    A row that a person has changed since is left, and said.
    """
    remarks = []
    for link in links(session, work):
        if Link(link["reply"], link["position"]) in claimed:
            continue
        row = load(session, link["table"], link["key"]) if link["verdict"] == Verdict.ACCEPTED else None
        if row is not None and graph.row_hash(row) != link["row_hash"]:
            remarks.append(f"{link['table']} {link['key']} was changed by hand and is kept")
        elif row is not None:
            session.delete(row)
            session.flush()
        session.execute(delete(t.record).where(t.record.c.id == link["id"]))
    return tuple(remarks)


def reload(session: Session, link: dict[str, Any]) -> Any:
    """The row behind a link, detached and with its relations loaded; ``None`` when it is gone."""
    if link["table"] is None:
        return None
    row = load(session, link["table"], link["key"])
    if row is not None:
        graph.load_relations(row)
    return row


def load(session: Session, table: str | None, key: Sequence[Any] | None) -> Any:
    """The row with that primary key of the mapped table of that name; ``None`` where either is unknown."""
    mapped = mapped_class(table) if table is not None else None
    if mapped is None or key is None:
        return None
    columns = sa_inspect(mapped).primary_key
    typed = tuple(_as_key(column, value) for column, value in zip(columns, key, strict=True))
    return session.get(mapped, typed)


_mapped: dict[str, type[Any]] = {}


def remember(mapped: type[Any]) -> None:
    """Make a mapped class findable by its table's name."""
    _mapped[sa_inspect(mapped).local_table.fullname] = mapped


def mapped_class(table: str) -> type[Any] | None:
    """The class that is mapped to a table: of those that were remembered, else of every SQLModel table."""
    if table not in _mapped:
        from sqlmodel import SQLModel

        for mapper in tuple(SQLModel._sa_registry.mappers):  # noqa: SLF001 - sqlmodel has no public name for it
            remember(mapper.class_)
    return _mapped.get(table)


def _write(session: Session, careful: bool, work: int, one: Written) -> ToolResult:
    record = one.result.processed_content
    if not is_record(record):
        _link(session, work, one, one.result)
        return one.result
    problems = wrong_types(record) or missing_parents(session, record)
    if problems:
        return _rejected(one.result, problems)
    result = _duplicate(session, one.result, record)
    if result is None:
        result = _insert(session, careful, one.result, record)
    if result.verdict in (Verdict.ACCEPTED, Verdict.DUPLICATE):
        _link(session, work, one, result)
    return result


def _insert(session: Session, careful: bool, result: ToolResult, record: Any) -> ToolResult:
    snapshot = graph.snapshot(record)
    try:
        if careful:
            with session.begin_nested():
                session.add(record)
                session.flush()
        else:
            session.add(record)
            session.flush()
    except (IntegrityError, DataError, StatementError) as error:
        if not careful or (isinstance(error, StatementError) and error.orig is None):
            raise
        graph.restore(snapshot)
        return _duplicate(session, result, record) or _rejected(result, refusal(error, record))
    return result


def _duplicate(session: Session, result: ToolResult, record: Any) -> ToolResult | None:
    """The result as a duplicate, when a row outside this one holds one of its unique keys."""
    held = holder(session, record)
    if held is None:
        return None
    path, row = held
    table, key = graph.address(row)
    where = f"{table} {', '.join(map(str, key))}"
    differs = graph.diff(row, record) if type(row) is type(record) else ()
    flag = f"{path}duplicate of {where}" + (f"; differs in {'; '.join(differs)}" if differs else "")
    return replace(
        result, verdict=Verdict.DUPLICATE, processed_content=row, content="duplicate: this record is held already",
        flags=(*result.flags, flag),
    )  # fmt: skip


def _rejected(result: ToolResult, problems: Sequence[tuple[str, str]]) -> ToolResult:
    text = "; ".join(f"{path}: {message}" if path else message for path, message in problems)
    paths = tuple(path for path, _ in problems if path)
    return replace(result, verdict=Verdict.REJECTED, content=text, processed_content=None, paths=paths)


def _link(session: Session, work: int, one: Written, result: ToolResult) -> None:
    record = result.processed_content
    table, key = graph.address(record) if is_record(record) else (None, None)
    if table is not None:
        graph.load_relations(record)
    values = {
        "work": work,
        "reply": one.reply,
        "position": one.position,
        "call": one.call,
        "function": result.name,
        "verdict": str(result.verdict),
        "table": table,
        "key": jsonable(key),
        "row_hash": graph.row_hash(record) if table is not None else None,
        "arguments": jsonable(result.arguments or {}),
        "content": result.content,
        "flags": list(result.flags),
        "written_at": now(),
    }
    session.execute(insert(t.record).values(values))


def _as_key(column: Any, value: Any) -> Any:
    """A primary key out of JSON in the type that its column takes (a UUID or a date was kept as its text)."""
    kind = getattr(column.type, "python_type", None)
    if not isinstance(value, str) or kind in (None, str):
        return value
    from pydantic import TypeAdapter

    return TypeAdapter(kind).validate_python(value)
