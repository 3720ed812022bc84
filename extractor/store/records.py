"""Writing the user's records: the flush of one reply's calls, and what the database has to say about each.

All calls of a reply are flushed in one short transaction, together with the links by which a later run finds their
rows again. The flush is optimistic; the writer runs it again *carefully* (a savepoint for each record) when anything
in it is refused, and then every refusal becomes that one call's verdict.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy import inspect as sa_inspect
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, StatementError
from sqlalchemy.orm import Session

from extractor.messages import ToolResult, Verdict
from extractor.store import evidence, graph
from extractor.store import tables as t
from extractor.store.codec import jsonable
from extractor.store.holders import holder, paths
from extractor.store.ledger import links, now
from extractor.store.refusals import missing_parents, refusal, wrong_types
from extractor.store.writer import AfterFlush, catch_up, put_off

KEPT = (Verdict.ACCEPTED, Verdict.DUPLICATE)


@dataclass(frozen=True, slots=True)
class Written:
    """One call to be written: which reply (by request key), which place in it, its hash, and its result; ``crops``
    are pictures of where its values stand, by path."""

    reply: str
    position: int
    call: str
    result: ToolResult
    crops: Mapping[str, bytes] = field(default_factory=dict, repr=False)


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
    claimed: Collection[Link] | None,
    before: Sequence[Any],
) -> tuple[ToolResult, ...] | AfterFlush[tuple[ToolResult, ...]]:
    """Write the accepted calls of one reply; returns their results with the database's verdicts.

    :param claimed: the links that this run has met so far. Others of the same document come from a path that the
        conversation no longer takes (a prompt or a function was changed after a crash): they are taken back first.
        ``None`` when the document is new, and there can be no others.
    :param before: snapshots of the record graphs from before they were first flushed. A rollback leaves generated
        keys on the objects; they are put back as they were before each try.
    """
    for snapshot in before:
        graph.restore(snapshot)
    remarks = withdraw(session, work, claimed) if claimed is not None else ()
    results = [_write(session, careful, one) for one in calls]
    if remarks and results:
        results[0] = replace(results[0], flags=(*results[0].flags, *remarks))

    def linked() -> tuple[ToolResult, ...]:
        for one, result in zip(calls, results, strict=True):
            if result.verdict in KEPT:
                _link(session, work, one, result)
        return tuple(results)

    return linked() if careful else AfterFlush(linked)


def withdraw(session: Session, work: int, claimed: Collection[Link]) -> tuple[str, ...]:
    """Take back rows of a document that its conversation no longer leads to; returns remarks for people.

    A row that a person has changed since, that another document is linked to, or that other rows refer to is left, and
    said.
    """
    remarks: list[str] = []
    catch_up(session)
    for link in links(session, work):
        if Link(link["reply"], link["position"]) in claimed:
            continue
        row = load(session, link["table"], link["key"]) if link["verdict"] == Verdict.ACCEPTED else None
        reason = _take_back(session, link, row) if row is not None else ""
        if reason:
            remarks.append(f"{link['table']} {', '.join(map(str, link['key']))} is kept: {reason}")
        session.execute(delete(t.record).where(t.record.c.id == link["id"]))
    return tuple(remarks)


def _take_back(session: Session, link: Mapping[str, Any], row: Any) -> str:
    """Delete a row and its children, or say why it has to stay."""
    if graph.row_hash(row) != link["row_hash"]:
        return "it was changed by hand"
    same_row = (t.record.c.table == link["table"]) & (t.record.c.key == link["key"])
    heir = session.execute(select(t.record.c.id).where(same_row, t.record.c.work != link["work"])).scalars().first()
    if heir is not None:  # a duplicate of it was found in another document, to which it belongs from now on
        session.execute(update(t.record).where(t.record.c.id == heir).values(verdict=str(Verdict.ACCEPTED)))
        return "another document holds it too"
    graph.load_relations(row)
    try:
        with session.begin_nested():
            for _, instance in paths(row):
                session.delete(instance)
            session.flush()
    except IntegrityError:
        return "other rows refer to it"
    return ""


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


def _write(session: Session, careful: bool, one: Written) -> ToolResult:
    record = one.result.processed_content
    if not is_record(record):
        if _holds_records(record):
            return _broken(one.result, "a function returns one record a call, not a collection of records")
        return one.result
    state = sa_inspect(record)
    if state.session is not None and state.session is not session:
        return _broken(one.result, "a function returns a record that is in no session, and this one is in one")
    if state.key is not None and state.session is None:
        return _held(session, one, record)
    return _told_before(session, one.result, record) or _added(session, careful, one.result, record)


def _told_before(session: Session, result: ToolResult, record: Any) -> ToolResult | None:
    """What can be said against a record without writing it."""
    problems = wrong_types(record) or missing_parents(session, record)
    return _rejected(result, problems) if problems else _duplicate(session, result, record)


def _added(session: Session, careful: bool, result: ToolResult, record: Any) -> ToolResult:
    if careful:
        return _insert(session, result, record)
    session.add(record)  # flushed with those of the whole group
    return result


def _holds_records(value: object) -> bool:
    items = tuple(value.values()) if isinstance(value, dict) else value
    return isinstance(items, (list, tuple, set, frozenset)) and any(map(is_record, items))


def _broken(result: ToolResult, why: str) -> ToolResult:
    """A bug in the user's function; nothing of it is written, and nobody is asked to mend it."""
    return replace(result, verdict=Verdict.FAILED, content="the function failed", processed_content=None, cause=why)


def _held(session: Session, one: Written, record: Any) -> ToolResult:
    """A row that the function found in the database is linked, and stays the host's."""
    table, key = graph.address(record)
    row = load(session, table, key)
    if row is None:
        return _broken(one.result, f"the function returned row {key} of {table}, which is not in this database")
    content = "duplicate: this record is held already"
    return replace(one.result, verdict=Verdict.DUPLICATE, content=content, processed_content=row)


def _insert(session: Session, result: ToolResult, record: Any) -> ToolResult:
    """Insert one record in a savepoint, and tell what the database has against it."""
    snapshot = graph.snapshot(record)
    try:
        with session.begin_nested():
            session.add(record)
            session.flush()
    except StatementError as error:
        told = isinstance(error, (IntegrityError, DataError)) or not isinstance(error, DBAPIError)
        if not told or error.orig is None:  # a full disk or a missing table is nothing to mend for a model
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
    if path:  # a child's key says nothing of the record that it belongs to
        return _rejected(result, [(path.rstrip("."), f"its unique key is held by {where} already")])
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
    values[evidence.EVIDENCE] = evidence.rows(result.evidence, one.crops)
    put_off(session, evidence.INSERT, values)


def _as_key(column: Any, value: Any) -> Any:
    """A primary key out of JSON in the type that its column takes (a UUID or a date was kept as its text)."""
    kind = getattr(column.type, "python_type", None)
    if not isinstance(value, str) or kind in (None, str):
        return value
    from pydantic import TypeAdapter

    return TypeAdapter(kind).validate_python(value)
