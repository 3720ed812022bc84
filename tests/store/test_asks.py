"""What is asked is charged: a row for each live ask, none for a replayed one; and older databases get their tables."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledger_schema import Tick
from sqlalchemy.orm import Session

from extractor import Pipeline, Rejected, Status
from extractor.errors import StoreError
from extractor.messages import Reply, Unanswered, Usage
from extractor.prices import Price
from extractor.store import costs, ledger, tables
from extractor.store.ledger import Asked
from extractor.store.store import Store
from extractor.testing import Scripted, call, reply

PRICE = Price(Decimal("0.25"), Decimal(2), Decimal("0.025"))
USED = Usage(1000, 10, 400)


def create_tick(name: str) -> Tick:
    """Record a tick."""
    if name == "bad":
        raise Rejected("name: write another")
    return Tick(name=name)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the database stands."""
    return tmp_path / "records.db"


def ticks(file: Path, *answers: Any, name: str = "m/one", price: Price | None = PRICE) -> tuple[Pipeline, Scripted]:
    """A pipeline over a scripted model with a price."""
    model = Scripted(*answers, name=name)
    if price is not None:
        model.price = price  # type: ignore[attr-defined]
    return Pipeline(create_tick, name="ticks", model=model, database=f"sqlite:///{file}"), model


def tick(name: str, usage: Usage = USED) -> Reply:
    """A reply with one call and its tokens."""
    return reply(call("create_tick", name=name), usage=usage)


def asked(file: Path, columns: str = "*") -> list[tuple[Any, ...]]:
    """The rows of what was asked."""
    with sqlite3.connect(file) as database:
        return database.execute(f"select {columns} from extractor_ask order by id").fetchall()


# -- one row for each live ask -------------------------------------------------------------------------------------


def test_a_live_ask_is_charged_with_all_that_is_known_of_it(file: Path) -> None:
    """Pipeline, document, model, tokens, exact cost, tags, and the key of the reply that it brought."""
    pipeline, _ = ticks(file, tick("one"))
    outcome = pipeline.extract(b"a tick", name="a.txt", tags=["acme", "may", "acme"])
    columns = "work, pipeline, document, model, rank, kind, input_tokens, output_tokens, cached_tokens, cost, tags"
    row = (1, "ticks", outcome.document, "m/one", 0, "reply", 1000, 10, 400, "0.00018", '["acme", "may"]')
    assert asked(file, columns) == [row]
    with sqlite3.connect(file) as database:
        (key,) = database.execute("select key from extractor_reply").fetchone()
    assert asked(file, "reply, run") == [(key, None)]


def test_a_second_run_adds_no_row(file: Path) -> None:
    """Neither a settled document nor one that is replayed from kept replies is charged again."""
    pipeline, _ = ticks(file, tick("bad"), tick("one"))
    pipeline.extract(b"a tick", name="a.txt")
    assert asked(file, "kind, output_tokens") == [("reply", 10)] * 2
    again, model = ticks(file)
    again.extract(b"a tick", name="a.txt")
    with sqlite3.connect(file) as database:  # as a crash before the end would leave it
        database.execute("update extractor_work set status = 'running'")
    assert again.extract(b"a tick", name="a.txt").status is Status.DONE
    assert model.asks == []
    assert len(asked(file)) == 2


def test_equal_questions_are_charged_once(file: Path) -> None:
    """Of documents with one text the first one pays."""
    pipeline, model = ticks(file, lambda _: tick("one"))
    outcomes = list(pipeline.map([b"same text", b"same text\n", b"same text\n\n"], workers=3))
    assert [outcome.status for outcome in outcomes] == [Status.DONE] * 3
    assert (len(model.asks), len(asked(file))) == (1, 1)


def test_an_ask_that_nobody_answered_is_charged_too(file: Path) -> None:
    """A refusal costs what it used; a model that is down has a row of its own, with no reply; every rank is named."""
    refusing = Scripted(Unanswered("refused", "no", usage=Usage(500, 0)), name="m/one")
    down = Scripted(Unanswered("unavailable", "503"), name="m/two")
    answering = Scripted(tick("one"), name="m/three")
    for model in (refusing, down):
        model.price = PRICE  # type: ignore[attr-defined]
    models = [refusing, down, answering]
    pipeline = Pipeline(create_tick, name="ticks", model=models, database=f"sqlite:///{file}")
    assert pipeline.extract(b"a tick", name="a.txt").status is Status.DONE
    assert asked(file, "model, rank, kind, input_tokens, cost, reply is null") == [
        ("m/one", 0, "refused", 500, "0.000125", 1),
        ("m/two", 1, "unavailable", 0, "0", 1),
        ("m/three", 2, "reply", 1000, None, 0),
    ]


def test_what_has_no_known_price_costs_null_and_a_local_model_nothing(file: Path) -> None:
    """Unknown is not 0, and 0 is not unknown."""
    for name in ("m/unknown", "local/some"):
        pipeline, _ = ticks(file, tick(name), name=name, price=None)
        pipeline.extract(name.encode(), name=name)
    assert asked(file, "model, cost") == [("m/unknown", None), ("local/some", "0")]


def test_the_charge_and_the_reply_are_one_transaction(file: Path) -> None:
    """Where the charge cannot be written, the reply is not kept either, and the next write says so."""
    store = Store(f"sqlite:///{file}")

    asyncio.run(store.keep("key", Reply("x"), charge(tags=(object(),))))
    store.write(lambda session, _: None).result()
    with pytest.raises(StoreError):
        asyncio.run(store.begin(ledger.Seen("h", "a.txt", 1), "ticks", "f"))
    assert store.look(lambda connection: ledger.kept_reply(connection, "key")) is None
    store.close()
    assert asked(file) == []


def charge(**changes: Any) -> Asked:
    """An ask of no document in particular."""
    values = {
        "run": 1, "work": 1, "pipeline": "ticks", "document": "d", "model": "m", "rank": 0,
        "answer": Reply(usage=Usage(1, 1)), "cost": None,
    }  # fmt: skip
    return Asked(**{**values, **changes})


# -- fresh -----------------------------------------------------------------------------------------------------------


def test_fresh_asks_anew_and_keeps_the_new_reply(file: Path) -> None:
    """A document that is taken up anew meets no kept reply; the fresh one takes its place, and rows of the old
    conversation are taken back. A settled document stays as it is."""
    pipeline, _ = ticks(file, tick("old"))
    pipeline.extract(b"a tick", name="a.txt")
    fresh, model = ticks(file, tick("new"))
    assert fresh.extract(b"a tick", name="a.txt", fresh=True).is_cached
    assert model.asks == []
    with sqlite3.connect(file) as database:
        database.execute("update extractor_work set status = 'running'")
    assert fresh.extract(b"a tick", name="a.txt", fresh=True).record.name == "new"
    with sqlite3.connect(file) as database:
        assert database.execute("select name from t_tick").fetchall() == [("new",)]
        assert database.execute("select count(*), body like '%new%' from extractor_reply").fetchone() == (1, 1)
    assert len(asked(file)) == 2
    later, unasked = ticks(file)
    assert later.extract(b"a tick\n", name="b.txt").record.name == "new", "the kept reply is the fresh one"
    assert unasked.asks == []


def test_a_fresh_run_asks_an_equal_question_once(file: Path) -> None:
    """Replies of the fresh run itself answer its other documents."""
    pipeline, _ = ticks(file, tick("old"))
    pipeline.extract(b"same text", name="a.txt")
    fresh, model = ticks(file, lambda _: tick("new"))
    outcomes = list(fresh.map([b"same text\n", b"same text\n\n"], fresh=True, workers=2))
    assert [outcome.record.name for outcome in outcomes] == ["new", "new"]
    assert len(model.asks) == 1


# -- which model gave which record ---------------------------------------------------------------------------------


def test_every_record_is_traced_to_its_model(file: Path) -> None:
    """By the ask that brought its reply, also when the replies are gone; by the reply, where no ask was noted yet."""
    for name in ("one", "two"):
        pipeline, _ = ticks(file, tick(name), name=f"m/{name}")
        pipeline.extract(name.encode(), name=name)
    for forgotten in ("delete from extractor_reply", "delete from extractor_ask"):
        with sqlite3.connect(file) as database:
            database.execute(forgotten)
        store = Store(f"sqlite:///{file}")
        models = store.read(lambda session: ledger.models_of(session, "ticks"))
        links = [ledger_links(store, work) for work in (1, 2)]
        store.close()
        if forgotten.endswith("reply"):
            assert [models[link["reply"]] for link in links] == ["m/one", "m/two"]
        else:
            assert models == {}


def ledger_links(store: Store, work: int) -> Any:
    """The one written call of a document."""
    (link,) = store.read(lambda session: ledger.links(session, work))
    return link


def test_a_reply_names_its_model_where_no_ask_was_noted(file: Path) -> None:
    """Records of an earlier version are traced by what the reply says."""
    pipeline, _ = ticks(file, Reply("", tick("one").tool_calls, usage=USED, model="m/reply"))
    pipeline.extract(b"one", name="a.txt")
    with sqlite3.connect(file) as database:
        database.execute("delete from extractor_ask")
    store = Store(f"sqlite:///{file}")
    assert list(store.read(lambda session: ledger.models_of(session, "ticks")).values()) == ["m/reply"]
    store.close()


# -- sums ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def memory() -> Iterator[Store]:
    """A store in memory."""
    store = Store("sqlite://")
    yield store
    store.close()


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b"]),
            st.none() | st.integers(0, 10**12),
            st.lists(st.sampled_from("xyz"), unique=True, max_size=3),
        ),
        max_size=15,
    )
)
def test_sums_of_costs_are_exact_and_count_what_is_unknown(memory: Store, rows: list[Any]) -> None:
    """Money is added as decimals; an ask of unknown cost is counted beside; every group adds up to the whole, but for
    tags, where an ask counts under each of its own."""

    def job(session: Session, _careful: bool) -> None:
        session.execute(tables.ask.delete())
        for pipeline, billionths, tags in rows:
            cost = Decimal(billionths) / 10**9 if billionths is not None else None
            ledger.note_ask(session, charge(pipeline=pipeline, cost=cost, tags=tuple(tags)), None)

    memory.write(job).result()
    by_pipeline, by_tag, by_both = (
        memory.read(lambda session, by=by: costs.spent(session, None, by))
        for by in (["pipeline"], ["tag"], ["pipeline", "month"])
    )
    whole = sum((Decimal(cost) / 10**9 for _, cost, _ in rows if cost is not None), Decimal(0))
    for groups, total in (by_pipeline, by_both):
        assert (total.asks, total.cost) == (len(rows), whole)
        assert total.unpriced == sum(cost is None for _, cost, _ in rows)
        assert sum((one.cost for one in groups.values()), Decimal(0)) == whole
        assert sum(one.asks for one in groups.values()) == len(rows)
    assert sum(one.asks for one in by_tag[0].values()) == sum(max(1, len(tags)) for _, _, tags in rows)
    assert by_tag[1].cost == whole


# -- databases of earlier and later versions -----------------------------------------------------------------------


def grow_old(file: Path) -> None:
    """Make a database what the first version would have left: no table of asks, and one column less."""
    with contextlib.closing(sqlite3.connect(file)) as database, database:
        database.execute("drop table extractor_ask")
        database.execute("alter table extractor_run drop column stopped_by")
        database.execute("update extractor_meta set value = '1'")


def test_an_older_database_gets_what_it_lacks_and_keeps_what_it_has(file: Path) -> None:
    """Missing tables and columns are added when it is opened, once; documents stay settled and replies kept."""
    pipeline, _ = ticks(file, tick("one"))
    pipeline.extract(b"a tick", name="a.txt")
    pipeline.store().close()
    grow_old(file)
    for _ in range(2):
        again, model = ticks(file, tick("two"))
        assert again.extract(b"a tick", name="a.txt").is_cached
        again.store().close()
    again, model = ticks(file, tick("two"))
    assert again.extract(b"another", name="b.txt").status is Status.DONE
    assert (len(model.asks), len(asked(file))) == (1, 1)
    again.store().end_run(again.store().start_run("ticks", "f", "m"), "terminated")
    with sqlite3.connect(file) as database:
        assert database.execute("select value from extractor_meta").fetchall() == [(str(tables.VERSION),)]
        assert database.execute("select stopped_by from extractor_run").fetchall() == [("terminated",)]


def test_a_database_of_a_later_version_is_refused_and_left_alone(file: Path) -> None:
    """What a later version has written is not touched."""
    Store(f"sqlite:///{file}").close()
    with sqlite3.connect(file) as database:
        database.execute("update extractor_meta set value = '99'")
        database.execute("drop table extractor_ask")
    with pytest.raises(StoreError, match="later version"):
        Store(f"sqlite:///{file}")
    with sqlite3.connect(file) as database:
        assert database.execute("select value from extractor_meta").fetchall() == [("99",)]
        assert not database.execute("select 1 from sqlite_master where name = 'extractor_ask'").fetchall()


def test_a_store_that_only_reads_changes_nothing(file: Path) -> None:
    """A missing database stays missing and reads as empty; an old one is read as it stands; writing fails."""
    empty = Store(f"sqlite:///{file}", reads_only=True)
    assert empty.read(lambda session: ledger.works(session, None)) == []
    empty.close()
    assert not list(file.parent.iterdir())
    pipeline, _ = ticks(file, tick("one"))
    pipeline.extract(b"a tick", name="a.txt")
    pipeline.store().close()
    grow_old(file)
    before, names = file.read_bytes(), sorted(file.parent.iterdir())
    old = Store(f"sqlite:///{file}", reads_only=True)
    assert [work["status"] for work in old.read(lambda session: ledger.works(session, None))] == ["done"]
    with pytest.raises(StoreError, match="readonly"):
        old.start_run("ticks", "f", "m")
    old.close()
    assert (file.read_bytes(), sorted(file.parent.iterdir())) == (before, names)


def test_a_database_of_somebody_else_reads_as_empty(file: Path) -> None:
    """A host's file without tables of ours is not given any by looking; what is no database is one clear error."""
    with sqlite3.connect(file) as database:
        database.execute("create table host (id integer)")
    before = file.read_bytes()
    store = Store(f"sqlite:///{file}", reads_only=True)
    assert store.read(lambda session: ledger.works(session, None)) == []
    store.close()
    assert file.read_bytes() == before
    file.write_bytes(b"no database at all" * 100)
    with pytest.raises(StoreError, match="not a database"):
        Store(f"sqlite:///{file}", reads_only=True)
