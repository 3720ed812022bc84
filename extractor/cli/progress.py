"""Progress of a run: a bar on a terminal, plain lines elsewhere; always on stderr."""

from __future__ import annotations

import sys
import time
from collections import Counter
from types import TracebackType
from typing import Any, Self

from extractor.budget import Account
from extractor.outcome import Outcome, Status
from extractor.prices import as_json, dollars, in_words

EVERY = 10.0
"""Seconds between two plain lines."""


class Progress:
    """Counts outcomes and shows them. Use as a context manager.

    :param total: number of documents.
    :param account: of the run: what has been spent.
    """

    def __init__(self, total: int, account: Account) -> None:
        self.total = total
        self.account = account
        self.counts: Counter[Status] = Counter()
        self.seen = self.asked = 0
        self._begun = self._told = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty() and self.total:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
            from rich.progress import Progress as Bar

            columns = (BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn("{task.description}", markup=False))
            self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task("starting", total=self.total)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    @property
    def failed(self) -> int:
        """Documents that did not settle well."""
        return sum(count for status, count in self.counts.items() if not status.is_good)

    @property
    def tokens(self) -> int:
        """Tokens in and out of every live ask so far."""
        return self.account.usage.input_tokens + self.account.usage.output_tokens

    def add(self, outcome: Outcome) -> None:
        """Count one outcome and show where the run stands."""
        self.seen += 1
        self.counts[outcome.status] += 1
        self.asked += not outcome.is_cached
        if self._bar is not None:
            self._bar.update(self._task, completed=self.seen, description=self.line())
        elif time.monotonic() - self._told >= EVERY:
            self._told = time.monotonic()
            sys.stderr.write(f"{self.seen}/{self.total} {self.line()}\n")

    def line(self) -> str:
        """Done, failed, tokens, money, rate, time left."""
        seconds = time.monotonic() - self._begun
        rate = self.asked / seconds if seconds > 0 and self.asked else 0.0
        parts = [f"{self.seen - self.failed} done", f"{self.failed} failed", f"{self.tokens:,} tokens"]
        if self.account.cost:
            parts.append(dollars(self.account.cost))
        if rate:
            each = f"{rate:.1f} documents/s" if rate >= 1 else f"{1 / rate:.1f} s a document"
            parts += [each, f"{clock((self.total - self.seen) / rate)} left"]
        return " · ".join(parts)


def clock(seconds: float) -> str:
    """``h:mm:ss``, or ``m:ss`` under an hour."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def spent_in_words(account: Account) -> str:
    """Tokens and money of a run's live asks."""
    usage = account.usage
    cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
    money = in_words(account.cost, account.asks, account.unpriced)
    return f"{usage.input_tokens:,} in{cached}, {usage.output_tokens:,} out tokens · {money}"


def spent_as_json(account: Account) -> dict[str, Any]:
    """The same for programs; ``cost`` is exact, and ``None`` where nothing of it is known."""
    usage = account.usage
    return {
        "asks": account.asks,
        "tokens": usage.input_tokens + usage.output_tokens,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "cost": as_json(account.cost, account.asks, account.unpriced),
        "unpriced": account.unpriced,
    }
