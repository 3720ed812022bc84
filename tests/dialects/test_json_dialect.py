"""JSON that is asked for in the prompt, and the reading that all dialects of JSON share."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from dialect_samples import ASK, DOCUMENT, INVOICE, ONE, RECEIPT, TWO, as_json, calls, invoices

from extractor.coercion import Unusable, decode
from extractor.dialects import json as dialect
from extractor.messages import Ask, Image, Message, Offer, Reply, ToolCall, ToolResult, Verdict

FENCED = {**ONE, "total": "see ```json {} ``` above"}


@pytest.mark.parametrize(
    ("text", "records"),
    [
        (as_json({"create_invoice": [ONE, TWO], "create_receipt": []}), [ONE, TWO]),
        (as_json({"create_invoice": ONE}), [ONE]),
        (f"```json\n{as_json({'create_invoice': [ONE]})}\n```", [ONE]),
        (f"Sure {{see below}}, [here]:\n```\n{as_json(FENCED)}\n``` Anything else?", [FENCED]),
        (as_json([ONE, TWO]), [ONE, TWO]),
        (as_json(ONE), [ONE]),
        (f"{as_json(ONE)}\n\n{as_json(TWO)}", [ONE, TWO]),
        (json.dumps(as_json({"create_invoice": [ONE]})), [ONE]),
        (as_json({"create_invoice": as_json([ONE, TWO])}), [ONE, TWO]),
        (as_json({"invoices": [ONE, TWO]}), [ONE, TWO]),
        (as_json({"answer": {"create_invoice": [ONE]}}), [ONE]),
        (as_json({"name": "create_invoice", "arguments": ONE}), [ONE]),
        (as_json({"create_invoice": [ONE]}).replace("}]", "},]"), [ONE]),
        (as_json(ONE) + "}]", [ONE]),
        (as_json({"create_invoice": [ONE, TWO]})[:-2], [ONE, TWO]),
        (as_json([ONE, TWO])[:-1], [ONE, TWO]),
        (as_json(ONE).replace("12.00", "12\n00"), [{**ONE, "total": "12\n00"}]),
        ("{note: see below} {so: " + as_json(TWO).replace('"total":', "total :") + "}", [TWO]),
    ],
    ids=[
        "as asked", "no list", "fence", "fence in a string, and chatter", "list", "one bare", "two bare", "encoded",
        "list encoded", "other name around it", "nested", "as a call", "trailing comma", "garbage behind",
        "brackets missing", "bracket of the list missing", "line break in a string",
        "keys without quotes",
    ],
)  # fmt: skip
def test_what_has_one_reading_is_read(text: str, records: list[object]) -> None:
    """Whatever is written around the records, they come as calls, and no new ask is spent on the form."""
    assert calls(dialect, text) == [("create_invoice", record) for record in records]


def test_the_object_that_fits_is_taken_wherever_it_stands() -> None:
    """Not the first object and not the last one: the one that has the fields of a function."""
    other = as_json({"confidence": 1, "page": 2})
    assert calls(dialect, f"{other} {as_json(ONE)} {other}") == invoices(ONE)


def test_a_draft_and_a_repetition_are_no_records() -> None:
    """What another object says in full, and what was said before word for word, is recorded once."""
    draft = as_json({"invoice_number": "A-1", "total": "12.00"})
    assert calls(dialect, f"I see {draft}. So: {as_json(ONE)} Again: {as_json(ONE)}") == invoices(ONE)


def test_equal_records_of_one_list_are_all_kept() -> None:
    """Two equal receipts on one page are two."""
    assert calls(dialect, as_json({"create_invoice": [ONE, ONE]})) == invoices(ONE, ONE)


def test_each_record_goes_to_the_function_whose_fields_it_has() -> None:
    """A mixed list needs no names."""
    shop = {"shop": "Corner", "paid": True}
    assert calls(dialect, as_json([ONE, shop])) == [*invoices(ONE), ("create_receipt", shop)]


def test_an_object_that_fits_two_functions_alike_is_none() -> None:
    """Where there are two readings, none is taken."""
    twin = replace(RECEIPT, name="create_ticket")
    assert calls(dialect, '{"shop": "Corner"}', Ask(DOCUMENT, (RECEIPT, twin))) == []


def test_a_record_that_lacks_a_field_is_a_call_all_the_same() -> None:
    """The model is told which field is missing, and not that it made no call."""
    assert calls(dialect, '{"invoice_number": "A-1", "line_items": []}') == invoices(
        {"invoice_number": "A-1", "line_items": []}
    )


def test_fractions_are_the_text_that_was_sent() -> None:
    """No number goes through a float: every digit is kept, trailing zeros too."""
    ((_, sent),) = calls(
        dialect, '{"create_invoice": [{"invoice_number": 7, "total": 12345678901234567.10, "due": 1e2}]}'
    )
    assert sent == {"invoice_number": 7, "total": "12345678901234567.10", "due": "1e2"}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"invoice_number": "24" inch", "total": "1"}', "delimiter"),
        ('{"create_invoice": [{"invoice_number": "A-1", "total": "1"}, {"invoice_number": "A-2" "total"', "delimiter"),
        ('{"invoice_number": "A-1", "total": "1", "total": "2"}', "given twice"),
        ('{"invoice_number": "A-1", "total": NaN}', "NaN"),
        ('{"invoice_number": "A-1", "total": ' + "9" * 500 + "}", "out of range"),
        ('{"invoice_number": "A-1", "line_items": ' + "[" * 60 + "]" * 60 + "}", "deeply"),
        ('```json\n{"invoice_number": "A-1", "total": \n```', "character"),
    ],
)
def test_a_broken_record_is_a_call_whose_error_is_told(text: str, what: str) -> None:
    """Nothing of it is guessed or lost: its text is the argument, and decoding that says what is wrong."""
    ((name, sent),) = calls(dialect, text)
    assert name == "create_invoice"
    with pytest.raises(Unusable, match=what):
        decode(sent)


def test_what_stands_before_a_broken_record_is_read() -> None:
    """Whole records come first, then the broken one with all that follows."""
    broken = '{"invoice_number": "A-2" "total": "7"}'
    assert calls(dialect, f"{as_json(ONE)}\n{broken}") == [*invoices(ONE), ("create_invoice", broken)]


@pytest.mark.parametrize(
    "echo",
    [
        as_json(INVOICE.parameters),
        as_json({"name": INVOICE.name, "description": "", "parameters": INVOICE.parameters}),
        as_json({"name": INVOICE.name, "parameters": INVOICE.parameters}),
        as_json({"create_invoice": [INVOICE.parameters]}),
        as_json(INVOICE.parameters["properties"]),
    ],
)
def test_an_echo_of_the_schema_is_no_call(echo: str) -> None:
    """A small model that repeats what it was shown has extracted nothing; its true answer beside it counts."""
    assert calls(dialect, echo) == []
    assert calls(dialect, f"{echo}\n{as_json(ONE)}") == invoices(ONE)


def test_an_echo_of_the_shape_is_no_call() -> None:
    """Dots in place of values are what the prompt showed, not what the document says, nor that it says nothing."""
    shown = dialect.word(ASK).messages[-1].content.splitlines()[-1]
    assert calls(dialect, shown) == []
    assert calls(dialect, shown.replace("…", "...")) == []


def test_all_lists_empty_means_nothing_to_extract() -> None:
    """It is the word for an empty document, as is the function by that name."""
    assert calls(dialect, '{"create_invoice": [], "create_receipt": null}') == [
        ("nothing_to_extract", {"reason": "the answer lists no record"})
    ]
    named = {"nothing_to_extract": [{"reason": "a letter"}]}
    assert calls(dialect, as_json(named)) == [("nothing_to_extract", {"reason": "a letter"})]


@pytest.mark.parametrize("text", ["", "There is no invoice.", "{}", "[]", "[1, 2]", '{"a": 1}', "{x: 1}", "{'a': 'b'}"])
def test_text_without_a_record_stays_text(text: str) -> None:
    """The reply has no calls, which the loop feeds back."""
    assert dialect.read(Reply(text), ASK) == Reply(text)


def test_a_cut_reply_gives_its_whole_records() -> None:
    """The record that the cut went through is left out, also where only its own list of items was cut."""
    text = as_json({"create_invoice": [ONE, TWO]})
    reply = dialect.read(Reply(text[:-4], finish_reason="length"), ASK)
    assert (reply.finish_reason, reply.content) == ("length", "")
    assert [call.arguments for call in reply.tool_calls] == [ONE]
    assert dialect.read(Reply(text[:30], finish_reason="length"), ASK).content == text[:30]
    assert calls(dialect, '{"create_invoice": []', finish="length") == []


def test_the_schema_stands_in_the_prompt_after_the_document() -> None:
    """Nothing is on offer over the wire, and no schema is set: everything is in words."""
    asked = dialect.word(replace(ASK, messages=(DOCUMENT[0], replace(DOCUMENT[1], images=(Image(b"png"),)))))
    assert (asked.offers, asked.tool_choice, asked.schema) == ((), "auto", None)
    system, user = asked.messages
    assert system == DOCUMENT[0]
    assert user.images == (Image(b"png"),)
    document, _, rest = user.content.partition("</document>")
    assert "Acme" in document
    for offer in (INVOICE, RECEIPT):
        assert as_json(offer.parameters) in rest
        assert f"{offer.name}: Record one" in rest
    items = '"line_items": [{"description": "…", "amount": "…"}]'
    invoice = f'{{"invoice_number": "…", "total": "…", "due": "…", {items}}}'
    receipt = '{"shop": "…", "paid": "…", "copies": "…"}'
    assert rest.endswith(f'\n{{"create_invoice": [{invoice}], "create_receipt": [{receipt}]}}')


def test_a_chosen_function_is_the_only_one_asked_for() -> None:
    """``tool_choice`` with a name leaves the other functions out of the prompt; ``auto`` allows text."""
    chosen = dialect.word(replace(ASK, tool_choice="create_receipt", parallel=False)).messages[-1].content
    assert "create_receipt" in chosen
    assert "create_invoice" not in chosen
    assert "at most one object in all" in chosen
    assert "plain words" in dialect.word(replace(ASK, tool_choice="auto")).messages[-1].content


def test_without_offers_nothing_is_added() -> None:
    """A plain chat goes out as it is."""
    assert dialect.word(Ask(DOCUMENT)).messages == DOCUMENT


def test_earlier_turns_are_plain_text_and_alternate() -> None:
    """Calls are shown as the answer that they were, results as the user's, one turn after the other."""
    turns = (
        Message(
            "assistant", "", (ToolCall("1", "create_invoice", as_json(ONE)), ToolCall("2", "create_invoice", "[broken"))
        ),
        Message(
            "tool",
            tool_results=(
                ToolResult("1", "create_invoice", "SUCCESS"),
                ToolResult("2", "create_invoice", "not valid JSON", Verdict.REJECTED),
            ),
        ),
        Message("user", "Still to be mended."),
    )
    asked = dialect.word(replace(ASK, messages=(*DOCUMENT, *turns)))
    assert [turn.role for turn in asked.messages] == ["system", "user", "assistant", "user"]
    assert json.loads(asked.messages[2].content) == {"create_invoice": [ONE, "[broken"]}
    results = asked.messages[3].content
    assert "create_invoice 1: accepted\ncreate_invoice 2: not valid JSON" in results
    assert 'is given up by {"nothing_to_extract": [{"reason": ' in results
    assert results.endswith("Still to be mended.")
    assert not any(turn.tool_calls or turn.tool_results for turn in asked.messages)


def test_ids_are_new_in_each_turn() -> None:
    """Results find their calls over the whole conversation."""
    later = replace(ASK, messages=(*DOCUMENT, Message("assistant", "x"), Message("user", "y")))
    text = as_json([ONE, TWO])
    first, second = (dialect.read(Reply(text), one).tool_calls for one in (ASK, later))
    assert len({call.id for call in (*first, *second)}) == 4


def test_a_function_without_declared_fields_is_read_by_its_name_alone() -> None:
    """An open object tells nothing by its fields."""
    free = Ask(DOCUMENT, (Offer("note", "", {"type": "object"}),))
    assert calls(dialect, '{"a": 1, "b": 2}', free) == []
    assert calls(dialect, '{"note": [{"a": 1}]}', free) == [("note", {"a": 1})]
