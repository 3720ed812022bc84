"""Many documents on one event loop: a bounded number at a time, listed lazily, results as they come."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from typing import TypeVar

from extractor.models.pace import standing_by

AT_ONCE = 0.01
"""Seconds in which items are listed together."""

Item = TypeVar("Item")
Result = TypeVar("Result")


IN_HAND = 2
"""Items in hand for each that may be at work: while some ask, others are read, and others are written."""


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

    At a time means: within :func:`at_work`, and until a reply of it is safe. What stands before and after it, reading
    and writing, is done for as many items again.

    An exception of ``handle`` ends the run: what a document can have wrong with it is a result, not an exception. Only
    of what is :class:`LeftForLater` nothing is said.
    """
    stop = stop or Stop()
    waiting: Iterator[Item] | None = iter(items)
    listed: deque[Item] = deque()
    running: dict[asyncio.Task[Result], Place] = {}
    places = asyncio.Semaphore(workers)
    try:
        while True:
            while (listed or waiting is not None) and len(running) < IN_HAND * workers and not stop.reason:
                if not listed and waiting is not None:
                    listed += await asyncio.to_thread(_some, waiting, workers)
                if not listed:
                    waiting = None
                    break
                item = listed.popleft()
                place = Place(places)
                task = asyncio.ensure_future(_handled(handle, item, stop, place))
                stop.watch(task)
                running[task] = place
            if not running:
                return
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in [one for one in running if one in done]:  # in the order of their beginning
                place = running.pop(task)
                if not task.cancelled() and not isinstance(task.exception(), LeftForLater):
                    yield task.result()
                place.give_back()
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


async def _handled(handle: Callable[[Item], Awaitable[Result]], item: Item, stop: Stop, place: Place) -> Result:
    standing_by.set(stop.standing_by)  # of this task alone, as the next one
    _place.set(place)
    return await handle(item)


class Place:
    """One item's place among those at work: held from a question until its reply is safe."""

    def __init__(self, places: asyncio.Semaphore) -> None:
        self._places = places
        self._is_held = False
        self._is_asking = False
        self._is_kept = False
        self._unsafe = 0

    def keep(self) -> None:
        """Keep it until the item's result is told, which may be the end of the run."""
        self._is_kept = self._is_held

    def owe(self) -> Callable[[], None]:
        """Keep it until what is returned is called, from any thread: then what was answered is safe. So a crash can
        lose no more replies than there are places."""
        self._unsafe += 1
        loop = asyncio.get_running_loop()

        def safe() -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits for a place any more
                loop.call_soon_threadsafe(self._safe)

        return safe

    async def take(self) -> None:
        """Wait for it."""
        if not self._is_held:
            with standing_by.get()():
                await self._places.acquire()
            self._is_held = True
        self._is_asking = True

    def leave(self) -> None:
        """Give it back, unless it is kept or a reply is not safe yet."""
        self._is_asking = False
        if not self._is_kept and not self._unsafe:
            self.give_back()

    def _safe(self) -> None:
        self._unsafe -= 1
        if not self._is_asking:
            self.leave()

    def give_back(self) -> None:
        """Give it back, if it is held."""
        if self._is_held:
            self._is_held = self._is_kept = False
            self._places.release()


_place: ContextVar[Place | None] = ContextVar("place", default=None)


@asynccontextmanager
async def at_work() -> AsyncGenerator[Place, None]:
    """Around what only so many items of a run may do at a time as it has workers.

    :raises LeftForLater: when the run drains before there is a place.
    """
    place = _place.get() or Place(asyncio.Semaphore())  # outside a run nobody else waits
    await place.take()
    try:
        yield place
    finally:
        place.leave()
