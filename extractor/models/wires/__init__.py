"""Wires: one provider's format each, between an :class:`~extractor.messages.Ask` and the requests of one HTTP API.

A wire makes exactly one request for each ``send``; retries, pace and dialects stand above it
(:mod:`extractor.models.hosted`). It holds no state but its settings, so that one wire serves any number of event loops,
each with a client of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from extractor.messages import Ask, Reply, Unanswered
from extractor.models.transport import Trouble


@dataclass(frozen=True, slots=True)
class Sent:
    """What came back for one request: status, headers (asked for in lower case), and the body: bytes, or what an SDK
    made of them."""

    status: int
    headers: Mapping[str, str]
    body: bytes | Mapping[str, Any]


class Dropped(Exception):
    """The connection could not be made, or ended before the answer was whole. The text names the class of the cause."""


class Wire(Protocol):
    """One provider's format."""

    host: str
    """Who is asked, for identities and for people; never with a user or a password."""

    def prepare(self) -> None:
        """Import what asking needs, and check what can be checked without a request.

        :raises ConfigurationError: when the key is missing or an address is none.
        :raises MissingExtra: when the SDK is not installed.
        """

    async def open(self) -> Any:
        """A client for the running event loop.

        :raises ConfigurationError: as :meth:`prepare`.
        """

    async def close(self, client: Any) -> None:
        """Close a client's connections."""

    def word(self, ask: Ask, unfit: frozenset[str]) -> dict[str, Any]:
        """The request for an ask.

        :param unfit: parameters that the model has refused: left out, or named otherwise.
        """
        ...

    async def send(self, client: Any, request: dict[str, Any]) -> Sent:
        """Make one request.

        :raises Dropped: when there is no connection, or it ended early.
        :raises TimeoutError: when the SDK gave it up.
        """
        ...

    def read(self, answer: Mapping[str, Any]) -> Reply | Unanswered | Trouble:
        """Read the body of an answer with status 200; it may be anything that JSON can hold.

        :returns: a reply, its calls untouched and every one of them; or why there is none (the model's name is added
            by the caller).
        """
        ...


MOST = 10**12
"""Tokens: what a server reports beyond is no number that can be kept."""


def count(value: Any) -> int:
    """A number of tokens as a server sends it; 0 for what is none."""
    return min(value, MOST) if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def mapping(value: Any) -> Mapping[str, Any]:
    """The value where it is an object, else an empty one: servers send ``null`` and worse where an object stands."""
    return value if isinstance(value, Mapping) else {}


def text(value: Any) -> str:
    """The value where it is text, else none."""
    return value if isinstance(value, str) else ""
