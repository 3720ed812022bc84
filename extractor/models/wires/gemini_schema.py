"""JSON schemas as Gemini reads them. Pure functions, no SDK.

Gemini takes a part of JSON schema. What stands outside of it is left out here, since the call is validated by us in any
case, and some of it would have the request refused: bounds of lengths, patterns, ``additionalProperties: false``.
References are put in place, because nothing may stand beside one; only a schema that holds itself keeps them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from extractor.models.wires import mapping

_KEYWORDS = frozenset(
    {"anyOf", "description", "enum", "items", "maxItems", "maximum", "minItems", "minimum", "oneOf", "prefixItems",
     "properties", "required", "title", "type"}
)  # fmt: skip

Schema = dict[str, Any]


def for_gemini(schema: Mapping[str, Any]) -> Schema:
    """The schema in Gemini's part of JSON schema."""
    defined = {**mapping(schema.get("definitions")), **mapping(schema.get("$defs"))}
    kept: dict[str, Any] = {}
    found = _node(schema, defined, (), kept)
    if not kept:
        return found
    waiting = set(kept)
    while waiting:
        name = waiting.pop()
        before = set(kept)
        kept[name] = _node(defined.get(name, {}), defined, (name,), kept)
        waiting |= set(kept) - before
    return {**found, "$defs": kept}


def _node(schema: Any, defined: Mapping[str, Any], within: tuple[str, ...], kept: dict[str, Any]) -> Schema:
    """One schema.

    :param within: the definitions that it stands in.
    :param kept: filled with the names of definitions that hold themselves.
    """
    if not isinstance(schema, Mapping):
        return {}
    reference = schema.get("$ref")
    if isinstance(reference, str):
        name = reference.rpartition("/")[2]
        if name in within:
            kept.setdefault(name, {})
            return {"$ref": f"#/$defs/{name}"}
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return _node({**mapping(defined.get(name)), **beside}, defined, (*within, name), kept)
    node = {key: _value(key, value, defined, within, kept) for key, value in schema.items() if key in _KEYWORDS}
    return _worded(node, schema, defined, within, kept)


def _value(key: str, value: Any, defined: Mapping[str, Any], within: tuple[str, ...], kept: dict[str, Any]) -> Any:
    if key == "properties" and isinstance(value, Mapping):
        return {name: _node(one, defined, within, kept) for name, one in value.items()}
    if key in ("anyOf", "oneOf", "prefixItems") and isinstance(value, list):
        return [_node(one, defined, within, kept) for one in value]
    return _node(value, defined, within, kept) if key == "items" else value


def _worded(
    node: Schema, schema: Mapping[str, Any], defined: Mapping[str, Any], within: tuple[str, ...], kept: dict[str, Any]
) -> Schema:
    """The schema with what Gemini spells in another way."""
    if "const" in schema:
        node["enum"] = [schema["const"]]
    if "enum" in node:
        # Text and numbers are all that may be chosen from.
        choices = node["enum"] if isinstance(node["enum"], list) else []
        node["enum"] = [one for one in choices if isinstance(one, str | int | float) and not isinstance(one, bool)]
        if not node["enum"]:
            del node["enum"]
    if isinstance(schema.get("format"), str):
        node["description"] = f"{node.get('description', '')} (format: {schema['format']})".strip()
    if isinstance(schema.get("additionalProperties"), Mapping):
        node["additionalProperties"] = _node(schema["additionalProperties"], defined, within, kept)
    return node


__all__ = ["for_gemini"]
