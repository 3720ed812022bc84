"""A server on the loopback that speaks OpenAI's wire format and misbehaves on demand.

In a test::

    with StubServer(lambda body: completion(calls=[("create_invoice", {"total": "1.00"})])) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)

``answer`` is called with the parsed body of each request and returns an :class:`Answer`; :func:`in_turn` answers from a
list. Everything that arrived is in ``server.requests``. As a process of its own, for tests that kill the client::

    python tests/stub_server.py --answer module:function --latency 0.2 --log requests.jsonl

It prints its base URL as first line, appends each request to the log, and ends when its standard input closes or it
is terminated.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import json
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server does about one request.

    :param body: an object is sent as JSON, text and bytes as they are.
    :param headers: sent beside the usual ones, and in their place where the names are the same.
    :param latency: seconds before anything is sent.
    :param cut: ``"before"`` closes the connection without a byte, ``"midway"`` after half of the body.
    :param drip: seconds between the single bytes of the body; 0 sends it in one piece.
    """

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    latency: float = 0.0
    cut: Literal["", "before", "midway"] = ""
    drip: float = 0.0


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it arrived; the names of ``headers`` are in lower case."""

    body: dict[str, Any]
    headers: dict[str, str]
    path: str


def completion(
    content: str | None = None,
    *,
    calls: Sequence[tuple[str, Any]] = (),
    finish_reason: str | None = None,
    refusal: str | None = None,
    usage: Mapping[str, Any] | None = None,
    latency: float = 0.0,
) -> Answer:
    """A well-formed answer. Arguments of ``calls`` that are not text are written as JSON; ids are ``call_0`` and on."""
    message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": refusal}
    if calls:
        message["tool_calls"] = [
            {
                "id": f"call_{position}",
                "type": "function",
                "function": {"name": name, "arguments": sent if isinstance(sent, str) else json.dumps(sent)},
            }
            for position, (name, sent) in enumerate(calls)
        ]
    choice = {"index": 0, "message": message, "finish_reason": finish_reason or ("tool_calls" if calls else "stop")}
    return Answer(
        {
            "id": "chatcmpl-stub",
            "object": "chat.completion",
            "created": 0,
            "model": "stub",
            "choices": [choice],
            "usage": dict(usage or {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}),
        },
        latency=latency,
    )


def error(
    status: int,
    code: str | None = None,
    *,
    kind: str | None = None,
    message: str = "something is wrong",
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """An error in OpenAI's shape; ``kind`` is its ``type``."""
    body = {"error": {"message": message, "type": kind, "param": param, "code": code}}
    return Answer(body, status=status, headers=dict(headers or {}))


def in_turn(*answers: Answer) -> Callable[[dict[str, Any]], Answer]:
    """Answer the first request with the first answer and so on; the last one stays."""
    left = list(answers)
    return lambda _body: left.pop(0) if len(left) > 1 else left[0]


def first_offer(body: dict[str, Any]) -> Answer:
    """Call the first function on offer with no arguments, or say so when nothing is on offer."""
    tools = body.get("tools") or []
    return completion(calls=[(tools[0]["function"]["name"], {})]) if tools else completion("nothing is on offer")


class StubServer:
    """A stub in a thread of its own; a context manager.

    :param answer: called with each parsed body, in the server's event loop: it must not block.
    :param latency: seconds added to every answer.
    :param log: a file to which each request is appended as one line of JSON.
    :raises Exception: on leaving, the first error that ``answer`` raised, if any.
    """

    def __init__(
        self, answer: Callable[[dict[str, Any]], Answer] = first_offer, *, latency: float = 0.0, log: Path | None = None
    ) -> None:
        self.answer = answer
        self.latency = latency
        self.log = log
        self.requests: list[Received] = []
        self.peak = 0
        """The most requests that were being answered at one time."""
        self.port = 0
        self._open = 0
        self._failures: list[Exception] = []
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._done: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="stub-server", daemon=True)

    @property
    def base_url(self) -> str:
        """What a client takes as ``OPENAI_BASE_URL``."""
        return f"http://127.0.0.1:{self.port}/v1"

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
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, backlog=256)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._done.wait()
        server.close()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._exchange(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client went away, which is its right
        except asyncio.CancelledError:
            pass  # the server ends with this connection open
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Read one request and answer it; whether the connection stays open."""
        received = await _receive(reader)
        self._keep(received)
        self._open += 1
        self.peak = max(self.peak, self._open)
        try:
            answer = self._decide(received.body)
            await asyncio.sleep(answer.latency + self.latency)
        finally:
            self._open -= 1
        return await _send(writer, answer)

    def _keep(self, received: Received) -> None:
        self.requests.append(received)
        if self.log is not None:
            with self.log.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps({"path": received.path, "body": received.body}) + "\n")

    def _decide(self, body: dict[str, Any]) -> Answer:
        try:
            return self.answer(body)
        except Exception as failure:  # raised again on leaving the server, where the test sees it
            self._failures.append(failure)
            return error(400, "stub_failed")


async def _receive(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    raw = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(json.loads(raw) if raw else {}, headers, first.split(" ")[1])


async def _send(writer: asyncio.StreamWriter, answer: Answer) -> bool:
    if answer.cut == "before":
        return False
    raw = answer.body if isinstance(answer.body, str | bytes) else json.dumps(answer.body)
    raw = raw.encode() if isinstance(raw, str) else raw
    headers = {"Content-Type": "application/json", "Content-Length": str(len(raw)), **answer.headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"HTTP/1.1 {answer.status} Stub\r\n{head}\r\n".encode("latin-1"))
    if answer.drip:
        await _drip(writer, raw, answer.drip)
    else:
        writer.write(raw[: len(raw) // 2] if answer.cut else raw)
        await writer.drain()
    return not answer.cut


async def _drip(writer: asyncio.StreamWriter, raw: bytes, pause: float) -> None:
    for position in range(len(raw)):
        writer.write(raw[position : position + 1])
        await writer.drain()
        await asyncio.sleep(pause)


def _named(spec: str) -> Callable[[dict[str, Any]], Answer]:
    module, _, name = spec.partition(":")
    found: Callable[[dict[str, Any]], Answer] = getattr(importlib.import_module(module), name)
    return found


def main(arguments: Iterable[str] | None = None) -> None:
    """Serve until standard input closes."""
    parser = argparse.ArgumentParser(description="A stub of an OpenAI-compatible server on the loopback.")
    parser.add_argument("--answer", default="stub_server:first_offer", help="module:function from a body to an Answer")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds added to every answer")
    parser.add_argument("--log", type=Path, help="file to which each request is appended as a line of JSON")
    options = parser.parse_args(None if arguments is None else list(arguments))
    with StubServer(_named(options.answer), latency=options.latency, log=options.log) as server:
        print(server.base_url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()


__all__ = ["Answer", "Received", "StubServer", "completion", "error", "first_offer", "in_turn", "main"]
