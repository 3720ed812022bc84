"""One pace for all workers, in virtual time: a server's bucket and its latency are played, and no test waits."""

from __future__ import annotations

import asyncio
import math
import random
import selectors
import threading
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extractor.errors import ConfigurationError
from extractor.models.pace import Limits, Pace, exactly
from extractor.models.rate_headers import hints
from extractor.models.transport import Patience, Trouble, persist


class _Skipping(selectors.SelectSelector):
    """Passes the time that it is told to wait in no time."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.now += timeout or 0.0
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock only waiting moves, and which never waits."""

    def __init__(self) -> None:
        self.skipping = _Skipping()
        super().__init__(self.skipping)

    def time(self) -> float:
        return self.skipping.now


def virtually(main: Callable[[Callable[[], float]], Coroutine[Any, Any, Any]]) -> Any:
    """Run a coroutine function in virtual time; it is given the clock."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        loop = runner.get_loop()
        return runner.run(main(loop.time))


class Server:
    """A token bucket with latency; what comes a moment early is refused."""

    def __init__(
        self,
        clock: Callable[[], float],
        rate: float = 50.0,
        burst: int = 10,
        latency: float = 0.2,
        word: str = "whole",
        jitter: float = 0.0,
    ) -> None:
        self.clock, self.rate, self.burst, self.latency, self.word = clock, rate, burst, latency, word
        self.jitter = jitter
        self.left, self.seen = float(burst), 0.0
        self.starts: list[float] = []
        self.refused: list[float] = []
        self.in_flight = self.peak = 0
        self.random = random.Random(7)

    async def __call__(self) -> str | Trouble:
        self.starts.append(self.clock())
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            await asyncio.sleep(self.random.uniform(0, self.jitter))
            return await self._answer()
        finally:
            self.in_flight -= 1

    async def _answer(self) -> str | Trouble:
        now = self.clock()
        self.left, self.seen = min(self.burst, self.left + (now - self.seen) * self.rate), now
        if self.left < 1 - 1e-6:
            self.refused.append(now)
            wait = (1 - self.left) / self.rate
            told = {"whole": float(math.ceil(wait)), "decimal": wait, "none": None}[self.word]
            return Trouble("rate_limited", "429", spends=False, wait=told)
        self.left -= 1
        await asyncio.sleep(self.latency)
        return "yes"


async def run(clock: Callable[[], float], server: Server, limits: Limits, asks: int = 300, workers: int = 64) -> float:
    """Put so many asks; the seconds that it took. Each has to be answered."""
    pace = Pace(limits, clock=clock, sleep=asyncio.sleep)
    patience = Patience(clock=clock)
    left, began = iter(range(asks)), clock()

    async def work() -> None:
        for _ in left:
            assert await persist(server, patience, pace) == "yes"

    await asyncio.gather(*(work() for _ in range(workers)))
    assert pace.in_flight == 0
    return clock() - began


@pytest.mark.parametrize("burst", [1, 10, 50])
@pytest.mark.parametrize("word", ["whole", "decimal", "none"])
def test_an_unknown_limit_is_found_and_used(burst: int, word: str) -> None:
    """300 asks against 50 a second, unknown to us: all answered, nine tenths of the limit used, few refused."""

    async def main(clock: Callable[[], float]) -> tuple[float, Server]:
        server = Server(clock, burst=burst, word=word)
        return await run(clock, server, Limits()), server

    seconds, server = virtually(main)
    assert 300 / seconds >= 45
    assert len(server.refused) / len(server.starts) < 0.1


@pytest.mark.parametrize("burst", [1, 10, 50])
def test_a_given_limit_is_used_and_never_met(burst: int) -> None:
    """300 asks against 50 a second, given as 3,000 a minute: at least 47.5 a second, and hardly one refusal."""

    async def main(clock: Callable[[], float]) -> tuple[float, Server]:
        server = Server(clock, burst=burst)
        return await run(clock, server, Limits(rpm=3000)), server

    seconds, server = virtually(main)
    assert 300 / seconds >= 47.5
    assert len(server.refused) <= 2


def test_a_limit_that_rises_is_found_again() -> None:
    """A server that takes four times as much after a while is used to nine tenths of it within a minute."""

    async def main(clock: Callable[[], float]) -> list[float]:
        server = Server(clock)
        asyncio.get_running_loop().call_later(10, setattr, server, "rate", 200.0)
        await run(clock, server, Limits(), asks=10_000)
        return server.starts

    starts = virtually(main)
    assert sum(60 <= moment < 65 for moment in starts) >= 0.9 * 5 * 200


def test_a_given_limit_that_is_too_high_is_corrected() -> None:
    """Given twice what the server takes, the rate is learnt: few of the later requests are refused."""

    async def main(clock: Callable[[], float]) -> Server:
        server = Server(clock)
        await run(clock, server, Limits(rpm=6000), asks=3000)
        return server

    server = virtually(main)
    assert 3000 / server.starts[-1] >= 45
    assert sum(moment > 10 for moment in server.refused) / sum(moment > 10 for moment in server.starts) < 0.05


def test_a_limit_that_falls_is_kept_soon() -> None:
    """A server that takes a quarter after a while is asked at about that rate within five seconds."""

    async def main(clock: Callable[[], float]) -> list[float]:
        server = Server(clock)
        asyncio.get_running_loop().call_later(10, setattr, server, "rate", 12.5)
        await run(clock, server, Limits(), asks=800)
        return server.starts

    starts = virtually(main)
    assert 9 <= sum(15 <= moment < 20 for moment in starts) / 5 <= 15


@given(st.floats(6, 6000), st.integers(1, 40), st.integers(1, 20), st.floats(0.01, 3))
@settings(max_examples=40, deadline=None)
def test_given_limits_are_never_passed(rpm: float, workers: int, concurrency: int, latency: float) -> None:
    """Whatever is given: never more requests in any window than the rate allows, never more under way; all finish."""

    async def main(clock: Callable[[], float]) -> Server:
        server = Server(clock, rate=1e6, burst=10_000, latency=latency)
        await run(clock, server, Limits(rpm=rpm, concurrency=concurrency), asks=60, workers=workers)
        return server

    server = virtually(main)
    assert len(server.starts) == 60
    assert server.peak <= min(concurrency, workers)
    for place, first in enumerate(server.starts):
        for count, last in enumerate(server.starts[place:], 1):
            assert count <= (last - first + 0.1) * rpm / 60 + 1 + 1e-3


def test_tokens_are_kept_and_corrected() -> None:
    """6,000 tokens a minute take 600 at once and then 100 a second; what an answer took counts."""

    async def main(clock: Callable[[], float]) -> list[float]:
        pace, moments = Pace(Limits(tpm=6000), clock=clock, sleep=asyncio.sleep), []
        for _ in range(5):
            async with pace.slot(tokens=300) as slot:
                moments.append(clock())
                slot.done(600)
        async with pace.slot(tokens=50_000) as slot:
            moments.append(clock())
            slot.refused()
        async with pace.slot(tokens=50_000):
            moments.append(clock())
        return moments

    moments = virtually(main)
    assert moments == pytest.approx([0, 3, 9, 15, 21, 30, 30], abs=0.2)


def test_who_comes_first_starts_first() -> None:
    """Waiters start in the order in which they came, and none is passed by."""

    async def main(clock: Callable[[], float]) -> list[int]:
        pace, order = Pace(Limits(concurrency=2, rpm=600), clock=clock, sleep=asyncio.sleep), []

        async def work(number: int) -> None:
            async with pace.slot():
                order.append(number)
                await asyncio.sleep(random.Random(number).uniform(0, 1))

        await asyncio.gather(*(work(number) for number in range(40)))
        return order

    assert virtually(main) == list(range(40))


@given(st.lists(st.floats(0, 3), min_size=1, max_size=20))
@settings(max_examples=40, deadline=None)
def test_cancelled_waiters_leave_nothing_behind(moments: list[float]) -> None:
    """Asks cancelled at any moment, in line or under way, give back their places; the next one starts."""

    async def main(clock: Callable[[], float]) -> int:
        pace = Pace(Limits(concurrency=2, rpm=300), clock=clock, sleep=asyncio.sleep)

        async def work() -> None:
            async with pace.slot():
                await asyncio.sleep(0.5)

        tasks = [asyncio.create_task(work()) for _ in moments]
        for task, moment in zip(tasks, moments, strict=True):
            asyncio.get_running_loop().call_later(moment, task.cancel)
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.wait_for(work(), 5)
        return pace.in_flight

    assert virtually(main) == 0


def test_two_event_loops_share_one_pace() -> None:
    """Asks of two event loops in two threads are never more under way together than is given, and all finish."""
    pace, guard = Pace(Limits(concurrency=3)), threading.Lock()
    counts = {"now": 0, "peak": 0, "done": 0}

    def change(by: int) -> None:
        with guard:
            counts["now"] += by
            counts["peak"] = max(counts["peak"], counts["now"])
            counts["done"] += by < 0

    async def work() -> None:
        async with pace.slot():
            change(1)
            await asyncio.sleep(0.001)
            change(-1)

    async def main() -> None:
        await asyncio.gather(*(work() for _ in range(30)))

    threads = [threading.Thread(target=lambda: asyncio.run(main())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == {"now": 0, "peak": counts["peak"], "done": 60}
    assert counts["peak"] <= 3


def test_a_short_wait_holds_one_and_a_long_one_all() -> None:
    """One that is told to wait a second waits by itself; one that is told to wait twenty holds up everybody."""

    async def main(clock: Callable[[], float], wait: float) -> float:
        pace = Pace(clock=clock, sleep=asyncio.sleep)
        async with pace.slot() as slot:
            slot.refused(wait)
        async with pace.slot():
            return clock()

    assert virtually(lambda clock: main(clock, 1.0)) < 0.1
    assert virtually(lambda clock: main(clock, 20.0)) == pytest.approx(20.0)


def test_headers_hold_all() -> None:
    """An answer that says that nothing is left holds up the next request; a hold of a day is not begun."""

    async def main(clock: Callable[[], float]) -> tuple[float, float]:
        pace = Pace(clock=clock, sleep=asyncio.sleep)
        pace.heed({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "30s"})
        first = pace.left(clock())
        pace.heed({"ratelimit-remaining": "0", "ratelimit-reset": "86400"})
        return first, pace.left(clock())

    assert virtually(main) == (30.0, 30.0)


def test_waking_in_time() -> None:
    """The sleep of a pace never ends early."""

    async def main() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await exactly(0.012)
        return loop.time() - began

    assert asyncio.run(main()) >= 0.012


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1s"}, 1.0),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"}, 360.0),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "120ms"}, 0.12),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1h2m3.5s"}, 3723.5),
        ({"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "1s"}, 0.0),
        (
            {
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "60s",
                "x-ratelimit-limit-requests": "500",
            },
            6.0,
        ),
        (
            {
                "anthropic-ratelimit-requests-remaining": "0",
                "anthropic-ratelimit-requests-reset": "2001-09-09T01:46:50Z",
            },
            10.0,
        ),
        (
            {
                "anthropic-ratelimit-tokens-remaining": "0",
                "anthropic-ratelimit-tokens-reset": "2001-09-09T03:46:45+02:00",
            },
            5.0,
        ),
        ({"ratelimit-remaining": "0", "ratelimit-reset": "7"}, 7.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1000000009"}, 9.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1000000009500"}, 9.5),
        ({"ratelimit-remaining": "0", "ratelimit-reset": "soon"}, 0.0),
        ({"ratelimit-remaining": "0"}, 0.0),
        ({"ratelimit-remaining": "none", "ratelimit-reset": "7"}, 0.0),
        ({}, 0.0),
    ],
)
def test_what_is_left_is_read(headers: Mapping[str, str], seconds: float) -> None:
    """Each family of headers holds until its reset when nothing is left; anything else holds nobody."""
    assert hints(headers, now=lambda: 1_000_000_000.0) == pytest.approx(seconds)


@given(st.text(max_size=40), st.text(max_size=40))
@settings(max_examples=200, deadline=None)
def test_any_hint_is_read_without_an_error(reset: str, limit: str) -> None:
    """Headers may hold anything; the hold is a number of seconds from zero up."""
    for name in ("x-ratelimit-{}-requests", "ratelimit-{}"):
        parts = {name.format("remaining"): "0", name.format("reset"): reset, name.format("limit"): limit}
        assert 0 <= hints(parts) < math.inf


@pytest.mark.parametrize("table", [{"rpm": 3000, "concurrency": "8"}, {"rpm": "3000", "concurrency": 8.0, "else": []}])
def test_limits_are_read_from_a_table(table: Mapping[str, object]) -> None:
    """Numbers may be text, as they come from the environment; other keys are others' matter."""
    assert Limits.of(table) == Limits(rpm=3000, concurrency=8)
    assert Limits.of({}) == Limits()


@pytest.mark.parametrize("name", ["rpm", "tpm", "concurrency"])
@pytest.mark.parametrize("value", [0, -1, "many", "", True, math.nan, math.inf, "nan", [], {}])
def test_what_is_no_limit_is_refused(name: str, value: object) -> None:
    """A limit is a number above zero; anything else is said in one line, before any request."""
    with pytest.raises(ConfigurationError, match=name):
        Limits.of({name: value})
    with pytest.raises(ConfigurationError, match="whole number"):
        Limits.of({"concurrency": 1.5})
