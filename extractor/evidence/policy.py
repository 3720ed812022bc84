"""What follows from where a value stands: it is required to, a person is told that it does not, or nobody asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from extractor.errors import DefinitionError
from extractor.evidence.finding import Finder
from extractor.evidence.values import Evidence, dotted
from extractor.feedback import Problem
from extractor.fields.characters import shown
from extractor.parameters import Schema, branches, inner

Mode = Literal["require", "flag", "off"]
Setting = Mode | Mapping[str, Mode]
"""One for all fields, or one by path; ``*`` is the one for all others."""

MODES: tuple[Mode, ...] = get_args(Mode)
MOST_FLAGS = 20
"""Values of one record that a person is told of."""


@dataclass(frozen=True, slots=True)
class Policies:
    """What is asked of the values of a record.

    :ivar others: of every field that ``paths`` does not name.
    :ivar paths: by path without the numbers of list items; a path stands for all that is below it.
    """

    others: Mode = "flag"
    paths: Mapping[str, Mode] = field(default_factory=dict)

    @classmethod
    def of(cls, setting: Setting) -> Policies:
        """The policies that a user has set.

        :raises DefinitionError: when one does not exist.
        """
        by_path = {"*": setting} if isinstance(setting, str) else dict(setting)
        for path, mode in by_path.items():
            if mode not in MODES:
                raise DefinitionError(
                    f"evidence of {path}: {mode!r} does not exist", hint=f"choose one of {', '.join(MODES)}"
                )
        others = by_path.pop("*", "flag")
        return cls(others, {_without_numbers(path): mode for path, mode in by_path.items()})

    @property
    def is_off(self) -> bool:
        """Whether nothing is looked for at all."""
        return self.others == "off" and all(mode == "off" for mode in self.paths.values())

    def mode(self, path: str) -> Mode:
        """What is asked of the value at a path: by the longest path that is set."""
        parts = _without_numbers(path).split(".")
        for length in range(len(parts), 0, -1):
            mode = self.paths.get(".".join(parts[:length]))
            if mode is not None:
                return mode
        return self.others


def _without_numbers(path: str) -> str:
    return ".".join(part for part in dotted(path).split(".") if not part.isdigit() and part != "*")


@dataclass(frozen=True, slots=True)
class Examined:
    """What became of looking for the values of a record: where they stand, what a model has to mend, what people are
    told."""

    evidence: tuple[Evidence, ...] = ()
    problems: tuple[Problem, ...] = ()
    flags: tuple[str, ...] = ()


Examine = Callable[[Mapping[str, Any], Any, Schema], Examined]
"""Looks for the values of one call: the arguments as they were sent, the same validated, and their schema."""


def examiner(finder: Finder, policies: Policies) -> Examine:
    """Looks for the values of calls in one document, by these policies."""

    def examine(sent: Mapping[str, Any], value: Any, schema: Schema) -> Examined:
        problems: list[Problem] = []
        flags: list[str] = []
        kept: list[Evidence] = []
        for one in finder.find(sent, value):
            mode = policies.mode(one.path)
            if mode == "off" or (not one.is_found and _is_choice(one.path, schema)):
                continue
            kept.append(one)
            if one.is_found:
                continue
            if mode == "require":
                problems.append(Problem(one.path, _told(one)))
            else:
                flags.append(f"{one.path}: {_told(one)}")
        return Examined(tuple(kept), tuple(problems), tuple(flags[:MOST_FLAGS]))

    return examine


def _told(one: Evidence) -> str:
    if one.match == "hidden":
        return f"{shown(one.printed)} stands only in text that nobody sees on the page"
    return f"{shown(one.printed)} does not stand in the document"


def _is_choice(path: str, schema: Schema) -> bool:
    """Whether a value is one of a closed list: that says what a document is, and need not be printed."""
    node: Any = schema
    for key in path.split("."):
        node = inner(node, key, schema)
    return any("enum" in branch or "const" in branch for branch in branches(node, schema))
