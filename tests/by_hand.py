"""The loop by hand, for tests: send in a reply, get the next effect or the outcome."""

from __future__ import annotations

from typing import Any

from extractor.chain import Flow, opening, until_success
from extractor.conversation import Rules
from extractor.messages import (
    Ask,
    Calls,
    Message,
    Offer,
    Reply,
    ToolResult,
    Unanswered,
    Verdict,
)
from extractor.testing import call

INVOICE = Offer("create_invoice", "Record one invoice.", {"type": "object"})
NOTE = Offer("create_note", "Record one credit note.", {"type": "object"})
DOCUMENT = (Message("system", "Extract."), Message("user", "Invoice 1 and invoice 2"))
ONE = call("create_invoice", number="1", date="2024-01-01", net="8.00", total="10.00")
TWO = call("create_invoice", number="2", date="2024-02-01", net="16.00", total="21.00")
TWO_MENDED = call("create_invoice", number="2", date="2024-02-01", net="16.00", total="20.00")
THREE = call("create_invoice", number="3", date="2024-03-01", net="24.00", total="30.00")
BAD = "total: 21.00 is not net + tax"
OK = Verdict.ACCEPTED


def begin(*, offers: tuple[Offer, ...] = (INVOICE, NOTE), **rules: Any) -> tuple[Flow, Ask]:
    flow = until_success(opening(DOCUMENT, offers, Rules(**rules)))
    ask = next(flow)
    assert isinstance(ask, Ask)
    return flow, ask


def send(flow: Flow, answer: Reply | Unanswered | tuple[ToolResult, ...]) -> Any:
    try:
        return flow.send(answer)
    except StopIteration as end:
        return end.value


def results(calls: Calls, *texts: str | Verdict) -> tuple[ToolResult, ...]:
    """One result for each call: a text rejects it with that text, a verdict is the verdict."""
    assert isinstance(calls, Calls)
    assert len(calls.calls) == len(texts), f"{len(calls.calls)} calls to run, not {len(texts)}"
    return tuple(
        ToolResult(one.id, one.name, str(text), text, processed_content=one.arguments)
        if isinstance(text, Verdict)
        else ToolResult(one.id, one.name, text, Verdict.REJECTED)
        for one, text in zip(calls.calls, texts, strict=True)
    )


def turn(flow: Flow, answer: Reply, *texts: str | Verdict) -> Any:
    """Send a reply, and the result of each of its calls that are to run."""
    return send(flow, results(send(flow, answer), *texts))
