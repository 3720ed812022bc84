"""Sequences of policies for models of either kind, and policies by name."""

from __future__ import annotations

from collections.abc import Mapping

from extractor.attempts.candidates import is_in_doubt
from extractor.attempts.places import share
from extractor.attempts.repairing import narrow, repair, repairable
from extractor.attempts.resampling import resample
from extractor.attempts.steps import Plan, Policy, Step, reask
from extractor.conversation import Conversation
from extractor.errors import ConfigurationError

LARGEST_REPAIR = 0.35
"""Share of a record up to which it is cheaper to ask for the part than for the whole."""


def strong(state: Conversation) -> Step:
    """For a model that can make use of its errors: a repair where it is cheap, else, and after a repair in vain, the
    whole conversation."""
    records = repairable(state)
    if not records or state.spent == 0 or _tried(state)[-1] == "repair":
        return reask(state)
    return repair(state) if max(map(share, records)) <= LARGEST_REPAIR else reask(state)


def small(state: Conversation) -> Step:
    """For a model that does not become right by being shown its error: a closed choice, then other draws."""
    tried = _tried(state)
    if any(map(is_in_doubt, repairable(state))):
        return reask(state)  # where the model can say that there is nothing
    if tried and "narrow" not in tried:
        step = narrow(state)
        if isinstance(step, Plan) and step.kind == "narrow":
            return step
    return resample(state) if tried else reask(state)


def adaptive(state: Conversation) -> Step:
    """For each model the policy that stands beside it in the rules; ``strong`` where none does."""
    names = state.rules.policies
    return POLICIES[names[state.rank] if names else "strong"](state)


def _tried(state: Conversation) -> list[str]:
    """What the present model was asked for so far."""
    return [one.kind for one in state.attempts if one.rank == state.rank]


POLICIES: Mapping[str, Policy] = {
    "adaptive": adaptive,
    "reask": reask,
    "repair": repair,
    "narrow": narrow,
    "resample": resample,
    "strong": strong,
    "small": small,
}


def named(policy: str | Policy) -> Policy:
    """The policy of that name; a policy is itself.

    :raises ConfigurationError: when there is none of that name.
    """
    if callable(policy):
        return policy
    if policy not in POLICIES:
        raise ConfigurationError(f"there is no policy {policy!r}", hint=f"choose one of {', '.join(POLICIES)}")
    return POLICIES[policy]
