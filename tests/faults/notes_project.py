"""A project whose one table has no unique key: what is written twice stands there twice."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from stub_server import Answer, completion

PYPROJECT = """
[tool.extractor]
database = "sqlite:///notes.db"
"""

SCHEMA = '''
from sqlmodel import Field, SQLModel

from extractor import Rejected


class NoteDraft(SQLModel):
    document: int
    number: int
    text: str


class Note(NoteDraft, table=True):
    id: int | None = Field(default=None, primary_key=True)


def create_note(draft: NoteDraft) -> Note:
    """Record one note."""
    if draft.text == "bad":
        raise Rejected("text: write what the document says")
    return Note(**draft.model_dump())
'''

PIPELINE = """
from extractor import Pipeline
from schemas.note import create_note

notes = Pipeline(create_note, model="openai/stub", evidence="off")
"""


USAGE = {"prompt_tokens": 990, "completion_tokens": 10, "total_tokens": 1000}
"""What the stub says of each answer: more than any question of these tests can be, in round numbers."""


def lay_down(folder: Path, documents: int) -> None:
    """Write the project and its documents. Document n holds n % 3 + 1 notes."""
    for package in ("schemas", "pipelines", "docs"):
        (folder / package).mkdir(parents=True)
    (folder / "pyproject.toml").write_text(PYPROJECT)
    (folder / "schemas" / "__init__.py").touch()
    (folder / "pipelines" / "__init__.py").touch()
    (folder / "schemas" / "note.py").write_text(SCHEMA)
    (folder / "pipelines" / "notes.py").write_text(PIPELINE)
    for number in range(documents):
        (folder / "docs" / f"{number:03}.txt").write_text(f"document {number} holds {number % 3 + 1} notes\n")


def answer(body: dict[str, Any]) -> Answer:
    """What the stub model says: every fifth document gets its last note wrong at first, and mends it alone."""
    said = json.dumps(body["messages"])
    number, notes = map(int, re.search(r"document (\d+) holds (\d+) notes", said).groups())
    is_second = any(message["role"] == "assistant" for message in body["messages"])
    wanted = [{"document": number, "number": n, "text": f"note {n} of {number}"} for n in range(notes)]
    if number % 5 == 0 and not is_second:
        wanted[-1]["text"] = "bad"
    elif is_second:
        wanted = wanted[-1:]
    return completion(calls=[("create_note", note) for note in wanted], usage=USAGE, latency=0.03 + number % 7 * 0.01)


def asks_needed(documents: int) -> int:
    """How many questions the whole work needs."""
    return sum(2 if number % 5 == 0 else 1 for number in range(documents))
