"""Which encoding some bytes are text in, and whether they are text at all."""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections import Counter

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16: its mark begins with that of UTF-16
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_HEAD = 8192
"""Bytes that are looked at to tell text from anything else."""
_SAMPLE = 65536
"""Bytes that the detector is shown: more makes it slower and no surer."""
_UNLIKELY = (
    "mac_cyrillic", "mac_greek", "mac_iceland", "mac_latin2", "mac_roman", "mac_turkish", "hp_roman8", "ptcp154",
    "cp037", "cp1026", "cp1140", "cp273", "cp424", "cp500", "cp775", "cp855", "cp857", "cp858", "cp860", "cp861",
    "cp862", "cp863", "cp865", "cp869", "johab", "iso8859_3", "iso8859_10", "iso8859_14", "iso8859_16", "kz1048",
)  # fmt: skip
"""Code pages that no business document has been written in for a long time, and that short texts are taken for."""

_CONTROL = bytes(byte for byte in range(32) if byte not in b"\t\n\v\f\r\x1a\x1b") + b"\x7f"
_PRINTABLE = bytes(range(32, 127)) + b"\t\n\r"

_WESTERN = frozenset(
    "äöüÄÖÜßéèêëàâçîïôùûœæñáíóúåøÅØÆÉÈÀÇÓÍÁÚÑãõìòÊ€£§°«»„“”‘’–—…•·²³½¼®©™¿¡\xa0´¥ýþðÿÂÊÎÔÛËÏÒÙÕÝÞÐŒºª×÷±¢¤‰"
)
_NOT_A_WORD = re.compile(r"[À-ÖØ-öø-ÿŒœŠšŽžŸƒ]{4,}")
_SYMBOL_IN_A_WORD = re.compile(r"[a-z][¹²³¿¼½¾£¥¢¡¦¤±ªµ¶¸»«†‡‰‹›ˆ˜](?=[a-z])")
_TURKISH = re.compile(r"[a-zý]þ\b")  # the Icelandic thorn ends no word


def encoding_of(data: bytes) -> str | None:
    """The encoding of some text: by byte-order mark, UTF-8, UTF-16 without a mark, else what is likeliest.

    UTF-8 with a few bad bytes is still UTF-8. Other bytes are in the code page of Western Europe (cp1252, of which
    Latin-1 is a part) when they read well in it, since the detector is unsure about short texts.

    :returns: a name that ``bytes.decode`` knows, or ``None`` when there is none.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding
    special = _unmarked_utf16(data[:_HEAD]) or ("iso2022_jp_2" if b"\x1b$" in data[:_SAMPLE] else None)
    if special:
        return special
    unicode = data.decode("utf-8", "replace")
    bad = unicode.count("\ufffd")
    if not bad or 10 * bad <= sum(unicode.count(character) for character in set(unicode) if character > "\x7f") - bad:
        return "utf-8"
    return _code_page(data[:_SAMPLE])


def _code_page(sample: bytes) -> str | None:
    western = sample.decode("cp1252", "replace")
    if _reads_well(western):
        if _TURKISH.search(western):
            return "cp1254"
        return "iso8859-15" if "¤" in western else "cp1252"  # where nobody's currency sign is, the euro is
    from charset_normalizer import from_bytes

    best = from_bytes(sample, cp_exclusion=list(_UNLIKELY)).best()
    return best.encoding if best else None


def is_text(data: bytes) -> bool:
    """Whether bytes look like text: few control characters, unless they are UTF-16 or UTF-32."""
    head = data[:_HEAD]
    if head.startswith(tuple(mark for mark, _ in _MARKS)) or _unmarked_utf16(head):
        return True
    return _count(head, _CONTROL) <= max(4, 0.02 * len(head))


def _unmarked_utf16(head: bytes) -> str | None:
    """UTF-16 without a mark, by what the high byte of each unit is.

    NUL for nearly every one in Western text; one of a few in other alphabets. Chinese and its neighbours use many, so
    that there the text has to be made of them.
    """
    head = head[: len(head) // 2 * 2]
    units = len(head) // 2
    for high, low, encoding in ((head[1::2], head[0::2], "utf-16-le"), (head[0::2], head[1::2], "utf-16-be")):
        if units < 2 or 0 not in high or low.count(0) > 0.1 * units:
            continue
        if high.count(0) >= 0.7 * units:
            return encoding
        if units < 16 or _count(head, _PRINTABLE) > 0.8 * len(head):
            continue
        few = sum(count for _, count in Counter(high).most_common(3)) >= 0.9 * units
        text = head.decode(encoding, "replace")
        known = sum(character in "\t\n\r\f" or unicodedata.category(character)[0] != "C" for character in text)
        far_east = sum("\u3000" <= character <= "\u9fff" or "\uac00" <= character <= "\uffef" for character in text)
        foreign = sum(character > "\x7f" for character in text)
        if known >= 0.97 * len(text) and (few or far_east - text.count("\ufffd") >= 0.9 * foreign):
            return encoding
    return None


def _reads_well(text: str) -> bool:
    """Whether what is not ASCII is what Western text has: letters with accents, quotes, currency signs.

    Other code pages show as words of nothing but accents (Cyrillic, Greek), or as symbols within words (Polish).
    """
    strange = [character for character in text if character > "\x7f"]
    odd = 3 * len(_NOT_A_WORD.findall(text)) + 3 * len(_SYMBOL_IN_A_WORD.findall(text))
    return sum(character in _WESTERN for character in strange) - odd >= 0.9 * len(strange)


def _count(data: bytes, wanted: bytes) -> int:
    return len(data) - len(data.translate(None, wanted))
