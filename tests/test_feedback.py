"""What went wrong, as text that a model can act on."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, BeforeValidator, Field, ValidationError, model_validator

from extractor import feedback
from extractor.feedback import Names, Problem, argument_errors, as_text, excerpt, nearest, problems, unknown_function


class Item(BaseModel):
    text: str
    amount: Decimal


class Other(BaseModel):
    kind: Literal["other"]
    date: int


def _odd(value: Any) -> Any:
    if value == "odd":
        raise ValueError("an odd value")
    return value


class Record(BaseModel):
    number: str
    total: Annotated[Decimal, BeforeValidator(_odd)]
    either: int | Item | Other | None = None
    items: list[Item | str] = []
    labels: dict[str, int] = {}

    @model_validator(mode="after")
    def whole(self) -> Record:
        if self.number == "bad":
            raise ValueError("number and total do not go together")
        return self


def _found(arguments: dict[str, Any]) -> tuple[Problem, ...]:
    with pytest.raises(ValidationError) as caught:
        Record.model_validate(arguments)
    return problems(caught.value, arguments, Record.model_fields)


def test_all_problems_are_told_at_once_by_path_in_declared_order() -> None:
    """A missing field, a wrong total and a wrong amount in the second item come in one text."""
    found = _found({"items": [{"text": "a", "amount": "1"}, {"text": "b", "amount": "x,y"}], "total": "ten"})
    assert as_text(found) == (
        "number: is required; total: should be a valid decimal, got 'ten'; "
        "items.1.amount: should be a valid decimal, got 'x,y'"
    )


def test_names_of_union_branches_are_no_part_of_a_path() -> None:
    """What pydantic adds for the branches of a union is left out, and their messages stand together."""
    found = _found({"number": "1", "total": "1", "either": {"text": 3}})
    assert {problem.path for problem in found} == {"either.text", "either.amount", "either.kind", "either.date"}
    assert as_text(_found({"number": "1", "total": "1", "either": "x"})).startswith("either: should be a valid integer")


def test_several_messages_about_one_field_are_joined() -> None:
    """path: message, message; path: message."""
    found = [Problem("a.0", "x"), Problem("b", "y"), Problem("a.0", "z"), Problem("a.0", "x"), Problem("", "whole")]
    assert as_text(found) == "a.0: x, z; b: y; whole"


def test_a_validators_own_words_are_kept_and_the_record_is_not_quoted() -> None:
    """A value error says what its author wrote, without pydantic's prefix; of the whole record nothing is quoted."""
    assert as_text(_found({"number": "1", "total": "odd"})) == "total: an odd value"
    assert as_text(_found({"number": "bad", "total": "1"})) == "number and total do not go together"


def test_keys_of_a_map_are_part_of_the_path() -> None:
    """A key that the model chose is a place too."""
    assert _found({"number": "1", "total": "1", "labels": {"x": "y"}})[0].path == "labels.x"


def test_an_error_of_a_model_whose_input_is_unknown_has_its_path() -> None:
    """Without the arguments, classes and validators are told by their looks, and a field named date stays."""
    with pytest.raises(ValidationError) as caught:
        Record.model_validate({"number": "1", "total": "1", "either": {"kind": "other", "date": "x"}})
    paths = [problem.path for problem in problems(caught.value)]
    assert paths == ["either.text", "either.amount", "either.date"]


def test_excerpts_are_short() -> None:
    """However long a value is, 60 characters of it are quoted, on one line."""
    text = as_text(_found({"number": "1", "total": "9\n" * 10_000}))
    assert len(text) < 120
    assert "\n" not in text
    assert excerpt({"a": 1}) == "an object"
    assert excerpt(None) == "null"
    assert excerpt(object()) == ""


def test_long_lists_of_problems_say_how_many_more_there_are() -> None:
    """A thousand wrong items do not make a text of a thousand parts."""
    text = as_text(Problem(f"items.{number}", "is wrong") for number in range(1000))
    assert text.endswith("and 960 more")


def test_an_unknown_function_is_answered_with_what_was_meant() -> None:
    """A near name is suggested, a far one is not, and what is on offer is listed."""
    names = ("create_invoice", "nothing_to_extract")
    assert unknown_function("createInvoice", names) == (
        "there is no function 'createInvoice'; did you mean create_invoice?; "
        "available: create_invoice, nothing_to_extract"
    )
    assert "did you mean" not in unknown_function("weather", names)


def test_the_texts_for_arguments_that_are_no_object_differ() -> None:
    """A JSON array, plain text, and broken JSON each have a text of their own."""
    texts = {feedback.unusable(kind) for kind in ("array", "text", "scalar", "broken")}
    assert len(texts) == 4
    assert feedback.unusable("broken", "here") == "the arguments are not valid JSON: here"


def test_argument_errors_list_what_is_required_missing_unrecognised_and_accepted() -> None:
    """`file_path` was sent for `path`: the text says so, and leaves no empty list in."""
    text = argument_errors(Names(["path"], ["path"], ["file_path"], [], ["path", "limit"]))
    assert text == "required: path; missing: path; unrecognised: file_path (did you mean path?); accepted: path, limit"
    assert argument_errors(Names(["path"], ["path"], [], [], ["path"])) == (
        "required: path; missing: path; accepted: path"
    )


def test_an_argument_that_is_given_is_never_suggested() -> None:
    """`patern` beside a good `file_path` suggests `pattern`; `path` beside it suggests nothing."""
    names = Names(["file_path", "pattern"], ["pattern"], ["patern", "path"], ["file_path"], ["file_path", "pattern"])
    assert "unrecognised: patern (did you mean pattern?), path;" in argument_errors(names)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Total", "total"),
        ("invoiceNumber", "invoice_number"),
        ("number", "invoice_number"),
        ("colour", None),
        ("", None),
    ],
)
def test_what_is_near_is_found(name: str, meant: str | None) -> None:
    """Case, separators, slips of the pen and parts of a name do not matter; far names do."""
    assert nearest(name, ["invoice_number", "total", "tax"]) == meant


HOSTILE = st.text(alphabet=st.characters(), max_size=300)


@settings(max_examples=100, deadline=None)
@given(HOSTILE, st.lists(HOSTILE, max_size=60))
def test_texts_about_hostile_names_are_bounded_and_can_be_sent(name: str, more: list[str]) -> None:
    """Whatever a model calls things, the text is UTF-8, holds no NUL, and does not grow with it."""
    names = Names(["path"], ["path"], [name, *more], [], ["path"])
    for text in (argument_errors(names), unknown_function(name, ["path"]), feedback.unusable("broken", name * 9)):
        assert text.encode("utf-8")
        assert "\0" not in text
        assert len(text) < 5000


class Broad(BaseModel):
    a: int
    b: Item | list[int] | None
    c: dict[str, Item]
    d: Literal["x", "y"] = Field(default="x")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "text"]), inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(st.fixed_dictionaries({}, optional={"a": JSON, "b": JSON, "c": JSON, "d": JSON}))
def test_paths_name_a_place_in_the_arguments_or_a_missing_field(arguments: dict[str, Any]) -> None:
    """Every part of a path but the last is a key or an index that the arguments have."""
    try:
        Broad.model_validate(arguments)
    except ValidationError as error:
        found = problems(error, arguments, Broad.model_fields)
        assert found
        assert not any(word in as_text(found) for word in ("pydantic", "Item", "http", "function-"))
        for problem in found:
            here: Any = arguments
            for part in problem.path.split(".")[:-1]:
                here = here[int(part)] if isinstance(here, list) else here[part]
