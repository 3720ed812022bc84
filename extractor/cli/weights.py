"""``extractor models``: the catalogue, and fetching from it."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Any

from extractor.cli.output import print_json
from extractor.models import weights
from extractor.models.catalogue import CATALOGUE


def list_command(*, json: bool) -> None:
    """Print the catalogue, and which of it is on this machine."""
    rows = [
        {
            "name": f"local/{entry.name}",
            "megabytes": round(entry.bytes / 1e6),
            "licence": entry.licence,
            "path": str(path) if (path := weights.path_of(entry.name)) else None,
        }
        for entry in CATALOGUE.values()
    ]
    for row in rows:
        if json:
            print_json(row)
        else:
            place = row["path"] or f"not here: extractor models pull {str(row['name']).removeprefix('local/')}"
            sys.stdout.write(f"{row['name']:<26} {row['megabytes']:>5} MB  {row['licence']:<11} {place}\n")


def pull_command(name: str, source: str | None, *, json: bool) -> None:
    """Fetch the weights of a model and print where they are."""
    with _bar() as show:
        path = weights.pull(name.removeprefix("local/"), source=source, say=_say, show=show)
    if json:
        print_json({"name": name, "path": str(path), "bytes": path.stat().st_size})
    else:
        sys.stdout.write(f"{path}\n")


@contextlib.contextmanager
def showing() -> Iterator[None]:
    """Show a pull at first use as the command line does."""
    from extractor.models import local

    with _bar() as show:
        local.say, local.show = _say, show
        yield


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


@contextlib.contextmanager
def _bar() -> Iterator[Any]:
    """A bar on a terminal, a line now and then elsewhere; nothing at all when nothing is fetched."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    columns = (BarColumn(bar_width=24), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task: Any = None

    def show(done: int, total: int) -> None:
        nonlocal task
        if task is None:
            bar.start()
            task = bar.add_task("fetching", total=total)
        bar.update(task, completed=done)

    try:
        yield show
    finally:
        bar.stop()


class _Lines:
    """A line every ten seconds."""

    def __init__(self) -> None:
        self._told = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        if time.monotonic() - self._told >= 10:
            self._told = time.monotonic()
            _say(f"{done / 1e6:,.0f} of {total / 1e6:,.0f} MB")
