"""One llama.cpp server for all workers and threads of this process."""

from __future__ import annotations

import atexit
import contextlib
import http.client
import importlib.util
import json
import logging
import os
import re
import secrets
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from extractor.errors import MissingExtra, ModelError
from extractor.models import local_server

CONTEXT = 8192
"""Tokens of question and answer together: enough for about four pages."""

START_SECONDS = 300
"""A cold disk takes its time with a gigabyte."""


@dataclass(slots=True)
class Server:
    """A running server: where it listens, and the key that it wants."""

    process: subprocess.Popen[str]
    address: str
    key: str

    @property
    def is_alive(self) -> bool:
        """Whether its process still runs."""
        return self.process.poll() is None

    def has_ended(self, seconds: float) -> bool:
        """Whether it ends within so many seconds: a process that was killed is not gone at once."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=seconds)
        return not self.is_alive

    def stop(self) -> None:
        """End it."""
        with contextlib.suppress(OSError):
            self.process.kill()
            self.process.wait(timeout=10)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def connect(self, timeout: float) -> http.client.HTTPConnection:
        """A connection to it."""
        host, _, port = self.address.removeprefix("http://").partition(":")
        return http.client.HTTPConnection(host, int(port), timeout=timeout)


_servers: dict[tuple[int, str], Server] = {}
"""By process and file: a forked process shares no server with its parent, which would die with the wrong one."""

_lock = threading.Lock()


def server_for(path: Path) -> Server:
    """The server of a model file; started at first use, and again if it has died.

    :raises MissingExtra: when llama.cpp is not installed.
    :raises ModelError: when the file cannot be loaded.
    """
    if importlib.util.find_spec("xllamacpp") is None:
        raise MissingExtra("xllamacpp, which runs local models,", "local")
    with _lock:
        key = (os.getpid(), str(path))
        known = _servers.get(key)
        if known is not None and known.is_alive:
            return known
        if known is not None:
            known.stop()
        _servers[key] = _start(path)
        return _servers[key]


def stop_all() -> None:
    """End every server of this process."""
    with _lock:
        for owner, path in list(_servers):
            if owner == os.getpid():
                _servers.pop((owner, path)).stop()


atexit.register(stop_all)


def threads() -> int:
    """All cores but one: with as many threads as cores, anything else that runs slows generation to a crawl."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, available - 1)


def _start(path: Path) -> Server:
    key = secrets.token_urlsafe(24)
    settings: dict[str, Any] = {
        "path": str(path), "context": CONTEXT, "threads": threads(), "key": key, "origin": "http://127.0.0.1",
    }  # fmt: skip
    # -P and by its file: a module that lies in the working folder is not ours to run
    process = subprocess.Popen(  # noqa: S603 - fixed words
        [sys.executable, "-P", str(local_server.__file__)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        start_new_session=True,  # Ctrl-C is for us: what is in flight is to be finished
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(OSError):  # it ended at once: there will be no line to read
        process.stdin.write(json.dumps(settings) + "\n")
        process.stdin.flush()
    patience = threading.Timer(START_SECONDS, process.kill)
    patience.start()
    try:
        line = process.stdout.readline()
    finally:
        patience.cancel()
    said = json.loads(line) if line.startswith("{") else {}
    if "address" not in said:
        Server(process, "", key).stop()
        log = str(said.get("log", ""))
        logging.getLogger("extractor.models").debug("llama.cpp did not load %s: %s\n%s", path, said.get("reason"), log)
        found = re.search(r"unknown model architecture: '[\w.-]{1,40}'", log)
        raise ModelError(
            f"the model {path.name} cannot be loaded",
            hint=found[0] if found else "the file is broken, or memory is too small for it",
        )
    return Server(process, said["address"], key)
