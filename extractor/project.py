"""A project's content by name: ``invoices`` is ``pipelines/invoices.py``.

``schemas/`` and ``pipelines/`` are importable packages under the project's root, named by dotted strings: importing one
file by two names would define its table twice, and objects loaded by path cannot be sent to a worker.
"""

from __future__ import annotations

import contextlib
import importlib.util
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from extractor.configuration import Project
from extractor.errors import ConfigurationError, UsageError
from extractor.pipeline import Pipeline
from extractor.plugins import attribute, suggestion

LONGEST = 300
"""Characters that are shown of what a user's file has raised."""


def pipeline(project: Project, name: str) -> Pipeline:
    """The pipeline of that name: ``invoices``, or ``module:attribute``.

    :raises ConfigurationError: when there is none, with the nearest name; when its file cannot be imported, with the
        line at fault.
    """
    _make_importable(project)
    if ":" in name and not all(part.isidentifier() for part in name.replace(":", ".", 1).split(".")):
        raise ConfigurationError(f"{name!r} names no pipeline", hint="write its name, or module:attribute")
    if ":" not in name and name not in names(project):
        raise ConfigurationError(f"there is no pipeline {name!r}", hint=suggestion(name, names(project)))
    reference = name if ":" in name else f"{project.content}.{name}:{name.rpartition('.')[2]}"
    with _clearly(reference):
        found = attribute(reference)
    if not isinstance(found, Pipeline):
        raise ConfigurationError(f"{reference} is {type(found).__name__}, not a Pipeline")
    return found


def names(project: Project) -> tuple[str, ...]:
    """The names of the project's pipelines: the modules of its content package."""
    if project.root is None:
        return ()
    _make_importable(project)
    modules = pkgutil.iter_modules(_folders(project.content))
    return tuple(sorted(module.name for module in modules if module.name[0] != "_"))


def _folders(package: str) -> Sequence[str]:
    """Where the modules of a package are; nowhere when there is none."""
    spec = None
    with _clearly(package), contextlib.suppress(ModuleNotFoundError):  # of a parent, which is imported for this
        spec = importlib.util.find_spec(package)
    return (spec.submodule_search_locations if spec is not None else None) or ()


def _make_importable(project: Project) -> None:
    folder = str(project.folder)
    if folder not in sys.path:
        sys.path.insert(0, folder)


@contextlib.contextmanager
def _clearly(reference: str) -> Iterator[None]:
    """Whatever a user's file raises while it is imported becomes one clear line."""
    try:
        yield
    except UsageError:
        raise
    except SyntaxError as error:
        where = f"{error.filename}, line {error.lineno}" if error.filename else next(_places(error), reference)
        raise ConfigurationError(f"{where}: {error.msg}") from None
    except (Exception, SystemExit) as error:
        where = next(_places(error), reference)
        text = " ".join(str(error).split())
        raise ConfigurationError(f"{where}: {type(error).__name__}: {text[:LONGEST]}") from error


def _places(error: BaseException) -> Iterator[str]:
    """The line of the user's file that raised, innermost of those that are not ours or a library's."""
    trace, found = error.__traceback__, ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if "site-packages" not in file and not file.startswith("<") and Path(__file__).parent not in Path(file).parents:
            found = f"{file}, line {trace.tb_lineno}"
        trace = trace.tb_next
    if found:
        yield found
