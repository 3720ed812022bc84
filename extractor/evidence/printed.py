"""Numbers, dates and currencies on a page, by what they come to: whatever the style, the same value is the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal

from extractor.fields import dates, numbers
from extractor.fields.characters import POINT, plain
from extractor.fields.currencies import candidates_in, is_currency
from extractor.fields.numbers import spell_out
from extractor.fields.style import Style

Place = tuple[int, int]
"""Start and end in the text of a page."""

_NUMBER = re.compile(
    rf"(?<![\d{POINT}])(?<!\d[.,'/_-])(?<!\d:)[.,]?\d+(?:[.,'{POINT}]\d+)*(?:[.,][-=]{{1,2}}|/[-=])?(?![.,'{POINT}/_:-]?\d)"
)
_GROUPED = re.compile(r"(?<![\d.,'/_-])\d{1,3}(?: \d{3})+(?:[.,]\d{1,4})?(?![.,'/_-]?\d)")
_LETTERS_BEFORE = re.compile(r"[^\W\d_]+$")
_WORD_BEHIND = re.compile(r"[^\W_]+")
_NOT_OF_UNITS = re.compile(r"\d(?<!m[23])")
_NAMED = re.compile(
    r"(?<!\d)\d{1,2}(?:st|nd|rd|th|er)?[. /-]{0,2}(?:of |de |d'|d’)?[^\W\d_]{3,10}"
    r"[.,]?[ /-]{0,2}(?:de |del )?\d{2,4}(?!\d)"
    r"|(?<![^\W\d_])[^\W\d_]{3,10}\.? \d{1,2}(?:st|nd|rd|th)?,? ?\d{4}(?!\d)"
    r"|(?<!\d)\d{4}[ -/][^\W\d_]{3,10}[ -/]\d{1,2}(?!\d)"
)
_NUMERIC = re.compile(r"(?<![\d.,/-])(\d{1,4}) ?([./-]) ?(\d{1,2}) ?\2 ?(\d{1,4})(?!\d|[/-]\d|\.\d)")
_EIGHT = re.compile(r"(?<![\d.,/-])(?:19|20)\d{6}(?![\d.,/-]\d|\d)")
_ASIAN = re.compile(r"(?<!\d)\d{4} ?[年년] ?\d{1,2} ?[月월] ?\d{1,2} ?[日일]")
_CURRENCY = re.compile(r"[A-Za-z]{0,3}[$¢£¥฿৳₠-⃀﷼][A-Z]{0,3}|S/|[円元]|[^\W\d_]{2,10}")


def numbers_in(text: str, style: Style) -> Iterator[tuple[Decimal, Place]]:
    """Every number that stands by itself, without its sign; one that has two readings in this style has both.

    :param text: of a page; in :func:`aligned` characters, so that places are those of the page.
    """
    for found in _NUMBER.finditer(text):
        start, end = found.span()
        if _is_by_itself(text, start, end):
            for value in _values(found.group(), style):
                yield value, (start, end)
    if " " in text:
        for found in _GROUPED.finditer(text):
            if _is_by_itself(text, found.start(), found.end()):
                for value in _values(found.group(), style):
                    yield value, found.span()


def _is_by_itself(text: str, start: int, end: int) -> bool:
    """Letters before a number make it an identifier, unless they are a currency; behind it stands its unit."""
    before = _LETTERS_BEFORE.search(text, max(0, start - 12), start)
    if before is not None and not is_currency(before.group()):
        return False
    if start and text[start - 1] == "_":
        return False
    if before is None and start > 1 and text[start - 1] in "-/" and text[start - 2].isalnum():
        return False  # RE-2024: an identifier, no minus
    behind = _WORD_BEHIND.match(text, end)
    if behind is not None and _NOT_OF_UNITS.search(behind.group()):
        return False
    after = end if behind is None else behind.end()
    return not (text[after : after + 1] in ("-", "/", "_") and text[after + 1 : after + 2].isalnum() and behind is None)


def _values(printed: str, style: Style) -> set[Decimal]:
    try:
        found = numbers.readings(spell_out(printed))
    except ArithmeticError:
        return set()
    if style.decimal is not None and style.decimal in found:
        return {found[style.decimal]}
    return set(found.values())


def dates_in(text: str, style: Style) -> Iterator[tuple[date, Place]]:
    """Every date; one that has two readings in this style has both."""
    for found in _NUMERIC.finditer(text):
        first, _, second, third = found.groups()
        readings = dates.readings([first, second, third])
        if style.date_order in readings:
            yield readings[style.date_order], found.span()
        else:
            yield from ((day, found.span()) for day in set(readings.values()))
    for pattern in (_NAMED, _EIGHT, _ASIAN):
        for found in pattern.finditer(text):
            day = _named(found.group())
            if day is not None:
                yield day, found.span()


def _named(printed: str) -> date | None:
    try:
        return dates.parse_date(printed)
    except ValueError:
        return None


def currencies_in(text: str, style: Style) -> Iterator[tuple[str, Place]]:
    """Every word or sign that stands for a currency in this document, as its code."""
    for found in _CURRENCY.finditer(text):
        word = found.group()
        if word.islower() and len(word) < 4 and word not in ("kr", "zł", "lei"):
            continue
        for code in candidates_in(word, style.named, style.preferred):
            yield code, found.span()


def aligned(text: str) -> str:
    """A text in plain characters, as many as it had: places in it are places in the text."""
    if text.isascii():
        return text
    spelled = plain(text)
    return spelled if len(spelled) == len(text) else "".join(plain(character) or " " for character in text)
