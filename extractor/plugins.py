"""The one door by which models, loaders, dialects and engines come in.

Plugins are declared as entry points (``module:attribute`` strings) and imported when they are first used. Our own are
declared the same way; they are named here as well so that a source tree without installed metadata works.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Collection, Mapping
from typing import Any

from extractor.errors import ConfigurationError

HOSTED = (
    "openai", "openai-responses", "azure", "anthropic", "google", "bedrock", "mistral", "groq", "together", "fireworks",
    "deepseek", "openrouter", "xai", "ollama", "vllm", "lmstudio", "llamacpp",
)  # fmt: skip

BUILT_IN: Mapping[str, Mapping[str, str]] = {
    "extractor.models": {
        "local": "extractor.models.local:model",
        "scripted": "extractor.testing:model",
        **{name: f"extractor.models.providers:FACTORIES.{name}" for name in HOSTED},
    },
    "extractor.dialects": {
        name: f"extractor.dialects.{name}" for name in ("tools", "json_schema", "json", "react", "xml")
    },
    "extractor.loaders": {
        "text": "extractor.documents.text:load",
        "pdf": "extractor.documents.pdf:load",
    },
}


@functools.cache
def declared(group: str) -> Mapping[str, str]:
    """Every plugin of a group, name to ``module:attribute``; an installed one may take a built-in's place."""
    from importlib.metadata import entry_points

    return {**BUILT_IN.get(group, {}), **{point.name: point.value for point in entry_points(group=group)}}


def load(group: str, name: str) -> Any:
    """Import the plugin of that name.

    :raises KeyError: when the group has none of that name.
    :raises ConfigurationError: when it is declared but cannot be imported.
    """
    return attribute(declared(group)[name])


def attribute(reference: str) -> Any:
    """The object behind ``module:attribute``.

    :raises ConfigurationError: when there is no such module or attribute.
    """
    module_name, _, path = reference.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise ConfigurationError(f"there is no module {error.name!r} (for {reference!r})") from None
        raise
    for part in filter(None, path.split(".")):
        try:
            found = found[part] if isinstance(found, Mapping) else getattr(found, part)
        except (AttributeError, KeyError):
            raise ConfigurationError(f"module {module_name!r} has no {path!r}") from None
    return found


def suggestion(name: str, among: Collection[str], otherwise: str = "") -> str:
    """A hint for a name that does not exist: the nearest one, else ``otherwise``, by default all there are."""
    import difflib

    near = difflib.get_close_matches(name, list(among), n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]!r}?"
    return otherwise or (f"there is {', '.join(repr(one) for one in sorted(among))}" if among else "there is none")
