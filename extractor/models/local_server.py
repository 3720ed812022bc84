"""The child process that runs llama.cpp: ``python -m extractor.models.local_server``.

It has no way to be stopped but to end, so it has a process of its own, which dies with its parent: its standard input
closes when the parent is gone, however the parent went. The first line of standard input is its configuration (the
API key is never on a command line); its one line of output is the address that it serves.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from typing import Any


def main() -> None:
    """Load the model, say where it is served, and live as long as the parent."""
    settings = json.loads(sys.stdin.readline())
    _die_with_parent()
    say = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    _silence()
    server = _serve(settings)
    if server is not None:
        say.write(json.dumps({"address": server.listening_address}) + "\n")
    else:
        say.write(json.dumps({"error": "llama.cpp cannot load it"}) + "\n")
    say.close()
    if server is None:
        os._exit(1)
    threading.Event().wait()


def _serve(settings: dict[str, Any]) -> Any:
    import xllamacpp

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
        return xllamacpp.Server(params)
    except Exception:  # whatever it raises for a file that is no model: the parent says it in one line
        return None


def _die_with_parent() -> None:
    def watch() -> None:
        with contextlib.suppress(Exception):
            while sys.stdin.buffer.read(4096):
                pass
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


def _silence() -> None:
    """llama.cpp writes to the process's own descriptors; none of it is for the user's terminal."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (sys.stdout.fileno(), sys.stderr.fileno()):
        os.dup2(nowhere, descriptor)


if __name__ == "__main__":
    main()
