"""What kind of file some bytes are: by what they are first, by what they are called second.

A kind is found without importing any loader. A loader is declared as an entry point of the group ``extractor.loaders``,
``name = "module:function"``, where the function is ``load(data: bytes, source: str) -> Document`` and the name says
what it reads: a media type (``image/png``), a kind (``png``, ``docx``, ``eml``), or a family (``image``, ``office``,
``text``), the nearest one wins. A suffix that is not known here is a kind of its own: ``.dwg`` is read by a loader
called ``dwg``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath

from extractor.documents.encodings import is_text
from extractor.errors import UnreadableDocument


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file.

    :ivar name: short, often the suffix.
    :ivar label: what people call it.
    :ivar family: kinds that one loader may read alike.
    :ivar is_binary: whether its files are known by their first bytes.
    """

    name: str
    media_type: str
    label: str
    family: str = ""
    is_binary: bool = True

    @property
    def loaders(self) -> tuple[str, ...]:
        """The names of loaders that read it, the nearest first."""
        return tuple(name for name in (self.media_type, self.name, self.family) if name)


_OOXML = "application/vnd.openxmlformats-officedocument."
PDF = Kind("pdf", "application/pdf", "PDF")
TEXT = Kind("txt", "text/plain", "plain text", "text", is_binary=False)
LOCKED = Kind("locked-office", "application/x-ole-storage", "office document", "office")
"""An office document that asks for a password: one OLE container, whatever is in it."""

_KINDS = {
    kind.name: kind
    for kind in (
        PDF, TEXT, LOCKED,
        Kind("png", "image/png", "PNG image", "image"),
        Kind("jpeg", "image/jpeg", "JPEG image", "image"),
        Kind("gif", "image/gif", "GIF image", "image"),
        Kind("tiff", "image/tiff", "TIFF image", "image"),
        Kind("bmp", "image/bmp", "BMP image", "image"),
        Kind("webp", "image/webp", "WebP image", "image"),
        Kind("heic", "image/heic", "HEIC image", "image"),
        Kind("svg", "image/svg+xml", "SVG image", "", is_binary=False),
        Kind("docx", _OOXML + "wordprocessingml.document", "Word document", "office"),
        Kind("xlsx", _OOXML + "spreadsheetml.sheet", "Excel workbook", "office"),
        Kind("pptx", _OOXML + "presentationml.presentation", "PowerPoint presentation", "office"),
        Kind("odt", "application/vnd.oasis.opendocument.text", "OpenDocument text", "office"),
        Kind("ods", "application/vnd.oasis.opendocument.spreadsheet", "OpenDocument spreadsheet", "office"),
        Kind("doc", "application/msword", "Word document (97-2003)", "office"),
        Kind("xls", "application/vnd.ms-excel", "Excel workbook (97-2003)", "office"),
        Kind("ppt", "application/vnd.ms-powerpoint", "PowerPoint presentation (97-2003)", "office"),
        Kind("ole", "application/x-ole-storage", "office document (97-2003)", "office"),
        Kind("rtf", "application/rtf", "RTF document", "office"),
        Kind("epub", "application/epub+zip", "e-book"),
        Kind("msg", "application/vnd.ms-outlook", "Outlook message", "email"),
        Kind("eml", "message/rfc822", "e-mail", "email", is_binary=False),
        Kind("mbox", "application/mbox", "mailbox", "email", is_binary=False),
        Kind("p7s", "application/pkcs7-signature", "signed message", is_binary=False),
        Kind("html", "text/html", "HTML page", is_binary=False),
        Kind("xml", "application/xml", "XML file", is_binary=False),
        Kind("json", "application/json", "JSON file", is_binary=False),
        Kind("csv", "text/csv", "CSV table", "text", is_binary=False),
        Kind("tsv", "text/tab-separated-values", "TSV table", "text", is_binary=False),
        Kind("md", "text/markdown", "Markdown text", "text", is_binary=False),
        Kind("zip", "application/zip", "ZIP archive", "archive"),
        Kind("gz", "application/gzip", "gzip archive", "archive"),
        Kind("bz2", "application/x-bzip2", "bzip2 archive", "archive"),
        Kind("xz", "application/x-xz", "xz archive", "archive"),
        Kind("7z", "application/x-7z-compressed", "7z archive", "archive"),
        Kind("rar", "application/vnd.rar", "RAR archive", "archive"),
        Kind("ps", "application/postscript", "PostScript file"),
        Kind("sqlite", "application/vnd.sqlite3", "SQLite database"),
        Kind("elf", "application/x-executable", "program"),
    )
}  # fmt: skip

_OTHER_SUFFIXES = {
    "jpg": "jpeg", "tif": "tiff", "heif": "heic", "htm": "html", "xhtml": "html", "jsonl": "json", "ndjson": "json",
    "markdown": "md", "log": "txt", "text": "txt", "p7m": "p7s", "eps": "ps",
}  # fmt: skip

_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "png"), (b"\xff\xd8\xff", "jpeg"), (b"GIF87a", "gif"), (b"GIF89a", "gif"),
    (b"II*\x00", "tiff"), (b"MM\x00*", "tiff"), (b"{\\rtf", "rtf"), (b"\x1f\x8b", "gz"), (b"\xfd7zXZ\x00", "xz"),
    (b"7z\xbc\xaf\x27\x1c", "7z"), (b"Rar!\x1a\x07", "rar"), (b"%!PS", "ps"), (b"SQLite format 3\x00", "sqlite"),
    (b"\x7fELF", "elf"),
)  # fmt: skip

_IN_ZIP = (
    (b"word/", "docx"), (b"xl/", "xlsx"), (b"ppt/", "pptx"), (b"opendocument.text", "odt"),
    (b"opendocument.spreadsheet", "ods"), (b"application/epub+zip", "epub"),
)  # fmt: skip

_IN_OLE = (
    ("EncryptedPackage", LOCKED.name), ("__substg1.0_", "msg"), ("WordDocument", "doc"), ("Workbook", "xls"),
    ("PowerPoint Document", "ppt"),
)  # fmt: skip

_MAIL = re.compile(
    rb"^(?:received|message-id|mime-version|return-path|dkim-signature|delivered-to):", re.IGNORECASE | re.MULTILINE
)
_HEADER = re.compile(rb"[A-Za-z][A-Za-z0-9-]{1,60}: ?\S")


def kind_of(data: bytes, name: str) -> Kind | None:
    """The kind of some bytes; ``None`` when they are binary data of a kind that is not known.

    :raises UnreadableDocument: when they are not what their name says: an error page saved as ``.pdf``.
    """
    suffix = PurePath(name).suffix.lower().removeprefix(".")
    by_name = _KINDS.get(_OTHER_SUFFIXES.get(suffix, suffix))
    by_content = _by_content(data, by_name)
    if by_content is not None:
        return by_content
    if by_name is not None and by_name.is_binary:
        raise UnreadableDocument(f"{name}: the file is no {by_name.label}, whatever its name says", source=name)
    if is_text(data):
        return by_name or TEXT
    unknown = by_name is None and re.fullmatch(r"[a-z0-9]{1,8}", suffix)
    return Kind(suffix, "", f"binary .{suffix} file") if unknown else None


def _by_content(data: bytes, by_name: Kind | None) -> Kind | None:
    """What the bytes say about themselves."""
    pdf = data.find(b"%PDF-", 0, 1024 + 5)
    if pdf == 0 or (pdf > 0 and (by_name is PDF or b" obj" in data[pdf:])):
        return PDF
    name = next((kind for magic, kind in _MAGIC if data.startswith(magic)), "") or _container(data)
    if name in ("zip", "ole") and by_name is not None and by_name.family in ("office", "email"):
        return by_name
    return _KINDS.get(name) or _kind_of_text(data)


def _container(data: bytes) -> str:
    """Formats that more than the first few bytes tell."""
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        ends = data[:65536] + data[-65536:]
        return next((kind for part, kind in _IN_ZIP if part in ends), "zip")
    if data.startswith(b"\xd0\xcf\x11\xe0"):
        return next((kind for part, kind in _IN_OLE if part.encode("utf-16-le") in data), "ole")
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    if data[4:12] in (b"ftypheic", b"ftypheix", b"ftypmif1", b"ftypmsf1"):
        return "heic"
    if data[:2] == b"BM" and data[6:10] == b"\0\0\0\0":
        return "bmp"
    return "bz2" if data[:3] == b"BZh" and data[4:10] == b"1AY&SY" else ""


def _kind_of_text(data: bytes) -> Kind | None:
    head = data[:4096]
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        head = head.replace(b"\0", b"")  # what follows is ASCII, and is all that is looked for
    head = head.lstrip(b"\xff\xfe\xef\xbb\xbf \t\r\n")
    start = head[:64].lower()
    if start.startswith((b"<!doctype html", b"<html", b"<head", b"<body")):
        return _KINDS["html"]
    if start.startswith(b"<?xml"):
        return _KINDS["html" if b"<html" in head.lower() else "xml"]
    if _HEADER.match(head) and _MAIL.search(head.replace(b"\r\n", b"\n").split(b"\n\n", 1)[0]):
        return _KINDS["eml"]
    return None
