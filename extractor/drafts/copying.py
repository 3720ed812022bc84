"""What a draft takes over from its table class: fields, validators, and all that validators may call.

A table class validates nothing when it is made, so its validators have to run on the draft. They are copied with the
methods, class variables and private attributes beside them. What would not work on the draft is refused when the
draft is derived, not when the first document comes.
"""

from __future__ import annotations

import dis
from collections.abc import Collection, Iterator
from functools import cached_property
from types import CodeType, FunctionType
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Field, field_validator, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from sqlmodel import SQLModel

from extractor.drafts.columns import write_the_function
from extractor.errors import DefinitionError

TABLE_SETTINGS = ("table", "registry", "from_attributes", "read_from_attributes", "read_with_orm_mode")
"""Settings of a table class that say nothing about its values."""

FIELD_ATTRIBUTES = (
    "alias",
    "alias_priority",
    "validation_alias",
    "title",
    "description",
    "examples",
    "discriminator",
    "deprecated",
    "json_schema_extra",
    "frozen",
    "validate_default",
)

METHODS = (FunctionType, classmethod, staticmethod, property, cached_property)


def field_copy(field: FieldInfo) -> tuple[Any, Any]:
    """Annotation and definition of a field like this one, without what concerns the database."""
    annotation: Any = field.annotation
    for item in field.metadata:
        if not type(item).__module__.startswith("sqlmodel"):
            annotation = Annotated[annotation, item]
    kept = {name: getattr(field, name) for name in FIELD_ATTRIBUTES if getattr(field, name, None) is not None}
    if field.default_factory is not None:
        kept["default_factory"] = field.default_factory
    elif field.default is not PydanticUndefined:
        kept["default"] = field.default
    return annotation, Field(**kept)


def settings_copy(table: type[BaseModel]) -> dict[str, Any]:
    """The model configuration of a table class, less what concerns the database."""
    return {name: value for name, value in table.model_config.items() if name not in TABLE_SETTINGS}


def members_copy(table: type[Any], fields: Collection[str]) -> dict[str, Any]:
    """The namespace of a draft class: validators, methods, class variables and private attributes of its table.

    :param fields: the names of the draft's fields. Validators of other fields are left behind.
    :raises DefinitionError: for a validator that cannot be copied.
    """
    methods, lost = _helpers(table, fields)
    absent = {*_all_names(table), *lost} - {*fields, *methods}
    validators = dict(_validators(table, fields, absent))
    return {**table.__private_attributes__, **methods, **validators}


def _validators(table: type[Any], fields: Collection[str], absent: Collection[str]) -> Iterator[tuple[str, Any]]:
    decorators = table.__pydantic_decorators__
    for name in (*decorators.validators, *decorators.root_validators):
        raise _uncopied(table, name, "is written in the style of pydantic 1")
    if any("__get_pydantic_core_schema__" in vars(base) for base in _user_classes(table)):
        raise _uncopied(table, "__get_pydantic_core_schema__", "is made for the table class")
    # Any: the decorators' overloads are for functions whose signature is known
    for_field: Any = field_validator
    for_model: Any = model_validator
    for name, found in decorators.field_validators.items():
        covered = [field for field in found.info.fields if field == "*" or field in fields]
        if covered:
            raw = _checked(table, name, absent)
            options: dict[str, Any] = {"mode": found.info.mode, "check_fields": False}
            kind = found.info.json_schema_input_type
            if kind is not PydanticUndefined and found.info.mode != "after":
                options["json_schema_input_type"] = kind
            yield name, for_field(*covered, **options)(raw)
    for name, model_found in decorators.model_validators.items():
        yield name, for_model(mode=model_found.info.mode)(_checked(table, name, absent))


def _helpers(table: type[Any], fields: Collection[str]) -> tuple[dict[str, Any], set[str]]:
    """Methods, properties and class variables that validators may use, and the names of those that do not copy."""
    decorators = table.__pydantic_decorators__
    taken = {*fields, *_all_names(table), *decorators.field_validators, *decorators.model_validators}
    taken.add("model_post_init")  # build runs it on the record: it may fill in columns that no draft has
    copied: dict[str, Any] = {"__annotations__": {}}
    lost: set[str] = set()
    for base in reversed(_user_classes(table)):
        constants = getattr(base, "__class_vars__", ())
        for name, value in vars(base).items():
            if name in taken or (name.startswith("__") and name.endswith("__")) or name.startswith("_sa_"):
                continue
            lost.discard(name)
            if isinstance(value, METHODS) and "__class__" not in _free_names(value):
                copied[name] = value
            elif name in constants or (isinstance(value, type) and value.__qualname__.startswith(base.__qualname__)):
                copied["__annotations__"][name] = ClassVar[Any]
                copied[name] = value
            else:
                copied.pop(name, None)
                lost.add(name)
    return copied, lost


def _checked(table: type[Any], name: str, absent: Collection[str]) -> Any:
    """A validator as it was written, when nothing in it stands in the way of the draft."""
    raw = next(vars(base)[name] for base in table.__mro__ if name in vars(base))
    if "__class__" in _free_names(raw):
        raise _uncopied(table, name, "calls super()")
    code = _code(raw)
    used = sorted(_names_used(code, _values_of(code)) & set(absent)) if code is not None else []
    if used:
        raise _uncopied(table, name, f"uses {', '.join(map(repr, used))}, which the draft does not have")
    return raw


def _names_used(code: CodeType, values: Collection[str]) -> set[str]:
    """The names that a function takes from its arguments or sets on them: ``self.total``, ``info.data["total"]``.

    ``get("total")`` is none of them: it bears that a name is missing.
    """
    found: set[str] = set()
    steps = [step for step in dis.get_instructions(code) if step.opname != "CACHE"]
    for receiver, before, step in zip([None, None, *steps], [None, *steps], steps, strict=False):
        if before is None:
            continue
        if step.opname in ("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR") and _variable(before) in values:
            found.add(str(step.argval))
        is_item = step.opname == "BINARY_SUBSCR" or (step.opname == "BINARY_OP" and step.argrepr == "[]")
        is_ours = receiver is not None and (_variable(receiver) or receiver.opname == "LOAD_ATTR")
        if is_item and is_ours and before.opname == "LOAD_CONST" and isinstance(before.argval, str):
            found.add(before.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _names_used(constant, values)
    return found


def _variable(step: dis.Instruction) -> str | None:
    """The local variable that a step puts on the stack; later versions of Python load two in one step."""
    if "LOAD_FAST" not in step.opname and "LOAD_DEREF" not in step.opname:
        return None
    return str(step.argval[-1] if isinstance(step.argval, tuple) else step.argval)


def _values_of(code: CodeType | None) -> tuple[str, ...]:
    return code.co_varnames[: code.co_argcount] if code is not None else ()


def _code(raw: Any) -> CodeType | None:
    return getattr(_function(raw), "__code__", None)


def _free_names(raw: Any) -> tuple[str, ...]:
    code = _code(raw)
    return code.co_freevars if code is not None else ()


def _function(raw: Any) -> Any:
    if isinstance(raw, property):
        return raw.fget
    if isinstance(raw, cached_property):
        return raw.func
    return getattr(raw, "__func__", raw)


def _all_names(table: type[Any]) -> set[str]:
    """Every field, column and relation of a table class."""
    return {*table.model_fields, *table.__mapper__.all_orm_descriptors.keys()}


def _user_classes(table: type[Any]) -> list[type[Any]]:
    """The table class and what it inherits from, up to SQLModel."""
    return [base for base in table.__mro__ if base not in SQLModel.__mro__ and base.__module__ != "typing"]


def _uncopied(table: type[Any], name: str, reason: str) -> DefinitionError:
    return DefinitionError(
        f"the validator {name!r} of table {table.__name__} cannot be copied to its draft: it {reason}",
        hint=write_the_function(table),
    )
