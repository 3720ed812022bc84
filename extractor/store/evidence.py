"""Where the values of records stand, and the pages that they stand on: rows of our own.

Evidence goes with its record: it is written in the transaction of the record, and the database deletes it with the
record, whatever the record is deleted for.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from sqlalchemy import Connection, delete, insert, select
from sqlalchemy.dialects.sqlite import insert as upsert
from sqlalchemy.orm import Session

from extractor.documents.document import Box, Document, Page, Words
from extractor.evidence.values import Evidence
from extractor.feedback import clean
from extractor.store import tables as t
from extractor.store.prepared import Prepared, PreparedInsert
from extractor.store.writer import put_off

AT_ONCE = 200
"""Records in one statement: a database takes only so many parameters."""

_RECORD = [column.name for column in t.record.c if column.name != "id"]
INSERT_RECORDS = PreparedInsert(t.record, _RECORD, ("id", "work", "reply", "position"))
INSERT_EVIDENCE = Prepared(insert(t.evidence), t.evidence.c.keys())
INSERT_PAGE = Prepared(upsert(t.page).on_conflict_do_nothing(), t.page.c.keys())

EVIDENCE = "evidence"
"""The key under which a record's row carries the rows of its evidence."""


class _Records:
    """Inserts records together with their evidence, which needs the numbers that the records are given."""

    def execute(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert each of the rows, and what it carries."""
        waiting = iter(rows)
        while some := list(islice(waiting, AT_ONCE)):
            given = INSERT_RECORDS.execute(connection, some)
            numbers = {(work, reply, position): number for number, work, reply, position in given}
            found = [
                {**one, "record": numbers[row["work"], row["reply"], row["position"]]}
                for row in some
                for one in row[EVIDENCE]
            ]
            if found:
                INSERT_EVIDENCE.execute(connection, found)


INSERT = _Records()


def rows(evidence: Sequence[Evidence], crops: Mapping[str, bytes] | None = None) -> list[dict[str, Any]]:
    """The rows of a record's evidence, without the number of the record.

    :param crops: pictures of the places, by path.
    """
    pictures = crops or {}
    return [
        {
            "number": number, "path": one.path, "match": one.match, "score": one.score, "page": one.page,
            "start": one.start, "end": one.end, "printed": clean(one.printed), "snippet": clean(one.snippet),
            "boxes": [[round(side, 1) for side in box] for box in one.boxes] or None, "crop": pictures.get(one.path),
        }
        for number, one in enumerate(evidence)
    ]  # fmt: skip


def of_work(session: Session, work: int) -> dict[int, tuple[Evidence, ...]]:
    """The evidence of every record of a document, by the number of the record."""
    names = [t.evidence.c[name] for name in ("record", *Evidence.__dataclass_fields__)]
    query = select(*names).join(t.record, t.record.c.id == t.evidence.c.record).where(t.record.c.work == work)
    found: dict[int, list[Evidence]] = {}
    for number, *values in session.execute(query.order_by(t.evidence.c.record, t.evidence.c.number)):
        one = dict(zip(Evidence.__dataclass_fields__, values, strict=True))
        one["boxes"] = tuple(Box(*box) for box in one["boxes"] or ())
        found.setdefault(number, []).append(Evidence(**one))
    return {number: tuple(evidence) for number, evidence in found.items()}


# -- pages -------------------------------------------------------------------------------------------------------------


def page_rows(document: Document) -> list[dict[str, Any]]:
    """The rows of a document's pages."""
    return [
        {
            "document": document.id, "number": page.number, "text": _packed(page.text), "width": page.width,
            "hidden": _packed(page.hidden) if page.hidden else None, "height": page.height, "status": page.status,
            "rotation": page.rotation, "how": clean(page.how), "reason": clean(page.reason),
            "confidence": page.confidence,
        }
        for page in document.pages
    ]  # fmt: skip


def keep_pages(session: Session, document: str, rows: Iterable[Mapping[str, Any]], *, is_new: bool) -> None:
    """Keep the pages of a document.

    :param is_new: nobody has read it yet, or another pipeline just now; else the pages as they were read before are
        replaced.
    """
    if not is_new:
        session.execute(delete(t.page).where(t.page.c.document == document))
    for row in rows:
        put_off(session, INSERT_PAGE, row)


def pages(session: Session, document: str) -> Iterator[Page]:
    """The pages of a document as they were read, in order; without the places of their words."""
    query = select(t.page).where(t.page.c.document == document).order_by(t.page.c.number)
    for row in session.execute(query).mappings():
        yield Page(
            number=row["number"], text=_unpacked(row["text"]), width=row["width"], height=row["height"],
            status=row["status"], how=row["how"], reason=row["reason"], words=Words(), rotation=row["rotation"],
            confidence=row["confidence"], hidden=_unpacked(row["hidden"]) if row["hidden"] is not None else "",
        )  # fmt: skip


def _packed(text: str) -> bytes:
    return zlib.compress(text.encode("utf-8", "replace"))


def _unpacked(packed: bytes) -> str:
    return zlib.decompress(packed).decode()
