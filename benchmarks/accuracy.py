"""How right are the records? Field by field against gold, never a pass rate.

    python benchmarks/accuracy.py --model local/qwen2.5-coder-0.5b
    python benchmarks/accuracy.py --gold elsewhere/gold.jsonl --model openai/gpt-5-mini

Gold is a file of JSON lines, ``{"doc": path beside the gold file, "records": [{field: value}, …]}``; a value of
``null`` means that the field is not in the document, and a field left out is not scored. Each gold record is compared
with the extracted one that it is most like. Text is compared after folding case and white space, decimals by value. A
missing record makes all of its fields wrong; a record too many is counted beside them.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

LINES = "line_items"


def same(found: Any, gold: Any) -> bool:
    """Equal by value: numbers as decimals, text without regard to case and white space."""
    if found is None or gold is None:
        return found is None and gold is None
    try:
        return Decimal(str(found)) == Decimal(str(gold))
    except InvalidOperation:
        return " ".join(str(found).split()).casefold() == " ".join(str(gold).split()).casefold()


def header(record: dict[str, Any]) -> dict[str, Any]:
    """The fields of a record that are no lists."""
    return {name: value for name, value in record.items() if name != LINES}


def right(found: dict[str, Any], gold: dict[str, Any]) -> int:
    """How many header fields are right."""
    return sum(same(found.get(name), value) for name, value in header(gold).items())


def pair(found: list[dict[str, Any]], gold: list[dict[str, Any]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Each gold record with the extracted one that it is most like, each used once."""
    left, pairs = list(found), []
    for one in gold:
        best = max(left, key=lambda record: right(record, one), default=None)
        if best is not None:
            left.remove(best)
        pairs.append((best or {}, one))
    return pairs


class Score:
    """Counts of right and scored values by field."""

    def __init__(self) -> None:
        self.right: Counter[str] = Counter()
        self.scored: Counter[str] = Counter()
        self.wrong: list[str] = []

    def add(self, where: str, found: dict[str, Any], gold: dict[str, Any]) -> None:
        """Score one record against its gold."""
        for name, value in header(gold).items():
            self._one(where, name, found.get(name), value)
        lines = found.get(LINES) or []
        for number, line in enumerate(gold.get(LINES) or ()):
            other = lines[number] if number < len(lines) else {}
            for name, value in line.items():
                self._one(f"{where} line {number + 1}", f"{LINES}.{name}", other.get(name), value)

    def _one(self, where: str, name: str, found: Any, gold: Any) -> None:
        self.scored[name] += 1
        if same(found, gold):
            self.right[name] += 1
        else:
            self.wrong.append(f"{where}: {name}: {found!r}, gold {gold!r}")


def main() -> int:
    """Run the pipeline over a gold set and print the score."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gold", type=Path, default=Path(__file__).parent.parent / "data" / "gold.jsonl")
    parser.add_argument("--model")
    parser.add_argument("--pipeline", default="invoices")
    parser.add_argument("--database", default="sqlite://", help="in memory by default: everything is asked anew")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--wrong", action="store_true", help="list every wrong value")
    options = parser.parse_args()

    from extractor import configuration, project
    from extractor.frames import as_row

    root = configuration.find(Path(__file__).parent.parent)
    pipeline = project.pipeline(root, options.pipeline)
    lines = [json.loads(line) for line in options.gold.read_text(encoding="utf-8").splitlines() if line.strip()]
    gold = {str(options.gold.parent / one["doc"]): one["records"] for one in lines[: options.limit]}
    score, statuses, extra, tokens, begun = Score(), Counter(), 0, 0, time.monotonic()
    for outcome in pipeline.map(list(gold), model=options.model, database=options.database):
        statuses[str(outcome.status)] += 1
        tokens += outcome.usage.input_tokens + outcome.usage.output_tokens
        wanted = gold[outcome.source]
        found = [json.loads(json.dumps(as_row(record), default=str)) for record in outcome.records]
        extra += max(0, len(found) - len(wanted))
        for record, one in pair(found, wanted):
            score.add(Path(outcome.source).name, record, one)
        sys.stderr.write(f"{outcome.status}: {Path(outcome.source).name} {outcome.error[:160]}\n")
    seconds = time.monotonic() - begun
    for name in score.scored:
        print(
            f"{name:<28} {score.right[name]:>4} of {score.scored[name]:<4} {score.right[name] / score.scored[name]:.2f}"
        )
    heads = [name for name in score.scored if not name.startswith(LINES)]
    good, of = sum(score.right[name] for name in heads), sum(score.scored[name] for name in heads)
    items = [name for name in score.scored if name.startswith(LINES)]
    good_items, of_items = sum(score.right[name] for name in items), sum(score.scored[name] for name in items)
    print(f"{'header fields':<28} {good:>4} of {of:<4} {good / of if of else 0:.3f}")
    print(f"{'line item fields':<28} {good_items:>4} of {of_items:<4} {good_items / of_items if of_items else 0:.3f}")
    print(f"documents {len(gold)} · {dict(statuses)} · records too many {extra} · {tokens} tokens · {seconds:.0f} s")
    if options.wrong:
        print("\n".join(score.wrong))
    return 0


if __name__ == "__main__":
    sys.exit(main())
