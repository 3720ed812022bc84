"""Does another attempt make a record right? Field by field against gold, for each policy: never a pass rate.

    python benchmarks/repair.py --model local/qwen2.5-coder-0.5b --policy reask,narrow,resample,small
    python benchmarks/repair.py --project elsewhere --pipeline receipts --gold elsewhere/gold.jsonl --replies kept.jsonl

Gold is as for ``accuracy.py``; only fields that are no lists are scored, and text is compared by its letters and
digits. Every policy is given the same answers to the same questions, so that all of them start from one and the same
first answer; with ``--replies`` they are kept for the next time too.

For each policy: fields right after one attempt, two and so on; and of the fields that a check caught in the first
answer, how many were wrong, and how many of those are right in the end. A check catches the field that it names and, as
the policies see it, those that its text names beside it.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from accuracy import LINES, header, pair
from accuracy import same as equal
from pydantic import TypeAdapter

from extractor import configuration, project
from extractor.attempts import named
from extractor.attempts.places import wanted
from extractor.chain import opening
from extractor.conversation import KEPT, Obligation
from extractor.documents import load
from extractor.drivers import request_key
from extractor.fields.style import Style
from extractor.functions import Function
from extractor.matching import decoded
from extractor.messages import Ask, Reply, Unanswered, Usage, Verdict
from extractor.models import Model
from extractor.models.resolving import resolve
from extractor.outcome import Attempt, Outcome
from extractor.store.codec import reply_from_json, reply_to_json

Record = dict[str, Any]


class Remembering:
    """A model whose answers are kept, so that policies are compared on equal ones."""

    workers = 1

    def __init__(self, model: Model, file: Path | None) -> None:
        self._model, self._file = model, file
        self._kept: dict[str, Reply] = {}
        for line in file.read_text(encoding="utf-8").splitlines() if file is not None and file.exists() else ():
            key, body = json.loads(line)
            self._kept[key] = reply_from_json(body)
        self.name, self.identity = model.name, model.identity

    def prepare(self) -> None:
        """Have the model ready."""
        self._model.prepare()

    async def aclose(self) -> None:
        """Let go of what the model holds."""
        await self._model.aclose()

    async def ask(self, ask: Ask) -> Reply | Unanswered:
        """The kept answer, or the model's own."""
        key = request_key(self.identity, ask)
        if key not in self._kept:
            answer = await self._model.ask(ask)
            if isinstance(answer, Unanswered):
                return answer
            self._kept[key] = answer
            if self._file is not None:
                with self._file.open("a", encoding="utf-8") as out:
                    out.write(json.dumps([key, reply_to_json(answer)]) + "\n")
        return self._kept[key]


@dataclass
class Tally:
    """What one policy came to."""

    attempts: int
    right: list[int] = field(default_factory=list)
    scored: int = 0
    documents: int = 0
    checked: int = 0
    caught: int = 0
    caught_wrong: int = 0
    mended: list[int] = field(default_factory=list)
    broken: int = 0
    stored: list[tuple[int, int]] = field(default_factory=list)
    by_field: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    later: Usage = Usage()

    def __post_init__(self) -> None:
        self.right, self.mended = [0] * self.attempts, [0] * self.attempts
        self.stored = [(0, 0)] * self.attempts

    def add(self, outcome: Outcome, gold: list[Record], functions: dict[str, Function], style: Style) -> None:
        """Score one document."""
        self.documents += 1
        self.statuses[str(outcome.status)] += 1
        answered = [one for one in outcome.attempts if isinstance(one.answer, Reply)]
        self.kinds.update(one.kind for one in answered[1:])
        self.later = sum((one.answer.usage for one in answered[1:]), self.later)
        names = faults(answered[:1], functions)
        self.checked += bool(names)
        first = graded(answered[:1], gold, functions, style)
        for number in range(self.attempts):
            now = graded(answered[: number + 1], gold, functions, style)
            self.right[number] += sum(now.values())
            self.mended[number] += sum(now[key] and not first[key] and key[1] in names for key in now)
            kept = graded(answered[: number + 1], gold, functions, style, is_rejected_too=False)
            good, bad = self.stored[number]
            self.stored[number] = good + sum(kept.values()), bad + len(kept) - sum(kept.values())
            if number + 1 == self.attempts:
                self.broken += sum(first[key] and not now[key] for key in now)
                self.by_field.update(f"{key[1]} {was}" for key in now for was in _changes(first[key], now[key]))
        self.scored += len(first)
        self.caught += sum(key[1] in names for key in first)
        self.caught_wrong += sum(key[1] in names and not good for key, good in first.items())

    def lines(self) -> Iterator[str]:
        """The report."""
        yield f"documents {self.documents} · failed a check at first {self.checked} · {dict(self.statuses)}"
        yield f"later attempts {dict(self.kinds)} · tokens in {self.later.input_tokens}, out {self.later.output_tokens}"
        right = " ▸ ".join(map(str, self.right))
        yield f"header fields right of {self.scored}: {right} (right before, wrong after: {self.broken})"
        share = f" = {self.mended[-1] / self.caught_wrong:.0%}" if self.caught_wrong else ""
        stored = " ▸ ".join(f"{good} right, {bad} wrong" for good, bad in self.stored)
        yield f"of these in accepted records: {stored}"
        yield (
            f"fields that a check caught {self.caught}, of them wrong {self.caught_wrong}, "
            f"of those right afterwards {' ▸ '.join(map(str, self.mended))}{share}"
        )
        yield ", ".join(f"{name} {count}" for name, count in sorted(self.by_field.items()))


def _changes(before: bool, after: bool) -> tuple[str, ...]:
    return () if before == after else ("mended" if after else "broken",)


def faults(attempts: list[Attempt], functions: dict[str, Function]) -> set[str]:
    """The fields at the top that checks caught in these attempts."""
    found = set()
    for attempt in attempts:
        for call, result in zip(attempt.calls, attempt.results, strict=True):
            function = functions.get(call.name)
            if result.verdict is Verdict.REJECTED and function is not None:
                values = decoded(call.arguments) if result.arguments is None else result.arguments
                one = Obligation(call.name, 0, values, result.content, result.paths, values)
                state = replace(opening((), (function.offer,)), obligations=(one,))
                found |= {str(place.path[0]) for record in wanted(state) for place in record.places}
    return found


def graded(
    attempts: list[Attempt],
    gold: list[Record],
    functions: dict[str, Function],
    style: Style,
    *,
    is_rejected_too: bool = True,
) -> dict[tuple[int, str], bool]:
    """Which fields of the gold records are right after these attempts, in records that were accepted or also in those
    that were not."""
    accepted: list[Record] = []
    left: list[Record] = []
    for attempt in attempts:
        read = [
            (result.verdict, typed(functions[call.name], result.arguments or decoded(call.arguments) or {}, style))
            for call, result in zip(attempt.calls, attempt.results, strict=True)
            if call.name in functions
        ]
        accepted += [record for verdict, record in read if verdict in KEPT]
        rejected = [record for verdict, record in read if verdict is Verdict.REJECTED]
        left = rejected if rejected or any(verdict in KEPT for verdict, _ in read) else left
    return {
        (number, name): same(found.get(name), value)
        for number, (found, one) in enumerate(pair([*accepted, *(left if is_rejected_too else ())], gold))
        if found or is_rejected_too
        for name, value in header(one).items()
    }


def typed(function: Function, arguments: Any, style: Style) -> Record:
    """Each value as its field reads it by itself; one that it refuses is left out."""
    found = {}
    for name, adapter in readers(function.adapter).items():
        with contextlib.suppress(ValueError):
            value = adapter.validate_python(arguments.get(name), context={"style": style, "flags": []})
            found[name] = json.loads(json.dumps(value, default=str))
    return found


@functools.cache
def readers(draft: Any) -> dict[str, TypeAdapter[Any]]:
    """What reads each field of a draft that is no list."""
    fields = getattr(draft, "model_fields", {})
    return {
        name: TypeAdapter(Annotated[(one.annotation, *one.metadata)] if one.metadata else one.annotation)
        for name, one in fields.items()
        if name != LINES
    }


def same(found: Any, gold: Any) -> bool:
    """Equal by value, text by its letters and digits."""
    return equal(found, gold) or (isinstance(found, str) and isinstance(gold, str) and _folded(found) == _folded(gold))


def _folded(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold())) or text


def main() -> int:
    """Run the pipeline over a gold set once for each policy, and print what came of it."""
    options = _options()
    root = configuration.find(options.project)
    pipeline = project.pipeline(root, options.pipeline)
    lines = [json.loads(line) for line in options.gold.read_text(encoding="utf-8").splitlines() if line.strip()]
    gold = {str(options.gold.parent / one["doc"]): one["records"] for one in lines[options.skip :][: options.limit]}
    model = Remembering(resolve(options.model)[0], options.replies)
    styles = {source: Style.of(text_of(source)) for source in gold}
    for policy in options.policy.split(","):
        tally, begun = Tally(options.attempts), time.monotonic()
        pipeline.policy, pipeline.max_attempts = named(policy), options.attempts
        with tempfile.TemporaryDirectory() as folder:
            database = f"sqlite:///{Path(folder) / 'records.db'}"
            for outcome in pipeline.map(list(gold), model=model, database=database, project=root):
                tally.add(outcome, gold[outcome.source], dict(pipeline.functions), styles[outcome.source])
                sys.stderr.write(f"{policy}: {outcome.status}: {Path(outcome.source).name} {outcome.error[:160]}\n")
        print(f"== {policy} · {model.name} · {time.monotonic() - begun:.0f} s")
        print("\n".join(tally.lines()), flush=True)
    return 0


def text_of(source: str) -> str:
    """The document as its style is told from."""
    return load(Path(source).read_bytes(), name=source).text


def _options() -> argparse.Namespace:
    home = Path(__file__).parent.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gold", type=Path, default=home / "data" / "gold.jsonl")
    parser.add_argument("--project", type=Path, default=home)
    parser.add_argument("--pipeline", default="invoices")
    parser.add_argument("--model", default="local/qwen2.5-coder-0.5b")
    parser.add_argument("--policy", default="reask,narrow,resample,small")
    parser.add_argument("--attempts", type=int, default=3)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--replies", type=Path, help="a file that answers are kept in")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
