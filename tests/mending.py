"""An invoice with ten lines, its function and its document, for tests of policies; driven by hand."""

from __future__ import annotations

import copy
import json
from typing import Any

from extractor import prompts
from extractor.attempts import Policy
from extractor.chain import Flow, opening, until_success
from extractor.conversation import Rules
from extractor.matching import decoded
from extractor.messages import Ask, Calls, Offer, Reply, ToolCall, ToolResult, Verdict

NUMBER = {"type": "string", "description": "as printed", "pattern": r"^-?[0-9][0-9.,' ]{0,18}$"}
TEXT = {"type": "string"}
MAY_BE_NULL = {"anyOf": [{"type": "string", "description": "as printed"}, {"type": "null"}], "default": None}
LINE = {
    "type": "object",
    "properties": {"description": TEXT, "quantity": NUMBER, "unit_price": NUMBER, "amount": NUMBER},
    "required": ["description", "quantity", "unit_price", "amount"],
    "additionalProperties": False,
}
PARAMETERS = {
    "type": "object",
    "properties": {
        "invoice_number": TEXT,
        "issue_date": {"type": "string", "description": "as printed"},
        "due_date": MAY_BE_NULL,
        "currency": {"type": "string", "description": "as printed"},
        "net": {**NUMBER, "description": "total before tax"},
        "tax": {**NUMBER, "description": "total of all taxes"},
        "total": {**NUMBER, "description": "total with tax"},
        "note": TEXT,
        "line_items": {"type": "array", "items": LINE},
    },
    "required": ["invoice_number", "issue_date", "currency", "net", "tax", "total", "line_items"],
    "additionalProperties": False,
}
CREATE = Offer("create_invoice", "Record one invoice.", PARAMETERS)
INVOICE: dict[str, Any] = {
    "invoice_number": "2024-117",
    "issue_date": "5 March 2024",
    "due_date": None,
    "currency": "EUR",
    "net": "550.00",
    "tax": "104.50",
    "total": "654.50",
    "line_items": [
        {
            "description": f"Oak board {n} planed on both sides",
            "quantity": f"{n}",
            "unit_price": "10.00",
            "amount": f"{n * 10}.00",
        }
        for n in range(1, 11)
    ],
}
TEXT_OF_IT = "\n".join(
    [
        "Sawmill Kaltenbach",
        "Invoice number: 2024-117",
        "Date: 5 March 2024      Order: A-77",
        *(f"Oak board {n} planed on both sides   {n}  10.00  {n * 10}.00" for n in range(1, 11)),
        "Net                 550.00",
        "VAT 19 %            104.50",
        "Total EUR           654.50",
        "payable until 19/04/2024",
    ]
)


def changed(*path: str | int, value: Any, record: dict[str, Any] = INVOICE) -> dict[str, Any]:
    """The invoice with another value at a path."""
    copied = copy.deepcopy(record)
    holder: Any = copied
    for part in path[:-1]:
        holder = holder[part]
    holder[path[-1]] = value
    return copied


def create(record: Any, ident: str = "") -> ToolCall:
    """A call with these arguments."""
    return ToolCall(ident, "create_invoice", record if isinstance(record, str) else json.dumps(record))


def begin(policy: Policy, text: str = TEXT_OF_IT, *offers: Offer, **rules: Any) -> tuple[Flow, Ask]:
    """A loop over one document, and its first question."""
    flow = until_success(opening(prompts.opening(text), offers or (CREATE,), Rules(**rules)), policy)
    ask = next(flow)
    assert isinstance(ask, Ask)
    return flow, ask


def send(flow: Flow, answer: Any) -> Any:
    """Send what is given, get the next effect or the outcome."""
    try:
        return flow.send(answer)
    except StopIteration as end:
        return end.value


def judge(calls: Calls, *said: Any) -> tuple[ToolResult, ...]:
    """A result for each call: ``None`` accepts it, ``(text, paths…)`` rejects it."""
    assert isinstance(calls, Calls)
    assert len(calls.calls) == len(said), f"{len(calls.calls)} calls to run, not {len(said)}"
    return tuple(
        ToolResult(
            one.id, one.name, "SUCCESS" if what is None else what[0],
            Verdict.ACCEPTED if what is None else Verdict.REJECTED,
            processed_content=arguments_of(one), arguments=decoded(one.arguments), paths=what[1:] if what else (),
        )
        for one, what in zip(calls.calls, said, strict=True)
    )  # fmt: skip


def turn(flow: Flow, answer: Reply, *said: Any) -> Any:
    """Send a reply, and what its calls came to."""
    return send(flow, judge(send(flow, answer), *said))


def arguments_of(call: ToolCall) -> Any:
    """What a call says."""
    return decoded(call.arguments)


def question_of(ask: Ask) -> str:
    """What stands behind the document."""
    return ask.messages[-1].content.rpartition("</document>")[2].strip()
