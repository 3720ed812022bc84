"""Validating what a model sent, with the document's context in every validator.

A SQLModel class brings an ``__init__`` of its own, and pydantic calls that for each nested object: the validation
context (the document's style, the list of flags) is lost there, and ``1.500`` in a line item has two readings although
the document decides. Nothing that such an ``__init__`` does is needed for a draft, so the validator is made without it.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from pydantic import BaseModel, TypeAdapter
from pydantic_core import SchemaValidator

_made: WeakKeyDictionary[Any, SchemaValidator] = WeakKeyDictionary()


def validated(adapter: type[BaseModel] | TypeAdapter[Any], value: Any, context: dict[str, Any]) -> Any:
    """The validated value.

    :param context: reaches every validator, at any depth, as ``ValidationInfo.context``.
    :raises pydantic.ValidationError: with everything that is wrong.
    """
    return _validator(adapter).validate_python(value, strict=False, context=context)


def _validator(adapter: type[BaseModel] | TypeAdapter[Any]) -> SchemaValidator:
    found = _made.get(adapter)
    if found is None:
        if isinstance(adapter, TypeAdapter):
            schema: Any = adapter.core_schema
        else:
            adapter.model_rebuild()
            schema = adapter.__pydantic_core_schema__
        found = _compiled(_without_init(schema))
        _made[adapter] = found
    return found


def _compiled(schema: Any) -> SchemaValidator:
    """A validator of exactly this schema: pydantic would take each nested class's own validator, where it knows how."""
    try:
        return SchemaValidator(schema, _use_prebuilt=False)
    except TypeError:  # a pydantic that does not
        return SchemaValidator(schema)


def _without_init(schema: Any) -> Any:
    """A core schema in which no SQLModel class is made by its own ``__init__``."""
    if isinstance(schema, dict):
        copy = {key: _without_init(value) for key, value in schema.items() if key != "metadata"}
        if schema.get("type") == "model" and schema.get("custom_init") and _is_sqlmodel(schema.get("cls")):
            copy["custom_init"] = False
        return copy
    if isinstance(schema, list):
        return [_without_init(item) for item in schema]
    return tuple(map(_without_init, schema)) if type(schema) is tuple else schema


def _is_sqlmodel(kind: Any) -> bool:
    """Whether a class is a SQLModel that keeps its ``__init__``; a user's own one is called as ever."""
    return getattr(kind.__init__, "__module__", "").startswith("sqlmodel.")
