"""Exact money in SQLite."""

from __future__ import annotations

import sqlite3
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import StatementError
from sqlalchemy.orm import registry
from sqlalchemy.schema import CreateTable
from sqlmodel import Field, Session, SQLModel, create_engine, select

from extractor.errors import StoreError
from extractor.store.forms import json_text
from extractor.store.money import DIGITS, ExactDecimal, check_constraints, check_storage, make_exact, plain

BIG = Decimal("12345678901234567.8912")


class Tables(SQLModel, registry=registry()):
    """Tables of their own, so that names stay free for other tests."""


class InCents(sa.TypeDecorator[int]):
    """A type of a user's, around ``Numeric``: whole cents in Python, an amount in the database."""

    impl = sa.Numeric(20, 2)
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Any) -> Any:
        return None if value is None else Decimal(value) / 100

    def process_result_value(self, value: Any, dialect: Any) -> Any:
        return None if value is None else int(value * 100)


class Payment(Tables, table=True):
    id: int | None = Field(default=None, primary_key=True)
    amount: Decimal = Field(max_digits=30, decimal_places=4)
    free: Decimal | None = None
    rate: float = 0.0
    cents: int | None = Field(default=None, sa_type=InCents)
    detail: dict[str, Any] | None = Field(default=None, sa_column=sa.Column(sa.JSON))


BUILT_BEFORE = select(Payment).where(Payment.amount == BIG)
make_exact(Tables.metadata)


@pytest.fixture
def engine(tmp_path: Path) -> Any:
    """An SQLite file with the table in it."""
    made = create_engine(f"sqlite:///{tmp_path / 'money.db'}", json_serializer=json_text)
    Tables.metadata.create_all(made)
    yield made
    made.dispose()


def stored(engine: Any, column: str) -> Any:
    """What stands in the file, as the driver gives it."""
    with engine.connect() as connection:
        return connection.exec_driver_sql(f"SELECT {column} FROM payment").scalar()


def kept(engine: Any, **values: Any) -> Payment:
    """A payment written in one session and read in another."""
    with Session(engine) as session:
        session.add(Payment(**values))
        session.commit()
    with Session(engine) as session:
        return session.exec(select(Payment).order_by(sa.desc("id"))).first()  # type: ignore[return-value]


def test_a_long_amount_is_exact_on_the_way_back(engine: Any) -> None:
    """A15: 12345678901234567.8912 comes out of an SQLite file as it went in, and is plain text in there."""
    assert kept(engine, amount=BIG, free=BIG).amount == BIG
    assert stored(engine, "amount") == "12345678901234567.8912"
    assert stored(engine, "free") == "12345678901234567.8912"


@pytest.mark.parametrize(
    ("value", "amount", "free"),
    [
        ("12.5", "12.5000", "12.5"),
        ("-12.50", "-12.5000", "-12.5"),
        ("1E+3", "1000.0000", "1000"),
        ("1E-3", "0.0010", "0.001"),
        ("-0", "0.0000", "0"),
        ("-0.00001", "0.0000", "-0.00001"),
        ("0.00005", "0.0001", "0.00005"),
        ("-0.00005", "-0.0001", "-0.00005"),
        ("100", "100.0000", "100"),
    ],
)
def test_equal_amounts_have_one_plain_text(engine: Any, value: str, amount: str, free: str) -> None:
    """Exponents are written out, the digits of the column's scale are kept, and a zero has no sign."""
    kept(engine, amount=Decimal(value), free=Decimal(value))
    assert stored(engine, "amount") == amount
    assert stored(engine, "free") == free
    with Session(engine) as session:
        for column in (Payment.amount, Payment.free):
            assert session.exec(select(Payment).where(column == Decimal(value))).one().rate == 0.0


@settings(max_examples=200, deadline=None)
@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**30), max_value=10**30))
def test_any_amount_comes_back_equal(value: Decimal) -> None:
    """What is read equals what was written, and equal amounts have equal texts."""
    exact = ExactDecimal()
    dialect: Any = None
    text = exact.process_bind_param(value, dialect)
    assert exact.process_result_value(text, dialect) == value
    assert text == exact.process_bind_param(value.normalize(Context(prec=100)) if value else -value, dialect)
    assert "E" not in str(text)


def test_a_users_own_type_around_numeric_is_exact_too(engine: Any) -> None:
    """A type decorator over ``Numeric`` hands its Decimal to the exact form."""
    assert kept(engine, amount=BIG, cents=1234567890123456789).cents == 1234567890123456789
    assert stored(engine, "cents") == "12345678901234567.89"


def test_null_is_null(engine: Any) -> None:
    """A column without a value stays without one."""
    assert kept(engine, amount=Decimal(1)).free is None
    with Session(engine) as session:
        assert len(session.exec(select(Payment).where(Payment.free == None)).all()) == 1  # noqa: E711


def test_decimals_in_a_json_column_keep_their_digits(engine: Any) -> None:
    """JSON has no decimals: they are kept as text, digit by digit."""
    found = kept(engine, amount=Decimal(1), detail={"net": BIG, "tax": [Decimal("1E+3"), None]})
    assert found.detail == {"net": "12345678901234567.8912", "tax": ["1000", None]}


@pytest.mark.parametrize("value", ["NaN", "sNaN", "Infinity", "-Infinity", f"1E+{DIGITS + 1}", f"1E-{DIGITS + 1}"])
def test_what_is_no_amount_is_refused(engine: Any, value: str) -> None:
    """NaN, infinities and amounts of absurd length do not reach the file."""
    with pytest.raises(StatementError, match="an amount of money"):
        kept(engine, amount=Decimal(value))


@pytest.mark.parametrize("value", ["12.50", True, b"1", [1]])
def test_what_is_no_number_is_refused(engine: Any, value: Any) -> None:
    """Text in an amount is refused, also where it looks like a number: the column of another database would too."""
    with pytest.raises(StatementError, match="an amount of money is a Decimal"):
        kept(engine, amount=value)


def test_whole_numbers_and_floats_count_as_they_are_printed(engine: Any) -> None:
    """An int or a float in an amount is taken as Python prints it, never as its binary fraction."""
    found = kept(engine, amount=7, free=0.1)
    assert (found.amount, found.free) == (Decimal(7), Decimal("0.1"))


def test_statements_from_before_speak_the_exact_form_too(engine: Any) -> None:
    """A query that was built before ``make_exact`` finds what was written after it."""
    kept(engine, amount=BIG)
    with Session(engine) as session:
        assert session.exec(BUILT_BEFORE).one().amount == BIG


def test_a_table_that_was_used_before_is_exact_for_a_new_engine() -> None:
    """``make_exact`` holds for engines that come after it, though another has spoken to the table before."""

    class Late(SQLModel, registry=registry()):
        pass

    class Cash(Late, table=True):
        id: int | None = Field(default=None, primary_key=True)
        amount: Decimal = Field(decimal_places=4, max_digits=30)

    def through_an_engine() -> Decimal:
        engine = create_engine("sqlite://")
        Late.metadata.create_all(engine)
        with Session(engine) as session:
            session.add(Cash(amount=BIG))
            session.commit()
            amount = session.exec(select(Cash).where(Cash.amount == BIG)).one().amount
        engine.dispose()
        return amount

    assert through_an_engine() != BIG
    make_exact(Late.metadata)
    assert through_an_engine() == BIG


def test_doing_it_again_changes_nothing_and_other_columns_are_left_alone() -> None:
    """Idempotent; floats, foreign forms for SQLite, and other databases stay as they were."""
    table = sa.Table(
        "t",
        sa.MetaData(),
        sa.Column("amount", sa.Numeric(10, 2)),
        sa.Column("float", sa.Float),
        sa.Column("numeric", sa.Numeric(asdecimal=False)),
        sa.Column("odd", sa.Float(asdecimal=True)),
        sa.Column("own", sa.Numeric(10, 2).with_variant(sa.Integer(), "sqlite")),
    )
    make_exact([table])
    kinds = [column.type for column in table.columns]
    make_exact([table])
    assert all(column.type is kind for column, kind in zip(table.columns, kinds, strict=True))
    on_sqlite = str(CreateTable(table).compile(dialect=sa.create_engine("sqlite://").dialect))
    assert [line.split()[1] for line in on_sqlite.splitlines()[2:7]] == [
        "VARCHAR,", "FLOAT,", "NUMERIC,", "FLOAT,", "INTEGER",
    ]  # fmt: skip
    elsewhere: Any = postgresql.dialect
    assert "amount NUMERIC(10, 2)" in str(CreateTable(table).compile(dialect=elsewhere()))


def test_sums_in_sql_still_give_decimals(engine: Any) -> None:
    """Arithmetic in SQL is SQLite's own, through floats, and comes back as a Decimal all the same."""
    kept(engine, amount=Decimal("1.25"))
    with Session(engine) as session:
        assert session.exec(select(sa.func.sum(Payment.amount))).one() == Decimal("1.25")


def ruled(*rules: Any, **columns: Any) -> sa.Table:
    """A table with these rules on it."""
    amounts = [sa.Column(name, sa.Numeric(10, 2)) for name in ("net", "total", "in")]
    return sa.Table("bill", sa.MetaData(), *amounts, sa.Column("number", sa.Integer), *rules)


@pytest.mark.parametrize(
    "rule",
    [
        sa.CheckConstraint("net + 1 = total", name="adds_up"),
        sa.CheckConstraint('"TOTAL" >= 0', name="adds_up"),
        sa.CheckConstraint(sa.column("total") > sa.literal(Decimal(3)), name="adds_up"),
        sa.CheckConstraint("total IS NOT NULL AND total > 1", name="adds_up"),
    ],
)
def test_a_rule_that_counts_with_money_is_refused(rule: sa.CheckConstraint) -> None:
    """A CHECK with arithmetic on text would refuse true sums: one line says which, and what to do."""
    table = ruled(rule)
    with pytest.raises(StoreError) as caught:
        check_constraints([table], "sqlite")
    said = str(caught.value)
    assert said.startswith("CHECK 'adds_up' of table 'bill' counts with ")
    assert "'total'" in said
    assert "check it in Python, in the extraction function" in said
    assert "\n" not in said
    check_constraints([table], "postgresql")


def test_a_rule_without_a_name_and_a_computed_column_are_refused() -> None:
    """A nameless rule is shown itself, and a computed column with money in it goes through floats too."""
    table = ruled(sa.CheckConstraint("total > net"), sa.Column("double", sa.Numeric(), sa.Computed("net * 2")))
    with pytest.raises(StoreError) as caught:
        check_constraints(table.metadata, "sqlite")
    assert "CHECK (total > net) of table 'bill' counts with 'net', 'total'" in str(caught.value)
    assert "computed column 'double' of table 'bill' counts with 'net'" in str(caught.value)


@pytest.mark.parametrize(
    "rule",
    [
        "number > 0",
        "total IS NOT NULL",
        "net is null or number > 1",
        "number <> 'total'",
        "subtotal = 1",
        '"in" ISNULL',
    ],
)
def test_a_rule_that_does_not_count_with_money_stays(rule: str) -> None:
    """Rules on other columns, and on whether there is an amount at all, hold on text as well."""
    check_constraints([ruled(sa.CheckConstraint(rule))], "sqlite")


def test_a_column_that_turns_text_into_floats_is_refused(tmp_path: Path, engine: Any) -> None:
    """A table that someone else made with NUMERIC would lose digits without a word: it is named."""
    with engine.connect() as connection:
        check_storage(connection, Tables.metadata)
    with sqlite3.connect(tmp_path / "other.db") as plain_file:
        plain_file.execute("CREATE TABLE payment (id INTEGER PRIMARY KEY, amount NUMERIC(30, 4), free TEXT)")
    plain_file.close()
    other = create_engine(f"sqlite:///{tmp_path / 'other.db'}")
    with other.connect() as connection, pytest.raises(StoreError) as caught:
        check_storage(connection, Tables.metadata)
    other.dispose()
    assert str(caught.value).startswith("column 'amount' of table 'payment' is NUMERIC(30, 4); ")
    assert "make the column TEXT" in str(caught.value)


def test_plain_text_is_rounded_half_away_from_zero() -> None:
    """As PostgreSQL rounds to a column's scale, so do we."""
    assert [plain(Decimal(text), 2) for text in ("0.005", "-0.005", "2.675", "1E+2")] == [
        "0.01", "-0.01", "2.68", "100.00",
    ]  # fmt: skip
