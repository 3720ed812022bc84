"""What the rate-limit headers of an answer say: how long to hold all requests, before any of them is refused."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping
from datetime import datetime

_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_ENOUGH = 0.1  # of the limit, to be there again before the next request

# Remaining, reset and limit of each family that is known, and whether its reset is when all is there again.
_FAMILIES = [
    (name.format("remaining"), name.format("reset"), name.format("limit"), fills)
    for name, fills in (
        ("x-ratelimit-{}-requests", True),
        ("x-ratelimit-{}-tokens", True),
        ("anthropic-ratelimit-requests-{}", True),
        ("anthropic-ratelimit-tokens-{}", True),
        ("anthropic-ratelimit-input-tokens-{}", True),
        ("anthropic-ratelimit-output-tokens-{}", True),
        ("x-ratelimit-{}", False),
        ("ratelimit-{}", False),
    )
]


def hints(headers: Mapping[str, str], now: Callable[[], float] = time.time) -> float:
    """How many seconds to hold all requests, by the rate-limit headers of an answer; 0 when something is left.

    Where nothing is left, it is until the reset. Providers whose reset is the moment at which *all* is there again
    (OpenAI, Anthropic) fill up evenly: when they name their limit too, a tenth of it is waited for.

    :param headers: names in lower case, or a mapping that does not mind the case.
    :param now: seconds since the epoch, for a reset that is a date.
    """
    seconds = 0.0
    for remaining, reset, limit, fills in _FAMILIES:
        if (left := headers.get(remaining)) is not None and _number(left) == 0:
            whole = _number(headers.get(limit, "")) if fills else None
            share = min(1.0, max(_ENOUGH, 1 / whole)) if whole else 1.0
            seconds = max(seconds, share * _until(headers.get(reset, "")[:64].strip(), now))
    return seconds


def _until(text: str, now: Callable[[], float]) -> float:
    """Seconds until a reset, spelled as a number of seconds, as ``6m0s``, as seconds since the epoch, or as a date."""
    number = _number(text)
    if number is not None:
        moment = number / 1000 if number > 1e11 else number  # some write milliseconds
        return max(0.0, moment - now()) if moment > 1e9 else moment
    parts = _PART.findall(text)
    if parts and "".join(value + unit for value, unit in parts) == text:
        return sum(float(value) * _UNITS[unit] for value, unit in parts)
    try:
        date = datetime.fromisoformat(text)
        # A moment without a zone could be anybody's.
        return max(0.0, date.timestamp() - now()) if date.tzinfo else 0.0
    except (ValueError, OverflowError):
        return 0.0


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


__all__ = ["hints"]
