"""The child process that runs llama.cpp: ``python -m extractor.models.local_server``.

It has no way to be stopped but to end, so it has a process of its own, which dies with its parent: its standard input
closes when the parent is gone, however the parent went. The first line of standard input is its configuration (the
API key is never on a command line); its one line of output is the address that it serves, or the last lines of
llama.cpp's log when the model cannot be loaded. It imports nothing of this package, so that it starts at once.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import threading
import time
from typing import Any

LOG_BYTES = 4096
"""How much of the log of a failed start is passed on."""

LOOK_SECONDS = 1.0
"""How often the parent is looked for."""


def main() -> None:
    """Load the model, say where it is served, and live as long as the parent."""
    parent = os.getppid()
    settings = json.loads(sys.stdin.readline())
    _die_with(parent)
    say = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    with tempfile.TemporaryFile() as log:
        _send_output_to(log.fileno())
        address, reason = _serve(settings)
        if address is None:
            say.write(json.dumps({"error": "llama.cpp cannot load it", "log": _tail(log.fileno()), "reason": reason}))
            say.write("\n")
            say.close()
            os._exit(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    _send_output_to(nowhere)  # the log grows with every question, and nobody reads it
    say.write(json.dumps({"address": address}) + "\n")
    say.close()
    threading.Event().wait()


def _serve(settings: dict[str, Any]) -> tuple[str | None, str]:
    """The address that the model is served at; without one, why there is none."""
    try:
        import xllamacpp
    except ImportError as error:  # installed, but not for this machine
        return None, f"{type(error).__name__}: {error}"
    params = xllamacpp.CommonParams()
    params.model.path = settings["path"]
    params.n_ctx = settings["context"]
    params.n_parallel = 1
    params.n_gpu_layers = 0
    params.cache_ram_mib = 512
    params.ctx_shift = False
    params.ui = False
    params.port = 0
    params.api_keys = [settings["key"]]
    with contextlib.suppress(AttributeError, TypeError):
        params.cors_origins = settings["origin"]
    params.cpuparams.n_threads = settings["threads"]
    params.cpuparams_batch.n_threads = settings["threads"] + 1  # reading a prompt does not suffer from company
    try:
        server = xllamacpp.Server(params)
    except Exception as error:  # whatever it raises for a file that is no model: the parent says it in one line
        return None, f"{type(error).__name__}: {error}"
    _kept.append(server)
    return server.listening_address, ""


_kept: list[Any] = []
"""The server serves for as long as its object lives."""


def _die_with(parent: int) -> None:
    """End with the parent: when its end of the pipe closes, or when this process has another parent.

    The pipe alone will not do: a process that was forked off the parent holds it open. Nor will ``PR_SET_PDEATHSIG``:
    it follows the *thread* that started this process, and a worker thread ends long before its process.
    """

    def listen() -> None:
        with contextlib.suppress(Exception):
            while sys.stdin.buffer.read(4096):
                pass
        os._exit(0)

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK_SECONDS)
        os._exit(0)

    for watch in (listen, look):
        threading.Thread(target=watch, daemon=True).start()


def _send_output_to(descriptor: int) -> None:
    """llama.cpp writes to the process's own descriptors; none of it is for the user's terminal."""
    for stream in (sys.stdout.fileno(), sys.stderr.fileno()):
        os.dup2(descriptor, stream)


def _tail(descriptor: int) -> str:
    size = os.lseek(descriptor, 0, os.SEEK_END)
    os.lseek(descriptor, max(0, size - LOG_BYTES), os.SEEK_SET)
    return os.read(descriptor, LOG_BYTES).decode("utf-8", "replace")


if __name__ == "__main__":
    main()
