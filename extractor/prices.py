"""Tokens as money: US dollars, exact, and ``None`` where nobody knows a price. What is not known is never shown as 0.

A model's price is its own (from its alias), or the list price that genai-prices ships: its data come with the package
and are updated with it, never over the network. A model that runs on this machine is free, which is a known price.
"""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from extractor.messages import Usage

MILLION = Decimal(1_000_000)
LOCAL = ("local/", "local:")
NO_START = -1
"""Where the first tier begins: it holds for a question of no tokens, too."""

_PROVIDERS = {"gemini": "google", "vertex": "google", "vertexai": "google", "xai": "x-ai", "bedrock": "aws"}
"""Our names of providers where the price list has others."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens. ``cached`` is for input tokens that the provider had in its cache; without it
    they cost what other input costs."""

    input: Decimal
    output: Decimal
    cached: Decimal | None = None

    def of(self, usage: Usage) -> Decimal:
        """What so many tokens cost."""
        cached = min(usage.cached_tokens, usage.input_tokens)
        rate = self.input if self.cached is None else self.cached
        return (
            (usage.input_tokens - cached) * self.input + cached * rate + usage.output_tokens * self.output
        ) / MILLION


FREE = Price(Decimal(0), Decimal(0), Decimal(0))


@dataclass(frozen=True, slots=True)
class Tariff:
    """What a model's tokens cost, and who says so.

    ``tiers`` are prices, each with the number of input tokens in one question above which it holds for all of them;
    there is none where the price is not known.
    """

    tiers: tuple[tuple[int, Price], ...] = ()
    origin: str = "unknown"

    @property
    def is_known(self) -> bool:
        """Whether there is a price at all."""
        return bool(self.tiers)

    @property
    def is_free(self) -> bool:
        """Whether nothing that it does costs anything."""
        return self.is_known and all(price.input == price.output == 0 for _, price in self.tiers)

    def of(self, usage: Usage) -> Decimal | None:
        """What one ask cost; ``None`` when the price is not known."""
        found = [price for start, price in self.tiers if usage.input_tokens > start]
        return found[-1].of(usage) if found else None

    def __str__(self) -> str:
        if not self.tiers:
            return "unknown"
        price = self.tiers[0][1]
        if self.is_free:
            return f"free ({self.origin})"
        cached = f", {dollars(price.cached)} cached" if price.cached is not None else ""
        more = ", more for long questions" if len(self.tiers) > 1 else ""
        rates = f"{dollars(price.input)} in, {dollars(price.output)} out{cached}"
        return f"{rates} per million tokens{more} ({self.origin})"


def price_of(model: str, usage: Usage, own: Price | None = None) -> Decimal | None:
    """What one ask cost in US dollars; ``None`` when nobody knows.

    :param model: the model's name, such as ``openai/gpt-5-mini``.
    :param own: the price that the user gives for it; it goes before the list.
    """
    return tariff(model, own).of(usage)


def tariff(model: str, own: Price | None = None) -> Tariff:
    """The price of a model of that name: its own, free on this machine, from the list, or unknown."""
    if own is not None:
        return Tariff(((NO_START, own),), "own price")
    if model.startswith(LOCAL):
        return Tariff(((NO_START, FREE),), "runs on this machine")
    return _listed(model, int(time.time()) // 3600)


def in_words(cost: Decimal, asks: int, unpriced: int) -> str:
    """What so many asks cost together, of which some have no known price."""
    if not unpriced:
        return dollars(cost)
    return "cost unknown" if unpriced == asks else f"{dollars(cost)} and {unpriced:,} asks of unknown cost"


def as_json(cost: Decimal, asks: int, unpriced: int) -> str | None:
    """The same exactly, for programs: ``None`` where nothing of it is known."""
    return None if unpriced and unpriced == asks else format(cost.normalize(), "f")


def dollars(amount: Decimal | None) -> str:
    """An amount as people read it: in cents, and under a dollar to three digits that are not zero."""
    if amount is None:
        return "unknown"
    places = 2 if amount == 0 or amount >= 1 else max(2, 2 - amount.adjusted())
    text = format(round(amount, places), ",f")
    whole, _, part = text.partition(".")
    return f"${whole}.{part.rstrip('0').ljust(2, '0')}"


@functools.lru_cache(maxsize=256)
def _listed(model: str, hour: int) -> Tariff:
    """The list price of a model, looked up once an hour: some prices begin on a day, or hold for part of it."""
    from genai_prices import Usage as Counted
    from genai_prices import calc_price

    provider, _, name = model.partition("#")[0].partition("/")
    moment = datetime.fromtimestamp(hour * 3600, UTC)
    listed = _PROVIDERS.get(provider, provider)
    try:
        found = calc_price(Counted(input_tokens=1), name, provider_id=listed, genai_request_timestamp=moment)
    except (LookupError, ValueError):
        return Tariff()
    price = found.model_price
    rates = [price.input_mtok, price.output_mtok, price.cache_read_mtok]
    if rates[0] is None or rates[1] is None or price.requests_kcount is not None:
        return Tariff()  # not told, or not by the token alone
    starts = sorted({NO_START, *(tier.start for rate in rates for tier in getattr(rate, "tiers", ()))})
    tiers = tuple((start, Price(*(_at(rate, start) for rate in rates))) for start in starts)
    return Tariff(tiers, "list price")


def _at(rate: Any, start: int) -> Any:
    """A rate above so many input tokens: one number, or the highest of its tiers that has begun."""
    begun = [tier.price for tier in getattr(rate, "tiers", ()) if tier.start <= start]
    return begun[-1] if begun else getattr(rate, "base", rate)


__all__ = ["FREE", "Price", "Tariff", "as_json", "dollars", "in_words", "price_of", "tariff"]
