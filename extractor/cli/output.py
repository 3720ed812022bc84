"""What goes to stdout and stderr: in any encoding that they have, and never an error for a character."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Sequence
from typing import Any


def make_safe() -> None:
    """Let stdout and stderr write what their encoding does not have as an escape: names of files and texts of
    documents may hold anything."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def print_json(value: object) -> None:
    """Print one JSON line; an escape of JSON's own stands for what the encoding of stdout does not have."""
    is_unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    sys.stdout.write(json.dumps(value, ensure_ascii=not is_unicode, default=str) + "\n")
    sys.stdout.flush()


def print_table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Columns as wide as their widest value; numbers to the right. Wide enough for a pipe, narrow on a terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else 200)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, title in enumerate(head):
        numeric = all(isinstance(row[number], int) or _is_number(str(row[number])) for row in rows)
        table.add_column(title, justify="right" if numeric else "left", overflow="ellipsis", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(str(value)) for value in row))
    console.print(table)


def _is_number(text: str) -> bool:
    return text.replace(",", "").replace(".", "", 1).lstrip("-").isdigit()
