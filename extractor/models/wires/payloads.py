"""Payloads of functions for providers other than chat completions, and which schemas a provider's decoder takes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from extractor.models.wires.chat_shapes import takes_strict
from extractor.models.wires.shapes import OfferKey, stand_in

_KEYWORDS = frozenset(
    {"$defs", "$ref", "additionalProperties", "anyOf", "const", "default", "definitions", "description", "enum",
     "format", "items", "minItems", "properties", "required", "title", "type"}
)  # fmt: skip
_FORMATS = frozenset({"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid"})
_MOST_STRICT = 20
_MOST_UNIONS = 16
_MOST_OPTIONAL = 24


@cache
def _handler(provider: str, mode: str) -> Callable[..., tuple[Any, dict[str, Any]]]:
    from instructor.v2 import Mode, Provider, mode_registry

    handler: Callable[..., tuple[Any, dict[str, Any]]] = mode_registry.get_handlers(
        Provider[provider], Mode[mode]
    ).request_handler
    return handler


def requests_by_instructor(provider: str, mode: str, offers: OfferKey) -> Iterator[dict[str, Any]]:
    """The request that instructor makes for each offer by itself."""
    for name, description, text, _ in offers:
        _, request = _handler(provider, mode)(
            stand_in({**json.loads(text), "title": name, "description": description}), {"messages": []}
        )
        yield request


def parameters_of(text: str) -> dict[str, Any]:
    """The parameters of an offer. Its name and description stand beside them, and would be paid for twice."""
    return {key: value for key, value in json.loads(text).items() if key not in ("title", "description")}


def compiles(schema: Mapping[str, Any]) -> bool:
    """Whether a schema is one that the constrained decoding of Anthropic's models takes.

    It knows no bounds of numbers or lengths and no recursion, wants every object closed, and has limits in number.
    """
    nodes = list(_nodes(schema))
    return (
        all(map(_is_known, nodes))
        and not _is_recursive(schema)
        and sum(map(_is_union, nodes)) <= _MOST_UNIONS
        and sum(map(_optional, nodes)) <= _MOST_OPTIONAL
    )


def held(offers: OfferKey) -> frozenset[str]:
    """The names of the offers whose arguments such a decoder can hold to their schema, within what one request may
    have of them."""
    names: set[str] = set()
    unions = 0
    for name, _, text, strict in offers:
        schema = json.loads(text)
        if not strict or not takes_strict(schema) or not compiles(schema):
            continue
        unions += sum(map(_is_union, _nodes(schema)))
        if unions > _MOST_UNIONS or len(names) == _MOST_STRICT:
            break
        names.add(name)
    return frozenset(names)


def _nodes(schema: Any) -> Iterator[Mapping[str, Any]]:
    """A schema and every schema within it."""
    if not isinstance(schema, Mapping):
        return
    yield schema
    for key, value in schema.items():
        if key in ("properties", "$defs", "definitions") and isinstance(value, Mapping):
            inner: Sequence[Any] = list(value.values())
        else:
            inner = value if key == "anyOf" and isinstance(value, list) else [value] if key == "items" else []
        for one in inner:
            yield from _nodes(one)


def _is_known(node: Mapping[str, Any]) -> bool:
    is_object = node.get("type") == "object" or "properties" in node
    return (
        node.keys() <= _KEYWORDS
        and node.get("format", "date") in _FORMATS
        and node.get("minItems", 0) in (0, 1)
        and (not is_object or node.get("additionalProperties") is False)
        and str(node.get("$ref", "#")).startswith("#")
    )


def _is_union(node: Mapping[str, Any]) -> bool:
    return "anyOf" in node or isinstance(node.get("type"), list)


def _optional(node: Mapping[str, Any]) -> int:
    properties = node.get("properties")
    return len(set(properties) - set(node.get("required", ()))) if isinstance(properties, Mapping) else 0


def _is_recursive(schema: Mapping[str, Any]) -> bool:
    defined = {**schema.get("definitions", {}), **schema.get("$defs", {})}
    leads = {name: {_referred(node) for node in _nodes(one)} - {""} for name, one in defined.items()}
    return any(name in _reached(name, leads) for name in leads)


def _referred(node: Mapping[str, Any]) -> str:
    return str(node.get("$ref", "")).rpartition("/")[2]


def _reached(name: str, leads: Mapping[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    ahead = set(leads.get(name, ()))
    while ahead:
        one = ahead.pop()
        seen.add(one)
        ahead |= leads.get(one, set()) - seen
    return seen


__all__ = ["compiles", "held", "parameters_of", "requests_by_instructor"]
