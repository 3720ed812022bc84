"""The provider's own function calls: nothing is worded otherwise."""

from __future__ import annotations

from extractor.messages import Ask, Reply


def word(ask: Ask) -> Ask:
    """The ask as it is."""
    return ask


def read(reply: Reply, _: Ask) -> Reply:
    """The reply as it is."""
    return reply
