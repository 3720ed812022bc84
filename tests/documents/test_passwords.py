"""Documents that ask for a password."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest
from cli.command import lay_down
from faults import notes_project
from reportlab.pdfgen.canvas import Canvas
from stub_server import StubServer

from extractor.documents import load
from extractor.errors import EncryptedDocument


def locked(password: str = "opensesame", text: str = "Total 12.00") -> bytes:
    """A PDF that opens with a password alone."""
    out = BytesIO()
    canvas = Canvas(out, encrypt=password)
    canvas.drawString(60, 700, text)
    canvas.save()
    return out.getvalue()


def test_a_password_that_is_given_opens_a_pdf() -> None:
    """Each of the passwords is tried in turn."""
    assert load(locked(), name="a.pdf", passwords=["wrong", "opensesame"]).text == "Total 12.00"


def test_passwords_of_the_environment_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any that are given, those of ``EXTRACTOR_PASSWORDS`` count, one a line."""
    monkeypatch.setenv("EXTRACTOR_PASSWORDS", "wrong\nopensesame\n")
    assert load(locked(), name="a.pdf").text == "Total 12.00"
    with pytest.raises(EncryptedDocument, match="asks for a password"):
        load(locked(), name="a.pdf", passwords=[])


def test_a_wrong_password_is_told_and_not_repeated() -> None:
    """The message says that none fits, and none of them."""
    with pytest.raises(EncryptedDocument, match=r"^a\.pdf: none of the known passwords opens the PDF; ") as told:
        load(locked(), name="a.pdf", passwords=["hunter2"])
    assert "hunter2" not in str(told.value)


def test_the_command_takes_passwords_from_a_file(tmp_path: Path) -> None:
    """A run without them fails that document and says what to do; the next one, with them, reads it."""
    with StubServer(notes_project.answer) as server:
        project = lay_down(tmp_path / "project", 0, server)
        project.write("docs/a.pdf", locked(text="document 1 holds 2 notes"))
        project.write("words.txt", "wrong\nopensesame\n")
        ran = project.run("run", "notes", "docs")
        assert ran.code == 3
        assert "EXTRACTOR_PASSWORDS" in ran.err
        ran = project.run("run", "notes", "docs", "--passwords", "words.txt")
        assert (ran.code, ran.said) == (0, [])
        ran = project.run("run", "notes", "docs", "--passwords", "none.txt")
        assert ran.code == 2
        assert len(ran.said) == 1
