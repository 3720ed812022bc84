"""A call in a thread of its own.

The threads of a pool are waited for when the process ends: a call that hangs in one of them, in a user's function or in
an SDK that waits for its server, keeps us from leaving.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Caught(Generic[T]):
    """What came of a call, as a value: a future refuses to carry a ``StopIteration``, and would never be done."""

    value: T | None = None
    error: BaseException | None = None

    @classmethod
    def of(cls, work: Callable[[], T]) -> Caught[T]:
        """Call it."""
        try:
            return cls(work())
        except BaseException as error:
            return cls(error=error)

    def result(self) -> Any:
        """What the call returned.

        :raises BaseException: what it raised.
        """
        if self.error is not None:
            raise self.error
        return self.value


async def in_own_thread(work: Callable[[], T], name: str) -> T:
    """Call it in a daemon thread that begins at once and sees the caller's context variables.

    :param name: of the thread.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Caught[T]] = loop.create_future()
    surroundings = contextvars.copy_context()

    def settle(caught: Caught[T]) -> None:
        if not done.done():  # else it was given up meanwhile
            done.set_result(caught)

    def run() -> None:
        caught = surroundings.run(Caught.of, work)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, caught)

    threading.Thread(target=run, name=name, daemon=True).start()
    result: T = (await done).result()
    return result
