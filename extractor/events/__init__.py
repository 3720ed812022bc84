"""What happens in a run, told to whoever wants to know: one frozen record for everything, handed to plain functions.

::

    def show(event: Event) -> None:
        if event.kind is Kind.DOCUMENT_FINISHED:
            print(event.source, event.status, event.usage.input_tokens)

    invoices = Pipeline(create_invoice, on_event=show)

A handler is called where the thing happens, so it has to be quick. One that raises is logged, and never fatal. The text
of a record holds no document text and no key; the objects are there for those who want them (``event.ask``,
``event.answer``, ``event.call``, ``event.result``, ``event.outcome``).

:meth:`Handlers.document` gives a :class:`Watch`, which wraps how one document's questions are put and its calls are
run; :func:`live` wraps what really asks a model, below the kept replies, so that an answer that was paid for is told
from one that is played again. Without handlers nothing is wrapped, and no record is made.
"""

from __future__ import annotations

from extractor.events.event import TOLD, Event, Kind
from extractor.events.logs import configure_logging, log_handler
from extractor.events.watching import Handler, Handlers, Watch, live

__all__ = ["TOLD", "Event", "Handler", "Handlers", "Kind", "Watch", "configure_logging", "live", "log_handler"]
