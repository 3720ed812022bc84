"""One pace for all asks of a model: how many may be under way, and when the next one may start.

A :class:`Pace` is shared by every worker of a run, in any number of event loops. Each request takes one slot::

    async with pace.slot(tokens=1200) as slot:
        answer = await send()
        slot.refused(wait) if limited else slot.done(used_tokens)

What is given (:class:`Limits`) is kept from the first request on. What is not given is learnt. The first requests
start at a hundred a second, twice as many each tenth of a second, so that a server with a small limit does not turn
away every worker at once. A refusal says that the server's allowance was used up at that moment. What it took between
two such moments, divided by the time between them, is its limit, however much it may save up for a burst. We go a
little below that, and up again: slowly at first, faster the longer nothing is refused.

Those who wait stand in line, one line for each event loop, and only the first of a line looks at the clock.
"""

from __future__ import annotations

import asyncio
import math
import re
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from types import TracebackType
from typing import Self
from weakref import WeakKeyDictionary

from extractor.errors import ConfigurationError

_SHORT = 2.0  # seconds; a longer wait that one request is told holds up all
_GLANCE = 0.25  # seconds after which the first in line looks again: rate and hold may have changed
_ELSEWHERE = 0.05  # the same while all places are taken, for places that another event loop gives back
_SLACK = 0.05  # seconds of lateness that are caught up, so that slips of timers cost nothing
_FIRST_RATE, _FIRST_DOUBLING = 100.0, 0.1  # requests a second, and seconds until they are twice as many
_BELOW = 0.95  # of the measured rate: small buckets refuse what comes a little early
_GROWTH, _DOUBLING, _SLOWEST_DOUBLING = 0.005, 4.0, 60.0  # of the rate a second; the growth doubles every so often
_FREE = 10_000.0  # requests a second above which a learnt rate is none
_BURST = 0.1  # of the tokens a minute, that may be used at once


@dataclass(frozen=True, slots=True)
class Limits:
    """What the provider allows, as far as the user says so; ``None`` is learnt.

    :param rpm: requests a minute.
    :param tpm: tokens a minute, question and answer together.
    :param concurrency: requests under way at one time.
    :raises ConfigurationError: a limit that is no number above zero.
    """

    rpm: float | None = None
    tpm: float | None = None
    concurrency: int | None = None

    def __post_init__(self) -> None:
        for limit in fields(self):
            value = getattr(self, limit.name)
            if value is not None:
                _check(limit.name, value)

    @classmethod
    def of(cls, settings: Mapping[str, object]) -> Limits:
        """The limits in a table of settings, where numbers may be text; other keys are not looked at.

        :raises ConfigurationError: a limit that is no number above zero.
        """
        rpm, tpm, concurrency = (_read(name, settings.get(name)) for name in ("rpm", "tpm", "concurrency"))
        return cls(rpm, tpm, None if concurrency is None else _whole(concurrency))


def _read(name: str, value: object) -> float | None:
    if value is None:
        return None
    if not isinstance(value, str):
        return _check(name, value)
    try:
        return _check(name, float(value))
    except ValueError:
        raise _wrong(name, value) from None


def _check(name: str, value: object) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (number and isinstance(value, int | float) and math.isfinite(value) and value > 0):
        raise _wrong(name, value)
    if name == "concurrency" and value != int(value):
        raise _wrong(name, value)
    return value


def _whole(value: float) -> int:
    return int(value)


def _wrong(name: str, value: object) -> ConfigurationError:
    kind = "a whole number" if name == "concurrency" else "a number"
    hint = f"give {kind} above 0, or leave {name} out to have it learnt"
    return ConfigurationError(f"{name} is {str(value)[:40]!r}, which is no limit", hint=hint)


@dataclass(frozen=True, slots=True)
class _Mark:
    """A moment, and how many requests had been started and, as far as was known, taken by then."""

    moment: float = 0.0
    started: int = 0
    taken: int = 0


class _Rate:
    """When the next request may start. Knows no lock and no event loop; each moment is told to it."""

    def __init__(self, given: float | None) -> None:
        self.given = given
        self._base = given
        self._calm = 0.0  # seconds of use since the last refusal: what the growth is reckoned from
        self._first: float | None = None
        self._last = self._next = -math.inf
        self._started = self._refusals = 0
        self._marks: deque[_Mark] = deque(maxlen=16)

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
        return min(self._next, self._last + 1 / rate) - now if self.given is None else self._next - now

    def start(self, now: float) -> _Mark:
        """Count a request that starts now."""
        if self._first is None:
            self._first = now
        rate = self.current(now)
        if rate is not None and self._base is not None:
            if now - self._next > 1:
                self._marks.clear()  # nobody wanted anything, so that what was taken since says nothing about a limit
            self._calm += min(now - self._last, 2 / self._base)
            self._next = max(self._next, now - _SLACK) + 1 / rate
            if self.given is None and rate > _FREE:
                self._base = None
        self._last = now
        mark = _Mark(now, self._started, self._started - self._refusals)
        self._started += 1
        return mark

    def refused(self, start: _Mark, now: float) -> None:
        """Learn from the refusal of a request: the server's allowance was used up when it was made."""
        # Refusals come fast and in order: what was started before and has not been refused by now has been taken.
        mark = _Mark(start.moment, start.started, start.started - self._refusals)
        self._refusals += 1
        rate = self.current(now)
        if rate is None:
            assert self._first is not None
            rate = self._started / max(now - self._first, 1 / _FIRST_RATE)
        measured = self._measured(mark)
        if self.given is None or measured < 0.9 * self.given:
            rate = min(rate, _BELOW * measured)
        if self._base is None:
            self._next = now
        self._base, self._calm = rate, 0.0
        if not self._marks or mark.moment - self._marks[-1].moment >= _SLACK:
            self._marks.append(mark)

    def forget(self) -> None:
        """What was measured ends here: all are held up."""
        self._marks.clear()

    def _measured(self, mark: _Mark) -> float:
        """The greatest rate that fits what was taken between two refusals."""
        past = [known for known in self._marks if mark.moment - known.moment > 0]
        # Over short times one request more or less weighs too much to go by the least.
        lasting = [known for known in past if mark.moment - known.moment >= 0.5] or past[:1]
        rates = ((mark.taken - known.taken + 1) / (mark.moment - known.moment) for known in lasting)
        return min((rate for rate in rates if rate > 0), default=math.inf)


class _Tokens:
    """A bucket of tokens: full at first, filled evenly, and in debt when a request took more than was thought."""

    def __init__(self, tpm: float) -> None:
        self._fill = tpm / 60
        self._size = self._left = tpm * _BURST
        self._seen = -math.inf

    def wait(self, tokens: int, now: float) -> float:
        if now > self._seen:
            self._left = min(self._size, self._left + self._fill * min(now - self._seen, 60.0))
            self._seen = now
        # What is larger than the bucket starts when it is full.
        return max(0.0, (min(tokens, self._size) - self._left) / self._fill)

    def take(self, tokens: int) -> None:
        self._left = min(self._size, self._left - tokens)


@dataclass(slots=True)
class _Line:
    """Those of one event loop who wait."""

    first: asyncio.Lock = field(default_factory=asyncio.Lock)
    room: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: int = 0


class Pace:
    """One limiter for all asks of a model, shared by all workers and event loops.

    :param limits: what is known of the provider's limits.
    :param clock: seconds that only go forward, given for tests.
    :param sleep: how to wait, given for tests.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.limits = limits or Limits()
        self._clock = clock
        self._sleep = sleep
        self._guard = threading.Lock()
        self._lines: WeakKeyDictionary[asyncio.AbstractEventLoop, _Line] = WeakKeyDictionary()
        self._until = -math.inf
        self._in_flight = 0
        self._room = self.limits.concurrency or math.inf
        self._rate = _Rate(self.limits.rpm / 60 if self.limits.rpm else None)
        self._tokens = _Tokens(self.limits.tpm) if self.limits.tpm else None

    @property
    def in_flight(self) -> int:
        """Requests under way."""
        return self._in_flight

    @property
    def rate(self) -> float | None:
        """Requests a second that are kept now, given or learnt; ``None`` while no limit is known."""
        with self._guard:
            return self._rate.current(self._clock())

    def slot(self, tokens: int = 0) -> Slot:
        """A place for exactly one request; entering it waits until the request may start.

        :param tokens: how many it will take, as far as can be told beforehand.
        """
        return Slot(self, tokens)

    def hold(self, until: float) -> None:
        """Let no request start before ``until`` (a reading of the clock in use)."""
        with self._guard:
            self._until = max(self._until, until)
            self._rate.forget()

    def left(self, now: float) -> float:
        """How many seconds of a hold are to be waited yet; 0 when there is none."""
        return max(0.0, self._until - now)

    def heed(self, headers: Mapping[str, str], longest: float = 600.0) -> None:
        """Hold all requests as long as the headers of an answer say that nothing is left.

        :param headers: names in lower case, or a mapping that does not mind the case.
        :param longest: seconds; a longer hold is not begun, since a day's limit is the next refusal's matter.
        """
        seconds = hints(headers)
        if 0 < seconds <= longest:
            self.hold(self._clock() + seconds)

    async def enter(self, slot: Slot) -> None:
        """Stand in line until the request of this slot may start."""
        line = slot.line = self._line()
        if not line.waiting and not self._wait(slot):
            return
        line.waiting += 1
        try:
            async with line.first:
                while wait := self._wait(slot):
                    await (self._sleep(min(wait, _GLANCE)) if wait < math.inf else self._until_room(line))
        finally:
            line.waiting -= 1

    def leave(self, slot: Slot) -> None:
        """Give the place back."""
        with self._guard:
            self._in_flight -= 1
        if slot.line is not None and slot.line.waiting:
            slot.line.room.set()

    def correct(self, tokens: int) -> None:
        """Take so many tokens more than was thought, or give them back when it is less than nothing."""
        if self._tokens is not None and tokens:
            with self._guard:
                self._tokens.take(tokens)

    def learn(self, slot: Slot, wait: float | None) -> None:
        """A request was refused. A long wait holds up all; a short one is the refused request's own, since a server's
        allowance grows all the time, and whole seconds are the smallest wait that many can name."""
        now = self._clock()
        with self._guard:
            self._rate.refused(slot.mark, now)
        if wait is not None and wait > _SHORT:
            self.hold(now + wait)

    def _wait(self, slot: Slot) -> float:
        """Start the slot's request and return 0; or else say after how many seconds to look again."""
        now = self._clock()
        with self._guard:
            if self._in_flight >= self._room:
                return math.inf
            wait = max(self._until - now, self._rate.wait(now))
            if self._tokens is not None:
                wait = max(wait, self._tokens.wait(slot.tokens, now))
            if wait > 0:
                return wait
            self._in_flight += 1
            slot.mark = self._rate.start(now)
            if self._tokens is not None:
                self._tokens.take(slot.tokens)
            return 0.0

    def _line(self) -> _Line:
        loop = asyncio.get_running_loop()
        line = self._lines.get(loop)
        if line is None:
            with self._guard:
                line = self._lines[loop] = _Line()
        return line

    @staticmethod
    async def _until_room(line: _Line) -> None:
        line.room.clear()
        timer = asyncio.get_running_loop().call_later(_ELSEWHERE, line.room.set)
        try:
            await line.room.wait()
        finally:
            timer.cancel()


class Slot:
    """The place of one request. One that ends without a word was sent, and brought nothing that is known."""

    __slots__ = ("_pace", "line", "mark", "tokens")

    def __init__(self, pace: Pace, tokens: int) -> None:
        self._pace = pace
        self.tokens = tokens
        self.line: _Line | None = None
        self.mark = _NOWHERE

    async def __aenter__(self) -> Self:
        await self._pace.enter(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pace.leave(self)

    def done(self, tokens: int | None = None) -> None:
        """The request was answered.

        :param tokens: how many it took, when the answer says so.
        """
        if tokens is not None:
            self._pace.correct(tokens - self.tokens)

    def refused(self, wait: float | None = None) -> None:
        """The request met a rate limit.

        :param wait: seconds that the server asks to wait.
        """
        self._pace.correct(-self.tokens)
        self._pace.learn(self, wait)


_NOWHERE = _Mark()

_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SHARE = 0.1

# Prefix of the names, suffixes of what is counted, and whether the reset is when all is there again.
_FAMILIES = (
    ("x-ratelimit-{}-requests", True),
    ("x-ratelimit-{}-tokens", True),
    ("anthropic-ratelimit-requests-{}", True),
    ("anthropic-ratelimit-tokens-{}", True),
    ("anthropic-ratelimit-input-tokens-{}", True),
    ("anthropic-ratelimit-output-tokens-{}", True),
    ("x-ratelimit-{}", False),
    ("ratelimit-{}", False),
)


def hints(headers: Mapping[str, str], now: Callable[[], float] = time.time) -> float:
    """How many seconds to hold all requests, by the rate-limit headers of an answer; 0 when something is left.

    Where nothing is left, it is until the reset. Providers whose reset is the moment at which *all* is there again
    (OpenAI, Anthropic) fill up evenly: when they name their limit too, a tenth of it is waited for.

    :param headers: names in lower case, or a mapping that does not mind the case.
    :param now: seconds since the epoch, for a reset that is a date.
    """
    return max(_hint(headers, *family, now) for family in _FAMILIES)


def _hint(headers: Mapping[str, str], name: str, fills: bool, now: Callable[[], float]) -> float:
    remaining = headers.get(name.format("remaining"))
    if remaining is None or _number(remaining) != 0:
        return 0.0
    seconds = _until(headers.get(name.format("reset"), "")[:64].strip(), now)
    limit = _number(headers.get(name.format("limit"), ""))
    return seconds * max(_SHARE, 1 / limit) if fills and limit and limit > 1 else seconds


def _until(text: str, now: Callable[[], float]) -> float:
    """Seconds until a reset, spelled as a number of seconds, as ``6m0s``, as seconds since the epoch, or as a date."""
    number = _number(text)
    if number is not None:
        since = number / 1000 if number > 1e11 else number  # some write milliseconds
        return max(0.0, since - now()) if since > 1e9 else number
    parts = _PART.findall(text)
    if parts and "".join(value + unit for value, unit in parts) == text:
        return sum(float(value) * _UNITS[unit] for value, unit in parts)
    try:
        moment = datetime.fromisoformat(text)
        return max(0.0, moment.timestamp() - now()) if moment.tzinfo else 0.0
    except (ValueError, OverflowError):
        return 0.0


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


__all__ = ["Limits", "Pace", "Slot", "hints"]
