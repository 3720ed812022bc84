"""What a loader makes of a file: pages of text, each with how it was read."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Literal, NamedTuple

PageStatus = Literal["read", "failed"]

GAP = "(this page could not be read)"
"""What stands in the place of a failed page, so that a model does not take the pages around it for neighbours."""


class Box(NamedTuple):
    """A rectangle on a page as it is read (upright): points, with the origin at the top left."""

    left: float
    top: float
    right: float
    bottom: float


class Word(NamedTuple):
    """Where a word stands: ``text[start:end]`` of its page, and the box around it."""

    start: int
    end: int
    box: Box


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a page in the order of its text, kept flat: a page of a thousand words takes 24 kB, not 300.

    :ivar spans: start and end of each word in the page's text, one after the other.
    :ivar sides: left, top, right and bottom of each word.
    """

    spans: array[int] = field(default_factory=lambda: array("I"))
    sides: array[float] = field(default_factory=lambda: array("f"))

    @classmethod
    def of(cls, words: Iterable[Word]) -> Words:
        """Words, flat."""
        spans, sides = array("I"), array("f")
        for word in words:
            spans.extend((word.start, word.end))
            sides.extend(word.box)
        return cls(spans, sides)

    def __len__(self) -> int:
        return len(self.spans) // 2

    def __getitem__(self, place: int) -> Word:
        at = range(len(self))[place]
        return Word(self.spans[2 * at], self.spans[2 * at + 1], Box(*self.sides[4 * at : 4 * at + 4]))

    def __iter__(self) -> Iterator[Word]:
        return (self[place] for place in range(len(self)))

    def within(self, start: int, end: int) -> tuple[Word, ...]:
        """The words that have a letter in ``text[start:end]``, in order."""
        ends, starts = self.spans[1::2], self.spans[0::2]
        first, last = bisect_right(ends, start), bisect_left(starts, end)
        return tuple(self[place] for place in range(first, last)) if start < end else ()


@dataclass(frozen=True, slots=True)
class Page:
    """One page.

    :ivar number: from 1.
    :ivar text: in reading order; the columns of a table row stay on one line.
    :ivar width: of the page as it is read (upright), in points; 0 where the format has no pages of a size.
    :ivar height: likewise.
    :ivar status: ``failed`` pages have no text, and a ``reason``.
    :ivar how: how it was read, such as ``text layer``, or the encoding of plain text.
    :ivar reason: why a failed page could not be read, in one line for people.
    :ivar words: where the words of ``text`` stand; none where the format has no places.
    :ivar rotation: degrees, clockwise, by which the page was turned to stand upright.
    :ivar confidence: how sure OCR was of the page, from 0 to 1; ``None`` where nothing was guessed.
    :ivar hidden: text in the file that a person does not see on the page (white on white, size 0, a comment); never
        shown to a model.
    """

    number: int
    text: str = field(repr=False)
    width: float = 0.0
    height: float = 0.0
    status: PageStatus = "read"
    how: str = "text layer"
    reason: str = ""
    words: Words = field(default_factory=Words, repr=False, compare=False)
    rotation: float = 0.0
    confidence: float | None = None
    hidden: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Document:
    """A document that was read.

    :ivar id: SHA-256 of its bytes, in hex.
    :ivar source: what people know it by.
    :ivar media_type: such as ``application/pdf``.
    :ivar pages: every page of the file, in order, those that could not be read among them.
    :ivar size: in bytes.
    :ivar flags: remarks of its loader for people, such as what of it was left aside.
    """

    id: str
    source: str
    media_type: str
    pages: tuple[Page, ...]
    size: int
    flags: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The last part of the source."""
        return PurePath(self.source).name

    @property
    def text(self) -> str:
        """What a model sees: the pages in order, with their boundaries where there are several."""
        if len(self.pages) == 1:
            return self.pages[0].text
        return "\n\n".join(
            f"--- page {page.number} ---\n{page.text if page.status == 'read' else GAP}" for page in self.pages
        )

    @property
    def failed_pages(self) -> tuple[Page, ...]:
        """The pages that could not be read."""
        return tuple(page for page in self.pages if page.status == "failed")

    @property
    def is_complete(self) -> bool:
        """Whether every page was read."""
        return not self.failed_pages
