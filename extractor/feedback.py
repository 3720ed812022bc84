"""What went wrong, as text that a model can act on.

Everything here is pure. All problems are told at once, each with the path of its field (``line_items.2.amount``), in
the order in which the fields are declared; there are no addresses, class names or file paths, and what is quoted of
the model's own values is cut short.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError

EXCERPT = 60
"""Characters that are quoted of a value."""

MESSAGE = 500
"""Characters that one message may have."""

MOST = 40
"""Problems, or names, that are listed; how many more there are is said."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to mend: the path of its field (empty where it is about the whole record), and what is wrong."""

    path: str
    message: str


def as_text(problems: Iterable[Problem]) -> str:
    """All problems as one text: ``path: message, message; path: message``."""
    grouped: dict[str, list[str]] = {}
    for problem in problems:
        messages = grouped.setdefault(problem.path, [])
        if problem.message not in messages:
            messages.append(problem.message)
    parts = [f"{path}: {', '.join(said)}" if path else ", ".join(said) for path, said in grouped.items()]
    if len(parts) > MOST:
        parts[MOST:] = [f"and {len(parts) - MOST} more"]
    return clean("; ".join(parts))


def clean(text: str) -> str:
    """The text without what cannot be sent or stored: NUL, and halves of surrogate pairs."""
    text = text.replace("\0", "")
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def excerpt(value: object) -> str:
    """A value as it may be quoted: short, and by its kind where it is none to quote."""
    if isinstance(value, str):
        head = " ".join(value[: 4 * EXCERPT].split())
        whole = head if len(head) <= EXCERPT and len(value) <= 4 * EXCERPT else f"{head[: EXCERPT - 1]}…"
        return f"'{whole}'"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, (list, tuple)):
        return "a list"
    kind = type(value).__name__
    return _cut(str(value), EXCERPT) if kind in ("int", "float", "Decimal") else ""


# -- what validation found ---------------------------------------------------------------------------------------------


def problems(
    error: ValidationError, arguments: object = None, known: Collection[str] | None = None
) -> tuple[Problem, ...]:
    """Everything that validation found.

    :param error: of pydantic.
    :param arguments: what was validated, to tell fields from the names of union branches; the latter are left out.
    :param known: the names of the fields at the top, where they are known.
    """
    entries = error.errors(include_url=False)
    paths = [clean(_path(entry["loc"], entry["type"], arguments, known)) for entry in entries]
    parents = {head for path in set(paths) for head in _heads(path)}
    found = []
    for entry, path in zip(entries, paths, strict=True):
        kind, given = entry["type"], entry.get("input")
        holds_deeper = kind.endswith("_type") and isinstance(given, (Mapping, list))
        if holds_deeper and path in parents:
            continue  # a branch of a union that was not meant: another one has more to say about this value
        found.append(Problem(path, clean(_message(kind, entry["msg"], given))))
    return tuple(dict.fromkeys(found))


def _heads(path: str) -> Iterator[str]:
    """Every path above one."""
    while path:
        path = path.rpartition(".")[0]
        yield path


REQUIRED = "is required"
FOREIGN = "is not a field that is asked for"

_TOLD = {
    "missing": REQUIRED,
    "extra_forbidden": FOREIGN,
    "model_type": "should be an object",
    "model_attributes_type": "should be an object",
    "dataclass_type": "should be an object",
    "dict_type": "should be an object",
    "mapping_type": "should be an object",
    "list_type": "should be a list",
    "tuple_type": "should be a list",
    "set_type": "should be a list",
    "is_instance_of": "is not of the kind that is asked for",
    "is_subclass_of": "is not of the kind that is asked for",
    "union_tag_not_found": "does not say which of the alternatives it is",
    "string_unicode": "should be a valid string",
    "recursion_loop": "refers to itself",
}
_SILENT = frozenset({"missing", "extra_forbidden"})


def _message(kind: str, text: str, given: object) -> str:
    told = _TOLD.get(kind)
    if told is None:
        told = re.sub(r"^(Value error|Assertion failed), ?", "", text).strip() or "is not valid"
        told = re.sub(r"^(Input|String|Value) (?=should )", "", told)
    told = _cut(told, MESSAGE)
    quoted = excerpt(given) if kind not in _SILENT else ""
    is_whole_record = isinstance(given, Mapping) and not kind.endswith("_type")
    if not quoted or is_whole_record or quoted.strip("'") in told:
        return told
    return f"{told}, got {quoted}"


def _path(loc: Sequence[int | str], kind: str, arguments: object, known: Collection[str] | None) -> str:
    """The path without what names a validator or a branch of a union.

    A part is a field when the value at that place has it. What is neither there nor missing is told by its looks.
    """
    parts: list[str] = []
    here: object = arguments
    for number, part in enumerate(loc):
        is_last = number == len(loc) - 1
        if isinstance(here, Mapping):
            there, next_one = part in here, here.get(part)
        elif isinstance(here, (list, tuple)):
            there = isinstance(part, int) and 0 <= part < len(here)
            next_one = here[part] if there and isinstance(part, int) else None
        else:
            there, next_one = False, None
        if there:
            here = next_one
        is_missing = is_last and kind == "missing"
        is_known = not parts and known is not None and part in known
        before = loc[number - 1] if number else 0
        if there or is_missing or is_known or (arguments is None and _looks_like_a_field(part, before)):
            parts.append(_cut(str(part), 100))
    return ".".join(parts)


_BRANCHES = frozenset(
    ("str", "int", "float", "bool", "decimal", "date", "datetime", "time", "timedelta", "none", "dict", "list", "url")
)


def _looks_like_a_field(part: int | str, before: int | str) -> bool:
    """For errors about something that is not the arguments: classes and validators are no fields.

    A type's name right after a field's is a branch of a union; anywhere else it may be a field (``items.0.date``).
    """
    if isinstance(part, int):
        return True
    is_branch = part in _BRANCHES and isinstance(before, str) and not _is_class(before)
    return bool(re.fullmatch(r"[A-Za-z_][\w-]*", part)) and not _is_class(part) and not is_branch


def _is_class(part: str) -> bool:
    return part[:1].isupper() and not part.isupper()


# -- what can be wrong with a call -------------------------------------------------------------------------------------


def unknown_function(name: str, available: Sequence[str]) -> str:
    """A call to a function that is not on offer."""
    text = f"there is no function {excerpt(name)}"
    near = nearest(name, available)
    text += f"; did you mean {near}?" if near else ""
    return clean(f"{text}; available: {_listed(available)}" if available else text)


def unusable(kind: str, detail: str = "") -> str:
    """Arguments that are no JSON object; ``kind`` as :class:`extractor.coercion.Unusable` has it."""
    told = {
        "array": "the arguments are a JSON array; send one JSON object, and one call for each record",
        "text": "the arguments are plain text; send one JSON object with a value for each argument",
        "scalar": "the arguments are a single JSON value; send one JSON object with a value for each argument",
        "broken": "the arguments are not valid JSON",
    }[kind]
    return clean(f"{told}: {_cut(detail, MESSAGE)}" if detail else told)


def echoed(accepted: Sequence[str]) -> str:
    """The model sent the schema itself."""
    return clean(f"the arguments repeat the schema; send the values themselves, as an object with {_listed(accepted)}")


@dataclass(frozen=True, slots=True)
class Names:
    """The names of arguments: those that are required, and of what was sent those that are missing, unknown, known."""

    required: Sequence[str]
    missing: Sequence[str]
    unrecognised: Sequence[str]
    given: Sequence[str]
    accepted: Sequence[str]


def argument_errors(names: Names) -> str:
    """Wrong argument names, with what was probably meant: never an argument that is given already.

    Lists that are empty are left out.
    """
    candidates = [*names.missing, *(name for name in names.accepted if name not in (*names.missing, *names.given))]
    unknown = []
    for name in names.unrecognised[:MOST]:
        near = nearest(name, candidates)
        unknown.append(f"{_name(name)} (did you mean {near}?)" if near else _name(name))
        candidates = [one for one in candidates if one != near]
    if len(names.unrecognised) > MOST:
        unknown.append(f"and {len(names.unrecognised) - MOST} more")
    parts = [
        ("required", _listed(names.required)),
        ("missing", _listed(names.missing)),
        ("unrecognised", ", ".join(unknown)),
        ("accepted", _listed(names.accepted)),
    ]
    return clean("; ".join(f"{label}: {text}" for label, text in parts if text))


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that was probably meant, if one is near enough."""
    best, score = None, 0.0
    asked = _folded(name[:100])
    for candidate in candidates:
        reached = _likeness(asked, _folded(candidate[:100]))
        if reached > score:
            best, score = candidate, reached
    return best if score >= 0.6 else None


def _likeness(one: str, other: str) -> float:
    words, others = set(one.split()), set(other.split())
    ratio = difflib.SequenceMatcher(None, one, other, autojunk=False).ratio()
    is_part = bool(words and others) and (words <= others or others <= words)
    return max(ratio, 0.6) if is_part else ratio


def _folded(name: str) -> str:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return " ".join(re.split(r"[\W_]+", spaced.casefold())).strip()


def _name(name: str) -> str:
    """A name that the model made up."""
    return _cut(" ".join(name.split()) or "''", EXCERPT)


def _listed(names: Sequence[str]) -> str:
    rest = f", and {len(names) - MOST} more" if len(names) > MOST else ""
    return ", ".join(names[:MOST]) + rest


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"
