"""A record and what belongs to it.

No ``from __future__ import annotations`` here: SQLModel cannot read a table's relations with it.
"""

import json
import time as clock
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, Optional
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy.orm import registry
from sqlalchemy.orm.exc import DetachedInstanceError
from sqlmodel import Field, Relationship, Session, SQLModel, create_engine, select

from extractor.errors import StoreError
from extractor.store import graph
from extractor.store.forms import json_text
from extractor.store.money import make_exact


class Tables(SQLModel, registry=registry()):
    """Tables of their own, so that names stay free for other tests."""


class Kind(Enum):
    BILL = "bill"
    CREDIT = "credit note"


class TagLink(Tables, table=True):
    invoice_id: int = Field(foreign_key="invoice.id", primary_key=True)
    tag_id: int = Field(foreign_key="tag.id", primary_key=True)


class Tag(Tables, table=True):
    id: int | None = Field(default=None, primary_key=True)
    name: str


class Supplier(Tables, table=True):
    code: str = Field(primary_key=True)
    name: str = "?"
    invoices: list["Invoice"] = Relationship(back_populates="supplier")


class Invoice(Tables, table=True):
    __table_args__ = (
        sa.UniqueConstraint("supplier_code", "printed_number"),
        sa.Index("one_open", "kind", unique=True, sqlite_where=sa.text("total < 0")),
        sa.Index("lower_number", sa.text("lower(printed_number)"), unique=True),
        sa.Index("by_day", "day", "total", unique=True),
    )
    id: int | None = Field(default=None, primary_key=True)
    supplier_code: str | None = Field(default=None, foreign_key="supplier.code")
    number: str = Field(sa_column=sa.Column("printed_number", sa.String, nullable=False))
    total: Decimal = Field(max_digits=20, decimal_places=2)
    free: Decimal | None = None
    day: date | None = None
    at: time | None = None
    seen: datetime | None = None
    local: datetime | None = Field(default=None, sa_column=sa.Column(sa.DateTime))
    took: timedelta | None = None
    kind: Kind = Kind.BILL
    is_paid: bool = False
    rate: float = 0.0
    raw: bytes | None = None
    token: UUID | None = Field(default=None, unique=True)
    extra: Any = Field(default=None, sa_column=sa.Column(sa.JSON))
    made: datetime | None = Field(default=None, sa_column_kwargs={"server_default": sa.func.now()})
    serial: UUID = Field(default_factory=uuid4)
    lines: list["Line"] = Relationship(back_populates="invoice", cascade_delete=True)
    terms: Optional["Terms"] = Relationship(sa_relationship_kwargs={"uselist": False})
    supplier: Supplier | None = Relationship(back_populates="invoices")
    tags: list[Tag] = Relationship(link_model=TagLink)


class Line(Tables, table=True):
    id: int | None = Field(default=None, primary_key=True)
    invoice_id: int | None = Field(default=None, foreign_key="invoice.id", nullable=False)
    text: str
    amount: Decimal = Field(max_digits=20, decimal_places=2)
    invoice: Invoice | None = Relationship(back_populates="lines")
    notes: list["Note"] = Relationship(sa_relationship_kwargs={"lazy": "raise"})


class Note(Tables, table=True):
    line_id: int | None = Field(default=None, foreign_key="line.id", primary_key=True)
    position: int = Field(primary_key=True)
    text: str


class Terms(Tables, table=True):
    invoice_id: int | None = Field(default=None, foreign_key="invoice.id", primary_key=True)
    days: int


make_exact(Tables.metadata)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Any]:
    """An SQLite file with the tables in it."""
    made = create_engine(f"sqlite:///{tmp_path / 'graph.db'}", json_serializer=json_text)
    Tables.metadata.create_all(made)
    yield made
    made.dispose()


def invoice(**changes: Any) -> Invoice:
    """An invoice with two lines, one of them with a note, and terms."""
    lines = [
        Line(text="paper", amount=Decimal("1.5"), notes=[Note(position=1, text="white")]),
        Line(text="ink", amount=Decimal(2), notes=[]),
    ]
    return Invoice(**{"number": "A-1", "total": Decimal("3.5"), "lines": lines, "terms": Terms(days=30), **changes})


EVERYTHING: dict[str, Any] = {
    "free": Decimal("-1E+3"),
    "day": date(2024, 3, 5),
    "at": time(12, 30),
    "seen": datetime(2024, 3, 5, 12, 0, 0, 7, tzinfo=timezone(timedelta(hours=2))),
    "local": datetime(2024, 3, 5, 12, 0, tzinfo=timezone(timedelta(hours=2))),
    "took": timedelta(hours=5),
    "kind": Kind.CREDIT,
    "is_paid": True,
    "rate": 2.0,
    "raw": b"\x00\xff",
    "token": UUID(int=5),
    "extra": {"b": (1, 2.0, Decimal("1.50")), "a": None, "c": date(2024, 1, 1)},
}


def written(engine: Any, record: Any) -> str:
    """Write a record; its hash from right after the flush."""
    with Session(engine) as session:
        session.add(record)
        session.flush()
        found = graph.row_hash(record)
        session.commit()
    return found


def hash_in(engine: Any) -> str:
    """The hash of the one invoice in the file, read anew."""
    with Session(engine) as session:
        return graph.row_hash(session.exec(select(Invoice)).one())


def test_the_graph_of_a_new_record_is_all_that_add_would_write() -> None:
    """The graph holds the record, its children and the new records it refers to, each after those it needs."""
    supplier = Supplier(code="s")
    record = invoice(supplier=supplier, tags=[Tag(name="t")])
    found = graph.graph(record)
    with Session(create_engine("sqlite://")) as session:
        session.add(record)
        assert {id(one) for one in session.new} == {id(one) for one in found}
    place = {id(one): number for number, one in enumerate(found)}
    assert place[id(supplier)] < place[id(record)] < place[id(record.lines[0])] < place[id(record.lines[0].notes[0])]
    assert graph.graph(record.lines[1])[0] is supplier


def test_what_is_in_the_database_already_is_no_part_of_a_new_graph(engine: Any) -> None:
    """A parent that was written earlier is left out, and so is a record that was written itself."""
    with Session(engine) as session:
        supplier = Supplier(code="s")
        session.add(supplier)
        session.flush()
        with session.no_autoflush:
            record = Invoice(number="1", total=Decimal(1), supplier=supplier)
            assert graph.graph(record) == (record,)
        session.add(record)
        session.flush()
        assert graph.graph(record) == ()


def test_an_address_is_table_and_key(engine: Any) -> None:
    """A written record is found again by its table's name and its primary key; a new one has no address."""
    record = invoice()
    with pytest.raises(StoreError, match="record of Invoice is not in the database"):
        graph.address(record)
    with Session(engine) as session:
        session.add(record)
        session.flush()
        assert graph.address(record) == ("invoice", (record.id,))
        assert graph.address(record.lines[0].notes[0]) == ("note", (record.lines[0].id, 1))
        session.commit()
        assert graph.address(record) == ("invoice", (1,))


def test_the_hash_is_the_same_when_the_row_is_read_again(engine: Any) -> None:
    """Values of every type hash alike on their way in and when read in another session."""
    assert written(engine, invoice(**EVERYTHING, supplier=Supplier(code="s"), tags=[Tag(name="t")])) == hash_in(engine)


AMOUNTS = st.decimals("-1e15", "1e15", allow_nan=False, places=4)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(-1e20, 1e20) | st.text(max_size=5) | AMOUNTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=60, deadline=None)
@given(
    st.fixed_dictionaries(
        {
            "total": AMOUNTS,
            "free": AMOUNTS | st.none(),
            "number": st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
            "day": st.dates() | st.none(),
            "at": st.times() | st.none(),
            "seen": st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1), timezones=st.just(UTC)) | st.none(),
            "local": st.datetimes() | st.none(),
            "took": st.timedeltas(timedelta(0), timedelta(days=900)) | st.none(),
            "rate": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9),
            "raw": st.binary(max_size=5) | st.none(),
            "token": st.uuids() | st.none(),
            "extra": JSON_VALUES,
        }
    )
)
def test_the_hash_of_any_row_survives_the_database(values: dict[str, Any]) -> None:
    """Whatever the values, the hash of the row as written equals the hash of the row as read."""
    engine = create_engine("sqlite://", json_serializer=json_text)
    Tables.metadata.create_all(engine)
    assert written(engine, invoice(**values)) == hash_in(engine)
    engine.dispose()


EDITS = [
    *(f"UPDATE invoice SET {name} = {value}" for name, value in {
        "printed_number": "'A-2'", "total": "'3.51'", "free": "'-1001'", "day": "'2024-03-06'",
        "at": "'12:30:01.000000'",
        "seen": "'2024-03-05 10:00:00.000008'", "local": "NULL", "took": "'1970-01-01 05:00:01.000000'",
        "kind": "'BILL'", "is_paid": "0", "rate": "2.5", "raw": "x'00'", "token": "NULL", "extra": "'{}'",
        "made": "'2000-01-01 00:00:00'",
        "serial": "'00000000000000000000000000000001'", "supplier_code": "NULL", "id": "id + 1",
    }.items()),
    "UPDATE line SET amount = '1.51' WHERE text = 'paper'",
    "UPDATE line SET text = 'Paper' WHERE text = 'paper'",
    "UPDATE note SET text = 'grey'",
    "UPDATE terms SET days = 31",
    "DELETE FROM note",
    "DELETE FROM terms",
    "DELETE FROM line WHERE text = 'ink'",
    "INSERT INTO line (invoice_id, text, amount) VALUES (1, 'ink', '2.00')",
    "INSERT INTO note (line_id, position, text) VALUES (2, 1, 'white')",
    "DELETE FROM taglink",
]  # fmt: skip


@pytest.mark.parametrize("edit", EDITS)
def test_any_edit_by_hand_changes_the_hash(engine: Any, edit: str) -> None:
    """An edit of any column of the row or of a child, and a child more or less, gives another hash."""
    before = written(engine, invoice(**EVERYTHING, supplier=Supplier(code="s"), tags=[Tag(name="t")]))
    with engine.begin() as connection:
        assert connection.exec_driver_sql(edit).rowcount > 0
    assert hash_in(engine) != before


def test_moving_a_note_to_another_line_changes_the_hash(engine: Any) -> None:
    """Which child hangs on which parent is part of the hash, though the values stay the same."""
    before = written(engine, invoice())
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE note SET line_id = 2")
    assert hash_in(engine) != before


def test_an_edit_of_what_a_record_refers_to_leaves_its_hash(engine: Any) -> None:
    """A supplier's name is no value of the invoice."""
    before = written(engine, invoice(supplier=Supplier(code="s")))
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE supplier SET name = 'other'")
    assert hash_in(engine) == before


def test_the_hash_is_cheap(engine: Any) -> None:
    """The hash of a written invoice with its children takes well under five milliseconds."""
    record = invoice(**EVERYTHING)
    with Session(engine) as session:
        session.add(record)
        session.flush()
        graph.row_hash(record)
        start = clock.perf_counter()
        graph.row_hash(record)
        assert clock.perf_counter() - start < 0.005


def test_values_are_json_with_children_nested(engine: Any) -> None:
    """A record is shown with amounts and moments as text, lists of children, and a single child as an object."""
    record = invoice(**EVERYTHING)
    written(engine, record)
    with Session(engine) as session:
        shown = graph.values(session.exec(select(Invoice)).one())
    assert json.loads(json.dumps(shown)) == shown
    assert {name: shown[name] for name in ("number", "total", "free", "day", "kind", "is_paid", "rate", "raw")} == {
        "number": "A-1", "total": "3.50", "free": "-1000", "day": "2024-03-05", "kind": "credit note",
        "is_paid": True, "rate": 2.0, "raw": "00ff",
    }  # fmt: skip
    assert [line["amount"] for line in shown["lines"]] == ["1.50", "2.00"]
    assert shown["lines"][0]["notes"][0]["text"] == "white"
    assert shown["terms"]["days"] == 30
    assert "supplier" not in shown
    assert graph.values(Invoice(number="1", total=Decimal(1)))["terms"] is None


def test_a_diff_names_what_differs_and_nothing_else(engine: Any) -> None:
    """A diff goes by path, over values only: keys, foreign keys and stamps are no difference."""
    written(engine, invoice(**EVERYTHING))
    other = invoice(**{**EVERYTHING, "total": Decimal(4), "day": None})
    other.lines[1].amount = Decimal("2.50")
    other.lines[0].notes.append(Note(position=2, text="glossy"))
    other.lines[0].notes[0].text = "x" * 200
    other.terms = None
    other.local = datetime(2024, 3, 5, 12, 0)
    with Session(engine) as session:
        lines = graph.diff(session.exec(select(Invoice)).one(), other)
        assert graph.diff(session.exec(select(Invoice)).one(), invoice(**EVERYTHING)) == ()
    assert lines == (
        "total: 3.50 -> 4.00",
        "day: 2024-03-05 -> null",
        f"lines.0.notes.0.text: white -> {'x' * 79}…",
        'lines.0.notes.1: null -> {"position": 2, "text": "glossy"}',
        "lines.1.amount: 2.00 -> 2.50",
        'terms: {"days": 30} -> null',
    )


def test_a_diff_bears_values_that_no_column_takes(engine: Any) -> None:
    """A table class takes anything; a diff with such a value shows it and does not fail."""
    written(engine, invoice())
    with Session(engine) as session:
        old = session.exec(select(Invoice)).one()
        assert graph.diff(old, invoice(total="garbage", day="soon", seen=datetime(2024, 1, 1))) == (
            "total: 3.50 -> garbage",
            "day: null -> soon",
            "seen: null -> 2024-01-01T00:00:00",
        )


def test_unique_keys_are_named_by_attribute() -> None:
    """Constraints, indexes and natural keys are found; made-up ids, partial and expression indexes are not."""
    assert graph.unique_keys(Invoice) == (("day", "total"), ("supplier_code", "number"), ("token",))
    assert graph.unique_keys(Supplier) == (("code",),)
    assert graph.unique_keys(Note) == (("line_id", "position"),)
    assert graph.unique_keys(Line) == ()


class Order(Tables, table=True):
    number: str = Field(primary_key=True)
    items: list["Item"] = Relationship()


class Item(Tables, table=True):
    number: str | None = Field(default=None, foreign_key="order.number", primary_key=True)
    place: int = Field(primary_key=True)


def in_savepoint(session: Session, records: list[Any]) -> None:
    """Flush within a savepoint that is taken back."""
    nested = session.begin_nested()
    session.add_all(records)
    session.flush()
    nested.rollback()


def in_transaction(session: Session, records: list[Any]) -> None:
    """Flush in a transaction that is taken back."""
    session.add_all(records)
    session.flush()
    session.rollback()


@pytest.mark.parametrize("taken_back", [in_transaction, in_savepoint])
def test_a_graph_is_flushed_again_after_a_rollback(
    engine: Any, taken_back: Callable[[Session, list[Any]], None]
) -> None:
    """After a rollback and ``restore`` the same objects get fresh keys, and the foreign keys that go with them."""
    record = invoice(supplier=Supplier(code="s"), tags=[Tag(name="t")])
    order = Order(number="o", items=[])
    order.items = [Item(place=1), Item(place=2)]
    before = [graph.snapshot(record), graph.snapshot(order)]
    with Session(engine) as session:
        taken_back(session, [record, order])
    first = record.id
    for one in before:
        graph.restore(one)
        graph.restore(one)
    assert record.id is None
    assert record.lines[0].notes[0].line_id is None
    assert "made" not in record.__dict__ or record.made is None
    with Session(engine) as session:
        session.add_all(Invoice(number=f"other {number}", total=Decimal(number)) for number in range(3))
        session.add(invoice(number="another", total=Decimal(9)))
        session.flush()
        session.add_all([record, order])
        session.commit()
        key = record.id
    assert key is not None
    assert key > (first or 0)
    with Session(engine) as session:
        read = session.get_one(Invoice, key)
        assert read.made is not None
        assert [(line.text, line.invoice_id) for line in read.lines] == [("paper", key), ("ink", key)]
        assert read.terms is not None
        assert [link.invoice_id for link in session.exec(select(TagLink))] == [key]
        assert read.supplier_code == "s"
        note = session.exec(select(Note).where(Note.line_id == read.lines[0].id)).one()
        assert note.text == "white"
        assert [(item.number, item.place) for item in session.exec(select(Item))] == [("o", 1), ("o", 2)]


def test_restoring_keeps_what_was_set_and_forgets_what_was_loaded(engine: Any) -> None:
    """A foreign key that the function set stays, and a parent that was only loaded for reading is let go."""
    with Session(engine) as session:
        session.add(Supplier(code="s", name="kept"))
        session.commit()
    record = Invoice(id=77, number="1", total=Decimal(1), supplier_code="s")
    before = graph.snapshot(record)
    with Session(engine) as session:
        session.add(record)
        session.flush()
        graph.load_relations(record)
        assert record.supplier is not None
        session.rollback()
    graph.restore(before)
    assert "supplier" not in record.__dict__
    with Session(engine) as session:
        session.add(record)
        session.commit()
        assert (record.id, record.supplier_code) == (77, "s")


def test_restoring_leaves_alone_what_a_session_holds(engine: Any) -> None:
    """A snapshot is no way to change rows that stand in the database."""
    record = invoice()
    before = graph.snapshot(record)
    with Session(engine) as session:
        session.add(record)
        session.commit()
        graph.restore(before)
        assert record.id == 1
        assert [line.invoice_id for line in record.lines] == [1, 1]


def test_a_detached_record_can_be_read_after_the_session_is_closed(engine: Any) -> None:
    """Columns, children at any depth, and what the record refers to are there; what lies beyond is not."""
    written(engine, invoice(**EVERYTHING, supplier=Supplier(code="s", name="n"), tags=[Tag(name="t")]))
    with Session(engine) as session:
        record = session.exec(select(Invoice)).one()
        session.expire_all()
        graph.detach(session, record)
        assert list(session) == []
    assert record.total == Decimal("3.50")
    assert record.made is not None
    assert record.lines[0].notes[0].text == "white"
    assert record.lines[1].notes == []
    assert record.lines[0].invoice is record
    assert record.terms is not None
    assert record.terms.days == 30
    assert record.supplier is not None
    assert record.supplier.name == "n"
    assert [tag.name for tag in record.tags] == ["t"]
    with pytest.raises(DetachedInstanceError):
        record.supplier.invoices  # noqa: B018 - reading it is the test


def test_a_record_without_relations_is_detached_too(engine: Any) -> None:
    """What is absent is absent after detaching as well: an empty list, and nothing."""
    with Session(engine) as session:
        session.add(Invoice(number="1", total=Decimal(1)))
        session.commit()
        record = session.exec(select(Invoice)).one()
        graph.detach(session, record)
    assert (record.lines, record.terms, record.supplier, record.tags) == ([], None, None, [])
