"""Calls: from what a model sent to one result each, whatever it sent."""

from __future__ import annotations

import asyncio
import contextvars
import json
import threading
import time
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, Field, ValidationInfo
from sqlmodel import SQLModel

from extractor.calling import Prepared, invoke, perform, prepare
from extractor.errors import Rejected
from extractor.functions import Context, Function, from_schema, function
from extractor.messages import ToolCall, ToolResult, Verdict


def _remark(value: str, info: ValidationInfo) -> str:
    context: dict[str, Any] = info.context or {}
    if value == "1.234":
        context["flags"].append(f"{info.field_name}: nothing decides what {value} means")
    return value


class LineDraft(SQLModel):
    text: str
    amount: Decimal


class InvoiceDraft(SQLModel):
    number: str
    total: Decimal
    printed: Annotated[str, AfterValidator(_remark)] = ""
    note: str | None = None
    paid: Literal["yes", "no"] | None = None
    when: int | None = None
    line_items: list[LineDraft] = []


def create_invoice(draft: InvoiceDraft, context: Context) -> InvoiceDraft:
    """Record one invoice."""
    if draft.total < 0:
        raise Rejected(f"total: {draft.total} is below zero", "line_items.0.amount: too", "nothing: unknown", "plain")
    return draft


INVOICE = function(create_invoice)
GOOD = '{"number": "7", "total": 12.50}'


def run(
    calls: list[ToolCall], *functions: Function, context: Context | None = None, **validation: Any
) -> tuple[ToolResult, ...]:
    """Perform calls on an event loop of their own."""
    named = {one.name: one for one in functions or (INVOICE,)}
    return asyncio.run(perform(calls, named, context or Context(), validation))


def one(arguments: str | Mapping[str, Any] | None, *functions: Function, **validation: Any) -> ToolResult:
    """The result of one call to the first function."""
    (result,) = run([ToolCall("c1", (functions or (INVOICE,))[0].name, arguments)], *functions, **validation)
    return result


def body(work: Callable[..., Any], **options: Any) -> Function:
    """A function without parameters."""
    return from_schema("work", "", {"type": "object"}, work, **options)


# -- what a function returns -------------------------------------------------------------------------------------------

NATIVE = object()


@pytest.mark.parametrize(
    ("returned", "content", "native"),
    [
        ("done", "done", None), (("done", NATIVE), "done", NATIVE), (NATIVE, "SUCCESS", NATIVE),
        (None, "SUCCESS", None),
        ((NATIVE, "x"), "SUCCESS", (NATIVE, "x")), (0, "SUCCESS", 0), (False, "SUCCESS", False), ("", "", None),
    ],
)  # fmt: skip
def test_results_follow_the_contract(returned: Any, content: str, native: Any) -> None:
    """Text, (text, object), object, nothing; the object's identity is kept, and it is not told to the model."""
    result = one("{}", body(lambda _: returned))
    assert (result.content, result.verdict) == (content, Verdict.ACCEPTED)
    assert result.processed_content == native
    assert native is not NATIVE or result.processed_content is NATIVE


def test_a_ready_result_is_taken_as_it_is_with_the_calls_id() -> None:
    """Its verdict and object stay, and it answers the call that was made."""
    ready = ToolResult("other", "other", "no", Verdict.DUPLICATE, NATIVE, flags=("f",))
    result = one("{}", body(lambda _: ready))
    assert result == ToolResult("c1", "work", "no", Verdict.DUPLICATE, NATIVE, {}, flags=("f",))


def test_a_class_alone_gives_its_validated_instance() -> None:
    """The record is the result, and the digits of its money are those that were sent."""
    result = one('{"number": "7", "total": 12345678901234567.890}', function(InvoiceDraft))
    assert isinstance(result.processed_content, InvoiceDraft)
    assert str(result.processed_content.total) == "12345678901234567.890"
    assert result.arguments == {"number": "7", "total": "12345678901234567.890"}
    assert json.dumps(result.arguments)


@pytest.mark.parametrize("nothing", [None, "", "{}", {}])
def test_a_function_without_parameters_runs_on_nothing(nothing: Any) -> None:
    """Arguments that are null or empty are an empty object."""
    assert one(nothing, body(repr)).content == "{}"


# -- what is wrong with a call -----------------------------------------------------------------------------------------


def test_an_unknown_function_does_not_keep_the_others_from_running() -> None:
    """Its call is answered with what was meant; results stand in call order."""
    calls = [ToolCall("a", "create_invoce", GOOD), ToolCall("b", "create_invoice", GOOD)]
    wrong, right = run(calls)
    assert (wrong.call_id, wrong.verdict, wrong.name) == ("a", Verdict.REJECTED, "create_invoce")
    assert "did you mean create_invoice" in wrong.content
    assert (right.call_id, right.verdict) == ("b", Verdict.ACCEPTED)


def test_arguments_that_are_no_object_have_three_texts() -> None:
    """An array, a bare string and broken JSON are told apart."""
    texts = [one(sent).content for sent in ("[1]", "hello", '{"a": ')]
    assert [text.partition(";")[0].partition(":")[0] for text in texts] == [
        "the arguments are a JSON array", "the arguments are plain text", "the arguments are not valid JSON"
    ]  # fmt: skip


def test_a_missing_argument_lists_what_was_meant_and_what_else_is_wrong() -> None:
    """The body is not run; names and values are told at once, and the paths are those at fault."""
    ran: list[Any] = []

    def keep(draft: InvoiceDraft) -> None:
        ran.append(draft)

    lines = [{"text": "a", "amount": 1}, {"text": "b"}]
    result = one({"invoice_number": "7", "total": "ten", "line_items": lines}, function(keep))
    assert result.content == (
        "required: number, total; missing: number; unrecognised: invoice_number (did you mean number?); "
        "accepted: number, total, printed, note, paid, when, line_items; "
        "total: should be a valid decimal, got 'ten'; line_items.1.amount: is required"
    )
    assert result.paths == ("number", "total", "line_items.1.amount")
    assert not ran


def test_an_extra_argument_is_ignored_and_flagged_unless_strict() -> None:
    """All that is required is there: accepted. A strict function refuses it, at every level."""
    sent = '{"number": "7", "total": 1, "colour": "red", "line_items": [{"text": "a", "amount": 1, "x": 2}]}'
    result = one(sent)
    assert result.verdict is Verdict.ACCEPTED
    assert [flag.split(":")[1].split()[0] for flag in result.flags] == ["colour", "line_items.0.x"]
    strict = one(sent, function(create_invoice, strict=True))
    assert strict.verdict is Verdict.REJECTED
    assert "unrecognised: colour" in strict.content
    assert "line_items.0.x: is not a field that is asked for" in strict.content


def test_an_echo_of_the_schema_is_answered_plainly() -> None:
    """A small model that sends the schema is told to send values."""
    result = one(json.dumps(INVOICE.parameters))
    assert result.verdict is Verdict.REJECTED
    assert result.content.startswith("the arguments repeat the schema")


def test_arguments_are_repaired_before_validation() -> None:
    """A list as text, a word for nothing, an enum in other case, a number where text is wanted: no attempt is spent."""
    result = one('{"number": 7, "total": "1.00", "note": "N/A", "paid": "YES", "line_items": "[]"}')
    assert result.verdict is Verdict.ACCEPTED
    assert result.arguments == {"number": "7", "total": "1.00", "note": None, "paid": "yes", "line_items": []}


def test_a_word_for_nothing_in_the_document_is_kept_where_it_is_valid_alone() -> None:
    """Printed as a value, it is kept for text; where it is no valid value it is null, and nobody is asked."""
    sent = '{"number": "7", "total": 1, "note": "N/A", "when": "N/A"}'
    result = one(sent, text="Note: N/A\nWhen: N/A\n")
    assert result.arguments is not None
    assert (result.arguments["note"], result.arguments["when"]) == ("N/A", None)
    dated = from_schema("f", "", {"properties": {"d": {"type": ["string", "null"], "maxLength": 2}}}, str)
    assert one('{"d": "N/A"}', dated, text="Date: N/A").content == "{'d': None}"


def test_halves_of_surrogate_pairs_are_refused_by_path() -> None:
    """The text for the model and the arguments that are kept can both be encoded."""
    result = one('{"number": "\\ud83d", "total": 1}')
    assert result.content == "number: holds characters that are no valid text"
    assert json.dumps(result.arguments, ensure_ascii=False).encode()


def test_nul_bytes_are_removed_with_a_flag() -> None:
    """A page with a NUL byte in a quote is not lost."""
    result = one('{"number": "a\\u0000b", "total": 1}')
    assert result.processed_content.number == "ab"
    assert result.flags == ("number: NUL bytes were removed",)


# -- what a body raises ------------------------------------------------------------------------------------------------


def test_rejected_sends_all_reasons_with_the_paths_that_are_fields() -> None:
    """The part before the first colon is a path when the schema declares it."""
    result = one('{"number": "7", "total": -1.00}')
    assert result.verdict is Verdict.REJECTED
    assert result.content == "total: -1.00 is below zero; line_items.0.amount: too; nothing: unknown; plain"
    assert result.paths == ("total", "line_items.0.amount")
    assert result.arguments == {"number": "7", "total": "-1.00"}


def test_a_model_that_does_not_validate_within_the_body_is_a_rejection() -> None:
    """The model's data failed it, so the model is told by path."""
    result = one("{}", body(lambda _: InvoiceDraft.model_validate({"number": "1", "total": "x"})))
    assert (result.verdict, result.content) == (Verdict.REJECTED, "total: should be a valid decimal, got 'x'")


def _raising(error: BaseException) -> Callable[[Any], Any]:
    def work(_: Any) -> Any:
        raise error

    return work


def _raising_later(error: BaseException) -> Callable[[Any], Any]:
    async def work(_: Any) -> Any:
        raise error

    return work


BUGS = [
    KeyError("secret"),
    StopIteration("secret"),
    SystemExit("secret"),
    TimeoutError("secret"),
    RecursionError("secret"),
    asyncio.CancelledError("secret"),
]


@pytest.mark.parametrize("error", BUGS)
@pytest.mark.parametrize("raising", [_raising, _raising_later])
@pytest.mark.parametrize("timeout", [None, 5.0])
def test_any_other_exception_is_a_bug_that_the_model_hears_nothing_of(
    error: BaseException, raising: Callable[..., Any], timeout: float | None
) -> None:
    """FAILED with the traceback for people; the batch is not ended, whatever it was."""
    result = one("{}", body(raising(error), timeout=timeout))
    assert result.verdict is Verdict.FAILED
    assert result.content == "the function failed"
    assert "secret" in (result.cause or "")
    assert "Traceback" in (result.cause or "")


def test_a_bug_in_a_validator_is_a_bug_and_rejected_there_is_a_rejection() -> None:
    """The user's validators are the user's code too."""

    def check(value: int) -> int:
        if value == 1:
            raise Rejected("a: one is not allowed")
        raise KeyError(value)

    class Checked(BaseModel):
        a: Annotated[int, AfterValidator(check)]

    assert one('{"a": 2}', function(Checked)).verdict is Verdict.FAILED
    refused = one('{"a": 1}', function(Checked))
    assert (refused.verdict, refused.content, refused.paths) == (Verdict.REJECTED, "a: one is not allowed", ("a",))


# -- running -----------------------------------------------------------------------------------------------------------


def test_calls_run_together_and_results_keep_their_order() -> None:
    """Plain and async functions wait for each other here: none could end if they ran one after the other."""
    meeting = threading.Barrier(3, timeout=5)

    async def later(arguments: dict[str, Any]) -> str:
        await asyncio.to_thread(meeting.wait)
        return f"later {arguments['n']}"

    def now(arguments: dict[str, Any]) -> str:
        meeting.wait()
        return f"now {arguments['n']}"

    schema = {"properties": {"n": {"type": "integer"}}, "required": ["n"]}
    functions = (from_schema("later", "", schema, later), from_schema("now", "", schema, now))
    calls = [ToolCall(str(n), name, {"n": n}) for n, name in enumerate(("now", "later", "now"))]
    assert [result.content for result in run(calls, *functions)] == ["now 0", "later 1", "now 2"]


def test_a_call_that_takes_too_long_is_rejected_and_the_others_kept() -> None:
    """A time limit is that call's alone, async or not, and a hung thread holds nobody up."""
    release = threading.Event()

    async def slow(_: Any) -> None:
        await asyncio.sleep(30)

    functions = (
        from_schema("slow", "", {}, slow, timeout=0.05),
        from_schema("hung", "", {}, lambda _: release.wait(30), timeout=0.05),
        from_schema("quick", "", {}, lambda _: "ok", timeout=5),
    )
    begun = time.monotonic()
    results = run([ToolCall(name, name, None) for name in ("slow", "hung", "quick")], *functions)
    assert time.monotonic() - begun < 5
    release.set()
    assert [result.verdict for result in results] == [Verdict.REJECTED, Verdict.REJECTED, Verdict.ACCEPTED]
    assert results[0].content == "timed out after 0.05 s"


def test_time_is_counted_from_the_start_of_a_call_not_from_its_place_in_a_queue() -> None:
    """Many calls at once do not use up each other's time."""
    made = body(lambda _: time.sleep(0.05), timeout=1.0)
    results = run([ToolCall(str(n), "work", None) for n in range(60)], made)
    assert {result.verdict for result in results} == {Verdict.ACCEPTED}


def test_plain_functions_do_not_hold_up_the_loop_and_see_context_variables() -> None:
    """They run in a thread, with or without a time limit, and see what their caller has set."""
    tenant = contextvars.ContextVar("tenant", default="nobody")
    seen: list[tuple[str, bool]] = []

    def look(_: Any) -> None:
        seen.append((tenant.get(), threading.current_thread() is threading.main_thread()))

    async def work() -> None:
        tenant.set("us")
        for timeout in (None, 5.0):
            await perform([ToolCall("1", "work", None)], {"work": body(look, timeout=timeout)}, Context(), {})

    asyncio.run(work())
    assert seen == [("us", False), ("us", False)]


def test_cancelling_from_outside_cancels() -> None:
    """A run that is stopped is not answered with a bug."""

    async def forever(_: Any) -> None:
        await asyncio.sleep(30)

    async def work() -> None:
        task = asyncio.create_task(perform([ToolCall("1", "work", None)], {"work": body(forever)}, Context(), {}))
        await asyncio.sleep(0.01)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(work())


def test_what_a_plain_function_hands_back_to_be_awaited_is_awaited() -> None:
    """A lambda around an async function is as good as the function."""

    async def later() -> str:
        return "later"

    assert one("{}", body(lambda _: later())).content == "later"


def test_the_context_carries_the_calls_id_and_the_hosts_values() -> None:
    """Each call has its own id; values and style are shared."""
    made = body(lambda _, context: f"{context.call_id} {context.get('tenant')} {context.style}")
    results = run([ToolCall("a", "work"), ToolCall("b", "work")], made, context=Context(None, "", {"tenant": 3}, "de"))
    assert [result.content for result in results] == ["a 3 de", "b 3 de"]


def test_validators_get_style_and_flags_of_their_own_call() -> None:
    """A remark that a field makes is a flag of that call, and of no other; the caller's mapping is not changed."""
    validation: dict[str, Any] = {"style": "x"}
    calls = [ToolCall("a", "create_invoice", {"number": "1", "total": 1, "printed": "1.234"}),
             ToolCall("b", "create_invoice", {"number": "1", "total": 1, "printed": "1"})]  # fmt: skip
    first, second = run(calls, **validation)
    assert first.flags == ("printed: nothing decides what 1.234 means",)
    assert second.flags == ()
    assert validation == {"style": "x"}


def test_preparing_and_invoking_are_usable_apart() -> None:
    """What is prepared runs later, with the arguments as JSON has them."""
    prepared = prepare(ToolCall("1", "create_invoice", GOOD), INVOICE, Context(), {})
    assert isinstance(prepared, Prepared)
    assert prepared.arguments == {"number": "7", "total": "12.50"}
    assert asyncio.run(invoke(prepared)).processed_content is prepared.value


# -- whatever a model sends --------------------------------------------------------------------------------------------


class Everything(BaseModel):
    a: int
    b: LineDraft | list[int] | None
    c: dict[str, LineDraft] = Field(default_factory=dict)
    d: Literal["x", "y"] = "x"
    e: list[str] = []


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcde\0x"), inner, max_size=4),
    max_leaves=12,
)
ARGUMENTS = (
    st.none()
    | st.text(max_size=40)
    | st.text(alphabet='{}[]",:`\\ \nabcud8e1', max_size=40)
    | ANYTHING.map(json.dumps)
    | st.dictionaries(st.sampled_from("abcdex"), ANYTHING)
)
NAMES = st.sampled_from(["everything", "create_invoice", "Everything"]) | st.text(max_size=12)
CALLS = st.lists(st.builds(ToolCall, st.text(max_size=4), NAMES, ARGUMENTS), max_size=4)
MACHINERY = ("pydantic", "http", "<class", "object at 0x", "Traceback", ".py", "LineDraft", "Everything ")
STRICT = {"everything": function(Everything, strict=True), "create_invoice": INVOICE}


@settings(max_examples=120, deadline=None)
@given(CALLS, st.text(max_size=20))
def test_every_call_has_one_result_whatever_it_says(calls: list[ToolCall], text: str) -> None:
    """Nothing raises; one result each, in order, with its id; nothing of our machinery shows in the text."""
    results = asyncio.run(perform(calls, STRICT, Context(), {"text": text}))
    assert [(result.call_id, result.name) for result in results] == [(call.id, call.name) for call in calls]
    for result in results:
        assert result.verdict in (Verdict.ACCEPTED, Verdict.REJECTED)
        assert result.content.encode("utf-8")
        assert len(result.content) < 3000
        assert not any(word in result.content for word in MACHINERY)
        assert json.dumps(result.arguments, ensure_ascii=False, allow_nan=False).encode("utf-8")
        assert all(flag.encode("utf-8") for flag in result.flags)
