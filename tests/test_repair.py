"""Asking for no more than what is wrong, and putting the answer into the record."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mending import (
    CREATE,
    INVOICE,
    LINE,
    PARAMETERS,
    arguments_of,
    begin,
    changed,
    create,
    judge,
    question_of,
    send,
    turn,
)

from extractor.attempts import reask, repair
from extractor.attempts.places import share, value_at, wanted
from extractor.chain import opening, until_success
from extractor.conversation import UNFIT, Conversation, Obligation
from extractor.drivers import request_key
from extractor.messages import NOTHING_TO_EXTRACT, Ask, Calls, Message, Offer, ToolCall, Verdict
from extractor.outcome import Status
from extractor.testing import call, reply

WRONG_TOTAL = changed("total", value="600.00")
NO_TOTAL = ("total: 600.00 does not stand in the document", "total")
SUM = ("total: 600.00 is not net 550.00 + tax 104.50", "total")
WRONG_LINE = changed("line_items", 2, "amount", value="1 pc")
NO_AMOUNT = ("line_items.2.amount: '1 pc' is not an amount", "line_items.2.amount")


def asked_for(ask: Ask) -> dict[str, Any]:
    """The properties of the one function that is asked for."""
    (offer,) = ask.offers
    assert offer.parameters["additionalProperties"] is False
    return dict(offer.parameters["properties"])


def test_only_the_failing_field_is_asked_for() -> None:
    """One value at fault: the same function with that one property, the document, the good values, the error."""
    flow, first = begin(repair)
    ask = turn(flow, reply(create(WRONG_TOTAL)), NO_TOTAL)
    assert asked_for(ask) == {"total": PARAMETERS["properties"]["total"]}  # type: ignore[index]
    assert (ask.offers[0].name, ask.offers[0].parameters["required"]) == ("create_invoice", ["total"])
    assert (ask.tool_choice, ask.parallel) == ("create_invoice", False)
    assert [message.role for message in ask.messages] == ["system", "user"]
    assert ask.messages[-1].content.startswith(first.messages[-1].content)
    question = question_of(ask)
    assert '"net":"550.00"' in question
    assert "600.00 does not stand" in question
    assert question.endswith("answer with no more than: total")


def test_the_merged_call_is_what_is_run() -> None:
    """The answer is put into the whole record under its own id; that is run, and stands in the next question."""
    flow, _ = begin(repair)
    turn(flow, reply(create(WRONG_TOTAL)), NO_TOTAL)
    calls = send(flow, reply(ToolCall("r1", "create_invoice", '{"total": "654.50"}')))
    assert calls.calls[0].id == "r1"
    assert arguments_of(calls.calls[0]) == INVOICE
    outcome = send(flow, judge(calls, None))
    assert (outcome.status, outcome.record) == (Status.DONE, INVOICE)


def test_the_transcript_keeps_both() -> None:
    """The transcript has the question, the raw answer and what it became, every call with its result; so has the
    attempt."""
    flow, _ = begin(repair)
    turn(flow, reply(create(WRONG_TOTAL)), NO_TOTAL)
    raw = reply(ToolCall("r1", "create_invoice", '{"total": "654.50"}'))
    outcome = turn(flow, raw, None)
    question, said, told, whole, result = outcome.transcript[-5:]
    assert question.content.startswith("The record has these values")
    assert [(one.name, one.arguments) for one in said.tool_calls] == [("create_invoice", '{"total": "654.50"}')]
    assert told.tool_results[0].content == "merged into the whole record, which follows"
    assert arguments_of(whole.tool_calls[0]) == INVOICE
    assert [one.call_id for one in (*told.tool_results, *result.tool_results)] == ["part_1_r1", "r1"]
    attempt = outcome.attempts[-1]
    assert (attempt.answer, attempt.kind, attempt.calls) == (raw, "repair", whole.tool_calls)


def test_the_next_question_shows_whole_records() -> None:
    """What a later question shows of the conversation are full calls, each with its result, as if so sent."""
    flow, _ = begin(lambda state: repair(state) if state.spent == 1 else reask(state), max_attempts=4)
    turn(flow, reply(create(WRONG_TOTAL)), NO_TOTAL)
    ask = turn(flow, reply(ToolCall("r1", "create_invoice", '{"total": "655.50"}')), SUM)
    said = [message for message in ask.messages if message.role == "assistant"]
    assert [arguments_of(one.tool_calls[0])["total"] for one in said] == ["600.00", "655.50"]
    assert all(len(arguments_of(one.tool_calls[0])) == len(INVOICE) for one in said)
    asked = [one.id for message in ask.messages for one in message.tool_calls]
    assert asked == [one.call_id for message in ask.messages for one in message.tool_results]
    assert ask.offers == (CREATE, NOTHING_TO_EXTRACT)


def test_an_element_of_a_list() -> None:
    """A value deep in a list is asked for by a flat name that says where it stands, with what stands beside it."""
    flow, _ = begin(repair)
    ask = turn(flow, reply(create(WRONG_LINE)), NO_AMOUNT)
    assert asked_for(ask) == {
        "line_items_2_amount": {**LINE["properties"]["amount"], "description": "line_items.2.amount: as printed"}  # type: ignore[index]
    }
    assert '"line_items.2":{"description":"Oak board 3' in question_of(ask)
    calls = send(flow, reply(call("create_invoice", line_items_2_amount="30.00")))
    assert arguments_of(calls.calls[0]) == INVOICE


def test_fields_that_the_text_names() -> None:
    """A rule over several fields may be broken by any of them: those that its text names are asked for as well."""
    flow, _ = begin(repair)
    ask = turn(flow, reply(create(changed("tax", value="19"))), ("total: 654.50 is not net 550.00 + tax 19", "total"))
    assert list(asked_for(ask)) == ["net", "tax", "total"]


@pytest.mark.parametrize(
    "error",
    [
        "total: '12 net' is not an amount: write only the number as printed, with sign and currency",
        "required: net, tax, total; missing: note; accepted: net, tax, total; total: is not an amount, got 'tax'",
    ],
)
def test_words_that_are_no_fields(error: str) -> None:
    """What is quoted, lists of names, and plain words of our own messages name no field."""
    flow, _ = begin(repair)
    assert list(asked_for(turn(flow, reply(create(WRONG_TOTAL)), (error, "total")))) == ["total"]


def test_a_field_that_may_be_left_out() -> None:
    """An optional field that may not be null need not be answered; left out, its refused value is gone."""
    flow, _ = begin(repair)
    noted = {**INVOICE, "note": "x" * 9}
    ask = turn(flow, reply(create(noted)), ("note: too long", "note"))
    assert ask.offers[0].parameters["required"] == []
    calls = send(flow, reply(create({})))
    assert arguments_of(calls.calls[0]) == INVOICE


def test_null_is_an_answer() -> None:
    """A field that may be null has to be answered, and null is an answer."""
    flow, _ = begin(repair)
    ask = turn(flow, reply(create({**INVOICE, "due_date": "soon"})), ("due_date: 'soon' is not a date", "due_date"))
    assert ask.offers[0].parameters["required"] == ["due_date"]
    assert arguments_of(send(flow, reply(create({"due_date": None}))).calls[0]) == INVOICE


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("line_items.99.amount", "line_items"),
        ("line_items.2.amount.cents", "line_items_2_amount"),
        ("line_items.x", "line_items"),
        ("line_items.²", "line_items"),
        ("due_date.day", "due_date"),
    ],
)
def test_what_the_record_does_not_have(path: str, name: str) -> None:
    """Where a path leads to nothing in the record, what would hold it is asked for."""
    flow, _ = begin(repair)
    assert list(asked_for(turn(flow, reply(create(INVOICE)), (f"{path}: is wrong", path)))) == [name]


def test_one_path_above_another() -> None:
    """A path under another one is part of it."""
    flow, _ = begin(repair)
    error = ("line_items: no; line_items.2.amount: no; net: no", "line_items", "line_items.2.amount", "net")
    assert list(asked_for(turn(flow, reply(create(INVOICE)), error))) == ["net", "line_items"]


def test_names_that_are_taken_or_too_long() -> None:
    """A flat name that is a field already, or longer than providers allow, gives way to another."""
    long = "a" * 70
    inner = {"type": "object", "properties": {"b": {"type": "string"}, long: {"type": "string"}}}
    schema = {"type": "object", "properties": {"a": inner, "a_b": {"type": "string"}}, "required": ["a"]}
    one = Obligation("f", 0, {}, "", ("a.b", f"a.{long}"), {"a": {"b": "x", long: "y"}})
    state = replace(opening((Message("user", "x"),), (Offer("f", "", schema),)), obligations=(one,))
    assert [(place.name, place.dotted) for place in wanted(state)[0].places] == [
        ("value_1", f"a.{long}"),
        ("value_2", "a.b"),
    ]


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        ("{broken", ("the arguments are not valid JSON",)),
        (json.dumps(INVOICE), ("timed out after 3 s",)),
        (json.dumps(INVOICE), ("rule 7 is broken", "unheard_of")),
        (json.dumps(INVOICE), ("total: no; rule 7 is broken", "total", "unheard_of")),
    ],
)
def test_what_cannot_be_repaired_is_asked_again(sent: str, error: tuple[str, ...]) -> None:
    """Broken JSON, and rejections that name no field of the function, are asked again as a whole."""
    flow, _ = begin(repair)
    ask = turn(flow, reply(create(sent)), error)
    assert ask.offers == (CREATE, NOTHING_TO_EXTRACT)
    assert ask.messages[-1].tool_results[0].content == error[0]


def test_no_call_and_unknown_functions_are_asked_again() -> None:
    """Text without a call, and a function that does not exist, leave nothing to repair."""
    flow, _ = begin(repair, max_attempts=4)
    assert len(send(flow, reply(text="Here it is")).offers) == 2
    calls = send(flow, reply(ToolCall("", "make_invoice", json.dumps(INVOICE))))
    assert len(send(flow, judge(calls, ("there is no function 'make_invoice'",))).offers) == 2


UNFITTING = [
    {},
    {"total": "654.50", "tax": "1.00"},
    {"total": "654.50", "unheard_of": 1},
    {"Total": "654.50"},
]


@pytest.mark.parametrize("sent", [*map(json.dumps, UNFITTING), "{broken", "[]", '"654.50"'])
def test_an_answer_that_does_not_fit(sent: str) -> None:
    """A missing, a foreign or a changed value, or no object at all: nothing is applied, and the whole record is asked
    again (J42)."""
    flow, _ = begin(repair, max_attempts=4)
    turn(flow, reply(create(WRONG_TOTAL)), NO_TOTAL)
    ask = send(flow, reply(ToolCall("r1", "create_invoice", sent)))
    assert ask.offers == (CREATE, NOTHING_TO_EXTRACT)
    assert [message.role for message in ask.messages[2:]] == ["assistant", "tool"]
    outcome = turn(flow, reply(create(INVOICE)), None)
    assert (outcome.status, outcome.attempts[1].fault) == (Status.DONE, UNFIT)
    raw, told = outcome.transcript[5:7]
    assert raw.tool_calls[0].arguments == sent
    assert told.tool_results[0].content == f"not used: {UNFIT}"


def test_the_rest_of_the_record_sent_along() -> None:
    """A model that sends the whole record is taken at its word where the rest is as it was."""
    flow, _ = begin(repair)
    turn(flow, reply(create(WRONG_TOTAL)), NO_TOTAL)
    assert arguments_of(send(flow, reply(create(INVOICE))).calls[0]) == INVOICE


@pytest.mark.parametrize("answer", [reply(text="It is 654.50"), reply(call("nothing_to_extract", reason="?"))])
def test_no_answer_drops_nothing(answer: Any) -> None:
    """In a repair neither text nor "nothing" gives up the record: it was not on offer."""
    flow, _ = begin(repair, max_attempts=4)
    turn(flow, reply(create(WRONG_TOTAL)), NO_TOTAL)
    assert send(flow, answer).offers == (CREATE, NOTHING_TO_EXTRACT)
    assert turn(flow, reply(create(INVOICE)), None).record == INVOICE


def test_a_cut_answer_to_a_repair() -> None:
    """A repair that is cut off says nothing about missing records: whole calls are used, broken ones are not."""
    flow, _ = begin(repair)
    turn(flow, reply(create(WRONG_TOTAL)), NO_TOTAL)
    outcome = turn(flow, reply(create({"total": "654.50"}), cut=True), None)
    assert outcome.status is Status.DONE


def test_the_same_again_ends_the_turn() -> None:
    """A repair that comes to the record that was refused is a repetition."""
    flow, _ = begin(repair, max_attempts=5)
    turn(flow, reply(create(WRONG_TOTAL)), NO_TOTAL)
    calls = send(flow, reply(create({"total": "600.00"})))
    assert calls.is_last
    assert send(flow, judge(calls, NO_TOTAL)).status is Status.EXHAUSTED


SECOND = {**INVOICE, "invoice_number": "2024-118", "net": "9,00 EUR", "issue_date": "7 March 2024", "line_items": []}


def test_several_records_are_asked_for_at_once_in_order() -> None:
    """Two open records of a function: one call each, in order; what stands is not asked for (J43)."""
    flow, _ = begin(repair)
    third = {**INVOICE, "invoice_number": "2024-119", "issue_date": "9 March 2024", "net": "1.00"}
    first = turn(flow, reply(create(WRONG_TOTAL), create(third), create(SECOND)), NO_TOTAL, None, ("net: no", "net"))
    assert list(asked_for(first)) == ["total", "net"]
    assert (first.offers[0].parameters["required"], first.parallel) == ([], True)
    assert "2 records have to be mended" in question_of(first)
    calls = send(flow, reply(create({"total": "654.50"}), create({"net": "9.00"})))
    assert [arguments_of(one) for one in calls.calls] == [INVOICE, {**SECOND, "net": "9.00"}]
    assert len(send(flow, judge(calls, None, None)).records) == 3


@pytest.mark.parametrize(
    ("answers", "run"),
    [
        ([{"total": "654.50"}], []),
        ([{"total": "654.50"}, {"net": "9.00"}, {"net": "9.00"}], []),
        ([{"total": "654.50"}, {"total": "9.00"}], [0]),
        ([{"net": "654.50"}, {"net": "9.00"}], [1]),
    ],
)
def test_whole_or_not_at_all_for_each_record(answers: list[Any], run: list[int]) -> None:
    """Another number of answers than of records fits none of them; else each is applied by itself (J42)."""
    flow, _ = begin(repair)
    turn(flow, reply(create(WRONG_TOTAL), create(SECOND)), NO_TOTAL, ("net: no", "net"))
    effect = send(flow, reply(*map(create, answers)))
    assert len(effect.calls if isinstance(effect, Calls) else ()) == len(run)
    for one, number in zip(effect.calls if run else (), run, strict=True):
        assert arguments_of(one)["invoice_number"] == (INVOICE, SECOND)[number]["invoice_number"]


@pytest.mark.parametrize(
    ("record", "error", "answer"),
    [
        (WRONG_LINE, NO_AMOUNT, {"line_items_2_amount": "30.00"}),
        (WRONG_TOTAL, NO_TOTAL, {"total": "654.50"}),
        (WRONG_TOTAL, SUM, {"net": "550.00", "tax": "104.50", "total": "654.50"}),
    ],
)
def test_a_repair_is_short(record: Any, error: tuple[str, ...], answer: dict[str, str]) -> None:
    """On an invoice with ten lines the answer to a repair has at most 35 % of the characters of the first reply."""
    flow, _ = begin(repair)
    first = create(record)
    ask = turn(flow, reply(first), error)
    assert sorted(asked_for(ask)) == sorted(answer)
    assert len(json.dumps(answer)) <= 0.35 * len(str(first.arguments))


def test_keys_differ() -> None:
    """A repair has a request key of its own, and the same record asked again as a whole another one."""
    flow, first = begin(repair, max_attempts=4)
    second = turn(flow, reply(create(WRONG_TOTAL)), NO_TOTAL)
    third = send(flow, reply(text="?"))
    assert len({request_key("m", ask) for ask in (first, second, third)}) == 3


# -- whatever is sent --------------------------------------------------------------------------------------------------

paths = st.lists(
    st.sampled_from(["total", "net", "due_date", "line_items.2.amount", "line_items.0", "line_items", "note", "zzz"]),
    min_size=1, max_size=3, unique=True,
)  # fmt: skip
names = st.sampled_from(["total", "net", "due_date", "line_items_2_amount", "line_items_0", "line_items", "note", "x"])
values = st.none() | st.sampled_from(["550.00", "654.50", "x"]) | st.just([]) | st.integers(0, 3) | st.just({"a": "b"})
patches = st.dictionaries(names, values, max_size=4).map(json.dumps) | st.sampled_from(["{", "[]", ""])


@settings(deadline=None, max_examples=200)
@given(paths, st.lists(patches, max_size=2), st.booleans())
def test_a_merge_never_touches_what_passed(failing: list[str], sent: list[str], cut: bool) -> None:
    """Whatever is answered: what is run differs from the record only at the values at fault, and has all of them as
    answered, or nothing is run at all."""
    states: list[Conversation] = []

    def noted(state: Conversation) -> Any:
        states.append(state)
        return repair(state)

    flow, _ = begin(noted)
    ask = turn(flow, reply(create(INVOICE)), ("; ".join(f"{path}: no" for path in failing), *failing))
    found = wanted(states[-1])
    assert bool(found) == (NOTHING_TO_EXTRACT not in ask.offers)
    effect = send(flow, reply(*map(create, sent), cut=cut))
    if not found or not isinstance(effect, Calls):
        return
    (whole,) = effect.calls
    (one,) = found
    answered = json.loads(sent[0] or "{}")
    got = arguments_of(whole)
    for place in one.places:
        if place.is_required or place.name in answered:
            assert value_at(got, place.path) == answered[place.name]
    for place in one.places:
        got = changed(*place.path, value=value_at(INVOICE, place.path), record=got)
    assert {key: value for key, value in got.items() if value is not None} == {
        key: value for key, value in INVOICE.items() if value is not None
    }
    assert share(one) > 0


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(patches, paths), max_size=6), st.integers(1, 4))
def test_repairs_are_bounded(script: list[tuple[str, list[str]]], limit: int) -> None:
    """Whatever is answered, a repairing model is asked no more often than its attempts allow, every question has its
    own key, and every call of the transcript its result."""
    flow = until_success(opening((Message("user", "<document>\n1\n</document>"),), (CREATE,)), repair)
    flow, effect = begin(repair, max_attempts=limit)
    asks = []
    answers = iter([(json.dumps(INVOICE), ["total"]), *script])
    failing = ["total"]
    while isinstance(effect, (Ask, Calls)):
        if isinstance(effect, Ask):
            asks.append(request_key("m", effect))
            sent, failing = next(answers, ("{}", ["net"]))
            effect = send(flow, reply(create(sent)))
        else:
            effect = send(flow, judge(effect, *[(f"{failing[0]}: no", *failing)] * len(effect.calls)))
    assert len(asks) == len(set(asks)) <= limit
    asked = [one.id for message in effect.transcript for one in message.tool_calls]
    assert asked == [one.call_id for message in effect.transcript for one in message.tool_results]
    assert all(one.verdict is Verdict.REJECTED for attempt in effect.attempts for one in attempt.results)
