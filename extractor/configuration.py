"""Where a project stands, and what is configured in it.

A project is the folder of the nearest ``pyproject.toml`` with a ``[tool.extractor]`` table. A setting is looked up by
precedence, and knows where it came from.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from extractor.errors import ConfigurationError
from extractor.plugins import suggestion
from extractor.prices import Price, Tariff, tariff

DEFAULTS: Mapping[str, Any] = {"model": "local/qwen2.5-coder-1.5b", "database": "sqlite:///extractor.db"}
ENVIRONMENT: Mapping[str, str] = {"model": "EXTRACTOR_MODEL", "database": "EXTRACTOR_DATABASE"}
KEYS = ("model", "database", "pipelines", "content", "models")
OF_PIPELINE = ("model", "database")
KINDS: Mapping[str, str] = {
    "model": "the name of a model or a list of names",
    "database": "an address such as 'sqlite:///extractor.db'",
    "content": "the name of a package",
}

TEXTS = ("provider", "model", "deployment", "endpoint", "api_version", "key", "dialect")
COUNTS = ("rpm", "tpm", "concurrency", "max_attempts", "context")
SETTINGS = ("endpoint", "api_version", "key", "dialect", *COUNTS, "headers")
OF_ALIAS = (*TEXTS, "price", *COUNTS, "headers")
OF_PRICE = ("input", "output", "cached")
MOST = 1_000_000
"""Dollars for a million tokens that no price exceeds."""
SECRET_HEADERS = ("authorization", "proxy-authorization", "api-key", "x-api-key", "x-goog-api-key", "cookie")

COMMAND_LINE = "command line"


@dataclass(frozen=True, slots=True)
class Setting:
    """A value, and where it comes from."""

    value: Any
    origin: str


@dataclass(frozen=True, slots=True)
class Alias:
    """A model by a name of the project's own: ``[tool.extractor.models.NAME]``.

    ``deployment`` is what the endpoint knows the model by, where that is not the model's name; ``key`` is the name of
    the environment variable that holds the key, never a key; ``context`` is how many tokens the model reads.
    """

    name: str
    provider: str
    model: str | None = None
    deployment: str | None = None
    endpoint: str | None = None
    api_version: str | None = None
    key: str | None = None
    dialect: str | None = None
    price: Price | None = None
    rpm: int | None = None
    tpm: int | None = None
    concurrency: int | None = None
    max_attempts: int | None = None
    context: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def reference(self) -> str:
        """The model as its provider knows it, such as ``azure/my-deployment``."""
        return f"{self.provider}/{self.deployment or self.model}"

    @property
    def tariff(self) -> Tariff:
        """Its own price, else the list price of the model."""
        return tariff(f"{self.provider}/{self.model or self.deployment}", self.price)

    @property
    def said(self) -> dict[str, Any]:
        """What :func:`extractor.models.resolving.resolve` takes of it."""
        settings = {name: value for name in SETTINGS if (value := getattr(self, name))}
        return {"model": self.reference, **settings}


@dataclass(frozen=True, slots=True)
class Project:
    """A project's root and its ``[tool.extractor]`` table; an empty one stands for no project at all."""

    root: Path | None = None
    table: Mapping[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """What relative paths stand relative to: the root, or the working directory outside a project."""
        return self.root or Path.cwd()

    @property
    def content(self) -> str:
        """The package that holds the pipelines."""
        return str(self.table.get("content", "pipelines"))

    @property
    def aliases(self) -> Mapping[str, Alias]:
        """The models that the project names itself."""
        return {name: _alias(name, values) for name, values in self.table.get("models", {}).items()}

    def setting(self, name: str, pipeline: str = "", *, given: Any = None, own: Any = None) -> Setting:
        """A setting by precedence: given (CLI), environment, the pipeline's table, the pipeline itself, the project's
        table, the default.

        :param given: what the command line says.
        :param own: what the pipeline was made with.
        """
        of_pipeline = self.table.get("pipelines", {}).get(pipeline, {})
        variable = ENVIRONMENT.get(name, "")
        where = "pyproject.toml"
        candidates = (
            (given, COMMAND_LINE),
            (os.environ.get(variable) or None, variable),
            (of_pipeline.get(name), f"{where} [tool.extractor.pipelines.{pipeline}]"),
            (own, "the pipeline"),
            (self.table.get(name), f"{where} [tool.extractor]"),
            (DEFAULTS.get(name), "default"),
        )
        return next(
            (Setting(value, origin) for value, origin in candidates if value is not None), Setting(None, "unset")
        )

    def folder_of(self, setting: Setting) -> Path:
        """The folder that a relative path in a setting stands in: where the command was given, else the project's."""
        return Path.cwd() if setting.origin == COMMAND_LINE else self.folder


def find(start: Path | str | None = None) -> Project:
    """The project that a folder belongs to: ``EXTRACTOR_PROJECT``, else the nearest one upward.

    :raises ConfigurationError: when its ``pyproject.toml`` cannot be read, or holds a key that means nothing.
    """
    named = start or os.environ.get("EXTRACTOR_PROJECT")
    folder = Path(named or Path.cwd()).resolve()
    if named and not folder.is_dir():
        raise ConfigurationError(f"the project folder {str(named)!r} does not exist")
    for candidate in (folder, *folder.parents):
        table = _table(candidate / "pyproject.toml")
        if table is not None:
            _check(table, candidate / "pyproject.toml")
            return Project(candidate, table)
    if named:
        raise ConfigurationError(
            f"{str(named)!r} is no project", hint="its pyproject.toml needs a [tool.extractor] table"
        )
    return Project()


def _table(file: Path) -> Mapping[str, Any] | None:
    try:
        with file.open("rb") as stream:
            content = tomllib.load(stream, parse_float=Decimal)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} is no valid TOML: {error}") from None
    tool = content.get("tool", {})
    return tool.get("extractor") if isinstance(tool, dict) else None


def _check(table: Any, file: Path, name: str = "tool.extractor", keys: tuple[str, ...] = KEYS) -> None:
    """Every key of a table means something, and its value is of the kind that it takes.

    :raises ConfigurationError: with file, table and key, and the nearest key where one does not exist.
    """
    if not isinstance(table, dict):
        raise ConfigurationError(f"{file}: [{name}] is no table")
    for key, value in table.items():
        if key not in keys:
            raise ConfigurationError(f"{file}: [{name}] has no key {key!r}", hint=suggestion(key, keys))
        if key == "pipelines":
            _check_pipelines(value, file, f"{name}.pipelines")
        elif key == "models":
            _check_aliases(value, file, f"{name}.models")
        elif not _fits(key, value):
            raise ConfigurationError(f"{file}: [{name}] {key} is not {KINDS[key]}")


def _fits(key: str, value: Any) -> bool:
    if key == "model" and isinstance(value, list):
        return bool(value) and all(isinstance(one, str) for one in value)
    if not isinstance(value, str):
        return False
    return key != "content" or all(part.isidentifier() for part in value.split("."))


def _check_pipelines(table: Any, file: Path, name: str) -> None:
    if not isinstance(table, dict):
        raise ConfigurationError(f"{file}: [{name}] is no table")
    for pipeline, settings in table.items():
        _check(settings, file, f"{name}.{pipeline}", OF_PIPELINE)


def _check_aliases(table: Any, file: Path, name: str) -> None:
    """Every alias can be made into a model, as far as that can be told without its provider.

    :raises ConfigurationError: with file, table and key; never with the value of one that may be a secret.
    """
    if not isinstance(table, dict):
        raise ConfigurationError(f"{file}: [{name}] is no table")
    for alias, values in table.items():
        where = f"{file}: [{name}.{alias}]"
        if not isinstance(values, dict):
            raise ConfigurationError(f"{where} is no table")
        if not re.fullmatch(r"\w[\w.-]*", alias):
            raise ConfigurationError(f"{where}: a model's own name has letters, digits, '-', '_' and '.' alone")
        for key, value in values.items():
            if key not in OF_ALIAS:
                raise ConfigurationError(f"{where} has no key {key!r}", hint=suggestion(key, OF_ALIAS))
            problem = _problem(key, value)
            if problem:
                raise ConfigurationError(f"{where} {key} {problem}")
        if not values.get("provider") and "/" not in str(values.get("model", "")).strip("/"):
            raise ConfigurationError(f"{where} has no provider", hint="for example model = 'openai/NAME'")
        if not (values.get("model") or values.get("deployment")):
            raise ConfigurationError(f"{where} names neither model nor deployment")


def _problem(key: str, value: Any) -> str:
    """What is wrong with the value of an alias's key; nothing when it is right."""
    if key in COUNTS:
        return "" if type(value) is int and value > 0 else "is no whole number above 0"
    if key in ("price", "headers"):
        return _price_problem(value) if key == "price" else _headers_problem(value)
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        return "is no text"
    if key == "endpoint" and not _is_address(value):
        return "is no address: give it as https://HOST/PATH, without user and password"
    wanted = "is the name of the environment variable that holds the key, such as AZURE_API_KEY, never a key itself"
    return wanted if key == "key" and not _is_variable(value) else ""


def _is_variable(text: str) -> bool:
    """Whether a text names an environment variable and cannot well be a key: those of vendors have small letters or
    dashes, but for one kind."""
    return bool(re.fullmatch(r"[A-Z][A-Z0-9_]{2,63}", text)) and not re.match(r"(AKIA|ASIA)[A-Z0-9]{12,}$", text)


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None
    except ValueError:
        return False


def _headers_problem(value: Any) -> str:
    if not isinstance(value, dict) or not all(isinstance(one, str) and one.isprintable() for one in value.values()):
        return "is no table of texts"
    secret = [name for name in value if name.lower() in SECRET_HEADERS]
    return f"holds {secret[0]!r}: a key comes from the environment, by key = 'NAME_OF_THE_VARIABLE'" if secret else ""


def _price_problem(value: Any) -> str:
    if not isinstance(value, dict):
        return "is no table such as {input = 0.25, output = 2.00}"
    for key, amount in value.items():
        if key not in OF_PRICE:
            return f"has no key {key!r}: {suggestion(key, OF_PRICE)}"
        if _amount(amount) is None:
            return f"{key} is no amount in US dollars for a million tokens, such as 0.25"
    missing = [key for key in ("input", "output") if key not in value]
    return f"lacks {missing[0]!r}" if missing else ""


def _amount(value: Any) -> Decimal | None:
    """A price as it was written, exactly; ``None`` where it is none."""
    if isinstance(value, bool) or not isinstance(value, (int, Decimal, str)):
        return None
    try:
        amount = Decimal(value)
    except InvalidOperation:
        return None
    return amount if amount.is_finite() and 0 <= amount <= MOST else None


def _alias(name: str, values: Mapping[str, Any]) -> Alias:
    price = values.get("price")
    exact = Price(**{key: Decimal(amount) for key, amount in price.items()}) if price is not None else None
    provider, model = values.get("provider"), values.get("model")
    if not provider and isinstance(model, str):  # written as on the command line
        provider, _, model = model.partition("/")
    return Alias(name, **{**values, "provider": provider, "model": model, "price": exact})
