"""What a loader makes of a file: pages of text, each with how it was read."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Literal

PageStatus = Literal["read", "failed"]

GAP = "(this page could not be read)"
"""What stands in the place of a failed page, so that a model does not take the pages around it for neighbours."""


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
    """

    number: int
    text: str = field(repr=False)
    width: float = 0.0
    height: float = 0.0
    status: PageStatus = "read"
    how: str = "text layer"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """A document that was read.

    :ivar id: SHA-256 of its bytes, in hex.
    :ivar source: what people know it by.
    :ivar media_type: such as ``application/pdf``.
    :ivar pages: every page of the file, in order, those that could not be read among them.
    :ivar size: in bytes.
    """

    id: str
    source: str
    media_type: str
    pages: tuple[Page, ...]
    size: int

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
