"""Repairs that have one reading, and those that are not made."""

from __future__ import annotations

import contextlib
import json
from decimal import Decimal
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from extractor.coercion import Unusable, broken_text, decode, echoes_schema, repair, stands_as_value
from extractor.parameters import generated


class Part(BaseModel):
    name: str | None
    price: Decimal | None


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: list[str]


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str]


class Sheet(BaseModel):
    tags: list[str]
    parts: list[Part]
    part: Part
    note: str | None
    salary: float | None = 5.0
    status: Literal["bocm", "none"] | None = None
    twin: Literal["Up", "uP"] | None = None
    code: str = ""
    pet: Cat | Dog | None = None


SCHEMA = generated(Sheet)


def mended(arguments: dict[str, Any], text: str = "") -> dict[str, Any]:
    """The repaired arguments, those that were filled in left out."""
    repaired, _ = repair({"note": 1, **arguments}, SCHEMA, text)
    return {key: value for key, value in repaired.items() if key in arguments}


# -- decoding ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}', ' \n{"a": 1} ', '```json\n{"a": 1}\n```', 'Here it is:\n```\n{"a": 1}\n```\nDone.',
        '```{"a": 1}```', '"{\\"a\\": 1}"', '\ufeff{"a": 1}', '```json\n{"a": 1}',
    ],
)  # fmt: skip
def test_an_object_is_read_whatever_it_is_wrapped_in(text: str) -> None:
    """Plain, in a code fence, or encoded twice."""
    assert decode(text) == {"a": 1}


def test_a_fence_inside_a_value_is_part_of_the_value() -> None:
    """Only a fence around the object is taken off."""
    inside = {"code": "```py\nprint('{')\n```"}
    assert decode(json.dumps(inside)) == inside
    assert decode(f"```json\n{json.dumps(inside)}\n```") == inside


@pytest.mark.parametrize("nothing", [None, "", "  ", "null", {}, "{}"])
def test_no_arguments_are_an_empty_object(nothing: Any) -> None:
    """Providers leave the arguments of a function without parameters out in many ways."""
    assert decode(nothing) == {}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("[1]", "array"), ('"hello"', "text"), ("hello", "text"), ("12", "scalar"), ("true", "scalar"),
        ('{"a": ', "broken"), ('{"a": 1} {"b": 2}', "broken"), ("{'a': 1}", "broken"), ("```\n{a}\n```", "broken"),
        ('{"a": NaN}', "broken"), ('{"a": -Infinity}', "broken"), ('{"a": 1, "a": 2}', "broken"),
        ('{"a": 1e999999999}', "broken"), ('{"a": 1e99999999999999999999999}', "broken"),
        ('{"a": ' + "9" * 5000 + "}", "broken"), ('{"a": 0.' + "9" * 5000 + "}", "broken"),
        ('{"a":' * 50 + "1" + "}" * 50, "broken"), ("[" * 100_000, "broken"), ('{"a":' * 100_000, "broken"),
        ({"a": float("nan")}, "broken"), ({"a": [float("inf")]}, "broken"), ({1: 2}, "broken"), ([1], "array"),
    ],
)  # fmt: skip
def test_what_is_no_object_is_said_to_be_what_it_is(text: Any, kind: str) -> None:
    """An array, text, one value, and broken or measureless JSON are told apart; nothing crashes."""
    with pytest.raises(Unusable) as caught:
        decode(text)
    assert caught.value.kind == kind
    assert len(str(caught.value)) < 200


def test_a_key_that_is_said_twice_with_one_value_is_one_key() -> None:
    """Repetition without contradiction has one reading."""
    assert decode('{"a": 1, "a": 1}') == {"a": 1}


def test_no_digit_of_a_number_is_lost() -> None:
    """Fractions are decoded as Decimal, with every digit and trailing zero."""
    assert str(decode('{"a": 12345678901234567.890}')["a"]) == "12345678901234567.890"


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=60) | st.text(alphabet='{}[]",:`\\ \nau1e', max_size=40))
def test_decoding_ends_in_an_object_or_in_unusable(text: str) -> None:
    """No text ends in any other exception."""
    with contextlib.suppress(Unusable):
        assert isinstance(decode(text), dict)


# -- lists and objects as text -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ('["a","b"]', ["a", "b"]), ("a\nb", ["a", "b"]), ("a", ["a"]), ("", []), (" \n ", []), ("[a", ["[a"]),
        ('```json\n["a"]\n```', ["a"]), (["a"], ["a"]), ('{"a": 1}', ['{"a": 1}']),
    ],
)  # fmt: skip
def test_a_list_of_strings_may_arrive_as_text(sent: Any, read: list[str]) -> None:
    """JSON is decoded once more, other text is its lines, and blank is an empty list."""
    assert mended({"tags": sent}) == {"tags": read}


def test_a_list_or_an_object_may_arrive_as_json_text() -> None:
    """Decoded once more, at every level, and what it holds is repaired too."""
    sent = {"parts": '[{"name": "n/a", "price": 1.50}]', "part": '{"name": "x", "price": "1"}'}
    assert mended(sent) == {"parts": [{"name": None, "price": Decimal("1.50")}], "part": {"name": "x", "price": "1"}}


@pytest.mark.parametrize("sent", ["a\nb", "", "[1", "7", '"x"'])
def test_text_that_is_no_list_of_objects_is_left_to_the_validator(sent: str) -> None:
    """Only lists of strings can be read from lines."""
    assert mended({"parts": sent, "part": sent}) == {"parts": sent, "part": sent}


def test_json_in_a_text_field_stays_text() -> None:
    """Where text is wanted, text is what it is."""
    assert mended({"note": '["a"]', "code": '{"a": 1}'}) == {"note": '["a"]', "code": '{"a": 1}'}


# -- nulls -------------------------------------------------------------------------------------------------------------


def test_a_missing_key_that_must_be_there_and_may_be_null_is_null() -> None:
    """Required and nullable: null. With a default, or not nullable: left as it is."""
    repaired, remarks = repair({"part": {}}, SCHEMA)
    assert repaired == {"part": {"name": None, "price": None}, "note": None}
    assert remarks == ()


@pytest.mark.parametrize("word", ["N/A", "none", "null", "-", "unknown", "n/a", "None"])
def test_words_for_nothing_are_null_where_null_is_allowed(word: str) -> None:
    """At the top and within items; never where null is not allowed."""
    sent = {"note": word, "parts": [{"name": word, "price": word}], "code": word, "salary": word}
    null = {"name": None, "price": None}
    assert mended(sent) == {"note": None, "parts": [null], "code": word, "salary": None}


def test_a_word_for_nothing_that_the_document_prints_as_a_value_is_kept() -> None:
    """A customer may be called None; a number cannot."""
    text = "Invoice 7\nCustomer: None\nTotal: None\n"
    assert mended({"note": "None", "salary": "None"}, text) == {"note": "None", "salary": None}


@pytest.mark.parametrize(
    ("literal", "text", "stands"),
    [
        ("None", "Name: None", True), ("None", "None", True), ("N/A", "PO number   N/A   net", True),
        ("None", "Name:\n  None.\nx", True), ("none", "none of these apply", False), ("None", "Name: Nonesuch", False),
        ("unknown", "the sender is unknown", False), ("-", "a - b\n-\n", False), ("", "", False),
        ("N/A", "|N/A|", True),
    ],
)  # fmt: skip
def test_a_literal_is_a_value_when_it_stands_alone_or_after_a_label(literal: str, text: str, stands: bool) -> None:
    """Words within a sentence are no values, and a dash never is."""
    assert stands_as_value(literal, text) is stands


def test_null_stays_null() -> None:
    """Nothing is made of a null, whatever is declared."""
    sent = {"note": None, "salary": None, "status": None, "code": None, "tags": None, "pet": None}
    assert mended(sent) == sent


# -- enums, numbers, NUL -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "read"),
    [("BOCM", "bocm"), (" Bocm ", "bocm"), ("bocm", "bocm"), ("NONE", "none"), ("other", "other"), ("N/A", None)],
)
def test_a_member_in_other_case_is_taken_when_only_one_fits(sent: str, read: str | None) -> None:
    """A member that is a word for nothing is still a member."""
    assert mended({"status": sent}) == {"status": read}


@pytest.mark.parametrize("sent", ["up", "UP"])
def test_members_that_differ_in_case_alone_are_left_to_the_validator(sent: str) -> None:
    """Two fit: nothing is guessed. An exact one is exact."""
    assert mended({"twin": sent}) == {"twin": sent}
    assert mended({"twin": "uP"}) == {"twin": "uP"}


@pytest.mark.parametrize(
    ("sent", "read"),
    [(17, "17"), (Decimal("27.80"), "27.80"), (1.5, "1.5"), (True, True), (Decimal("1E+30"), Decimal("1E+30"))],
)
def test_a_number_where_only_text_is_wanted_is_its_text(sent: Any, read: Any) -> None:
    """As it was printed; truth values and exponents are left alone."""
    repaired = mended({"code": sent})["code"]
    assert repaired == read
    assert type(repaired) is type(read)


def test_nul_bytes_are_removed_everywhere_with_a_remark() -> None:
    """In values and keys, declared or not, however deep."""
    sent = {"code": "a\0b", "tags": ["\0"], "else": {"x\0": ["y\0"]}}
    repaired, remarks = repair(sent, SCHEMA)
    assert repaired == {"code": "ab", "tags": [""], "else": {"x": ["y"]}, "note": None}
    assert "code: NUL bytes were removed" in remarks


def test_the_branch_of_a_union_is_told_by_its_tag() -> None:
    """Repairs reach into the alternative that the object says it is, and into none when it does not say."""
    assert mended({"pet": {"kind": "dog", "tricks": "sit\nstay"}})["pet"]["tricks"] == ["sit", "stay"]
    assert mended({"pet": {"tricks": "sit\nstay"}})["pet"]["tricks"] == "sit\nstay"


def test_halves_of_surrogate_pairs_are_found_with_their_path() -> None:
    """A text that cannot be encoded is named; whole characters beyond the first plane are fine."""
    assert list(broken_text({"a": ["x", "\ud83d"], "b": "😀", "c\udc00": 1})) == ["a.1", "c\udc00"]


@pytest.mark.parametrize(
    "echo",
    [
        SCHEMA, {"properties": SCHEMA["properties"]}, {"type": "object", "properties": {"x": 1}},
        {"note": {"type": "string"}, "code": {"type": "string"}}, {"name": "f", "parameters": SCHEMA},
    ],
)  # fmt: skip
def test_an_echo_of_the_schema_is_recognised(echo: dict[str, Any]) -> None:
    """The whole of it, its properties, or a description in place of each value."""
    assert echoes_schema(echo, SCHEMA)


@pytest.mark.parametrize("sent", [{}, {"note": "type"}, {"part": {"name": "a"}}, {"tags": [], "properties": "x"}])
def test_values_are_no_echo(sent: dict[str, Any]) -> None:
    """What has values in it is judged by the validator."""
    assert not echoes_schema(sent, SCHEMA)


def test_a_function_that_asks_for_properties_is_not_taken_for_an_echo() -> None:
    """Names of JSON schema are allowed names of arguments."""
    schema = {"type": "object", "properties": {"type": {"type": "string"}, "properties": {"type": "object"}}}
    assert not echoes_schema({"type": "object", "properties": {"a": 1}}, schema)


KEYS = st.sampled_from([*SCHEMA["properties"], "name", "x"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner),
    max_leaves=10,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from([*SCHEMA["properties"], "x"]), JSON), st.text(max_size=30))
def test_repair_is_idempotent_and_loses_no_key(arguments: dict[str, Any], text: str) -> None:
    """What is mended is not mended again, and whatever was sent is still there."""
    once, _ = repair(arguments, SCHEMA, text)
    assert arguments.keys() <= once.keys()
    assert repair(once, SCHEMA, text)[0] == once


@settings(max_examples=60, deadline=None)
@given(st.fixed_dictionaries({"tags": st.lists(st.text(min_size=3, max_size=9)), "part": st.none(), "note": st.none()}))
def test_what_is_valid_already_is_not_touched(arguments: dict[str, Any]) -> None:
    """Good arguments without NUL come back equal."""
    clean = json.loads(json.dumps(arguments).replace("\\u0000", "x"))
    assert repair(clean, SCHEMA)[0] == clean
