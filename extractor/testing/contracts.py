"""What the loop relies on in a model, as checks for models of your own."""

from __future__ import annotations

import asyncio
import os

from extractor.errors import ExtractorError
from extractor.messages import Ask, Message, Offer, Reply, ToolResult, Unanswered, Usage, Verdict
from extractor.models import Model

SECRET_NAMES = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")

OFFER = Offer(
    "create_invoice",
    "Record one invoice found in the document.",
    {
        "type": "object",
        "properties": {"total": {"type": "string", "description": "sum including tax, as printed"}},
        "required": ["total"],
        "additionalProperties": False,
    },
)
QUESTION = Ask((Message("system", "Call the function."), Message("user", "Invoice 7. Total: 10.00 EUR")), (OFFER,))


def check_model(model: Model, question: Ask = QUESTION) -> None:
    """Check that a model keeps to what the loop relies on; asks it about ten times.

    It is checked that it has a name and a steady identity without any secret; that it can be asked several questions at
    once, on one event loop after another, and again after it was closed; that every answer is a value that can be kept;
    that a conversation with a rejected call can go on; and that a cancelled ask ends.

    :param question: what to ask; one small invoice by default.
    :raises AssertionError: naming the first thing that does not hold.
    """
    _check_names(model)
    try:
        model.prepare()
    except ExtractorError as error:
        raise AssertionError(f"the model cannot be prepared here: {error}") from error
    first = asyncio.run(_asked(model, question))
    asyncio.run(_asked(model, question))
    asyncio.run(_goes_on(model, question, first))
    asyncio.run(_cancelled(model, question))
    _check_names(model)


def _check_names(model: Model) -> None:
    assert isinstance(model, Model), "a model has name, identity, ask(), prepare() and aclose()"
    assert isinstance(model.name, str), "the name of a model is text"
    assert model.name.strip(), "the name of a model is not empty"
    assert isinstance(model.identity, str), "the identity of a model is text"
    assert model.identity.strip(), "the identity of a model is not empty"
    assert model.identity == model.identity, "the identity of a model does not change"
    shown = f"{model.name} {model.identity} {model!r} {model!s}"
    for variable, value in os.environ.items():
        if variable.upper().endswith(SECRET_NAMES) and len(value) >= 8:
            assert value not in shown, f"what the model is known by holds the value of {variable}"
    for limit in ("workers", "max_attempts"):
        assert int(getattr(model, limit, 1)) >= 1, f"{limit} is at least 1"


async def _asked(model: Model, question: Ask) -> Reply | Unanswered:
    """Three at once, then closed twice, then once more."""
    answers = [*await asyncio.gather(*(_ask(model, question) for _ in range(3)))]
    await model.aclose()
    await model.aclose()
    answers.append(await _ask(model, question))
    await model.aclose()
    return answers[0]


async def _ask(model: Model, question: Ask) -> Reply | Unanswered:
    try:
        answer = await model.ask(question)
    except Exception as error:
        raise AssertionError(f"trouble is a value, and ask() raised {type(error).__name__}") from error
    _check_answer(answer)
    return answer


async def _goes_on(model: Model, question: Ask, first: Reply | Unanswered) -> None:
    """A rejected call goes back to the model, in its own turn."""
    if not isinstance(first, Reply) or not first.tool_calls:
        return
    results = tuple(ToolResult(one.id, one.name, "total: write it anew", Verdict.REJECTED) for one in first.tool_calls)
    turns = (*question.messages, first.as_message(), Message("tool", tool_results=results))
    await _ask(model, Ask(turns, question.offers, question.rank, question.sampling))
    await model.aclose()


async def _cancelled(model: Model, question: Ask) -> None:
    task = asyncio.ensure_future(model.ask(question))
    for _ in range(3):
        await asyncio.sleep(0)
    task.cancel()
    (ended,) = await asyncio.gather(task, return_exceptions=True)
    is_fine = isinstance(ended, (Reply, Unanswered, asyncio.CancelledError))
    assert is_fine, f"a cancelled ask ends as cancelled, not with {type(ended).__name__}"
    await model.aclose()


def _check_answer(answer: object) -> None:
    assert isinstance(answer, (Reply, Unanswered)), f"an ask is answered with Reply or Unanswered, not {answer!r:.80}"
    assert isinstance(answer.usage, Usage), "usage is a Usage"
    used = answer.usage
    assert min(used.input_tokens, used.output_tokens, used.cached_tokens) >= 0, "no usage is below zero"
    assert used.cached_tokens <= used.input_tokens, "cached tokens are part of the input tokens"
    if isinstance(answer, Unanswered):
        assert not answer.is_fatal, f"the question was not taken: {answer.kind}: {answer.cause}"
        assert "\n" not in answer.cause, "the cause of an Unanswered is one line"
        return
    assert answer.finish_reason in ("stop", "length"), f"{answer.finish_reason!r:.80} is no finish reason"
    ids = [one.id for one in answer.tool_calls]
    assert all(isinstance(one, str) and one for one in ids), "every call has an id"
    assert len(set(ids)) == len(ids), "no two calls of a reply share an id"
    _check_kept(answer)


def _check_kept(reply: Reply) -> None:
    from extractor.store.codec import reply_from_json, reply_to_json

    assert reply_from_json(reply_to_json(reply)) == reply, "a reply that was kept is the same when it is read again"
