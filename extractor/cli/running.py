"""``extractor run``."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from extractor import configuration, project
from extractor.cli.estimating import estimate, header, is_settled, settled_of
from extractor.cli.output import print_json
from extractor.cli.progress import Progress, clock, spent_as_json, spent_in_words
from extractor.engines.local import Stop
from extractor.errors import ConfigurationError, ExtractorError, ProviderError, StoreError, UsageError
from extractor.events import configure_logging
from extractor.extraction import Plan, Source, readable
from extractor.messages import FATAL
from extractor.options import Options
from extractor.outcome import Outcome, Status
from extractor.pipeline import supervised

GOOD, FAILURES, USAGE, NOTHING, STOPPED = 0, 1, 2, 3, 4
SHOWN = 20
"""Failures that are listed at the end; ``extractor status`` has them all."""


@dataclass(frozen=True, slots=True)
class Request:
    """What the command line says; ``options`` are those of :class:`extractor.options.Options`."""

    pipeline: str
    sources: tuple[str, ...]
    options: Mapping[str, Any]
    max_failures: str
    json: bool
    root: Path | None
    dry_run: bool = False
    log_level: str | None = None
    passwords: Path | None = None


@dataclass(frozen=True, slots=True)
class Allowance:
    """How many failures still count as well: a number, or a share of all documents in per cent."""

    number: Fraction
    is_share: bool

    def of(self, documents: int) -> Fraction:
        """The number of failures that so many documents may have."""
        return self.number * documents / 100 if self.is_share else self.number


@dataclass(slots=True)
class Tally:
    """What the run has met, for its last words."""

    progress: Progress
    failures: list[Outcome] = field(default_factory=list)
    cached: int = 0
    outdated: int = 0
    flagged: int = 0
    records: int = 0
    error: ExtractorError | None = None

    def add(self, outcome: Outcome) -> None:
        """Count one outcome."""
        self.progress.add(outcome)
        self.cached += outcome.is_cached
        self.outdated += outcome.is_outdated
        self.flagged += bool(outcome.flags)
        self.records += len(outcome.results) if not outcome.is_cached else 0
        if not outcome.status.is_good:
            self.failures.append(outcome)


def run_command(request: Request) -> int:
    """Run a pipeline over its sources; returns the exit code."""
    from extractor.documents import find

    allowed = _allowance(request.max_failures)
    if request.log_level is not None:
        configure_logging(request.log_level)
    if request.passwords is not None:
        _know(request.passwords)
    where = configuration.find(request.root)
    pipeline = project.pipeline(where, request.pipeline)
    paths = list(find(request.sources))
    stop = Stop()
    options = Options(**request.options, project=where, stop=stop)
    if request.dry_run:
        return estimate(pipeline, paths, options, json=request.json)
    store = pipeline.store(options)
    plan = pipeline.plan(options, store)
    header(pipeline, plan, options, len(paths), settled_of(plan, paths) if options.fresh else None)
    if not all(is_settled(plan, path) for path in paths):
        prepare(plan)
    run = store.start_run(plan.pipeline, plan.fingerprint, ", ".join(model.name for model in plan.models))
    begun = time.monotonic()
    with Progress(len(paths), plan.account) as progress:
        tally = Tally(progress)
        asyncio.run(_work(replace(plan, run=run), paths, options, tally, json_lines=request.json))
    with contextlib.suppress(StoreError):  # the store's trouble is told below
        store.end_run(run, stop.reason or None)
    code = _exit_code(tally, allowed, stop)
    _last_words(tally, request, stop, time.monotonic() - begun, code, run)
    store.close()
    return code


def _know(path: Path) -> None:
    """Take the passwords of a file to where loaders look for them.

    :raises UsageError: when it cannot be read.
    """
    from extractor.documents import passwords

    try:
        os.environ[passwords.VARIABLE] = path.read_text("utf-8-sig")
    except (OSError, ValueError) as error:
        raise UsageError(f"--passwords {path}: cannot be read ({type(error).__name__})") from None


def prepare(plan: Plan) -> None:
    """What has to be there before the first question: keys, weights (with their progress), the local server."""
    from extractor.cli.weights import showing

    with showing():
        for model in plan.models[1:]:  # a key that is missing is told before anything is paid for
            getattr(model, "check", lambda: None)()
        plan.models[0].prepare()


async def _work(plan: Plan, paths: Sequence[Path], options: Options, tally: Tally, *, json_lines: bool) -> None:
    sources = (Source(readable(path), path=path) for path in paths)
    with _signals(options.stop):
        try:
            async for outcome in supervised(plan, sources, options):
                tally.add(outcome)
                if json_lines:
                    print_json(as_line(outcome))
        except ExtractorError as error:
            tally.error = error
        finally:
            for model in plan.models:
                await model.aclose()


@contextlib.contextmanager
def _signals(stop: Stop) -> Iterator[None]:
    """Once drains, twice stops; SIGTERM drains."""
    loop = asyncio.get_running_loop()

    def interrupted(how: str = "interrupted") -> None:
        if stop.reason:
            stop.now(f"{how} twice")
        else:
            stop.drain(how)
            sys.stderr.write("finishing what is in flight; press Ctrl-C again to stop at once\n")

    handlers = {signal.SIGINT: interrupted, signal.SIGTERM: lambda: interrupted("terminated")}
    for number, handler in handlers.items():
        try:
            loop.add_signal_handler(number, handler)
        except NotImplementedError:  # Windows: its event loop has no such handlers
            signal.signal(number, lambda *_, call=handler: loop.call_soon_threadsafe(call))
    try:
        yield
    finally:
        for number in handlers:
            with contextlib.suppress(NotImplementedError):
                loop.remove_signal_handler(number)


def _allowance(text: str) -> Allowance:
    """``3`` or ``2%``, in digits that nobody can read in two ways."""
    number, _, rest = text.partition("%")
    is_share = text.endswith("%") and not rest
    whole, _, part = number.partition(".") if is_share else (number, "", "")
    if not (f"{whole}{part}".isdecimal() and whole.isascii() and len(text) <= 12) or (is_share and float(number) > 100):
        raise UsageError(f"--max-failures {text!r} is neither a number nor a percentage", hint="for example 3 or 2%")
    return Allowance(Fraction(number), is_share)


def _exit_code(tally: Tally, allowed: Allowance, stop: Stop) -> int:
    counts, error = tally.progress.counts, tally.error
    failed, seen = tally.progress.failed, tally.progress.seen
    if isinstance(error, ConfigurationError) or (isinstance(error, ProviderError) and error.kind in FATAL):
        return USAGE
    if error is not None:
        return FAILURES if seen > failed else NOTHING
    if stop.reason:
        return STOPPED
    if failed and not any(count for status, count in counts.items() if status.is_good):
        return NOTHING
    return FAILURES if failed > allowed.of(seen) else GOOD


def _last_words(tally: Tally, request: Request, stop: Stop, seconds: float, code: int, run: int) -> None:
    progress = tally.progress
    for outcome in tally.failures[:SHOWN]:
        reason = outcome.error.removeprefix(f"{outcome.source}: ")  # the line names the document already
        sys.stderr.write(f"{outcome.status}: {outcome.source}: {reason}\n")
    if len(tally.failures) > SHOWN:
        sys.stderr.write(f"… and {len(tally.failures) - SHOWN} more: extractor status {request.pipeline}\n")
    if tally.outdated:
        sys.stderr.write(
            f"{tally.outdated} settled documents were made by an earlier version of this pipeline (another schema, "
            "prompt or model); they are kept as they are\n"
        )
    counts = {str(status): progress.counts[status] for status in Status if progress.counts[status]}
    summary = {
        "run": run, "documents": progress.seen, **counts, "unchanged": tally.cached, "outdated": tally.outdated,
        "flagged": tally.flagged, "records": tally.records, **spent_as_json(progress.account),
        "seconds": round(seconds, 1), "stopped": stop.reason or None, "exit": code,
    }  # fmt: skip
    if request.json:
        print_json(summary)
    else:
        sys.stderr.write(f"{in_words(counts, tally)} · {spent_in_words(progress.account)} · {clock(seconds)}\n")
    if tally.error is not None:
        sys.stderr.write(f"extractor: {tally.error}\n")
    elif stop.reason:
        sys.stderr.write(f"extractor: {stop.reason}: run the same command again to go on\n")


def in_words(counts: dict[str, int], tally: Tally) -> str:
    """Counts in words, such as ``12 done, 1 empty, 2 unchanged``."""
    parts = [f"{number} {status}" for status, number in counts.items()] or ["nothing done"]
    parts += [f"{tally.cached} unchanged since an earlier run"] if tally.cached else []
    parts += [f"{tally.flagged} flagged"] if tally.flagged else []
    return ", ".join(parts)


def as_line(outcome: Outcome) -> dict[str, Any]:
    """One document's outcome as a JSON object."""
    from extractor.frames import as_row

    return {
        "document": outcome.document,
        "source": outcome.source,
        "status": str(outcome.status),
        "records": [as_row(record) for record in outcome.records],
        "flags": list(outcome.flags),
        "error": outcome.error or None,
        "attempts": len(outcome.attempts),
        "unchanged": outcome.is_cached,
    }
