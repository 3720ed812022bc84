"""A cassette out of the replies that a database keeps."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extractor.errors import UsageError
from extractor.messages import Reply
from extractor.models import Model
from extractor.testing.cassettes import Line, Recorded, Tape

if TYPE_CHECKING:
    from extractor.models.resolving import ModelLike
    from extractor.pipeline import Pipeline
    from extractor.store.store import Store


def cassette_from(
    database: Store | str,
    pipeline: Pipeline | str,
    path: str | Path,
    *,
    model: ModelLike | Sequence[ModelLike] | None = None,
) -> int:
    """Write the replies that a database keeps for a pipeline's documents as a cassette; returns how many.

    The same replies give the same file. A database keeps request keys but no questions, so a cassette that was made
    this way cannot say how near a missing question is.

    :param database: a store, or SQLAlchemy's address of an existing database.
    :param pipeline: the pipeline, or its name.
    :param path: of the file; one that is there is replaced.
    :param model: the models that gave the replies, by rank; those that the pipeline asks now, by default.
    :raises UsageError: when there is no such database, no reply, or a reply of a model that is not named.
    """
    name = pipeline if isinstance(pipeline, str) else pipeline.name
    models = _models(pipeline, name, model)
    with _opened(database) as store:
        rows = store.read(lambda session: _kept(session, name))
    if not rows:
        raise UsageError(f"the database keeps no reply for the pipeline {name!r}")
    tape = Tape({}, {})
    for key, rank, reply in rows:
        asked = _who(models, rank, reply)
        tape.models.setdefault(asked.identity, Recorded.of(asked))
        tape.lines.setdefault(key, Line(key, asked.identity, reply))
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    written = target.with_name(f".{target.name}.{os.getpid()}")
    written.write_text(tape.text(), encoding="utf-8")
    written.replace(target)
    return len(tape.lines)


def _models(
    pipeline: Pipeline | str, name: str, given: ModelLike | Sequence[ModelLike] | None
) -> tuple[Model, ...]:  # fmt: skip
    from extractor import configuration
    from extractor.models.resolving import resolve

    own = None if isinstance(pipeline, str) else pipeline.model
    return resolve(configuration.find().setting("model", name, given=given, own=own).value)


@contextlib.contextmanager
def _opened(database: Store | str) -> Iterator[Store]:
    if not isinstance(database, str):
        yield database
        return
    from extractor.store.engine import url_of
    from extractor.store.store import Store

    url = url_of(database)
    if url.get_backend_name() == "sqlite" and not (url.database and Path(url.database).is_file()):
        raise UsageError(f"there is no database {url.database or ':memory:'!r}")  # opening would make an empty one
    store = Store(database)
    try:
        yield store
    finally:
        store.close()


def _kept(session: Any, pipeline: str) -> list[tuple[str, int | None, Reply]]:
    """Every reply that the attempts and the records of a pipeline's documents lead to, with the rank if it is known."""
    from sqlalchemy import select

    from extractor.store import tables as t
    from extractor.store.codec import reply_from_json

    of_pipeline = select(t.work.c.id).where(t.work.c.pipeline == pipeline)
    asked = select(t.attempt.c.reply, t.attempt.c.rank).where(t.attempt.c.work.in_(of_pipeline))
    ranks: dict[str, int | None] = {key: rank for key, rank in session.execute(asked) if key}
    recorded = select(t.record.c.reply).where(t.record.c.work.in_(of_pipeline))
    for (key,) in session.execute(recorded):
        ranks.setdefault(key, None)
    led_to = select(t.attempt.c.reply).where(t.attempt.c.work.in_(of_pipeline)).union(recorded)
    bodies = session.execute(select(t.reply.c.key, t.reply.c.body).where(t.reply.c.key.in_(led_to)))
    return sorted(((key, ranks[key], reply_from_json(body)) for key, body in bodies), key=lambda row: row[0])


def _who(models: Sequence[Model], rank: int | None, reply: Reply) -> Model:
    """The model that gave a reply: by the name in the reply, else by its rank."""
    for one in models:
        if reply.model and one.name == reply.model:
            return one
    if not reply.model:
        place = 0 if rank is None and len(models) == 1 else rank
        if place is not None and place < len(models):
            return models[place]
    names = ", ".join(one.name for one in models)
    who = repr(reply.model) if reply.model else "a model that is not known"
    raise UsageError(f"a reply was given by {who}, which is none of: {names}", hint="name them all by model=")
