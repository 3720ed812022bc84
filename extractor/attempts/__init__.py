"""Policies: what the next attempt asks.

A policy is a pure function of the conversation. It answers with a :class:`Plan` (what to ask, and how the reply is
merged into full calls), :class:`NextModel`, or :class:`Stop`. The loop itself sees to the limits: a policy is asked
only while the present model has an attempt left and does not repeat itself.

``reask``
    the whole conversation once more, errors included.
``repair``
    only the values at fault, under the same function name; the others are given and stay as they are.
``narrow``
    the same, with the candidates that the document holds as a closed choice, the refused value not among them.
``resample``
    another draw of the first question; only the values at fault are taken from it.
``strong``, ``small``
    good sequences of these for models of either kind.
``adaptive``
    for each model the policy that its kind calls for: the default.
"""

from __future__ import annotations

from collections.abc import Mapping

from extractor.attempts.choosing import POLICIES, adaptive, named, small, strong
from extractor.attempts.repairing import narrow, repair
from extractor.attempts.resampling import resample
from extractor.attempts.steps import NextModel, Plan, Policy, Step, Stop, next_step, reask, unchanged

policies: Mapping[str, Policy] = POLICIES
"""Every policy by its name."""

__all__ = [
    "NextModel",
    "Plan",
    "Policy",
    "Step",
    "Stop",
    "adaptive",
    "named",
    "narrow",
    "next_step",
    "policies",
    "reask",
    "repair",
    "resample",
    "small",
    "strong",
    "unchanged",
]
