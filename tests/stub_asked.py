"""A question to a model in no vendor's format.

Turns are ``user``, ``assistant`` and ``tool``; neighbours of one role are one turn, and results that a vendor puts into
a user's message are a ``tool`` turn of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Call(NamedTuple):
    """A call that is told back to the model; ``arguments`` are parsed, or the text when they are no JSON."""

    id: str
    name: str
    arguments: Any


class Tool(NamedTuple):
    """A function on offer; ``strict`` is ``None`` where nothing was said about it."""

    name: str
    schema: Any
    strict: bool | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn. Where a format carries no ids, call and result are named ``NAME:POSITION`` within their turn."""

    role: str
    text: str = ""
    calls: tuple[Call, ...] = ()
    results: Mapping[str, str] = field(default_factory=dict)
    images: int = 0
    """Pictures and files."""

    def then(self, other: Turn) -> Turn:
        """Both as one."""
        text = "\n".join(part for part in (self.text, other.text) if part)
        results = {**self.results, **other.results}
        return Turn(self.role, text, (*self.calls, *other.calls), results, self.images + other.images)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks for.

    :param tool_choice: ``"auto"``, ``"required"``, ``"none"``, or ``None`` when nothing was said.
    :param only: the functions to which ``tool_choice`` is narrowed.
    :param schema: of a forced response format; ``{}`` is any JSON object.
    """

    model: str | None = None
    system: str | None = None
    turns: tuple[Turn, ...] = ()
    tools: tuple[Tool, ...] = ()
    tool_choice: str | None = None
    only: tuple[str, ...] = ()
    parallel: bool | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    schema: Any = None

    @property
    def is_first(self) -> bool:
        """Whether the model has not spoken yet."""
        return not any(turn.role == "assistant" for turn in self.turns)


def merged(turns: Iterable[Turn]) -> tuple[Turn, ...]:
    """Neighbours of one role as one turn."""
    found: list[Turn] = []
    for turn in turns:
        if found and found[-1].role == turn.role:
            found[-1] = found[-1].then(turn)
        else:
            found.append(turn)
    return tuple(found)


__all__ = ["Asked", "Call", "Tool", "Turn", "merged"]
