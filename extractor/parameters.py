"""The JSON schema of a function's arguments: as a model is shown it, as a validator, and as something to walk.

Schemas that are shown have their definitions inlined (only a recursive part keeps ``$defs``), properties and required
in declared order, closed objects at every level, and no noise.
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Union

import typing_extensions
from pydantic import BeforeValidator, Field, TypeAdapter
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticCustomError

from extractor.errors import DefinitionError

Schema = Mapping[str, Any]

_NOISE = frozenset({"title", "discriminator", "$schema", "$id", "$comment", "$defs", "definitions"})
_MAPS = frozenset({"properties", "patternProperties"})
_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SINGLES = frozenset({"items", "additionalProperties", "not", "contains", "propertyNames"})
_LOOKAROUND = re.compile(r"\(\?<?[=!]")
_BOUNDS = {
    "minLength": "min_length", "maxLength": "max_length", "pattern": "pattern", "minItems": "min_length",
    "maxItems": "max_length", "minimum": "ge", "maximum": "le", "exclusiveMinimum": "gt", "exclusiveMaximum": "lt",
    "multipleOf": "multiple_of",
}  # fmt: skip


class _Quiet(GenerateJsonSchema):
    """Pydantic's own, without warnings about defaults that JSON has no word for."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 - as pydantic declares it


# -- as a model is shown it --------------------------------------------------------------------------------------------


def generated(adapter: Any) -> dict[str, Any]:
    """The schema of a pydantic class or :class:`pydantic.TypeAdapter`, ready to be shown.

    :raises DefinitionError: when a type in it has no JSON form.
    """
    try:
        if isinstance(adapter, TypeAdapter):
            return shown(adapter.json_schema(schema_generator=_Quiet))
        return shown(adapter.model_json_schema(schema_generator=_Quiet))
    except PydanticUserError as error:
        first = str(error).strip().splitlines()[0]
        raise DefinitionError(first, hint="a model can only be shown types that JSON has") from None


def shown(schema: Schema) -> dict[str, Any]:
    """A schema as a model is shown it.

    :raises DefinitionError: when it refers to what it does not define, or requires what it does not declare.
    """
    defs: Schema = {**schema.get("definitions", {}), **schema.get("$defs", {})}
    kept = frozenset(name for name in defs if name in _reached(defs[name], defs))
    top = dict(schema)
    if "$ref" in top:
        top = {**defs[_target(top.pop("$ref"), defs)], **top}
    cleaned: dict[str, Any] = _cleaned(top, defs, kept)
    used = _reached(top, defs) & kept
    if used:
        cleaned["$defs"] = {name: _cleaned(defs[name], defs, kept) for name in defs if name in used}
    return cleaned


def _target(ref: object, defs: Schema) -> str:
    name = str(ref).rpartition("/")[2]
    if name not in defs or str(ref) not in (f"#/$defs/{name}", f"#/definitions/{name}"):
        raise DefinitionError(f"the schema refers to {ref!r}, which it does not define", hint="put it in $defs")
    return name


def _reached(node: object, defs: Schema) -> set[str]:
    """Every definition that a schema leads to."""
    found: set[str] = set()
    waiting = [node]
    while waiting:
        for ref in _refs(waiting.pop()):
            name = _target(ref, defs)
            if name not in found:
                found.add(name)
                waiting.append(defs[name])
    return found


def _refs(node: object) -> Iterator[object]:
    if isinstance(node, Mapping):
        if "$ref" in node:
            yield node["$ref"]
        for key, value in node.items():
            if key in _MAPS and isinstance(value, Mapping):
                for inner in value.values():
                    yield from _refs(inner)
            elif key in _LISTS and isinstance(value, Sequence):
                for inner in value:
                    yield from _refs(inner)
            elif key in _SINGLES:
                yield from _refs(value)


def _cleaned(node: Any, defs: Schema, kept: frozenset[str]) -> Any:
    if not isinstance(node, Mapping):
        return node
    node = dict(node)
    while "$ref" in node and _target(node["$ref"], defs) not in kept:
        node = {**defs[_target(node.pop("$ref"), defs)], **node}
    parts = node.get("allOf")
    if isinstance(parts, list) and len(parts) == 1 and isinstance(parts[0], Mapping):
        del node["allOf"]
        return _cleaned({**parts[0], **node}, defs, kept)
    clean: dict[str, Any] = {}
    for key, value in node.items():
        if key in _NOISE or (key == "pattern" and _LOOKAROUND.search(str(value))):
            continue  # neither grammars nor most providers know look-around
        if key in _MAPS and isinstance(value, Mapping):
            clean[key] = {name: _cleaned(inner, defs, kept) for name, inner in value.items()}
        elif key in _LISTS and isinstance(value, list):
            clean[key] = [_cleaned(inner, defs, kept) for inner in value]
        else:
            clean[key] = _cleaned(value, defs, kept) if key in _SINGLES else value
    return _closed(clean)


def _closed(node: dict[str, Any]) -> dict[str, Any]:
    """An object with declared properties is closed, its required in declared order; a map of anything stays one."""
    properties = node.get("properties")
    if not isinstance(properties, Mapping):
        return node
    required = node.pop("required", [])
    foreign = [name for name in required if name not in properties]
    if foreign:
        raise DefinitionError(f"the schema requires {foreign[0]!r}, which is none of its properties")
    closed = {"type": "object", **node}
    if required:
        closed["required"] = [name for name in properties if name in required]
    return {**closed, "additionalProperties": False}


# -- as a validator ----------------------------------------------------------------------------------------------------


def validator(schema: Schema) -> TypeAdapter[Any]:
    """A validator for a schema that is shown; what it gives back is a dict.

    Recursive parts, and ``allOf`` of several parts, are taken as they come.

    :raises DefinitionError: when the schema says something that cannot be checked.
    """
    try:
        return TypeAdapter(_type(schema))
    except Exception as error:
        first = str(error).strip().splitlines()[0]
        raise DefinitionError(f"the schema cannot be checked: {first}") from None


def _type(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return Any
    if "enum" in schema:
        return Literal[tuple(schema["enum"])]
    if "const" in schema:
        return Literal[schema["const"]]
    parts = schema.get("anyOf", schema.get("oneOf"))
    if parts:
        return Union[tuple(map(_type, parts))]  # noqa: UP007 - made of a list
    kind = schema.get("type")
    if isinstance(kind, list):
        return Union[tuple(_type({**schema, "type": one}) for one in kind)]  # noqa: UP007
    found = _plain(kind, schema)
    names = _BOUNDS if kind != "array" else {k: v for k, v in _BOUNDS.items() if k.endswith("Items")}
    bounds = {ours: schema[theirs] for theirs, ours in names.items() if theirs in schema}
    return Annotated[found, Field(**bounds)] if bounds and found not in (Any, None) else found


def _plain(kind: object, schema: Schema) -> Any:
    number = BeforeValidator(_no_truth_value)
    simple: dict[object, Any] = {
        None: Any,
        "null": None,
        "string": str,
        "boolean": bool,
        "integer": Annotated[int, number],
        "number": Annotated[int | float, number],
    }
    if kind in simple:
        return simple[kind]
    if kind == "array":
        return list[_type(schema.get("items", True))]  # type: ignore[misc]
    if kind != "object":
        raise DefinitionError(f"{kind!r} is no JSON type")
    if isinstance(schema.get("properties"), Mapping):
        return _mapping(schema)
    return dict[str, _type(schema.get("additionalProperties", True))]  # type: ignore[misc]


def _mapping(schema: Schema) -> Any:
    required = schema.get("required", ())
    wrap: Any = typing_extensions
    fields = {
        name: (wrap.Required if name in required else wrap.NotRequired)[_type(inner)]
        for name, inner in schema["properties"].items()
    }
    return wrap.TypedDict("Arguments", fields)


def _no_truth_value(value: Any) -> Any:
    if isinstance(value, bool):
        raise PydanticCustomError("number_type", "Input should be a number, not true or false")
    return value


# -- as something to walk ----------------------------------------------------------------------------------------------


_BRANCHES: dict[tuple[int, int], tuple[Any, Schema, tuple[Schema, ...]]] = {}
_MOST_BRANCHES = 4096


def branches(schema: Any, root: Schema) -> tuple[Schema, ...]:
    """The alternatives that a schema allows, references followed; one for each JSON type of a list of types.

    Every call of every document is walked along the same schema objects, so that what was found is kept by identity,
    together with the objects themselves: no other object can come to have their identity.
    """
    key = (id(schema), id(root))
    known = _BRANCHES.get(key)
    if known is None:
        if len(_BRANCHES) >= _MOST_BRANCHES:
            _BRANCHES.clear()
        known = _BRANCHES[key] = (schema, root, _branches(schema, root))
    return known[2]


def _branches(schema: Any, root: Schema) -> tuple[Schema, ...]:
    found: list[Schema] = []
    waiting, steps = [schema], 0
    while waiting and steps < 200:
        node, steps = waiting.pop(0), steps + 1
        if not isinstance(node, Mapping):
            continue
        if "$ref" in node:
            waiting.insert(0, root.get("$defs", {}).get(str(node["$ref"]).rpartition("/")[2]))
        elif "anyOf" in node or "oneOf" in node:
            waiting[:0] = node.get("anyOf", node.get("oneOf"))
        elif isinstance(node.get("type"), list):
            waiting[:0] = [{**node, "type": kind} for kind in node["type"]]
        else:
            found.append(node)
    return tuple(found)


_PROPERTIES: dict[tuple[int, int], tuple[Any, Schema, dict[str, Any]]] = {}


def properties_of(schema: Any, root: Schema) -> dict[str, Any]:
    """The properties that the only alternative that is an object declares; kept as :func:`branches` are."""
    key = (id(schema), id(root))
    known = _PROPERTIES.get(key)
    if known is None:
        if len(_PROPERTIES) >= _MOST_BRANCHES:
            _PROPERTIES.clear()
        others = [branch for branch in branches(schema, root) if kind_of(branch) != "null"]
        found = others[0].get("properties", {}) if len(others) == 1 and kind_of(others[0]) == "object" else {}
        known = _PROPERTIES[key] = (schema, root, dict(found))
    return known[2]


def kind_of(branch: Schema) -> str:
    """The JSON type of one alternative, also where only a constant tells; empty when anything goes."""
    if "type" in branch:
        return str(branch["type"])
    values = branch.get("enum", [branch["const"]] if "const" in branch else [])
    kinds = {_JSON_TYPES.get(type(value), "") for value in values}
    return kinds.pop() if len(kinds) == 1 else "object" if "properties" in branch else ""


_JSON_TYPES: dict[type, str] = {
    str: "string", bool: "boolean", int: "integer", float: "number", types.NoneType: "null"
}  # fmt: skip


def inner(schema: Any, key: str | int, root: Schema) -> Any:
    """The schema of one property or item, or ``None`` where none is declared."""
    if isinstance(key, str):
        known = properties_of(schema, root).get(key)
        if known is not None:
            return known
    for branch in branches(schema, root):
        if isinstance(key, int) or (kind_of(branch) == "array" and key.isdigit()):
            if kind_of(branch) == "array":
                return branch.get("items", True)
        elif key in branch.get("properties", {}):
            return branch["properties"][key]
        elif isinstance(branch.get("additionalProperties"), Mapping):
            return branch["additionalProperties"]
    return None


def is_path(path: str, schema: Schema) -> bool:
    """Whether a dotted path such as ``line_items.2.amount`` names something that the schema declares."""
    node: Any = schema
    for key in path.split("."):
        node = inner(node, key, schema)
        if node is None:
            return False
    return True


def undeclared(arguments: Any, schema: Any, root: Schema, path: str = "", depth: int = 0) -> Iterator[str]:
    """Paths of the keys that no alternative of the schema declares."""
    if depth > 40:
        return
    if isinstance(arguments, (dict, Mapping)):
        properties, open_ended = properties_of(schema, root), _is_open_ended(schema, root)
        for key, value in arguments.items():
            declared = properties.get(key)
            if declared is None:
                declared = inner(schema, str(key), root)
            if declared is None and not open_ended:
                yield f"{path}{key}"
            elif declared is not None and isinstance(value, (dict, list, Mapping)):
                yield from undeclared(value, declared, root, f"{path}{key}.", depth + 1)
    elif isinstance(arguments, list):
        item = inner(schema, 0, root)
        for number, value in enumerate(arguments if item is not None else ()):
            yield from undeclared(value, item, root, f"{path}{number}.", depth + 1)


_OPEN_ENDED: dict[tuple[int, int], tuple[Any, Schema, bool]] = {}


def _is_open_ended(schema: Any, root: Schema) -> bool:
    """Whether an object may hold keys that are not declared; kept as :func:`branches` are."""
    key = (id(schema), id(root))
    known = _OPEN_ENDED.get(key)
    if known is None:
        if len(_OPEN_ENDED) >= _MOST_BRANCHES:
            _OPEN_ENDED.clear()
        closed = [one for one in branches(schema, root) if kind_of(one) == "object"]
        found = not closed or any(one.get("additionalProperties") is not False for one in closed)
        known = _OPEN_ENDED[key] = (schema, root, found)
    return known[2]
