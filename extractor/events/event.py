"""The one record of what happens."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from extractor.messages import Ask, Reply, ToolCall, ToolResult, Unanswered, Usage
from extractor.outcome import Outcome


class Kind(StrEnum):
    """What happened."""

    DOCUMENT_STARTED = "document_started"
    ASK = "ask"
    """A question goes to a model; not one that is answered from what is kept."""
    REPLY = "reply"
    """A model has replied, or a kept reply was played again (``is_replayed``)."""
    UNANSWERED = "unanswered"
    """Nobody answered; ``error`` is the kind."""
    USAGE = "usage"
    """Tokens were paid for, for an answer or for none; the sum over a run is what it cost."""
    CALL_STARTED = "call_started"
    CALL_COMPLETED = "call_completed"
    CALL_FAILED = "call_failed"
    """A call was rejected, or its function is broken; ``error`` says which."""
    RETRY = "retry"
    """The same model is asked once more; ``error`` says what was wrong."""
    MODEL_CHANGED = "model_changed"
    """The next model of the list is asked; ``error`` says what was wrong with the one before."""
    DOCUMENT_FINISHED = "document_finished"
    RUN_STOPPED = "run_stopped"
    """A run ends before its documents do."""


TOLD = frozenset({Kind.UNANSWERED, Kind.MODEL_CHANGED, Kind.DOCUMENT_FINISHED, Kind.RUN_STOPPED})
"""Kinds that are worth a line at level INFO; the others are for DEBUG."""


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened. What does not apply to its kind is left at the default.

    ``passage`` is one number for all events of one document on its way; ``attempt`` counts its questions from 1.
    ``function`` is the called function's name where it is one of those on offer, ``position`` the call's place in its
    reply. ``seconds`` are those of the question, of the calls of a reply (they run together, and are written
    together), or of the document. ``status`` is the verdict of a call or the status of a document, ``error`` in one
    word what is wrong. ``is_replayed``: the reply (or the reply that holds the call, or the whole document) was kept
    from before, and cost nothing now.
    """

    kind: Kind
    document: str = ""
    source: str = ""
    pipeline: str = ""
    run: int | None = None
    passage: int = 0
    model: str = ""
    rank: int = 0
    attempt: int = 0
    function: str = ""
    call_id: str = ""
    position: int = 0
    usage: Usage = Usage()
    seconds: float = 0.0
    status: str = ""
    error: str = ""
    is_replayed: bool = False
    ask: Ask | None = field(default=None, repr=False)
    answer: Reply | Unanswered | None = field(default=None, repr=False)
    call: ToolCall | None = field(default=None, repr=False)
    result: ToolResult | None = field(default=None, repr=False)
    outcome: Outcome | None = field(default=None, repr=False)

    def __str__(self) -> str:
        shown: list[tuple[str, object]] = [("document", self.document[:12]), ("pipeline", self.pipeline)]
        shown += [("run", self.run), ("model", self.model), ("attempt", self.attempt), ("function", self.function)]
        shown += [("status", self.status), ("error", self.error), ("seconds", round(self.seconds, 3))]
        shown += [("input_tokens", self.usage.input_tokens), ("output_tokens", self.usage.output_tokens)]
        parts = [f"{name}={value}" for name, value in shown if value]
        source = [repr(self.source)] if self.source else []
        return " ".join([self.kind, *source, *parts, *(["replayed"] if self.is_replayed else [])])
