"""Passwords for documents that ask for one.

They come from the environment, as keys do: one a line in ``EXTRACTOR_PASSWORDS``. Every document that asks is tried
with each of them in turn. They are in no message, no log and no database.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextvars import ContextVar

VARIABLE = "EXTRACTOR_PASSWORDS"
MOST = 20
"""Passwords that are tried at the most: each takes time, and nobody guesses here."""

HINT = f"put its password into {VARIABLE}, or save a copy without one"

given: ContextVar[Sequence[str] | None] = ContextVar("given", default=None)
"""Those that a caller has named for the document at hand, in place of the environment's."""


def known() -> tuple[str, ...]:
    """The passwords to try, in order."""
    named = given.get()
    found = os.environ.get(VARIABLE, "").splitlines() if named is None else named
    return tuple(dict.fromkeys(word for word in found if word))[:MOST]
