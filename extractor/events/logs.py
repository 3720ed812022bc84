"""Events as lines of a log."""

from __future__ import annotations

import logging
import sys

from extractor.errors import UsageError
from extractor.events.event import TOLD, Event
from extractor.plugins import suggestion

logger = logging.getLogger("extractor.events")

LEVELS = ("debug", "info", "warning", "error")
FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


def log_handler(event: Event) -> None:
    """Write one line for an event through :mod:`logging`, under ``extractor.events``: no document text, no key.

    Ends, changes of the model and asks that nobody answered are at level INFO, everything else at DEBUG.
    """
    level = logging.INFO if event.kind in TOLD else logging.DEBUG
    if logger.isEnabledFor(level):
        logger.log(level, "%s", event)


def configure_logging(level: str) -> None:
    """Write what extractor logs from this level on to stderr, in one format; for programs of their own.

    Only our loggers are set: those of the providers' SDKs write whole requests at level DEBUG.

    :param level: ``debug``, ``info``, ``warning`` or ``error``.
    :raises UsageError: when it is none of these.
    """
    if level.lower() not in LEVELS:
        hint = suggestion(level.lower(), LEVELS, f"there is {', '.join(LEVELS)}")
        raise UsageError(f"there is no log level {level!r}", hint=hint)
    ours = logging.getLogger("extractor")
    ours.setLevel(level.upper())
    if not any(isinstance(handler, _Stderr) for handler in ours.handlers):
        handler = _Stderr()
        handler.setFormatter(logging.Formatter(FORMAT))
        ours.addHandler(handler)


class _Stderr(logging.Handler):
    """Whatever stderr is when a line is written: a progress bar may have taken its place."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            sys.stderr.write(f"{self.format(record)}\n")
            sys.stderr.flush()
        except Exception:
            self.handleError(record)
