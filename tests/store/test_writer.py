"""The writer as coroutines see it: durable when told, told together, and nothing told to those who left."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.orm import Session

from extractor.errors import StoreError
from extractor.store.engine import open_engine
from extractor.store.writer import Writer


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    """A writer over a database of its own."""
    engine = open_engine(make_url(f"sqlite:///{tmp_path}/w.db"))
    found = Writer(engine)
    found.submit(lambda session, _: session.execute(text("CREATE TABLE seen (n INTEGER UNIQUE)"))).result()
    yield found
    found.close()
    engine.dispose()


def put(number: int) -> Any:
    """A job that writes a number, and returns it."""

    def job(session: Session, _careful: bool) -> int:
        session.execute(text("INSERT INTO seen VALUES (:n)"), {"n": number})
        return number

    return job


def numbers(writer: Writer) -> list[int]:
    """What is in the database."""
    return writer.submit(lambda session, _: [row[0] for row in session.execute(text("SELECT n FROM seen"))]).result()


def test_what_a_coroutine_was_told_is_in_the_database(writer: Writer) -> None:
    """Each of many jobs is answered with its own result, and all of them are written."""

    async def write() -> list[int]:
        return await asyncio.gather(*(writer.post(put(number)) for number in range(200)))

    assert asyncio.run(write()) == list(range(200))
    assert numbers(writer) == list(range(200))


def test_one_that_is_refused_costs_the_others_nothing(writer: Writer) -> None:
    """The job that breaks a rule is told so, as a trouble of the store; its neighbours are written."""

    async def write() -> list[Any]:
        return await asyncio.gather(*(writer.post(put(n)) for n in (1, 1, 2)), return_exceptions=True)

    first, second, third = asyncio.run(write())
    assert (first, third) == (1, 2)
    assert isinstance(second, StoreError)
    assert numbers(writer) == [1, 2]


def test_a_loop_that_has_ended_is_no_trouble(writer: Writer) -> None:
    """A job whose loop was closed in the meantime is written or left, and the writer goes on."""
    held = threading.Event()
    writer.submit(lambda _session, _careful: held.wait())

    async def leave() -> None:
        writer.post(put(7))

    asyncio.run(leave())
    held.set()
    assert numbers(writer) in ([], [7])
    assert writer.submit(put(8)).result() == 8
