"""Where values stand: by value, by whole tokens, in the right place of several, never where they do not."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractor.documents import Document
from extractor.documents.document import Box, Page, Word, Words
from extractor.evidence import Evidence, Finder
from extractor.fields.style import Style


def read(*texts: str, hidden: str = "", confidence: float | None = None) -> Document:
    """A document of these pages."""
    pages = tuple(Page(n, text, hidden=hidden, confidence=confidence) for n, text in enumerate(texts, 1))
    return Document("a" * 64, "a.txt", "text/plain", pages, 1)


def found(text: str, value: Any, sent: Any = None, **how: Any) -> Evidence:
    """Where one value stands in a text."""
    document = read(text, **how)
    (one,) = Finder(document, Style.of(text)).find({"field": str(value) if sent is None else sent}, {"field": value})
    return one


@pytest.mark.parametrize(
    ("text", "value", "printed"),
    [
        ("Summe 1.471,60 EUR", "1471.60", "1.471,60"),
        ("Total CHF 42'987.56", "42987.56", "42'987.56"),
        ("Total 1 234,50 €", "1234.5", "1 234,50"),
        ("balance (53,180.08)", "-53180.08", "53,180.08"),
        ("VAT 19 %", "19", "19"),
        ("EUR12.50 net", "12.5", "12.50"),
        ("3Stk zu je 2", "3", "3"),
        ("Betrag 42,- zahlbar", "42", "42,-"),
    ],
)
def test_a_number_is_found_by_its_value_in_any_print(text: str, value: str, printed: str) -> None:
    """Marks, groups, units, currencies and brackets do not matter, the value does."""
    one = found(text, Decimal(value))
    assert (one.is_found, one.printed) == (True, printed)
    assert text[one.start : one.end] == printed


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Summe 1.471,60 EUR", "1.60"),
        ("Summe 1.471,60 EUR", "471.60"),
        ("Artikel TB100A4", "100"),
        ("vom 05.03.2018", "2018"),
        ("um 12:30 Uhr", "30"),
        ("RE-2024", "2024"),
        ("DE12 1234 5678", "12"),
    ],
)
def test_a_number_is_never_a_part_of_another_token(text: str, value: str) -> None:
    """The end of a larger amount, a piece of an identifier, a date or a time is no place of a number."""
    assert found(text, Decimal(value)).match == "absent"


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("vom 05.03.2018 an", "05.03.2018"),
        ("5. März 2018", "5. März 2018"),
        ("March 5, 2018", "March 5, 2018"),
        ("2018-03-05", "2018-03-05"),
        ("2018年3月5日", "2018年3月5日"),
        ("20180305", "20180305"),
        ("25/03/2018 and 05/03/2018", "05/03/2018"),
    ],
)
def test_a_date_is_found_by_its_day_in_any_print(text: str, printed: str) -> None:
    """Numbers in any order that the document allows, names of months, and dates without marks."""
    assert found(text, date(2018, 3, 5)).printed == printed


def test_another_day_is_no_place_of_a_date() -> None:
    """One digit makes another date."""
    assert found("vom 05.03.2018", date(2018, 3, 6)).match == "absent"


@pytest.mark.parametrize(
    ("text", "value", "match"),
    [
        ("Lieferant GmbH, Berlin", "Lieferant GmbH", "exact"),
        ("LIEFERANT\nGMBH", "Lieferant GmbH", "normalised"),
        ("Liefe-\nrant GmbH", "Lieferant GmbH", "normalised"),
        ("Mu\u0308ller", "Müller", "normalised"),
        ("IBAN DE12 1234 5678 9012", "DE12123456789012", "normalised"),
        ("株式会社東京商事", "東京商事", "exact"),
        ("Name: Kunden AG    Nr. 7\n      Mitte    Tel. 3", "Kunden AG Mitte", "fuzzy"),
        ("the rapist", "therapist", "absent"),
        ("Rechnung 2024-117", "117", "absent"),
        ("Lieferantin", "Lieferant", "absent"),
        ("4711.02", "471102", "absent"),
        ("Lieferant GmbH", "Lieferand GmbH", "absent"),
    ],
)
def test_text_is_found_by_whole_tokens(text: str, value: str, match: str) -> None:
    """Case, spaces, line breaks, hyphens and the composition of letters do not matter; each letter and digit does."""
    assert found(text, value).match == match


def test_a_currency_is_found_by_its_symbol() -> None:
    """The document names EUR by its sign."""
    assert found("Summe 12,00 €", "EUR").printed == "€"


def test_letters_that_ocr_takes_for_others_count_on_a_scanned_page_only() -> None:
    """I and 1 are the same to OCR, and to nobody else."""
    assert found("No. INV-I0B", "INV-108", confidence=0.9).match == "fuzzy"
    assert found("No. INV-I0B", "INV-108").match == "absent"


def test_what_nobody_sees_is_no_proof() -> None:
    """A value that stands only in hidden text is found there and does not count as found."""
    one = found("Total 12.00", "DE99", hidden="pay to DE99")
    assert (one.match, one.is_found, one.printed) == ("hidden", False, "DE99")


def test_values_of_one_line_item_stand_on_one_row() -> None:
    """Of several places each item takes those on its own row, also when two rows are equal."""
    text = "1  Pen    2   3.00   6.00\n2  Ink    6   3.00  18.00\n3  Pen    2   3.00   6.00\nTotal 30.00"
    items = [("Pen", "2", "3.00", "6.00"), ("Ink", "6", "3.00", "18.00"), ("Pen", "2", "3.00", "6.00")]
    sent = {"items": [dict(zip(("name", "quantity", "price", "amount"), item, strict=True)) for item in items]}
    value = {
        "items": [{key: part if key == "name" else Decimal(part) for key, part in one.items()} for one in sent["items"]]
    }
    places = Finder(read(text), Style.of(text)).find(sent, value)
    assert {one.path: text[: one.start].count("\n") for one in places} == {
        f"items.{row}.{name}": row for row in range(3) for name in ("name", "quantity", "price", "amount")
    }
    assert len({one.start for one in places}) == len(places)


def test_a_value_stands_beside_its_label() -> None:
    """Of two equal dates each takes the one behind its own name."""
    text = "Due date: 05.03.2018\nOrder 17\nIssue date: 05.03.2018"
    sent = {"issue_date": "2018-03-05", "due_date": "2018-03-05"}
    value = {key: date(2018, 3, 5) for key in sent}
    issue, due = Finder(read(text), Style.of(text)).find(sent, value)
    assert (text[: issue.start].count("\n"), text[: due.start].count("\n")) == (2, 0)


def test_a_place_has_its_page_and_a_box_for_each_line() -> None:
    """The words of a place are framed line by line, on the page that it is on."""
    text = "Herr Jürgen\nBerg"
    words = Words.of(
        [Word(0, 4, Box(10, 10, 30, 20)), Word(5, 11, Box(35, 10, 70, 20)), Word(12, 16, Box(10, 25, 30, 35))]
    )
    document = Document("a", "a", "a", (Page(1, "nothing"), Page(2, text, words=words)), 1)
    (one,) = Finder(document, Style()).find({"name": "Herr Jürgen Berg"})
    assert (one.page, one.boxes) == (2, (Box(10, 10, 70, 20), Box(10, 25, 30, 35)))
    assert one.snippet == "Herr Jürgen Berg"


def test_nulls_truth_values_and_blanks_are_no_values() -> None:
    """What cannot be printed is not looked for."""
    assert Finder(read("a"), Style()).find({"a": None, "b": True, "c": " ", "d": [], "e": {}}) == ()


@given(st.text(max_size=200), st.text(max_size=30))
def test_what_is_found_is_there(text: str, value: str) -> None:
    """Whatever the text, a place is a stretch of it, and holds every letter of the value."""
    for one in Finder(read(text), Style()).find({"field": value}):
        if one.page is not None:
            assert one.start is not None
            assert one.end is not None
            assert text[one.start : one.end] == one.printed != ""


@given(st.decimals(min_value=0, max_value=10**9, places=2), st.decimals(min_value=0, max_value=10**9, places=2))
def test_a_printed_amount_is_found_and_another_is_not(printed: Decimal, other: Decimal) -> None:
    """An amount with groups is found by its value alone."""
    text = f"Total {printed:,.2f} EUR"
    assert found(text, printed).is_found
    assert found(text, other).is_found == (other == printed)


def test_many_equal_rows_are_told_apart_in_bounded_work() -> None:
    """Hundreds of equal line items on many pages, and pages of nothing but zeros, come to an end."""
    rows = "\n".join("Pen  2  3.00" for _ in range(30))
    items = [{"name": "Pen", "price": "3.00"}] * 120
    places = Finder(read(rows, rows, rows, rows, "0 " * 20_000), Style()).find({"items": items, "zero": "0"})
    assert len(places) == 241
    assert all(one.is_found for one in places)
    assert len({(one.page, one.start) for one in places if one.path.endswith("name")}) > 60
