"""Closed choices, other draws, and the sequences of policies that are the defaults."""

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
    TEXT_OF_IT,
    arguments_of,
    begin,
    changed,
    create,
    judge,
    question_of,
    send,
    turn,
)

from extractor.attempts import NextModel, adaptive, named, narrow, policies, resample, small, strong
from extractor.attempts.candidates import MOST, spans_of
from extractor.conversation import Rules
from extractor.drivers import request_key
from extractor.errors import ConfigurationError
from extractor.fields.style import Style
from extractor.messages import NOTHING_TO_EXTRACT, Ask, Calls, Offer, ToolCall
from extractor.outcome import Status
from extractor.testing import reply

WRONG_TOTAL = changed("total", value="550.00")
NOT_PRINTED = ("total: 550.00 does not stand beside Total", "total")
SUM = ("total: 550.00 is not net 550.00 + tax 104.50", "total")


def choice(ask: Ask, name: str) -> Any:
    """What may be answered for a value."""
    schema = ask.offers[0].parameters["properties"][name]
    return next((one["enum"] for one in schema.get("anyOf", [schema]) if "enum" in one), None)


# -- narrow ------------------------------------------------------------------------------------------------------------


def test_the_refused_value_is_not_among_the_choices() -> None:
    """Amounts of the document are a closed choice, without the refused one, those nearest to the label first."""
    flow, _ = begin(narrow)
    ask = turn(flow, reply(create(WRONG_TOTAL)), NOT_PRINTED)
    options = choice(ask, "total")
    assert "550.00" not in options
    assert options[0] == "654.50"
    assert len(options) == len(set(options)) <= MOST
    assert "total is one of: 654.50 | 104.50" in question_of(ask)
    assert "does not stand beside" not in question_of(ask)
    outcome = turn(flow, reply(create({"total": "654.50"})), None)
    assert (outcome.record, outcome.attempts[1].kind) == (INVOICE, "narrow")


def test_what_was_refused_before_is_out_too() -> None:
    """A value that was refused in an earlier attempt at the record is not offered again."""
    flow, _ = begin(narrow, max_attempts=4)
    turn(flow, reply(create(WRONG_TOTAL)), NOT_PRINTED)
    ask = turn(flow, reply(create({"total": "104.50"})), NOT_PRINTED)
    assert not {"550.00", "104.50"} & set(choice(ask, "total"))


def test_a_rule_over_several_fields_refuses_no_value() -> None:
    """Where a rule over several fields is broken, any of them may be right: no value is left out."""
    flow, _ = begin(narrow)
    ask = turn(flow, reply(create(WRONG_TOTAL)), ("total: 550.00 is less than net 550.00 and tax 104.50", "total"))
    for name in ("net", "tax", "total"):
        assert {"550.00", "104.50", "654.50"} <= set(choice(ask, name))


@pytest.mark.parametrize(
    ("wrong", "asked"),
    [
        ({"total": "550.00"}, {"total": ("654.50",)}),
        ({"tax": "19"}, {"tax": ("104.50",)}),
        ({"net": "1.00"}, {"net": ("550.00",)}),
        ({"net": "104.50", "tax": "550.00", "total": "1.00"}, {"total": ("654.50",)}),
    ],
)
def test_a_sum_is_mended_by_what_adds_up(wrong: dict[str, str], asked: dict[str, tuple[str, ...]]) -> None:
    """Of the amounts that add up in the document those that agree with most of the answer are the choice; what they
    agree with is not asked for."""
    flow, _ = begin(narrow)
    record = {**INVOICE, **wrong}
    error = f"total: {record['total']} is not net {record['net']} + tax {record['tax']}"
    ask = turn(flow, reply(create(record)), (error, "total"))
    assert list(ask.offers[0].parameters["properties"]) == list(asked)
    for name, options in asked.items():
        assert f"{name} is one of: {' | '.join(options)}" in question_of(ask)


TWO_SUMS = "Net 10.00\nTax 1.37\nTotal 11.37\nNet 20.00\nTax 4.11\nTotal 24.11"


def test_one_answer_decides_a_sum() -> None:
    """Where several sums agree equally they are one choice: three choices would not fit each other."""
    flow, _ = begin(narrow, TWO_SUMS)
    record = {**INVOICE, "net": "10.00", "tax": "4.11", "total": "1.00"}
    ask = turn(flow, reply(create(record)), ("total: 1.00 is not net 10.00 + tax 4.11", "total"))
    assert list(ask.offers[0].parameters["properties"]) == ["net_tax_total"]
    assert {"10.00 + 1.37 = 11.37", "20.00 + 4.11 = 24.11"} <= set(choice(ask, "net_tax_total"))
    assert '"net":' not in question_of(ask)
    calls = send(flow, reply(create({"net_tax_total": "20.00 + 4.11 = 24.11"})))
    assert arguments_of(calls.calls[0]) == {**INVOICE, "net": "20.00", "tax": "4.11", "total": "24.11"}


@pytest.mark.parametrize("answer", [{"net_tax_total": "24.11"}, {"net": "20.00", "tax": "4.11", "total": "24.11"}])
def test_a_sum_that_was_no_choice(answer: dict[str, str]) -> None:
    """An answer that is none of the sums fits nothing."""
    flow, _ = begin(narrow, TWO_SUMS)
    record = {**INVOICE, "net": "10.00", "tax": "4.11", "total": "1.00"}
    turn(flow, reply(create(record)), ("total: 1.00 is not net 10.00 + tax 4.11", "total"))
    assert isinstance(send(flow, reply(create(answer))), Ask)


def test_numbers_in_a_sum_and_a_name_that_is_taken() -> None:
    """Fields that are numbers get numbers; the choice goes by a name that no field has."""
    number = {"type": "number"}
    fields = {"net": number, "tax": number, "total": number, "net_tax_total": {"type": "string"}}
    schema = {"type": "object", "properties": fields, "required": ["net", "tax", "total"]}
    flow, _ = begin(narrow, TWO_SUMS, Offer("create_invoice", "", schema))
    record = {"net": 1, "tax": 1, "total": 1}
    ask = turn(flow, reply(create(record)), ("total: 1 is not net 1 + tax 1", "total"))
    (name,) = ask.offers[0].parameters["properties"]
    assert choice(ask, name)[0] == "20.00 + 4.11 = 24.11"
    calls = send(flow, reply(create({name: "10.00 + 1.37 = 11.37"})))
    assert arguments_of(calls.calls[0]) == {"net": 10.0, "tax": 1.37, "total": 11.37}


def test_what_a_list_is_compared_with_is_not_at_fault() -> None:
    """Where the lines do not come to the net amount, the lines are asked for and the net amount stands."""
    flow, _ = begin(small)
    error = ("line_items: the amounts sum to 540.00, which is neither net 550.00 nor total 654.50", "line_items")
    turn(flow, reply(create(INVOICE)), error)
    calls = send(flow, reply(create({**INVOICE, "net": "1.00", "line_items": []})))
    assert arguments_of(calls.calls[0]) == {**INVOICE, "line_items": []}


def test_sums_that_have_nothing_of_the_answer() -> None:
    """Amounts that add up but agree with nothing that was answered leave the choice as wide as it was."""
    flow, _ = begin(narrow, "10.00\n1.37\n11.37\n500.00\n80.00")
    record = {**INVOICE, "net": "500.00", "tax": "80.00", "total": "9.00"}
    ask = turn(flow, reply(create(record)), ("total: 9.00 is not net 500.00 + tax 80.00", "total"))
    assert set(choice(ask, "total")) == {"10.00", "1.37", "11.37", "500.00", "80.00"}


@pytest.mark.parametrize(
    ("path", "error", "first", "others"),
    [
        ("issue_date", "issue_date: 'March' is not one full date", "5 March 2024", ["19/04/2024"]),
        ("invoice_number", "invoice_number: 7 does not stand in the document", "2024-117", ["A-77"]),
    ],
)
def test_kinds_of_choices(path: str, error: str, first: str, others: list[str]) -> None:
    """Dates for a date, identifiers for an identifier: as printed, the likeliest first."""
    flow, _ = begin(narrow)
    ask = turn(flow, reply(create(changed(path, value="March"))), (error, path))
    options = choice(ask, path)
    assert options[0] == first
    assert set(others) <= set(options)
    assert "654.50" not in options


def test_null_is_among_the_choices() -> None:
    """Where a field may be null, so may the answer be."""
    flow, _ = begin(narrow)
    ask = turn(flow, reply(create(changed("due_date", value="soon"))), ("due_date: 'soon' is not a date", "due_date"))
    schema = ask.offers[0].parameters["properties"]["due_date"]
    assert schema["anyOf"][1] == {"type": "null"}
    assert set(choice(ask, "due_date")) == {"5 March 2024", "19/04/2024"}
    assert question_of(ask).endswith("| null")


def test_one_candidate_is_named_and_not_forced() -> None:
    """A single candidate is told to the model, which may answer otherwise."""
    flow, _ = begin(narrow)
    ask = turn(flow, reply(create(changed("currency", value="X"))), ("currency: 'X' is no currency", "currency"))
    assert choice(ask, "currency") is None
    assert question_of(ask).endswith("currency is one of: EUR")


def test_no_candidate_is_a_repair() -> None:
    """Without a candidate the values are asked for freely, with the error; without a document too."""
    for text in ("Thank you for your custom", ""):
        flow, _ = begin(narrow, text)
        ask = turn(flow, reply(create(WRONG_TOTAL)), NOT_PRINTED)
        assert choice(ask, "total") is None
        assert "It was not accepted: total: 550.00" in question_of(ask)


def test_an_address_of_several_lines() -> None:
    """An address is chosen among lines in a row, joined."""
    schema = {"type": "object", "properties": {"address": {"type": "string"}}, "required": ["address"]}
    flow, _ = begin(narrow, "Sawmill\nMill Lane 4\n81100 Kaltenbach\nThank you", Offer("create_invoice", "", schema))
    ask = turn(flow, reply(create({"address": "Mill"})), ("address: does not stand in the document", "address"))
    assert "Mill Lane 4 81100 Kaltenbach" in choice(ask, "address")
    assert "Thank you" not in choice(ask, "address")


def test_a_list_is_no_choice() -> None:
    """A list that stands is not asked for beside a choice; one that is missing is, as it is."""
    flow, _ = begin(narrow)
    error = ("line_items: too few; total: no", "line_items", "total")
    ask = turn(flow, reply(create(INVOICE)), error)
    assert list(ask.offers[0].parameters["properties"]) == ["total"]
    flow, _ = begin(narrow)
    ask = turn(flow, reply(create({**INVOICE, "line_items": "ten"})), error)
    assert ask.offers[0].parameters["properties"]["line_items"] == {"type": "array", "items": LINE}
    assert choice(ask, "total")


def test_numbers_and_enums() -> None:
    """A number is chosen as a number, a whole one as a whole one, and an enum keeps what was not refused."""
    schema = {
        "type": "object",
        "properties": {
            "total": {"type": "number"},
            "boards": {"type": "integer"},
            "kind": {"enum": ["invoice", "credit note", "receipt"], "type": "string"},
        },
        "required": ["total", "boards", "kind"],
    }
    offer = Offer("create_invoice", "", schema)
    flow, _ = begin(narrow, TEXT_OF_IT, offer)
    error = ("total: no; boards: no; kind: no", "total", "boards", "kind")
    ask = turn(flow, reply(create({"total": 550, "boards": 3, "kind": "receipt"})), error)
    assert 654.5 in choice(ask, "total")
    assert 550 not in choice(ask, "total")
    assert all(isinstance(one, int) and one != 3 for one in choice(ask, "boards"))
    assert choice(ask, "kind") == ["invoice", "credit note"]


def test_candidates_fit_the_pattern_of_the_field() -> None:
    """A server that holds an answer to the field's pattern can give each candidate."""
    flow, _ = begin(narrow, "Total 1 234.50 EUR\nPaid -20.00\nRest 1'214.50")
    options = choice(turn(flow, reply(create(WRONG_TOTAL)), NOT_PRINTED), "total")
    assert options == ["1 234.50", "-20.00", "1'214.50"]


@pytest.mark.parametrize("kind", ["number", "date", "currency", "identifier", "text"])
@given(text=st.text("0123456789.,:/-' |ARMEurinvoiceMarch\n$%", max_size=120))
def test_spans_stand_in_the_text(kind: str, text: str) -> None:
    """Every candidate is printed where it is said to be, and nothing that is printed breaks the search."""
    lines = text.splitlines()
    for span in spans_of(text, kind, Style.of(text)):
        assert span.printed in lines[span.line] or (kind == "date" and span.printed == str(span.value))
        assert span.value is not None


def test_a_date_with_two_readings_is_two_choices() -> None:
    """Where nothing decides the order of day and month, each reading is a choice, written so that it has no other."""
    flow, _ = begin(narrow, "Receipt\nDate 09/01/2019 8:01\nTotal 5.00")
    record = changed("issue_date", value="09/01/2019")
    error = "issue_date: '09/01/2019' can be read as 2019-01-09 or as 2019-09-01 and nothing in the document decides"
    assert choice(turn(flow, reply(create(record)), (error, "issue_date")), "issue_date") == [
        "2019-01-09",
        "2019-09-01",
    ]


# -- resample ----------------------------------------------------------------------------------------------------------


def test_a_resample_asks_the_first_question_again() -> None:
    """The opening once more, warmer and numbered, without the error; only the value at fault is taken."""
    flow, first = begin(resample, max_attempts=4)
    ask = turn(flow, reply(create(WRONG_TOTAL)), NOT_PRINTED)
    assert (ask.messages, ask.offers) == (first.messages, first.offers)
    assert (ask.sampling.temperature, ask.sampling.sample) == (0.8, 1)
    drawn = {**INVOICE, "currency": "USD", "net": "1.00", "line_items": []}
    calls = send(flow, reply(create(drawn)))
    assert arguments_of(calls.calls[0]) == INVOICE
    again = send(flow, judge(calls, NOT_PRINTED))
    assert again.sampling.sample == 2
    assert len({request_key("m", one) for one in (first, ask, again)}) == 3


def test_each_value_that_passes_is_kept() -> None:
    """Of two values at fault one is drawn right: the next draw is for the other alone."""
    flow, _ = begin(resample, max_attempts=4)
    record = {**INVOICE, "total": "1.00", "issue_date": "x"}
    turn(flow, reply(create(record)), ("issue_date: no; total: no", "issue_date", "total"))
    turn(flow, reply(create({**INVOICE, "total": "2.00"})), ("total: no", "total"))
    calls = send(flow, reply(create({**INVOICE, "issue_date": "7 May 1999"})))
    assert arguments_of(calls.calls[0]) == INVOICE


def test_other_records_of_a_draw_are_left_aside() -> None:
    """A draw of two records is taken for the open one alone; what stands is not touched or flagged."""
    flow, _ = begin(resample)
    other = {**INVOICE, "invoice_number": "A-77", "issue_date": "1 May 2024", "net": "1.00", "total": "2.00"}
    turn(flow, reply(create(other), create(WRONG_TOTAL)), None, NOT_PRINTED)
    outcome = turn(flow, reply(create({**other, "net": "9.00"}), create(INVOICE)), None)
    assert outcome.records == (other, INVOICE)
    assert outcome.flags == ()


@pytest.mark.parametrize(
    ("lines", "is_taken"), [(INVOICE["line_items"], True), (INVOICE["line_items"][:9], False), ("x", False)]
)
def test_elements_of_lists_are_taken_by_their_place(lines: Any, is_taken: bool) -> None:
    """An element is taken from a list of equal length only: in another one it may be another line."""
    flow, _ = begin(resample)
    wrong = changed("line_items", 2, "amount", value="x")
    turn(flow, reply(create(wrong)), ("line_items.2.amount: no", "line_items.2.amount"))
    effect = send(flow, reply(create({**INVOICE, "line_items": lines})))
    assert isinstance(effect, Calls) == is_taken


@pytest.mark.parametrize("answer", [reply(text="no"), reply(create("{broken")), reply(create({}))])
def test_a_draw_with_nothing_to_take(answer: Any) -> None:
    """A draw without the value at fault changes nothing, and another one may follow."""
    flow, _ = begin(resample, max_attempts=4)
    turn(flow, reply(create(WRONG_TOTAL)), NOT_PRINTED)
    ask = send(flow, answer)
    assert (ask.sampling.sample, len(ask.messages)) == (2, 2)
    assert turn(flow, reply(create(INVOICE)), None).status is Status.DONE


def test_what_cannot_be_drawn_is_asked_again() -> None:
    """A call that could not be read leaves nothing to merge into."""
    flow, _ = begin(resample)
    ask = turn(flow, reply(create("{broken")), ("the arguments are not valid JSON",))
    assert (ask.sampling.temperature, ask.messages[-1].role) == (0.0, "tool")


# -- the defaults ------------------------------------------------------------------------------------------------------


def kinds(policy: Any, answers: list[Any], error: tuple[str, ...], **rules: Any) -> list[str]:
    """How each attempt was asked."""
    flow, effect = begin(policy, max_attempts=len(answers), **rules)
    for answer in answers:
        effect = turn(flow, reply(create(answer)), error)
    return [attempt.kind for attempt in effect.attempts]


def test_strong_repairs_where_it_is_cheap() -> None:
    """A strong model is asked for the part, then for the whole with its errors, then for the part once more."""
    answers = [WRONG_TOTAL, {"total": "1.00"}, {**INVOICE, "total": "2.00"}, {"total": "3.00"}]
    assert kinds(strong, answers, NOT_PRINTED) == ["reask", "repair", "reask", "repair"]


def test_strong_asks_for_the_whole_where_a_part_is_most_of_it() -> None:
    """The lines as a whole are most of an invoice: everything is asked again, errors shown."""
    flow, _ = begin(strong)
    error = ("line_items: the amounts sum to 540.00, which is neither net 550.00 nor total 654.50", "line_items")
    ask = turn(flow, reply(create(INVOICE)), error)
    assert ask.offers == (CREATE, NOTHING_TO_EXTRACT)
    assert ask.messages[-1].tool_results[0].content == error[0]


def test_small_chooses_then_draws() -> None:
    """A small model gets a closed choice first, then other draws."""
    answers: list[Any] = [WRONG_TOTAL, {"total": "104.50"}, {**INVOICE, "total": "1.00"}, {**INVOICE, "total": "2.00"}]
    assert kinds(small, answers, NOT_PRINTED) == ["reask", "narrow", "resample", "resample"]


def test_small_draws_where_nothing_can_be_chosen() -> None:
    """Where the document holds no candidates a small model is drawn from again at once; text is asked again."""
    flow, _ = begin(small, max_attempts=4)
    assert send(flow, reply(text="hm")).messages[-1].content.startswith("Your answer called no function")
    ask = turn(flow, reply(create(INVOICE)), ("line_items: too few", "line_items"))
    assert ask.sampling.temperature == 0.8


def test_small_is_asked_whether_there_is_such_a_record() -> None:
    """An identifier that does not stand in the document may be none at all: no choice of others makes one up, and the
    model can say that there is nothing."""
    flow, _ = begin(small)
    ask = turn(flow, reply(create(INVOICE)), ("invoice_number: does not stand in the document", "invoice_number"))
    assert ask.offers == (CREATE, NOTHING_TO_EXTRACT)
    assert choice(ask, "invoice_number") is None


def test_adaptive_goes_by_the_rules() -> None:
    """Each rank by the policy that the rules name for it; ``strong`` where they name none."""
    rules = {"ranks": 2, "policies": ("small", "strong"), "max_attempts": 2}
    flow, _ = begin(adaptive, **rules)
    ask = turn(flow, reply(create(WRONG_TOTAL)), NOT_PRINTED)
    assert choice(ask, "total")
    ask = turn(flow, reply(create({"total": "104.50"})), NOT_PRINTED)
    assert (ask.rank, ask.offers) == (1, (CREATE, NOTHING_TO_EXTRACT))
    ask = turn(flow, reply(create({**INVOICE, "total": "1.00"})), NOT_PRINTED)
    assert (ask.rank, ask.tool_choice, choice(ask, "total")) == (1, "create_invoice", None)
    assert kinds(adaptive, [WRONG_TOTAL, {"total": "1.00"}], NOT_PRINTED) == ["reask", "repair"]


def test_policies_by_name() -> None:
    """A policy goes by its name; one of the user's own is itself; a name that does not exist is an error."""
    assert named("small") is small is policies["small"]
    assert named(lambda _: NextModel()) is not None
    with pytest.raises(ConfigurationError, match="no policy 'smal'"):
        named("smal")
    with pytest.raises(ValueError, match="1 policies for 2 models"):
        Rules(ranks=2, policies=("small",))


def test_after_a_cut_reply_every_policy_asks_for_what_is_missing() -> None:
    """Records are missing: the whole conversation goes on, whatever is open beside."""
    for policy in policies.values():
        flow, _ = begin(policy)
        cut = reply(create(WRONG_TOTAL), ToolCall("c", "create_invoice", '{"inv'), cut=True)
        ask = turn(flow, cut, NOT_PRINTED)
        assert ask.messages[-1].content.startswith("Your answer was cut off after 1 record.")
        assert ask.offers == (CREATE, NOTHING_TO_EXTRACT)


records = st.sampled_from([
    INVOICE, WRONG_TOTAL, {"total": "654.50"}, {"total": "1"}, {}, {"net": "1"}, {**INVOICE, "invoice_number": "A-77"},
])  # fmt: skip
answers = st.lists(st.lists(records.map(json.dumps) | st.just("{x"), max_size=3), min_size=1, max_size=8)
faults = st.sampled_from([None, None, NOT_PRINTED, SUM, ("line_items.0.amount: no", "line_items.0.amount"), ("no",)])


@settings(deadline=None, max_examples=150)
@given(st.sampled_from(sorted(policies)), answers, st.lists(faults, min_size=8), st.data())
def test_what_holds_for_every_policy(policy: str, script: list[Any], said: list[Any], data: Any) -> None:
    """Asks never exceed attempts and never share a key, accepted records are kept once, transcripts are valid."""
    limits = (data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4)))
    flow, effect = begin(policies[policy], max_attempts=limits, ranks=2, policies=("small", "strong"))
    keys, accepted = [], []
    left, errors = iter(script), iter(said)
    while isinstance(effect, (Ask, Calls)):
        if isinstance(effect, Ask):
            keys.append(request_key(f"m{effect.rank}", effect))
            cut = data.draw(st.sampled_from([False] * 5 + [True]))
            turn_of = 0 if effect.messages[-1].role == "user" and len(effect.messages) == 2 else len(keys)
            sent = [create(one, f"call_{turn_of}_{place}") for place, one in enumerate(next(left, []))]
            effect = send(flow, reply(*sent, cut=cut))
        else:
            verdicts = [next(errors, NOT_PRINTED) for _ in effect.calls]
            told = judge(effect, *verdicts)
            accepted += [one.processed_content for one, what in zip(told, verdicts, strict=True) if what is None]
            effect = send(flow, told)
    assert len(keys) == len(set(keys)) <= sum(limits)
    assert [one.processed_content for one in effect.results] == accepted
    asked = [one.id for message in effect.transcript for one in message.tool_calls]
    assert asked == [one.call_id for message in effect.transcript for one in message.tool_results]
    assert len(asked) == len(set(asked))
    assert effect.error or effect.status.is_good


def test_a_field_that_is_named_by_its_words() -> None:
    """A function's own sum is found by the words of its fields, underscores or none."""
    schema = replace(CREATE, parameters={
        **PARAMETERS, "properties": {**PARAMETERS["properties"], "total_tax": {"type": "string"}},  # type: ignore[dict-item]
    })  # fmt: skip
    flow, _ = begin(narrow, TEXT_OF_IT, schema)
    ask = turn(flow, reply(create(WRONG_TOTAL)), ("total: is not net and total tax together", "total"))
    assert list(ask.offers[0].parameters["properties"]) == ["net", "total", "total_tax"]
