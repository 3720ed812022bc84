"""From a model's name to the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from extractor import plugins
from extractor.errors import ConfigurationError
from extractor.models import Model

GROUP = "extractor.models"

ModelLike = str | Model
"""A name such as ``local/qwen2.5-coder-1.5b``, ``openai/gpt-5-mini`` or ``local:weights.gguf``, or a model itself."""


def resolve(models: ModelLike | Sequence[ModelLike]) -> tuple[Model, ...]:
    """The models of a list, first choice first; names in one text are separated by commas.

    :raises ConfigurationError: when a name is not known, with the nearest one that is.
    """
    if isinstance(models, str):
        names: Sequence[ModelLike] = [name.strip() for name in models.split(",") if name.strip()]
    else:
        names = models if isinstance(models, Sequence) else (models,)
    if not names:
        raise ConfigurationError("no model is named", hint="for example local/qwen2.5-coder-1.5b")
    return tuple(_one(name) if isinstance(name, str) else name for name in names)


def _one(name: str) -> Model:
    provider, slash, model = name.partition("/")
    if provider.startswith("local:"):
        provider, slash, model = "local", "/", name
    known = plugins.declared(GROUP)
    if not slash or not model:
        hint = plugins.suggestion(f"local/{name}", list(_examples()))
        raise ConfigurationError(f"the model {name!r} names no provider", hint=hint)
    if provider not in known:
        raise ConfigurationError(f"there is no provider {provider!r} (for the model {name!r})",
                                 hint=plugins.suggestion(provider, known))  # fmt: skip
    factory: Any = plugins.load(GROUP, provider)
    made: Model = factory(model)
    return made


def _examples() -> list[str]:
    from extractor.models.catalogue import CATALOGUE

    return [f"local/{entry}" for entry in CATALOGUE]
