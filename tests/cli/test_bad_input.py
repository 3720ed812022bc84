"""Bad input, one clear line each: the right exit code, no traceback, nothing lost."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfgen.canvas import Canvas

from cli.command import Project, is_one_line, lay_down, one_note, texts
from faults import notes_project
from stub_server import Answer, StubServer, error


@pytest.fixture
def notes(tmp_path: Path) -> Project:
    """A project with one document; nobody may be asked."""
    return lay_down(tmp_path / "project", 1)


@pytest.fixture
def server() -> Iterator[StubServer]:
    """A stub that answers with one note."""
    with StubServer(one_note) as running:
        yield running


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("run note docs", ("no pipeline 'note'", "did you mean 'notes'?")),
        ("run zzz docs", ("no pipeline 'zzz'", "there is 'notes'")),
        ("run . docs", ("no pipeline '.'",)),
        ("run nowhere:notes docs", ("no module 'nowhere'",)),
        ("run pipelines.notes:note docs", ("'pipelines.notes' has no 'note'",)),
        ("run schemas.note:create_note docs", ("not a Pipeline",)),
        ("run : docs", ("':'",)),
        ("run notes docs --model opanai/x", ("no provider 'opanai'", "did you mean 'openai'?")),
        ("run notes docs --model qwen2.5-coder-1.5", ("names no provider", "did you mean 'local/qwen2.5-coder-1.5b'?")),
        ("run notes docs --model local/smollm2-135", ("no model 'smollm2-135'", "did you mean 'smollm2-135m'?")),
        ("run notes docs --model local:none.gguf", ("no model file 'none.gguf'",)),
        ("run notes docs --model scripted/none", ("names no script",)),
        ("run notes docs --model ,", ("no model is named",)),
        ("models pull smollm", ("no model 'smollm'", "did you mean 'smollm2-135m'?")),
        ("run notes nowhere", ("no file or folder 'nowhere'",)),
        ("run notes docs/*.pdf", ("nothing matches 'docs/*.pdf'",)),
        ("run notes empty", ("'empty' holds no documents",)),
        ("run notes docs --project nowhere", ("'nowhere' does not exist",)),
        ("run notes docs --project docs/000.txt", ("'docs/000.txt'",)),
        ("run notes docs --max-failures many", ("--max-failures 'many'", "for example")),
        ("run notes docs --max-failures=-1", ("--max-failures '-1'",)),
        ("run notes docs --max-failures nan", ("--max-failures 'nan'",)),
        ("run notes docs --workers 0", ("--workers", "0")),
        ("run notes docs --workers many", ("--workers", "'many'")),
        ("run notes docs --wrokers 2", ("--wrokers",)),
        ("run notes", ("SOURCE",)),
        ("rnu notes docs", ("'rnu'",)),
        ("status nots", ("no pipeline 'nots'", "did you mean 'notes'?")),
        ("records nots", ("no pipeline 'nots'", "did you mean 'notes'?")),
        ("run notes docs --database nowhere", ("dialect://",)),
        ("run notes docs --database oracel:///x.db", ("oracel",)),
        ("run notes docs --database sqlite:///empty", ("empty",)),
        ("run notes docs --database sqlite:///text.db", ("text.db",)),
        ("run notes docs --database sqlite:///docs/000.txt/x.db", ("docs/000.txt",)),
        ("status --database sqlite:///text.db", ("text.db",)),
        ("records notes --database sqlite:///text.db", ("text.db",)),
    ],
)
def test_what_cannot_be_asked_for_is_one_line(notes: Project, words: str, said: tuple[str, ...]) -> None:
    """A wrong word on the command line ends with code 2 and one line, which says what is wrong and what there is."""
    notes.write("text.db", "this is no database, however long it is, and nobody may write to it\n" * 40)
    (notes.folder / "empty").mkdir()
    is_one_line(notes.run(*words.split()), 2, *said)
    assert (notes.folder / "text.db").read_text().startswith("this is no database")
    assert not (notes.folder / "nowhere").exists()
