"""Many documents on one event loop: a bounded number at a time, listed lazily, results as they come."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from extractor.models.pace import standing_by

AT_ONCE = 0.01
"""Seconds in which items are listed together."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class LeftForLater(Exception):
    """Raised by a handler that leaves its item for a later run: it has no result in this one, and is no failure."""


class Stop:
    """Asks a run to end: what is in flight is finished (``drain``), or given up (``now``); from any thread."""

    def __init__(self) -> None:
        self.reason = ""
        self._tasks: set[asyncio.Task[object]] = set()
        self._idle: set[asyncio.Task[object]] = set()

    def drain(self, reason: str) -> None:
        """Take no further document, and leave for later those that only wait for their turn with a model, which a rate
        limit may keep waiting for hours; the first reason stands."""
        self.reason = self.reason or reason
        for task in tuple(self._idle):
            task.get_loop().call_soon_threadsafe(self._let_go, task)

    def now(self, reason: str) -> None:
        """Give up what is in flight as well; what was paid for is kept."""
        self.drain(reason)
        for task in tuple(self._tasks):
            task.get_loop().call_soon_threadsafe(task.cancel)

    @contextmanager
    def standing_by(self) -> Iterator[None]:
        """Around a wait of the present task with no request under way: it is given up when the run drains.

        :raises LeftForLater: when the run drains already.
        """
        task = asyncio.current_task()
        if self.reason:
            raise LeftForLater
        if task is None or task in self._idle:
            yield
            return
        self._idle.add(task)
        try:
            yield
        finally:
            self._idle.discard(task)

    def _let_go(self, task: asyncio.Task[object]) -> None:
        if task in self._idle:  # else its turn has come meanwhile
            task.cancel()

    def watch(self, task: asyncio.Task[object]) -> None:
        """Cancel this task if it comes to that."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def work(
    items: Iterable[Item], handle: Callable[[Item], Awaitable[Result]], *, workers: int, stop: Stop | None = None
) -> AsyncGenerator[Result, None]:
    """Handle every item, ``workers`` at a time; yields results in the order in which they are ready.

    An exception of ``handle`` ends the run: what a document can have wrong with it is a result, not an exception. Only
    of what is :class:`LeftForLater` nothing is said.
    """
    stop = stop or Stop()
    waiting: Iterator[Item] | None = iter(items)
    listed: deque[Item] = deque()
    running: dict[asyncio.Task[Result], None] = {}
    try:
        while True:
            while (listed or waiting is not None) and len(running) < workers and not stop.reason:
                if not listed and waiting is not None:
                    listed += await asyncio.to_thread(_some, waiting, workers)
                if not listed:
                    waiting = None
                    break
                item = listed.popleft()
                task = asyncio.ensure_future(_handled(handle, item, stop))
                stop.watch(task)
                running[task] = None
            if not running:
                return
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in [one for one in running if one in done]:  # in the order of their beginning
                del running[task]
                if not task.cancelled() and not isinstance(task.exception(), LeftForLater):
                    yield task.result()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def _some(waiting: Iterator[Item], most: int) -> list[Item]:
    """The next items: those that come at once, so that a thread is not taken for each; a slow one comes alone."""
    items: list[Item] = []
    until = time.monotonic() + AT_ONCE
    for item in waiting:
        items.append(item)
        if len(items) >= most or time.monotonic() > until:
            break
    return items


async def _handled(handle: Callable[[Item], Awaitable[Result]], item: Item, stop: Stop) -> Result:
    standing_by.set(stop.standing_by)  # of this task alone
    return await handle(item)
