"""One spelling for characters that mean the same, so that the readers of numbers and dates know only one."""

from __future__ import annotations

import re

POINT = "·"
"""A mark that can only be a decimal mark: the Arabic one and the raised point are spelled so."""

_ZEROS = (
    *(0x0660, 0x06F0, 0x07C0, 0x0966, 0x09E6, 0x0A66, 0x0AE6, 0x0B66, 0x0BE6, 0x0C66, 0x0CE6, 0x0D66, 0x0E50, 0x0ED0),
    *(0x0F20, 0x1040, 0x17E0, 0x1810, 0xFF10, 0x1D7CE, 0x1D7D8, 0x1D7E2, 0x1D7EC, 0x1D7F6),
)
"""Where the decimal digits of other scripts (and the fullwidth and mathematical ones) begin."""

_ALIKE = {
    " ": "\t\n\v\f\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d\u207b",
    "'": "\u2018\u2019\u201b\u02bc\u02b9\u2032\u00b4\u0060\uff07\u066c",
    ",": "\uff0c\ufe50\u060c",
    ".": "\uff0e\ufe52\u3002",
    POINT: "\u066b\u2219\u22c5",
    "(": "\uff08",
    ")": "\uff09",
    "+": "\uff0b",
    "/": "\uff0f\u2044\u2215",
    ":": "\uff1a",
    "%": "\uff05\ufe6a\u066a",
    "$": "\uff04\ufe69",
    "£": "\uffe1\u20a4",
    "¥": "\uffe5",
    "₩": "\uffe6",
}
_INVISIBLE = (
    "\u00ad\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff\x00"
)

_TABLE = {
    **{ord(alike): mark for mark, spellings in _ALIKE.items() for alike in spellings},
    **{zero + digit: str(digit) for zero in _ZEROS for digit in range(10)},
}
_UNSEEN = re.compile(f"[{_INVISIBLE}]+")


def plain(text: str) -> str:
    """``text`` with ASCII digits, spaces, dashes, apostrophes and marks, and without invisible characters."""
    if text.isascii():
        return text.replace("\x00", "").translate(_TABLE)
    return _UNSEEN.sub("", text).translate(_TABLE)


def shown(text: str) -> str:
    """The beginning of ``text`` in quotes, to name it in a message."""
    line = " ".join(text.split()).encode(errors="replace").decode()
    return f'"{line[:40]}…"' if len(line) > 40 else f'"{line}"'


__all__ = ["POINT", "plain", "shown"]
