"""One pace for all asks of a model: how many may be under way, and when the next one may start.

A :class:`Pace` is shared by every worker of a run, in any number of event loops. Each request takes one slot::

    async with pace.slot(tokens=1200) as slot:
        answer = await send()
        slot.refused(wait) if limited else slot.done(used_tokens)

What is given (:class:`Limits`) is kept from the first request on. What is not given is learnt. The first requests
start at a hundred a second, twice as many each tenth of a second, so that a server with a small limit does not turn
away every worker at once; what refusals teach from then on is :mod:`extractor.models.rate`'s.

Those who wait stand in line, one line for each event loop, and only the first of a line looks at the clock.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from types import TracebackType
from typing import Self
from weakref import WeakKeyDictionary

from extractor.errors import ConfigurationError
from extractor.models.rate import FINE, Mark, Rate, Tokens
from extractor.models.rate_headers import hints

_SHORT = 2.0  # seconds; a longer wait that one request is told holds up all
_GLANCE = 0.25  # seconds after which the first in line looks again: rate and hold may have changed
_ELSEWHERE = 0.05  # the same while all places are taken, for places that another event loop gives back
_SOON = 1e-6  # seconds that are not worth a sleep
_TICK = 0.0011  # seconds that event loops may wake too late


standing_by: ContextVar[Callable[[], AbstractContextManager[object]]] = ContextVar("standing_by", default=nullcontext)
"""Entered around each wait in which no request is under way. Who runs many asks sets it for its tasks, to know which of
them may be sent home; entering it may raise."""


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


@dataclass(slots=True)
class _Line:
    """Those of one event loop who wait."""

    first: asyncio.Lock = field(default_factory=asyncio.Lock)
    room: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: int = 0


async def exactly(seconds: float) -> None:
    """Sleep, and wake in time: an event loop counts in whole milliseconds, rounded up, and at fifty requests a second
    one millisecond each is five per cent."""
    until = time.monotonic() + seconds
    await asyncio.sleep(seconds if seconds < FINE else seconds - _TICK)
    while time.monotonic() < until:
        await asyncio.sleep(0)


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
        sleep: Callable[[float], Awaitable[None]] = exactly,
    ) -> None:
        self.limits = limits or Limits()
        self._clock = clock
        self._sleep = sleep
        self._guard = threading.Lock()
        self._lines: WeakKeyDictionary[asyncio.AbstractEventLoop, _Line] = WeakKeyDictionary()
        self._until = -math.inf
        self._in_flight = 0
        self._room = self.limits.concurrency or math.inf
        self._rate = Rate(self.limits.rpm / 60 if self.limits.rpm else None)
        self._tokens = Tokens(self.limits.tpm) if self.limits.tpm else None

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
            with standing_by.get()():
                await self._in_turn(slot, line)
        finally:
            line.waiting -= 1

    async def _in_turn(self, slot: Slot, line: _Line) -> None:
        async with line.first:
            while wait := self._wait(slot):
                await (self._sleep(min(wait, _GLANCE)) if wait < math.inf else self._until_room(line))

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
            if wait > _SOON:
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


_NOWHERE = Mark()


__all__ = ["Limits", "Pace", "Slot", "hints", "standing_by"]
