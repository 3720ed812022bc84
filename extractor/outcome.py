"""What came of one document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from extractor.errors import OutcomeError
from extractor.messages import Message, Reply, ToolCall, ToolResult, Unanswered, Usage

if TYPE_CHECKING:
    from extractor.evidence.values import Evidence


class Status(StrEnum):
    """The end of a document. All but ``failed`` are settled: a later run asks nothing for them."""

    DONE = "done"
    """At least one record was accepted, and nothing is left open."""
    EMPTY = "empty"
    """The model says that the document holds nothing of what is asked for."""
    DUPLICATE = "duplicate"
    """Every record of the document is held already by another."""
    EXHAUSTED = "exhausted"
    """Attempts ran out with something left open; records accepted before are kept."""
    REFUSED = "refused"
    """The last model in the list declines to answer."""
    FAILED = "failed"
    """The document could not be read, the provider could not be reached, or a function of ours or yours broke."""

    @property
    def is_settled(self) -> bool:
        """Whether a later run leaves this document alone."""
        return self is not Status.FAILED

    @property
    def is_good(self) -> bool:
        """Whether nothing is left to do for a person."""
        return self in (Status.DONE, Status.EMPTY, Status.DUPLICATE)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One question put to a model, with what it answered and what became of each call.

    ``fault`` is what was wrong with the answer as a whole: it was cut off, or called no function. Where a policy asked
    for less than the whole, ``kind`` is its name and ``merged`` what it made of the answer: the full calls, which were
    run, and to which ``results`` belong. ``is_repeat``: the answer says only what the one before it said.
    """

    rank: int
    answer: Reply | Unanswered
    results: tuple[ToolResult, ...] = ()
    fault: str = ""
    kind: str = "reask"
    merged: Reply | None = None
    is_repeat: bool = False

    @property
    def is_merged(self) -> bool:
        """Whether what was run is not the answer itself but what a policy made of it."""
        return self.merged is not None

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls that ``results`` belong to."""
        reply = self.answer if self.merged is None else self.merged
        return reply.tool_calls if isinstance(reply, Reply) else ()

    @property
    def errors(self) -> tuple[str, ...]:
        """Why no answer was to be had, what was wrong with it as a whole, or the error text of each call that was not
        accepted, as the model was told it."""
        if isinstance(self.answer, Unanswered):
            return (self.answer.cause,)
        return (self.fault,) if self.fault else tuple(result.content for result in self.results if result.is_error)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one document: status, records, and the way there.

    ``results`` are the accepted and the duplicate calls; ``error`` says in one line why a document is not done;
    ``cause`` holds the traceback of a bug in a user's function; ``unanswered`` is why no model answered;
    ``source`` and ``document`` (hash of its bytes) say which document it was, ``key`` is what the caller knows it by.
    """

    status: Status
    results: tuple[ToolResult, ...] = ()
    transcript: tuple[Message, ...] = field(default=(), repr=False)
    attempts: tuple[Attempt, ...] = field(default=(), repr=False)
    usage: Usage = Usage()
    flags: tuple[str, ...] = ()
    error: str = ""
    cause: str | None = field(default=None, repr=False)
    unanswered: Unanswered | None = None
    source: str = ""
    document: str = ""
    key: Any = None
    is_cached: bool = False
    """Settled by an earlier run: nothing was asked."""
    is_outdated: bool = False
    """Settled by an earlier run with another schema, prompt or model."""

    @property
    def records(self) -> tuple[Any, ...]:
        """The native objects of all accepted and duplicate calls, in the order in which they were accepted."""
        return tuple(result.processed_content for result in self.results if result.processed_content is not None)

    @property
    def record(self) -> Any:
        """The one record of this document.

        :raises OutcomeError: unless there is exactly one.
        """
        records = self.records
        if len(records) != 1:
            why = f": {self.error}" if self.error else ""
            raise OutcomeError(
                f"{self.source or 'the document'} has {len(records)} records (status {self.status}){why}",
                hint="use outcome.records for any number of them",
            )
        return records[0]

    @property
    def evidence(self) -> Mapping[str, Evidence]:
        """Where each value of the one record stands, by path: ``outcome.evidence["line_items.0.amount"].page``.

        :raises OutcomeError: unless there is exactly one record.
        """
        return self.evidence_of(self.record)

    def evidence_of(self, record: Any) -> Mapping[str, Evidence]:
        """Where each value of one of the :attr:`records` stands, by path; empty where evidence is off.

        :raises OutcomeError: when it is none of them.
        """
        from extractor.evidence.values import ByPath

        for result in self.results:
            if result.processed_content is record:
                return ByPath(result.evidence)
        raise OutcomeError("this is no record of the outcome", hint="take one out of outcome.records")

    @property
    def processed_content(self) -> Any:
        """The same as :attr:`record`, by the name that the chain runner gives it."""
        return self.record
