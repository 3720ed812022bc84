"""The sign of an amount is the one that is printed."""

from __future__ import annotations

from decimal import Decimal

import pytest
from pydantic import BaseModel

from extractor.fields import Amount, Style


class Total(BaseModel):
    """One amount."""

    total: Amount


@pytest.mark.parametrize(
    ("text", "said", "right"),
    [
        ("Total (120.00) GBP", "120.00", "-120.00"),
        ("Total (\u00a3120.00)", "\u00a3120.00", "-120.00"),
        ("Summe -1.234,50 EUR", "1234.50", "-1234.50"),
        ("Summe 12,50-", "12,50", "-12.50"),
        ("Total $2,963.73", "(2,963.73)", "2963.73"),
        ("Total 1 234,56 EUR", "-1234.56", "1234.56"),
        ("Pay 10.00, refund -10.00", "10.00", "10.00"),
        ("Pay 10.00, refund -10.00", "-10.00", "-10.00"),
        ("pages 8-10.00 and 5", "10.00", "10.00"),
        ("nothing of it", "-7.00", "-7.00"),
    ],
)
def test_digits_that_are_printed_with_one_sign_have_that_sign(text: str, said: str, right: str) -> None:
    """A sign that the model lost or made up is put right where the document leaves one reading, and flagged."""
    flags: list[str] = []
    value = Total.model_validate({"total": said}, context={"style": Style.of(text), "flags": flags}).total
    assert value == Decimal(right)
    assert bool(flags) == (("-" in right) != ("-" in said or "(" in said))


def test_typed_values_keep_their_sign() -> None:
    """What a program hands over is not second-guessed."""
    context = {"style": Style.of("Total (120.00)"), "flags": []}
    assert Total.model_validate({"total": Decimal("120.00")}, context=context).total == 120
