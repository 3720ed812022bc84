"""What goes to stdout and stderr: in any encoding that they have, and never an error for a character."""

from __future__ import annotations

import io
import json
import sys


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
