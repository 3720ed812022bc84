"""How a document prints is decided once, from all that it prints."""

from __future__ import annotations

import pickle
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel

from extractor.errors import ConfigurationError
from extractor.fields import Amount, PrintedDate, Style


class Record(BaseModel):
    """What a model sends."""

    total: Amount | None = None
    issued: PrintedDate | None = None


@pytest.mark.parametrize(
    ("text", "decimal"),
    [
        ("Total 1.234,56 EUR, deposit 1.000", ","),
        ("Total $1,234.56, deposit 1,000", "."),
        ("27,80", ","), ("12.50", "."), ("42'987,56", ","), ("CHF 42.-", "."), ("1.234,-", ","), ("1.234.567", ","),
        ("1,234,567", "."), ("１，２３４．５６", "."), ("0,125 kg", ","),
        ("1.234", None), ("12345", None), ("", None), ("v2.10 of 192.168.100.101, section 2.1", None),
        ("1,234.56 and 1.234,56", None),
        ("1,50 2,50 3,50 4,50 and 12.30", ","),
        ("1,50 2,50 and 12.30", None),
        ("Rechnung: Betrag 1.234, MwSt inkl.", ","),
        ("Facture: montant pour vous 1 234, dans 1.234", ","),
        ("Rechnung in CHF: Betrag 1.234, MwSt inkl.", None),
        ("Invoice amount due: 1.234", None),
        ("§ 1.10 der und die nicht mit von, Mo.-Fr. 08.30 - 12.30 Uhr, 50,00 und 0,00", ","),
    ],
)  # fmt: skip
def test_decimal_mark(text: str, decimal: str | None) -> None:
    """Tokens with one reading decide, contradictions by an overwhelming majority alone, and the language comes last."""
    assert Style.of(text).decimal == decimal


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("19/04/2018 and 05/04/2018", "DMY"), ("04/19/2018 and 05/04/2018", "MDY"), ("05/04/2018", None),
        ("05.04.2018", "DMY"),
        ("03/15/24", "MDY"), ("2018-04-05", None), ("2024/03/05 and 24/03/06", "YMD"),
        ("19/04/2018 and 04/19/2018", None),
        ("19/04/2018 " * 4 + "04/19/2018", "DMY"), ("Rechnung vom 05/04/2018, Betrag und Summe", "DMY"),
        ("05/04/2018 TOTAL RM 40.00", "DMY"), ("Perniagaan Sdn Bhd 05/04/2018", "DMY"),
        ("01.03.2024-31.03.2024", "DMY"),
        ("tel. 030-12-12-12, version 1.2.3", None), ("", None),
    ],
)  # fmt: skip
def test_date_order(text: str, order: str | None) -> None:
    """One order per document, from all its dates; language and home money come last."""
    assert Style.of(text).date_order == order


@pytest.mark.parametrize(
    ("text", "currency"),
    [("Total 40 EUR", "EUR"), ("40,00 €", "EUR"), ("Amount (CHF)", "CHF"), ("$40", None),
     ("EUR 1 = USD 1.1", None), ("RM12.50", "MYR"),
     ("TRY ALL ITEMS AT THE TOP, PEN INCLUDED", None), ("TOTAL TRY 40", "TRY"), ("Kedai Sdn Bhd 1234", None),
     ("", None)],
)  # fmt: skip
def test_currency(text: str, currency: str | None) -> None:
    """The one currency that a document names outright; words that look like codes and shared symbols do not count."""
    assert Style.of(text).currency == currency


def test_what_the_user_says_wins() -> None:
    """Arguments overrule every evidence."""
    style = Style.of("1.234,56 EUR on 19/04/2018", decimal=".", date_order="MDY", currency="USD")
    assert (style.decimal, style.date_order, style.currency) == (".", "MDY", "USD")


@pytest.mark.parametrize("wrong", [{"decimal": ";"}, {"date_order": "DYM"}, {"currency": "Euro"}])
def test_settings_that_do_not_exist(wrong: dict[str, Any]) -> None:
    """A setting with a value that does not exist is an error that names it."""
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        Style.of("", **wrong)


@pytest.mark.parametrize(
    ("document", "sent", "flag"),
    [
        ("Total 1.234", {"total": "1234.00"}, "total: 1.234 in the document has two readings"),
        ("Total 1.234", {"total": 1234}, "total: 1.234 in the document has two readings"),
        ("Total -1.234", {"total": "-1.2340"}, "total: 1.234 in the document has two readings"),
        ("on 05/04/2018", {"issued": "2018-04-05"}, "issued: 05/04/2018 in the document has two readings"),
        ("Total 1.234, that is 1234.00", {"total": "1234.00"}, None),
        ("Total 1.234 and again 1234", {"total": "1234.00"}, None),
        ("Total 1.234", {"total": "99.00"}, None),
        ("Total 1.234 EUR of 5,00 EUR", {"total": "1.234"}, None),
        ("on 05/04/2018, that is 5 April 2018", {"issued": "2018-04-05"}, None),
        ("on 05/04/2018, that is 5 April 2018", {"issued": "2018-05-04"}, "issued: 05/04/2018"),
        ("on 05/04/2018 or 2018-05-04", {"issued": "2018-05-04"}, None),
        ("on 05/04/2018 and 19/04/2018", {"issued": "05/04/2018"}, None),
    ],
)  # fmt: skip
def test_values_that_rest_on_two_readings_are_flagged(document: str, sent: dict[str, Any], flag: str | None) -> None:
    """A clear value that stands in the document only as a token with two readings is taken and flagged by field."""
    flags: list[str] = []
    Record.model_validate(sent, context={"style": Style.of(document), "flags": flags})
    assert [line[: len(flag or "")] for line in flags] == ([flag] if flag else [])


def test_flags_are_optional() -> None:
    """Without a list the flags are dropped, and the value is the same."""
    record = Record.model_validate({"total": "1234.00"}, context={"style": Style.of("Total 1.234")})
    assert record.total == Decimal("1234.00")


def test_a_style_is_a_value() -> None:
    """Styles are equal by content, hashable, and survive pickling to a worker."""
    style = Style.of("05/04/2018 1.234 $40")
    assert pickle.loads(pickle.dumps(style)) == style
    assert len({style, Style.of("05/04/2018 1.234 $40")}) == 1
    assert (date(2018, 4, 5), "05/04/2018") in style.doubtful_dates


def test_memory_is_bounded() -> None:
    """However many doubtful tokens a document holds, a bounded number is remembered."""
    style = Style.of(" ".join(f"{n}.{m}" for n in range(1, 60) for m in range(100, 160)))
    assert 0 < len(style.doubtful_amounts) <= 512
