"""What a pipeline is made of: functions, classes and tables, each as a function on offer."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from extractor.errors import DefinitionError
from extractor.functions import Context, Function, function

Target = Callable[..., Any] | type[Any] | Function
Given = Mapping[str, Any]
"""Columns that the host supplies: their values, or a function of the context for each."""


def as_function(target: Target, exclude: Collection[str] = (), given: Given | None = None) -> Function:
    """A target as a function on offer.

    :param exclude: for a table class, the columns that nobody supplies.
    :param given: for a table class, the columns that the host supplies.
    :raises DefinitionError: when it cannot be offered to a model.
    """
    if isinstance(target, Function):
        return target
    if isinstance(target, type) and hasattr(target, "__table__"):
        return _of_table(target, exclude, given or {})
    if exclude or given:
        raise DefinitionError("exclude and given are for a table class", hint="a function decides what it takes")
    return function(target)


def _of_table(table: type[Any], exclude: Collection[str], given: Given) -> Function:
    """``create_<table>``: the draft is derived from the table, and the record built from the draft."""
    from extractor.drafts import build, draft_of

    draft_class = draft_of(table, exclude=exclude, given=tuple(given))

    def create(draft: Any, context: Context) -> Any:
        supplied = {name: value(context) if callable(value) else value for name, value in given.items()}
        return build(table, draft, **supplied)

    create.__annotations__ = {"draft": draft_class, "context": Context, "return": table}
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", table.__name__).lower()
    about = (table.__doc__ or "").strip().splitlines()
    return function(
        create,
        name=f"create_{snake}",
        description=about[0] if about and "Usage docs" not in about[0] else f"Record one {snake.replace('_', ' ')}.",
    )
