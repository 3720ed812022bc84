"""Where a project stands, and what is configured in it.

A project is the folder of the nearest ``pyproject.toml`` with a ``[tool.extractor]`` table. A setting is looked up by
precedence, and knows where it came from.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from extractor.errors import ConfigurationError
from extractor.plugins import suggestion

DEFAULTS: Mapping[str, Any] = {"model": "local/qwen2.5-coder-1.5b", "database": "sqlite:///extractor.db"}
ENVIRONMENT: Mapping[str, str] = {"model": "EXTRACTOR_MODEL", "database": "EXTRACTOR_DATABASE"}
KEYS = ("model", "database", "pipelines", "content")
OF_PIPELINE = ("model", "database")
KINDS: Mapping[str, str] = {
    "model": "the name of a model or a list of names",
    "database": "an address such as 'sqlite:///extractor.db'",
    "content": "the name of a package",
}

COMMAND_LINE = "command line"


@dataclass(frozen=True, slots=True)
class Setting:
    """A value, and where it comes from."""

    value: Any
    origin: str


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
            content = tomllib.load(stream)
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
