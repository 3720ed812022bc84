"""One event loop of our own, in a thread of its own, for callers that have none or whose loop is busy.

``pipeline.extract`` in a notebook is called from within a running loop, and may be called any number of times. All
such calls share this loop, so that clients, limits and the local model's server are shared too.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from extractor.errors import UsageError

T = TypeVar("T")

LEAVE_SECONDS = 2.0

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_owner = 0


def loop() -> asyncio.AbstractEventLoop:
    """Our loop; started at first use, and anew in a forked process."""
    global _loop, _owner
    with _lock:
        if _loop is None or _owner != os.getpid():
            _loop, _owner = asyncio.new_event_loop(), os.getpid()
            threading.Thread(target=_loop.run_forever, name="extractor-loop", daemon=True).start()
            atexit.register(_leave, _loop, _owner)
        return _loop


def _leave(ours: asyncio.AbstractEventLoop, owner: int) -> None:
    """Close what is held open for the loop, such as connections to providers, before the interpreter goes."""
    if owner == os.getpid() and ours.is_running():
        closing = asyncio.run_coroutine_threadsafe(ours.shutdown_asyncgens(), ours)
        with contextlib.suppress(Exception):  # on the way out nobody can do anything about it
            closing.result(LEAVE_SECONDS)


def call(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on our loop and wait for it; an interrupt cancels it."""
    ours = loop()
    with contextlib.suppress(RuntimeError):
        if asyncio.get_running_loop() is ours:  # it would wait for itself
            work.close()
            raise UsageError("this is called from within an extraction", hint="use the async twin: await ….aextract(…)")
    future = asyncio.run_coroutine_threadsafe(work, ours)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise
