"""What a function may return that is no new record, and what a database may say that no model can mend."""

import sqlite3
from pathlib import Path
from typing import Any, Optional

import pytest
from ledger_schema import Tick
from sqlmodel import Field, Relationship, Session, SQLModel, create_engine, select

from extractor import Pipeline, Status
from extractor.errors import StoreError, UsageError
from extractor.messages import Unanswered
from extractor.testing import Scripted, call, reply


class Box(SQLModel, table=True):
    """A record with children that nobody cascades to."""

    __tablename__ = "h_box"
    id: int | None = Field(default=None, primary_key=True)
    name: str
    size: int = 0
    parts: list["Part"] = Relationship(back_populates="box")


class Part(SQLModel, table=True):
    """A child with a unique key of its own, which cannot be without its box."""

    __tablename__ = "h_part"
    id: int | None = Field(default=None, primary_key=True)
    serial: str = Field(unique=True)
    box_id: int = Field(foreign_key="h_box.id")
    box: Optional["Box"] = Relationship(back_populates="parts")


def create_box(name: str, serials: list[str] | None = None, size: int = 0) -> Box:
    """Record a box."""
    if name == "boom":
        raise KeyError(name)
    return Box(name=name, size=size, parts=[Part(serial=serial) for serial in serials or ()])


@pytest.fixture
def database(tmp_path: Path) -> str:
    """A SQLite file of its own."""
    return f"sqlite:///{tmp_path}/hard.db"


def rows(database: str, query: str) -> list[tuple[Any, ...]]:
    """What stands in the file."""
    with sqlite3.connect(database.removeprefix("sqlite:///")) as connection:
        return connection.execute(query).fetchall()


def boxes(database: str, *answers: Any, target: Any = create_box, **options: Any) -> tuple[Pipeline, Scripted]:
    """A pipeline over a scripted model."""
    model = Scripted(*answers)
    return Pipeline(target, name="hard", model=model, database=database, **options), model


BOOM = call("create_box", name="boom")


def test_children_are_taken_back_with_their_record(database: str) -> None:
    """A path that the conversation left leaves no orphans, also where nothing cascades and a child needs its parent."""
    first, _ = boxes(database, reply(call("create_box", name="old", serials=["a", "b"]), BOOM))
    assert first.extract(b"x", name="a.txt").status is Status.FAILED
    again, _ = boxes(database, call("create_box", name="new", serials=["a"]), instructions="Look again.")
    assert again.extract(b"x", name="a.txt").status is Status.DONE
    assert rows(database, "select name from h_box") == [("new",)]
    assert rows(database, "select serial, box_id from h_part") == [("a", rows(database, "select id from h_box")[0][0])]


def test_a_row_that_the_host_owns_is_linked_and_never_taken_back(database: str) -> None:
    """A function may return a row that it looked up; it stays the host's, whatever the conversation does."""
    engine = create_engine(database)
    SQLModel.metadata.create_all(engine, tables=[Tick.__table__])
    with Session(engine) as session:
        session.add(Tick(name="host"))
        session.commit()

    def find_tick(name: str) -> Tick:
        """Find a tick."""
        if name == "boom":
            raise KeyError(name)
        with Session(engine) as session:
            return session.exec(select(Tick).where(Tick.name == name)).one()

    ticks, _ = boxes(database, reply(call("find_tick", name="host"), call("find_tick", name="boom")), target=find_tick)
    assert ticks.extract(b"x", name="a.txt").records[0].name == "host"
    again, _ = boxes(database, call("nothing_to_extract", reason="none"), target=find_tick, instructions="Look again.")
    assert again.extract(b"x", name="a.txt").status is Status.EMPTY
    assert rows(database, "select name from t_tick") == [("host",)]
    engine.dispose()


def test_a_hand_edited_row_that_is_kept_is_said(database: str) -> None:
    """The remark is a flag of the outcome."""
    first, _ = boxes(database, reply(call("create_box", name="old"), BOOM))
    first.extract(b"x", name="a.txt")
    with sqlite3.connect(database.removeprefix("sqlite:///")) as connection:
        connection.execute("update h_box set name = 'by hand'")
    again, _ = boxes(database, call("nothing_to_extract", reason="none"), instructions="Look again.")
    assert again.extract(b"x", name="a.txt").flags == ("h_box 1 is kept: it was changed by hand",)


def test_a_collection_of_records_is_a_bug_and_not_a_silent_loss(database: str) -> None:
    """One record a call: a list of rows fails the document, with the reason in its cause."""

    def create_many(name: str) -> list[Box]:
        """Record boxes."""
        return [Box(name=name), Box(name=name)]

    many, _ = boxes(database, call("create_many", name="x"), target=create_many)
    outcome = many.extract(b"x", name="a.txt")
    assert outcome.status is Status.FAILED
    assert "one record a call" in (outcome.cause or "")


def test_a_childs_unique_key_does_not_make_its_record_a_duplicate(database: str) -> None:
    """A new record is not thrown away because one of its lines has a number that stands elsewhere."""
    first, _ = boxes(database, call("create_box", name="one", serials=["S"]))
    first.extract(b"one", name="one.txt")
    again, model = boxes(database, call("create_box", name="two", serials=["S"]),
                         call("create_box", name="two", serials=["T"]))  # fmt: skip
    assert again.extract(b"two", name="two.txt").status is Status.DONE
    assert "parts.0: its unique key is held" in model.asks[1].messages[-1].tool_results[0].content
    assert rows(database, "select name from h_box") == [("one",), ("two",)]


@pytest.mark.parametrize("arguments", [{"name": "x", "size": 10**30}, {"name": "\ud800"}])
def test_a_value_that_no_database_takes_is_told_and_ends_no_run(database: str, arguments: dict[str, Any]) -> None:
    """One hostile value costs an attempt, and the documents beside it nothing."""
    good = call("create_box", name="good")
    pipeline, _ = boxes(database, call("create_box", **arguments), good, call("create_box", name="other"))
    outcomes = list(pipeline.map([b"hostile", b"other"], workers=1))
    assert [outcome.status for outcome in outcomes] == [Status.DONE, Status.DONE]


def test_a_missing_table_ends_the_run_and_settles_nothing(database: str) -> None:
    """The database's own trouble is never told to a model: the document is taken again when it is over."""

    def create_and_lose(name: str) -> Box:
        """Record a box."""
        with sqlite3.connect(database.removeprefix("sqlite:///")) as connection:
            connection.execute("alter table h_box rename to elsewhere")
        return Box(name=name)

    lost, model = boxes(database, call("create_and_lose", name="x"), target=create_and_lose)
    with pytest.raises(StoreError, match="h_box"):
        lost.extract(b"x", name="a.txt")
    assert len(model.asks) == 1
    assert rows(database, "select status from extractor_work") == [("running",)]


def test_a_model_that_breaks_costs_its_document_alone(database: str) -> None:
    """Whatever goes wrong on a document's way is in its outcome."""

    def answer(ask: Any) -> Any:
        return RuntimeError("broken") if "first" in ask.messages[1].content else Unanswered("refused", "no", "m")

    pipeline, _ = boxes(database, answer)
    outcomes = list(pipeline.map([b"first", b"second"], workers=1))
    assert [outcome.status for outcome in outcomes] == [Status.FAILED, Status.REFUSED]
    assert "RuntimeError" in outcomes[0].error


def test_a_huge_file_is_refused_before_it_is_read(database: str, tmp_path: Path) -> None:
    """A sparse file of terabytes costs no memory."""
    with (tmp_path / "huge.txt").open("wb") as stream:
        stream.truncate(10**11)
    pipeline, _ = boxes(database)
    assert "too large for a document" in pipeline.extract(tmp_path / "huge.txt").error


def test_extract_from_within_an_extraction_is_an_error_and_no_hang(database: str) -> None:
    """An async function that asks for another extraction is told to await it."""
    inner, _ = boxes(f"{database}2", call("create_box", name="inner"))
    seen: list[str] = []

    async def create_outer(name: str) -> Box:
        """Record a box."""
        try:
            inner.extract(b"y", name="y.txt")
        except UsageError as error:
            seen.append(str(error))
        return Box(name=name)

    outer, _ = boxes(database, call("create_outer", name="x"), target=create_outer)
    assert outer.extract(b"x", name="a.txt").status is Status.DONE
    assert "aextract" in seen[0]
