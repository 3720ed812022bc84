"""The store: the user's records, our ledger, and the one way to write either.

A transaction never spans a question to a model or a user's function. Everything written goes through the writer;
reading goes beside it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

from sqlalchemy import Connection
from sqlalchemy import inspect as sa_inspect
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from extractor.documents import Document
from extractor.errors import StoreError
from extractor.evidence.values import Evidence
from extractor.messages import Reply, ToolResult, Verdict
from extractor.outcome import Outcome, Status
from extractor.store import evidence, graph, ledger, money, records
from extractor.store.codec import reply_from_json
from extractor.store.engine import is_there, open_engine, url_of
from extractor.store.ledger import Asked, Seen, Work
from extractor.store.records import Link, Written
from extractor.store.writer import AfterFlush, Job, Writer, as_store_error

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class InHand:
    """Locks of one event loop: documents in hand, by pipeline and hash, and questions that are being put, by key."""

    documents: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    questions: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)


class Store:
    """One database. Safe to use from any thread and any event loop; close it when done.

    :param database: SQLAlchemy's address of it, such as ``sqlite:///extractor.db``.
    :param root: folder that a relative SQLite path stands in (the working directory by default).
    :param reads_only: leave the database as it is; one that is not there stays so, and reads as an empty one.
    :raises ConfigurationError: when the address is none.
    :raises StoreError: when the database cannot be opened.
    """

    def __init__(self, database: str, root: Path | None = None, *, reads_only: bool = False) -> None:
        self.url = url_of(database, root)
        opened = self.url if not reads_only or is_there(self.url) else self.url.set(database=":memory:")
        self._engine = open_engine(opened, reads_only=reads_only)
        self._in_memory = not opened.database or opened.database == ":memory:"
        self._reading = self._engine.execution_options(extractor_reads=True)
        self._writer = Writer(self._engine)
        self._here = threading.local()
        self._looking: WeakSet[Connection] = WeakSet()  # a thread that ends lets go of its own
        self._in_hand: WeakKeyDictionary[asyncio.AbstractEventLoop, InHand] = WeakKeyDictionary()
        self._prepared: set[type[Any]] = set()
        self._unwritten: dict[str, Reply] = {}
        self._trouble: BaseException | None = None
        self._unkept: list[tuple[Job[None], Callable[[], object]]] = []

    def __repr__(self) -> str:
        return f"Store({self.url.render_as_string(hide_password=True)!r})"

    def close(self) -> None:
        """Write what is queued and close every connection."""
        self._writer.close()
        for connection in list(self._looking):
            connection.close()
        self._engine.dispose()

    def prepare(self, classes: Iterable[type[Any]]) -> None:
        """Make the tables of these record types ready: exact money, then every table that is not there yet.

        :raises StoreError: when a table cannot be kept exactly, or not be created.
        """
        new = [one for one in classes if one not in self._prepared]
        if not new:
            return
        tables = _tables_of(new)
        money.make_exact(tables)
        money.check_constraints(tables, self.url.get_backend_name())
        try:
            for metadata in {table.metadata for table in tables}:
                metadata.create_all(self._engine, tables=[one for one in tables if one.metadata is metadata])
            with self._reading.connect() as connection:
                _check_columns(connection, tables)
                money.check_storage(connection, tables)
        except SQLAlchemyError as error:
            raise as_store_error(error, self._engine) from None
        self._prepared.update(new)

    # -- reading and writing -------------------------------------------------------------------------------------

    def read(self, look: Callable[[Session], T]) -> T:
        """Look something up; what is read may be used when this has returned.

        :raises StoreError: when the database cannot be read.
        """
        if self._in_memory:  # one connection serves all: only the writer's thread may use it
            return self._writer.submit(lambda session, _careful: look(session)).result()
        try:
            with Session(self._reading, expire_on_commit=False, autoflush=False) as session:
                return look(session)
        except SQLAlchemyError as error:
            raise as_store_error(error, self._engine) from None

    def look(self, look: Callable[[Connection], T]) -> T:
        """Look one thing up, on a connection of this thread that stays open: for what is asked for every document.

        :raises StoreError: when the database cannot be read.
        """
        if self._in_memory:
            return self.read(lambda session: look(session.connection()))
        try:
            connection: Connection | None = getattr(self._here, "connection", None)
            if connection is None or connection.closed:
                connection = self._here.connection = self._reading.connect().execution_options(
                    isolation_level="AUTOCOMMIT"
                )
                self._looking.add(connection)
            return look(connection)
        except SQLAlchemyError as error:
            self._here.connection = None
            raise as_store_error(error, self._engine) from None

    def write(self, job: Job[T]) -> Future[T]:
        """Queue a write; the future is done once it is durable."""
        return self._writer.submit(job)

    # -- a run -----------------------------------------------------------------------------------------------------

    def start_run(self, pipeline: str, fingerprint: str, models: str) -> int:
        """Note that a run begins; returns its number."""
        return self.write(lambda session, _: ledger.start_run(session, pipeline, fingerprint, models)).result()

    def end_run(self, run: int, stopped_by: str | None = None) -> None:
        """Note that a run has ended."""
        self.write(lambda session, _: ledger.end_run(session, run, stopped_by)).result()

    # -- a document ------------------------------------------------------------------------------------------------

    async def begin(self, seen: Seen, pipeline: str, fingerprint: str, run: int | None = None) -> Work:
        """Begin a document, or go on with it; a settled one comes back as it is."""
        found = self.look(lambda connection: ledger.find_work(connection, seen.hash, pipeline))
        if found is not None and found.is_settled:
            return found

        def job(session: Session, careful: bool) -> Work | AfterFlush[Work]:
            is_new = found is None and not careful
            return ledger.begin(session, seen, pipeline, fingerprint, run, is_new=is_new)

        return await self._write(job)

    def in_hand(self) -> InHand:
        """What the running event loop has in hand with this store, whichever call it belongs to."""
        loop = asyncio.get_running_loop()
        found = self._in_hand.get(loop)
        if found is None:
            found = self._in_hand[loop] = InHand()
        return found

    def links(self, work: Work) -> list[dict[str, Any]]:
        """The calls that were written for a document."""
        return self.read(lambda session: [dict(link) for link in ledger.links(session, work.id)])

    def reload(self, link: dict[str, Any]) -> Any:
        """The row behind a link, detached; ``None`` when it is gone or the result was none."""
        return self.read(lambda session: records.reload(session, link))

    async def flush(self, work: Work, calls: Sequence[Written], claimed: Collection[Link]) -> tuple[ToolResult, ...]:
        """Write the accepted calls of one reply in one transaction; their results, with the database's verdicts."""
        rows = [one.result.processed_content for one in calls if records.is_record(one.result.processed_content)]
        self.prepare({type(row) for row in rows})
        before = [graph.snapshot(row) for row in rows]
        known = None if work.is_new else claimed
        return await self._write(
            lambda session, careful: records.flush(session, careful, work.id, calls, known, before)
        )

    async def finish(
        self,
        work: Work,
        outcome: Outcome,
        keys: Sequence[str | None],
        seconds: float,
        claimed: Collection[Link],
        document: Document | None = None,
    ) -> Outcome:
        """Settle a document, in one transaction with taking back what its conversation no longer leads to.

        Returns the outcome, with a flag for each row that could not be taken back.

        :param document: as it was read, to keep its pages.
        """
        pages = evidence.page_rows(document) if document is not None else ()

        def job(session: Session, _careful: bool) -> Outcome:
            # one that failed is taken again, and may yet lead back to its rows; a new one has no others
            leads_back = work.is_new or not outcome.status.is_settled
            remarks = () if leads_back else records.withdraw(session, work.id, claimed)
            final = replace(outcome, flags=(*outcome.flags, *remarks))
            ledger.finish(session, work, final, keys, seconds)
            if pages:
                evidence.keep_pages(session, work.document, pages, is_new=work.is_new)
            return final

        return await self._write(job)

    def outcome(self, work: Work, fingerprint: str, source: str) -> Outcome:
        """What an earlier run has settled: nothing is asked, the records are loaded.

        :param fingerprint: the pipeline's present one, to tell whether the outcome is outdated.
        :param source: where the document stands now.
        """
        stands = self.evidence(work)
        results = tuple(self._result(link, stands.get(link["id"], ())) for link in self.links(work))
        return Outcome(
            status=Status(work.status),
            results=results,
            flags=work.flags,
            error=work.error,
            source=source,
            document=work.document,
            is_cached=True,
            is_outdated=work.fingerprint != fingerprint,
        )

    def evidence(self, work: Work) -> dict[int, tuple[Evidence, ...]]:
        """Where the values of a document's records stand, by the number of the call's row."""
        return self.read(lambda session: evidence.of_work(session, work.id))

    def _result(self, link: dict[str, Any], stands: tuple[Evidence, ...]) -> ToolResult:
        return ToolResult(
            call_id=str(link["position"]),
            name=link["function"],
            content=link["content"],
            verdict=Verdict(link["verdict"]),
            processed_content=self.reload(link),
            arguments=link["arguments"],
            flags=tuple(link["flags"]),
            evidence=stands,
        )

    # -- replies -----------------------------------------------------------------------------------------------------

    async def get(self, key: str, since: datetime | None = None) -> Reply | None:
        """The kept reply with that request key.

        :param since: only when it was kept then or later.
        """
        if key in self._unwritten:
            return self._unwritten[key]
        body = self.look(lambda connection: ledger.kept_reply(connection, key, since))
        return reply_from_json(body) if body is not None else None

    async def keep(
        self, key: str, reply: Reply, asked: Asked | None = None, *, replace: bool = False,
        then: Callable[[], object] = lambda: None,
    ) -> None:  # fmt: skip
        """Queue a reply to be kept, with what its ask cost in the same transaction. The writer works in order: it is
        durable before anything that follows from it. ``then`` is called, from another thread, once it is."""

        def job(session: Session, _careful: bool) -> None:
            ledger.keep_reply(session, key, reply, replace=replace)
            if asked is not None:
                ledger.note_ask(session, asked, key)

        self._unwritten[key] = reply

        def durable() -> None:
            self._unwritten.pop(key, None)
            then()

        self._later(job, durable)

    async def charge(self, asked: Asked) -> None:
        """Queue what an ask cost that nobody answered."""
        self._later(lambda session, _: ledger.note_ask(session, asked, None))

    def _later(self, job: Job[None], then: Callable[[], object] = lambda: None) -> None:
        """Queue a job that nobody waits for; its trouble is told by the next one."""

        def written(done: Future[None]) -> None:
            trouble = done.exception()
            if trouble is None:
                then()
            else:
                self._unkept.append((job, then))
                self._trouble = self._trouble or trouble

        self.write(job).add_done_callback(written)

    async def _write(self, job: Job[T]) -> T:
        if self._trouble is not None:  # a reply that was paid for could not be kept: nothing more may be asked now
            trouble, self._trouble = self._trouble, None
            unkept, self._unkept = self._unkept, []
            for one in unkept:
                self._later(*one)  # for whoever goes on: the trouble may have passed
            raise trouble
        return await self._writer.post(job)


def _check_columns(connection: Connection, tables: Iterable[Any]) -> None:
    """Refuse a table that stands in the database without some of its columns, before anything is paid for.

    :raises StoreError: naming the table and what it lacks.
    """
    inspector = sa_inspect(connection)
    for table in tables:
        there = {column["name"] for column in inspector.get_columns(table.name, schema=table.schema)}
        lacking = [column.name for column in table.columns if column.name not in there]
        if lacking:
            raise StoreError(
                f"the table {table.name!r} in the database lacks the column {', '.join(map(repr, lacking))}",
                hint="migrate the table (Alembic), or use another database",
            )


def _tables_of(classes: Iterable[type[Any]]) -> list[Any]:
    """The tables of record types and of everything that their relations and foreign keys lead to."""
    found: dict[Any, None] = {}
    waiting = list(classes)
    while waiting:
        mapper = sa_inspect(waiting.pop())
        table = mapper.local_table
        if table in found:
            continue
        found[table] = None
        records.remember(mapper.class_)
        waiting += [relation.mapper.class_ for relation in mapper.relationships]
        found.update({key.column.table: None for key in table.foreign_keys if key.column.table not in found})
    return list(found)
