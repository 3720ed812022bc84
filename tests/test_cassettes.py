"""Recorded replies as a model for users' own tests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledger_schema import Tick

from extractor import Pipeline, Rejected, Status
from extractor.errors import ConfigurationError, UsageError
from extractor.messages import Ask, Message, Offer, Reply, Sampling, ToolCall, Unanswered, Usage
from extractor.models import Model
from extractor.store.store import Store
from extractor.testing import Cassette, MissingReply, Scripted, call, cassette_from, model, reply
from extractor.testing.cassettes import Line, Recorded, Tape, read_tape
from extractor.testing.outlines import outline

SECRET = "Rosa Luxemburg owes 99.00"
OFFER = Offer("create_invoice", "Record one.", {"type": "object"})
ASK = Ask((Message("system", "Extract."), Message("user", SECRET)), (OFFER,))
GOOD = reply(call("create_invoice", total="1.00"), usage=Usage(10, 5))


class Live(Scripted):
    """A model with an identity of its own, for which a document is worth two answers."""

    max_attempts = 2
    is_closed = False
    is_prepared = False

    @property
    def identity(self) -> str:
        return f"{self.name}@api.example.com#tools"

    def prepare(self) -> None:
        self.is_prepared = True

    async def aclose(self) -> None:
        self.is_closed = True


def create_tick(name: str) -> Tick:
    """Record a tick."""
    if name.startswith("bad"):
        raise Rejected("name: write another")
    return Tick(name=name)


def put(cassette: Cassette, question: Ask = ASK) -> Reply | Unanswered:
    return asyncio.run(cassette.ask(question))


def recorded(path: Path, *questions: Ask, name: str = "openai/x") -> Path:
    """A cassette that holds a reply to each of these questions."""
    cassette = Cassette(path, Live(*[GOOD] * len(questions), "", name=name), record=True)
    for question in questions:
        put(cassette, question)
    return path


def ticks(database: str, model: Any) -> Pipeline:
    return Pipeline(create_tick, name="ticks", model=model, database=database)


def test_records_and_plays(tmp_path: Path) -> None:
    """What is recorded once is played without its model, under its name and identity, with the same attempts."""
    path = tmp_path / "new" / "invoices.jsonl"
    live = Live(GOOD, name="openai/x")
    recording = Cassette(path, live, record=True)
    assert put(recording) == GOOD
    assert put(recording) == GOOD
    assert live.asks == [ASK]
    played = Cassette(path)
    assert put(played) == GOOD
    assert played.asks == [ASK]
    assert (played.name, played.identity, played.max_attempts) == ("openai/x", "openai/x@api.example.com#tools", 2)
    assert isinstance(played, Model)
    assert repr(played) == f"Cassette({str(path)!r}, name='openai/x', replies=1)"


def test_the_environment_turns_recording_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``EXTRACTOR_RECORD=1`` records, and only where a model is given; the argument goes before it."""
    path = tmp_path / "a.jsonl"
    with pytest.raises(ConfigurationError, match=r"there is no cassette .*EXTRACTOR_RECORD=1"):
        Cassette(path, Live(GOOD))
    monkeypatch.setenv("EXTRACTOR_RECORD", "1")
    with pytest.raises(ConfigurationError, match="there is no cassette"):
        Cassette(path)
    put(Cassette(path, Live(GOOD)))
    with pytest.raises(MissingReply):
        put(Cassette(path, Live(GOOD), record=False), Ask((Message("user", "x"),)))
    monkeypatch.delenv("EXTRACTOR_RECORD")
    assert put(Cassette(path, Live())) == GOOD


def test_recording_without_a_model(tmp_path: Path) -> None:
    """Recording that is asked for needs somebody to record."""
    with pytest.raises(ConfigurationError, match="nobody is there to be recorded; name a model"):
        Cassette(tmp_path / "a.jsonl", record=True)


def test_no_answer_is_not_recorded(tmp_path: Path) -> None:
    """That nobody answered is passed on and not kept."""
    path = tmp_path / "a.jsonl"
    silent = Unanswered("timeout", "no answer")
    cassette = Cassette(path, Live(silent, GOOD), record=True)
    assert put(cassette) is silent
    assert not path.exists()
    assert put(cassette) == GOOD


def test_the_recorded_model_is_prepared_and_closed(tmp_path: Path) -> None:
    """The model behind a recording is prepared and closed; one that is only played is left alone."""
    live = Live(GOOD)
    recording = Cassette(tmp_path / "a.jsonl", live, record=True)
    recording.prepare()
    put(recording)
    asyncio.run(recording.aclose())
    assert live.is_prepared
    assert live.is_closed
    idle = Live()
    played = Cassette(tmp_path / "a.jsonl", idle)
    played.prepare()
    asyncio.run(played.aclose())
    assert not idle.is_prepared
    assert not idle.is_closed


@pytest.mark.parametrize(
    ("question", "where"),
    [
        (Ask((ASK.messages[0], Message("user", SECRET + "!")), (OFFER,)),
         r"the prompt: message 2 of 2 \(user, 26 characters\) was recorded as another \(user, 25 characters\)"),
        (Ask((*ASK.messages, Message("user", "more")), (OFFER,)), "the prompt: 3 messages here, 2 there"),
        (Ask(ASK.messages, (Offer("create_invoice", "Another.", {}),)), "the schema of create_invoice"),
        (Ask(ASK.messages, (OFFER, Offer("create_receipt", "", {}))),
         "the schema: create_invoice, create_receipt here, create_invoice there"),
        (Ask(ASK.messages, (OFFER,), sampling=Sampling(0.7)), "the sampling: temperature 0.7 here, 0.0 there"),
        (Ask(ASK.messages, (OFFER,), sampling=Sampling(sample=1)), "the sampling: sample 1 here, 0 there"),
        (Ask(ASK.messages, (OFFER,), tool_choice="auto"), "the choice of calls"),
    ],
)  # fmt: skip
def test_a_missing_reply(tmp_path: Path, question: Ask, where: str) -> None:
    """What is not recorded is an assertion that names functions and the first difference, and no document text."""
    path = recorded(tmp_path / "a.jsonl", Ask((Message("user", "far away"),)), ASK)
    with pytest.raises(AssertionError, match=where) as caught:
        put(Cassette(path), question)
    assert "question on create_invoice" in str(caught.value)
    assert "the nearest of 2 recorded questions" in str(caught.value)
    assert "EXTRACTOR_RECORD=1, and a model" in str(caught.value)
    assert "Rosa" not in str(caught.value)


def test_another_model(tmp_path: Path) -> None:
    """A question to a model that was not recorded says which one was."""
    path = recorded(tmp_path / "a.jsonl", ASK)
    with pytest.raises(MissingReply, match=r"the model: openai/y@api[.]example[.]com#tools here, openai/x@"):
        put(Cassette(path, Live(name="openai/y")))


def test_nothing_is_recorded(tmp_path: Path) -> None:
    """An empty cassette says so."""
    path = tmp_path / "a.jsonl"
    path.write_text("")
    with pytest.raises(MissingReply, match="it holds no reply at all"):
        put(Cassette(path, Live()))


def test_several_models_in_one_file(tmp_path: Path) -> None:
    """Of several models in a file one is played, by its name."""
    path = recorded(tmp_path / "a.jsonl", ASK)
    recorded(path, ASK, name="openai/y")
    assert Cassette(path, name="openai/y").identity == "openai/y@api.example.com#tools"
    with pytest.raises(ConfigurationError, match=r"which model is to be played.*'openai/x', 'openai/y'"):
        Cassette(path)
    with pytest.raises(ConfigurationError, match="which model"):
        Cassette(path, name="openai/z")


def test_the_file_holds_no_question(tmp_path: Path) -> None:
    """A cassette keeps lengths and hashes of a question, one line a reply, and what the model said."""
    path = recorded(tmp_path / "a.jsonl", ASK)
    text = path.read_text()
    assert "Rosa" not in text
    lines = [json.loads(line) for line in text.splitlines()]
    assert [sorted(line) for line in lines] == [["model"], ["identity", "key", "question", "reply"]]
    assert lines[1]["question"]["messages"][1][:2] == ["user", len(SECRET)]


@pytest.mark.parametrize("line", ["{", "[]", "7", '{"key": 1}', "<<<<<<< HEAD", '{"model": {"wrong": 1}}'])
def test_a_broken_line(tmp_path: Path, line: str) -> None:
    """A line that is none of a cassette is named by its number."""
    path = recorded(tmp_path / "a.jsonl", ASK)
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(ConfigurationError, match=r"a\.jsonl, line 3, is no line of a cassette"):
        Cassette(path)


@given(
    content=st.text(st.characters(exclude_categories=())),
    arguments=st.none() | st.text(st.characters(exclude_categories=())),
    texts=st.lists(st.text(st.characters(exclude_categories=())), max_size=3),
)
def test_whatever_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, content: str, arguments: str | None, texts: Sequence[str]
) -> None:
    """Any reply and any question come out of the file as they went in."""
    path = tmp_path_factory.mktemp("tape") / "a.jsonl"
    question = outline(Ask(tuple(Message("user", text) for text in texts), (OFFER,)))
    line = Line("k", "i", Reply(content, (ToolCall("1", "f", arguments),)), question)
    tape = Tape({"i": Recorded("n", "i", 2)}, {"k": line})
    path.write_text(tape.text(), encoding="utf-8")
    assert read_tape(path) == tape


def test_a_pipeline_is_recorded_and_played(tmp_path: Path) -> None:
    """A pipeline's whole conversation, with a rejected call, is recorded once and played into an empty database."""
    path = tmp_path / "ticks.jsonl"
    live = Live(call("create_tick", name="bad"), call("create_tick", name="good"), name="openai/x")
    recording = Cassette(path, live, record=True)
    first = ticks(f"sqlite:///{tmp_path}/1.db", recording).extract(b"a tick", name="a.txt")
    second = ticks(f"sqlite:///{tmp_path}/2.db", Cassette(path)).extract(b"a tick", name="a.txt")
    assert (first.status, first.record.name) == (second.status, second.record.name) == (Status.DONE, "good")
    assert len(second.attempts) == 2
    with pytest.raises(MissingReply, match=r"on create_tick; the nearest of 2 .* message 2 of 2 \(user"):
        ticks(f"sqlite:///{tmp_path}/3.db", Cassette(path)).extract(b"another tick", name="b.txt")


def kept(tmp_path: Path, model: Scripted, *documents: bytes) -> str:
    """A database that keeps the replies of these documents."""
    database = f"sqlite:///{tmp_path}/kept.db"
    pipeline = ticks(database, model)
    for document in documents:
        pipeline.extract(document, name="a.txt")
    return database


def named(model: str, *names: str) -> Live:
    answers = [reply(call("create_tick", name=name)) for name in names]
    return Live(*[Reply(**{**as_fields(one), "model": model}) for one in answers], "", name=model)


def as_fields(one: Reply) -> dict[str, Any]:
    return {name: getattr(one, name) for name in ("content", "tool_calls", "finish_reason", "usage")}


def test_a_cassette_from_a_database(tmp_path: Path) -> None:
    """The replies that a database keeps for a pipeline are a cassette that answers every one of its questions."""
    live = named("openai/x", "bad", "good", "other")
    database = kept(tmp_path, live, b"one", b"two")
    path = tmp_path / "out" / "ticks.jsonl"
    assert cassette_from(database, ticks(database, live), path) == 3
    cassette = Cassette(path)
    assert (cassette.identity, cassette.max_attempts) == (live.identity, 2)
    again = ticks(f"sqlite:///{tmp_path}/2.db", cassette)
    assert [again.extract(one, name="a.txt").record.name for one in (b"one", b"two")] == ["good", "other"]
    with pytest.raises(MissingReply, match="its 3 replies came without their questions"):
        again.extract(b"three", name="a.txt")


def test_the_same_file_each_time(tmp_path: Path) -> None:
    """An export is the same for the same replies, one line each, in order, and replaces the file that was there."""
    live = named("openai/x", "a", "b", "c")
    database = kept(tmp_path, live, b"one", b"two", b"three")
    path = tmp_path / "ticks.jsonl"
    path.write_text("old")
    store = Store(database)
    try:
        cassette_from(store, "ticks", path, model=live)
    finally:
        store.close()
    first = path.read_bytes()
    cassette_from(database, "ticks", path, model=live)
    assert path.read_bytes() == first
    keys = [json.loads(line)["key"] for line in first.splitlines()[1:]]
    assert keys == sorted(keys)
    assert len(keys) == 3
    assert [one.name for one in tmp_path.iterdir() if "jsonl" in one.name] == ["ticks.jsonl"]


def test_a_reply_without_a_model_is_that_of_its_rank(tmp_path: Path) -> None:
    """Where a reply does not say whose it is, the rank of its attempt does."""
    live = Live(call("create_tick", name="a"), "", name="mine")
    database = kept(tmp_path, live, b"one")
    assert cassette_from(database, "ticks", tmp_path / "a.jsonl", model=live) == 1
    assert Cassette(tmp_path / "a.jsonl").name == "mine"


def test_what_cannot_be_exported(tmp_path: Path) -> None:
    """No database, no reply, and a reply of a model that is not named are each said in one line."""
    live = named("openai/x", "a")
    with pytest.raises(UsageError, match="there is no database"):
        cassette_from(f"sqlite:///{tmp_path}/none.db", "ticks", tmp_path / "a.jsonl", model=live)
    assert not (tmp_path / "none.db").exists()
    database = kept(tmp_path, live, b"one")
    with pytest.raises(UsageError, match="keeps no reply for the pipeline 'tocks'"):
        cassette_from(database, "tocks", tmp_path / "a.jsonl", model=live)
    with pytest.raises(UsageError, match="given by 'openai/x', which is none of: openai/y; name them all by model="):
        cassette_from(database, "ticks", tmp_path / "a.jsonl", model=named("openai/y"))
    assert not (tmp_path / "a.jsonl").exists()


TAPE: Any = None


def test_by_name_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``scripted/module:attribute`` may name a cassette."""
    cassette = Cassette(recorded(tmp_path / "a.jsonl", ASK))
    monkeypatch.setattr("test_cassettes.TAPE", cassette)
    assert model("test_cassettes:TAPE") is cassette
