"""Records as a pandas DataFrame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extractor.errors import UsageError
from extractor.extraction import Source

if TYPE_CHECKING:
    import pandas as pd

    from extractor.outcome import Outcome
    from extractor.pipeline import Pipeline

STATUS, ERROR = "extractor_status", "extractor_error"


def extract_frame(
    pipeline: Pipeline, frame: pd.DataFrame, column: str, *, as_path: bool = False, **options: Any
) -> pd.DataFrame:
    """See :meth:`extractor.pipeline.Pipeline.frame`."""
    import pandas as pd

    if column not in frame.columns:
        raise UsageError(f"the frame has no column {column!r}", hint=f"it has {', '.join(map(str, frame.columns))}")
    sources = [_source(place, value, as_path) for place, value in enumerate(frame[column].tolist())]
    found = {int(one.key): one for one in pipeline.map(sources, **options)}
    places, rows = [], []
    for place in range(len(frame)):
        for row in _rows(found.get(place)):
            places.append(place)
            rows.append(row)
    records = pd.DataFrame(rows, index=frame.index[places], columns=_columns(rows))
    taken = {name: f"{name}_record" for name in records.columns if name in frame.columns}
    return pd.concat([frame.iloc[places], records.rename(columns=taken)], axis=1)


def _source(place: int, value: Any, as_path: bool) -> Source:
    name = f"row {place}"
    if isinstance(value, Path) or (as_path and isinstance(value, str)):
        return Source(str(value), path=Path(value), key=place)
    if isinstance(value, bytes):
        return Source(name, data=value, key=place)
    return Source(name, data=value.encode() if isinstance(value, str) else b"", key=place)


def _rows(outcome: Outcome | None) -> Iterator[dict[str, Any]]:
    if outcome is None:
        yield {STATUS: "not reached", ERROR: "the run stopped before this document"}
        return
    ending = {STATUS: str(outcome.status), ERROR: outcome.error or None}
    for record in outcome.records or (None,):
        yield {**as_row(record), **ending}


def as_row(record: Any) -> Mapping[str, Any]:
    """A record's fields by name; lists of related records as lists of such mappings."""
    if record is None:
        return {}
    if hasattr(type(record), "__mapper__"):
        from extractor.store.graph import values

        return values(record)
    dump = getattr(record, "model_dump", None)
    return dump() if callable(dump) else {"value": record}


def _columns(rows: list[dict[str, Any]]) -> list[str]:
    """Every field in the order in which it was first met, status and error last."""
    names = dict.fromkeys(name for row in rows for name in row if name not in (STATUS, ERROR))
    return [*names, STATUS, ERROR]
