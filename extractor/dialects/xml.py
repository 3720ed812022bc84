"""XML: one element for each record, named after its function, with an element for each argument.

::

    <create_invoice><total>12.00</total><line_items><item><amount>12.00</amount></item></line_items></create_invoice>

The JSON schema of the function types what is read: lists and objects by their elements, everything printed as the text
that it is, an empty element as null where null is allowed. The text of a field is taken as it stands, whatever stands
in it, as long as it holds no tag of a field: a tag that is not closed never swallows its neighbours.

Several blocks are several records. Where one call alone is allowed (``parallel`` is false), the last block of each
function is its answer and those before it are drafts; such a reply, when it was cut off, gives none, since the one
that counts may not have come yet. A block that is broken ends the reading and makes the reply one that was cut off:
the records before it are taken, the rest is asked again.

The reader is our own and knows tags, five entities, characters by number, comments and CDATA, nothing else: no
declarations, no entities of a document's own, nothing external.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from extractor.coercion import DEEPEST
from extractor.dialects.calls import SHOWN, is_nullable, numbered
from extractor.dialects.wording import (
    field_lines,
    has_refusals,
    joined,
    may_pass,
    plain_turns,
    purpose,
    results_in_words,
    wanted,
    with_objects,
)
from extractor.messages import NOTHING_TO_EXTRACT, Ask, FinishReason, Message, Offer, Reply
from extractor.parameters import Schema, branches, inner, kind_of

ITEM = "item"

_TAG = re.compile(r"<(?P<close>/?)(?P<name>[^\W\d][\w.-]{0,99})(?:\s[^<>]{0,200})?(?P<empty>/?)>|<!--|<!\[CDATA\[")
_ENTITY = re.compile(r"&(?:#([0-9]{1,7})|#[xX]([0-9A-Fa-f]{1,6})|(amp|lt|gt|quot|apos));")
_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_BOOLEANS = {"true": True, "false": False}
_NO_TAG = re.compile(r"[^\w.-]|^(?=[\d.-])")


def word(ask: Ask) -> Ask:
    """The ask in plain text turns: earlier calls as XML, their results in words."""
    turns = plain_turns(ask.messages, _content, _instructions(ask))
    return replace(ask, messages=joined(turns), offers=(), tool_choice="auto")


def read(reply: Reply, ask: Ask) -> Reply:
    """The reply with a call for each block; of one that was cut off or is broken, for those that are whole."""
    reader = _Reader(reply.content, ask.offers)
    found = list(reader.blocks())
    is_cut = reply.finish_reason == "length" or reader.is_broken
    if not ask.parallel:
        found = [] if is_cut else list(dict(found).items())
    calls = numbered(found, ask)
    reason: FinishReason = "length" if is_cut else "stop"
    return replace(reply, content="" if calls else reply.content, tool_calls=calls, finish_reason=reason)


# -- reading -----------------------------------------------------------------------------------------------------------


class _Broken(Exception):
    """A block that has no one reading, or no end."""


class _Reader:
    """One pass over a reply.

    :param text: of the reply.
    :param offers: what a block can be.
    """

    def __init__(self, text: str, offers: tuple[Offer, ...]) -> None:
        self._text = text
        self._offers = {offer.name: offer.parameters for offer in offers}
        self._at = 0
        self._names = {_tag(name): name for name in self._offers}
        self._root: Schema = {}
        self._known: dict[str, str] = {}
        """Tag to name, of what may stand in the present block."""
        self.is_broken = False
        """A block was begun that cannot be read; nothing behind it was."""

    def blocks(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The records, in order, typed."""
        while (tag := self._next()) is not None:
            name = self._names.get(tag["name"])
            if name is None or tag["close"]:
                continue
            self._root = self._offers[name]
            self._known = {_tag(one): one for one in (*_names_in(self._root, 0), *self._offers, ITEM)}
            try:
                yield name, {} if tag["empty"] else self._block(tag["name"])
            except _Broken:
                self.is_broken = True
                return

    def _block(self, name: str) -> Mapping[str, Any]:
        _, children = self._children(name, self._root, 0)
        return self._object(children, self._root)

    def _next(self) -> re.Match[str] | None:
        """The next tag; comments and CDATA are passed over."""
        while tag := _TAG.search(self._text, self._at):
            self._at = tag.end()
            if tag["name"] is not None:
                return tag
            ending = "-->" if tag[0] == "<!--" else "]]>"
            end = self._text.find(ending, self._at)
            self._at = end + len(ending) if end >= 0 else len(self._text)
        return None

    def _children(self, name: str, schema: Any, depth: int) -> tuple[str, list[tuple[str, Any]]]:
        """The text and the typed elements up to the closing tag of ``name``."""
        if depth > DEEPEST:
            raise _Broken
        begin = self._at
        children: list[tuple[str, Any]] = []
        while (tag := self._next()) is not None:
            child = tag["name"]
            if tag["close"]:
                if child != name:
                    raise _Broken
                return (self._text[begin : tag.start()] if not children else ""), children
            if depth == 0 and child == name and not children:
                continue  # it was only spoken of before
            key = self._known.get(child, child)
            declared = _declared(schema, key, self._root)
            children.append((key, self._value(child, declared, depth + 1, is_empty=bool(tag["empty"]))))
        raise _Broken

    def _value(self, name: str, schema: Any, depth: int, *, is_empty: bool) -> Any:
        kinds = [kind_of(branch) for branch in branches(schema, self._root)]
        if is_empty or not {"array", "object"} & set(kinds):
            return self._leaf("" if is_empty else self._raw(name), schema)
        text, children = self._children(name, schema, depth)
        if not children:
            return self._without_children(text, schema, kinds)
        if "array" not in kinds or ("object" in kinds and any(child != ITEM for child, _ in children)):
            return self._object(children, schema)
        items = inner(schema, 0, self._root)
        if any(_declared(items, child, self._root) is not None and child != ITEM for child, _ in children):
            return [self._object(children, items)]  # one line of a table, without a tag of its own
        return [value for _, value in children]

    def _without_children(self, text: str, schema: Any, kinds: list[str]) -> Any:
        """A list or an object that is empty, or JSON: the repair of arguments reads that."""
        said = _plain(text)
        if said:
            return said
        return None if is_nullable(schema, self._root) else [] if "array" in kinds else {}

    def _object(self, children: list[tuple[str, Any]], schema: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in children:
            if name not in found:
                found[name] = value
                continue
            kinds = {kind_of(branch) for branch in branches(inner(schema, name, self._root), self._root)}
            if "array" in kinds:  # one element for each item, all with the name of the list
                found[name] = [*_as_list(found[name]), *_as_list(value)]
            elif found[name] != value:
                raise _Broken
        return found

    def _raw(self, name: str) -> str:
        """The text up to the closing tag, which no tag of a field may interrupt."""
        begin, text = self._at, self._text
        while (tag := self._next()) is not None:
            if tag["name"] == name and tag["close"]:
                return text[begin : tag.start()]
            if tag["name"] in self._known:
                break
        raise _Broken

    def _leaf(self, raw: str, schema: Any) -> Any:
        text = _plain(raw)
        options = branches(schema, self._root)
        kinds = {kind_of(option) for option in options}
        if not text and is_nullable(schema, self._root):
            return None
        if not text and kinds & {"array", "object"}:
            return [] if "array" in kinds else {}
        if "boolean" in kinds and "string" not in kinds:
            return _BOOLEANS.get(text.casefold(), text)
        members = [one for option in options for one in option.get("enum", ()) if str(one) == text]
        return members[0] if members else text


def _declared(schema: Any, child: str, root: Schema) -> Any:
    """The schema of an element inside another: a field's, or that of the list's items, whatever they are called."""
    kinds = [kind_of(branch) for branch in branches(schema, root)]
    found = inner(schema, child, root) if "object" in kinds else None
    if found is not None or "array" not in kinds:
        return found
    items = inner(schema, 0, root)
    field = inner(items, child, root) if child != ITEM and not child.isdigit() else None
    return items if field is None else field


def _names_in(schema: Any, depth: int) -> Iterator[str]:
    """Every name of a field that a schema declares, at any level."""
    if not isinstance(schema, Mapping) or depth > DEEPEST:
        return
    for key in ("properties", "$defs"):
        for name, field in schema.get(key, {}).items():
            if key == "properties":
                yield name
            yield from _names_in(field, depth + 1)
    for part in (schema.get("items"), *schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from _names_in(part, depth + 1)


def _tag(name: str) -> str:
    """The name of a field as a tag can have it."""
    return _NO_TAG.sub("_", name)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _plain(raw: str) -> str:
    """The text of an element: without comments, entities as the characters that they stand for, CDATA as it is."""
    parts: list[str] = []
    at = 0
    while mark := _MARKED.search(raw, at):
        parts.append(_ENTITY.sub(_character, raw[at : mark.start()]))
        parts.append(mark["cdata"] or "")
        at = mark.end()
    parts.append(_ENTITY.sub(_character, raw[at:]))
    return "".join(parts).strip()


_MARKED = re.compile(r"<!--(?:(?!-->).)*+-->|<!\[CDATA\[(?P<cdata>(?:(?!\]\]>).)*+)\]\]>", re.DOTALL)


def _character(entity: re.Match[str]) -> str:
    decimal, hexadecimal, name = entity.groups()
    if name:
        return _ENTITIES[name]
    code = int(decimal) if decimal else int(hexadecimal, 16)
    is_character = 0 < code < 0x110000 and not 0xD800 <= code < 0xE000
    return chr(code) if is_character else entity[0]


# -- wording -----------------------------------------------------------------------------------------------------------


def _instructions(ask: Ask) -> str:
    """What is to be written stands last: small models copy that. How a record is given up is said with the results."""
    offers = wanted(ask)
    if not offers:
        return ""
    lines = []
    for offer in offers:
        lines.append(f"{offer.name}: {purpose(offer)} Fields:")
        lines += [f"- {line}" for line in field_lines(offer.parameters)]
    if may_pass(ask):
        lines.append(f"Where there is nothing to record, answer {_GIVE_UP}.")
    if ask.tool_choice == "auto":
        lines.append("Where no record is wanted, answer in plain words, without XML.")
    lines += [
        "Answer in XML and nothing else. Copy every value as it is printed in the document above.",
        "Write &lt; for < and &amp; for &. An element is empty where the document has no value.",
        "One block for each record:" if ask.parallel else "One block in all:",
    ]
    for offer in offers:
        lines += _shape(offer.name, offer.parameters, offer.parameters, "", 0)
    return "\n".join(lines)


_GIVE_UP = f"<{NOTHING_TO_EXTRACT.name}><reason>why, in one sentence</reason></{NOTHING_TO_EXTRACT.name}>"


def _shape(name: str, schema: Any, root: Schema, indent: str, depth: int) -> Iterator[str]:
    """An element without values, as an example."""
    tag = _tag(name)
    parts = [branch for branch in branches(schema, root) if kind_of(branch) in ("array", "object")]
    part = parts[0] if parts else {}
    inside = [(ITEM, part.get("items"))] if kind_of(part) == "array" else list(part.get("properties", {}).items())
    if not inside or depth > 6:
        yield f"{indent}<{tag}>{SHOWN}</{tag}>"
        return
    yield f"{indent}<{tag}>"
    for child, field in inside:
        yield from _shape(child, field, root, f"{indent}  ", depth + 1)
    yield f"{indent}</{tag}>"


def _content(message: Message) -> str:
    if message.role == "tool":
        words = results_in_words(message)
        give_up = f"A record that the document does not hold after all is given up by {_GIVE_UP}."
        return f"{words}\n{give_up}" if has_refusals(message) else words
    if not message.tool_calls:
        return message.content
    calls = with_objects(message).tool_calls
    return "\n".join(_element(call.name, {} if call.arguments is None else call.arguments, 0) for call in calls)


def _element(name: str, value: Any, depth: int) -> str:
    if isinstance(value, Mapping) and depth <= DEEPEST:
        inside = "".join(_element(str(key), item, depth + 1) for key, item in value.items())
    elif isinstance(value, (list, tuple)) and depth <= DEEPEST:
        inside = "".join(_element(ITEM, item, depth + 1) for item in value)
    else:
        inside = _escaped(value)
    return f"<{_tag(name)}>{inside}</{_tag(name)}>"


def _escaped(value: Any) -> str:
    text = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
