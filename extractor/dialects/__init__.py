"""Dialects: how an ask is worded for a model, and how its reply is read.

A dialect is two pure functions. ``word`` turns the loop's :class:`~extractor.messages.Ask` into the one that goes over
the wire, ``read`` turns the reply that came back into one with calls. Adapters know providers, dialects know models:

- ``tools`` leaves both as they are; the provider's own function calls are used.
- every other dialect words an ask without offers, in plain text turns, and finds the calls in the text of the reply.
  ``json_schema`` also sets :attr:`~extractor.messages.Ask.schema`, to which a server may hold the text.
"""

from __future__ import annotations

from typing import Protocol

from extractor import plugins
from extractor.errors import ConfigurationError
from extractor.messages import Ask, Reply

GROUP = "extractor.dialects"


class Dialect(Protocol):
    """How an ask is worded and a reply is read; a module can be one."""

    def word(self, ask: Ask) -> Ask:
        """The ask as it goes to the provider."""
        ...

    def read(self, reply: Reply, ask: Ask) -> Reply:
        """The reply with its calls.

        A reply that was cut off (``finish_reason`` ``length``) keeps the calls that are complete and no other.

        :param reply: as the provider's adapter read it.
        :param ask: the loop's own, before it was worded.
        """
        ...


def named(name: str) -> Dialect:
    """The dialect of that name.

    :raises ConfigurationError: when there is none, with the nearest one that is.
    """
    known = plugins.declared(GROUP)
    if name not in known:
        raise ConfigurationError(f"there is no dialect {name!r}", hint=plugins.suggestion(name, known))
    found: Dialect = plugins.load(GROUP, name)
    return found
