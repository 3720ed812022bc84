"""For your own tests: models that answer from a script or from a recording, and what holds a model of your own to its
contract.

::

    from extractor.testing import Scripted, call, reply

    model = Scripted(
        reply(call("create_invoice", invoice_number="7", total="1.00")),
        reply(call("create_invoice", invoice_number="7", total="10.00")),
    )
    outcome = invoices.extract(b"Invoice 7 ...", model=model)
    assert len(model.asks) == 2

On the command line the same model goes by the name of what it answers from: ``--model scripted/my_tests:answers``.

:class:`Cassette` answers from a file of recorded replies; :func:`cassette_from` makes one out of those that a database
keeps. :func:`check_model` checks that a model keeps to what the loop relies on.
"""

from __future__ import annotations

from extractor.testing.cassettes import Cassette, MissingReply
from extractor.testing.contracts import check_model
from extractor.testing.exporting import cassette_from
from extractor.testing.scripted import Answer, Answering, Scripted, call, model, reply, shown

__all__ = [
    "Answer",
    "Answering",
    "Cassette",
    "MissingReply",
    "Scripted",
    "call",
    "cassette_from",
    "check_model",
    "model",
    "reply",
    "shown",
]
