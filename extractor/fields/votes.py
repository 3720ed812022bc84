"""What the numbers and dates of a document say about its style, token by token."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Generic, TypeVar

from extractor.fields import dates, numbers
from extractor.fields.dates import Order
from extractor.fields.numbers import Mark

Choice = TypeVar("Choice", bound=str)

_OVERWHELMING = 4
"""How many tokens have to speak for a style for each one that speaks against it."""
_REMEMBERED = 256
"""How many tokens with two readings are remembered."""
_LONGEST_NUMBER = 40

_NUMBER = re.compile(r"\d(?<!\d\d)\d*+(?:[.,']\d++)++")  # a pattern that begins with a digit is looked for faster
_GROUP_BEFORE = re.compile(r"\d $")
_ADDRESS = re.compile(r"[12]?\d{1,2}(?:\.[12]\d\d){3}")
_PRINTED = re.compile(r"\d[\d.,']*")
_MONEY_BEFORE = re.compile(r"(?:[$£¥€₹₽]|(?<![^\W\d_])[A-Z]{3}|RM|Rs\.?|kr\.?) ?-?$")
_MONEY_AFTER = re.compile(r" ?-?(?:[$£€₽]|[A-Z]{3}(?![^\W\d_])|zł|Kč|kr(?![^\W\d_]))")


_NO_NUMBER = re.compile(r"\.| ?Uhr| ?- ?\d{1,2}\.\d\d")
"""Behind 12.03 these make it a day, a time, the beginning of opening hours."""


@dataclass(slots=True)
class Votes(Generic[Choice]):
    """The evidence for a style. ``strong`` votes are by tokens that can be nothing else, ``weak`` ones by tokens that
    may be something else (``12.30`` is also a time of day); ``doubtful`` are the tokens with two readings."""

    strong: Counter[Choice] = field(default_factory=Counter)
    weak: Counter[Choice] = field(default_factory=Counter)
    doubtful: set[str] = field(default_factory=set)

    def verdict(self, hint: Choice | None) -> Choice | None:
        """What they decide, with ``hint`` (what the language suggests) where they are weak or silent."""
        votes = self.strong or self.weak
        if not votes:
            return hint
        (leader, most), *others = votes.most_common(2)
        if not self.strong and hint is not None:
            return hint if leader == hint else None
        return leader if not others or most >= _OVERWHELMING * others[0][1] else None

    def doubt(self, token: str) -> None:
        """Remember a token with two readings."""
        if len(self.doubtful) < _REMEMBERED:
            self.doubtful.add(token)


def weigh_numbers(text: str) -> Votes[Mark]:
    """What the numbers of a text say about its decimal mark."""
    votes = Votes[Mark]()
    for found in _NUMBER.finditer(text):
        token, start, end = found.group(), found.start(), found.end()
        if len(token) > _LONGEST_NUMBER:
            continue
        points, commas = token.count("."), token.count(",")
        if points + commas == 0:
            continue
        if points + commas > 1:
            _weigh_long(token, points, commas, votes)
            continue
        before = text[max(0, start - 5) : start]
        money = (before[-1:] > "9" or before[-1:] in " $-") and _MONEY_BEFORE.search(before)
        if before[-1:].isalpha() and not money:
            continue  # v2.10, A12.50: an identifier
        strong = bool(money) or _MONEY_AFTER.match(text, end) is not None
        _weigh_short(token, "." if points else ",", strong, (before, text[end : end + 8]), votes)
    return votes


def _weigh_long(token: str, points: int, commas: int, votes: Votes[Mark]) -> None:
    """A number of several marks: 1.234,56 and 1.234.567, unless it is a date, a section or an address."""
    if not (points and commas) and (token[-4] not in ".," or _ADDRESS.fullmatch(token)):
        return
    found = numbers.readings(token)
    if len(found) == 1:
        votes.strong[next(iter(found))] += 1


def _weigh_short(token: str, mark: Mark, strong: bool, around: tuple[str, str], votes: Votes[Mark]) -> None:
    """A number of one mark; ``strong``: it stands beside a currency."""
    whole, _, decimals = token.partition(mark)
    grouped = "'" in whole or (len(whole) == 3 and _GROUP_BEFORE.search(around[0]) is not None)
    if "'" in decimals or (whole[0] == "0" and len(whole) > 1 and not grouped):
        return
    if len(decimals) == 3 and len(whole) < 4 and whole[0] != "0":
        votes.doubt(token)
    elif strong or grouped or (len(decimals) == 3 and whole == "0"):
        votes.strong[mark] += 1
    elif (len(decimals) > 1 or mark == ",") and not _NO_NUMBER.match(around[1]):  # 2.1 is a section
        votes.weak[mark] += 1


def weigh_dates(text: str) -> tuple[Votes[Order], bool]:
    """What the numeric dates of a text say about their order, and whether years come first in those with ``/`` or
    ``.`` (in ISO dates they always do, which says nothing about others)."""
    votes, short, year_first = Votes[Order](), Counter[Order](), False
    for token, mark, (first, second, third) in dates.numeric_dates(text):
        if len(first) == 4:
            year_first = year_first or mark != "-"
            continue
        one, two = int(first), int(second)
        if len(third) not in (2, 4) or not (0 < one <= 31 and 0 < two <= 31) or min(one, two) > 12:
            continue
        tally = votes.strong if len(third) == 4 else short
        if one > 12:
            tally["DMY"] += 1
        elif two > 12:
            tally["MDY"] += 1
        elif mark == ".":
            votes.weak["DMY"] += 1
        elif one != two:
            votes.doubt(token)
    if not year_first:  # where it is, 24/03/05 begins with its year too
        votes.weak.update(short)
    return votes, year_first


def doubtful_amounts(tokens: set[str], text: str) -> Iterator[tuple[Decimal, str]]:
    """The values that stand in a text only as one of these tokens with two readings."""
    printed = {number.rstrip(".,'") for number in _PRINTED.findall(text)} if tokens else set()
    for token in sorted(tokens):
        for mark, value in numbers.readings(token).items():
            whole = (token.replace(token[-4], ""), token.replace(token[-4], "'"))
            certain = {f"{form}{cents}" for form in whole for cents in ("", ".00", ",00")}
            if mark in token or printed.isdisjoint(certain):
                yield value, token


def doubtful_dates(tokens: set[str], text: str) -> Iterator[tuple[date, str]]:
    """The dates that stand in a text only as one of these tokens with two readings."""
    if not tokens:
        return
    known = set(dates.named_dates(text))
    for token, _, parts in dates.numeric_dates(text):
        if token not in tokens and len(found := set(dates.readings(parts).values())) == 1:
            known |= found
    for token, _, parts in dates.numeric_dates(" ".join(sorted(tokens))):
        found_by_order = dates.readings(parts)
        for order in ("DMY", "MDY"):
            if (day := found_by_order.get(order)) is not None and day not in known:
                yield day, token


__all__ = ["Votes", "doubtful_amounts", "doubtful_dates", "weigh_dates", "weigh_numbers"]
