"""Who answers. A model is resolved by its name (:mod:`extractor.models.resolving`) and imported when it is used."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from extractor.messages import Ask, Reply, Unanswered


@runtime_checkable
class Model(Protocol):
    """What the loop's questions are put to.

    A model may have more attributes: ``workers``, how many documents are worth having in flight (16 by default);
    ``max_attempts``, how many answers a document is worth (3 by default); ``policy``, what its next attempt asks
    (``strong`` by default, ``small`` for one that does not become right by being shown its error); ``price``, what
    its tokens cost (:class:`extractor.prices.Price`).
    """

    name: str
    """Such as ``local/qwen2.5-coder-1.5b``."""

    @property
    def identity(self) -> str:
        """What enters the request key: equal questions to models of equal identity have equal answers."""

    async def ask(self, ask: Ask) -> Reply | Unanswered:
        """Put a question. Trouble is a value, never an exception."""

    def prepare(self) -> None:
        """Whatever has to be there before the first question.

        :raises ExtractorError: when it cannot be had, in one line.
        """

    async def aclose(self) -> None:
        """Let go of what the running event loop holds of it."""


WORKERS = 16
MAX_ATTEMPTS = 3
POLICY = "strong"


def workers(models: tuple[Model, ...]) -> int:
    """How many documents are worth having in flight with these models."""
    return min(int(getattr(model, "workers", WORKERS)) for model in models)


def policy(model: Model) -> str:
    """Which attempts suit a model: the name of a policy."""
    return str(getattr(model, "policy", POLICY))


def max_attempts(model: Model) -> int:
    """How many answers of this model a document is worth."""
    return int(getattr(model, "max_attempts", MAX_ATTEMPTS))
