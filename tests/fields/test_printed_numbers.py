"""Printed amounts, quantities and percentages, one by one."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from extractor.fields import Amount, Percent, Quantity, Style

AMOUNT = TypeAdapter[Decimal](Amount)
QUANTITY = TypeAdapter[Decimal](Quantity)
PERCENT = TypeAdapter[Decimal](Percent)


def message(adapter: TypeAdapter[Decimal], value: Any, style: Style | None = None) -> str:
    """What the model is told when ``value`` is refused."""
    with pytest.raises(ValidationError) as caught:
        adapter.validate_python(value, context={"style": style} if style else None)
    return caught.value.errors()[0]["msg"]


@pytest.mark.parametrize(
    ("printed", "value"),
    [
        ("27,80", "27.80"), ("2.244,34", "2244.34"), ("2,34", "2.34"), ("35,27", "35.27"), ("1.471,60", "1471.60"),
        ("42'987,56", "42987.56"), ("42’987,56", "42987.56"), ("42ʼ987.56", "42987.56"),
        ("1'234'567.05", "1234567.05"),
        ("1 234,56", "1234.56"), ("1\u00a0234,56", "1234.56"), ("1\u202f234,56", "1234.56"),
        ("1\u2009234.56", "1234.56"),
        ("1,23,456.00", "123456.00"), ("12,34,567", "1234567"), ("1.234.567", "1234567"), ("1,234,567", "1234567"),
        ("1,234.567", "1234.567"), ("1234.567", "1234.567"), ("0,123", "0.123"), (",50", "0.50"), (".5", "0.5"),
        ("1234", "1234"), ("2244.34", "2244.34"), ("0.00", "0.00"), ("007,50", "7.50"), ("40.", "40"),
        ("12345678901234567.8912", "12345678901234567.8912"), ("1E+2", "100"),
    ],
)  # fmt: skip
def test_numbers_with_one_reading(printed: str, value: str) -> None:
    """A number with one reading is taken in every style, without a document and against its style too."""
    for style in (None, Style(decimal="."), Style(decimal=",")):
        found = AMOUNT.validate_python(printed, context={"style": style})
        assert found == Decimal(value)


@pytest.mark.parametrize(
    ("printed", "value"),
    [
        ("-12,50", "-12.50"), ("12,50-", "-12.50"), ("12,50 -", "-12.50"), ("−12,50", "-12.50"), ("–12,50", "-12.50"),
        ("(12.50)", "-12.50"), ("GBP (53,180.08)", "-53180.08"), ("(€12.50)", "-12.50"), ("($1,234.56)", "-1234.56"),
        ("€ -12,50", "-12.50"), ("-€12,50", "-12.50"), ("12,50- EUR", "-12.50"), ("12,50 EUR-", "-12.50"),
        ("（12.50）", "-12.50"), ("(-12.50)", "-12.50"), ("+12.50", "12.50"), ("12,50+", "12.50"), ("-0,00", "0.00"),
    ],
)  # fmt: skip
def test_signs(printed: str, value: str) -> None:
    """A minus before or behind, of any make, and parentheses make an amount negative; zero has no sign."""
    assert str(AMOUNT.validate_python(printed)) == value


@pytest.mark.parametrize(
    ("printed", "value"),
    [
        ("EUR 40", "40"), ("EUR40", "40"), ("40 EUR", "40"), ("40,00 $", "40.00"), ("US$ 12.50", "12.50"),
        ("$.50", "0.50"),
        ("12€50", "12.50"), ("12 € 50", "12.50"), ("1.234€56", "1234.56"), ("$1,234.56 USD", "1234.56"),
        ("Rs. 1,23,456.00", "123456.00"), ("Rs.500", "500"), ("Rs. 500/-", "500"), ("Fr. 12.50", "12.50"),
        ("R$ 1.234,56", "1234.56"), ("12.50 zł", "12.50"), ("kr 12,50", "12.50"), ("RM12.50", "12.50"),
        ("￥1,234.00", "1234"),
        ("12.50 Euro", "12.50"), ("CHF 42.-", "42"), ("CHF 42.—", "42"), ("1.234,-", "1234"),
        ("1.234,-- EUR", "1234"),
        ("1,234.-", "1234"), ("-42,- €", "-42"),
    ],
)  # fmt: skip
def test_currencies_and_dashes_for_cents(printed: str, value: str) -> None:
    """The currency is dropped wherever it stands, and a dash in place of the cents means none."""
    assert AMOUNT.validate_python(printed) == Decimal(value)


@pytest.mark.parametrize(
    ("printed", "value"),
    [
        ("１，２３４．５６", "1234.56"), ("٤٢٫٥٠", "42.50"), ("١٬٢٣٤٫٥٠", "1234.50"), ("۱۲۳", "123"),
        ("१२.५०", "12.50"),
        ("12·50", "12.50"), ("1O0,00", "100.00"), ("1.2l0,50", "1210.50"), ("2. 244,34", "2244.34"),
        ("27 ,80", "27.80"),
        ("*12.50*", "12.50"), ("=12.50", "12.50"), ('"2,34"', "2.34"), ("'2,34'", "2.34"),
        ("\u200b12.50\x00", "12.50"),
    ],
)  # fmt: skip
def test_other_digits_and_noise(printed: str, value: str) -> None:
    """Digits of other scripts are digits, and noise that leaves one reading does no harm."""
    assert AMOUNT.validate_python(printed) == Decimal(value)


@pytest.mark.parametrize(
    ("printed", "point", "comma"),
    [
        ("1.234", "1.234", "1234"),
        ("1,234", "1234", "1.234"),
        ("EUR 12.500", "12.500", "12500"),
        ("-1,000", "-1000", "-1.000"),
    ],
)
def test_the_style_decides_what_has_two_readings(printed: str, point: str, comma: str) -> None:
    """One group of three behind a lone mark is read by the document's decimal mark."""
    assert AMOUNT.validate_python(printed, context={"style": Style(decimal=".")}) == Decimal(point)
    assert AMOUNT.validate_python(printed, context={"style": Style(decimal=",")}) == Decimal(comma)


@pytest.mark.parametrize("context", [None, {}, {"style": None}, {"style": Style()}, {"flags": []}])
def test_two_readings_and_no_style_are_refused(context: dict[str, Any] | None) -> None:
    """What nothing decides is never guessed; the model is told both readings and how to write it."""
    with pytest.raises(ValidationError) as caught:
        AMOUNT.validate_python("1.234", context=context)
    told = caught.value.errors()[0]["msg"]
    assert told.startswith(
        "1.234 can be read as 1234 or as 1.234 and nothing in the document decides; write it with two"
    )


@pytest.mark.parametrize(
    "printed",
    ["", " ", "N/A", "none", "-", "19 %", "3 x 12.50", "10-20", "12 34", "12,50.00", "1.23.4567",
     "1,5 Mio. EUR", "TEUR 12",
     "12k", "5 apples", "(12.50", "12.50)", "--12", "12,50 EUR 3", "1.234 567", "EUR.50", "1_000", "NaN",
     "Infinity", "{x}",
     "0x10", "12:30", "9" * 500, "\ud800"],
)  # fmt: skip
def test_what_is_no_amount(printed: str) -> None:
    """What is no single amount is refused with a short text that says what to write."""
    assert len(message(AMOUNT, printed)) < 200


@pytest.mark.parametrize("value", [True, False, None, float("nan"), float("inf"), Decimal("NaN"), [], {"a": 1}])
def test_values_of_other_types_are_refused(value: Any) -> None:
    """Booleans, nulls, infinities and containers are no amounts."""
    assert "as it is printed" in message(AMOUNT, value)


def test_typed_numbers_pass() -> None:
    """A Decimal and an int pass as they are, a float by its shortest form."""
    exact = Decimal("12345678901234567.89123456789012345678")
    assert AMOUNT.validate_python(exact) is exact
    assert AMOUNT.validate_python(0) == 0
    assert str(AMOUNT.validate_python(0.1)) == "0.1"
    assert AMOUNT.validate_json("1234.5") == Decimal("1234.5")


def test_credit_and_debit_marks() -> None:
    """A mark stands on the amounts out of the ordinary and makes them negative, but for CR in an account that marks
    debits too; each is flagged."""
    flags: list[str] = []
    context = {"style": Style(), "flags": flags}
    assert AMOUNT.validate_python("1,234.56 CR", context=context) == Decimal("-1234.56")
    assert AMOUNT.validate_python("12.50 Dr.", context=context) == Decimal("-12.50")
    assert AMOUNT.validate_python("12.50CR", context={"style": Style.of("paid 3.00 DR")}) == Decimal("12.50")
    assert [flag.split(" and was ")[0] for flag in flags] == [
        'value: "1,234.56 CR" is marked CR',
        'value: "12.50 Dr." is marked DR',
    ]


@pytest.mark.parametrize(
    ("printed", "value"),
    [("3 Stk", "3"), ("3 Stk.", "3"), ("2.5 h", "2.5"), ("2,5 Std.", "2.5"), ("10 x", "10"), ("10x", "10"),
     ("x10", "10"),
     ("2 ×", "2"), ("12 m²", "12"), ("12 m2", "12"), ("7 km/h", "7"), ("3 pc(s)", "3"), ("0,125", "0.125"),
     ("100", "100"),
     ("-1 Stk", "-1"), ("3.000,5 l", "3000.5"), ("1'000 Stück", "1000"), ("0", "0")],
)  # fmt: skip
def test_quantities(printed: str, value: str) -> None:
    """The unit of a quantity is dropped."""
    assert QUANTITY.validate_python(printed) == Decimal(value)


@pytest.mark.parametrize(
    "printed", ["", "Stk", "3 x 12.50", "3x2", "5 k", "2 Mio", "19 %", "3 4", "1,234 kg", "m2", "9" * 99]
)
def test_what_is_no_quantity(printed: str) -> None:
    """Products, multipliers, percentages and what has two readings are refused."""
    assert len(message(QUANTITY, printed)) < 200


@pytest.mark.parametrize(
    ("printed", "value"),
    [("19 %", "19"), ("19,00%", "19.00"), ("7", "7"), ("%19", "19"), ("7,7 Prozent", "7.7"), ("5.5 per cent", "5.5"),
     ("-2 %", "-2"), ("0 %", "0"), ("١٩٪", "19")],
)  # fmt: skip
def test_percentages(printed: str, value: str) -> None:
    """A percentage is its number, with or without the sign."""
    assert PERCENT.validate_python(printed) == Decimal(value)


@pytest.mark.parametrize("printed", ["", "%", "19 EUR", "19 % 7 %", "5 ‰"])
def test_what_is_no_percentage(printed: str) -> None:
    """Money, two percentages and other shares are refused."""
    assert "is not a percentage" in message(PERCENT, printed)
