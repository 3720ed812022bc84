"""``extractor status`` and ``extractor records``: what the ledger knows."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from extractor import configuration, project
from extractor.cli.output import print_json, print_table
from extractor.errors import UsageError
from extractor.outcome import Status
from extractor.pipeline import Options, Pipeline
from extractor.store import ledger
from extractor.store.engine import is_there, url_of
from extractor.store.store import Store

REASONS = (Status.EXHAUSTED, Status.REFUSED, Status.FAILED)


def status_command(name: str | None, *, json: bool, database: str | None, root: Path | None) -> None:
    """Print counts by pipeline and outcome, and each document that is not done with its reason."""
    store, pipeline = opened(name, database, root)
    known = pipeline.name if pipeline is not None else None
    counts = store.read(lambda session: ledger.counts(session, known))
    open_ = store.read(lambda session: ledger.works(session, known, (*map(str, REASONS), ledger.RUNNING)))
    flagged = [work for work in store.read(lambda session: ledger.works(session, known)) if work["flags"]]
    if json:
        print_json({"outcomes": [dict(row) for row in counts], "open": [_reason(work) for work in open_],
                "flagged": [_reason(work) for work in flagged]})  # fmt: skip
        return
    if not counts:
        sys.stdout.write("no document has been read yet: extractor run PIPELINE SOURCE...\n")
        return
    head = ("pipeline", "outcome", "documents", "attempts", "tokens in", "tokens out", "seconds")
    rows = [
        (
            row["pipeline"],
            row["status"],
            row["documents"],
            row["attempts"],
            f"{row['input_tokens']:,}",
            f"{row['output_tokens']:,}",
            f"{row['seconds']:.1f}",
        )
        for row in counts
    ]
    print_table(head, rows)
    for work in open_:
        reason = (work["error"] or "interrupted; run again").removeprefix(f"{work['source']}: ")
        sys.stdout.write(f"{work['status']}: {work['source']}: {reason}\n")
    for work in flagged:
        sys.stdout.write(f"flagged: {work['source']}: {'; '.join(work['flags'])}\n")


def records_command(name: str, *, json: bool, database: str | None, root: Path | None) -> None:
    """Print the records of a pipeline, each with its document."""
    store, pipeline = opened(name, database, root)
    known = pipeline.name if pipeline is not None else name
    rows = list(_records(store, known))
    if json:
        for row in rows:
            print_json(row)
        return
    if not rows:
        sys.stdout.write("no records yet: extractor run PIPELINE SOURCE...\n")
        return
    shown = [{key: value for key, value in row["record"].items() if not isinstance(value, list)} for row in rows]
    head = list(dict.fromkeys(key for row in shown for key in row))
    lists = [{key: f"{len(v)} {key}" for key, v in row["record"].items() if isinstance(v, list)} for row in rows]
    body = [
        (Path(row["source"]).name, *(_cell(values.get(key)) for key in head), ", ".join(counted.values()))
        for row, values, counted in zip(rows, shown, lists, strict=True)
    ]
    print_table(("document", *head, ""), body)
    sys.stdout.write(f"{len(rows)} records\n")


def _records(store: Store, pipeline: str) -> Iterator[dict[str, Any]]:
    from extractor.frames import as_row

    models = store.read(lambda session: ledger.models_of(session, pipeline))
    for work in store.read(lambda session: ledger.works(session, pipeline)):
        if work["status"] == ledger.RUNNING:
            continue
        links = store.read(lambda session, key=work["id"]: ledger.links(session, key))  # type: ignore[misc]
        for link in links:
            record = store.reload(dict(link))
            yield {
                "document": work["document"],
                "source": work["source"],
                "status": work["status"],
                "verdict": link["verdict"],
                "model": models.get(link["reply"]),
                "record": dict(as_row(record)) if record is not None else link["arguments"],
                "flags": link["flags"],
            }


def opened(name: str | None, database: str | None, root: Path | None) -> tuple[Store, Pipeline | None]:
    """The store that a command looks into, and the pipeline that it asks about.

    :raises UsageError: when there is nothing of ours; looking makes no database.
    """
    where = configuration.find(root)
    pipeline = project.pipeline(where, name) if name is not None else None
    known, own = (pipeline.name, pipeline.database) if pipeline is not None else ("", None)
    setting = where.setting("database", known, given=database, own=own)
    url = url_of(setting.value, where.folder_of(setting))
    if not is_there(url):
        place = url.render_as_string(hide_password=True)
        raise UsageError(f"nothing has been extracted into {place} yet", hint="extractor run PIPELINE SOURCE... does")
    if pipeline is not None:
        return pipeline.store(Options(database=database, project=where)), pipeline
    return Store(setting.value, where.folder_of(setting)), None


def _reason(work: Mapping[str, Any]) -> dict[str, Any]:
    return {key: work[key] for key in ("document", "source", "pipeline", "status", "error", "flags", "attempts")}


def _cell(value: Any) -> str:
    return "" if value is None else str(value)
