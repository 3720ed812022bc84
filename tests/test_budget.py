"""Budgets: a limit is never passed, whatever the number of workers, and a run that was stopped goes on."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledger_schema import Tick

from extractor import Pipeline, Status
from extractor.budget import Account, Limits, at_most
from extractor.engines.local import LeftForLater, Stop
from extractor.errors import ConfigurationError, UsageError
from extractor.messages import Ask, Image, Message, Offer, Reply, Sampling, ToolCall, ToolResult, Unanswered, Usage
from extractor.models.tokens import about, at_least
from extractor.prices import FREE, NO_START, Price, Tariff
from extractor.testing import Scripted, call, reply

PRICE = Price(Decimal(1), Decimal(2), Decimal("0.1"))
TARIFF = Tariff(((NO_START, PRICE),), "own price")
OFFER = Offer("create_tick", "Record a tick.", {"type": "object", "properties": {"name": {"type": "string"}}})


def an_ask(words: int = 10, cap: int = 100) -> Ask:
    """A question of so many words, with a cap on its answer."""
    return Ask((Message("user", "word " * words),), (OFFER,), sampling=Sampling(max_tokens=cap))


def worst(ask: Ask) -> int:
    """The most tokens that an ask may take."""
    most = at_most(ask)
    return most.input_tokens + most.output_tokens


# -- the bound -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("1234567890" * 30, 300),  # a token for each digit, as some tokenizers have it
        ("請求書の合計" * 30, 360),  # two for each character
        ("||--||;;..,," * 30, 360),
        ("Invoice total net amount " * 30, 150),
        ("\ud800" * 30, 90),
        ("", 0),
    ],
)
def test_the_bound_of_a_text(text: str, tokens: int) -> None:
    """Digits, marks and foreign characters count one by one, words by half their letters."""
    plain = Ask((Message("user", ""),))
    assert at_most(Ask((Message("user", text),))).input_tokens - at_most(plain).input_tokens >= tokens


@given(st.text(max_size=300))
def test_the_bound_is_above_every_estimate(text: str) -> None:
    """A question is reserved at more than it is about, and than the pieces that no tokenizer joins."""
    ask = Ask((Message("user", text),), (OFFER,))
    assert at_most(ask).input_tokens > max(about(ask), at_least(ask))


def test_the_bound_counts_all_that_is_sent() -> None:
    """Offers, calls, results and pictures are part of a question, and its cap is the answer's."""
    small = Ask((Message("user", "x"),))
    result = ToolResult("1", "f", "total: wrong " * 50)
    turn = Message("assistant", "", (ToolCall("1", "f", '{"a": "1234567890"}'), ToolCall("2", "f", {"b": [1, 2]})))
    for more in (
        Ask((Message("user", "x"), turn)),
        Ask((Message("user", "x"), Message("tool", tool_results=(result,)))),
        Ask((Message("user", "x", images=(Image(b"png"),)),)),
        Ask((Message("user", "x"),), (OFFER,)),
    ):
        assert at_most(more).input_tokens > at_most(small).input_tokens + 10
    assert at_most(an_ask(cap=77)).output_tokens == 77


# -- the account -----------------------------------------------------------------------------------------------------


async def spend(account: Account, asks: int, seed: int, *, overrun: bool = False) -> tuple[int, int, int]:
    """Put so many questions at once, answered in any order; how many were answered, left, and lost."""
    chance = random.Random(seed)
    ask = an_ask()
    most = at_most(ask)

    async def put(_: Ask) -> Reply | Unanswered:
        for _turn in range(chance.randint(0, 5)):
            await asyncio.sleep(0)
        if chance.random() < 0.1:
            raise OSError("lost")
        used = Usage(chance.randint(1, most.input_tokens), chance.randint(0, most.output_tokens))
        if chance.random() < 0.1:
            return Unanswered("timeout", "late", usage=used)
        return Reply("x", usage=used + Usage(10_000) if overrun else used)

    ends = await asyncio.gather(*(account.put(ask, put) for _ in range(asks)), return_exceptions=True)
    left, lost = (sum(isinstance(end, kind) for end in ends) for kind in (LeftForLater, OSError))
    return asks - left - lost, left, lost


@given(st.integers(1, 40), st.integers(0, 10**6), st.integers(0, 2**32))
def test_a_limit_of_tokens_is_never_passed(asks: int, limit: int, seed: int) -> None:
    """However many questions are put at once, in whichever order they end, the sum stays within the limit; it stops
    once, and only when the next question would not have fitted."""
    reasons: list[str] = []
    account = Account([TARIFF], Limits(tokens=limit + 1), reasons.append)
    answered, left, _ = asyncio.run(spend(account, asks, seed))
    spent = account.usage.input_tokens + account.usage.output_tokens
    assert spent <= limit + 1
    assert account.asks == answered
    assert bool(left) == bool(reasons) == (len(reasons) == 1)
    if left:
        assert spent + worst(an_ask()) > limit + 1


@given(st.integers(1, 40), st.integers(1, 30_000), st.integers(0, 2**32))
def test_a_limit_of_money_is_never_passed(asks: int, millionths: int, seed: int) -> None:
    """The same in dollars, to the last digit."""
    limit = Decimal(millionths) / 10**6
    account = Account([TARIFF], Limits(cost=limit))
    _, left, _ = asyncio.run(spend(account, asks, seed))
    assert account.cost <= limit
    assert account.cost == PRICE.of(account.usage)
    if left:
        assert account.cost + (TARIFF.of(at_most(an_ask())) or 0) > limit


def test_a_question_waits_while_what_is_in_flight_may_leave_enough() -> None:
    """Two questions that do not fit side by side are put one after the other."""
    present: list[int] = []

    async def put(_: Ask) -> Reply:
        present.append(1)
        assert sum(present) == 1
        await asyncio.sleep(0)
        present.append(-1)
        return Reply("x", usage=Usage(5, 5))

    async def two() -> None:
        account = Account([TARIFF], Limits(tokens=worst(an_ask()) + 20))
        await asyncio.gather(*(account.put(an_ask(), put) for _ in range(3)))
        assert account.asks == 3

    asyncio.run(two())


def test_what_turns_out_dearer_is_charged_as_it_is() -> None:
    """An answer that takes more than was set aside counts in full, and nothing more is asked."""
    account = Account([TARIFF], Limits(tokens=20 * worst(an_ask())))
    answered, left, _ = asyncio.run(spend(account, 40, 7, overrun=True))
    assert account.asks == answered < 40
    assert left
    assert account.usage.input_tokens >= 10_000


def test_an_answer_that_does_not_say_its_tokens_counts_as_the_worst() -> None:
    """Where a server reports no usage, the limit is kept by what was set aside, and the cost is unknown, not 0."""

    async def put(_: Ask) -> Reply:
        return Reply("x")

    async def go(account: Account) -> Any:
        return await asyncio.gather(*(account.put(an_ask(), put) for _ in range(4)), return_exceptions=True)

    account = Account([TARIFF], Limits(tokens=2 * worst(an_ask()) + 1))
    ends = asyncio.run(go(account))
    assert [isinstance(end, LeftForLater) for end in ends] == [False, False, True, True]
    assert (ends[0], account.cost, account.unpriced) == ((Reply("x"), None), 0, 2)
    free = Account([Tariff(((NO_START, FREE),), "runs on this machine")])
    assert asyncio.run(go(free))[0] == (Reply("x"), Decimal(0))
    assert free.unpriced == 0


def test_a_cancelled_question_gives_back_what_was_set_aside() -> None:
    """After a cancelled question, in flight or waiting, the others are put."""

    async def go() -> int:
        account = Account([TARIFF], Limits(tokens=worst(an_ask())))
        forever = asyncio.Event()

        async def stuck(_: Ask) -> Reply:
            await forever.wait()
            return Reply("x")

        async def quick(_: Ask) -> Reply:
            return Reply("x", usage=Usage(1, 1))

        first = asyncio.ensure_future(account.put(an_ask(), stuck))
        second = asyncio.ensure_future(account.put(an_ask(), stuck))
        await asyncio.sleep(0)
        second.cancel()
        first.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
        await asyncio.wait_for(account.put(an_ask(0), quick), 5)
        return account.asks

    assert asyncio.run(go()) == 1


# -- a run ---------------------------------------------------------------------------------------------------------


def create_tick(name: str) -> Tick:
    """Record a tick."""
    return Tick(name=name)


def ticks(database: str, seed: int = 0, price: Price | None = PRICE) -> tuple[Pipeline, Scripted]:
    """A pipeline whose model answers in any order, with any usage that a question of it may have."""
    chance = random.Random(seed)

    async def answer(ask: Ask) -> Reply:
        for _ in range(chance.randint(0, 8)):
            await asyncio.sleep(0)
        used = Usage(chance.randint(1, at_most(ask).input_tokens), chance.randint(1, ask.sampling.max_tokens))
        return reply(call("create_tick", name=ask.messages[-1].content[-40:].strip()), usage=used)

    model = Scripted(answer)
    if price is not None:
        model.price = price  # type: ignore[attr-defined]
    return Pipeline(create_tick, name="ticks", model=model, database=database, max_tokens=200), model


DOCUMENTS = [f"document {n}".encode() for n in range(40)]


@pytest.mark.parametrize("seed", range(8))
def test_a_run_keeps_its_budget_with_many_workers_and_goes_on(tmp_path: Path, seed: int) -> None:
    """With sixteen workers no run passes its limit; runs with the same limit come to the end, and every document is
    done once and asked once."""
    file = tmp_path / "b.db"
    pipeline, model = ticks(f"sqlite:///{file}", seed)
    limit = Decimal("0.02") if seed % 2 else None
    tokens = None if seed % 2 else 15_000
    settled, runs = 0, 0
    while settled < len(DOCUMENTS):
        stop = Stop()
        before = len(model.asks)
        outcomes = list(pipeline.map(DOCUMENTS, workers=16, stop=stop, max_cost=limit, max_tokens=tokens))
        assert {outcome.status for outcome in outcomes} == {Status.DONE}
        settled, runs = len(outcomes), runs + 1
        assert len(model.asks) > before, "a run that asks nothing goes on for ever"
        if settled < len(DOCUMENTS):
            assert stop.reason.startswith("the budget of ")
        with sqlite3.connect(file) as database:
            rows = database.execute("select cost, input_tokens + output_tokens from extractor_ask").fetchall()[before:]
            left = database.execute("select count(*) from extractor_work where status = 'failed'").fetchone()
        assert left == (0,)
        assert len(rows) == len(model.asks) - before
        assert limit is None or sum(Decimal(cost) for cost, _ in rows) <= limit
        assert tokens is None or sum(count for _, count in rows) <= tokens
    assert runs > 1
    with sqlite3.connect(file) as database:
        assert database.execute("select count(*), count(distinct name) from t_tick").fetchone() == (40, 40)
    assert len(model.asks) == 40


def test_a_budget_of_a_model_without_a_price_is_refused_before_any_ask(tmp_path: Path) -> None:
    """A limit in dollars cannot be kept for it: an error that says how to give the price; a limit in tokens can."""
    pipeline, model = ticks(f"sqlite:///{tmp_path}/b.db", price=None)
    with pytest.raises(ConfigurationError, match=r"price of scripted is not known.*\[tool.extractor.models.NAME\]"):
        pipeline.extract(b"a tick", max_cost=1)
    assert model.asks == []
    assert pipeline.extract(b"a tick", max_tokens=100_000).status is Status.DONE


def test_one_document_that_does_not_fit_is_an_error_and_is_taken_later(tmp_path: Path) -> None:
    """``extract`` has no outcome to give back then, and says why."""
    pipeline, model = ticks(f"sqlite:///{tmp_path}/b.db")
    with pytest.raises(UsageError, match=r"a\.txt was not read: the budget of \$0\.0001 is reached \(spent \$0\.00"):
        pipeline.extract(b"a tick", name="a.txt", max_cost="0.0001")
    assert model.asks == []
    assert pipeline.extract(b"a tick", name="a.txt", max_cost=0.5).status is Status.DONE


@pytest.mark.parametrize(
    "options", [{"max_cost": "much"}, {"max_cost": 0}, {"max_cost": "inf"}, {"max_cost": -1}, {"max_tokens": 0},
                {"tags": [""]}, {"tags": ["a\nb"]}, {"tags": [7]}, {"tags": "x" * 101}],
)  # fmt: skip
def test_options_that_mean_nothing_are_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    """A budget is an amount above 0, and a tag is a short text."""
    pipeline, model = ticks(f"sqlite:///{tmp_path}/b.db")
    with pytest.raises(UsageError):
        pipeline.extract(b"a tick", **options)
    assert model.asks == []
