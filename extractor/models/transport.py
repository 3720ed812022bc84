"""The one retry layer: how long to go on asking a server that gives no answer.

It knows HTTP and time, but no vendor's SDK. An adapter hands :func:`persist` a ``send`` that makes exactly one request
and returns either its answer or a :class:`Trouble`; SDKs and instructor have their own retries turned off, so that the
number of requests is the number counted here.

- Trouble that may pass (5xx, timeouts, dropped connections, bodies that are no answer) is met with at most
  :attr:`Patience.tries` requests in all, with exponential pauses and full jitter between them.
- A rate limit spends none of these: it is waited out until :attr:`Patience.limited` seconds are over. All asks of a
  model share one :class:`~extractor.models.pace.Pace`, which learns from each refusal how fast they may go.
- A server's own word (``Retry-After``, ``retry-after-ms``) goes before our pauses. Where it asks for more than is left
  of the time, the ask ends at once.

Every end is a value. The only exceptions that pass through are those that ``send`` lets out, and the run's own: a drain
sends home whoever waits with no request under way (:data:`~extractor.models.pace.standing_by`).
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Generic, TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_result, wait_random_exponential

from extractor.messages import UnansweredKind, Usage
from extractor.models.pace import Pace, Slot, standing_by

T = TypeVar("T")

_LONGEST_WAIT = 1e9  # seconds; a header may hold any number


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why one request brought no answer.

    :param kind: what it comes to if it does not pass.
    :param cause: one line for people, in our own words: no document text, no key, no body of the provider's.
    :param passing: whether another request may fare better.
    :param spends: whether the request counts against :attr:`Patience.tries`; a rate limit does not.
    :param wait: seconds that the server asks us to wait, when it says so.
    :param usage: what the request cost all the same.
    """

    kind: UnansweredKind
    cause: str
    passing: bool = True
    spends: bool = True
    wait: float | None = None
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class Patience:
    """How long one ask goes on.

    :param tries: requests in all for trouble other than a rate limit.
    :param seconds: time limit over requests and pauses, in seconds; no pause is begun that would end after it. Standing
        in line for a slot does not count: with a small limit and many workers it may take longer than any trouble.
    :param limited: time limit over all the waiting for rate limits, which do not count towards ``seconds``; the same
        as ``seconds`` by default.
    :param first: upper bound of the first pause in seconds; each further bound is twice the one before.
    :param longest: the greatest upper bound of a pause, in seconds.
    :param sleep: how to wait, given for tests.
    :param clock: seconds that only go forward, given for tests.
    """

    tries: int = 4
    seconds: float = 600.0
    limited: float | None = None
    first: float = 1.0
    longest: float = 60.0
    sleep: Callable[[float], Awaitable[None]] = field(default=asyncio.sleep, repr=False)
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)


class _Attempts(Generic[T]):
    """The tries of one ask, as tenacity wants them: what to run, how long to pause, when to stop."""

    def __init__(self, patience: Patience, pace: Pace, tokens: int, used: Callable[[T], int] | None) -> None:
        self.patience = patience
        self.pace = pace
        self.tokens = tokens
        self.used = used
        self.started = self.began = patience.clock()
        self.limited_at: float | None = None
        self.requests = 0
        self.spent = 0
        self._jitter = wait_random_exponential(multiplier=patience.first, max=patience.longest)

    @property
    def elapsed(self) -> float:
        return self.patience.clock() - self.began

    def is_beyond(self, wait: float, *, limited: bool) -> bool:
        """Whether so long a wait would end after the time limit of its kind."""
        if limited and self.patience.limited is not None:
            return self.patience.clock() - self.started + wait > self.patience.limited
        return self.elapsed + wait > self.patience.seconds

    async def one(self, send: Callable[[], Awaitable[T | Trouble]]) -> T | Trouble:
        """Wait until the way is free, then make one request."""
        stood = self.patience.clock()
        if self.limited_at is not None and self.patience.limited is not None:
            self.began += stood - self.limited_at  # what a rate limit takes is no trouble's time
        self.limited_at = None
        left = self.pace.left(stood)
        if self.is_beyond(left, limited=True):
            return Trouble("rate_limited", f"the provider asks to wait {left:.0f} s more", passing=False)
        async with self.pace.slot(self.tokens) as slot:
            in_line = self.patience.clock() - stood
            self.began += in_line
            if self.pace.limits.rpm or self.pace.limits.tpm:
                self.started += in_line  # what the user wants is no rate limit of the provider's
            elif self.requests and self.is_beyond(0.0, limited=True):
                return Trouble("rate_limited", "the provider takes too few requests", passing=False)
            self.requests += 1
            answer = await send()
            self._note(slot, answer)
        return answer

    async def rest(self, seconds: float) -> None:
        """Pause between two requests."""
        with standing_by.get()():
            await self.patience.sleep(seconds)

    def pause(self, state: RetryCallState) -> float:
        """Seconds until the next request: the server's word where there is one, else exponential with full jitter."""
        trouble = self._last(state)
        if trouble.wait is None:
            return self._jitter(state)
        return trouble.wait + self._spread(trouble.wait)

    def is_over(self, state: RetryCallState) -> bool:
        """Whether the tries are used up, or the coming pause would end after the time limit."""
        limited = not self._last(state).spends
        return self.spent >= self.patience.tries or self.is_beyond(state.upcoming_sleep, limited=limited)

    def give_up(self, state: RetryCallState) -> Trouble:
        """The last trouble, with what was done about it."""
        trouble = self._last(state)
        asked = "" if not trouble.wait else f", which asks to wait {trouble.wait:.0f} s more"
        requests = "1 request" if self.requests == 1 else f"{self.requests} requests"
        seconds = self.patience.clock() - self.started
        return replace(trouble, cause=f"{trouble.cause}{asked}; gave up after {requests} in {seconds:.0f} s")

    def _note(self, slot: Slot, answer: T | Trouble) -> None:
        if not isinstance(answer, Trouble):
            slot.done(self.used(answer) if self.used else None)
        elif answer.spends:
            self.spent += 1
        else:
            # A wait beyond our patience holds nobody else up: it may be the word of one bad moment, and a process
            # that lives long must not stay locked for a day by one header.
            self.limited_at = self.patience.clock()
            bearable = answer.wait is not None and not self.is_beyond(answer.wait, limited=True)
            slot.refused(answer.wait if bearable else None)

    def _spread(self, wait: float) -> float:
        """A little on top of a wait that many share, so that they do not all come back in the same instant."""
        return random.uniform(0.0, min(self.patience.first, wait / 10))  # noqa: S311

    @staticmethod
    def _last(state: RetryCallState) -> Trouble:
        outcome = state.outcome.result() if state.outcome else None
        assert isinstance(outcome, Trouble)
        return outcome


async def persist(
    send: Callable[[], Awaitable[T | Trouble]],
    patience: Patience | None = None,
    pace: Pace | None = None,
    tokens: int = 0,
    used: Callable[[T], int] | None = None,
) -> T | Trouble:
    """Make requests until one brings an answer, or patience ends.

    :param send: makes exactly one request; returns its answer, or the trouble that it met.
    :param patience: how often and how long.
    :param pace: shared by all asks that the same rate limit counts; it goes by a clock of its own.
    :param tokens: how many one request will take, as far as can be told beforehand.
    :param used: how many an answer took.
    :returns: the first answer, or the last trouble.
    """
    patience = patience or Patience()
    pace = pace or Pace(clock=patience.clock, sleep=patience.sleep)
    attempts = _Attempts(patience, pace, tokens, used)
    retrying = AsyncRetrying(
        sleep=attempts.rest,
        retry=retry_if_result(lambda answer: isinstance(answer, Trouble) and answer.passing),
        wait=attempts.pause,
        stop=attempts.is_over,
        retry_error_callback=attempts.give_up,
    )
    return await retrying(attempts.one, send)


def retry_after(headers: Mapping[str, str], now: Callable[[], float] = time.time) -> float | None:
    """How many seconds the server asks us to wait, or ``None`` when it does not say.

    :param headers: the response's headers; names in lower case, or a mapping that does not mind the case.
    :param now: seconds since the epoch, for a ``Retry-After`` that is a date.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        seconds = _number(headers.get(name, ""))
        if seconds is not None:
            return seconds * unit
    try:
        date = parsedate_to_datetime(headers.get("retry-after", ""))
        # A date without a zone is in Greenwich time by the standard; Python would take it for local time.
        moment = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return max(0.0, moment - now())


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return min(number, _LONGEST_WAIT) if math.isfinite(number) and number >= 0 else None


__all__ = ["Pace", "Patience", "Trouble", "persist", "retry_after"]
