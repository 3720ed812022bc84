"""From bytes to a Document: which kind of file it is, and the loader for that kind."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from extractor import plugins
from extractor.documents.document import Document
from extractor.errors import DocumentError, EmptyDocument, UnreadableDocument, UnsupportedDocument

GROUP = "extractor.loaders"
LIMIT = 100 * 1024 * 1024
"""Bytes of one document at the most: what is larger is no business document."""

READS = "this version reads plain text and PDF files with a text layer"

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF8", "GIF image"),
    (b"II*\x00", "TIFF image"),
    (b"MM\x00*", "TIFF image"),
    (b"BM", "BMP image"),
    (b"PK\x03\x04", "ZIP archive or office document"),
    (b"PK\x05\x06", "ZIP archive"),
    (b"\xd0\xcf\x11\xe0", "legacy office document or Outlook message"),
    (b"{\\rtf", "RTF document"),
    (b"\x1f\x8b", "gzip archive"),
    (b"BZh", "bzip2 archive"),
    (b"\xfd7zXZ", "xz archive"),
    (b"7z\xbc\xaf", "7z archive"),
    (b"%!PS", "PostScript file"),
    (b"SQLite format 3", "SQLite database"),
    (b"\x7fELF", "program"),
)
_SUFFIXES = {
    ".html": "HTML page", ".htm": "HTML page", ".xhtml": "HTML page", ".eml": "e-mail", ".mbox": "mailbox",
    ".msg": "Outlook message", ".xml": "XML file", ".json": "JSON file", ".rtf": "RTF document",
    ".docx": "office document", ".xlsx": "office document", ".pptx": "office document", ".odt": "office document",
    ".epub": "e-book", ".heic": "HEIC image", ".svg": "SVG image",
}  # fmt: skip


def load(source: str | Path | bytes | BinaryIO, *, name: str | None = None) -> Document:
    """Read a document: a path, bytes, or a file opened in binary mode.

    :param name: what people know it by; the path by default.
    :raises DocumentError: when it cannot be read, saying why in one line.
    """
    data, known = _bytes_of(source)
    label = name or known
    if not data:
        raise EmptyDocument(f"{label}: the file is empty (0 bytes)", source=label)
    if len(data) > LIMIT:
        size = f"{len(data) / 1048576:.0f} MB"
        raise UnsupportedDocument(f"{label}: {size} is more than the {LIMIT // 1048576} MB that are read", source=label)
    loader = plugins.load(GROUP, kind_of(data, label))
    try:
        document: Document = loader(data, label)
    except DocumentError:
        raise
    except Exception as error:  # a loader meets hostile bytes: whatever breaks in it is about this document
        raise UnreadableDocument(f"{label}: the file is broken ({type(error).__name__})", source=label) from error
    return document


def kind_of(data: bytes, name: str) -> str:
    """The loader for some bytes, by what they are before what they are called.

    :raises UnsupportedDocument: when no loader reads them.
    """
    if b"%PDF-" in data[:1024]:
        return "pdf"
    what = next((kind for magic, kind in _MAGIC if data.startswith(magic)), "")
    if not what and data[4:12] in (b"ftypheic", b"ftypmif1", b"ftypheix"):
        what = "HEIC image"
    if not what and data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        what = "WebP image"
    suffix = Path(name).suffix.lower()
    if not what:
        what = _SUFFIXES.get(suffix, "") or _kind_of_text(data)
    if not what and suffix == ".pdf" and not _looks_like_text(data):
        raise UnreadableDocument(f"{name}: the file is no PDF, whatever its name says", source=name)
    if not what and not _looks_like_text(data):
        what = "binary file of an unknown kind"
    if what:
        raise UnsupportedDocument(f"{name}: {what}: {READS}", source=name)
    return "text"


def _kind_of_text(data: bytes) -> str:
    head = data[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if head.startswith((b"<!doctype html", b"<html")):
        return "HTML page"
    return "XML file" if head.startswith(b"<?xml") else ""


def _looks_like_text(data: bytes) -> bool:
    """Text has few control characters, unless it is UTF-16 or UTF-32."""
    head = data[:8192]
    if head[:2] in (b"\xff\xfe", b"\xfe\xff") or head[:4] == b"\x00\x00\xfe\xff":
        return True
    half = max(1, len(head) // 2)
    if (
        max(head[0::2].count(0), head[1::2].count(0)) > 0.4 * half
        and min(head[0::2].count(0), head[1::2].count(0)) < 0.1 * half
    ):
        return True
    control = sum(byte < 9 or 13 < byte < 32 for byte in head)
    return control <= max(4, 0.02 * len(head))


def _bytes_of(source: str | Path | bytes | BinaryIO) -> tuple[bytes, str]:
    if isinstance(source, bytes):
        return source, "bytes"
    if isinstance(source, (str, Path)):
        path = Path(source)
        try:
            return path.read_bytes(), str(source)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or type(error).__name__
            raise UnreadableDocument(f"{source}: cannot be read: {reason}", source=str(source)) from None
    return source.read(), str(getattr(source, "name", "file"))
