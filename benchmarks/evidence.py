"""How often evidence finds a true value, and how often one that was altered; how long a record takes.

The directory holds ``gold.jsonl``: lines with ``doc`` (a file beside it), ``record`` (nested values) and ``in_text``
(which of them are known to stand in the text). A true value counts as found at the right place when what is printed
there reads as the value and, for a line, when the place is on the row that its other values are on. Altered values are
the true ones with one digit or letter changed, without those that the text happens to hold, too, in some usual print.

    python benchmarks/evidence.py DIRECTORY
"""

from __future__ import annotations

import json
import random
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

from extractor.documents import Document, load
from extractor.evidence import Finder
from extractor.fields.style import Style

DATES = ("issue_date", "due_date", "delivery_date")
AMOUNTS = ("net_total", "tax_total", "grand_total", "due_payable", "net_amount", "quantity", "unit_price")


def typed(record: Any, name: str = "") -> Any:
    """A record of texts with its numbers and dates as such."""
    if isinstance(record, dict):
        return {key: typed(value, key) for key, value in record.items()}
    if isinstance(record, list):
        return [typed(value, name) for value in record]
    if record is not None and name in AMOUNTS:
        return Decimal(record)
    return date.fromisoformat(record) if record and name in DATES else record


def only(record: dict[str, Any], in_text: dict[str, Any]) -> dict[str, Any]:
    """The values of a record that stand in the text: of the lines those that do in every line."""
    kept: dict[str, Any] = {}
    for path, there in in_text.items():
        head, _, last = path.partition(".")
        if head == "lines" and there == 1.0:
            for number, line in enumerate(record["lines"]):
                rows = kept.setdefault("lines", [{} for _ in record["lines"]])
                rows[number][last] = line[last]
        elif there is True and last:
            kept.setdefault(head, {})[last] = record[head][last]
        elif there is True:
            kept[head] = record[head]
    return kept


def altered(text: str, draw: random.Random) -> str:
    """A text with one digit or letter changed into another of its kind."""
    places = [n for n, character in enumerate(text) if character.isalnum() and character.isascii()]
    if not places:
        return text
    at = draw.choice(places)
    kind = "0123456789" if text[at].isdigit() else "abcdefghijklmnopqrstuvwxyz"
    other = draw.choice([letter for letter in kind if letter != text[at].lower()])
    return text[:at] + (other.upper() if text[at].isupper() else other) + text[at + 1 :]


def forms(value: Any) -> list[str]:
    """How a value is usually printed."""
    if isinstance(value, date):
        return [value.strftime(form) for form in ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y%m%d")]
    if not isinstance(value, Decimal):
        return [str(value)]
    size = abs(value)
    plain = {f"{size:.{places}f}" for places in range(5) if round(size, places) == size}
    plain |= {f"{size:,.{places}f}" for places in range(5) if round(size, places) == size}
    swapped = {form.translate(str.maketrans(".,", ",.")) for form in plain}
    return [*plain, *swapped, *(form.replace(".", " ") for form in swapped)]


def holds(text: str, value: Any) -> bool:
    """Whether a text holds a value in some usual print."""
    return any(re.search(rf"(?<!\w){re.escape(form)}(?!\w)", text) for form in forms(value))


def flat(values: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of a record with its path."""
    if isinstance(values, dict):
        for key, value in values.items():
            yield from flat(value, f"{path}.{key}" if path else key)
    elif isinstance(values, list):
        for number, value in enumerate(values):
            yield from flat(value, f"{path}.{number}")
    elif values is not None:
        yield path, values


def one(document: Document, style: Style, record: dict[str, Any], seen: Counter[str], draw: random.Random) -> float:
    """Count one document's values; gives the milliseconds that its record took, index and all."""
    sent = json.loads(json.dumps(record, default=str))
    begun = time.perf_counter()
    finder = Finder(document, style)
    found = finder.find(sent, record)
    took = (time.perf_counter() - begun) * 1000
    lines = {one.path: document.pages[one.page - 1].text[: one.start].count("\n") for one in found if one.page}
    for one in found:
        head, _, _ = one.path.rpartition(".")
        row = [line for path, line in lines.items() if path.rpartition(".")[0] == head and path.startswith("lines.")]
        spread = max(row) - min(row) if row else 0
        is_right = one.is_found and (not one.path.startswith("lines.") or spread <= 4)
        seen["true"] += 1
        seen["found"] += one.is_found
        seen["right"] += is_right
        if not is_right:
            print(f"  {document.source}: {one.path} {one.printed!r} {one.match} (row over {spread} lines)")
    for path, value in flat(record):
        name = path.rpartition(".")[2]
        text = altered(str(value), draw)
        try:
            wrong = typed(text, name)
        except (ValueError, ArithmeticError):
            continue
        if text == str(value) or any(
            re.search(rf"(?<!\w){re.escape(form)}(?!\w)", document.text) for form in forms(wrong)
        ):
            continue
        seen["altered"] += 1
        result = finder.find({name: text}, {name: wrong})
        if result and result[0].is_found:
            seen["wrongly found"] += 1
            print(f"  {document.source}: {value} altered to {text} is found as {result[0].printed!r}")
    return took


def main(directory: Path) -> None:
    """Measure a directory."""
    seen: Counter[str] = Counter()
    draw = random.Random(1)
    took = []
    for line in (directory / "gold.jsonl").read_text().splitlines():
        gold = json.loads(line)
        document = load((directory / gold["doc"]).read_bytes(), name=gold["doc"])
        record = typed(only(gold["record"], gold["in_text"]))
        took.append(one(document, Style.of(document.text), record, seen, draw) / max(1, len(document.pages)) * 3)
    print(f"{len(took)} documents, {seen['true']} values in the text")
    print(f"found {seen['found'] / seen['true']:.1%}, at the right place {seen['right'] / seen['true']:.1%}")
    print(f"altered {seen['altered']}, found {seen['wrongly found']} ({seen['wrongly found'] / seen['altered']:.2%})")
    print(f"for three pages: median {statistics.median(took):.2f} ms, worst {max(took):.2f} ms")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
