"""How one document prints its numbers, dates and money: decided once, from all of them.

Most tokens have one reading (``27,80``, ``1.234,56``, ``19/04/2018``): these are the evidence, and they decide for the
tokens that have two (``1.234``, ``05/04/2018``). Evidence that contradicts itself decides only by an overwhelming
majority. Where there is none, the language does; where that is silent too, the style stays undecided, and the tokens
with two readings are remembered, so that a value that rests on one of them can be flagged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from extractor.errors import ConfigurationError
from extractor.fields.characters import plain
from extractor.fields.currencies import CODES, NOTHING_NAMED, Named, named_in
from extractor.fields.dates import ORDERS, Order
from extractor.fields.language import comma_language, day_first_market, point_market
from extractor.fields.numbers import MARKS, Mark, spell_out
from extractor.fields.signs import Signs
from extractor.fields.votes import doubtful_amounts, doubtful_dates, weigh_dates, weigh_numbers

_WORD = re.compile(r"[^\W\d_]+")
_WORDS_FOR_LANGUAGE = 10_000
_DEBIT = re.compile(r"[.,]\d\d ?D[Rr](?![^\W\d_])")


@dataclass(frozen=True, slots=True)
class Style:
    """How a document prints.

    ``decimal`` is its decimal mark, ``date_order`` the order of day, month and year in numeric dates, ``currency`` the
    one currency that it names; each ``None`` where nothing decides. ``doubtful_amounts`` and ``doubtful_dates`` are
    the values that stand in it only as a token with two readings, with that token. ``named`` is all it says about
    currencies, ``preferred`` the currency that the user says it is in. ``debits``: it marks debits with
    ``DR``. ``signs``: which amounts it prints with a minus.
    """

    decimal: Mark | None = None
    date_order: Order | None = None
    currency: str | None = None
    doubtful_amounts: tuple[tuple[Decimal, str], ...] = ()
    doubtful_dates: tuple[tuple[date, str], ...] = ()
    named: Named = NOTHING_NAMED
    preferred: str | None = None
    debits: bool = False
    signs: Signs = Signs()

    @classmethod
    def of(
        cls,
        text: str,
        *,
        decimal: Mark | None = None,
        date_order: Order | None = None,
        currency: str | None = None,
    ) -> Style:
        """The style of a document; the time taken is linear in its length.

        :param text: the whole document.
        :param decimal: the decimal mark, where the user knows better than the document.
        :param date_order: ``DMY``, ``MDY`` or ``YMD``, likewise.
        :param currency: the ISO code that a shared symbol such as ``$`` or ``kr`` stands for; never a default.
        :raises ConfigurationError: one of them is none of the possible values.
        """
        _check(decimal, date_order, currency)
        text = spell_out(plain(text))
        words = _WORD.findall(text)
        named = named_in(text, words)
        lower = [word.lower() for word in words[:_WORDS_FOR_LANGUAGE]]
        comma = comma_language(lower)
        day_first = comma or day_first_market(named.codes, lower)
        marks = weigh_numbers(text)
        orders, year_first = weigh_dates(text)
        decimal = decimal or marks.verdict("," if comma and not point_market(text) else None)
        date_order = date_order or orders.verdict("DMY" if day_first else None)
        if date_order is None and year_first and not (orders.strong or orders.weak):
            date_order = "YMD"
        return cls(
            decimal=decimal,
            date_order=date_order,
            currency=currency or (next(iter(named.codes)) if len(named.codes) == 1 else None),
            doubtful_amounts=() if decimal else tuple(doubtful_amounts(marks.doubtful, text)),
            doubtful_dates=() if date_order in ("DMY", "MDY") else tuple(doubtful_dates(orders.doubtful, text)),
            named=named,
            preferred=currency,
            debits=_DEBIT.search(text) is not None,
            signs=Signs.of(text),
        )


UNDECIDED = Style()
"""The style of no document: what has two readings is refused."""


def _check(decimal: str | None, date_order: str | None, currency: str | None) -> None:
    for name, value, choices in (("decimal", decimal, MARKS), ("date_order", date_order, ORDERS)):
        if value is not None and value not in choices:
            raise ConfigurationError(f"style {name}={value!r} does not exist", hint=f"choose one of {choices}")
    if currency is not None and currency not in CODES:
        raise ConfigurationError(f"style currency={currency!r} is not an ISO 4217 code", hint="write it like 'EUR'")


__all__ = ["UNDECIDED", "Style"]
