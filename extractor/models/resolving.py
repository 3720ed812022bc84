"""From a model's name to the model."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from extractor import plugins
from extractor.errors import ConfigurationError
from extractor.models import Model
from extractor.models.settings import of as settings_of

GROUP = "extractor.models"

ModelLike = str | Model
"""A name such as ``local/qwen2.5-coder-1.5b``, ``openai/gpt-5-mini`` or ``local:weights.gguf``, the name of an alias,
or a model itself."""

Said = Mapping[str, Any]
"""What is said of a model beside its name; keys are those of :class:`extractor.models.settings.Settings`."""


def resolve(
    models: ModelLike | Sequence[ModelLike], aliases: Mapping[str, Said] | None = None, over: Said | None = None
) -> tuple[Model, ...]:
    """The models of a list, first choice first; names in one text are separated by commas.

    :param aliases: names of the project, each with ``model`` (``provider/name``) and settings.
    :param over: settings for every model of the list that takes any, over those of its alias.
    :raises ConfigurationError: when a name is not known, with the nearest one that is.
    """
    if isinstance(models, str):
        names: Sequence[ModelLike] = [name.strip() for name in models.split(",") if name.strip()]
    else:
        names = models if isinstance(models, Sequence) else (models,)
    if not names:
        raise ConfigurationError("no model is named", hint="for example local/qwen2.5-coder-1.5b")
    return tuple(_one(name, aliases or {}, over or {}) if isinstance(name, str) else name for name in names)


def _one(name: str, aliases: Mapping[str, Said], over: Said) -> Model:
    alias, hash_, dialect = name.partition("#")
    if alias in aliases:
        said = dict(aliases[alias])
        reference = f"{said.pop('model')}{hash_}{dialect}"
        return _made(reference, {**said, **{key: value for key, value in over.items() if value is not None}}, aliases)
    return _made(name, over, aliases)


def _made(name: str, said: Said, aliases: Mapping[str, Said]) -> Model:
    provider, slash, model = name.partition("/")
    if provider.startswith("local:"):
        provider, slash, model = "local", "/", name
    known = plugins.declared(GROUP)
    if not slash or not model:
        hint = plugins.suggestion(name, [*aliases, *_examples()])
        raise ConfigurationError(f"the model {name!r} names no provider", hint=hint)
    if provider not in known:
        raise ConfigurationError(f"there is no provider {provider!r} (for the model {name!r})",
                                 hint=plugins.suggestion(provider, known))  # fmt: skip
    factory: Any = plugins.load(GROUP, provider)
    said = {key: value for key, value in said.items() if value is not None}
    takes = "settings" in inspect.signature(factory).parameters
    made: Model = factory(model, settings=settings_of(said)) if takes and said else factory(model)
    return made


def _examples() -> list[str]:
    from extractor.models.catalogue import CATALOGUE

    return [f"local/{entry}" for entry in CATALOGUE]
