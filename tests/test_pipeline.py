"""From a document to rows, with a scripted model and a real SQLite file."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from ledger_schema import Bill, Position, Tick
from pydantic import BaseModel

from extractor import Context, Pipeline, Rejected, Status
from extractor.errors import DefinitionError, OutcomeError, ProviderError, StoreError, UsageError
from extractor.messages import Ask, Reply, Unanswered, Verdict
from extractor.testing import Scripted, call, reply, shown


def create_tick(name: str) -> Tick:
    """Record a tick."""
    if name.startswith("bad"):
        raise Rejected("name: write another")
    return Tick(name=name)


def create(name: str) -> Tick:
    """Record a tick."""
    if name == "boom":
        raise KeyError(name)
    return Tick(name=name)


def create_bill(number: str, total: str, note: str | None = None, kind: str = "bill", supplier_id: int | None = None,
                positions: list[str] | None = None) -> Bill:  # fmt: skip
    """Record a bill."""
    lines = [Position(text=text) for text in positions or ()]
    return Bill(number=number, total=Decimal(total), note=note, kind=kind, supplier_id=supplier_id, positions=lines)


@pytest.fixture
def database(tmp_path: Path) -> str:
    """A SQLite file of its own."""
    return f"sqlite:///{tmp_path}/records.db"


def rows(database: str, query: str) -> list[tuple[Any, ...]]:
    """What stands in the file, read past everything of ours."""
    with sqlite3.connect(database.removeprefix("sqlite:///")) as connection:
        return connection.execute(query).fetchall()


def pipeline(database: str, *answers: Any, target: Any = create_tick, **options: Any) -> tuple[Pipeline, Scripted]:
    """A pipeline over a scripted model."""
    model = Scripted(*answers)
    return Pipeline(target, name="test", model=model, database=database, **options), model


def test_a_rejected_call_is_mended_and_its_record_kept_as_processed_content(database: str) -> None:
    """The function's own object comes back as the one record, and stands in the database once."""
    ticks, model = pipeline(database, call("create_tick", name="bad"), call("create_tick", name="good"))
    outcome = ticks.extract(b"a tick", name="a.txt")
    assert outcome.status is Status.DONE
    assert outcome.processed_content is outcome.record
    assert (type(outcome.record), outcome.record.name, outcome.record.id) == (Tick, "good", 1)
    assert "name: write another" in str(model.asks[1].messages)
    assert rows(database, "select name from t_tick") == [("good",)]


def test_a_settled_document_is_not_asked_again_whatever_changed(database: str) -> None:
    """A second run asks nothing and adds no row, also under another model, prompt or function: it is outdated."""
    ticks, _ = pipeline(database, call("create_tick", name="one"))
    ticks.extract(b"a tick", name="a.txt")
    again, model = pipeline(database, instructions="Look twice.")
    outcome = again.extract(b"a tick", name="moved/elsewhere.txt")
    assert (outcome.status, outcome.is_cached, outcome.is_outdated) == (Status.DONE, True, True)
    assert outcome.record.name == "one"
    assert model.asks == []
    assert rows(database, "select count(*) from t_tick") == [(1,)]


def test_the_good_one_sent_again_alone_does_not_settle_the_bad_one(database: str) -> None:
    """Two calls, one bad, the good one repeated: not done until the bad one is mended, and each stands once."""
    first = reply(call("create_tick", name="good"), call("create_tick", name="bad 2"))
    ticks, model = pipeline(database, first, call("create_tick", name="good"), call("create_tick", name="fine"),
                            max_attempts=3)  # fmt: skip
    outcome = ticks.extract(b"x", name="a.txt")
    assert outcome.status is Status.DONE
    assert len(model.asks) == 3
    assert Counter(rows(database, "select name from t_tick")) == Counter([("good",), ("fine",)])


def test_what_was_accepted_is_kept_when_attempts_run_out(database: str) -> None:
    """An exhausted document keeps its accepted records and says what is still wrong."""
    first = reply(call("create_tick", name="good"), call("create_tick", name="bad"))
    ticks, _ = pipeline(database, first, call("create_tick", name="bad"), max_attempts=2)
    outcome = ticks.extract(b"x", name="a.txt")
    assert outcome.status is Status.EXHAUSTED
    assert [tick.name for tick in outcome.records] == ["good"]
    assert "write another" in outcome.error
    assert rows(database, "select name from t_tick") == [("good",)]


def test_two_equal_calls_of_one_reply_are_two_rows(database: str) -> None:
    """Equal lines are legal."""
    ticks, _ = pipeline(database, reply(call("create_tick", name="twin"), call("create_tick", name="twin")))
    assert len(ticks.extract(b"x", name="a.txt").records) == 2
    assert rows(database, "select count(*) from t_tick") == [(2,)]


def test_a_key_that_another_document_holds_is_a_duplicate_and_nobody_is_asked(database: str) -> None:
    """The second document is linked to the first one's row, with what differs, after one ask."""
    bills, _ = pipeline(database, call("create_bill", number="7", total="10.00", note="n"), target=create_bill)
    first = bills.extract(b"one", name="one.txt").record
    again, model = pipeline(database, call("create_bill", number="7", total="11.00", note="n"), target=create_bill)
    outcome = again.extract(b"two", name="two.txt")
    assert outcome.status is Status.DUPLICATE
    assert outcome.record.id == first.id
    assert len(model.asks) == 1
    assert any("total: 10.00" in flag and "11.00" in flag for flag in outcome.flags), outcome.flags
    assert rows(database, "select number, total from t_bill") == [("7", "10.0000")]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"note": None}, "note: a value is required"),
        ({"kind": "poem"}, "kind: the database wants kind in ('bill', 'credit')"),
        ({"supplier_id": 99}, "supplier_id: no t_supplier with this id exists"),
    ],
)
def test_what_the_database_refuses_is_told_by_path_and_mended(
    database: str, arguments: dict[str, Any], told: str
) -> None:
    """NOT NULL, CHECK and foreign keys reach the model as text that it can act on, and cost nobody else a record."""
    good = {"number": "1", "total": "5.00", "note": "n"}
    first = reply(call("create_bill", **{**good, **arguments}), call("create_bill", **{**good, "number": "2"}))
    bills, model = pipeline(database, first, call("create_bill", **good), target=create_bill)
    outcome = bills.extract(b"x", name="a.txt")
    assert outcome.status is Status.DONE, outcome.error
    assert told in shown(model.asks[1])
    assert sorted(rows(database, "select number from t_bill")) == [("1",), ("2",)]


def test_money_is_exact_on_the_way_back(database: str) -> None:
    """Seventeen digits before the point survive SQLite."""
    bills, _ = pipeline(database, call("create_bill", number="1", total="12345678901234567.8912", note="n"),
                        target=create_bill)  # fmt: skip
    bills.extract(b"x", name="a.txt")
    again, _ = pipeline(database, target=create_bill)
    assert again.extract(b"x", name="a.txt").record.total == Decimal("12345678901234567.8912")


def test_a_table_that_holds_text_in_a_decimal_is_told_by_path(database: str) -> None:
    """Tables do not validate what they are given; we do, before it is written."""

    def create(number: str) -> Bill:
        """Record a bill."""
        return Bill(number=number, total="garbage", note="n")

    bills, model = pipeline(database, call("create", number="1"), call("create", number="1"), target=create,
                            max_attempts=2)  # fmt: skip
    assert bills.extract(b"x", name="a.txt").status is Status.EXHAUSTED
    assert "total: is str, the column takes Decimal" in model.asks[1].messages[-1].tool_results[0].content


def test_relations_come_back_loaded_and_detached(database: str) -> None:
    """A record's lines can be read after the store is closed, in this run and in the next."""
    bills, _ = pipeline(database, call("create_bill", number="1", total="5", note="n", positions=["a", "b"]),
                        target=create_bill)  # fmt: skip
    assert [line.text for line in bills.extract(b"x", name="a.txt").record.positions] == ["a", "b"]
    again, _ = pipeline(database, target=create_bill)
    assert [line.text for line in again.extract(b"x", name="a.txt").record.positions] == ["a", "b"]


def test_a_bug_in_a_function_fails_the_document_and_is_not_told_to_the_model(database: str) -> None:
    """The traceback is for people; the next run takes the document again, from the kept reply."""

    def broken(name: str) -> Tick:
        """Record a tick."""
        raise KeyError(name)

    ticks, model = pipeline(database, call("broken", name="x"), target=broken)
    outcome = ticks.extract(b"x", name="a.txt")
    assert (outcome.status, len(model.asks)) == (Status.FAILED, 1)
    assert "KeyError" in (outcome.cause or "")

    def broken(name: str) -> Tick:  # the same function, mended
        """Record a tick."""
        return Tick(name=name)

    mended, unasked = pipeline(database, target=broken)
    assert mended.extract(b"x", name="a.txt").status is Status.DONE
    assert unasked.asks == [], "the reply was paid for twice"


def test_a_conversation_that_takes_another_path_takes_its_old_rows_back(database: str) -> None:
    """After a failure and a changed prompt the new answer's rows stand alone; the old path's are withdrawn."""
    first = reply(call("create", name="old"), call("create", name="boom"))
    ticks, _ = pipeline(database, first, target=create)
    assert ticks.extract(b"x", name="a.txt").status is Status.FAILED
    assert rows(database, "select name from t_tick") == [("old",)]
    again, _ = pipeline(database, call("create", name="new"), target=create, instructions="Look again.")
    assert again.extract(b"x", name="a.txt").status is Status.DONE
    assert rows(database, "select name from t_tick") == [("new",)]


def test_a_row_that_a_person_changed_is_never_taken_back(database: str) -> None:
    """Hand-edited rows stay, whatever the conversation does."""
    ticks, _ = pipeline(database, reply(call("create", name="old"), call("create", name="boom")), target=create)
    ticks.extract(b"x", name="a.txt")
    with sqlite3.connect(database.removeprefix("sqlite:///")) as connection:
        connection.execute("update t_tick set name = 'by hand'")
    again, _ = pipeline(database, call("create", name="new"), target=create, instructions="Look again.")
    again.extract(b"x", name="a.txt")
    assert sorted(rows(database, "select name from t_tick")) == [("by hand",), ("new",)]


def test_equal_texts_in_two_documents_are_asked_once_and_written_twice(database: str) -> None:
    """The question is the same, so the paid answer serves both; the documents are two."""
    ticks, model = pipeline(database, call("create_tick", name="one"))
    outcomes = list(ticks.map([b"same text", b"same text\n\n"]))
    assert [outcome.status for outcome in outcomes] == [Status.DONE, Status.DONE]
    assert len(model.asks) == 1
    assert rows(database, "select count(*) from t_tick") == [(2,)]


def test_a_file_that_lies_there_twice_is_one_document(database: str) -> None:
    """Equal bytes under two names in one run are read once, and both names are answered."""
    ticks, model = pipeline(database, lambda ask: reply(call("create_tick", name="one")))
    outcomes = list(ticks.map([b"same"] * 8, workers=8))
    assert [outcome.record.name for outcome in outcomes] == ["one"] * 8
    assert (len(model.asks), rows(database, "select count(*) from t_tick")) == (1, [(1,)])


def test_empty_text_is_never_asked(database: str) -> None:
    """A document without text fails with its reason before any ask, and the others go on."""
    ticks, model = pipeline(database, call("create_tick", name="one"))
    outcomes = list(ticks.map([b"  \n", b"a tick"]))
    assert [outcome.status for outcome in outcomes] == [Status.FAILED, Status.DONE]
    assert "no text" in outcomes[0].error
    assert len(model.asks) == 1


def test_nothing_to_extract_settles_as_empty(database: str) -> None:
    """The model's reason is kept."""
    ticks, _ = pipeline(database, call("nothing_to_extract", reason="a letter"))
    outcome = ticks.extract(b"Dear Sir", name="a.txt")
    assert (outcome.status, outcome.error) == (Status.EMPTY, "a letter")
    with pytest.raises(OutcomeError, match="0 records"):
        _ = outcome.record


def test_a_wrong_key_stops_the_run_and_nothing_is_lost(database: str) -> None:
    """The run ends with one error; what was not reached is taken by the next run."""
    wrong, _ = pipeline(database, Unanswered("unauthorized", "the key is refused", "test/model"))
    with pytest.raises(ProviderError, match="test/model: the key is refused"):
        list(wrong.map([b"one", b"two"], workers=1))
    right, _ = pipeline(database, call("create_tick", name="one"), call("create_tick", name="two"))
    assert [outcome.status for outcome in right.map([b"one", b"two"], workers=1)] == [Status.DONE, Status.DONE]


def test_twenty_equal_failures_in_a_row_stop_the_run(database: str) -> None:
    """A provider that is down is not asked about forty thousand documents."""
    down, model = pipeline(database, lambda ask: Unanswered("unavailable", "503", "m"))
    with pytest.raises(ProviderError, match="503"):
        list(down.map([f"document {n}".encode() for n in range(60)], workers=1))
    assert len(model.asks) == 20


def test_extract_works_inside_a_running_loop_and_any_number_of_times(database: str) -> None:
    """A notebook runs a loop of its own; a script none; both may call as often as they like."""
    ticks, _ = pipeline(database, lambda ask: reply(call("create_tick", name="x")))

    async def cell(number: int) -> Status:
        inside = ticks.extract(f"sync {number}".encode(), name="s").status
        outside = (await ticks.aextract(f"async {number}".encode(), name="a")).status
        return inside if inside is outside else Status.FAILED

    assert [asyncio.run(cell(number)) for number in range(3)] == [Status.DONE] * 3
    assert ticks.extract(b"plain", name="p").status is Status.DONE


def test_map_yields_while_it_works_and_may_be_left(database: str) -> None:
    """Sources are listed lazily, and leaving the loop early lists no more of them."""
    ticks, _ = pipeline(database, lambda ask: reply(call("create_tick", name="x")))
    listed = []

    def sources() -> Any:
        for number in range(1000):
            listed.append(number)
            yield f"document {number}".encode()

    for _outcome in ticks.map(sources(), workers=2):
        break
    assert len(listed) < 10


def test_a_frame_keeps_every_row_and_says_what_became_of_it(database: str) -> None:
    """One row for each record, the source's columns beside it, and a row with a reason where there is none."""

    def answer(ask: Ask) -> Reply:
        text = ask.messages[1].content
        if "two" in text:
            return reply(call("create_tick", name="a"), call("create_tick", name="b"))
        return (
            reply(call("nothing_to_extract", reason="none")) if "none" in text else reply(call("create_tick", name="c"))
        )

    ticks, _ = pipeline(database, answer)
    mails = pd.DataFrame({"id": [1, 2, 3, 4], "body": ["two", "none here", None, "one"]}, index=list("wxyz"))
    frame = mails.pipe(ticks.frame, column="body")
    assert list(frame.index) == ["w", "w", "x", "y", "z"]
    assert list(frame["extractor_status"]) == ["done", "done", "empty", "failed", "done"]
    assert list(frame["name"].fillna("-")) == ["a", "b", "-", "-", "c"]
    assert list(frame["id_record"].notna()) == [True, True, False, False, True]
    with pytest.raises(UsageError, match="no column 'text'"):
        ticks.frame(mails, column="text")


def test_a_table_class_alone_is_a_pipeline(database: str) -> None:
    """The draft is derived; the host supplies what the model is not asked for."""
    model = Scripted(call("create_bill", number="1", total="5.00", note="n", positions=[{"text": "a"}]))
    bills = Pipeline(Bill, name="t", model=model, database=database, exclude=["kind"],
                     given={"supplier_id": lambda context: context.get("supplier")})  # fmt: skip
    outcome = bills.extract(b"x", name="a.txt", context={"supplier": None})
    assert outcome.status is Status.DONE, outcome.error
    assert set(model.asks[0].offers[0].parameters["properties"]) == {"number", "total", "note", "positions"}
    assert (outcome.record.kind, outcome.record.positions[0].text) == ("bill", "a")


def test_a_pydantic_class_needs_no_table(database: str) -> None:
    """What is no row is kept as the call's arguments, and comes back as the instance."""

    class Note(BaseModel):
        """A note."""

        text: str

    notes, _ = pipeline(database, call("note", text="hi"), target=Note)
    assert notes.extract(b"x", name="a.txt").record == Note(text="hi")


def test_flags_of_a_function_are_kept_with_the_outcome(database: str) -> None:
    """A function may accept and have a person look."""

    def create(name: str, context: Context) -> Tick:
        """Record a tick."""
        if not context.is_last_attempt:
            raise Rejected("name: look again")
        context.flag("name: not sure")
        return Tick(name=name)

    ticks, _ = pipeline(database, call("create", name="x"), call("create", name="x"), target=create, max_attempts=2)
    assert ticks.extract(b"x", name="a.txt").flags == ("name: not sure",)
    again, _ = pipeline(database, target=create)
    assert again.extract(b"x", name="a.txt").flags == ("name: not sure",)


@pytest.mark.parametrize("make", [Pipeline, lambda: Pipeline(create_tick, create_tick), lambda: Pipeline(42)])
def test_a_pipeline_of_nothing_is_an_error_where_it_is_made(make: Callable[[], Pipeline]) -> None:
    """Mistakes of definition are found before any document is read."""
    with pytest.raises(DefinitionError):
        make()
    with pytest.raises(ValueError, match="at least 1"):
        Pipeline(create_tick, max_attempts=0)


def test_a_pipeline_is_named_after_its_variable() -> None:
    """The command line and an import know it by the same name."""
    assert module_pipeline.name == "module_pipeline"
    assert Pipeline(create_tick).name == "create_tick"


module_pipeline = Pipeline(create_tick)


def test_verdicts_of_a_reply_are_kept_in_call_order(database: str) -> None:
    """A transcript has every call answered, in order, with the database's own verdicts."""
    one = call("create_bill", number="1", total="1", note="n")
    first = reply(one, one, call("create_bill", number="2", total="1", note=None))
    bills, _ = pipeline(database, first, call("create_bill", number="2", total="1", note="n"), target=create_bill)
    outcome = bills.extract(b"x", name="a.txt")
    verdicts = [result.verdict for result in outcome.attempts[0].results]
    assert verdicts == [Verdict.ACCEPTED, Verdict.DUPLICATE, Verdict.REJECTED]
    assert outcome.status is Status.DONE


def test_a_table_that_lacks_a_column_is_refused_before_anything_is_asked(database: str) -> None:
    """A schema that has moved on is one clear line, not three paid attempts a document."""
    with sqlite3.connect(database.removeprefix("sqlite:///")) as connection:
        connection.execute("create table t_tick (id integer primary key)")
    ticks, model = pipeline(database)
    with pytest.raises(StoreError, match="'t_tick' in the database lacks the column 'name'"):
        ticks.extract(b"x", name="a.txt")
    assert model.asks == []


def test_a_named_pipe_is_no_document(database: str, tmp_path: Path) -> None:
    """What is no regular file is refused, not waited for."""
    os.mkfifo(tmp_path / "pipe.txt")
    ticks, _ = pipeline(database)
    assert "no regular file" in ticks.extract(tmp_path / "pipe.txt").error


def test_a_document_that_fails_on_the_way_keeps_the_rows_it_has(database: str) -> None:
    """While the provider is away nothing is taken back: the next run may yet lead to these rows."""
    ticks, _ = pipeline(database, reply(call("create", name="old"), call("create", name="boom")), target=create)
    ticks.extract(b"x", name="a.txt")
    away, _ = pipeline(database, Unanswered("unavailable", "503"), target=create, instructions="Look again.")
    assert away.extract(b"x", name="a.txt").status is Status.FAILED
    assert rows(database, "select name from t_tick") == [("old",)]
