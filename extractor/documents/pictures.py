"""Documents as a model with eyes sees them: pages of a PDF drawn as pictures, or the picture that a file is.

The text, where there is one, goes along: a picture shows layout, stamps and handwriting, the text layer has every
digit. A scan without a text layer is read from its pictures alone.
"""

from __future__ import annotations

import hashlib
import io
from typing import Any

from extractor.documents import pdfium
from extractor.documents.document import Document, Page
from extractor.documents.kinds import kind_of
from extractor.documents.loading import load
from extractor.errors import EmptyDocument, MissingExtra, UnreadableDocument, UnsupportedDocument
from extractor.messages import Image

PAGES = 20
"""Pages of one document that are drawn at the most: providers take no more pictures in one request."""

DPI = 150
LONGEST = 2048
"""Pixels along the longer side; providers scale down what is larger."""

BYTES = 20 * 1024 * 1024
"""Of one picture that is sent as it is."""

SENT_AS_IT_IS = ("png", "jpeg", "gif", "webp")


def load_seen(data: bytes, source: str) -> tuple[Document, tuple[Image, ...]]:
    """Read a document with its pictures.

    :returns: the document, its text empty where only the pictures hold any, and the pictures of its pages.
    :raises DocumentError: when it has neither text nor pictures that can be shown, or more pages than can be shown.
    :raises MissingExtra: when pages have to be drawn and Pillow is not installed.
    """
    images = pictures(data, source)
    try:
        return load(data, name=source), images
    except (EmptyDocument, UnsupportedDocument):
        if not images:
            raise
    pages = tuple(Page(number, "", how="picture") for number in range(1, len(images) + 1))
    kind = kind_of(data, source)
    media_type = kind.media_type if kind is not None else "application/octet-stream"
    return Document(hashlib.sha256(data).hexdigest(), source, media_type, pages, len(data)), images


def pictures(data: bytes, source: str) -> tuple[Image, ...]:
    """The pictures of a document's pages, in order; none for a kind of file that has none."""
    kind = kind_of(data, source)
    if kind is None:
        return ()
    if kind.name in SENT_AS_IT_IS:
        if len(data) > BYTES:
            size = f"{len(data) / 1e6:.0f} MB"
            raise UnsupportedDocument(f"{source}: a picture of {size} is more than models take", source=source)
        return (Image(data, kind.media_type),)
    return _drawn(data, source) if kind.name == "pdf" else ()


def _drawn(data: bytes, source: str) -> tuple[Image, ...]:
    opened, count = pdfium.opened(data, source)
    try:
        if count > PAGES:
            raise UnsupportedDocument(
                f"{source}: has {count} pages, of which at most {PAGES} can be shown as pictures",
                source=source, hint="split it, or read its text alone",
            )  # fmt: skip
        return tuple(_page(opened, index, source) for index in range(count))
    finally:
        with pdfium.LOCK:
            opened.close()


def _page(opened: Any, index: int, source: str) -> Image:
    try:
        from PIL import Image as Pillow
    except ImportError:
        raise MissingExtra("Pillow, which draws the pages,", "images") from None
    with pdfium.LOCK:
        try:
            page = opened[index]
            scale = min(DPI / 72, LONGEST / max(*page.get_size(), 1.0))
            bitmap = page.render(scale=scale)
            size, mode, stride = (bitmap.width, bitmap.height), bitmap.mode, bitmap.stride
            drawn = Pillow.frombuffer("RGB", size, bytes(bitmap.buffer), "raw", mode, stride, 1)
            bitmap.close()
            page.close()
        except Exception as error:  # a hostile page: whatever breaks in drawing it is about this document
            raise UnreadableDocument(
                f"{source}: page {index + 1} cannot be drawn ({type(error).__name__})", source=source, page=index + 1
            ) from None
    written = io.BytesIO()
    drawn.save(written, "PNG", optimize=False)
    return Image(written.getvalue())
