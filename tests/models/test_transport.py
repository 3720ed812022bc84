"""The one retry layer, on a clock of its own: no test here waits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from email.utils import formatdate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extractor.models.pace import Limits
from extractor.models.transport import Pace, Patience, Trouble, persist, retry_after

DOWN = Trouble("unavailable", "the server answered 500")
LIMITED = Trouble("rate_limited", "the server answered 429", spends=False, wait=20.0)
REFUSED = Trouble("bad_request", "the server answered 400", passing=False)


class Clock:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    def patience(self, tries: int = 4, seconds: float = 600.0) -> Patience:
        return Patience(tries, seconds, sleep=self.sleep, clock=lambda: self.now)


class Server:
    """Answers from a list, the last answer for ever, and counts."""

    def __init__(self, *answers: str | Trouble) -> None:
        self.answers = list(answers)
        self.requests = 0

    async def __call__(self) -> str | Trouble:
        self.requests += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def ask(server: Server, clock: Clock, tries: int = 4, seconds: float = 600.0) -> str | Trouble:
    async def main() -> str | Trouble:
        return await persist(server, clock.patience(tries, seconds))

    return asyncio.run(main())


def test_an_answer_needs_one_request() -> None:
    """What is answered at once is asked once, without a pause."""
    clock, server = Clock(), Server("yes")
    assert ask(server, clock) == "yes"
    assert (server.requests, clock.pauses) == (1, [])


def test_four_requests_in_all() -> None:
    """Trouble that does not pass takes exactly four requests, and says so."""
    clock, server = Clock(), Server(DOWN)
    answer = ask(server, clock)
    assert isinstance(answer, Trouble)
    assert answer.kind == "unavailable"
    assert "gave up after 4 requests" in answer.cause
    assert server.requests == 4


def test_pauses_grow_with_full_jitter() -> None:
    """Each pause lies between nothing and a bound that doubles."""
    clock = Clock()
    ask(Server(DOWN), clock, tries=6)
    assert len(clock.pauses) == 5
    assert all(0 <= pause <= 2**place for place, pause in enumerate(clock.pauses))
    assert len(set(clock.pauses)) == 5


def test_what_cannot_pass_is_asked_once() -> None:
    """A refused request is not repeated, and its cause is left as it is."""
    server = Server(REFUSED)
    assert ask(server, Clock()) == REFUSED
    assert server.requests == 1


def test_a_rate_limit_spends_no_try() -> None:
    """Ten rate limits and three failures are followed by the answer; the waits are those that the server asked for."""
    clock, server = Clock(), Server(*[LIMITED] * 10, *[DOWN] * 3, "yes")
    assert ask(server, clock) == "yes"
    assert server.requests == 14
    assert all(20 <= pause <= 21 for pause in clock.pauses[:10])


def test_a_rate_limit_ends_with_the_time() -> None:
    """A rate limit is waited out until the time limit, never beyond it."""
    clock, server = Clock(), Server(LIMITED)
    answer = ask(server, clock, seconds=100)
    assert isinstance(answer, Trouble)
    assert answer.kind == "rate_limited"
    assert clock.now <= 100
    assert server.requests == 5


def test_a_wait_beyond_our_patience_ends_at_once() -> None:
    """A server that asks for a day gets no second request, and no pause is begun."""
    clock, server = Clock(), Server(Trouble("rate_limited", "429", spends=False, wait=86400.0))
    answer = ask(server, clock)
    assert isinstance(answer, Trouble)
    assert "86400" in answer.cause
    assert (server.requests, clock.pauses) == (1, [])


def test_one_ask_that_is_told_to_wait_holds_up_the_others() -> None:
    """Sixty asks over one pace meet a limit of ten a window: few but the first burst are refused."""
    window: list[float] = []
    refusals = 0

    async def send() -> str | Trouble:
        nonlocal refusals
        window[:] = [moment for moment in window if moment > time.monotonic() - 0.1]
        if len(window) >= 10:
            refusals += 1
            return Trouble("rate_limited", "429", spends=False, wait=0.1)
        window.append(time.monotonic())
        return "yes"

    async def main() -> list[str | Trouble]:
        pace, patience = Pace(), Patience(first=0.1)
        return await asyncio.gather(*(persist(send, patience, pace) for _ in range(60)))

    assert asyncio.run(main()) == ["yes"] * 60
    assert refusals <= 90  # each by itself: 50 + 40 + 30 + 20 + 10


def test_a_held_pace_answers_without_a_request() -> None:
    """While the way is closed for longer than an ask's time, the ask ends as rate limited and sends nothing."""
    clock, pace, server = Clock(), Pace(), Server("yes")
    pace.hold(1000.0)

    async def main() -> str | Trouble:
        return await persist(server, clock.patience(seconds=600), pace)

    answer = asyncio.run(main())
    assert isinstance(answer, Trouble)
    assert answer.kind == "rate_limited"
    assert server.requests == 0


def test_tokens_are_counted_once_an_answer_came() -> None:
    """What was thought is taken before a request, given back when it is refused, and put right by the answer."""
    clock, server = Clock(), Server(LIMITED, "x" * 100)
    pace = Pace(Limits(tpm=6000), clock=lambda: clock.now, sleep=clock.sleep)

    async def main() -> float:
        assert await persist(server, clock.patience(), pace, 600, len) == "x" * 100
        began = clock.now
        async with pace.slot(tokens=600):
            return clock.now - began

    assert 0.9 <= asyncio.run(main()) <= 1.3


def test_standing_in_line_spends_no_patience() -> None:
    """Ten asks at one a minute are all answered, though the last stands in line longer than its patience."""
    clock, server = Clock(), Server("yes")
    pace = Pace(Limits(rpm=1), clock=lambda: clock.now, sleep=clock.sleep)

    async def main() -> list[str | Trouble]:
        return await asyncio.gather(*(persist(server, clock.patience(seconds=100), pace) for _ in range(10)))

    assert asyncio.run(main()) == ["yes"] * 10
    assert clock.now >= 539.5


def test_cancellation_passes() -> None:
    """A cancelled ask raises CancelledError, during a request as during a pause."""

    async def hang() -> str | Trouble:
        await asyncio.sleep(60)
        return "never"

    async def main(send: Callable[[], Awaitable[str | Trouble]]) -> None:
        async def ask() -> str | Trouble:
            return await persist(send, Patience(first=60.0))

        task = asyncio.create_task(ask())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main(hang))
    asyncio.run(main(Server(Trouble("unavailable", "503", wait=60.0))))


@given(st.lists(st.sampled_from([DOWN, LIMITED, REFUSED, "yes"]), min_size=1, max_size=30), st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_no_script_of_answers_breaks_the_bounds(script: list[str | Trouble], tries: int) -> None:
    """Whatever comes: failures never exceed the tries, the time limit holds, and the end is an answer or trouble."""
    clock, server = Clock(), Server(*script)
    answer = ask(server, clock, tries=tries, seconds=200)
    seen = (script + script[-1:] * server.requests)[: server.requests]
    assert seen.count(DOWN) <= tries
    assert clock.now <= 200
    assert answer == "yes" if seen[-1] == "yes" else isinstance(answer, Trouble)
    assert all(isinstance(met, Trouble) and met.passing for met in seen[:-1])


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": formatdate(1_000_030, usegmt=True)}, 30.0),
        ({"retry-after": formatdate(1_000_030).replace("-0000", "")}, 30.0),
        ({"retry-after": formatdate(999_000, usegmt=True)}, 0.0),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "9" * 400}, None),
        ({"retry-after": "Mon, 99 Foo 99999999 99:99:99 GMT"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_the_servers_word_is_read(headers: dict[str, str], seconds: float | None) -> None:
    """Seconds, milliseconds and dates are read as the wait they ask for; anything else is no word at all."""
    assert retry_after(headers, now=lambda: 1_000_000.0) == seconds


@given(st.text(max_size=60))
@settings(max_examples=200, deadline=None)
def test_any_header_is_read_without_an_error(text: str) -> None:
    """A header may hold anything; the wait is a number of seconds from zero up, or unknown."""
    wait = retry_after({"retry-after": text})
    assert wait is None or wait >= 0


def test_a_limit_that_never_ends_is_given_up_in_time() -> None:
    """Refused for ever, an ask ends when its patience with rate limits does, also where it mostly waits in line."""
    clock = Clock()
    refusing = Server(Trouble("rate_limited", "no", spends=False, wait=1.0))
    pace = Pace(clock=lambda: clock.now, sleep=clock.sleep)
    patience = Patience(limited=120.0, sleep=clock.sleep, clock=lambda: clock.now)

    async def main() -> list[str | Trouble]:
        return await asyncio.gather(*(persist(refusing, patience, pace) for _ in range(3)))

    for answer in asyncio.run(main()):
        assert isinstance(answer, Trouble)
        assert answer.kind == "rate_limited"
    assert 60 <= clock.now <= 400
