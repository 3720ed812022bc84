"""Words that mean "there is no value"."""

from __future__ import annotations

import pytest

from extractor.fields.nulls import nullish


@pytest.mark.parametrize(
    "text",
    ["", " ", "N/A", "n/a", "NA", "none", "None", "null", "NULL", "-", "--", "—", "unknown", "Unknown",
     "<null>", '"none"',
     "(none)", "not available", "nicht angegeben", "k. A.", "\u00a0", "...", "- -", "-" * 500],
)  # fmt: skip
def test_words_for_no_value(text: str) -> None:
    """What models write for a missing value is recognised, whatever its case, quotes and brackets."""
    assert nullish(text)


@pytest.mark.parametrize(
    "text", ["0", "0.00", "-5", "no", "a.", "k.", "Nunn", "None Ltd", "0-0", "N/A Holding", "x" * 500]
)
def test_values_are_no_nulls(text: str) -> None:
    """Zero, numbers and ordinary words are values."""
    assert not nullish(text)
