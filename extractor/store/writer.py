"""One thread that writes to SQLite.

SQLite takes one writer at a time, so there is one, with a bounded queue. It takes whatever is queued and commits it
as one transaction (no timed window: waiting for more lowers throughput). When anything in the group fails, the group
is rolled back and each job runs again in a transaction of its own, *carefully*: so that one bad record costs nobody
else theirs.

Two things are done once for a group rather than once for a job, since a statement costs more than its rows: objects
that jobs have added to the session are flushed together (a job that needs their keys returns :class:`AfterFlush`), and
rows of our own tables that nobody reads before the commit are put off (:func:`put_off`) and written together.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.orm import Session

from extractor.errors import StoreError

T = TypeVar("T")

GROUP = 64
"""Jobs in one transaction at the most, so that no single commit keeps others waiting for long."""


@dataclass(frozen=True, slots=True)
class AfterFlush(Generic[T]):
    """What a job returns when its result can only be told once what it added to the session is flushed."""

    result: Callable[[], T]


Job = Callable[[Session, bool], T | AfterFlush[T]]
"""Writes through a session. The flag says whether to be careful: savepoints, and refusals told apart."""

_PUT_OFF = "extractor_put_off"


class Statement(Protocol):
    """What is executed for many rows at once."""

    def execute(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Execute it for each of the rows."""


def put_off(session: Session, statement: Statement, row: Mapping[str, Any]) -> None:
    """Execute a statement with this row's parameters before the commit, together with the other rows put off for the
    same statement object. Statements are executed in the order in which they were first put off."""
    session.info.setdefault(_PUT_OFF, {}).setdefault(statement, []).append(row)


def catch_up(session: Session) -> None:
    """Execute what was put off, for somebody who is about to read it."""
    waiting = session.info.pop(_PUT_OFF, None)
    for statement, rows in waiting.items() if waiting else ():
        statement.execute(session.connection(), rows)


@dataclass(frozen=True, slots=True)
class _Queued(Generic[T]):
    job: Job[T]
    done: Future[T] | asyncio.Future[T]

    def begins(self) -> bool:
        """Whether somebody still waits for it; from here on it is not given up any more."""
        if isinstance(self.done, Future):
            return self.done.set_running_or_notify_cancel()
        return not self.done.cancelled()


Settled = tuple["asyncio.Future[Any]", Any, Exception | None]
"""A future of an event loop, with the result or the exception that it is to have."""


class Writer:
    """Runs jobs one after the other in its own thread; ``submit`` may be called from any thread."""

    def __init__(self, engine: Engine, *, depth: int = 1024) -> None:
        self._engine = engine
        self._queue: queue.Queue[_Queued[Any] | None] = queue.Queue(depth)
        self._lock = threading.Lock()
        self._closed = False
        self._connection: Connection | None = None
        """Stays open between transactions; of the writer's thread alone."""
        self._thread = threading.Thread(target=self._run, name="extractor-writer", daemon=True)
        self._thread.start()

    def submit(self, job: Job[T]) -> Future[T]:
        """Queue a job; waits while the queue is full. The future holds the job's result once it is durable.

        :raises StoreError: (through the future) when the database cannot be written.
        """
        done: Future[T] = Future()
        self._put(_Queued(job, done))
        return done

    def post(self, job: Job[T]) -> asyncio.Future[T]:
        """The same as :meth:`submit` for a coroutine: a loop is woken once for a whole group of its jobs."""
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._put(_Queued(job, done))
        return done

    def _put(self, item: _Queued[Any]) -> None:
        with self._lock:
            if self._closed:
                raise StoreError("the store is closed")
            self._queue.put(item)

    def close(self) -> None:
        """Write what is queued, then end the thread."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while True:
            group, ends = self._take()
            if group:
                self._commit(group)
            if ends:
                self._disconnect()
                return

    def _take(self) -> tuple[list[_Queued[Any]], bool]:
        """Everything that is queued now, up to the group's size; waits for the first."""
        group: list[_Queued[Any]] = []
        item = self._queue.get()
        while item is not None:
            group.append(item)
            if len(group) >= GROUP:
                return group, False
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return group, False
        return group, True

    def _commit(self, group: list[_Queued[Any]]) -> None:
        group = [item for item in group if item.begins()]  # nobody waits for the others
        try:
            results = self._transact([item.job for item in group], careful=False)
        except Exception:  # whatever it was, each job is told by itself what became of it
            for item in group:
                _settle([(item, *self._alone(item))])
        else:
            _settle([(item, result, None) for item, result in zip(group, results, strict=True)])

    def _alone(self, item: _Queued[Any]) -> tuple[Any, Exception | None]:
        try:
            (result,) = self._transact([item.job], careful=True)
        except Exception as error:  # it belongs to whoever waits for this job
            return None, as_store_error(error, self._engine)
        return result, None

    def _transact(self, jobs: list[Job[Any]], *, careful: bool) -> list[Any]:
        if self._connection is None:
            self._connection = self._engine.connect()
        with Session(self._connection, expire_on_commit=False, autoflush=False) as session:
            try:
                results = [job(session, careful) for job in jobs]
                if any(isinstance(one, AfterFlush) for one in results):
                    session.flush()
                    results = [one.result() if isinstance(one, AfterFlush) else one for one in results]
                catch_up(session)
                session.commit()
            except BaseException:
                with contextlib.suppress(SQLAlchemyError):
                    session.rollback()
                self._disconnect()  # whatever state it may be in
                raise
            return results

    def _disconnect(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(SQLAlchemyError):
                self._connection.close()
            self._connection = None


def _settle(told: Iterable[tuple[_Queued[Any], Any, Exception | None]]) -> None:
    """Tell whoever waits; futures of an event loop all at once, in its own thread."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Settled]] = {}
    for item, result, error in told:
        if isinstance(item.done, Future):
            item.done.set_result(result) if error is None else item.done.set_exception(error)
        else:
            by_loop.setdefault(item.done.get_loop(), []).append((item.done, result, error))
    for loop, settled in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_settle_here, settled)


def _settle_here(settled: list[Settled]) -> None:
    for done, result, error in settled:
        if done.done():
            continue  # cancelled meanwhile
        if error is None:
            done.set_result(result)
        else:
            done.set_exception(error)


def as_store_error(error: Exception, engine: Engine) -> Exception:
    """A database's trouble as one clear line; any other exception as it is."""
    if not isinstance(error, SQLAlchemyError):
        return error
    reason = str(error.orig) if isinstance(error, DBAPIError) and error.orig is not None else type(error).__name__
    where = engine.url.render_as_string(hide_password=True)
    return StoreError(f"the database {where} cannot be used: {reason.splitlines()[0] if reason else 'unknown reason'}")
