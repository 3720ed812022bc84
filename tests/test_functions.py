"""What a model is offered: from callables, classes and JSON schemas."""

from __future__ import annotations

import dataclasses
import enum
import functools
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, StrictInt, ValidationError, model_validator
from sqlmodel import Field as ColumnField
from sqlmodel import SQLModel

from extractor.errors import DefinitionError
from extractor.functions import Context, Function, from_schema, function
from extractor.messages import Offer


class Line(BaseModel):
    """One line."""

    text: str = Field(description="as printed")
    amount: Decimal


class Draft(BaseModel):
    """An invoice as it is read."""

    number: str = Field(description="the invoice's number")
    total: Decimal
    note: str | None = None
    lines: list[Line]


class Colour(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


class Node(BaseModel):
    name: str
    children: list[Node] = []


class Fields(SQLModel):
    number: str
    total: Decimal


class FunctionsRow(SQLModel, table=True):
    id: int | None = ColumnField(default=None, primary_key=True)
    number: str


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Recorder:
    """Records a draft."""

    def __call__(self, draft: Draft) -> Draft:
        return draft


class Later(BaseModel):
    when: date


class StrictDraft(BaseModel):
    model_config = ConfigDict(strict=True)
    issued: date
    count: StrictInt

    @model_validator(mode="before")
    @classmethod
    def before(cls, value: Any) -> Any:
        return value


def create(draft: Draft, context: Context) -> Draft | None:
    """Record one invoice found in the document."""
    return draft


def search(pattern: str, path: str = ".", limit: int | None = None, kind: Literal["file", "folder"] = "file") -> str:
    """Search for a text.

    Looks into every file below a folder.

    :param pattern: what to look for
    :param path: where to look
    :param limit: how many at most
    """
    return pattern


def search_google(pattern: str, path: str = ".") -> str:
    """Search for a text.

    Args:
        pattern: what to look for
        path: where to look
    """
    return pattern


def search_numpy(pattern: str, path: str = ".") -> str:
    """Search for a text.

    Parameters
    ----------
    pattern : str
        what to look for
    path : str
        where to look
    """
    return pattern


def test_a_single_model_parameter_is_spread_and_the_context_is_not_shown() -> None:
    """The fields of a draft are the arguments, in declared order; the context is supplied by us."""
    made = function(create)
    assert list(made.parameters["properties"]) == ["number", "total", "note", "lines"]
    assert made.parameters["required"] == ["number", "total", "lines"]
    assert made.takes_context
    assert made.returns is Draft
    assert made.description == "Record one invoice found in the document."
    assert made.parameters["properties"]["number"]["description"] == "the invoice's number"


def _nodes(schema: object) -> list[dict[str, Any]]:
    if isinstance(schema, dict):
        return [schema, *(node for value in schema.values() for node in _nodes(value))]
    return [node for value in schema for node in _nodes(value)] if isinstance(schema, list) else []


def test_schemas_are_inlined_closed_and_free_of_noise() -> None:
    """No reference, no title; every object says that it takes nothing else."""
    nodes = _nodes(function(create).parameters)
    assert not [node for node in nodes if "$ref" in node or "$defs" in node or isinstance(node.get("title"), str)]
    objects = [node for node in nodes if node.get("type") == "object"]
    assert len(objects) == 2
    assert all(node["additionalProperties"] is False for node in objects)


def test_a_field_named_title_is_kept() -> None:
    """Only the title that a schema gives itself is noise, not a property of that name."""
    made = from_schema("f", "", {"type": "object", "title": "F", "properties": {"title": {"type": "string"}}}, dict)
    assert made.parameters == {
        "type": "object", "properties": {"title": {"type": "string"}}, "additionalProperties": False
    }  # fmt: skip


@pytest.mark.parametrize("target", [search, search_google, search_numpy])
def test_docstrings_of_three_styles_describe_parameters(target: Callable[..., Any]) -> None:
    """reST, Google and NumPy docstrings give the description and that of each parameter."""
    made = function(target)
    assert made.description.startswith("Search for a text.")
    properties = made.parameters["properties"]
    assert properties["pattern"] == {"type": "string", "description": "what to look for"}
    assert properties["path"] == {"type": "string", "description": "where to look", "default": "."}
    assert made.parameters["required"] == ["pattern"]


def test_optional_and_literal_parameters_go_through_pydantic() -> None:
    """Optional may be null, Literal is an enum, and a default makes an argument optional."""
    properties = function(search).parameters["properties"]
    assert properties["limit"]["anyOf"] == [{"type": "integer"}, {"type": "null"}]
    assert properties["kind"]["enum"] == ["file", "folder"]


def test_several_parameters_are_keywords_with_pythons_defaults() -> None:
    """What is left out is left to the callable's own default."""

    def add(first: int, second: Decimal = Decimal("2.50"), *, ctx: Context) -> Any:
        return first, second, ctx.call_id

    add.__annotations__ = {"first": int, "second": Decimal, "ctx": Context}
    made = function(add)
    assert list(made.parameters["properties"]) == ["first", "second"]
    value = made.validate({"first": "1"}, {})
    assert made.call(value, Context(call_id="c1")) == (1, Decimal("2.50"), "c1")


def test_a_model_beside_other_parameters_is_a_property() -> None:
    """Only a model that stands alone is spread."""

    def two(draft: Draft, tag: str) -> None: ...

    assert list(function(two).parameters["properties"]) == ["draft", "tag"]


def test_enums_dates_and_bounds_of_a_model_are_shown() -> None:
    """Types reach the schema as pydantic words them."""

    def put(colour: Colour, when: date, share: Annotated[float, Field(ge=0, le=1, description="of all")]) -> None: ...

    properties = function(put).parameters["properties"]
    assert properties["colour"]["enum"] == ["red", "blue"]
    assert properties["when"] == {"type": "string", "format": "date"}
    assert properties["share"] == {"type": "number", "minimum": 0, "maximum": 1, "description": "of all"}


def test_a_recursive_model_keeps_its_definition() -> None:
    """Only what cannot be inlined stays a reference."""
    parameters = function(Node).parameters
    assert parameters["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}
    assert list(parameters["$defs"]) == ["Node"]
    assert parameters["type"] == "object"


@pytest.mark.parametrize(("target", "name"), [(Draft, "draft"), (Fields, "fields"), (Point, "point")])
def test_a_class_is_a_function_that_returns_its_instance(target: type[Any], name: str) -> None:
    """Pydantic, SQLModel and dataclass: the validated instance is the result."""
    made = function(target)
    assert made.name == name
    sent = {"number": "1", "total": "2.50", "lines": [], "x": 1}
    value = made.validate(sent, {})
    assert type(made.call(value, Context())) is target
    assert made.returns is target


def test_the_description_of_a_class_is_its_docstring() -> None:
    """It is not said twice."""
    made = function(Draft)
    assert made.description == "An invoice as it is read."
    assert "description" not in made.parameters
    assert function(Fields).description == ""


def test_a_callable_object_and_a_partial_are_functions() -> None:
    """An object is known by its class, its docstring too; what a partial has bound is not shown."""
    assert function(Recorder(), name="record").description == "Records a draft."
    made = function(functools.partial(search, limit=3))
    assert made.name == "search"
    assert list(made.parameters["properties"]) == ["pattern", "path", "kind"]


def test_an_iso_date_is_taken_by_a_strict_model() -> None:
    """Strictness about Python types is lifted, also behind a before-validator of the whole model."""

    def keep(draft: StrictDraft) -> None: ...

    value = function(keep).validate({"issued": "2024-03-05", "count": 3}, {})
    assert value.issued == date(2024, 3, 5)


def test_validators_get_the_context() -> None:
    """A SQLModel class is validated with the context that its field types ask for."""
    seen: list[Any] = []

    class Asking(SQLModel):
        total: str

        @model_validator(mode="after")
        def look(self, info: Any) -> Any:
            seen.append(info.context)
            return self

    function(Asking).validate({"total": "1"}, {"style": "German"})
    assert seen == [{"style": "German"}]


def test_names_and_flags_can_be_given() -> None:
    """name, description, strict and timeout override what the target says."""
    made = function(create, name="invoice", description="d", strict=True, timeout=2)
    assert made.offer == Offer("invoice", "d", made.parameters, strict=True)
    assert made.timeout == 2


# -- from a JSON schema ------------------------------------------------------------------------------------------------

RAW = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 1},
        "mode": {"enum": ["r", "w"]},
        "limit": {"type": ["integer", "null"]},
        "where": {"$ref": "#/$defs/Where"},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
        "labels": {"type": "object", "additionalProperties": {"type": "number"}},
    },
    "required": ["where", "path"],
    "$defs": {"Where": {"type": "object", "properties": {"page": {"type": "integer", "minimum": 1}}}},
}


def test_a_json_schema_hands_over_one_dict() -> None:
    """The body gets a dict of what was sent, checked; required stands in declared order."""
    made = from_schema("read", "Read.", RAW, lambda arguments: arguments)
    assert made.parameters["required"] == ["path", "where"]
    assert "$defs" not in made.parameters
    sent = {"path": "a", "where": {"page": 2}, "mode": "r", "labels": {"x": Decimal("1.5")}, "limit": None}
    assert made.call(made.validate(sent, {}), Context()) == sent


@pytest.mark.parametrize(
    ("change", "at"),
    [
        ({"path": ""}, "path"), ({"path": 3}, "path"), ({"mode": "x"}, "mode"), ({"limit": True}, "limit"),
        ({"where": {"page": 0}}, "where"), ({"where": []}, "where"), ({"tags": ["a", "b", "c"]}, "tags"),
        ({"tags": "a"}, "tags"), ({"labels": {"x": "y"}}, "labels"), ({"path": None}, "path"),
    ],
)  # fmt: skip
def test_a_json_schema_is_checked(change: dict[str, Any], at: str) -> None:
    """Types, enums, bounds and nested objects are checked."""
    made = from_schema("read", "Read.", RAW, lambda arguments: arguments)
    with pytest.raises(ValidationError) as caught:
        made.validate({"path": "a", "where": {}, **change}, {})
    assert {error["loc"][0] for error in caught.value.errors()} == {at}


def test_a_json_schema_without_properties_takes_nothing() -> None:
    """A function without parameters is offered as a closed, empty object."""
    made = from_schema("now", "The time.", {"type": "object"}, lambda arguments, context: (arguments, context.call_id))
    assert made.parameters == {"type": "object", "properties": {}, "additionalProperties": False}
    assert made.call({}, Context(call_id="1")) == ({}, "1")


# -- what cannot be offered --------------------------------------------------------------------------------------------


def _unannotated(a) -> None:  # type: ignore[no-untyped-def]  # the subject of a test
    """No annotation."""


def _stray(a: int) -> None:
    """Stray.

    :param b: not there
    """


def _unresolved(a: Nowhere) -> None:  # type: ignore[name-defined]  # noqa: F821 - the subject of a test
    """A name that cannot be found."""


def _varied(*a: int) -> None:
    """Cannot be passed by name."""


def _of_row(row: FunctionsRow) -> None:
    """A table as a parameter."""


def _of_callable(back: Callable[[], None]) -> None:
    """No JSON form."""


def _of_thing(thing: Recorder) -> None:
    """No pydantic type."""


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (_unannotated, "'a' has no annotation"), (_stray, "'b', which is no parameter"), (_unresolved, "Nowhere"),
        (_varied, "cannot be passed by name"), (_of_row, "take a draft"), (FunctionsRow, "Pipeline(FunctionsRow)"),
        (_of_callable, "shown"), (_of_thing, "JSON"), (3, "int"), (Recorder, "instance"), (int, "fields"),
    ],
)  # fmt: skip
def test_what_cannot_be_offered_is_an_error_at_definition(target: Any, said: str) -> None:
    """Every mistake is one line that names it."""
    with pytest.raises(DefinitionError) as caught:
        function(target)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "array"}, "object"), ({"properties": {"a": {"type": "strong"}}}, "'strong'"),
        ({"properties": {}, "required": ["a"]}, "'a'"), ({"properties": {"a": {"$ref": "#/$defs/B"}}}, "#/$defs/B"),
        ({"properties": {"a": {"type": "string", "pattern": "("}}}, "cannot be checked"),
    ],
)  # fmt: skip
def test_a_wrong_json_schema_is_an_error_at_definition(schema: dict[str, Any], said: str) -> None:
    """A schema that cannot be shown or checked is refused."""
    with pytest.raises(DefinitionError) as caught:
        from_schema("f", "", schema, lambda arguments: arguments)
    assert said in str(caught.value)


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "é", "a\n"])
def test_names_are_those_that_models_can_call(name: str) -> None:
    """1 to 64 of letters, digits, _ and -."""
    with pytest.raises(DefinitionError):
        Function(name, "", {}, print)


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_timeout_is_above_zero(seconds: float) -> None:
    """A limit that no call can keep is an error."""
    with pytest.raises(DefinitionError):
        function(Draft, timeout=seconds)


def test_context_hands_out_the_hosts_values() -> None:
    """get has a default, as a mapping's has."""
    context = Context("document", "c1", {"tenant": 3})
    assert (context.get("tenant"), context.get("other", "x")) == (3, "x")


def test_functions_do_not_pull_in_sqlmodel() -> None:
    """Tables are recognised without importing the library that makes them."""
    code = "import sys, extractor.calling; print({'sqlmodel', 'sqlalchemy', 'docstring_parser'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
