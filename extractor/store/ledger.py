"""Statements over our own tables. Each takes a session and leaves the transaction to its caller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, delete, func, insert, select, update
from sqlalchemy.dialects.sqlite import insert as upsert
from sqlalchemy.orm import Session

from extractor.feedback import clean
from extractor.messages import Reply, Unanswered
from extractor.outcome import Attempt, Outcome, Status
from extractor.store import tables as t
from extractor.store.codec import reply_to_json, result_summary
from extractor.store.prepared import Prepared, PreparedInsert
from extractor.store.writer import AfterFlush, put_off

RUNNING = "running"
REPLY = "reply"

# Statements that are made once: to make one costs more than to execute it.
FIND_WORK = select(t.work).where(
    t.work.c.document == bindparam("document"), t.work.c.pipeline == bindparam("pipeline")
)  # fmt: skip
FIND_REPLY = select(t.reply.c.body, t.reply.c.kept_at).where(t.reply.c.key == bindparam("key"))
INSERT_DOCUMENT = Prepared(upsert(t.document).on_conflict_do_nothing(), t.document.c.keys())
_FIRST = {"error": "", "flags": [], "model": "", "attempts": 0, "seconds": 0.0}
_FIRST |= {"input_tokens": 0, "output_tokens": 0, "cached_tokens": 0}
_BEGUN_WORK = ("document", "pipeline", "status", "fingerprint", "run", "source", "started_at")
INSERT_WORK = PreparedInsert(t.work, (*_BEGUN_WORK, *_FIRST), ("id", "document", "pipeline"))
INSERT_REPLY = Prepared(upsert(t.reply).on_conflict_do_nothing(), t.reply.c.keys())
_REPLY = upsert(t.reply)
REPLACE_REPLY = Prepared(
    _REPLY.on_conflict_do_update(
        index_elements=[t.reply.c.key],
        set_={name: _REPLY.excluded[name] for name in ("model", "body", "kept_at")},
    ),
    t.reply.c.keys(),
)
INSERT_ASK = Prepared(insert(t.ask), [column.name for column in t.ask.c if column.name != "id"])
INSERT_ATTEMPT = Prepared(upsert(t.attempt).on_conflict_do_nothing(), t.attempt.c.keys())
_SETTLED_WORK = ("status", "error", "cause", "flags", "model", "attempts", "input_tokens", "output_tokens")
UPDATE_WORK = Prepared(
    update(t.work).where(t.work.c.id == bindparam("of")), (*_SETTLED_WORK, "cached_tokens", "seconds", "finished_at")
)
DELETE_ATTEMPTS = Prepared(delete(t.attempt).where(t.attempt.c.work == bindparam("of")))
# Whether there is anything at all; mostly there is not, and a row that is there is read by the statements above.
_IS_WORK = f"SELECT 1 FROM {t.work.name} WHERE document = ? AND pipeline = ?"  # noqa: S608 - no value is in it
_IS_REPLY = f"SELECT 1 FROM {t.reply.name} WHERE key = ?"  # noqa: S608

_NEW, _BEGUN = "extractor_new", "extractor_begun"


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


@dataclass(frozen=True, slots=True)
class Asked:
    """One live ask: for which document, who was asked, what it came to, and what it cost (``None`` is unknown)."""

    run: int | None
    work: int
    pipeline: str
    document: str
    model: str
    rank: int
    answer: Reply | Unanswered
    cost: Decimal | None
    tags: tuple[str, ...] = ()


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


def find_work(connection: Connection, document: str, pipeline: str) -> Work | None:
    """The work of a document in a pipeline, if there is any."""
    if connection.exec_driver_sql(_IS_WORK, (document, pipeline)).first() is None:
        return None
    row = connection.execute(FIND_WORK, {"document": document, "pipeline": pipeline}).mappings().first()
    return _work(row) if row is not None else None


def begin(
    session: Session, seen: Seen, pipeline: str, fingerprint: str, run: int | None, *, is_new: bool = False
) -> Work | AfterFlush[Work]:
    """Begin a document, or go on with it; a settled one is returned as it is.

    :param is_new: it was looked for just now and is not there; if somebody else was faster, the database refuses it.
    """
    seen = replace(seen, source=clean(seen.source))
    found = find_work(session.connection(), seen.hash, pipeline) if not is_new else None
    if found is not None and found.is_settled:
        return found
    if found is not None:
        started = {"status": RUNNING, "fingerprint": fingerprint, "run": run, "source": seen.source}
        session.execute(update(t.work).where(t.work.c.id == found.id).values(**started, started_at=now()))
        return replace(found, status=RUNNING, fingerprint=fingerprint, source=seen.source)
    begun = {"status": RUNNING, "fingerprint": fingerprint, "run": run, "source": seen.source, "started_at": now()}
    document = {"hash": seen.hash, "source": seen.source, "size": seen.size, "seen_at": begun["started_at"]}
    work = {"document": seen.hash, "pipeline": pipeline, **begun, **_FIRST}
    session.info.setdefault(_NEW, []).append((document, work))

    def inserted() -> Work:
        key = _inserted(session)[seen.hash, pipeline]
        return Work(key, seen.hash, pipeline, RUNNING, fingerprint, seen.source, "", (), "", 0, 0, 0, 0, is_new=True)

    return AfterFlush(inserted)


def _inserted(session: Session) -> dict[tuple[str, str], int]:
    """Insert every document that a group has begun, with one statement for all; the numbers of their works."""
    numbers: dict[tuple[str, str], int] = session.info.setdefault(_BEGUN, {})
    waiting = session.info.pop(_NEW, None)
    if waiting:
        connection = session.connection()
        INSERT_DOCUMENT.execute(connection, [document for document, _ in waiting])
        for number, document, pipeline in INSERT_WORK.execute(connection, [work for _, work in waiting]):
            numbers[document, pipeline] = number
    return numbers


def keep_reply(session: Session, key: str, reply: Reply, *, replace: bool = False) -> None:
    """Keep a reply; the first one stands, unless it is to be replaced."""
    values = {"key": key, "model": reply.model, "body": reply_to_json(reply), "kept_at": now()}
    put_off(session, REPLACE_REPLY if replace else INSERT_REPLY, values)


def kept_reply(connection: Connection, key: str, since: datetime | None = None) -> str | None:
    """The kept reply's JSON text.

    :param since: only when it was kept then or later.
    """
    if connection.exec_driver_sql(_IS_REPLY, (key,)).first() is None:
        return None
    row = connection.execute(FIND_REPLY, {"key": key}).first()
    if row is None or (since is not None and row.kept_at.replace(tzinfo=UTC) < since):  # SQLite forgets the zone
        return None
    body: str = row.body
    return body


def note_ask(session: Session, asked: Asked, key: str | None) -> None:
    """Note what a live ask came to.

    :param key: of the reply that it brought, if any.
    """
    answer, usage = asked.answer, asked.answer.usage
    values = {
        "run": asked.run, "work": asked.work, "pipeline": asked.pipeline, "document": asked.document,
        "model": clean(asked.model), "rank": asked.rank, "reply": key,
        "kind": answer.kind if isinstance(answer, Unanswered) else REPLY,
        "input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens, "cached_tokens": usage.cached_tokens,
        "cost": format(asked.cost.normalize(), "f") if asked.cost is not None else None,
        "tags": list(asked.tags), "asked_at": now(),
    }  # fmt: skip
    put_off(session, INSERT_ASK, values)


def models_of(session: Session, pipeline: str) -> dict[str, str]:
    """Which model gave each reply that a record of a pipeline is from: as the ask has it, else as the reply does."""
    records = select(t.record.c.reply).join(t.work, t.work.c.id == t.record.c.work).where(t.work.c.pipeline == pipeline)
    found: dict[str, str] = {}
    for key, model in ((t.reply.c.key, t.reply.c.model), (t.ask.c.reply, t.ask.c.model)):
        found |= {row[0]: row[1] for row in session.execute(select(key, model).where(key.in_(records))) if row[1]}
    return found


def answers(session: Session, pipeline: str, model: str) -> tuple[int, int, int]:
    """How many documents of a pipeline a model has settled, and the attempts and output tokens that they took."""
    mine = (t.work.c.pipeline == pipeline) & (t.work.c.model == model) & (t.work.c.attempts > 0)
    columns = (func.count(), func.sum(t.work.c.attempts), func.sum(t.work.c.output_tokens))
    row = session.execute(select(*columns).where(mine & t.work.c.finished_at.is_not(None))).one()
    return row[0], row[1] or 0, row[2] or 0


def finish(session: Session, work: Work, outcome: Outcome, keys: Iterable[str | None], seconds: float) -> None:
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
    put_off(session, UPDATE_WORK, {"of": work.id, **values})
    if not work.is_new:
        DELETE_ATTEMPTS.execute(
            session.connection(), [{"of": work.id}]
        )  # at once: rows that are put off may be its new ones
    for row in _attempt_rows(work.id, outcome.attempts, iter(keys)):
        put_off(session, INSERT_ATTEMPT, row)


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
