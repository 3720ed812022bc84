"""Plain text, in whatever encoding it is."""

from __future__ import annotations

import codecs
import hashlib
import re

from extractor.documents.document import Document, Page
from extractor.errors import EmptyDocument, UnreadableDocument

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16: its mark begins with that of UTF-16
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f\x80-\x9f\ufeff\ufffe\uffff]")


def load(data: bytes, source: str) -> Document:
    """Read plain text; a form feed begins a new page.

    :raises EmptyDocument: when there is no text in it.
    :raises UnreadableDocument: when its bytes are text in no encoding that we know.
    """
    text = clean(decode(data, source))
    if not text.strip():
        raise EmptyDocument(f"{source}: the file holds no text", source=source)
    pages = [page for page in text.split("\f") if page.strip()]
    return Document(
        id=hashlib.sha256(data).hexdigest(),
        source=source,
        media_type="text/plain",
        pages=tuple(Page(number, page.strip("\n")) for number, page in enumerate(pages, start=1)),
        size=len(data),
    )


def decode(data: bytes, source: str) -> str:
    """The text of some bytes: by byte-order mark, as UTF-8, as unmarked UTF-16, else by what is likeliest."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return _likeliest(data, source)
    return _as_utf16(data) or text if "\x00" in text else text


def clean(text: str) -> str:
    """Without NUL and control characters (databases refuse them, models stumble), with one kind of line end."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\v", "\n")
    text = _CONTROL.sub("", text)
    return text.encode("utf-8", "replace").decode("utf-8")


def _as_utf16(data: bytes) -> str | None:
    """Unmarked UTF-16: half of the bytes of Western text are NUL, all on even or all on odd places."""
    even, odd = data[0::2].count(0), data[1::2].count(0)
    half = max(1, len(data) // 2)
    for share, encoding in ((odd / half, "utf-16-le"), (even / half, "utf-16-be")):
        if share > 0.4:
            return data.decode(encoding, "replace")
    return None


def _likeliest(data: bytes, source: str) -> str:
    """Not UTF-8: the Windows code page of Western Europe where that reads well, else what the detector says."""
    utf16 = _as_utf16(data)
    if utf16 is not None:
        return utf16
    western = data.decode("cp1252", "replace")
    if _reads_well(western):
        return western
    from charset_normalizer import from_bytes

    best = from_bytes(data[:65536]).best()
    if best is None:
        raise UnreadableDocument(f"{source}: its bytes are text in no known encoding", source=source)
    return data.decode(best.encoding, "replace")


_WESTERN = frozenset("äöüÄÖÜßéèêëàâçîïôùûœæñáíóúåøÅØÆÉÈÀÇÓÍÁÚÑãõìòÊ€£§°«»„“”‘’–—…•·²³½¼®©™¿¡\xa0´¥")


def _reads_well(text: str) -> bool:
    """Whether what is not ASCII is what Western text has: letters with accents, quotes, currency signs."""
    strange = [character for character in text if ord(character) > 127]
    return sum(character in _WESTERN for character in strange) >= 0.9 * len(strange)
