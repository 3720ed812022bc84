"""Printed dates, one by one."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from extractor.fields import PrintedDate, Style

DATE = TypeAdapter[date](PrintedDate)


@pytest.mark.parametrize(
    "printed",
    ["5 March 2024", "March 5, 2024", "March 5th, 2024", "the 5th of March 2024", "5. März 2024", "le 5 mars 2024",
     "5 marzo 2024", "5 de marzo de 2024", "5 de março de 2024", "5 maart 2024", "5 mrt 2024", "5 Mär 2024",
     "5 Maerz 2024",
     "Tue, 5 Mar 2024", "Dienstag, den 5. März 2024", "mar. 5 mars 2024", "martedì 5 marzo 2024", "5-Mar-24",
     "05MAR2024",
     "5 Mar '24", "2024 March 5", "2024-03-05", "2024/03/05", "2024.03.05", "20240305", "2024-03-05T00:00:00",
     "2024-03-05T10:00:00.123Z", "2024-03-05T10:00:00+02:00", "2024-03-05 23:59", "20240305T101500Z",
     "05.03.24", "5.3.2024",
     "05.03.2024.", "5. 3. 2024", "05.03.2024 14:30 Uhr", "2024年3月5日", "2024년 3월 5일", "٢٠٢٤-٠٣-٠٥",
     "０５.０３.２０２４",
     "05.03.2024\x00", "(5 March 2024)"],
)  # fmt: skip
def test_dates_with_one_reading(printed: str) -> None:
    """One day in many prints is that day, without a document."""
    assert DATE.validate_python(printed) == date(2024, 3, 5)


@pytest.mark.parametrize(
    ("printed", "value"),
    [
        ("le 3 février 2024", date(2024, 2, 3)), ("1er août 2023", date(2023, 8, 1)),
        ("7 juil. 2024", date(2024, 7, 7)),
        ("5 Jänner 2024", date(2024, 1, 5)), ("12. Dez. 2024", date(2024, 12, 12)),
        ("Sept. 4, 2021", date(2021, 9, 4)),
        ("31 ottobre 1999", date(1999, 10, 31)), ("1 de enero de 2020", date(2020, 1, 1)),
        ("2 mei 2020", date(2020, 5, 2)),
        ("30 de outubro de 2020", date(2020, 10, 30)), ("8 giugno 2020", date(2020, 6, 8)),
        ("Dec 31st, 2023", date(2023, 12, 31)),
        ("19/04/2018", date(2018, 4, 19)), ("04/19/2018", date(2018, 4, 19)), ("05/05/2018", date(2018, 5, 5)),
        ("29.02.2024", date(2024, 2, 29)), ("99/04/18", date(1999, 4, 18)), ("31.12.49", date(2049, 12, 31)),
        ("31.12.50", date(1950, 12, 31)), ("15-01-2024", date(2024, 1, 15)),
    ],
)  # fmt: skip
def test_other_dates_with_one_reading(printed: str, value: date) -> None:
    """Month names of seven languages and numbers that fit one order alone are read under every order."""
    for style in (Style(), Style(date_order="DMY"), Style(date_order="MDY")):
        assert DATE.validate_python(printed, context={"style": style}) == value


def test_the_style_decides_the_order() -> None:
    """A date with two readings is read in the document's order."""
    day_first, month_first, year_first = Style(date_order="DMY"), Style(date_order="MDY"), Style(date_order="YMD")
    assert DATE.validate_python("05/04/2018", context={"style": day_first}) == date(2018, 4, 5)
    assert DATE.validate_python("05/04/2018", context={"style": month_first}) == date(2018, 5, 4)
    assert DATE.validate_python("05.04.2018", context={"style": month_first}) == date(2018, 5, 4)
    assert DATE.validate_python("24/03/05", context={"style": year_first}) == date(2024, 3, 5)


@pytest.mark.parametrize("context", [None, {"style": Style()}, {"style": Style(date_order="YMD")}])
def test_an_order_that_nothing_decides_is_refused(context: dict[str, Any] | None) -> None:
    """A date with two readings is never guessed; the model is told both and how to write it."""
    with pytest.raises(ValidationError) as caught:
        DATE.validate_python("05/04/2018", context=context)
    assert caught.value.errors()[0]["msg"] == (
        '"05/04/2018" can be read as 2018-04-05 or as 2018-05-04 and nothing in the document decides; '
        "write it as YYYY-MM-DD if the document makes the order clear"
    )


@pytest.mark.parametrize(
    "printed",
    ["", "N/A", "March 2024", "5 March", "2024", "1709596800", "31.02.2024", "01.03.2024 - 31.03.2024",
     "03-2024-05", "tomorrow",
     "0000-01-01", "2024-13-05", "5 Mars bars 2024", "due 5 March 2024 net", "240305", "12.03", "1.2.3", "5 jui 2024",
     "5 March April 2024", "5 @ 3 @ 2024", "1" * 500],
)  # fmt: skip
def test_what_is_no_date(printed: str) -> None:
    """Parts of dates, ranges, time stamps and days that do not exist are refused with a short text."""
    with pytest.raises(ValidationError) as caught:
        DATE.validate_python(printed)
    assert len(caught.value.errors()[0]["msg"]) < 200


@pytest.mark.parametrize(
    "value", [1709596800, 20240305, 0.0, True, None, [], datetime(2024, 3, 5, 1), datetime(2024, 3, 5, 12, tzinfo=UTC)]
)
def test_numbers_and_times_of_day_are_refused(value: Any) -> None:
    """No number is taken for a time stamp, and a time of day is never cut off unseen."""
    with pytest.raises(ValidationError, match="printed"):
        DATE.validate_python(value)


def test_typed_dates_pass() -> None:
    """A date passes as it is, a datetime at midnight is its day."""
    assert DATE.validate_python(date(2024, 3, 5)) == date(2024, 3, 5)
    assert DATE.validate_python(datetime(2024, 3, 5)) == date(2024, 3, 5)
