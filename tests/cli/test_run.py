"""``extractor run``, ``status`` and ``records``: what they print, how they end, and that a later run goes on."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli.command import Project, ended, lay_down, one_note, texts
from faults import notes_project
from stub_server import Answer, StubServer, completion


@pytest.fixture
def server() -> Iterator[StubServer]:
    """A stub that answers as the project's documents ask for."""
    with StubServer(notes_project.answer) as running:
        yield running


@pytest.fixture
def notes(tmp_path: Path, server: StubServer) -> Project:
    """A project with six documents."""
    return lay_down(tmp_path / "project", 6, server)


def rows(notes: Project) -> list[tuple[Any, ...]]:
    """The notes in the database, as they were written."""
    with sqlite3.connect(notes.folder / "notes.db") as database:
        return sorted(database.execute("select document, number, text from note").fetchall())


WANTED = [(d, n, f"note {n} of {d}") for d in range(6) for n in range(d % 3 + 1)]


def test_a_run_says_what_it_uses_and_what_came_of_it(notes: Project) -> None:
    """stderr holds five lines of header, each with where it comes from, and one of sums; stdout holds nothing."""
    ran = ended(notes.start("run", "notes", "docs"))
    assert (ran.code, ran.out, ran.said) == (0, "", [])
    lines = ran.err.splitlines()
    assert lines[0] == "pipeline   notes  (create_note)"
    assert lines[1] == "model      openai/stub  (the pipeline)"
    assert lines[2] == "price      unknown"
    assert lines[3].startswith("database   sqlite:///")
    assert lines[3].endswith("notes.db  (pyproject.toml [tool.extractor])")
    assert lines[4] == "documents  6"
    assert lines[5].startswith("6 done · 7,920 in, 80 out tokens · cost unknown · 0:0")
    assert rows(notes) == WANTED


def test_json_is_all_that_stdout_holds(notes: Project) -> None:
    """``run --json`` prints one line for each document and the sum last."""
    ran = ended(notes.start("run", "notes", "docs", "--json"))
    *documents, last = ran.lines
    assert ran.code == 0
    assert sorted(line["source"] for line in documents) == [f"docs/{n:03}.txt" for n in range(6)]
    assert {line["status"] for line in documents} == {"done"}
    assert sum(len(line["records"]) for line in documents) == len(WANTED)
    assert {line["error"] for line in documents} == {None}
    expected = {"documents": 6, "done": 6, "unchanged": 0, "outdated": 0, "records": len(WANTED), "tokens": 8000}
    assert expected.items() <= last.items()
    assert (last["exit"], last["stopped"]) == (0, None)
    assert " tokens · " not in ran.err


def test_a_second_run_asks_nothing(notes: Project, server: StubServer) -> None:
    """Settled documents are left alone, without a key and without a server, and no row is added."""
    notes.run("run", "notes", "docs")
    asked = notes.asked
    again = Project(notes.folder).run("run", "notes", "docs", OPENAI_API_KEY=None)
    assert (again.code, again.said, notes.asked) == (0, [], asked)
    assert "6 unchanged since an earlier run" in again.err
    assert rows(notes) == WANTED


@pytest.mark.parametrize("change", ["model", "instructions", "schema"])
def test_what_is_outdated_is_said_and_left_alone(notes: Project, change: str) -> None:
    """After another model, prompt or schema a second run asks nothing, and says how many are outdated."""
    notes.run("run", "notes", "docs")
    asked = notes.asked
    if change == "instructions":
        notes.write(
            "pipelines/notes.py",
            notes_project.PIPELINE.replace("create_note, ", "create_note, instructions='Be brief.', "),
        )
    elif change == "schema":
        notes.write("schemas/note.py", notes_project.SCHEMA.replace("Record one note.", "Record each note."))
    words = ("--model", "openai/other") if change == "model" else ()
    again = notes.run("run", "notes", "docs", "--json", *words)
    assert (again.code, again.sum["outdated"], again.sum["unchanged"]) == (0, 6, 6)
    assert len(again.said) == 1
    assert again.said[0].startswith("6 settled documents were made by an earlier version of this pipeline")
    assert notes.asked == asked
    assert rows(notes) == WANTED


def test_new_documents_alone_are_asked_about(notes: Project) -> None:
    """A document that is added later is the only one that a later run asks about; a copy of a known one is not."""
    notes.run("run", "notes", "docs")
    asked = notes.asked
    notes.write("docs/new.txt", "document 7 holds 1 notes\n")
    notes.write("docs/copy.txt", (notes.folder / "docs" / "001.txt").read_bytes())
    again = notes.run("run", "notes", "docs", "--json")
    assert (again.code, again.sum["documents"], again.sum["unchanged"]) == (0, 8, 7)
    assert notes.asked == asked + 1


def test_files_and_globs_name_each_document_once(notes: Project) -> None:
    """A file that is named by itself, by a glob and by its folder is one document."""
    ran = notes.run("run", "notes", "docs/001.txt", "docs/00[12].txt", "./docs/002.txt", "--json")
    assert (ran.code, ran.sum["documents"], notes.asked) == (0, 2, 2)


def test_status_says_what_became_of_documents(notes: Project) -> None:
    """``status`` counts outcomes and lists what is not done, as a table and as JSON."""
    notes.write("docs/zero.txt", b"")
    notes.run("run", "notes", "docs")
    table = notes.run("status")
    assert table.code == 0
    assert table.out.splitlines()[-1] == "failed: docs/zero.txt: the file is empty (0 bytes)"
    for words in (("status", "--json"), ("status", "notes", "--json")):
        (said,) = notes.run(*words).lines
        assert {row["status"]: row["documents"] for row in said["outcomes"]} == {"done": 6, "failed": 1}
        assert [(row["source"], row["status"]) for row in said["open"]] == [("docs/zero.txt", "failed")]
        assert said["flagged"] == []


def test_records_prints_each_record_with_its_document(notes: Project) -> None:
    """``records`` prints a table, and with ``--json`` a line for each record with document, verdict and values."""
    notes.run("run", "notes", "docs")
    said = notes.run("records", "notes", "--json")
    assert texts(said) == sorted(text for _, _, text in WANTED)
    ends = {(line["status"], line["verdict"], line["model"]) for line in said.lines}
    assert ends == {("done", "accepted", "openai/stub")}
    assert {line["source"] for line in said.lines} == {f"docs/{n:03}.txt" for n in range(6)}
    table = notes.run("records", "notes").out.splitlines()
    assert table[0].split() == ["document", "document", "number", "text", "id"]
    assert table[-1] == f"{len(WANTED)} records"


def test_the_database_of_the_command_line_comes_first(notes: Project) -> None:
    """``--database`` goes before the environment, and the environment before the project; both commands agree."""
    ran = notes.run("run", "notes", "docs/001.txt", "--database", "sqlite:///a.db", EXTRACTOR_DATABASE="sqlite:///b.db")
    assert "a.db  (command line)" in ran.err
    ran = notes.run("run", "notes", "docs/002.txt", EXTRACTOR_DATABASE="sqlite:///b.db")
    assert "b.db  (EXTRACTOR_DATABASE)" in ran.err
    assert texts(notes.run("records", "notes", "--json", "--database", "sqlite:///a.db")) == [
        "note 0 of 1",
        "note 1 of 1",
    ]
    assert len(notes.run("records", "notes", "--json", EXTRACTOR_DATABASE="sqlite:///b.db").lines) == 3
    assert not (notes.folder / "notes.db").exists()


def test_a_document_that_is_never_right_is_exhausted_and_settled(tmp_path: Path) -> None:
    """A model that is never right spends its attempts once; the run ends with 3, and the next one asks nothing."""

    def never(body: dict[str, Any]) -> Answer:
        wrong = {"document": 1, "number": len(body["messages"]), "text": "bad"}  # another each time, or its turn ends
        return completion(calls=[("create_note", wrong)], usage=notes_project.USAGE)

    with StubServer(never) as server:
        notes = lay_down(tmp_path / "project", 1, server)
        first = notes.run("run", "notes", "docs")
        assert first.code == 3
        assert len(first.said) == 1
        assert first.said[0].startswith("exhausted: docs/000.txt: ")
        assert notes.asked == 3
        second = notes.run("run", "notes", "docs")
        assert (second.code, second.said, notes.asked) == (3, first.said, 3)


# -- interrupted ---------------------------------------------------------------------------------------------------


def begun(notes: Project, requests: int, *words: str) -> subprocess.Popen[str]:
    """A run that has asked at least so many questions."""
    process = notes.start("run", "notes", "docs", *words)
    deadline = time.monotonic() + 20
    while notes.asked < requests and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    return process


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_once_a_run_finishes_what_is_in_flight(tmp_path: Path, sign: signal.Signals) -> None:
    """One interrupt drains: code 4, every question that was asked is answered and kept, and the next run asks only
    for the rest."""
    with StubServer(one_note, latency=0.15) as server:
        notes = lay_down(tmp_path / "project", 24, server)
        process = begun(notes, 4, "--workers", "2", "--json")
        process.send_signal(sign)
        first = ended(process)
        assert first.code == first.sum["exit"] == 4, first.err
        asked = notes.asked
        assert 4 <= asked < 24
        assert first.sum["done"] == first.sum["documents"] == asked
        word = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}[sign]
        assert first.sum["stopped"] == word
        assert first.said[-1] == f"extractor: {word}: run the same command again to go on"
        second = notes.run("run", "notes", "docs", "--json")
        assert (second.code, second.sum["done"], second.sum["unchanged"]) == (0, 24, asked)
        assert notes.asked == 24
        assert texts(notes.run("records", "notes", "--json")) == sorted(f"note of {n}" for n in range(24))


def test_interrupted_in_the_pause_of_a_rate_limit_a_run_ends_at_once(tmp_path: Path) -> None:
    """Who only waits for a turn, here for an hour, is left for a later run by one SIGTERM: code 4, nothing lost."""
    limited = Answer({"error": {"message": "slow down"}}, status=429, headers={"retry-after": "3600"})
    with StubServer(one_note) as server:
        notes = lay_down(tmp_path / "project", 6, server)
        notes.run("run", "notes", "docs/000.txt")
        server.answer = lambda _: limited
        process = begun(notes, 2, "--workers", "4")
        process.send_signal(signal.SIGTERM)
        first = ended(process)
        assert first.code == 4, first.err
        assert first.said[-1] == "extractor: terminated: run the same command again to go on"
        server.answer = one_note
        second = notes.run("run", "notes", "docs", "--json")
        assert (second.code, second.sum["done"]) == (0, 6)
        assert len(texts(notes.run("records", "notes", "--json"))) == 6


def test_interrupted_twice_a_run_stops_at_once(tmp_path: Path) -> None:
    """Two interrupts give up what is in flight: code 4 long before the answers come, and a later run finishes."""
    with StubServer(one_note) as server:
        notes = lay_down(tmp_path / "project", 6, server)
        notes.run("run", "notes", "docs/000.txt")
        server.latency = 20.0
        process = begun(notes, 3, "--workers", "2")
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        said = ""
        while "press Ctrl-C again" not in said:
            said += process.stderr.readline()
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        first = ended(process)
        assert first.code == 4, first.err
        assert time.monotonic() - begin < 5
        server.latency = 0.0
        second = notes.run("run", "notes", "docs")
        assert second.code == 0
        assert notes.asked == 6 + 2  # the two that were given up are asked again
        assert len(texts(notes.run("records", "notes", "--json"))) == 6


def test_a_reader_that_goes_away_is_no_error(notes: Project) -> None:
    """``records --json | head -1`` ends without a traceback."""
    notes.run("run", "notes", "docs")
    with notes.start("records", "notes", "--json") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""


def test_names_of_any_kind_are_read_and_printed(notes: Project) -> None:
    """A name that is no UTF-8 is a document like any other, and what stdout cannot write stands as an escape."""
    name = os.fsencode(notes.folder / "docs") + b"/caf\xe9.txt"
    try:
        Path(os.fsdecode(name)).write_text("document 7 holds 1 notes")
    except OSError:  # this file system takes UTF-8 alone
        notes.write("docs/caf\\xe9.txt", "document 7 holds 1 notes")
    notes.write("docs/発票.txt", "document 8 holds 3 notes")
    wanted = {"docs/caf\\xe9.txt", "docs/発票.txt", *(f"docs/{n:03}.txt" for n in range(6))}
    for _ in range(2):
        ran = notes.run("run", "notes", "docs", "--json", PYTHONIOENCODING="ascii")
        assert ran.code == 0, ran.err
        assert {line["source"] for line in ran.lines[:-1]} == wanted
    for words in (("records", "notes"), ("records", "notes", "--json"), ("status",)):
        assert notes.run(*words, PYTHONIOENCODING="ascii").code == 0
    assert {line["source"] for line in notes.run("records", "notes", "--json").lines} == wanted
