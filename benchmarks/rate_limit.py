"""How much of a rate limit is used, and how often are we refused? A server with a token bucket, on the loopback.

    python benchmarks/rate_limit.py
    python benchmarks/rate_limit.py --burst 1 --word whole --rpm 3000

The server is a process of its own. It answers after a latency, and refuses at once what its bucket does not hold:
with ``Retry-After`` in whole seconds (``whole``), with a decimal one (``decimal``), in exact milliseconds (``ms``),
or without a word (``none``). 300 asks of 64 workers go through the retry layer over plain sockets, so that what is
measured is the pace and no SDK. ``refused`` is the share of all requests; ``late`` is that share after the first two
seconds, when what can be learnt has been learnt. An answer that belongs to another ask stops the benchmark.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import math
import multiprocessing
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

from extractor.models.pace import Limits, Pace
from extractor.models.transport import Patience, Trouble, persist, retry_after

WORDS = ("whole", "decimal", "ms", "none")


@dataclass
class Bucket:
    """The server's allowance: ``rate`` a second, at most ``burst`` saved up."""

    rate: float
    burst: float
    left: float = field(init=False)
    seen: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.left = self.burst

    def take(self) -> float:
        """0 and one token less; or the seconds until there is one."""
        now = time.monotonic()
        self.left = min(self.burst, self.left + (now - self.seen) * self.rate)
        self.seen = now
        if self.left < 1 - 1e-9:
            return (1 - self.left) / self.rate
        self.left -= 1
        return 0.0


@dataclass(frozen=True)
class Regime:
    """What the server does."""

    burst: int
    word: str
    rate: float = 50.0
    latency: float = 0.2


def _refusal(word: str, wait: float) -> str:
    return {
        "whole": f"retry-after: {math.ceil(wait)}\r\n",
        "decimal": f"retry-after: {wait:.3f}\r\n",
        "ms": f"retry-after-ms: {math.ceil(wait * 1000)}\r\n",
        "none": "",
    }[word]


def serve(regime: Regime, tell: Connection) -> None:
    """Answer each path with itself, until the process is ended."""
    bucket = Bucket(regime.rate, regime.burst)

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                body = head.split(b" ", 2)[1]
                wait, status, extra = bucket.take(), "200 OK", ""
                if wait:
                    status, extra = "429 Slow", _refusal(regime.word, wait)
                else:
                    await asyncio.sleep(regime.latency)
                writer.write(f"HTTP/1.1 {status}\r\n{extra}content-length: {len(body)}\r\n\r\n".encode() + body)

    async def main() -> None:
        server = await asyncio.start_server(connection, "127.0.0.1", 0, backlog=256)
        tell.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


@contextlib.contextmanager
def served(regime: Regime) -> Iterator[int]:
    """A server in a process of its own; its port."""
    spawned = multiprocessing.get_context("spawn")
    ours, theirs = spawned.Pipe()
    process = spawned.Process(target=serve, args=(regime, theirs), daemon=True)
    process.start()
    try:
        yield ours.recv()
    finally:
        process.terminate()
        process.join()


class Client:
    """One kept connection, as one worker has it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def get(self, path: str) -> tuple[int, dict[str, str], str]:
        if self.streams is None:
            self.streams = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self.streams
        writer.write(f"GET {path} HTTP/1.1\r\n\r\n".encode())
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines)
        body = await reader.readexactly(int(headers["content-length"]))
        return int(first.split()[1]), headers, body.decode()


@dataclass
class Result:
    """What came of a run."""

    seconds: float = 0.0
    done: int = 0
    failed: int = 0
    requests: list[tuple[float, bool]] = field(default_factory=list)

    def refused(self, since: float = 0.0) -> float:
        """The share of the requests that were refused, of those made after so many seconds."""
        told = [refused for moment, refused in self.requests if moment >= since]
        return sum(told) / len(told) if told else 0.0


async def ask_all(port: int, limits: Limits, asks: int, workers: int) -> Result:
    """Put so many asks, and see that each gets its own answer."""
    pace, patience, result = Pace(limits), Patience(), Result()
    paths = iter([f"/{number}" for number in range(asks)])
    began = time.monotonic()

    async def work() -> None:
        client = Client(port)
        for path in paths:

            async def send(path: str = path) -> str | Trouble:
                moment = time.monotonic() - began
                status, headers, body = await client.get(path)
                result.requests.append((moment, status == 429))
                if status == 429:
                    return Trouble("rate_limited", "429", spends=False, wait=retry_after(headers))
                return body

            answer = await persist(send, patience, pace)
            assert isinstance(answer, Trouble) or answer == path, "an answer of another ask"
            result.done += not isinstance(answer, Trouble)
            result.failed += isinstance(answer, Trouble)
        if client.streams:
            client.streams[1].close()

    await asyncio.gather(*(work() for _ in range(workers)))
    result.seconds = time.monotonic() - began
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--burst", type=int, nargs="*", default=[1, 10, 50], help="tokens that the bucket holds")
    parser.add_argument("--word", nargs="*", default=list(WORDS), choices=WORDS, help="how the server says to wait")
    parser.add_argument("--rpm", type=float, nargs="*", default=[0, 3000], help="the limit as given to us; 0: unknown")
    parser.add_argument("--rate", type=float, default=50.0, help="requests a second that the server takes")
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--asks", type=int, default=300)
    parser.add_argument("--workers", type=int, default=64)
    options = parser.parse_args()
    print(f"{'limit':>8} {'burst':>5} {'word':>8} {'done':>5} {'failed':>6} {'seconds':>8} {'a second':>8}", end="")
    print(f" {'requests':>8} {'refused':>8} {'late':>6}")
    for rpm in options.rpm:
        for burst in options.burst:
            for word in options.word:
                with served(Regime(burst, word, options.rate, options.latency)) as port:
                    result = asyncio.run(ask_all(port, Limits(rpm=rpm or None), options.asks, options.workers))
                print(
                    f"{f'{rpm:.0f}' if rpm else 'unknown':>8} {burst:>5} {word:>8} {result.done:>5} {result.failed:>6}"
                    f" {result.seconds:>8.2f} {result.done / result.seconds:>8.1f} {len(result.requests):>8}"
                    f" {result.refused():>8.1%} {result.refused(2.0):>6.1%}"
                )


if __name__ == "__main__":
    main()
