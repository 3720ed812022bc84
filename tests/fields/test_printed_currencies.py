"""Printed currencies, with and without a document."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from extractor.fields import Currency, Style

CURRENCY = TypeAdapter[str](Currency)


def read(printed: str, document: str, **style: str) -> str:
    """The code that ``printed`` stands for in a document; ``refused`` if it is refused."""
    try:
        return CURRENCY.validate_python(printed, context={"style": Style.of(document, **style)})  # type: ignore[arg-type]
    except ValidationError:
        return "refused"


@pytest.mark.parametrize(
    ("printed", "code"),
    [
        ("€", "EUR"), ("EUR", "EUR"), ("eur", "EUR"), ("Euro", "EUR"), ("40 euros", "EUR"), ("EUR €", "EUR"),
        ("12€50", "EUR"),
        ("US$", "USD"), ("US $", "USD"), ("$US", "USD"), ("40,00 $", "USD"), ("$", "USD"), ("＄40", "USD"),
        ("US dollars", "USD"),
        ("£", "GBP"), ("pounds sterling", "GBP"), ("CHF", "CHF"), ("Fr.", "CHF"), ("SFr.", "CHF"),
        ("Schweizer Franken", "CHF"),
        ("zł", "PLN"), ("RM", "MYR"), ("RM 12.50", "MYR"), ("CA$", "CAD"), ("C$", "CAD"), ("Canadian dollars", "CAD"),
        ("A$", "AUD"), ("HK$", "HKD"), ("S$", "SGD"), ("NZ$", "NZD"), ("R$", "BRL"), ("₹", "INR"),
        ("₺", "TRY"), ("Kč", "CZK"),
        ("yen", "JPY"), ("RMB", "CNY"), ("Swedish krona", "SEK"), ("S/ 12.00", "PEN"), ("-€ 5", "EUR"),
        ("CAD $", "CAD"),
    ],
)  # fmt: skip
def test_currencies_with_one_reading(printed: str, code: str) -> None:
    """Codes, symbols and names are taken as their ISO code, with or without an amount."""
    assert CURRENCY.validate_python(printed) == code


@pytest.mark.parametrize(
    "printed", ["", "40", "40,00", "XYZ", "BTC", "N/A", "EUR USD", "€ or $", "apples", "E" * 500, "¥", "kr", "Rs."]
)
def test_what_is_no_currency_or_several(printed: str) -> None:
    """There is no default: an amount without currency, unknown words and undecided symbols are refused."""
    with pytest.raises(ValidationError, match="ISO"):
        CURRENCY.validate_python(printed)


@pytest.mark.parametrize("value", [None, 1, True, ["EUR"]])
def test_other_types_are_refused(value: object) -> None:
    """A currency is text."""
    with pytest.raises(ValidationError, match="as text"):
        CURRENCY.validate_python(value)


@pytest.mark.parametrize(
    ("printed", "document", "code"),
    [
        ("$", "Total $40.00", "USD"),
        ("40,00 $", "Rechnung: 40,00 $, im Vorjahr 30,00 EUR", "USD"),
        ("$", "Total $40.00, all prices in CAD", "CAD"),
        ("$", "Total $40.00 (Australian dollars)", "AUD"),
        ("$", "HK$ 12.00, total $ 40.00", "HKD"),
        ("$", "S$12.00, total $ 40.00", "SGD"),
        ("$", "$40.00, 1 Raffles Place, Singapore", "refused"),
        ("$", "USD 40 or CAD 55, total $40", "refused"),
        ("¥", "¥ 1,000 合計 1,000円", "JPY"),
        ("¥", "¥ 1,000 人民币", "CNY"),
        ("¥", "¥ 1,000", "refused"),
        ("kr", "1 000 kr, Sverige", "SEK"),
        ("kr", "Total 100 kr (NOK)", "NOK"),
        ("kr", "100 kr Sweden or Denmark", "refused"),
        ("Rs", "Rs. 500, Mumbai, India", "INR"),
        ("£", "£40 or EGP 900", "EGP"),
    ],
)  # fmt: skip
def test_the_document_decides_shared_symbols(printed: str, document: str, code: str) -> None:
    """A symbol of several countries is decided by what the document names, and refused where it says two things."""
    assert read(printed, document) == code


def test_the_user_decides_but_never_overrules_what_is_printed() -> None:
    """A given currency settles a shared symbol that can mean it, and is no default for any other."""
    assert read("$", "Total $40", currency="CAD") == "CAD"
    assert read("kr", "Total 40 kr", currency="DKK") == "DKK"
    assert read("$", "Total $40", currency="EUR") == "USD"
    assert read("40", "Total 40", currency="EUR") == "refused"


@pytest.mark.parametrize(
    ("code", "document", "flagged"),
    [("CAD", "Total $40", True), ("USD", "Total $40", False), ("JPY", "¥ 100", True), ("EUR", "Total 40 EUR", False),
     ("EUR", "Total USD 40", True), ("EUR", "Total 40", False), ("SEK", "40 kr, Sverige", False)],
)  # fmt: skip
def test_a_code_that_the_document_does_not_name_is_flagged(code: str, document: str, flagged: bool) -> None:
    """A code that rests on the model's choice between the meanings of a symbol is taken and flagged."""
    flags: list[str] = []
    assert CURRENCY.validate_python(code, context={"style": Style.of(document), "flags": flags}) == code
    assert bool(flags) is flagged
