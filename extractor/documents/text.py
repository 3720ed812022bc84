"""Plain text, in whatever encoding it is."""

from __future__ import annotations

import hashlib
import re

from extractor.documents.document import Document, Page
from extractor.documents.encodings import encoding_of
from extractor.errors import EmptyDocument, UnreadableDocument

_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\ufeff\ufffe\uffff]")


def load(data: bytes, source: str) -> Document:
    """Read plain text; a form feed begins a new page.

    :raises EmptyDocument: when there is no text in it.
    :raises UnreadableDocument: when its bytes are text in no encoding that we know.
    """
    encoding = encoding_of(data)
    if encoding is None:
        raise UnreadableDocument(
            f"{source}: its bytes are text in no known encoding", source=source, hint="save it as UTF-8"
        )
    text = clean(data.decode(encoding, "replace"))
    if not text.strip():
        raise EmptyDocument(f"{source}: the file holds no text", source=source)
    pages = text.split("\f")
    if not pages[-1].strip():
        del pages[-1]  # printers end the last page with a form feed too
    how = f"text, {encoding}"
    return Document(
        id=hashlib.sha256(data).hexdigest(),
        source=source,
        media_type="text/plain",
        pages=tuple(Page(number, page.strip("\n"), how=how) for number, page in enumerate(pages, start=1)),
        size=len(data),
    )


def clean(text: str) -> str:
    """Without NUL and control characters (databases refuse them, models stumble), with one kind of line end.

    Tab, line feed and form feed stay.
    """
    for end in ("\r\n", "\r", "\v", "\x85"):
        text = text.replace(end, "\n")
    return _CONTROL.sub("", text).encode("utf-8", "replace").decode("utf-8")
