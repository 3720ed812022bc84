"""Statements over our own tables. Each takes a session and leaves the transaction to its caller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import RowMapping, delete, func, insert, select, update
from sqlalchemy.dialects.sqlite import insert as upsert
from sqlalchemy.orm import Session

from extractor.feedback import clean
from extractor.messages import Reply, Unanswered
from extractor.outcome import Attempt, Outcome, Status
from extractor.store import tables as t
from extractor.store.codec import reply_to_json, result_summary

RUNNING = "running"


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of a document before its text is read: the hash of its bytes, where it stands, its size."""

    hash: str
    source: str
    size: int


@dataclass(frozen=True, slots=True)
class Work:
    """One document in one pipeline. ``status`` is ``running`` until it is settled or failed."""

    id: int
    document: str
    pipeline: str
    status: str
    fingerprint: str
    source: str
    error: str
    flags: tuple[str, ...]
    model: str
    attempts: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    is_new: bool = False

    @property
    def is_settled(self) -> bool:
        """Whether nothing is to be asked for it."""
        return self.status != RUNNING and Status(self.status).is_settled


def now() -> datetime:
    """The present time, in UTC."""
    return datetime.now(UTC)


def start_run(session: Session, pipeline: str, fingerprint: str, models: str) -> int:
    """Note that a run begins; returns its number."""
    values = {"pipeline": pipeline, "fingerprint": fingerprint, "models": models, "started_at": now()}
    number: int = session.execute(insert(t.run).values(values).returning(t.run.c.id)).scalar_one()
    return number


def end_run(session: Session, run: int, stopped_by: str | None) -> None:
    """Note that a run has ended, and why it ended early if it did."""
    session.execute(update(t.run).where(t.run.c.id == run).values(finished_at=now(), stopped_by=stopped_by))


def find_work(session: Session, document: str, pipeline: str) -> Work | None:
    """The work of a document in a pipeline, if there is any."""
    row = session.execute(select(t.work).where(t.work.c.document == document, t.work.c.pipeline == pipeline)).mappings()
    return next((_work(one) for one in row), None)


def begin(session: Session, seen: Seen, pipeline: str, fingerprint: str, run: int | None) -> Work:
    """Begin a document, or go on with it; a settled one is returned as it is."""
    seen = replace(seen, source=clean(seen.source))
    found = find_work(session, seen.hash, pipeline)
    if found is not None and found.is_settled:
        return found
    if found is not None:
        started = {"status": RUNNING, "fingerprint": fingerprint, "run": run, "source": seen.source}
        session.execute(update(t.work).where(t.work.c.id == found.id).values(**started, started_at=now()))
        return replace(found, status=RUNNING, fingerprint=fingerprint, source=seen.source)
    session.execute(
        upsert(t.document)
        .values(hash=seen.hash, source=seen.source, size=seen.size, seen_at=now())
        .on_conflict_do_nothing()
    )
    values = {
        "document": seen.hash,
        "pipeline": pipeline,
        "status": RUNNING,
        "fingerprint": fingerprint,
        "run": run,
        "source": seen.source,
        "started_at": now(),
    }
    key = session.execute(insert(t.work).values(values).returning(t.work.c.id)).scalar_one()
    return Work(key, seen.hash, pipeline, RUNNING, fingerprint, seen.source, "", (), "", 0, 0, 0, 0, is_new=True)


def keep_reply(session: Session, key: str, reply: Reply) -> None:
    """Keep a reply; the first one stands."""
    values = {"key": key, "model": reply.model, "body": reply_to_json(reply), "kept_at": now()}
    session.execute(upsert(t.reply).values(values).on_conflict_do_nothing())


def kept_reply(session: Session, key: str) -> str | None:
    """The kept reply's JSON text."""
    return session.execute(select(t.reply.c.body).where(t.reply.c.key == key)).scalar()


def finish(session: Session, work: int, outcome: Outcome, keys: Iterable[str | None], seconds: float) -> None:
    """Settle a document (or note that it failed), with its attempts.

    :param keys: the request key of each attempt that was answered, in order.
    """
    models = [a.answer.model for a in outcome.attempts if isinstance(a.answer, Reply)]
    values = {
        "status": str(outcome.status),
        "error": clean(outcome.error),
        "cause": clean(outcome.cause) if outcome.cause is not None else None,
        "flags": [clean(flag) for flag in outcome.flags],
        "model": models[-1] if models else "",
        "attempts": len(models),
        "input_tokens": outcome.usage.input_tokens,
        "output_tokens": outcome.usage.output_tokens,
        "cached_tokens": outcome.usage.cached_tokens,
        "seconds": seconds,
        "finished_at": now(),
    }
    session.execute(update(t.work).where(t.work.c.id == work).values(values))
    session.execute(delete(t.attempt).where(t.attempt.c.work == work))
    rows = list(_attempt_rows(work, outcome.attempts, iter(keys)))
    if rows:
        session.execute(insert(t.attempt), rows)


def _attempt_rows(work: int, attempts: Iterable[Attempt], keys: Any) -> Iterable[dict[str, Any]]:
    for number, attempt in enumerate(attempts):
        answer = attempt.answer
        row = {"work": work, "number": number, "rank": attempt.rank}
        if isinstance(answer, Unanswered):
            yield {**row, "reply": None, "results": [{"cause": answer.cause}]}
        else:
            yield {**row, "reply": next(keys, None), "results": [result_summary(one) for one in attempt.results]}


def links(session: Session, work: int) -> list[Mapping[str, Any]]:
    """The accepted and duplicate calls of a document, in the order in which they were written."""
    rows = session.execute(select(t.record).where(t.record.c.work == work).order_by(t.record.c.id))
    return [dict(row) for row in rows.mappings()]


def counts(session: Session, pipeline: str | None) -> list[Mapping[str, Any]]:
    """Documents, attempts and tokens by pipeline and status."""
    columns = (
        t.work.c.pipeline,
        t.work.c.status,
        func.count().label("documents"),
        func.sum(t.work.c.attempts).label("attempts"),
        func.sum(t.work.c.input_tokens).label("input_tokens"),
        func.sum(t.work.c.output_tokens).label("output_tokens"),
        func.sum(t.work.c.seconds).label("seconds"),
    )
    query = select(*columns).group_by(t.work.c.pipeline, t.work.c.status).order_by(t.work.c.pipeline, t.work.c.status)
    if pipeline is not None:
        query = query.where(t.work.c.pipeline == pipeline)
    return [dict(row) for row in session.execute(query).mappings()]


def works(session: Session, pipeline: str | None, statuses: Iterable[str] = ()) -> list[Mapping[str, Any]]:
    """The work rows of a pipeline (of all, without one), newest last."""
    query = select(t.work).order_by(t.work.c.id)
    if pipeline is not None:
        query = query.where(t.work.c.pipeline == pipeline)
    wanted = tuple(statuses)
    if wanted:
        query = query.where(t.work.c.status.in_(wanted))
    return [dict(row) for row in session.execute(query).mappings()]


def _work(row: RowMapping) -> Work:
    names = ("id", "document", "pipeline", "status", "fingerprint", "source", "error", "model", "attempts")
    tokens = ("input_tokens", "output_tokens", "cached_tokens")
    return Work(**{name: row[name] for name in (*names, *tokens)}, flags=tuple(row["flags"]))
