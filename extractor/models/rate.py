"""When the next request may start, and what refusals teach about it. Knows no event loop: each moment is told to it.

A refusal says that the server's allowance was used up at the moment of the request. What was taken between two such
moments, divided by the time between them, is the server's limit, however much it may save up for a burst. We go a
little below that, and up again: slowly at first, faster the longer nothing is refused. A limit that rises,
to twice or to ten times what it was, is found again within a minute.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

FINE = 0.01  # seconds; to shorter intervals a late timer is made up for, with longer ones it is worth waking in time
_SLACK = 0.1  # seconds of lateness that are caught up, so that slips of timers cost nothing; so much at the start too
_CLOSE = 0.5  # of the interval: how close starts may follow then
_APART, _STEP, _FARTHEST = 1.0, 0.012, 1.1  # of the interval, once a refusal shows that the server saves nothing up
_FIRST_RATE, _FIRST_DOUBLING = 100.0, 0.1  # requests a second, and seconds until they are twice as many
_BELOW = 0.97  # of the measured rate: small buckets refuse what comes a little early
_GROWTH, _DOUBLING, _SLOWEST_DOUBLING = 0.005, 4.0, 60.0  # of the rate a second; the growth doubles every so often
_HORIZON = 4.0  # seconds; what was taken longer ago tells of another rate of ours
_MARKS = 16  # moments that are remembered, spread over the horizon
_FREE = 10_000.0  # requests a second above which a learnt rate is none
_BURST = 0.1  # of the tokens a minute, that may be used at once


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment, how many requests had been started by then, and how many of them were taken, once that is known."""

    moment: float = 0.0
    started: int = 0
    taken: int = 0


class Rate:
    """Requests a second: given, learnt, or not known yet.

    :param given: never gone beyond; ``None`` when the limit is to be learnt.
    """

    def __init__(self, given: float | None) -> None:
        self.given = given
        self._base = given
        self._closest = _CLOSE
        self._calm = 0.0  # seconds of use since the last refusal: what the growth is reckoned from
        self._first: float | None = None
        self._last = self._next = -math.inf
        self._started = self._refusals = 0
        self._starts: deque[float] = deque(maxlen=64)
        self._lowered = -math.inf
        self._marks: deque[Mark] = deque(maxlen=_MARKS)

    def current(self, now: float) -> float | None:
        """Requests a second that are kept now; ``None`` while no limit is known."""
        if self._base is None or (self.given is not None and self._base >= self.given):
            return self._base
        # Idle time proves nothing, so that no more than two intervals of it count.
        calm = self._calm + min(max(0.0, now - self._last), 2 / self._base)
        doubling = min(max(_DOUBLING, 8 / self._base), _SLOWEST_DOUBLING)
        doublings = min(calm / doubling, 12.0)
        grown = self._base * math.exp(_GROWTH * _DOUBLING / math.log(2) * (2**doublings - 1))
        return grown if self.given is None else min(grown, self.given)

    def wait(self, now: float) -> float:
        """Seconds until the next request may start."""
        if self._first is None:
            return 0.0
        rate = self.current(now)
        if rate is None:
            doublings = math.log2(1 + self._started * math.log(2) / (_FIRST_RATE * _FIRST_DOUBLING))
            return self._first + _FIRST_DOUBLING * doublings - now
        closest = self._closest if rate * FINE <= 1 else _CLOSE
        return max(min(self._next, self._last + 1 / rate), self._last + closest / rate) - now

    def start(self, now: float) -> Mark:
        """Count a request that starts now."""
        if self._first is None:
            self._first = now
        rate = self.current(now)
        if rate is not None and self._base is not None:
            if now - self._next > 1:
                self._marks.clear()  # nobody wanted anything, so that what was taken since says nothing about a limit
            self._calm += min(now - self._last, 2 / self._base)
            if self._started == 0:
                self._next = now - _SLACK
            self._next = (self._next if now - self._next <= _SLACK else now) + 1 / rate
            if self.given is None and rate > _FREE:
                self._base = None
        self._last = now
        self._starts.append(now)
        mark = Mark(now, self._started)
        self._started += 1
        return mark

    def refused(self, start: Mark, now: float) -> None:
        """Learn from the refusal of a request: the server's allowance was used up when it was made."""
        # Refusals come fast and in order: what was started before and has not been refused by now has been taken.
        mark = Mark(start.moment, start.started, start.started - self._refusals)
        self._refusals += 1
        rate = self.current(now)
        if rate is None:
            recent = len(self._starts) / max(now - self._starts[0], 1 / _FIRST_RATE)
            rate = max(recent, _FIRST_RATE / 10)
        horizon = max(_HORIZON, 20 / rate)
        while self._marks and mark.moment - self._marks[0].moment > horizon:
            self._marks.popleft()
        # What is given is believed until much less is taken: a request may come a moment too early for a small bucket.
        trusted = self.given is not None and rate >= self.given
        measured = self._measured(mark, trusted)
        if measured < (0.7 if trusted else 0.9) * rate:
            rate = _BELOW * measured
        elif not trusted and self._base is not None and start.moment > self._lowered:
            # We went about as fast as the server takes, and may have come only a moment too early.
            rate = min(rate, _BELOW * measured) if rate < measured < math.inf else _BELOW * rate
            self._lowered = now
        self._closest = min(max(self._closest, _APART) + _STEP, _FARTHEST) if trusted else _APART
        if self._base is None:
            self._next = now
        self._base, self._calm = rate, 0.0
        if not self._marks or mark.moment - self._marks[-1].moment >= horizon / _MARKS:
            self._marks.append(mark)

    def forget(self) -> None:
        """What was measured ends here: all are held up."""
        self._marks.clear()

    def _measured(self, mark: Mark, trusted: bool) -> float:
        """The greatest rate that fits what was taken between two refusals."""
        past = [known for known in self._marks if mark.moment - known.moment > 0]
        # Over short times one request more or less weighs too much, unless there is nothing else to go by.
        enough = 2.0 if trusted else 0.5
        lasting = [known for known in past if mark.moment - known.moment >= enough]
        if not lasting and not trusted:
            lasting = past[:1]
        rates = ((mark.taken - known.taken + 2) / (mark.moment - known.moment) for known in lasting)
        return min((rate for rate in rates if rate > 0), default=math.inf)


class Tokens:
    """A bucket of tokens: full at first, filled evenly, and in debt when a request took more than was thought."""

    def __init__(self, tpm: float) -> None:
        self._fill = tpm / 60
        self._size = self._left = tpm * _BURST
        self._seen = -math.inf

    def wait(self, tokens: int, now: float) -> float:
        """Seconds until so many are there."""
        if now > self._seen:
            self._left = min(self._size, self._left + self._fill * min(now - self._seen, 60.0))
            self._seen = now
        # What is larger than the bucket starts when it is full.
        return max(0.0, (min(tokens, self._size) - self._left) / self._fill)

    def take(self, tokens: int) -> None:
        """Use so many, or give them back when it is less than nothing."""
        self._left = min(self._size, self._left - tokens)


__all__ = ["FINE", "Mark", "Rate", "Tokens"]
