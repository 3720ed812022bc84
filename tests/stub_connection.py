"""One client's connection to a stub server: HTTP/1.1 with keep-alive, as little of it as clients of models need.

Written on asyncio's protocols without a framework, since benchmarks measure a client against it.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from typing import Protocol

from stub_answers import Answer, Fault, Reply, Said
from stub_behaviour import Decision
from stub_formats import Format, rendered
from stub_received import Received

END = b"\r\n\r\n"
LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)", re.IGNORECASE)
CHUNKED = re.compile(rb"\r\ntransfer-encoding:", re.IGNORECASE)


class Host(Protocol):
    """The server behind a connection."""

    latency: float

    def opened(self, connection: Connection) -> None:
        """A client came."""

    def closed(self, connection: Connection) -> None:
        """A client went."""

    def begun(self, received: Received) -> Decision:
        """Decide about one request."""

    def ended(self) -> None:
        """One request less is being answered."""

    def failed(self, problem: Exception) -> None:
        """Something is wrong with the test, not with the client."""


class Connection(asyncio.Protocol):
    """Requests of one connection, one after the other."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._arrived = bytearray()
        self._timer: asyncio.TimerHandle | None = None
        self._is_answering = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client came."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._host.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client went, which is its right."""
        self._transport = None
        self._host.closed(self)
        if self._timer is not None:
            self._timer.cancel()
        if self._is_answering:
            self._is_answering = False
            self._host.ended()

    def data_received(self, data: bytes) -> None:
        """Some bytes came."""
        self._arrived += data
        if not self._is_answering:
            self._next()

    def close(self) -> None:
        """The server ends."""
        if self._transport is not None:
            self._transport.abort()

    def _next(self) -> None:
        received = self._whole()
        if received is None:
            return
        self._is_answering = True
        decision = self._host.begun(received)
        reply = decision.reply
        delay = decision.delay + (reply.latency if isinstance(reply, Answer) else 0.0)
        delay += 0.0 if decision.at_once else self._host.latency
        if delay > 0:
            self._timer = self._loop.call_later(delay, self._send, received.wire, decision)
        else:
            self._send(received.wire, decision)

    def _whole(self) -> Received | None:
        """The next request when all of it has come."""
        end = self._arrived.find(END)
        if end < 0:
            return None
        head = bytes(self._arrived[: end + 2])
        length = LENGTH.search(head)
        if length is None and CHUNKED.search(head):
            self._host.failed(NotImplementedError("the stub reads no chunked requests"))
            self.close()
            return None
        stop = end + 4 + (int(length[1]) if length else 0)
        if len(self._arrived) < stop:
            return None
        raw = bytes(self._arrived[end + 4 : stop])
        del self._arrived[:stop]
        return Received(head, raw)

    def _send(self, wire: Format, decision: Decision) -> None:
        self._timer = None
        reply = decision.reply
        cut = reply.cut if isinstance(reply, Answer) else ""
        if cut == "before":
            self._done(keep=False)
            return
        head, raw = prepared(reply, wire)
        more = "".join(f"{name}: {value}\r\n" for name, value in decision.headers.items()).encode("latin-1")
        assert self._transport is not None
        if isinstance(reply, Answer) and reply.drip:
            self._transport.write(b"".join((head, more, b"\r\n")))
            self._drip(raw, 0, reply.drip)
            return
        self._transport.write(b"".join((head, more, b"\r\n", raw[: len(raw) // 2] if cut else raw)))
        self._done(keep=not cut)

    def _drip(self, raw: bytes, position: int, pause: float) -> None:
        if position == len(raw):
            self._done(keep=True)
        elif self._transport is not None:
            self._transport.write(raw[position : position + 1])
            self._timer = self._loop.call_later(pause, self._drip, raw, position + 1, pause)

    def _done(self, *, keep: bool) -> None:
        self._is_answering = False
        self._host.ended()
        if not keep and self._transport is not None:
            self._transport.close()
        elif self._arrived:
            self._loop.call_soon(self._resume)

    def _resume(self) -> None:
        if self._transport is not None and not self._is_answering:
            self._next()


_prepared: dict[tuple[int, Format], tuple[Reply, bytes, bytes]] = {}


def prepared(reply: Reply, wire: Format) -> tuple[bytes, bytes]:
    """Head, without the empty line at its end, and body of an answer; kept while the same object is answered again."""
    found = _prepared.get((id(reply), wire))
    if found is not None:  # the object is held beside them, so that no other one can have its id
        return found[1], found[2]
    answer = reply if isinstance(reply, Answer) else Answer(reply)
    status, body, headers = answer.status, answer.body, dict(answer.headers)
    if isinstance(body, Said | Fault):
        shape = rendered(body, wire)
        status, body, headers = shape.status, shape.body, {**shape.headers, **headers}
    raw = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
    head = _head(status, {"Content-Type": "application/json", "Content-Length": str(len(raw)), **headers})
    if len(_prepared) >= 64:
        _prepared.clear()
    _prepared[id(reply), wire] = (reply, head, raw)
    return head, raw


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} Stub\r\n{lines}".encode("latin-1")


__all__ = ["Connection", "Host", "prepared"]
