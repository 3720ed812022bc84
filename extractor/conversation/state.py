"""What the loop knows: one frozen value, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from extractor.matching import Arguments, decoded
from extractor.messages import Message, Offer, Reply, Sampling, ToolCall, ToolResult, Unanswered, Usage, Verdict
from extractor.outcome import Attempt

KEPT = (Verdict.ACCEPTED, Verdict.DUPLICATE)
CUT_OFF = "the answer was cut off before it was complete"
NO_CALL = "no function was called"
UNFIT = "the answer does not fit the record that was to be mended"


@dataclass(frozen=True, slots=True)
class Rules:
    """What the loop is held to.

    :param max_attempts: replies that each model may spend; one number, or one for each rank.
    :param ranks: how many models stand in the list.
    :param text_is_an_answer: whether a reply without any call ends the loop well (chat use); it is a failed attempt
        otherwise.
    :param policies: the name of the policy for each rank, for policies that go by it; none where all are alike.
    """

    max_attempts: int | tuple[int, ...] = 3
    ranks: int = 1
    text_is_an_answer: bool = False
    policies: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if min(self.limits) < 1:
            raise ValueError("max_attempts must be at least 1: with 0 nothing would ever be asked")
        if len(self.limits) != self.ranks:
            raise ValueError(f"max_attempts names {len(self.limits)} limits for {self.ranks} models")
        if len(self.policies) not in (0, self.ranks):
            raise ValueError(f"policies names {len(self.policies)} policies for {self.ranks} models")

    @property
    def limits(self) -> tuple[int, ...]:
        """The limit of each rank."""
        return (self.max_attempts,) * self.ranks if isinstance(self.max_attempts, int) else self.max_attempts


@dataclass(frozen=True, slots=True)
class Obligation:
    """A rejected call: its function, its place in its reply, what it said, what it was told, and the paths at fault."""

    function: str
    position: int
    arguments: Arguments | None
    error: str
    paths: tuple[str, ...] = ()
    values: Arguments | None = None
    """The arguments as the function read them, printed forms kept: what a repair is merged into."""


@dataclass(frozen=True, slots=True)
class Standing:
    """An accepted (or duplicate) call, as the model sent it, and its place in its reply."""

    position: int
    call: ToolCall
    result: ToolResult

    @property
    def arguments(self) -> Arguments | None:
        """The arguments as sent, or as the function read them where the text was no object."""
        return read_arguments(self.call, self.result)


@dataclass(frozen=True, slots=True)
class Aside:
    """What was said beside the conversation: an answer that was merged into a record, before the message ``place``."""

    place: int
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Merged:
    """How a reply was come by, where a policy asked for less than the whole: what the model said, and to what."""

    answer: Reply
    kind: str
    question: str = ""


@dataclass(frozen=True, slots=True)
class Conversation:
    """Everything the loop knows. ``messages`` is what the next question shows; the first ``opened`` of them stood
    before the first question."""

    messages: tuple[Message, ...]
    offers: tuple[Offer, ...]
    rules: Rules = Rules()
    sampling: Sampling = Sampling()
    rank: int = 0
    attempts: tuple[Attempt, ...] = ()
    standing: tuple[Standing, ...] = ()
    obligations: tuple[Obligation, ...] = ()
    flags: tuple[str, ...] = ()
    given_up: str | None = None
    """The reason by which the model dropped what was open, or said that there is nothing."""
    is_answered: bool = False
    """A reply in plain text ended the conversation (chat use)."""
    opened: int = 0
    asides: tuple[Aside, ...] = ()

    @property
    def transcript(self) -> tuple[Message, ...]:
        """The messages with every aside in its place: what a policy asked for beside them, and what the model said."""
        told, start = [], 0
        for aside in self.asides:
            told += [*self.messages[start : aside.place], *aside.messages]
            start = aside.place
        return (*told, *self.messages[start:])

    @property
    def replies(self) -> tuple[Reply, ...]:
        """Every reply so far, of whichever model."""
        return tuple(attempt.answer for attempt in self.attempts if isinstance(attempt.answer, Reply))

    @property
    def spent(self) -> int:
        """Attempts that the present model has used up; an ask that nobody answered is none."""
        return sum(1 for one in self.attempts if one.rank == self.rank and isinstance(one.answer, Reply))

    @property
    def is_last_attempt(self) -> bool:
        """Whether the present attempt is the last one of the last model."""
        return self.is_last_model and self.spent + 1 >= self.rules.limits[self.rank]

    @property
    def is_last_model(self) -> bool:
        """Whether no other model is left."""
        return self.rank + 1 == self.rules.ranks

    @property
    def repeats(self) -> bool:
        """Whether the present model's last answer only repeats the one before: it has nothing more to say."""
        own = [one for one in self.attempts if one.rank == self.rank]
        return bool(own) and own[-1].is_repeat

    @property
    def is_cut_off(self) -> bool:
        """Whether records may be missing: an answer was cut off, and no whole one with calls came after it."""
        for attempt in reversed(self.attempts):
            if attempt.fault == CUT_OFF:
                return True
            if attempt.calls and not attempt.is_merged:
                return False
        return False

    @property
    def unanswered(self) -> Unanswered | None:
        """Why the last ask was not answered, if it was not."""
        last = self.attempts[-1].answer if self.attempts else None
        return last if isinstance(last, Unanswered) else None

    @property
    def bug(self) -> ToolResult | None:
        """The first call that broke a user's function."""
        found = (r for attempt in self.attempts for r in attempt.results if r.verdict is Verdict.FAILED)
        return next(found, None)

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left to ask: all accepted, all given up, answered in text, or broken by a bug.

        An answer that was cut off settles nothing: what it would have said may be missing.
        """
        if self.bug is not None or self.is_answered:
            return True
        if self.is_cut_off:
            return False
        return not self.obligations and bool(self.standing or self.given_up is not None)

    @property
    def next_sampling(self) -> Sampling:
        """The answer's cap is doubled once when a reply was cut off by it."""
        cut = any(reply.finish_reason == "length" for reply in self.replies)
        return replace(self.sampling, max_tokens=2 * self.sampling.max_tokens) if cut else self.sampling

    @property
    def usage(self) -> Usage:
        """Summed over every ask, failed ones too."""
        return sum((attempt.answer.usage for attempt in self.attempts), Usage())


def read_arguments(call: ToolCall, result: ToolResult) -> Arguments | None:
    """The arguments as sent, or as the function read them where the text as such is no object."""
    sent = decoded(call.arguments)
    return result.arguments if sent is None else sent
