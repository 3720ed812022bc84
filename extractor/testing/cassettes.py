"""A model that answers from a file of recorded replies.

A cassette is a text file with one JSON object a line: the models that were recorded, and their replies, each under its
request key and with the outline of its question: lengths and hashes, so that a question which is not there can be told
from the nearest one that is, without its text. The replies themselves are whole: what a model read in a document stands
in them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from extractor.errors import ConfigurationError
from extractor.messages import Ask, Reply, Unanswered
from extractor.models import MAX_ATTEMPTS, Model, max_attempts
from extractor.models.resolving import ModelLike, resolve
from extractor.testing.outlines import Outline, difference, nearest, outline

RECORD = "EXTRACTOR_RECORD"


class MissingReply(AssertionError):
    """A cassette holds no reply to a question. The text names the nearest question that it does hold."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A model that was recorded: its name, its identity, and how many answers a document is worth with it."""

    name: str
    identity: str
    max_attempts: int = MAX_ATTEMPTS

    @classmethod
    def of(cls, model: Model) -> Recorded:
        """What a cassette says of a model."""
        return cls(model.name, model.identity, max_attempts(model))

    def line(self) -> str:
        """Its line in a cassette."""
        about = {"identity": self.identity, "max_attempts": self.max_attempts, "name": self.name}
        return json.dumps({"model": about})


@dataclass(frozen=True, slots=True)
class Line:
    """A recorded reply; ``question`` is missing where it came out of a database, which keeps none."""

    key: str
    identity: str
    reply: Reply
    question: Outline | None = None

    def line(self) -> str:
        """Its line in a cassette."""
        from extractor.store.codec import reply_to_json

        question = {} if self.question is None else {"question": self.question.as_json()}
        body = {"key": self.key, "identity": self.identity, **question, "reply": json.loads(reply_to_json(self.reply))}
        return json.dumps(body)  # in ASCII: a model may send halves of characters


@dataclass(frozen=True, slots=True)
class Tape:
    """What a cassette holds, by identity and by request key."""

    models: dict[str, Recorded]
    lines: dict[str, Line]

    def text(self) -> str:
        """The whole file: models, then replies, in an order of their own."""
        models = [self.models[identity].line() for identity in sorted(self.models)]
        return "".join(f"{line}\n" for line in (*models, *(self.lines[key].line() for key in sorted(self.lines))))


def read_tape(path: Path) -> Tape:
    """What a file holds; of two replies to one question the first stands, as in the database.

    :raises ConfigurationError: when a line is none of a cassette.
    """
    tape = Tape({}, {})
    for number, text in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if not text.strip():
            continue
        try:
            _take(tape, json.loads(text))
        except (ValueError, KeyError, TypeError, AttributeError, IndexError):
            raise ConfigurationError(
                f"{path}, line {number}, is no line of a cassette", hint="remove the line, or record the file anew"
            ) from None
    return tape


def _take(tape: Tape, body: Mapping[str, Any]) -> None:
    from extractor.store.codec import reply_from_json

    if "model" in body:
        model = Recorded(**body["model"])
        tape.models.setdefault(model.identity, model)
        return
    question = Outline.from_json(body["question"]) if "question" in body else None
    line = Line(body["key"], body["identity"], reply_from_json(json.dumps(body["reply"])), question)
    tape.lines.setdefault(line.key, line)


class Cassette:
    """A model that answers from recorded replies, and where it may, records those that are missing.

    ::

        model = Cassette("tests/invoices.jsonl", "openai/gpt-5-mini")  # EXTRACTOR_RECORD=1 asks it, once
        outcome = invoices.extract("a.pdf", model=model, database="sqlite://")

    It is known by the name and the identity of the model that was recorded, so that request keys agree.

    :param path: of the file, which is made by the first recording.
    :param model: whom to ask what is not there; without one the file's own model is played, and nothing is recorded.
    :param record: whether to ask; the environment (``EXTRACTOR_RECORD=1``) decides by default.
    :param name: which of the file's models to play, where it holds several and no ``model`` is given.
    :raises ConfigurationError: when there is nothing to play and nobody to ask.

    ``asks`` lists every ask that was put, in order.
    """

    def __init__(
        self, path: str | Path, model: ModelLike | None = None, *, record: bool | None = None, name: str | None = None
    ) -> None:
        self.path = Path(path)
        self.asks: list[Ask] = []
        self._model = None if model is None else resolve(model)[0]
        self._is_recording = _says_so(os.environ.get(RECORD, "")) if record is None else record
        if self._is_recording and self._model is None:
            if record:
                raise ConfigurationError(f"{self.path}: nobody is there to be recorded", hint="name a model")
            self._is_recording = False
        if not self.path.exists() and not self._is_recording:
            hint = f"name a model, and run once with {RECORD}=1"
            raise ConfigurationError(f"there is no cassette {str(self.path)!r}", hint=hint)
        self._tape = read_tape(self.path) if self.path.exists() else Tape({}, {})
        self._played = Recorded.of(self._model) if self._model else _one(self.path, self._tape.models.values(), name)
        self.name = self._played.name
        self.max_attempts = self._played.max_attempts

    def __repr__(self) -> str:
        return f"Cassette({str(self.path)!r}, name={self.name!r}, replies={len(self._tape.lines)})"

    @property
    def identity(self) -> str:
        """That of the recorded model."""
        return self._played.identity

    def prepare(self) -> None:
        """Prepare the model that is recorded, if one is."""
        if self._model is not None and self._is_recording:
            self._model.prepare()

    async def aclose(self) -> None:
        """Close the model that is recorded, if one is."""
        if self._model is not None and self._is_recording:
            await self._model.aclose()

    async def ask(self, ask: Ask) -> Reply | Unanswered:
        """Answer from the recording; where recording is on, ask for what is not there, and keep it.

        :raises MissingReply: when the recording holds no answer.
        """
        from extractor.drivers import request_key

        self.asks.append(ask)
        key = request_key(self.identity, ask)
        if key in self._tape.lines:
            return self._tape.lines[key].reply
        if self._model is None or not self._is_recording:
            raise MissingReply(self._missing(ask))
        answer = await self._model.ask(ask)
        if isinstance(answer, Reply) and key not in self._tape.lines:
            self._keep(Line(key, self.identity, answer, outline(ask)))
        return answer

    def _keep(self, line: Line) -> None:
        """Write at once: what was paid for is on the disk before the test goes on."""
        new = "" if self.identity in self._tape.models else f"{self._played.line()}\n"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{new}{line.line()}\n")
        self._tape.models[self.identity] = self._played
        self._tape.lines[line.key] = line

    def _missing(self, ask: Ask) -> str:
        here = outline(ask)
        offered = ", ".join(here.functions) or "no function"
        lines = self._tape.lines.values()
        known = [(line.identity, line.question) for line in lines if line.question is not None]
        if known:
            identity, there = nearest((self.identity, here), known)
            where = difference((self.identity, here), (identity, there))
            told = f"the nearest of {len(known)} recorded questions differs in {where}"
        elif lines:
            told = f"its {len(lines)} replies came without their questions, so which one is nearest is not known"
        else:
            told = "it holds no reply at all"
        todo = f"to record it: {RECORD}=1" + ("" if self._model is not None else ", and a model")
        return f"{self.path}: no recorded reply of {self.name} to this question on {offered}; {told}; {todo}"


def _one(path: Path, models: Iterable[Recorded], name: str | None) -> Recorded:
    """The one model to play."""
    found = [one for one in models if name in (None, one.name)]
    if len(found) == 1:
        return found[0]
    names = ", ".join(sorted(repr(one.name) for one in models)) or "none"
    raise ConfigurationError(f"{path}: which model is to be played?", hint=f"name one of those recorded: {names}")


def _says_so(value: str) -> bool:
    return value.strip().lower() in ("1", "true", "yes", "on")
