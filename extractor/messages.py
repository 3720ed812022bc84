"""The values that flow between the loop, the models and the functions.

Everything here is frozen. A conversation is a tuple of :class:`Message`; a model answers an :class:`Ask` with a
:class:`Reply`, or with :class:`Unanswered` when no answer was to be had; the calls of one reply come back as one
:class:`ToolResult` each, in call order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from extractor.evidence.values import Evidence

Role = Literal["system", "user", "assistant", "tool"]


class Verdict(StrEnum):
    """What became of one call."""

    ACCEPTED = "accepted"
    """The function ran and its record is kept."""
    DUPLICATE = "duplicate"
    """Another record already holds this one's unique key; it is linked, and nobody is asked to mend a true value."""
    REJECTED = "rejected"
    """The model has to mend something; this opens an obligation."""
    STANDS = "stands"
    """The record was accepted in an earlier reply; the call was not run again."""
    DROPPED = "dropped"
    """The model said that there is nothing (more) to extract."""
    FAILED = "failed"
    """A bug in the user's function: nothing is sent to the model, the document is ``failed``."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one ask, or the sum over several. ``cached_tokens`` are part of ``input_tokens``."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
        )


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One function call as the model sent it.

    ``arguments`` is what the model sent, untouched: JSON text from most providers, an object from some, ``None`` from
    those that leave it out. Decoding it is the business of :mod:`extractor.functions`.
    """

    id: str
    name: str
    arguments: str | Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What one call came to.

    ``content`` is the text that the model reads. ``processed_content`` is the function's native object; it is never
    serialised to the model. ``arguments`` are the arguments as decoded (printed forms kept), ``paths`` the field paths
    that were at fault, ``flags`` remarks for people, ``cause`` the traceback of a bug in the user's function,
    ``evidence`` where in the document the values stand.
    """

    call_id: str
    name: str
    content: str
    verdict: Verdict = Verdict.ACCEPTED
    processed_content: Any = field(default=None, repr=False)
    arguments: Mapping[str, Any] | None = field(default=None, repr=False)
    paths: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    cause: str | None = field(default=None, repr=False)
    evidence: tuple[Evidence, ...] = field(default=(), repr=False)

    @property
    def is_error(self) -> bool:
        """Whether the model is told that this call failed."""
        return self.verdict in (Verdict.REJECTED, Verdict.FAILED)


@dataclass(frozen=True, slots=True)
class Image:
    """A picture for models that see: a scanned page, a photographed receipt. ``media_type`` is ``image/png`` or
    another that providers take."""

    data: bytes = field(repr=False)
    media_type: str = "image/png"

    @property
    def hash(self) -> str:
        """SHA-256 of the bytes: what enters a request key in their place."""
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True, slots=True)
class Message:
    """One turn. ``tool`` messages carry all results of one reply, in call order; ``images`` stand before the text."""

    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_results: tuple[ToolResult, ...] = ()
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True)
class Offer:
    """What a model is shown of a function: its name, what it is for, and the JSON schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    strict: bool = False


NOTHING_TO_EXTRACT = Offer(
    name="nothing_to_extract",
    description=(
        "Call this when the document holds nothing (more) of what is asked for, or when a record that was not accepted "
        "should be given up. Never call it to skip a record that can be mended."
    ),
    parameters={
        "type": "object",
        "properties": {"reason": {"type": "string", "description": "why, in one sentence"}},
        "required": ["reason"],
        "additionalProperties": False,
    },
)
"""The one offer that is ours: how a model drops an obligation, so that none is ever closed by silence."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How an answer is drawn.

    ``max_tokens`` caps the answer's length; ``sample`` numbers repeated draws of one and the same question, so that
    each has a request key of its own.
    """

    temperature: float = 0.0
    max_tokens: int = 4096
    sample: int = 0


@dataclass(frozen=True, slots=True)
class Ask:
    """Put this to the model of that ``rank`` in the list of models (0 is the first choice).

    ``tool_choice`` is ``required`` (some function), ``auto`` (a function or text), or the name of the one function
    that has to be called; ``parallel`` allows several calls in one reply. ``schema`` is set by a dialect that asks
    for text in place of calls: the JSON schema that the text is held to, where the server can hold it.
    """

    messages: tuple[Message, ...]
    offers: tuple[Offer, ...] = ()
    rank: int = 0
    sampling: Sampling = Sampling()
    tool_choice: str = "required"
    parallel: bool = True
    schema: Mapping[str, Any] | None = None


FinishReason = Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer: text, calls, or both. ``finish_reason`` ``length`` means that it was cut off."""

    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: FinishReason = "stop"
    usage: Usage = Usage()
    model: str = ""

    def as_message(self) -> Message:
        """The reply as a turn of the conversation."""
        return Message("assistant", self.content, self.tool_calls)


UnansweredKind = Literal[
    "rate_limited",  # 429 for longer than our patience
    "unavailable",  # 5xx, dropped connections, bodies that are no answer, for longer than our patience
    "timeout",
    "refused",  # the model or a content filter will not answer
    "too_long",  # the question is longer than what the model, or its server as it is set up, reads
    "unauthorized",  # wrong or missing key
    "bad_request",  # the provider does not take the request
    "unknown_model",
]

FATAL: frozenset[UnansweredKind] = frozenset({"unauthorized", "bad_request", "unknown_model"})
"""Kinds that no further document will fare better with: the run stops at once."""


@dataclass(frozen=True, slots=True)
class Unanswered:
    """No answer was to be had; a value, not an exception, so that the loop can decide what follows.

    ``cause`` is one line for people; it holds no document text and no key. ``usage`` is what was paid all the same.
    """

    kind: UnansweredKind
    cause: str
    model: str = ""
    usage: Usage = Usage()

    @property
    def is_fatal(self) -> bool:
        """Whether the whole run has to stop."""
        return self.kind in FATAL


@dataclass(frozen=True, slots=True)
class Calls:
    """Run these calls of one reply together; answer with one result each, in this order.

    ``reply`` numbers the reply within the document (0 is the first), ``positions`` are the places of the calls within
    that reply: together they name a call for good, also when it is replayed after a crash. ``is_last``: what is
    rejected now is not asked again, since no attempt is left.
    """

    calls: tuple[ToolCall, ...]
    reply: int
    positions: tuple[int, ...]
    is_last: bool = False


__all__ = [
    "FATAL",
    "NOTHING_TO_EXTRACT",
    "Ask",
    "Calls",
    "FinishReason",
    "Image",
    "Message",
    "Offer",
    "Reply",
    "Role",
    "Sampling",
    "ToolCall",
    "ToolResult",
    "Unanswered",
    "UnansweredKind",
    "Usage",
    "Verdict",
]
