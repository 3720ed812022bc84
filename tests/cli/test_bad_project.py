"""A project, an environment or a provider that does not fit: one clear line, code 2, and nothing lost."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cli.command import Project, ended, is_one_line, lay_down, one_note, texts
from faults import notes_project
from stub_server import Answer, StubServer, error

from extractor.cli import weights as weights_commands
from extractor.errors import WeightsError
from extractor.models import catalogue


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("x = 1\nclass Note(:\n", ("note.py, line 2", "invalid syntax")),
        ("x = 1\nimport nosuchmodule\n", ("note.py, line 2", "nosuchmodule")),
        ("from extractor import Rejectd\n", ("note.py, line 1", "Rejectd")),
        ("x = 1\n\nx / 0\n", ("note.py, line 3", "ZeroDivisionError")),
        ("x = 'a\\nb ' * 500\nraise ValueError(x)\n", ("note.py, line 2", "ValueError: a b")),
        ("raise SystemExit(0)\n", ("note.py, line 1", "SystemExit")),
        ("x = 1\n", ("notes.py, line 3", "create_note")),
        ("from sqlmodel import *\ndef create_note(draft): ...\n", ("create_note",)),
        ("x = '\0'\n", ("notes.py, line 3", "null bytes")),
        (b"x = '\xff'\n", ("note.py", "line 1")),
    ],
    ids=[
        "syntax",
        "module",
        "name",
        "exception",
        "long exception",
        "exit",
        "missing",
        "definition",
        "null",
        "encoding",
    ],
)
def test_a_schema_file_that_breaks_is_named_with_its_line(
    notes: Project, source: str | bytes, said: tuple[str, ...]
) -> None:
    """Whatever a schema file raises is one line with file, line and reason; once mended the command runs."""
    notes.write("schemas/note.py", source)
    is_one_line(notes.run("run", "notes", "docs"), 2, *said)
    assert not (notes.folder / "notes.db").exists()


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("[tool.extractor\n", ("pyproject.toml", "no valid TOML", "line 1")),
        (b"x = '\xff'\n[tool.extractor]\n", ("pyproject.toml", "no valid TOML")),
        ("[tool.extractor]\ndatabse = 'sqlite:///x.db'\n", ("no key 'databse'", "did you mean 'database'?")),
        ("[tool.extractor.pipelines.notes]\nmodle = 'openai/x'\n", ("no key 'modle'", "did you mean 'model'?")),
        ("[tool.extractor]\nmodel = 3\n", ("pyproject.toml", "model")),
        ("[tool.extractor]\ndatabase = ['a']\n", ("pyproject.toml", "database")),
        ("[tool.extractor]\npipelines = 'notes'\n", ("pyproject.toml", "pipelines")),
        ("[tool.extractor]\npipelines = {notes = 'x'}\n", ("pyproject.toml", "notes")),
        ("[tool]\nextractor = 'notes'\n", ("pyproject.toml", "tool.extractor")),
        ("[tool.extractor]\ncontent = 'nowhere'\n", ("no pipeline 'notes'", "there is none")),
        ("[tool.extractor]\ncontent = 'no.where'\n", ("no pipeline 'notes'", "there is none")),
        ("[tool.extractor]\ncontent = ''\n", ("pyproject.toml", "content")),
        ("[tool.extractor]\ndatabase = 'nowhere'\n", ("dialect://",)),
        ("[tool.extractor]\nmodel = 'opanai/x'\n", ("no provider 'opanai'",)),
    ],
)
def test_a_project_file_that_does_not_fit_is_named(notes: Project, table: str | bytes, said: tuple[str, ...]) -> None:
    """A ``pyproject.toml`` that is no TOML, or says what means nothing, is one line that names it."""
    notes.write("pipelines/notes.py", notes_project.PIPELINE.replace(', model="openai/stub"', ""))
    notes.write("pyproject.toml", table)
    is_one_line(notes.run("run", "notes", "docs"), 2, *said)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"OPENAI_API_KEY": None}, ("OPENAI_API_KEY is not set",)),
        ({"OPENAI_API_KEY": "  "}, ("OPENAI_API_KEY is not set",)),
        ({"OPENAI_API_KEY": "sk-ü"}, ("OPENAI_API_KEY holds characters",)),
        ({"OPENAI_BASE_URL": "nowhere"}, ("OPENAI_BASE_URL is no address",)),
        ({"EXTRACTOR_MODEL": "openia/x"}, ("no provider 'openia'", "did you mean 'openai'?")),
        ({"EXTRACTOR_DATABASE": "mysql://root:secret@localhost/x"}, ("mysql",)),
        ({"EXTRACTOR_PROJECT": "nowhere"}, ("'nowhere' does not exist",)),
    ],
)
def test_an_environment_that_does_not_fit_is_named(
    notes: Project, changes: dict[str, str | None], said: tuple[str, ...]
) -> None:
    """A missing key, an address that is none, a wrong name in a variable: one line, which holds no secret."""
    ran = notes.run("run", "notes", "docs", **changes)
    is_one_line(ran, 2, *said)
    assert "secret" not in ran.err
    assert "sk-" not in ran.err


def test_a_wrong_key_stops_the_run_and_the_right_one_goes_on(tmp_path: Path) -> None:
    """A key that is refused in the middle ends with code 2 and one line beside the documents that it met; the next
    run, with a key that is accepted, asks for what is open and for nothing else."""
    refused = error(401, "invalid_api_key", message="Incorrect API key provided: sk-secret")
    is_open = [True, True]

    def answer(body: dict[str, object]) -> Answer:
        return one_note(body) if is_open.pop(0) else refused

    with StubServer(answer) as server:
        is_open[:] = [True, True, *[False] * 100]
        notes = lay_down(tmp_path / "project", 30, server)
        first = notes.run("run", "notes", "docs", "--workers", "1")
        assert first.code == 2, first.err
        assert first.said[-1].startswith("extractor: openai/stub: 127.0.0.1")
        assert "401 (invalid_api_key): the key in OPENAI_API_KEY is not accepted" in first.said[-1]
        assert first.said[-1].endswith("nothing is lost: run again to go on")
        assert "secret" not in first.err
        assert len(first.said) == 2  # the document that met it, and the run's last word
        assert notes.asked == 3
        is_open[:] = [True] * 100
        second = notes.run("run", "notes", "docs", "--json")
        assert (second.code, second.sum["done"], second.sum["unchanged"]) == (0, 30, 2)
        assert notes.asked == 3 + 28
        assert len(texts(notes.run("records", "notes", "--json"))) == 30


def test_a_wrong_key_with_many_workers_ends_soon(tmp_path: Path) -> None:
    """Sixteen workers that meet a refused key ask at most once each, and the run ends with code 2."""
    with StubServer(lambda _body: error(401, "invalid_api_key")) as server:
        notes = lay_down(tmp_path / "project", 60, server)
        ran = notes.run("run", "notes", "docs", "--json")
    assert (ran.code, ran.sum["exit"]) == (2, 2)
    assert notes.asked <= 16
    assert ran.said[-1].startswith("extractor: openai/stub")


def test_an_unknown_model_of_the_provider_stops_the_run(tmp_path: Path) -> None:
    """A model that the provider does not have ends with code 2 and a line that says where to look."""
    with StubServer(lambda _body: error(404, "model_not_found")) as server:
        notes = lay_down(tmp_path / "project", 1, server)
        ran = notes.run("run", "notes", "docs", "--model", "openai/stob")
    assert ran.code == 2
    assert "no model 'stob' there" in ran.said[-1]


def test_a_missing_extra_is_the_line_that_installs_it(notes: Project) -> None:
    """Without llama.cpp a local model ends with code 2 and the pip line, before any weights are fetched or loaded."""
    notes.write("sitecustomize.py", "import sys\nsys.modules['xllamacpp'] = None\n")
    notes.write("m.gguf", b"GGUF")
    ran = ended(notes.start("run", "notes", "docs", "--model", "local:m.gguf", PYTHONPATH=str(notes.folder)))
    is_one_line(ran, 2, "xllamacpp", "pip install 'extractor[local]'")


def test_weights_that_are_broken_are_one_line(notes: Project) -> None:
    """A file that is no model cannot be loaded, and the line says so."""
    notes.write("m.gguf", b"GGUF" + bytes(4096))
    is_one_line(notes.run("run", "notes", "docs", "--model", "local:m.gguf"), 2, "m.gguf cannot be loaded")


def test_weights_that_are_not_there_are_one_line(notes: Project) -> None:
    """Offline and without weights a local model ends with code 2; so does a folder that cannot be made."""
    words = ("run", "notes", "docs", "--model", "local/smollm2-135m")
    ran = notes.run(*words)
    assert ran.code == 2
    assert ran.said[-1].startswith("extractor: ")
    assert "EXTRACTOR_OFFLINE is set" in ran.said[-1]
    is_one_line(notes.run(*words, EXTRACTOR_MODELS=str(notes.folder / "docs" / "000.txt")), 2, "000.txt", "cannot be")


def test_no_room_for_weights_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A disk that is too full is said with both numbers, before anything is fetched."""
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _place: usage._replace(free=50_000_000))
    monkeypatch.setenv("EXTRACTOR_MODELS", str(tmp_path / "models"))
    with pytest.raises(WeightsError, match=r"no room for smollm2-135m in .*: needs 197 MB, 50 are free; free some"):
        weights_commands.pull_command("smollm2-135m", None, json=False)
    assert capsys.readouterr() == ("", "")
    assert catalogue.entry("smollm2-135m").bytes == 98_362_432
    assert sum(file.stat().st_size for file in (tmp_path / "models").iterdir()) < 100  # a lock at the most
