"""What a run costs: said before, kept to a budget, and found again afterwards."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from cli.command import HEADER, Project, Ran, is_one_line, lay_down
from faults import notes_project
from stub_server import StubServer

PRICED = """
[tool.extractor]
database = "sqlite:///notes.db"
[tool.extractor.models.priced]
provider = "openai"
model = "stub"
price = {input = 1, output = 2.5, cached = "0.1"}
"""
EACH = Decimal("0.001015")  # 990 tokens in and 10 out


@pytest.fixture
def server() -> Iterator[StubServer]:
    """A stub that answers as the project's documents ask for."""
    with StubServer(notes_project.answer) as running:
        yield running


@pytest.fixture
def notes(tmp_path: Path, server: StubServer) -> Project:
    """A project with six documents, of which two take two questions; its model has a price under the name 'priced'."""
    made = lay_down(tmp_path / "project", 6, server)
    made.write("pyproject.toml", PRICED)
    return made


def header(ran: Ran) -> dict[str, str]:
    """The header of a run, by its names."""
    lines = [line for line in ran.err.splitlines() if line.startswith(HEADER)]
    return {line.split()[0]: line[11:] for line in lines}


def names(folder: Path) -> set[str]:
    """The files that lie in a folder."""
    return {path.name for path in folder.iterdir()}


# -- what a run says -----------------------------------------------------------------------------------------------


def test_a_run_says_its_price_and_what_it_has_cost(notes: Project) -> None:
    """The header has the price for a million tokens; the last line and the summary the tokens and the exact money."""
    ran = notes.run("run", "notes", "docs/001.txt", "--model", "priced", "--max-cost", "2.50")
    assert header(ran)["price"] == "$1.00 in, $2.50 out, $0.10 cached per million tokens (own price)"
    assert header(ran)["budget"] == "$2.50  (command line)"
    assert "1 done · 990 in, 10 out tokens · $0.00102 · " in ran.err
    rest = notes.run("run", "notes", "docs", "--model", "priced", "--json")
    wanted = {"asks": 7, "tokens": 7000, "input_tokens": 6930, "output_tokens": 70, "cached_tokens": 0,
              "cost": str(7 * EACH), "unpriced": 0}  # fmt: skip
    assert wanted.items() <= rest.sum.items()
    again = notes.run("run", "notes", "docs", "--model", "priced", "--json")
    assert (again.sum["asks"], again.sum["tokens"], again.sum["cost"]) == (0, 0, "0")


def test_an_unknown_price_is_said_to_be_unknown(notes: Project) -> None:
    """Never 0: in the header, in the last line, and in the summary."""
    ran = notes.run("run", "notes", "docs", "--json")
    assert header(ran)["price"] == "unknown"
    assert (ran.sum["cost"], ran.sum["unpriced"], ran.sum["asks"]) == (None, 8, 8)


# -- budgets -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [("--max-cost", "0.014"), ("--max-tokens", "12000")])
def test_a_budget_stops_a_run_that_goes_on(notes: Project, budget: tuple[str, str]) -> None:
    """Code 4 and one line before the limit is passed; what was left is done by the same command, and no document is
    asked about twice."""
    spent, runs = [], 0
    while True:
        ran = notes.run("run", "notes", "docs", "--model", "priced", "--json", *budget)
        spent.append((Decimal(ran.sum["cost"]), ran.sum["tokens"]))
        runs += 1
        if ran.code == 0:
            break
        assert (ran.code, ran.sum["exit"]) == (4, 4)
        assert ran.sum["stopped"].startswith("the budget of ")
        assert ran.sum.get("failed") is None
        assert ran.said == [f"extractor: {ran.sum['stopped']}: run the same command again to go on"]
        assert spent[-1][1] > 0
    limit = Decimal(budget[1])
    assert all((cost if budget[0] == "--max-cost" else tokens) <= limit for cost, tokens in spent)
    assert runs > 1
    assert notes.asked == notes_project.asks_needed(6)
    assert len(notes.run("records", "notes", "--json").lines) == 12


def test_a_budget_for_a_model_without_a_price_is_refused(notes: Project) -> None:
    """Before any ask, with the way out."""
    ran = notes.run("run", "notes", "docs", "--max-cost", "1")
    is_one_line(ran, 2, "the price of openai/stub is not known", "[tool.extractor.models.NAME]: price = ")
    assert notes.asked == 0
    mixed = notes.run("run", "notes", "docs", "--max-cost", "1", "--model", "priced,openai/stub")
    is_one_line(mixed, 2, "the price of openai/stub is not known")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--max-cost", "much"), "max_cost 'much' is no amount"),
        (("--max-cost", "0"), "max_cost '0' is no amount"),
        (("--max-cost", "nan"), "max_cost 'nan' is no amount"),
        (("--max-tokens", "0"), "--max-tokens"),
        (("--max-tokens", "many"), "--max-tokens"),
        (("--tag", ""), "'' is no tag"),
        (("--rpm", "0"), "--rpm"),
        (("--concurrency", "0"), "--concurrency"),
        (("--log-level", "debgu"), "did you mean 'debug'?"),
    ],
)
def test_options_that_mean_nothing_are_one_line(notes: Project, words: tuple[str, str], said: str) -> None:
    """Exit code 2 before anything is asked."""
    is_one_line(notes.run("run", "notes", "docs", *words), 2, said)
    assert notes.asked == 0


def test_log_level_shows_what_is_logged_on_stderr(notes: Project) -> None:
    """Stdout stays as it is, and no key is shown."""
    ran = notes.run("run", "notes", "docs/001.txt", "--json", "--log-level", "DEBUG")
    assert (ran.code, len(ran.lines)) == (0, 2)
    assert "sk-test" not in ran.err


# -- dry run -------------------------------------------------------------------------------------------------------


def test_a_dry_run_asks_nothing_and_writes_nothing(notes: Project) -> None:
    """Not even the database is made; what is assumed is said."""
    before = names(notes.folder)
    ran = notes.run("run", "notes", "docs", "--dry-run", "--model", "priced", OPENAI_API_KEY=None)
    assert (ran.code, ran.said, notes.asked) == (0, [], 0)
    assert names(notes.folder) == before
    asks, tokens, cost = ran.out.splitlines()
    assert asks == "would ask  6 to ask, 0 settled"
    assert tokens.endswith("3,000 out; 500 tokens of answers a document (assumed: none is in the ledger yet)")
    assert cost.startswith("cost       about $0.0")
    unknown = notes.run("run", "notes", "docs", "--dry-run")
    assert unknown.out.splitlines()[-1] == "cost       unknown"


def test_a_dry_run_goes_by_the_ledger(notes: Project) -> None:
    """Settled documents are counted and not estimated, answers are as long as they were, and a kept reply costs
    nothing; the database is left as it is."""
    notes.run("run", "notes", "docs/000.txt", "docs/001.txt", "docs/002.txt", "--model", "priced")
    notes.write("docs/same.txt", "document 1 holds 2 notes\n\n")  # other bytes, the same question
    notes.write("docs/zero.txt", b"")
    before, asked = (notes.folder / "notes.db").read_bytes(), notes.asked
    ran = notes.run("run", "notes", "docs", "--dry-run", "--model", "priced", "--json")
    (said,) = ran.lines
    assert {"settled": 3, "to_ask": 3, "kept": 1, "unreadable": 1}.items() <= said.items()
    assert (said["answers_from"], said["answer_tokens"], said["output_tokens"]) == ("ledger", 14, 40)  # 40 by 3
    assert 0 < Decimal(said["cost"]) < Decimal("0.01")
    assert (notes.asked, (notes.folder / "notes.db").read_bytes()) == (asked, before)
    fresh = notes.run("run", "notes", "docs", "--dry-run", "--model", "priced", "--json", "--fresh").lines[0]
    assert (fresh["settled"], fresh["to_ask"], fresh["kept"]) == (3, 4, 0)


def test_fresh_says_how_many_are_settled(notes: Project) -> None:
    """Settled documents are not asked again by ``--fresh``, and the header says so."""
    notes.run("run", "notes", "docs/000.txt", "docs/001.txt")
    asked = notes.asked
    ran = notes.run("run", "notes", "docs/000.txt", "docs/001.txt", "docs/002.txt", "--fresh")
    assert header(ran)["documents"] == "3  (2 settled, which are not asked again)"
    assert notes.asked == asked + 1


# -- extractor cost ------------------------------------------------------------------------------------------------


def test_cost_adds_up_what_was_asked(notes: Project) -> None:
    """By pipeline and model, by tag, by month; each ask once in the total, its tags each for itself."""
    notes.run("run", "notes", "docs/000.txt", "docs/001.txt", "--model", "priced", "--tag", "acme", "--tag", "may")
    notes.run("run", "notes", "docs/002.txt", "--model", "priced", "--tag", "acme")
    notes.run("run", "notes", "docs/003.txt", "--model", "openai/other")
    table = [line.split() for line in notes.run("cost").out.splitlines()]
    assert table[0][:3] == ["pipeline", "model", "asks"]
    assert table[1:] == [
        ["notes", "openai/other", "1", "990", "0", "10", "unknown", "1"],
        ["notes", "openai/stub", "4", "3,960", "0", "40", "$0.00406", "0"],
        ["total", "5", "4,950", "0", "50", "$0.00406", "1"],
    ]
    by_tag = notes.run("cost", "notes", "--by", "tag", "--json").lines
    assert [(row["tag"], row["asks"], row["cost"], row["unpriced"]) for row in by_tag] == [
        ("", 1, None, 1), ("acme", 4, "0.00406", 0), ("may", 3, str(3 * EACH), 0),
    ]  # fmt: skip
    by_run = notes.run("cost", "--by", "month,run,outcome", "--json").lines
    assert [(row["run"], row["outcome"], row["asks"]) for row in by_run] == [
        ("1", "reply", 3), ("2", "reply", 1), ("3", "reply", 1),
    ]  # fmt: skip
    assert len(notes.run("cost", "--by", "document", "--json").lines) == 4


def test_a_failed_ask_costs_too(tmp_path: Path) -> None:
    """Asks that nobody answered have rows of their own."""
    refusal = {"prompt_tokens": 990, "completion_tokens": 0}

    def refuse(_: dict[str, Any]) -> Any:
        from stub_server import completion

        return completion("", finish_reason="content_filter", usage=refusal)

    with StubServer(refuse) as server:
        notes = lay_down(tmp_path / "project", 1, server)
        notes.write("pyproject.toml", PRICED)
        assert notes.run("run", "notes", "docs", "--model", "priced").code == 3
        (row,) = notes.run("cost", "--by", "outcome", "--json").lines
    assert (row["outcome"], row["asks"], row["cost"]) == ("refused", 1, "0.00099")


def test_cost_counts_by_what_there_is(notes: Project) -> None:
    """A word that is none is one line with the nearest; before any question the table says so."""
    notes.run("run", "notes", "docs/001.txt")
    is_one_line(notes.run("cost", "--by", "modle"), 2, "did you mean 'model'?")
    is_one_line(notes.run("cost", "--by", ","), 2, "nothing to count by")
    is_one_line(notes.run("cost", "nots"), 2, "did you mean 'notes'?")
    with sqlite3.connect(notes.folder / "notes.db") as database:
        database.execute("delete from extractor_ask")
    assert notes.run("cost").out.startswith("nothing has been asked yet")
    assert notes.run("cost", "--json").out == ""


@pytest.mark.parametrize(
    "words", [("status",), ("status", "notes"), ("records", "notes"), ("cost",), ("cost", "notes")]
)
def test_looking_makes_no_database(notes: Project, words: tuple[str, ...]) -> None:
    """A command that only looks says in one line that there is nothing, as for a file that is somebody else's."""
    before = names(notes.folder)
    is_one_line(notes.run(*words), 2, "nothing has been extracted into sqlite:///", "notes.db yet")
    assert names(notes.folder) == before
    with sqlite3.connect(notes.folder / "notes.db") as database:
        database.execute("create table host (id integer)")
    is_one_line(notes.run(*words), 2, "nothing has been extracted into")
    with sqlite3.connect(notes.folder / "notes.db") as database:
        assert database.execute("select name from sqlite_master").fetchall() == [("host",)]


def test_the_summary_is_json_that_holds_no_floats_of_money(notes: Project) -> None:
    """Money in JSON is text: a program reads it to the last digit."""
    ran = notes.run("run", "notes", "docs", "--model", "priced", "--json")
    assert json.loads(ran.out.splitlines()[-1])["cost"] == str((8 * EACH).normalize())
