"""What evidence comes to: where in a document a value stands, and how surely."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from extractor.documents.document import Box

Match = Literal["exact", "normalised", "fuzzy", "hidden", "absent"]

_INDEX = re.compile(r"\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where one value of a record stands.

    :ivar path: of the value in the record, such as ``line_items.0.amount``.
    :ivar printed: as the document prints it; of an absent value, as the model sent it.
    :ivar match: ``exact``: the document has it as the model sent it; ``normalised``: the same number, date or currency
        in another style, or the same words with other case, spaces, line breaks or hyphens; ``fuzzy``: the same words
        with others between them, or with letters that OCR took for others; ``hidden``: it stands only in text that
        nobody sees on the page; ``absent``: nowhere.
    :ivar score: how near it comes to what was sent, from 0 to 1.
    :ivar page: number of the page, from 1; ``None`` where it is absent.
    :ivar start: ``text[start:end]`` of the page (of what is hidden on it, for ``hidden``) is the place.
    :ivar end: likewise.
    :ivar boxes: around the place, one for each line; none where the page has no places.
    :ivar snippet: the words around it, on one line.
    """

    path: str
    printed: str
    match: Match
    score: float = 1.0
    page: int | None = None
    start: int | None = None
    end: int | None = None
    boxes: tuple[Box, ...] = ()
    snippet: str = ""

    @property
    def is_found(self) -> bool:
        """Whether it stands where a person sees it."""
        return self.match not in ("absent", "hidden")


class ByPath(Mapping[str, Evidence]):
    """The evidence of one record by path; ``line_items[0].amount`` is understood as ``line_items.0.amount`` is."""

    __slots__ = ("_found",)

    def __init__(self, evidence: Iterable[Evidence] = ()) -> None:
        self._found = {one.path: one for one in evidence}

    def __getitem__(self, path: str) -> Evidence:
        return self._found[dotted(path)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        return f"ByPath({', '.join(f'{path}: {one.match}' for path, one in self._found.items())})"


def dotted(path: str) -> str:
    """A path as this house writes it: ``line_items[0].amount`` becomes ``line_items.0.amount``."""
    return _INDEX.sub(r".\1", path) if "[" in path else path


__all__ = ["ByPath", "Evidence", "Match", "dotted"]
