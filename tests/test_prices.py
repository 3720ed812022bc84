"""Prices: exact, cached tokens as cached, and never 0 for what nobody knows."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from genai_prices import Usage as Counted
from genai_prices.data_snapshot import get_snapshot
from hypothesis import given
from hypothesis import strategies as st

from extractor.messages import Usage
from extractor.prices import FREE, Price, as_json, dollars, in_words, price_of, tariff

OWN = Price(Decimal("2.5"), Decimal(10), Decimal("0.25"))
NAMES = {"google": "gemini", "x-ai": "xai", "aws": "bedrock"}


@pytest.mark.parametrize(
    ("model", "usage", "cost"),
    [
        ("openai/gpt-5-mini", Usage(1000, 10), "0.00027"),
        ("openai/gpt-5-mini#json", Usage(1000, 10), "0.00027"),
        ("openai/gpt-5-mini", Usage(1000, 10, 400), "0.00018"),
        ("openai/gpt-5-mini", Usage(1000, 0, 5000), "0.000025"),  # more is not cached than there is
        ("azure/gpt-4o", Usage(1000, 10, 400), "0.0021"),
        ("local/qwen2.5-coder-0.5b", Usage(1000, 10), "0"),
        ("local:weights.gguf", Usage(1000, 10), "0"),
        ("openai/stub", Usage(1000, 10), None),
        ("openai/stub", Usage(), None),
        ("nobody/gpt-5-mini", Usage(1000, 10), None),
        ("scripted", Usage(1000, 10), None),
        ("", Usage(1000, 10), None),
    ],
)
def test_what_an_ask_costs(model: str, usage: Usage, cost: str | None) -> None:
    """The list price by the model's name, nothing on this machine, and ``None`` where there is no price."""
    found = price_of(model, usage)
    assert found == (Decimal(cost) if cost is not None else None)
    assert found is None or isinstance(found, Decimal)


def test_the_price_of_the_user_goes_before_the_list() -> None:
    """A price from an alias holds for a listed model, for an unknown one, and for one on this machine."""
    for model in ("openai/gpt-5-mini", "openai/stub", "local/qwen2.5-coder-0.5b"):
        assert price_of(model, Usage(1_000_000, 100_000, 400_000), OWN) == Decimal("2.60")
    assert price_of("openai/stub", Usage(1_000_000, 0, 400_000), Price(Decimal(1), Decimal(1))) == 1
    assert price_of("openai/stub", Usage(5, 5), FREE) == 0


def test_a_long_question_is_priced_by_its_tier() -> None:
    """Above a tier's start all tokens of a question cost what the tier says, and the words of the price say so."""
    below, above = Usage(200_000, 10), Usage(200_001, 10)
    assert price_of("anthropic/claude-sonnet-4-5", below) == Decimal("0.60015")
    assert price_of("anthropic/claude-sonnet-4-5", above) == Decimal("1.200231")
    assert "more for long questions" in str(tariff("anthropic/claude-sonnet-4-5"))


@pytest.mark.parametrize("usage", [Usage(1234, 567), Usage(1234, 567, 1000), Usage(250_000, 9000, 100_000)])
def test_every_listed_model_costs_what_the_list_says(usage: Usage) -> None:
    """Our sums are those of genai-prices for each model that is priced by the token, and ``None`` for the others."""
    counted = Counted(
        input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, cache_read_tokens=usage.cached_tokens
    )
    snapshot, compared = get_snapshot(), 0
    for provider in snapshot.providers:
        for model in provider.models:
            name = f"{NAMES.get(provider.id, provider.id)}/{model.id}"
            hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
            try:
                found = snapshot.calc(counted, model.id, provider.id, None, hour)
            except LookupError:
                continue
            rates: Any = found.model_price
            by_token = None not in (rates.input_mtok, rates.output_mtok) and rates.requests_kcount is None
            cost = price_of(name, usage)
            assert cost == (found.total_price if by_token else None), name
            compared += by_token
    assert compared > 1000


@given(st.lists(st.builds(Usage, *[st.integers(0, 10**9)] * 3), max_size=20))
def test_sums_are_exact(asks: list[Usage]) -> None:
    """The price of many asks is the sum of their prices, to the last digit, whatever their order."""
    costs = [OWN.of(usage) for usage in asks]
    assert sum(costs, Decimal(0)) == sum(reversed(costs), Decimal(0))
    cached = [min(one.cached_tokens, one.input_tokens) for one in asks]
    millionths = sum(
        (usage.input_tokens - part) * 250 + part * 25 + usage.output_tokens * 1000
        for usage, part in zip(asks, cached, strict=True)
    )
    assert sum(costs, Decimal(0)) * 10**8 == millionths


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (None, "unknown"), ("0", "$0.00"), ("0.125", "$0.125"), ("0.1", "$0.10"), ("0.00018", "$0.00018"),
        ("0.0123456", "$0.0123"), ("12.345", "$12.34"), ("1234.5", "$1,234.50"), ("1E-9", "$0.000000001"),
    ],
)  # fmt: skip
def test_amounts_as_people_read_them(amount: str | None, text: str) -> None:
    """Cents, and for small amounts the digits that tell them apart; what is unknown is said so."""
    assert dollars(Decimal(amount) if amount is not None else None) == text


@pytest.mark.parametrize(
    ("asks", "unpriced", "words", "exact"),
    [
        (0, 0, "$0.50", "0.5"),
        (4, 0, "$0.50", "0.5"),
        (4, 1, "$0.50 and 1 asks of unknown cost", "0.5"),
        (4, 4, "cost unknown", None),
    ],
)
def test_sums_say_what_is_unknown(asks: int, unpriced: int, words: str, exact: str | None) -> None:
    """A sum over asks of unknown cost is never shown as if it were all."""
    assert in_words(Decimal("0.50"), asks, unpriced) == words
    assert as_json(Decimal("0.50"), asks, unpriced) == exact


def test_the_words_of_a_price() -> None:
    """A price says what it is for and who says so."""
    assert str(tariff("openai/gpt-5-mini")) == (
        "$0.25 in, $2.00 out, $0.025 cached per million tokens (list price)"
    )  # fmt: skip
    assert str(tariff("local/qwen2.5-coder-0.5b")) == "free (runs on this machine)"
    assert str(tariff("openai/stub")) == "unknown"
    assert str(tariff("openai/stub", Price(Decimal(1), Decimal(2)))) == (
        "$1.00 in, $2.00 out per million tokens (own price)"
    )  # fmt: skip


def test_the_price_list_is_loaded_when_it_is_needed() -> None:
    """A model on this machine, or one with a price of its own, costs no import of the list."""
    code = (
        "import json, sys; from decimal import Decimal; from extractor.messages import Usage;"
        "from extractor.prices import Price, price_of;"
        "price_of('local/x', Usage(1, 1)), price_of('openai/x', Usage(1, 1), Price(Decimal(1), Decimal(1)));"
        "print(json.dumps([name for name in sys.modules if name.partition('.')[0] in ('genai_prices', 'pydantic')]))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert json.loads(said) == []
