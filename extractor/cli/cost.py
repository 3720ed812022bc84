"""``extractor cost``: what has been asked, and what it cost."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from extractor.cli.ledger import opened
from extractor.cli.output import print_json, print_table
from extractor.errors import UsageError
from extractor.plugins import suggestion
from extractor.prices import as_json, dollars
from extractor.store.costs import DIMENSIONS, Spent, spent

HEAD = ("asks", "tokens in", "cached", "tokens out", "cost", "asks of unknown cost")


def cost_command(name: str | None, by: str, *, json: bool, database: str | None, root: Path | None) -> None:
    """Print the sums of every group, and of all."""
    names = _names(by)
    store, pipeline = opened(name, database, root)
    known = pipeline.name if pipeline is not None else None
    groups, total = store.read(lambda session: spent(session, known, names))
    if json:
        for group, sums in groups.items():
            print_json({**dict(zip(names, group, strict=True)), **_as_json(sums)})
        return
    if not groups:
        sys.stdout.write("nothing has been asked yet: extractor run PIPELINE SOURCE...\n")
        return
    rows = [(*(word or "-" for word in group), *_cells(sums)) for group, sums in groups.items()]
    if len(rows) > 1:
        rows.append(("total", *[""] * (len(names) - 1), *_cells(total)))
    print_table((*names, *HEAD), rows)


def _names(by: str) -> Sequence[str]:
    names = list(dict.fromkeys(name.strip() for name in by.split(",") if name.strip()))
    for name in names or [by]:
        if name not in DIMENSIONS:
            raise UsageError(f"--by {name!r} is nothing to count by", hint=suggestion(name, DIMENSIONS))
    return names


def _as_json(sums: Spent) -> dict[str, Any]:
    usage = sums.usage
    return {
        "asks": sums.asks,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "cost": as_json(sums.cost, sums.asks, sums.unpriced),
        "unpriced": sums.unpriced,
    }


def _cells(sums: Spent) -> tuple[str, ...]:
    usage = sums.usage
    cost = "unknown" if sums.unpriced == sums.asks else dollars(sums.cost)
    tokens = (usage.input_tokens, usage.cached_tokens, usage.output_tokens)
    return (f"{sums.asks:,}", *(f"{count:,}" for count in tokens), cost, f"{sums.unpriced:,}")
