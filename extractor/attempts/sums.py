"""Amounts that add up: what there is to choose from where a sum was refused.

"total: 12.00 is not net 9.00 + tax 2.00" says that two fields have to come to the third. Which of the three is wrong it
does not say, but a document prints few amounts of which two come to a third. Those that agree with most of what was
answered, the sum above all, are left to choose from; a choice of one at each place would be three choices that do not
fit each other, so one answer decides all three.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product

from extractor.attempts.places import Place, Wanted, names_in, told, value_at
from extractor.attempts.spans import READERS, Span
from extractor.fields.style import Style

MOST = 6
"""Sums that are left to choose from."""

MOST_AMOUNTS = 200
CENT = Decimal("0.01")

Amounts = tuple[Decimal, Decimal, Decimal]
"""A total and the two amounts that come to it."""


@dataclass(frozen=True, slots=True)
class Sum:
    """A sum that was refused: the places of the total and of its two parts, what was answered there, and what adds up
    in the document, as printed, the likeliest first."""

    places: tuple[Place, Place, Place]
    answered: tuple[object, ...]
    values: tuple[Amounts, ...]
    printed: Mapping[Decimal, str]

    def shown(self, one: Amounts) -> str:
        """Such as ``9.00 + 3.00 = 12.00``."""
        total, *parts = (self.printed[value] for value in one)
        return f"{' + '.join(parts)} = {total}"


def adding_up(one: Wanted, amounts: Sequence[Span], style: Style) -> Iterator[Sum]:
    """Each sum that was refused, with what adds up; none where nothing of that has to do with what was answered."""
    printed: dict[Decimal, str] = {}
    for span in amounts:
        if isinstance(span.value, Decimal):
            printed.setdefault(span.value, span.printed)
    for places in _sums(one):
        answered = tuple(READERS["number"](str(value_at(one.values, place.path)), style) for place in places)
        order = [[READERS["number"](text, style) for text in place.choices] for place in places]
        best = _nearest([found for found in _found(printed) if found != answered], answered, order)
        if best:
            yield Sum(places, answered, tuple(best), printed)


def _sums(one: Wanted) -> Iterator[tuple[Place, Place, Place]]:
    """The total and its two parts, for each refusal that names two fields beside the total and a plus."""
    for path in one.obligation.paths:
        text = told(one.obligation, path)
        total = next((place for place in one.places if place.dotted == path), None)
        if total is None or "+" not in text:
            continue
        near = {str(p.path[-1]): p for p in one.places if p.path[:-1] == total.path[:-1] and p is not total}
        parts = [near[name] for name in names_in(text, near)]
        if len(parts) == 2:
            first, second = sorted(parts, key=one.places.index)
            yield total, first, second


def _found(printed: Mapping[Decimal, str]) -> Iterator[Amounts]:
    """Every two amounts that come to a third, to the cent; no amount twice, since a zero or a half is everywhere."""
    amounts = list(printed)[:MOST_AMOUNTS]
    for total, part in product(amounts, amounts):
        for other in (total - part, total - part + CENT, total - part - CENT):
            if other in printed and len({total, part, other}) == 3:
                yield total, part, other


def _nearest(sums: Sequence[Amounts], answered: Sequence[object], order: Sequence[Sequence[object]]) -> list[Amounts]:
    """Those that agree most with what was answered; of these the ones whose amounts come first among the candidates.

    Where none agrees, the largest totals: what adds up below an amount that was answered is about something else, such
    as lines or a discount.
    """
    weights = (1.5, 1.0, 1.0)
    scored = [(sum(w for w, a, b in zip(weights, one, answered, strict=True) if a == b), one) for one in sums]
    most = max((score for score, _ in scored), default=0)
    best = [one for score, one in scored if score == most]
    if not most:
        least = max((value for value in answered if isinstance(value, Decimal)), default=Decimal(0))
        best = [one for one in best if one[0] >= least]

    def how_far(one: Amounts) -> tuple[Decimal, int]:
        down = sum(row.index(value) if value in row else len(row) for value, row in zip(one, order, strict=True))
        return (Decimal(0) if most else -one[0]), down

    return sorted(best, key=how_far)[:MOST]
