"""Amounts that add up: what there is to choose from where a sum was refused.

"total: 12.00 is not net 9.00 + tax 2.00" says that two fields have to come to the third. Which of the three is wrong it
does not say, but the document prints few amounts of which two come to a third. Those that agree with most of what was
answered, the sum above all, are left to choose from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import product

from extractor.attempts.places import Path, Place, Wanted, names_in, told, value_at
from extractor.attempts.spans import READERS, Span
from extractor.fields.style import Style

MOST = 6
"""Sums that are left to choose from."""

MOST_AMOUNTS = 200
CENT = Decimal("0.01")

Sum = tuple[Decimal, Decimal, Decimal]
"""A total and the two amounts that come to it."""


def adding_up(one: Wanted, amounts: Sequence[Span], style: Style) -> Iterator[Mapping[Path, tuple[str, ...]]]:
    """For each sum that was refused: at each of its places the amounts, as printed, that take part in one that adds up.

    A place where each of them has what was answered is right, and has nothing to choose from.
    """
    printed: dict[Decimal, str] = {}
    for span in amounts:
        if isinstance(span.value, Decimal):
            printed.setdefault(span.value, span.printed)
    for places in _sums(one):
        answered = [READERS["number"](str(value_at(one.values, place.path)), style) for place in places]
        order = [[READERS["number"](text, style) for text in place.choices] for place in places]
        best = _nearest([one for one in _found(printed) if one != tuple(answered)], answered, order)
        if best:
            columns = [tuple(dict.fromkeys(column)) for column in zip(*best, strict=True)]
            yield {
                place.path: () if column == (was,) else tuple(printed[value] for value in column)
                for place, column, was in zip(places, columns, answered, strict=True)
            }


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
            yield total, parts[0], parts[1]


def _found(printed: Mapping[Decimal, str]) -> Iterator[Sum]:
    """Every two amounts that come to a third, to the cent; no amount twice, since a zero or a half is everywhere."""
    amounts = list(printed)[:MOST_AMOUNTS]
    for total, part in product(amounts, amounts):
        for other in (total - part, total - part + CENT, total - part - CENT):
            if other in printed and len({total, part, other}) == 3:
                yield total, part, other


def _nearest(sums: Sequence[Sum], answered: Sequence[object], order: Sequence[Sequence[object]]) -> list[Sum]:
    """Those that agree most with what was answered, if any do; of these the ones whose amounts come first among the
    candidates. Sums that have nothing of the answer are about something else, such as lines and discounts."""
    weights = (1.5, 1.0, 1.0)
    scored = [(sum(w for w, a, b in zip(weights, one, answered, strict=True) if a == b), one) for one in sums]
    most = max((score for score, _ in scored), default=0)
    best = [one for score, one in scored if 0 < score == most]

    def how_far(one: Sum) -> int:
        return sum(row.index(value) if value in row else len(row) for value, row in zip(one, order, strict=True))

    return sorted(best, key=how_far)[:MOST]
