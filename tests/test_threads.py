"""Calls in threads of their own."""

from __future__ import annotations

import asyncio
import threading

import pytest

from extractor.threads import in_own_thread


def test_requests_are_in_flight_side_by_side() -> None:
    """Each request has a thread of its own: twelve that wait for each other are all answered."""
    together = threading.Barrier(12)

    async def main() -> list[int]:
        return await asyncio.gather(*(in_own_thread(lambda: together.wait(20.0), "waiting") for _ in range(12)))

    assert sorted(asyncio.run(main())) == list(range(12))


def test_a_request_that_is_given_up_holds_up_nothing() -> None:
    """The loop ends while the thread still waits, and the thread ends without a loop."""
    never, ended = threading.Event(), threading.Event()

    def wait() -> None:
        never.wait(20.0)
        ended.set()

    async def main() -> None:
        await asyncio.wait_for(in_own_thread(wait, "waiting"), 0.01)

    with pytest.raises(TimeoutError):
        asyncio.run(main())
    assert not ended.is_set()
    never.set()
    assert ended.wait(20.0)
