"""Policies: what the next attempt asks.

A policy is a pure function of the conversation. It answers with a :class:`Plan` (what to ask, and how the reply is
merged into full calls), :class:`NextModel`, or :class:`Stop`. The loop itself sees to the limits: a policy is asked
only while the present model has an attempt left.
"""

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
    """Ask this; ``merge`` turns the reply into the full calls that are run, keyed and stored. Both are pure."""

    ask: Ask
    merge: Callable[[Reply], Reply] = unchanged


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
    if state.spent >= state.rules.limits[state.rank]:
        return NextModel()
    return policy(state)
