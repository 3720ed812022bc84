"""Our own documents and their gold agree."""

from __future__ import annotations

import json
import re
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from extractor.documents import load
from extractor.fields import Style
from extractor.fields.numbers import parse_amount

DATA = Path(__file__).parent.parent / "data"
GOLD = [json.loads(line) for line in (DATA / "gold.jsonl").read_text(encoding="utf-8").splitlines()]
RECORDS = [(entry["doc"], record) for entry in GOLD for record in entry["records"]]


def test_every_document_has_gold_and_every_gold_a_document() -> None:
    """Nothing is measured by half."""
    documents = {f"invoices/{path.name}" for path in (DATA / "invoices").iterdir()}
    assert documents == {entry["doc"] for entry in GOLD}
    assert len(documents) >= 12


@pytest.mark.parametrize(("document", "record"), RECORDS)
def test_the_arithmetic_of_the_gold_is_right(document: str, record: dict[str, Any]) -> None:
    """Lines sum to net, and net and tax to the total."""
    assert sum(Decimal(line["amount"]) for line in record["line_items"]) == Decimal(record["net"])
    assert Decimal(record["net"]) + Decimal(record["tax"]) == Decimal(record["total"])


@pytest.mark.parametrize(("document", "record"), RECORDS)
def test_every_gold_value_is_printed(document: str, record: dict[str, Any]) -> None:
    """What is asked for can be read: names as they are, amounts by value."""
    text = load(DATA / document).text
    flat = " ".join(text.split())
    style = Style.of(text)
    printed = {
        number for token in re.findall(r"[(\-]?[$£]?\d[\d.,' ]*\d\)?", text) for number in _readings(token, style)
    }
    for name in ("invoice_number", "seller", "buyer"):
        assert record[name] in flat
    taxes = Decimal(record["tax"])
    for name in ("net", "total"):
        assert Decimal(record[name]) in printed, name
    assert taxes in printed or any(taxes - other in printed for other in printed)
    for line in record["line_items"]:
        assert line["description"] in flat


def _readings(token: str, style: Style) -> set[Decimal]:
    """A token's value; a space may also part two columns."""
    found = set()
    for piece in (token, *re.split(r" +", token), *re.split(r" {2,}", token)):
        try:
            found.add(parse_amount(piece, style.decimal)[0])
        except ValueError:
            continue
    return found


def test_rendering_again_gives_the_same_bytes() -> None:
    """The documents are what their description says."""
    sys.path.insert(0, str(DATA))
    try:
        import make_samples
    finally:
        sys.path.remove(str(DATA))
    for name in make_samples.DOCUMENTS:
        assert make_samples.render(name) == (DATA / "invoices" / name).read_bytes(), name
    assert make_samples.gold() == GOLD
