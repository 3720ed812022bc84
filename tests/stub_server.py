"""A server on the loopback that speaks the formats of model providers and misbehaves on demand.

In a test::

    with StubServer(lambda body: completion(calls=[("create_invoice", {"total": "1.00"})])) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)

``answer`` is called with the parsed body of each request; :func:`in_turn` answers from a list, :func:`by_request` hands
the whole :class:`Received` over, and one ``Said``, ``Fault`` or ``Answer`` in its place answers everything. A ``Said``
goes out in the format of the path: OpenAI chat completions (also on Azure's paths) and responses, Anthropic messages,
Gemini ``generateContent``, Bedrock ``converse``. Everything that arrived is in ``server.requests``. As a process of its
own, for tests that kill the client and for benchmarks::

    python tests/stub_server.py --answer module:function --latency 0.2 --log requests.jsonl
    python tests/stub_server.py --rate 50 --capacity 50 --retry-after integer --error-share 0.05 --seed 1

It prints its base URL as first line, appends each request to the log, and ends when its standard input closes or it
is terminated; when the input closed, its last line is what became of the requests, as JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from stub_answers import HTML, Answer, Fault, Reply, Said, completion, error, first_offer, in_turn
from stub_behaviour import Behaviour, Decision, Temper
from stub_connection import Connection
from stub_received import Received


@dataclass(frozen=True, slots=True)
class ByRequest:
    """An answer function that wants the whole request, not only its body."""

    answer: Callable[[Received], Reply]


def by_request(answer: Callable[[Received], Reply]) -> ByRequest:
    """Answer by the whole request; also a decorator, for functions named by ``--answer``."""
    return ByRequest(answer)


Answering = Callable[[dict[str, Any]], Reply] | ByRequest | Reply


class StubServer:
    """A stub in a thread of its own; a context manager.

    :param answer: called with each parsed body, in the server's event loop: it must not block. A single answer serves
        every request, without reading it.
    :param latency: seconds added to every answer.
    :param log: a file to which each request is appended as one line of JSON.
    :param behaviour: what goes wrong, and how often.
    :param keep: whether ``requests`` fills; a long benchmark has no use for it.
    :raises Exception: on leaving, the first error that ``answer`` raised, if any.
    """

    def __init__(
        self,
        answer: Answering = first_offer,
        *,
        latency: float = 0.0,
        log: Path | None = None,
        behaviour: Behaviour = Behaviour(),  # noqa: B008 (frozen: one instance may serve every call)
        keep: bool = True,
    ) -> None:
        self.answer = answer
        self.latency = latency
        self.log = log
        self.keep = keep
        self.requests: list[Received] = []
        self.peak = 0
        """The most requests that were being answered at one time."""
        self.port = 0
        self._open = 0
        self._temper = Temper(behaviour, self._usual)
        self._failures: list[Exception] = []
        self._lines: TextIO | None = None
        self._connections: set[Connection] = set()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._done: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="stub-server", daemon=True)

    @property
    def url(self) -> str:
        """The root, which Anthropic's, Google's, Azure's and Amazon's clients take as their base URL."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        """What a client takes as ``OPENAI_BASE_URL``."""
        return f"{self.url}/v1"

    @property
    def tally(self) -> Counter[str]:
        """Requests by what became of them: ``answered``, ``bad``, ``limited``, ``invalid``, and troubles by name."""
        return self._temper.tally

    def __enter__(self) -> StubServer:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._done is not None
        self._loop.call_soon_threadsafe(self._done.set)
        self._thread.join()
        if self._failures and problem is None:
            raise self._failures[0]

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._done = asyncio.Event()
        server = await self._loop.create_server(lambda: Connection(self), "127.0.0.1", 0, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._done.wait()
        server.close()
        for connection in list(self._connections):
            connection.close()
        await asyncio.sleep(0)  # closed sockets leave the loop in its next turn
        if self._lines is not None:
            self._lines.close()

    def opened(self, connection: Connection) -> None:
        """A client came."""
        self._connections.add(connection)

    def closed(self, connection: Connection) -> None:
        """A client went."""
        self._connections.discard(connection)

    def begun(self, received: Received) -> Decision:
        """Decide about one request; ``ended`` is called when its answer is due or its client gone."""
        if self.keep:
            self.requests.append(received)
        self._open += 1
        self.peak = max(self.peak, self._open)
        try:
            self._write(received)
            return self._temper.decide(received, self._loop.time())
        except Exception as failure:  # raised again on leaving the server, where the test sees it
            self.failed(failure)
            return Decision(error(400, "stub_failed"))

    def ended(self) -> None:
        """One request less is being answered."""
        self._open -= 1

    def failed(self, problem: Exception) -> None:
        """Keep an error for whoever leaves the server."""
        self._failures.append(problem)

    def _write(self, received: Received) -> None:
        if self.log is None:
            return
        if self._lines is None:
            self._lines = self.log.open("a", encoding="utf-8", buffering=1)
        self._lines.write(json.dumps({"path": received.path, "body": received.body}) + "\n")

    def _usual(self, received: Received) -> Reply:
        if isinstance(self.answer, Answer | Said | Fault):
            return self.answer
        if isinstance(self.answer, ByRequest):
            return self.answer.answer(received)
        return self.answer(received.body)


def _named(spec: str) -> Any:
    module, _, name = spec.partition(":")
    return getattr(importlib.import_module(module), name)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="A stub of a model provider's server on the loopback.")
    parser.add_argument("--answer", default="stub_server:first_offer", help="module:function from a body to an answer")
    parser.add_argument("--log", type=Path, help="file to which each request is appended as a line of JSON")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds added to every answer")
    parser.add_argument("--reverse", type=int, default=0, help="of so many requests in a row later ones wait less")
    parser.add_argument("--rate", type=float, help="requests a second that a token bucket lets through")
    parser.add_argument("--capacity", type=float, help="of the bucket; by default one second's worth")
    parser.add_argument("--retry-after", choices=["integer", "decimal", "ms", "none"], default="integer")
    parser.add_argument("--no-limit-headers", dest="limit_headers", action="store_false")
    parser.add_argument("--error-statuses", type=int, nargs="+", default=[500, 529])
    for trouble in ("error", "cut", "html", "empty", "truncated", "refusal"):
        parser.add_argument(f"--{trouble}-share", type=float, default=0.0, help="between 0 and 1")
    parser.add_argument("--cut", choices=["before", "midway", "either"], default="either")
    parser.add_argument("--bad-first", help="module:function from a Received to an answer, or None for the usual one")
    parser.add_argument("--bad-share", type=float, default=1.0, help="of opening questions that get --bad-first")
    parser.add_argument("--seed", type=int, default=0)
    return parser


def main(arguments: Iterable[str] | None = None) -> None:
    """Serve until standard input closes."""
    options = vars(_parser().parse_args(None if arguments is None else list(arguments)))
    options["error_statuses"] = tuple(options["error_statuses"])
    options["bad_first"] = _named(options["bad_first"]) if options["bad_first"] else None
    behaviour = Behaviour(**{entry.name: options[entry.name] for entry in fields(Behaviour)})
    with StubServer(_named(options["answer"]), log=options["log"], behaviour=behaviour, keep=False) as server:
        print(server.base_url, flush=True)
        sys.stdin.read()
        print(json.dumps({**server.tally, "peak": server.peak, "cpu_seconds": time.process_time()}), flush=True)


if __name__ == "__main__":
    main()


__all__ = [
    "HTML",
    "Answer",
    "Answering",
    "Behaviour",
    "ByRequest",
    "Fault",
    "Received",
    "Said",
    "StubServer",
    "by_request",
    "completion",
    "error",
    "first_offer",
    "in_turn",
    "main",
]
