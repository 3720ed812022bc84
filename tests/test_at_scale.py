"""Many documents at a time against a provider that limits, fails, cuts connections and answers wrongly."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sqlmodel import Field, SQLModel
from stub_answers import Said
from stub_behaviour import Behaviour
from stub_server import StubServer

from extractor import Pipeline
from extractor.extraction import Source
from extractor.outcome import Outcome, Status

DOCUMENTS = 80
WORKERS = 32
NUMBER = re.compile(r"number: (\d+)")


class Parcel(SQLModel, table=True):
    """One parcel; without any unique key, so that nothing but our own care keeps it from standing twice."""

    __tablename__ = "scale_parcel"

    id: int | None = Field(default=None, primary_key=True)
    number: str
    weight: int


def answer(body: dict[str, Any]) -> Said:
    """The parcel of the document that was asked about."""
    found = NUMBER.search(str(body["messages"]))
    assert found is not None
    return Said(calls=[("create_parcel", {"number": found[1], "weight": int(found[1]) * 3})])


def wrong(_: object) -> Said:
    """A parcel whose weight is no number."""
    return Said(calls=[("create_parcel", {"number": "0", "weight": "heavy"})])


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any key."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")


def run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, behaviour: Behaviour, **options: Any
) -> tuple[list[Outcome], Counter[str]]:
    """Every document through a pipeline of its own database; the outcomes, and what the server did."""
    with StubServer(answer, behaviour=behaviour, keep=False) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        parcels = Pipeline(Parcel, name="scale", database=f"sqlite:///{folder}/scale.db", model="openai/stub")
        sources = (Source(f"{n}.txt", data=f"Parcel\nnumber: {n}\nweight: {3 * n}".encode()) for n in range(DOCUMENTS))
        outcomes = list(parcels.map(sources, workers=WORKERS, **options))
        return outcomes, server.tally


def check(outcomes: list[Outcome]) -> None:
    """Each document is done, with its own values, once."""
    assert Counter(one.status for one in outcomes) == {Status.DONE: DOCUMENTS}
    for one in outcomes:
        assert (one.record.number, one.record.weight) == (one.source[:-4], 3 * int(one.source[:-4]))
    assert len({one.record.id for one in outcomes}) == DOCUMENTS


@pytest.mark.parametrize("retry_after", ["integer", "ms"])
def test_a_rate_limit_that_nobody_told_loses_no_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, retry_after: Any
) -> None:
    """Thirty-two workers against fifty requests a second: all are done, and no attempt goes to a 429."""
    behaviour = Behaviour(latency=0.02, rate=50, capacity=20, retry_after=retry_after)
    outcomes, tally = run(tmp_path, monkeypatch, behaviour)
    check(outcomes)
    assert tally["limited"] > 0
    assert tally["answered"] == DOCUMENTS
    assert all(len(one.attempts) == 1 for one in outcomes)


def test_a_rate_limit_that_is_given_is_not_met(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --rpm below the limit no request is refused."""
    outcomes, tally = run(tmp_path, monkeypatch, Behaviour(latency=0.02, rate=200, capacity=20), rpm=6000)
    check(outcomes)
    assert tally["limited"] == 0


def test_errors_cuts_and_bad_replies_cost_requests_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later requests are answered earlier, some with 500, some not at all, a third wrongly at first: every document has
    its own values, and the requests are one for each document, one for each bad reply, one for each trouble."""
    behaviour = Behaviour(
        latency=0.05, reverse=8, error_share=0.05, cut_share=0.03, bad_first=wrong, bad_share=0.3, seed=7
    )  # fmt: skip
    outcomes, tally = run(tmp_path, monkeypatch, behaviour)
    check(outcomes)
    assert tally["bad"] > 0
    assert tally["error"] + tally["cut"] > 0
    assert sum(len(one.attempts) for one in outcomes) == DOCUMENTS + tally["bad"]
    assert tally["answered"] == DOCUMENTS


def test_a_second_run_asks_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second run over the same documents asks nothing and has the same records."""
    first, _ = run(tmp_path, monkeypatch, Behaviour())
    again, tally = run(tmp_path, monkeypatch, Behaviour())
    check(again)
    assert tally == Counter()
    assert {one.source: one.record.id for one in again} == {one.source: one.record.id for one in first}
