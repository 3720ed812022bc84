"""What a run is going to do, before it does: its header, and ``--dry-run``."""

from __future__ import annotations

import contextlib
import hashlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from math import ceil
from pathlib import Path

from extractor import configuration
from extractor.chain import until_success
from extractor.cli.output import print_json
from extractor.documents import load
from extractor.drivers import request_key
from extractor.errors import DocumentError
from extractor.extraction import Plan, Source, readable
from extractor.messages import Ask, Usage
from extractor.models.tokens import about, at_least
from extractor.options import Options
from extractor.pipeline import Pipeline
from extractor.prices import dollars
from extractor.store.ledger import answers, find_work, kept_reply
from extractor.store.store import Store

ASSUMED_ANSWER = 500
"""Tokens of an answer of a model that has answered nothing of a pipeline yet: an invoice with ten lines has as many."""

PIECE = Fraction(9, 5)
"""Tokens in a piece of text that tokenizers do not join further; so it is for invoices, by a third more or less."""


def header(pipeline: Pipeline, plan: Plan, options: Options, documents: int, settled: int | None = None) -> None:
    """Say on stderr what a run uses, and where each setting comes from.

    :param settled: documents that are left alone although the run asks anew.
    """
    where = options.project or configuration.Project()
    model = where.setting("model", pipeline.name, given=options.model, own=pipeline.model)
    database = where.setting("database", pipeline.name, given=options.database, own=pipeline.database)
    limits = options.limits
    budget = [dollars(limits.cost)] if limits.cost is not None else []
    budget += [f"{limits.tokens:,} tokens"] if limits.tokens is not None else []
    lines = (
        ("pipeline", pipeline.name, ", ".join(pipeline.functions)),
        ("model", ", ".join(one.name for one in plan.models), model.origin),
        ("price", _prices(plan), ""),
        ("budget", ", ".join(budget), "command line"),
        ("database", plan.store.url.render_as_string(hide_password=True), database.origin),
        ("documents", str(documents), f"{settled} settled, which are not asked again" if settled is not None else ""),
    )
    for name, value, origin in lines:
        if value:
            sys.stderr.write(f"{name:<10} {value}{f'  ({origin})' if origin else ''}\n")


def _prices(plan: Plan) -> str:
    prices = [str(tariff) for tariff in plan.account.tariffs]
    if len(prices) == 1:
        return prices[0]
    return "; ".join(f"{model.name}: {price}" for model, price in zip(plan.models, prices, strict=True))


def is_settled(plan: Plan, path: Path) -> bool:
    """Whether nothing is to be asked for a file; one that cannot be read is nothing to ask about."""
    with contextlib.suppress(DocumentError):
        return _is_settled(plan, Source(readable(path), path=path).read())
    return True


def settled_of(plan: Plan, paths: Sequence[Path]) -> int:
    """How many of the files are settled."""
    settled = 0
    for path in paths:
        with contextlib.suppress(DocumentError):
            settled += _is_settled(plan, Source(readable(path), path=path).read())
    return settled


def _is_settled(plan: Plan, data: bytes) -> bool:
    digest = hashlib.sha256(data).hexdigest()
    found = plan.store.look(lambda connection: find_work(connection, digest, plan.pipeline))
    return found is not None and found.is_settled


# -- dry run -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Habit:
    """What documents of a pipeline have taken of a model: answers each, and tokens in them."""

    documents: int
    answers: Fraction
    tokens: Fraction

    @classmethod
    def of(cls, plan: Plan) -> Habit:
        """The mean in the ledger; an assumption where there is none."""
        model = plan.models[0].name
        documents, attempts, tokens = plan.store.read(lambda session: answers(session, plan.pipeline, model))
        if not (documents and tokens):
            return cls(0, Fraction(1), Fraction(ASSUMED_ANSWER))
        return cls(documents, Fraction(attempts, documents), Fraction(tokens, documents))

    def __str__(self) -> str:
        origin = f"mean of {self.documents:,} in the ledger" if self.documents else "assumed: none is in the ledger yet"
        return f"{ceil(self.tokens):,} tokens of answers a document ({origin})"


@dataclass(slots=True)
class Survey:
    """What a run would meet."""

    settled: int = 0
    kept: int = 0
    unreadable: int = 0
    asks: list[Ask] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)

    def add(self, plan: Plan, path: Path) -> None:
        """Look at one file. Equal bytes are one document, equal texts one question."""
        source = Source(readable(path), path=path)
        try:
            data = source.read()
            if _is_settled(plan, data):
                self.settled += 1
                return
            text = load(data, name=source.name).text
        except DocumentError:
            self.unreadable += 1
            return
        ask = next(until_success(plan.opening(text), plan.policy), None)
        if not isinstance(ask, Ask):
            return
        key = request_key(plan.models[0].identity, ask)
        is_kept = (
            plan.fresh_since is None and plan.store.look(lambda connection: kept_reply(connection, key)) is not None
        )
        if is_kept or key in self._seen:
            self.kept += 1
        else:
            self._seen.add(key)
            self.asks.append(ask)


def estimate(pipeline: Pipeline, paths: Sequence[Path], options: Options, *, json: bool) -> int:
    """Say what a run would take; nothing is asked and nothing written. Returns the exit code."""
    where = options.project or configuration.find()
    setting = where.setting("database", pipeline.name, given=options.database, own=pipeline.database)
    store = Store(setting.value, where.folder_of(setting), reads_only=True)
    plan = pipeline.plan(options, store)
    header(pipeline, plan, options, len(paths))
    survey = Survey()
    for path in paths:
        survey.add(plan, path)
    _tell(plan, survey, Habit.of(plan), json=json)
    store.close()
    return 0


def _about(ask: Ask) -> int:
    """About how many tokens a question is: prose by its characters, what is full of numbers and marks by its pieces."""
    text = replace(ask, offers=())
    return max(about(text), round(PIECE * at_least(text))) + about(ask) - about(text)


def _tell(plan: Plan, survey: Survey, habit: Habit, *, json: bool) -> None:
    questions = [_about(ask) for ask in survey.asks]
    each = ceil(habit.tokens / habit.answers)
    costs = [plan.account.tariffs[0].of(Usage(tokens, each)) for tokens in questions]
    known = sum((cost for cost in costs if cost is not None), Decimal(0))
    times = Decimal(habit.answers.numerator) / habit.answers.denominator
    cost = None if None in costs else known * times
    tokens_in, tokens_out = ceil(sum(questions) * habit.answers), ceil(len(questions) * habit.tokens)
    if json:
        print_json(
            {
                "dry_run": True, "settled": survey.settled, "to_ask": len(questions), "kept": survey.kept,
                "unreadable": survey.unreadable, "input_tokens": tokens_in, "output_tokens": tokens_out,
                "answer_tokens": ceil(habit.tokens), "answers_from": "ledger" if habit.documents else "assumed",
                "cost": format(cost.normalize(), "f") if cost is not None else None, "exit": 0,
            }
        )  # fmt: skip
        return
    parts = [f"{len(questions):,} to ask", f"{survey.settled:,} settled"]
    parts += [f"{survey.kept:,} answered by kept replies"] if survey.kept else []
    parts += [f"{survey.unreadable:,} that cannot be read"] if survey.unreadable else []
    for name, value in (
        ("would ask", ", ".join(parts)),
        ("tokens", f"about {tokens_in:,} in, {tokens_out:,} out; {habit}"),
        ("cost", f"about {dollars(cost)}" if cost is not None else "unknown"),
    ):
        sys.stdout.write(f"{name:<10} {value}\n")
