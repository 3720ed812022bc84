"""Numbers that have one reading in any document are read on a short way, to the same value as on the long one."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractor.fields import numbers
from extractor.fields.numbers import MARKS, parse_amount, parse_percent, parse_quantity

PRINTED = st.one_of(
    st.from_regex(r"-?[0-9]{1,16}([.,][0-9]{1,3})?", fullmatch=True),
    st.text("0123456789.,-' ", max_size=20),
)


def outcome(read: Callable[..., Any], text: str, mark: Any) -> Any:
    """The value to the last digit and its sign, or the refusal's text."""
    try:
        found = read(text, mark)
    except ValueError as error:
        return str(error)
    value, side = found if isinstance(found, tuple) else (found, None)
    return value.as_tuple(), side


@pytest.mark.parametrize("read", [parse_amount, parse_quantity, parse_percent])
@given(text=PRINTED, mark=st.sampled_from([None, *MARKS]))
def test_the_short_way_leads_where_the_long_one_does(read: Callable[..., Any], text: str, mark: Any) -> None:
    """Whatever the mark of the document, a plain number has the same digits, exponent and sign on both ways."""
    short = outcome(read, text, mark)
    with patch.object(numbers, "_simple", return_value=None):
        assert short == outcome(read, text, mark)


@pytest.mark.parametrize(("text", "value"), [("12.50", "12.50"), ("-12,50", "-12.50"), ("-0.00", "0.00"), ("7", "7")])
def test_plain_numbers_take_the_short_way(text: str, value: str) -> None:
    """Digits with two decimals and whole numbers need no taking apart; a minus before nothing is none."""
    assert numbers._simple(text) == Decimal(value)
    assert str(numbers._simple(text)) == value


@pytest.mark.parametrize("text", ["1.234", "1.5", "12.50\n", "٣.50", "+1", "1 000"])
def test_everything_else_takes_the_long_way(text: str) -> None:
    """What may have two readings, or is not plain, is taken apart."""
    assert numbers._simple(text) is None
