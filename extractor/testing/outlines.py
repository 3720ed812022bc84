"""The outline of a question: enough to tell how two questions differ, and nothing of what they say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from extractor.messages import NOTHING_TO_EXTRACT, Ask, Message

Question = tuple[str, "Outline"]
"""The identity of the model that is asked, and the outline of what it is asked."""


@dataclass(frozen=True, slots=True)
class Outline:
    """``messages`` are role, length and hash of each turn, ``offers`` the hash of each function by its name."""

    messages: tuple[tuple[str, int, str], ...]
    offers: Mapping[str, str]
    sampling: Mapping[str, float]
    choice: tuple[str, bool] = ("required", True)

    @property
    def functions(self) -> tuple[str, ...]:
        """The functions on offer, without the one that is ours."""
        return tuple(name for name in self.offers if name != NOTHING_TO_EXTRACT.name)

    def as_json(self) -> dict[str, Any]:
        """As a cassette has it."""
        return {
            "messages": [list(message) for message in self.messages], "offers": dict(self.offers),
            "sampling": dict(self.sampling), "choice": list(self.choice),
        }  # fmt: skip

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Outline:
        """What :meth:`as_json` gave."""
        messages = tuple((role, length, digest) for role, length, digest in body["messages"])
        choice, parallel = body["choice"]
        return cls(messages, dict(body["offers"]), dict(body["sampling"]), (choice, parallel))


def outline(ask: Ask) -> Outline:
    """The outline of a question."""
    sampling = ask.sampling
    drawn = {"temperature": sampling.temperature, "max_tokens": sampling.max_tokens, "sample": sampling.sample}
    return Outline(
        tuple((one.role, _length(one), _digest(Ask((one,)))) for one in ask.messages),
        {one.name: _digest(Ask((), (one,))) for one in ask.offers},
        drawn,
        (ask.tool_choice, ask.parallel),
    )


def nearest(here: Question, known: Sequence[Question]) -> Question:
    """The recorded question that differs last; the first of several."""
    return max(known, key=lambda there: _agreement(here, there))


def difference(here: Question, there: Question) -> str:
    """The first thing in which two questions differ: model, prompt, schema, sampling."""
    (model, asked), (recorded, known) = here, there
    if model != recorded:
        return f"the model: {model} here, {recorded} there"
    found = _in_prompt(asked, known) or _in_schema(asked, known) or _in_sampling(asked, known)
    return found or "nothing that an outline shows"


def _agreement(here: Question, there: Question) -> tuple[int, ...]:
    asked, known = here[1], there[1]
    shared = sum(asked.offers.get(name) == digest for name, digest in known.offers.items())
    return (
        here[0] == there[0],
        _equal_turns(asked, known),
        -abs(len(asked.messages) - len(known.messages)),
        shared - len(known.offers),
        asked.sampling == known.sampling,
        asked.choice == known.choice,
    )


def _equal_turns(asked: Outline, known: Outline) -> int:
    for number, (mine, yours) in enumerate(zip(asked.messages, known.messages, strict=False)):
        if mine != yours:
            return number
    return min(len(asked.messages), len(known.messages))


def _in_prompt(asked: Outline, known: Outline) -> str:
    number = _equal_turns(asked, known)
    if number < min(len(asked.messages), len(known.messages)):
        (role, length, _), (other, was, _) = asked.messages[number], known.messages[number]
        told = f"the prompt: message {number + 1} of {len(asked.messages)}"
        return f"{told} ({role}, {length} characters) was recorded as another ({other}, {was} characters)"
    if len(asked.messages) != len(known.messages):
        return f"the prompt: {len(asked.messages)} messages here, {len(known.messages)} there"
    return ""


def _in_schema(asked: Outline, known: Outline) -> str:
    if list(asked.offers) != list(known.offers):
        return f"the schema: {', '.join(asked.offers) or 'no function'} here, {', '.join(known.offers) or 'none'} there"
    changed = [name for name in asked.offers if asked.offers[name] != known.offers[name]]
    return f"the schema of {', '.join(changed)}" if changed else ""


def _in_sampling(asked: Outline, known: Outline) -> str:
    for name, value in asked.sampling.items():
        if value != known.sampling.get(name):
            return f"the sampling: {name} {value} here, {known.sampling.get(name)} there"
    return f"the choice of calls: {asked.choice} here, {known.choice} there" if asked.choice != known.choice else ""


def _length(message: Message) -> int:
    called = sum(len(str(one.arguments or "")) for one in message.tool_calls)
    return len(message.content) + called + sum(len(one.content) for one in message.tool_results)


def _digest(part: Ask) -> str:
    """By the request key itself, so that what enters the one enters the other."""
    from extractor.drivers import request_key

    return request_key("", part)[:16]
