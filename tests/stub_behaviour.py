"""How a stub server misbehaves: one value that says it, and the state that carries it out."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal

from stub_answers import HTML, Answer, Fault, Reply, Said
from stub_formats import Format
from stub_received import Received

RetryAfter = Literal["integer", "decimal", "ms", "none"]
Fate = Literal["error", "cut", "html", "empty", "truncated", "refusal", ""]


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What goes wrong, how often, and how slowly. Everything may be combined.

    Shares are of the requests that the bucket let through, drawn from ``seed`` in the order of arrival; one request has
    one trouble at most. The answer function is asked only when its answer is needed.

    :param latency: seconds before an answer; a 429 does not wait.
    :param reverse: of so many requests in a row the first waits the whole latency and each later one less.
    :param rate: requests a second that a token bucket lets through; ``None`` is no limit.
    :param capacity: of the bucket, which is full at the start; by default one second's worth.
    :param retry_after: how a 429 says when to come back: ``Retry-After`` in whole or decimal seconds,
        ``retry-after-ms``, or not at all.
    :param limit_headers: whether answers tell the state of the bucket in the vendor's headers.
    :param error_statuses: drawn from for each error.
    :param cut: where connections are cut; ``"either"`` draws.
    :param bad_first: the answer to the opening question of a conversation, or ``None`` for the usual one.
    :param bad_share: the share of opening questions that get it, drawn from ``seed`` and what the turns say, so that
        an equal question has an equal fate whenever it comes.
    """

    latency: float = 0.0
    reverse: int = 0
    rate: float | None = None
    capacity: float | None = None
    retry_after: RetryAfter = "integer"
    limit_headers: bool = True
    error_share: float = 0.0
    error_statuses: tuple[int, ...] = (500, 529)
    cut_share: float = 0.0
    cut: Literal["before", "midway", "either"] = "either"
    html_share: float = 0.0
    empty_share: float = 0.0
    truncated_share: float = 0.0
    refusal_share: float = 0.0
    bad_first: Callable[[Received], Reply | None] | None = None
    bad_share: float = 1.0
    seed: int = 0

    def shares(self) -> tuple[tuple[Fate, float], ...]:
        """Each trouble and its share, without those that never happen."""
        every: tuple[tuple[Fate, float], ...] = (
            ("error", self.error_share),
            ("cut", self.cut_share),
            ("html", self.html_share),
            ("empty", self.empty_share),
            ("truncated", self.truncated_share),
            ("refusal", self.refusal_share),
        )
        return tuple((fate, share) for fate, share in every if share)

    def delay(self, position: int) -> float:
        """Seconds that the request of this number waits."""
        if not self.reverse:
            return self.latency
        return self.latency * (1 - position % self.reverse / self.reverse)

    def bad_reply(self, received: Received) -> Reply | None:
        """The bad reply that this request is due, if it is due one."""
        if self.bad_first is None:
            return None
        asked = received.asked()
        if not asked.is_first:
            return None
        said = "\n".join(turn.text for turn in asked.turns)
        if random.Random(f"{self.seed}:{said}").random() >= self.bad_share:
            return None
        return self.bad_first(received)


class Bucket:
    """A token bucket; one token is one request."""

    def __init__(self, rate: float, capacity: float) -> None:
        self.rate = rate
        self.capacity = capacity
        self.tokens = capacity
        self._last: float | None = None

    def take(self, now: float) -> float:
        """Take a token: 0, or the seconds until there will be one."""
        if self._last is not None:
            self.tokens = min(self.capacity, self.tokens + (now - self._last) * self.rate)
        self._last = now
        if self.tokens >= 1:
            self.tokens -= 1
            return 0.0
        return (1 - self.tokens) / self.rate

    @property
    def full_in(self) -> float:
        """Seconds until nothing is missing."""
        return (self.capacity - self.tokens) / self.rate

    def headers(self, wire: Format) -> dict[str, str]:
        """The state as the vendor tells it; Gemini and Bedrock tell nothing."""
        limit, left = str(int(self.capacity)), str(int(self.tokens))
        if wire in ("chat", "responses"):
            names = ("x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests")
            return dict(zip(names, (limit, left, _openai_time(self.full_in)), strict=True))
        if wire == "anthropic":
            at = datetime.now(UTC) + timedelta(seconds=self.full_in)
            told = (limit, left, at.isoformat(timespec="seconds").replace("+00:00", "Z"))
            return {
                f"anthropic-ratelimit-requests-{name}": value
                for name, value in zip(("limit", "remaining", "reset"), told, strict=True)
            }
        return {}


def _openai_time(seconds: float) -> str:
    return f"{math.ceil(seconds * 1000)}ms" if seconds < 1 else f"{seconds:.3f}s"


def wait_headers(form: RetryAfter, seconds: float) -> dict[str, str]:
    """How a 429 says when to come back."""
    if form == "integer":
        return {"Retry-After": str(math.ceil(seconds))}
    if form == "decimal":
        return {"Retry-After": f"{math.ceil(seconds * 1000) / 1000:.3f}"}
    return {"retry-after-ms": str(math.ceil(seconds * 1000))} if form == "ms" else {}


@dataclass(frozen=True, slots=True)
class Decision:
    """What is done about one request, and after how long."""

    reply: Reply
    delay: float = 0.0
    headers: dict[str, str] = field(default_factory=dict)
    at_once: bool = False
    """Whether no latency of the server's comes on top."""


class Temper:
    """A behaviour and how far it has come.

    :param answer: the usual answer to a request.
    """

    def __init__(self, behaviour: Behaviour, answer: Callable[[Received], Reply]) -> None:
        self.behaviour = behaviour
        self.answer = answer
        self.tally: Counter[str] = Counter()
        """Requests by what became of them: ``answered``, ``bad``, ``limited``, ``invalid``, and troubles by name."""
        self._random = random.Random(behaviour.seed)
        self._shares = behaviour.shares()
        self._position = 0
        self._bucket: Bucket | None = None
        if behaviour.rate is not None:
            capacity = behaviour.capacity if behaviour.capacity is not None else behaviour.rate
            self._bucket = Bucket(behaviour.rate, max(1.0, capacity))

    def decide(self, received: Received, now: float) -> Decision:
        """What is done about a request that arrives now."""
        headers: dict[str, str] = {}
        if self._bucket is not None:
            wait = self._bucket.take(now)
            if self.behaviour.limit_headers:
                headers = self._bucket.headers(received.wire)
            if wait:
                self.tally["limited"] += 1
                told = wait_headers(self.behaviour.retry_after, wait)
                return Decision(Fault(429, "too many requests"), headers={**headers, **told}, at_once=True)
        invalid = received.fault()
        if invalid is not None:
            self.tally["invalid"] += 1
            return Decision(invalid, headers=headers)
        delay = self.behaviour.delay(self._position)
        self._position += 1
        return Decision(self._reply(received), delay, headers)

    def _reply(self, received: Received) -> Reply:
        fate = self._fate()
        if fate:
            self.tally[fate] += 1
            return self._trouble(fate, received)
        bad = self.behaviour.bad_reply(received)
        self.tally["answered" if bad is None else "bad"] += 1
        return self.answer(received) if bad is None else bad

    def _fate(self) -> Fate:
        if not self._shares:
            return ""
        drawn = self._random.random()
        for fate, share in self._shares:
            if drawn < share:
                return fate
            drawn -= share
        return ""

    def _trouble(self, fate: Fate, received: Received) -> Reply:
        if fate == "error":
            return Fault(self._random.choice(self.behaviour.error_statuses), "the server has trouble")
        if fate == "cut":
            where = self.behaviour.cut
            drawn = self._random.choice(("before", "midway")) if where == "either" else where
            return Answer(Said("half of this never arrives"), cut="before" if drawn == "before" else "midway")
        if fate == "html":
            return HTML
        if fate == "truncated":
            usual = self.answer(received)
            whole = usual.body if isinstance(usual, Answer) else usual
            if not isinstance(whole, Said):
                raise TypeError("truncated_share wants an answer that is Said: another one cannot be cut short")
            return whole.cut_short()
        return Said(finish="empty" if fate == "empty" else "refusal")


__all__ = ["Behaviour", "Bucket", "Decision", "Temper", "wait_headers"]
