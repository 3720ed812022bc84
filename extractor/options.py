"""What one call or run may set, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from extractor import configuration
from extractor.budget import Limits
from extractor.engines.local import Stop
from extractor.errors import ConfigurationError, UsageError
from extractor.models import Model
from extractor.prices import Tariff, tariff

if TYPE_CHECKING:
    from extractor.events import Handler
    from extractor.models.resolving import ModelLike

LONGEST_TAG = 100
LEAST_COST, MOST_COST = Decimal("0.000001"), Decimal(10**9)


@dataclass(frozen=True, slots=True)
class Options:
    """What one call or run may set over what the pipeline was made with. ``None`` leaves it as it is."""

    model: ModelLike | Sequence[ModelLike] | None = None
    database: str | None = None
    workers: int | None = None
    project: configuration.Project | None = None
    stop: Stop = field(default_factory=Stop)
    on_event: Handler | Iterable[Handler] | None = None
    """Who is told what happens, beside the pipeline's own handlers."""
    rpm: float | None = None
    """Requests a minute that each model is asked, all workers together."""
    tpm: float | None = None
    """Tokens a minute."""
    concurrency: int | None = None
    """Requests in flight."""
    dialect: str | None = None
    """How questions are worded and answers read, such as ``tools`` or ``json_schema``."""
    tags: str | Sequence[str] = ()
    """Words under which what the run costs is counted, such as the name of a customer."""
    fresh: bool = False
    """Ask anew where a reply is kept already; it takes the place of the kept one."""
    max_cost: Decimal | str | float | None = None
    """US dollars that the run may cost."""
    max_tokens: int | None = None
    """Tokens that the run may take, in and out of all its questions together."""

    @property
    def limits(self) -> Limits:
        """What the run may cost.

        :raises UsageError: when it is no amount.
        """
        try:
            cost = Decimal(str(self.max_cost)) if self.max_cost is not None else None
        except InvalidOperation:
            cost = Decimal("NaN")
        if cost is not None and not (cost.is_finite() and LEAST_COST <= cost <= MOST_COST):
            raise UsageError(f"max_cost {str(self.max_cost)!r} is no amount", hint="give US dollars, for example 2.50")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise UsageError("max_tokens must be at least 1")
        return Limits(cost, self.max_tokens)

    @property
    def tag_list(self) -> tuple[str, ...]:
        """The tags, each once.

        :raises UsageError: when one is no word.
        """
        tags = (self.tags,) if isinstance(self.tags, str) else tuple(self.tags)
        for tag in tags:
            if not isinstance(tag, str) or not tag.strip() or not tag.isprintable() or len(tag) > LONGEST_TAG:
                raise UsageError(f"{tag!r} is no tag", hint=f"a tag is a text of up to {LONGEST_TAG} characters")
        return tuple(dict.fromkeys(tags))


def listed(named: ModelLike | Sequence[ModelLike]) -> list[ModelLike]:
    """The models of a list; names in one text are separated by commas."""
    if isinstance(named, str):
        return [name.strip() for name in named.split(",") if name.strip()]
    return list(named) if isinstance(named, Sequence) else [named]


def tariff_of(name: ModelLike, model: Model, aliases: Mapping[str, configuration.Alias]) -> Tariff:
    """The price of a model: what its alias says, else its own (an attribute ``price``), else by its name."""
    alias = aliases.get(name.partition("#")[0]) if isinstance(name, str) else None
    return alias.tariff if alias is not None else tariff(model.name, getattr(model, "price", None))


def check_prices(models: Sequence[Model], tariffs: Sequence[Tariff]) -> None:
    """Whether ``max_cost`` can be kept at all.

    :raises ConfigurationError: when the price of a model is not known.
    """
    unknown = [model.name for model, tariff in zip(models, tariffs, strict=True) if not tariff.is_known]
    if unknown:
        raise ConfigurationError(
            f"max_cost cannot be kept: the price of {', '.join(unknown)} is not known",
            hint="give it in [tool.extractor.models.NAME]: price = {input = 0.25, output = 2.00}, "
            "US dollars for a million tokens",
        )
