"""What a policy may answer, the simplest policy, and the limits that hold for all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from extractor.conversation import Conversation
from extractor.messages import Ask, Reply


def unchanged(reply: Reply) -> Reply:
    """The reply as it came: what was asked for is the whole record."""
    return reply


@dataclass(frozen=True, slots=True)
class Plan:
    """Ask this; ``merge`` turns the reply into the full calls that are run, keyed and stored. Both are pure.

    A ``merge`` that can make nothing of a reply returns one without calls. ``kind`` is the policy's name, and
    ``question`` what the ask says beside the conversation: both are for people who read the transcript.
    """

    ask: Ask
    merge: Callable[[Reply], Reply] = unchanged
    kind: str = "reask"
    question: str = ""


@dataclass(frozen=True, slots=True)
class NextModel:
    """Go on with the next model in the list; the conversation and the accepted records come along."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Ask nothing more."""


Step = Plan | NextModel | Stop
Policy = Callable[[Conversation], Step]


def reask(state: Conversation) -> Step:
    """Put the whole conversation, errors included, to the same model once more."""
    return Plan(Ask(state.messages, state.offers, state.rank, state.next_sampling))


def next_step(state: Conversation, policy: Policy) -> Step:
    """What the policy says, within the limits that hold for every policy."""
    if state.unanswered is not None:
        return Stop() if state.unanswered.is_fatal else NextModel()
    if state.spent >= state.rules.limits[state.rank] or state.repeats:
        return NextModel()
    return policy(state)
