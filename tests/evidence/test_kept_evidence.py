"""Evidence and pages are kept with the record, and go with it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from ledger_schema import Tick
from sqlalchemy.orm import Session

from extractor.documents import Document
from extractor.documents.document import Box, Page
from extractor.errors import OutcomeError
from extractor.evidence import Evidence
from extractor.messages import ToolResult
from extractor.outcome import Outcome, Status
from extractor.store import evidence
from extractor.store.ledger import Seen, Work
from extractor.store.records import Link, Written
from extractor.store.store import Store

HASH = "a" * 64
FOUND = (
    Evidence("name", "Jürgen", "exact", 1.0, 1, 4, 10, (Box(10.0, 20.5, 60.0, 32.0),), "Herr Jürgen Berg"),
    Evidence("lines.0.amount", "1.234,50", "normalised", 0.95, 2, 0, 8),
    Evidence("lines.1.amount", "7", "absent", 0.0),
)
READ = Document(
    HASH, "a.pdf", "application/pdf",
    (
        Page(1, "Herr Jürgen Berg", 595.0, 842.0, hidden="pay me", rotation=90.0, how="OCR", confidence=0.91),
        Page(2, "", status="failed", reason="it is broken"),
    ),
    10,
)  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store with one table of the user's."""
    store = Store(f"sqlite:///{tmp_path}/kept.db")
    store.prepare([Tick])
    yield store
    store.close()


def accepted(name: str, found: tuple[Evidence, ...] = FOUND, position: int = 0) -> Written:
    """An accepted call with its evidence."""
    result = ToolResult("c", "create_tick", "SUCCESS", processed_content=Tick(name=name), arguments={}, evidence=found)
    return Written("key", position, "hash", result, {"name": b"a picture"})


def settled(store: Store, *calls: Written, pipeline: str = "ticks", document: Document = READ) -> Work:
    """A document with these calls, through to its end."""

    async def all_of_it() -> Work:
        work = await store.begin(Seen(document.id, document.source, document.size), pipeline, "f")
        results = await store.flush(work, calls, frozenset())
        outcome = Outcome(Status.DONE, results=results)
        claimed = {Link(one.reply, one.position) for one in calls}
        await store.finish(work, outcome, ["key"], 0.1, claimed, document)
        return await store.begin(Seen(document.id, document.source, document.size), pipeline, "f")

    return asyncio.run(all_of_it())


def rows(store: Store, query: str) -> list[tuple[object, ...]]:
    """What stands in the file."""
    with sqlite3.connect(str(store.url.database)) as database:
        return database.execute(query).fetchall()


def test_evidence_of_an_earlier_run_is_that_which_was_written(store: Store) -> None:
    """A settled document comes back with where its values stand, boxes and all."""
    outcome = store.outcome(settled(store, accepted("one")), "f", "a.pdf")
    assert outcome.results[0].evidence == FOUND
    assert outcome.evidence["lines.0.amount"] == outcome.evidence["lines[0].amount"] == FOUND[1]
    assert list(outcome.evidence) == ["name", "lines.0.amount", "lines.1.amount"]
    assert [one.is_found for one in outcome.evidence.values()] == [True, True, False]
    assert rows(store, "select path, crop from extractor_evidence where crop is not null") == [("name", b"a picture")]


def test_each_record_has_its_own_evidence(store: Store) -> None:
    """Of several records, evidence is asked for by the record."""
    other = (Evidence("name", "two", "exact", 1.0, 1, 0, 3),)
    work = settled(store, accepted("one"), accepted("none", (), 1), accepted("two", other, 2))
    outcome = store.outcome(work, "f", "a.pdf")
    assert [tuple(outcome.evidence_of(record).values()) for record in outcome.records] == [FOUND, (), other]
    with pytest.raises(OutcomeError, match="has 3 records"):
        _ = outcome.evidence
    with pytest.raises(OutcomeError, match="no record of the outcome"):
        outcome.evidence_of(Tick(name="one"))


def test_evidence_goes_with_its_record(store: Store) -> None:
    """Whatever deletes a call's row, its evidence is gone too."""
    work = settled(store, accepted("one"), accepted("two", position=1))
    assert rows(store, "select count(*) from extractor_evidence") == [(6,)]

    def take_back(session: Session, _careful: bool) -> None:
        from extractor.store.records import withdraw

        withdraw(session, work.id, {Link("key", 1)})

    store.write(take_back).result()
    assert rows(store, "select record, count(*) from extractor_evidence group by 1") == [(2, 3)]


def test_the_pages_of_a_document_are_kept_once(store: Store) -> None:
    """A second pipeline adds no pages; they come back as they were read."""
    settled(store, accepted("one"))
    settled(store, pipeline="others")
    assert rows(store, "select number, status from extractor_page order by 1") == [(1, "read"), (2, "failed")]
    assert store.read(lambda session: tuple(evidence.pages(session, HASH))) == READ.pages


def test_pages_that_are_read_again_take_the_place_of_the_old_ones(store: Store) -> None:
    """A document that failed and is taken again is kept as it was read last."""

    async def twice() -> None:
        for text in ("first", "second"):
            read = Document(HASH, "a.txt", "text/plain", (Page(1, text),), 5)
            work = await store.begin(Seen(HASH, "a.txt", 5), "ticks", "f")
            await store.finish(work, Outcome(Status.FAILED), [], 0.1, frozenset(), read)

    asyncio.run(twice())
    assert [page.text for page in store.read(lambda session: list(evidence.pages(session, HASH)))] == ["second"]


def test_many_records_of_one_reply_are_numbered_as_they_were_sent(store: Store) -> None:
    """More records than go into one statement keep their order, each with its own evidence."""
    calls = [accepted(str(n), (Evidence("name", str(n), "exact"),), n) for n in range(evidence.AT_ONCE + 5)]
    outcome = store.outcome(settled(store, *calls), "f", "a.pdf")
    assert [record.name for record in outcome.records] == [str(n) for n in range(evidence.AT_ONCE + 5)]
    assert all(outcome.evidence_of(record)["name"].printed == record.name for record in outcome.records)
