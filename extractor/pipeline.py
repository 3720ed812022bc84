"""The pipeline: what a user writes in one line, and everything that it can be asked for.

::

    invoices = Pipeline(create_invoice)

    outcome = invoices.extract("a.pdf")
    frame = df.pipe(invoices.frame, column="body")
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import AsyncGenerator, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from extractor import configuration, portal, prompts
from extractor.attempts import Policy, adaptive
from extractor.attempts import named as named_policy
from extractor.budget import Account
from extractor.conversation import Rules
from extractor.engines.local import Stop, work
from extractor.errors import DefinitionError, ProviderError, UsageError
from extractor.events import Handler, Handlers
from extractor.evidence.policy import Policies, Setting
from extractor.extraction import Plan, Source, extract, readable
from extractor.functions import Function
from extractor.matching import canonical
from extractor.messages import Sampling
from extractor.models import Model
from extractor.models import max_attempts as default_attempts
from extractor.models import policy as policy_of
from extractor.models import workers as default_workers
from extractor.options import Options, check_prices, listed, tariff_of
from extractor.outcome import Outcome
from extractor.prices import Tariff
from extractor.targets import Given, Target, as_function

if TYPE_CHECKING:
    import pandas as pd

    from extractor.models.resolving import ModelLike
    from extractor.store.store import Store

Document = str | Path | bytes | BinaryIO

STANDBY_PATIENCE = 120.0
"""Seconds that a rate limit is waited out where another model stands by."""

PATIENCE = 20
"""Equal provider failures in a row after which a run stops: the next document would fare no better."""


class Pipeline:
    """Functions, a model and a database: documents in, records out.

    :param targets: what to extract: a function such as ``create_invoice``, a pydantic or SQLModel class, or a
        ``table=True`` class alone (what the model must supply is derived from it).
    :param name: what its work is known by in the ledger. By default the name of the module-level variable that
        holds the pipeline: give a name if that variable may be renamed.
    :param model: name of a model, a list of them (first choice first), or a model.
    :param database: SQLAlchemy's address of the database.
    :param instructions: said to the model with every document.
    :param policy: what the next attempt asks: a policy or its name; by default what suits each model.
    :param max_attempts: replies that each model may spend on a document; 3 by default, 2 for a small local one.
    :param exclude: columns of a table class that the model is not asked for.
    :param given: columns of a table class that the host supplies, with their values or a function of the context.
    :param style: ``decimal``, ``date_order`` or ``currency`` of all documents, where the documents do not tell.
    :param max_tokens: cap of one answer; doubled once when an answer is cut off by it.
    :param vision: show the model the pages of PDFs and pictures as pictures, beside their text.
    :param evidence: what is asked of where values stand in the document: ``flag`` (a person is told what does not
        stand there), ``require`` (the model is), ``off``; one for all fields, or one by path, ``*`` for all others.
    :param on_event: who is told what happens: a function of an :class:`~extractor.events.Event`, or several.
    :raises DefinitionError: when a target cannot be offered to a model.
    """

    def __init__(  # noqa: PLR0913 - each is one thing that a user may say of a pipeline
        self,
        *targets: Target,
        name: str | None = None,
        model: ModelLike | Sequence[ModelLike] | None = None,
        database: str | None = None,
        instructions: str = "",
        policy: Policy | str = adaptive,
        max_attempts: int | None = None,
        exclude: Collection[str] = (),
        given: Given | None = None,
        style: Mapping[str, Any] | None = None,
        max_tokens: int = 4096,
        vision: bool = False,
        evidence: Setting = "flag",
        on_event: Handler | Iterable[Handler] | None = None,
    ) -> None:
        if not targets:
            raise DefinitionError("a pipeline needs something to extract", hint="for example Pipeline(create_invoice)")
        made = [as_function(target, exclude, given) for target in targets]
        self.functions: Mapping[str, Function] = {one.name: one for one in made}
        if len(self.functions) < len(made):
            raise DefinitionError("two functions of a pipeline have the same name")
        self.model = model
        self.database = database
        self.instructions = instructions
        self.policy = named_policy(policy)
        self.max_attempts = max_attempts
        self.style = dict(style or {})
        self.sampling = Sampling(max_tokens=max_tokens)
        self.vision = vision
        self.evidence = Policies.of(evidence)
        self.handlers = Handlers(on_event)
        self._name = name
        self._module = sys._getframe(1).f_globals.get("__name__", "")  # noqa: SLF001 - as namedtuple finds its module
        self._stores: dict[str, Store] = {}
        if max_attempts is not None:
            Rules(max_attempts)  # a limit that allows nothing is an error here, before any ask

    def __repr__(self) -> str:
        return f"Pipeline({', '.join(self.functions)}, name={self.name!r})"

    @property
    def name(self) -> str:
        """What the pipeline's work is known by in the ledger."""
        if self._name is None:
            holder = vars(sys.modules.get(self._module, object)) if self._module in sys.modules else {}
            named = next((key for key, value in holder.items() if value is self), None)
            self._name = named or next(iter(self.functions))
        return self._name

    @property
    def record_classes(self) -> tuple[type[Any], ...]:
        """The table classes that the functions say they return."""
        found = (one.returns for one in self.functions.values())
        return tuple(kind for kind in found if isinstance(kind, type) and hasattr(kind, "__mapper__"))

    # -- one document ----------------------------------------------------------------------------------------------

    def extract(
        self, document: Document, *, name: str | None = None, context: Mapping[str, Any] | None = None, **options: Any
    ) -> Outcome:
        """Extract from one document and wait for it; works in a notebook too, any number of times.

        :param document: path, bytes, or an open binary file.
        :param name: what people know it by; the path by default.
        :param context: values for the function's ``context``; never shown to the model.
        :param options: of :class:`Options`, such as ``model=``, ``database=``, ``tags=`` and ``max_cost=``.
        :raises UsageError: when a name or a setting is wrong, or the document does not fit into the budget.
        :raises ProviderError: when the provider refuses every request.
        :raises StoreError: when the database cannot be used.
        """
        return portal.call(self.aextract(document, name=name, context=context, **options))

    async def aextract(
        self, document: Document, *, name: str | None = None, context: Mapping[str, Any] | None = None, **options: Any
    ) -> Outcome:
        """The same as :meth:`extract`, on the running event loop."""
        source = as_source(document, name, context)
        stop = options.setdefault("stop", Stop())
        outcomes = [outcome async for outcome in self.amap([source], **options)]
        if not outcomes:
            raise UsageError(f"{source.name} was not read: {stop.reason}", hint="a later call takes it")
        return outcomes[0]

    # -- many documents --------------------------------------------------------------------------------------------

    def map(self, documents: Iterable[Document | Source], **options: Any) -> Iterator[Outcome]:
        """Extract from many documents; yields outcomes as they are ready, each with its ``source``.

        :param documents: listed lazily.
        :param options: of :class:`Options`, such as ``workers=``, ``tags=`` and ``max_cost=``.
        """
        outcomes = self.amap(documents, **options)

        async def following() -> Outcome | None:
            return await anext(outcomes, None)

        try:
            while (outcome := portal.call(following())) is not None:
                yield outcome
        finally:
            portal.call(outcomes.aclose())

    async def amap(self, documents: Iterable[Document | Source], **options: Any) -> AsyncGenerator[Outcome, None]:
        """The same as :meth:`map`, on the running event loop."""
        chosen = Options(**options)
        store = self.store(chosen)
        plan = self.plan(chosen, store)
        sources = (one if isinstance(one, Source) else as_source(one) for one in documents)
        async for outcome in supervised(plan, sources, chosen):
            yield outcome

    def frame(self, frame: pd.DataFrame, column: str, *, as_path: bool = False, **options: Any) -> pd.DataFrame:
        """Records for the documents in a column, ready for ``df.pipe(pipeline.frame, column="body")``.

        One row for each record, with the columns of its source row, the record's own, ``extractor_status`` and
        ``extractor_error``; a document without a record keeps one row, so that nothing is lost in silence.

        :param column: holds the documents: text or bytes, or paths with ``as_path``.
        :raises UsageError: when the frame has no such column.
        """
        from extractor.frames import extract_frame

        return extract_frame(self, frame, column, as_path=as_path, **options)

    # -- what it is made of ------------------------------------------------------------------------------------------

    def plan(self, options: Options, store: Store) -> Plan:
        """Everything that a run needs, resolved once.

        :raises ConfigurationError: when a model is not known, or ``max_cost`` is set and a model's price is not.
        """
        models, tariffs = self.models(options)
        limits = options.limits
        if limits.cost is not None:
            check_prices(models, tariffs)
        return Plan(
            pipeline=self.name,
            functions=self.functions,
            models=models,
            policy=self.policy,
            rules=Rules(
                tuple(self.max_attempts or default_attempts(model) for model in models),
                ranks=len(models),
                policies=tuple(policy_of(model) for model in models),
            ),
            sampling=self.sampling,
            instructions=self.instructions,
            style=self.style,
            fingerprint=self.fingerprint([model.name for model in models]),
            store=store,
            vision=self.vision,
            evidence=self.evidence,
            handlers=self.handlers + Handlers(options.on_event),
            account=Account(tariffs, limits, options.stop.drain),
            tags=options.tag_list,
            fresh_since=datetime.now(UTC) if options.fresh else None,
        )

    def models(self, options: Options) -> tuple[tuple[Model, ...], tuple[Tariff, ...]]:
        """The models that are asked, first choice first, and what the tokens of each cost.

        :raises ConfigurationError: when one is not known.
        """
        from extractor.models.resolving import resolve

        where = options.project or configuration.find()
        named = where.setting("model", self.name, given=options.model, own=self.model).value
        names = listed(named)
        aliases = where.aliases
        over = {"rpm": options.rpm, "tpm": options.tpm, "concurrency": options.concurrency, "dialect": options.dialect}
        if not names:
            resolve(names)  # says so
        said = {name: alias.said for name, alias in aliases.items()}
        models = tuple(
            model
            for place, name in enumerate(names, start=1)
            # where another model stands by, a rate limit is not waited out for a night
            for model in resolve(name, said, over if place == len(names) else {**over, "patience": STANDBY_PATIENCE})
        )
        return models, tuple(tariff_of(name, model, aliases) for name, model in zip(names, models, strict=True))

    def store(self, options: Options | None = None) -> Store:
        """The store that the pipeline writes to; opened once for each database."""
        from extractor.store.store import Store

        options = options or Options()
        where = options.project or configuration.find()
        setting = where.setting("database", self.name, given=options.database, own=self.database)
        root = where.folder_of(setting)
        key = f"{os.getpid()} {setting.value} {root}"  # a forked process has no writer thread
        if key not in self._stores:
            store = Store(setting.value, root)
            store.prepare(self.record_classes)
            self._stores[key] = store
        return self._stores[key]

    def fingerprint(self, models: Iterable[str]) -> str:
        """Hash of schemas, prompt, models and options: says how a record was made, not which document it is of."""
        parts = [
            [asdict(one.offer) for one in self.functions.values()],
            [prompts.SYSTEM, self.instructions],
            list(models),
            asdict(self.sampling),
            self.style,
            *(["vision"] if self.vision else []),
            *([str(self.evidence)] if self.evidence != Policies() else []),
        ]
        return hashlib.sha256(canonical(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


async def supervised(plan: Plan, sources: Iterable[Source], options: Options) -> AsyncGenerator[Outcome, None]:
    """Outcomes of many documents; stops at the provider's final word, or at its twentieth equal failure in a row.

    :raises ProviderError: once what is in flight has ended.
    """
    workers = options.workers or default_workers(plan.models)
    trouble, row, answered = "", 0, False
    final: Outcome | None = None
    async for outcome in work(sources, lambda source: extract(plan, source), workers=workers, stop=options.stop):
        cause = outcome.unanswered
        if cause is not None and not outcome.is_cached:
            row = row + 1 if cause.kind == trouble else 1
            trouble = cause.kind
            # a request that is not taken is a matter of settings, unless others of its kind have been taken
            is_fatal = cause.is_fatal and not (cause.kind == "bad_request" and answered)
            if is_fatal or (row >= PATIENCE and cause.kind != "refused"):
                final = final or outcome
                if not options.stop.reason:
                    plan.handlers.stopped(plan.pipeline, plan.run, cause.model, cause.kind)
                options.stop.drain(cause.cause)
        elif outcome.attempts and not outcome.is_cached:
            trouble, row, answered = "", 0, True
        yield outcome
    if final is not None and final.unanswered is not None:
        model = final.unanswered.model or plan.models[0].name
        cause = final.unanswered
        raise ProviderError(f"{model}: {cause.cause}", kind=cause.kind, hint="nothing is lost: run again to go on")


def as_source(document: Document, name: str | None = None, values: Mapping[str, Any] | None = None) -> Source:
    """A document, in whichever form it is given, as a source.

    :raises UsageError: when it is none of path, bytes and binary file.
    """
    if isinstance(document, (str, Path)):
        return Source(name or readable(document), path=Path(document), values=values)
    if isinstance(document, (bytes, bytearray, memoryview)):
        return Source(name or "bytes", data=bytes(document), values=values)
    if hasattr(document, "read"):
        data = document.read()
        if isinstance(data, bytes):
            return Source(name or str(getattr(document, "name", "file")), data=data, values=values)
    raise UsageError(
        "a document is a path, bytes or a file opened in binary mode", hint=f"got {type(document).__name__}"
    )


__all__ = ["PATIENCE", "Options", "Pipeline", "as_source", "supervised"]
