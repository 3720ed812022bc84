"""Bad input, one clear line each: the right exit code, no traceback, nothing lost."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest
from cli.command import Project, is_one_line, lay_down, texts
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfgen.canvas import Canvas
from stub_server import StubServer


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("run note docs", ("no pipeline 'note'", "did you mean 'notes'?")),
        ("run zzz docs", ("no pipeline 'zzz'", "there is 'notes'")),
        ("run . docs", ("no pipeline '.'",)),
        ("run nowhere:notes docs", ("no module 'nowhere'",)),
        ("run pipelines.notes:note docs", ("'pipelines.notes' has no 'note'",)),
        ("run schemas.note:create_note docs", ("not a Pipeline",)),
        ("run : docs", ("':' names no pipeline", "module:attribute")),
        ("run .:notes docs", ("'.:notes' names no pipeline",)),
        ("run notes docs --model opanai/x", ("no provider 'opanai'", "did you mean 'openai'?")),
        ("run notes docs --model qwen2.5-coder-1.5", ("names no provider", "did you mean 'local/qwen2.5-coder-1.5b'?")),
        ("run notes docs --model local/smollm2-135", ("no model 'smollm2-135'", "did you mean 'smollm2-135m'?")),
        ("run notes docs --model local:none.gguf", ("no model file", "none.gguf'")),
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
        ("run notes docs --max-failures 0.5", ("--max-failures '0.5'",)),
        ("run notes docs --max-failures 101%", ("--max-failures '101%'",)),
        ("run notes docs --max-failures %", ("--max-failures '%'",)),
        ("run notes docs --workers 0", ("--workers", "1")),
        ("run notes docs --workers many", ("--workers", "integer")),
        ("run notes docs --wrokers 2", ("no such option: --wrokers", "--workers")),
        ("run notes", ("SOURCE",)),
        ("rnu notes docs", ("no such command 'rnu'",)),
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


def pdf(text: str = "", **options: object) -> bytes:
    """A PDF of one page."""
    out = BytesIO()
    canvas = Canvas(out, **options)
    canvas.drawString(60, 700, text)
    canvas.save()
    return out.getvalue()


BAD = {
    "docs/bad-broken.pdf": (b"%PDF-1.7\n1 0 obj <<", "the PDF is broken"),
    "docs/bad-empty.txt": (b"", "the file is empty (0 bytes)"),
    "docs/bad-image.png": (b"\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR", "PNG image"),
    "docs/bad-image.txt": (b"\x89PNG\r\n\x1a\n\x01\x00\x00\x0dIHDR", "PNG image"),
    "docs/bad-locked.pdf": (pdf("document 7", encrypt=StandardEncryption("secret")), "password"),
    "docs/bad-scan.pdf": (pdf(), "no text"),
    "docs/bad-spaces.txt": (b" \n\t\n", "no text"),
    "docs/bad-unknown": (bytes(range(256)) * 4, "binary file of an unknown kind"),
}


def with_bad_ones(notes: Project) -> int:
    """Lay bad documents among the good ones, one of them unreadable for everybody; returns how many are bad."""
    for name, (content, _) in BAD.items():
        notes.write(name, content)
    (notes.folder / "docs" / "bad-gone.txt").symlink_to("nothing.txt")
    notes.write("docs/010.pdf", pdf("document 10 holds 1 notes"))
    return len(BAD) + 1


def test_bad_documents_among_good_ones_stop_nothing(tmp_path: Path, server: StubServer) -> None:
    """Each bad document is one line with its reason and code 1 in all; the good ones are read, and asked about once."""
    notes = lay_down(tmp_path / "project", 3, server)
    bad = with_bad_ones(notes)
    first = notes.run("run", "notes", "docs")
    assert first.code == 1, first.err
    said = {line.split(": ")[1]: line for line in first.said}
    assert len(first.said) == len(said) == bad, first.err
    for name, (_, reason) in BAD.items():
        assert said[name].startswith(f"failed: {name}: "), said[name]
        assert reason in said[name]
        assert said[name].count(name) == 1
    assert "No such file" in said["docs/bad-gone.txt"]
    assert notes.asked == 4
    again = notes.run("run", "notes", "docs")
    assert (again.code, sorted(again.said), notes.asked) == (1, sorted(first.said), 4)
    assert texts(notes.run("records", "notes", "--json")) == ["note of 0", "note of 1", "note of 10", "note of 2"]
    assert sorted(line["source"] for line in notes.run("status", "--json").lines[0]["open"]) == sorted(said)


def test_a_mended_document_is_read_by_the_next_run(tmp_path: Path, server: StubServer) -> None:
    """A document that failed is not settled: once its file is mended the same command reads it."""
    notes = lay_down(tmp_path / "project", 0, server)
    notes.write("docs/1.txt", b"")
    is_one_line(notes.run("run", "notes", "docs"), 3, "failed: docs/1.txt", "empty")
    notes.write("docs/1.txt")
    mended = notes.run("run", "notes", "docs")
    assert (mended.code, mended.said, notes.asked) == (0, [], 1)


@pytest.mark.parametrize(
    ("allowed", "code"), [("0", 1), ("0%", 1), ("8", 1), ("9", 0), ("69%", 1), ("69.3%", 0), ("100%", 0)]
)
def test_max_failures_is_what_may_fail(notes: Project, server: StubServer, allowed: str, code: int) -> None:
    """Nine failures of thirteen documents are well with 9 or 69.3 per cent, and not with less."""
    there = Project(notes.folder, server)
    for number in (1, 2):
        there.write(f"docs/{number:03}.txt", f"document {number} holds 1 notes")
    bad = with_bad_ones(there)
    assert bad == 9
    assert there.run("run", "notes", "docs", "--max-failures", allowed).code == code


def test_zero_per_cent_of_failures_is_well_when_nothing_fails(notes: Project, server: StubServer) -> None:
    """``--max-failures 0%`` ends with 0 when every document is done."""
    assert Project(notes.folder, server).run("run", "notes", "docs", "--max-failures", "0%").code == 0
