"""The field types inside pydantic models and SQLModel tables."""

from __future__ import annotations

import warnings
from datetime import date
from decimal import Decimal
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from sqlalchemy import Date, Numeric
from sqlmodel import AutoString, Field, SQLModel

from extractor.fields import Amount, Currency, Identifier, Percent, PrintedDate, PrintedText, Quantity


class VoucherFields(SQLModel):
    """Scalars shared by the draft and the table."""

    number: Identifier = Field(index=True)
    issued: PrintedDate
    due: PrintedDate | None = None
    currency: Currency = Field(max_length=3)
    total: Amount = Field(max_digits=12, decimal_places=2, description="with tax")
    discount: Amount | None = None
    amount: Quantity
    rate: Percent | None = None
    note: PrintedText | None = None


class Voucher(VoucherFields, table=True):
    """What a database keeps."""

    id: int | None = Field(default=None, primary_key=True)


SENT = {
    "number": "0042",
    "issued": "5. März 2024",
    "currency": "€",
    "total": "1.471,60",
    "amount": "3 Stk",
    "note": " a\n b ",
}


class Strict(BaseModel):
    """No conversions by pydantic itself."""

    model_config = ConfigDict(strict=True)
    issued: PrintedDate
    total: Amount
    parts: list[Amount] = []
    voucher: VoucherFields | None = None
    number: Identifier | None = None


def test_columns() -> None:
    """Amounts are numeric columns, dates date columns, the rest strings; nullable where the field is."""
    columns = Voucher.metadata.tables["voucher"].columns
    kinds = {"total": Numeric, "discount": Numeric, "amount": Numeric, "rate": Numeric, "issued": Date, "due": Date}
    for column in columns:
        if column.name != "id":
            assert isinstance(column.type, kinds.get(column.name, AutoString))
    assert {column.name for column in columns if column.nullable} == {"due", "discount", "rate", "note"}
    assert columns["total"].type.scale == 2  # type: ignore[attr-defined]
    assert columns["currency"].type.length == 3  # type: ignore[attr-defined]


@pytest.mark.parametrize("model", [VoucherFields, Voucher])
def test_printed_values_become_typed(model: type[VoucherFields]) -> None:
    """The draft and the table read the same printed values, and typed values pass a second time."""
    found = model.model_validate(SENT)
    assert (found.number, found.issued, found.currency) == ("0042", date(2024, 3, 5), "EUR")
    assert (found.total, found.amount, found.note) == (Decimal("1471.60"), Decimal(3), "a b")
    assert model.model_validate(found.model_dump()) == found
    assert VoucherFields.model_validate_json(found.model_dump_json()).total == found.total


def test_strict_models() -> None:
    """Under strict validation printed values are taken from Python and from JSON, nested and in lists."""
    sent = {"issued": "2024-03-05", "total": "12,50-", "parts": ["1,5", 2], "voucher": None}
    from_python = Strict.model_validate(sent)
    from_json = Strict.model_validate_json('{"issued": "2024-03-05", "total": "12,50-", "parts": ["1,5", 2]}')
    assert from_python == from_json
    assert (from_json.issued, from_json.total, from_json.parts) == (
        date(2024, 3, 5),
        Decimal("-12.50"),
        [Decimal("1.5"), 2],
    )
    nested = Strict.model_validate({"issued": "5.3.24", "total": 0, "voucher": SENT})
    assert nested.voucher is not None
    assert nested.voucher.total == Decimal("1471.60")


@pytest.mark.parametrize("mode", ["validation", "serialization"])
def test_a_model_is_shown_strings(mode: Literal["validation", "serialization"]) -> None:
    """In both modes every type is a string without format, example or digit that could leak into a value."""
    shown = VoucherFields.model_json_schema(mode=mode)["properties"]
    for name, schema in shown.items():
        kinds = schema.get("anyOf", [schema])
        assert kinds[0]["type"] == "string", name
        assert not {"format", "examples", "example"} & kinds[0].keys(), name
        assert not any(letter.isdigit() for letter in kinds[0].get("description", ""))
    assert shown["total"]["description"] == "with tax"


def test_all_errors_at_once_with_their_paths() -> None:
    """Each field that cannot be read is one error at its path, in plain text without a prefix."""
    with pytest.raises(ValidationError) as caught:
        Strict.model_validate({"issued": "soon", "total": "N/A", "parts": ["1", "x{y}"]})
    told = {error["loc"]: error["msg"] for error in caught.value.errors()}
    assert set(told) == {("issued",), ("total",), ("parts", 1)}
    assert told["parts", 1].startswith('"x{y}" is not an amount')
    assert not any(text.startswith("Value error") for text in told.values())


def test_constraints_hold_behind_the_reading() -> None:
    """Constraints on a field are checked on the value that was read."""

    class Positive(BaseModel):
        total: Amount = Field(gt=0)

    assert Positive.model_validate({"total": "1.234,50"}).total == Decimal("1234.50")
    with pytest.raises(ValidationError, match="greater than 0"):
        Positive.model_validate({"total": "12,50-"})


def test_json_of_a_record_reads_back() -> None:
    """A value whose plain print would have two readings is written so that it has one."""
    adapter = TypeAdapter[Decimal](Quantity)
    written = adapter.dump_json(Decimal("1.234"))
    assert written == b'"1.2340"'
    assert adapter.validate_json(written) == Decimal("1.234")
    assert adapter.dump_python(Decimal("1.234")) == Decimal("1.234")


def test_unvalidated_table_values_are_dumped_quietly() -> None:
    """A table object that holds text, because tables do not validate, can still be dumped."""
    unread: dict[str, Any] = {"total": "1,5"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        voucher = Voucher(**unread)
        assert voucher.model_dump_json(include={"total"}) == '{"total":"1,5"}'


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("0042", "0042"),
        (42, "42"),
        ("  RE-1 \n 7 ", "RE-1 7"),
        ("a\x00b\x1b", "ab"),
        ("\ufeffX\u200b", "X"),
        ("A\ud800B", "AB"),
    ],
)
def test_identifiers_are_text(sent: Any, kept: str) -> None:
    """Leading zeros stay, white space is collapsed, characters that a database refuses are taken out."""
    assert TypeAdapter(Identifier).validate_python(sent) == kept
    assert TypeAdapter(PrintedText).validate_python(sent) == kept


@pytest.mark.parametrize("sent", ["", "  ", "\x00", True, None, 4.5, ["1"]])
def test_what_is_no_identifier(sent: Any) -> None:
    """An identifier is never empty, and booleans, fractions and nulls are none."""
    with pytest.raises(ValidationError):
        TypeAdapter(Identifier).validate_python(sent)


def test_control_characters_are_flagged() -> None:
    """Taking a NUL byte out of a text leaves a remark with the field's name."""
    flags: list[str] = []
    Strict.model_validate({"issued": "5.3.24", "total": 1, "number": "7\x00"}, context={"flags": flags})
    assert flags == ["number: control characters were taken out"]
    assert TypeAdapter(PrintedText).validate_python("") == ""


def test_a_null_stays_null() -> None:
    """Null for a nullable field is null, and nothing else becomes true or zero."""
    found = VoucherFields.model_validate({**SENT, "discount": None, "due": None})
    assert (found.discount, found.due, found.rate) == (None, None, None)
    assert VoucherFields.model_validate({**SENT, "discount": "0,00"}).discount == 0
