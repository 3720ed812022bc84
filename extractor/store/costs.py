"""What live asks have cost, summed over our own rows; exact, since a database would add the amounts as floats."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from extractor.messages import Usage
from extractor.store import tables as t

Dimension = Callable[[Mapping[str, Any]], Iterable[str]]
"""The groups that an ask is counted in: one, or one for each of its tags."""

DIMENSIONS: Mapping[str, Dimension] = {
    "month": lambda row: (f"{row['asked_at']:%Y-%m}",),
    "day": lambda row: (f"{row['asked_at']:%Y-%m-%d}",),
    "pipeline": lambda row: (row["pipeline"],),
    "model": lambda row: (row["model"],),
    "tag": lambda row: row["tags"] or ("",),
    "run": lambda row: (str(row["run"] or ""),),
    "document": lambda row: (row["document"],),
    "outcome": lambda row: (row["kind"],),
}


@dataclass(slots=True)
class Spent:
    """Asks and what they came to. ``cost`` is the sum of those whose price is known; ``unpriced`` are the others."""

    asks: int = 0
    usage: Usage = Usage()
    cost: Decimal = Decimal(0)
    unpriced: int = 0

    def add(self, row: Mapping[str, Any]) -> None:
        """Count one ask."""
        self.asks += 1
        self.usage += Usage(row["input_tokens"], row["output_tokens"], row["cached_tokens"])
        if row["cost"] is None:
            self.unpriced += 1
        else:
            self.cost += Decimal(row["cost"])


def spent(session: Session, pipeline: str | None, by: Sequence[str]) -> tuple[dict[tuple[str, ...], Spent], Spent]:
    """The sums of each group, in order, and of all.

    An ask with two tags is counted under both, and once in the sum of all.

    :param pipeline: only what this pipeline asked.
    :param by: names of :data:`DIMENSIONS`.
    """
    names = ("asked_at", "pipeline", "model", "tags", "run", "document", "kind")
    sums = ("input_tokens", "output_tokens", "cached_tokens", "cost")
    query = select(*(t.ask.c[name] for name in (*names, *sums)))
    if pipeline is not None:
        query = query.where(t.ask.c.pipeline == pipeline)
    groups: dict[tuple[str, ...], Spent] = {}
    total = Spent()
    for found in session.execute(query.execution_options(yield_per=1000)).mappings():
        row = dict(found)
        total.add(row)
        for group in _groups(row, by):
            groups.setdefault(group, Spent()).add(row)
    return {group: groups[group] for group in sorted(groups)}, total


def _groups(row: Mapping[str, Any], by: Sequence[str]) -> list[tuple[str, ...]]:
    groups: list[tuple[str, ...]] = [()]
    for name in by:
        groups = [(*group, word) for group in groups for word in DIMENSIONS[name](row)]
    return groups
