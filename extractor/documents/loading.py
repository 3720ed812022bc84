"""From a path, bytes or an open file to a Document."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from extractor import plugins
from extractor.documents.document import Document
from extractor.documents.kinds import LOCKED, kind_of
from extractor.documents.passwords import given
from extractor.errors import (
    ConfigurationError,
    EmptyDocument,
    EncryptedDocument,
    ExtractorError,
    UnreadableDocument,
    UnsupportedDocument,
    UsageError,
)

GROUP = "extractor.loaders"
LIMIT = 100 * 1024 * 1024
"""Bytes of one document at the most: what is larger is no business document."""

QUICK = 16 * 1024
"""Bytes of a text that is read in less than a millisecond."""

READS = "this version reads plain text and PDF with a text layer"


def load(
    source: str | Path | bytes | BinaryIO,
    *,
    name: str | None = None,
    limit: int = LIMIT,
    passwords: Sequence[str] | None = None,
) -> Document:
    """Read a document: a path, bytes, or a file opened in binary mode.

    :param name: what people know it by; the path by default.
    :param limit: bytes that a document has at the most.
    :param passwords: to try where it asks for one; by default those of the environment (``EXTRACTOR_PASSWORDS``).
    :raises DocumentError: when it cannot be read, saying why in one line: :class:`UnsupportedDocument` for kinds that
        no loader reads and files above the limit, :class:`UnreadableDocument` for what cannot be opened or is broken,
        :class:`EncryptedDocument` when it asks for a password, :class:`EmptyDocument` when there is no text in it.
    :raises UsageError: when the source is none of these.
    """
    if isinstance(source, (str, Path)):
        label = name or str(source)
        data = read_bytes(Path(source), label, limit)
    elif isinstance(source, (bytes, bytearray, memoryview)):
        label, data = name or "bytes", bytes(source)
    elif hasattr(source, "read"):
        label = name or _name_of(source)
        data = _bytes_in(source, label, limit)
    else:
        raise UsageError(f"a document is a path, bytes or a binary file, not {type(source).__name__}")
    if not data:
        raise EmptyDocument(f"{label}: the file is empty (0 bytes)", source=label)
    if len(data) > limit:
        raise _too_large(label, len(data), limit)
    known = given.set(passwords if passwords is not None else given.get())
    try:
        return _loaded(data, label)
    finally:
        given.reset(known)


def is_quick(data: bytes) -> bool:
    """Whether bytes are read sooner than a thread takes them up: a short text is, a PDF of any size may not be."""
    return len(data) <= QUICK and b"\0" not in data and data.lstrip()[:5] != b"%PDF-"


def _loaded(data: bytes, label: str) -> Document:
    loader_name = _loader_of(data, label)
    loader = plugins.load(GROUP, loader_name)
    try:
        document = loader(data, label)
    except ExtractorError:
        raise
    except Exception as error:  # a loader meets hostile bytes: whatever breaks in it is about this document
        raise UnreadableDocument(
            f"{label}: the file is broken ({type(error).__name__} in the loader {loader_name!r})", source=label
        ) from error
    if not isinstance(document, Document):
        raise ConfigurationError(f"the loader {loader_name!r} returned {type(document).__name__}, not a Document")
    return document


def _loader_of(data: bytes, label: str) -> str:
    """The name of the loader for some bytes.

    :raises DocumentError: when there is none.
    """
    kind = kind_of(data, label)
    if kind is None:
        raise UnsupportedDocument(f"{label}: binary file of an unknown kind is not read; {READS}", source=label)
    declared = plugins.declared(GROUP)
    for name in kind.loaders:
        if name in declared:
            return name
    if kind == LOCKED:
        raise EncryptedDocument(
            f"{label}: the office document asks for a password", source=label, hint="save a copy without one"
        )
    raise UnsupportedDocument(f"{label}: {kind.label} is not read yet; {READS}", source=label)


def read_bytes(path: Path, label: str, limit: int = LIMIT) -> bytes:
    """The bytes of a file. Only regular files are opened: reading a pipe would wait for ever.

    :param label: what people know the file by.
    :param limit: bytes that it has at the most.
    :raises UnreadableDocument: when it cannot be read, or is no regular file.
    :raises UnsupportedDocument: when it is larger than the limit; nothing of it is read then.
    """
    try:
        known = path.stat()
        if stat.S_ISDIR(known.st_mode):
            listable = os.access(path, os.R_OK | os.X_OK)
            raise _unreadable(label, "it is a folder" if listable else "it is a folder that cannot be listed")
        if not stat.S_ISREG(known.st_mode):
            raise _unreadable(label, "it is no regular file")
        if known.st_size > limit:
            raise _too_large(label, known.st_size, limit)
        with path.open("rb") as stream:
            return stream.read(limit + 1)
    except (OSError, ValueError) as error:
        raise _unreadable(label, _reason(error)) from None


def _bytes_in(stream: BinaryIO, label: str, limit: int) -> bytes:
    try:
        data: object = stream.read(limit + 1)
    except (OSError, ValueError) as error:
        raise _unreadable(label, _reason(error)) from None
    if not isinstance(data, (bytes, bytearray)):
        raise UsageError(f"{label}: the file is open in text mode", hint="open it in binary mode, 'rb'")
    return bytes(data)


def _name_of(stream: BinaryIO) -> str:
    name = getattr(stream, "name", None)
    return str(name) if isinstance(name, (str, Path)) else "file"


def _reason(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or type(error).__name__


def _unreadable(label: str, reason: str) -> UnreadableDocument:
    return UnreadableDocument(f"{label}: cannot be read: {reason}", source=label)


def _too_large(label: str, size: int, limit: int) -> UnsupportedDocument:
    have, most = (f"{number / 1048576:.1f}".removesuffix(".0") for number in (size, limit))
    return UnsupportedDocument(
        f"{label}: too large for a document: {have} MB is more than the {most} MB that are read",
        source=label,
        hint="split it",
    )
