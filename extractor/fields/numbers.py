"""Printed numbers: which values a text can stand for, and which of them it does.

A number is read under two hypotheses, that the decimal mark is ``.`` and that it is ``,``. Nearly every number has the
same value under both, or is no number under one of them. What is left (``1.234``: one group of three after a lone
mark) has two readings, and only the document can decide between them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Literal

from extractor.fields.characters import POINT, plain, shown
from extractor.fields.currencies import is_currency

Mark = Literal[".", ","]
MARKS: tuple[Mark, Mark] = (".", ",")
LONGEST = 80
"""A longer text is no number; it is refused before it is looked at."""

_SIMPLE = re.compile(r"-?[0-9]{1,15}(?:[.,][0-9]{2})?")  # most of what is printed: it has one reading in any document
_WHOLE = re.compile(
    r"\d*"
    r"|[1-9]\d{0,2}([.,' ])\d{3}(?:\1\d{3})*"  # 1.234.567
    r"|[1-9]\d?([.,' ])\d\d(?:\2\d\d)*\2\d{3}"  # 12,34,567
)
_ONE_MARK = re.compile(
    r"[1-9]\d{0,2}([.,])\d{3}(?:\1\d{3})*\1\d\d"
)  # 1.500.00: the last mark can only be the decimal one
_NO_CENTS = re.compile(r"(?<=\d)([.,])[-=]{1,2}(?![-=\d])")  # 42.- and 1.234,--
_DASHED = (".-", ",-", ".=", ",=")
_NO_PAISE = re.compile(r"(?<=\d) ?/[-=](?![-=\d])")  # 500/-
_LOOSE = re.compile(rf" ?([.,'{POINT}]) ?")
_ZERO_AS_LETTER = re.compile(r"(?<=[\d.,'])[Oo]+(?![^\W\d_])")
_ONE_AS_LETTER = re.compile(r"(?<=[\d.,'])[lI|](?=[\d.,'])")
_EXPONENT = re.compile(r"[-+]?\d+(?:\.\d+)?E[-+]\d{1,2}")  # how Python writes some Decimals
_PART = re.compile(
    rf"(?P<number>[.,{POINT}]?\d[\d.,' {POINT}]*)"
    r"|(?P<word>S/\.?|(?:[^\W\d_]|[$¢£¥฿৳៛₠-⃀﷼])+(?:(?<=[^\W\d_])\.)?)"
    r"|(?P<sign>[-+])|(?P<open>\()|(?P<close>\))|(?P<noise>[ *:=|\"']+)|(?P<other>.)"
)
_DOTTED_CODE = re.compile(r"[A-Z]{3}\.(?=\d)")
_UNIT = re.compile(r"[^\W\d_](?:[^\d\n]|(?<=m)[23](?![\d.,])){0,23}")
_LETTER = re.compile(r"[^\W\d_]")
_MULTIPLIERS = (
    "k K T M Mio Mill Mln mln Mrd Bn bn tsd Tsd Tausend thousand million millions Million Millionen billion Milliarden "
    "lakh lakhs crore crores mille milioni millones dozen Dutzend"
)
_MULTIPLIER_WORDS = frozenset(_MULTIPLIERS.split())
_PERCENT = re.compile(
    r"%|\b(?:percent|per cent|pct|prozent|v\.h\.|pour ?cent|per cento|por ciento|por cento|procent)(?!\w)",
    re.IGNORECASE,
)


class Ambiguous(ValueError):
    """The text has two readings, and nothing decides between them."""


@dataclass(frozen=True, slots=True)
class Printed:
    """A printed number taken apart: its digits and marks, its sign, and the mark ``CR`` or ``DR`` behind it."""

    body: str
    negative: bool = False
    side: Literal["CR", "DR"] | None = None


def spell_out(text: str) -> str:
    """``text`` with zeros where a dash stands for them: ``1.234,-`` becomes ``1.234,00``."""
    if any(sign in text for sign in _DASHED):
        text = _NO_CENTS.sub(r"\g<1>00", text)
    return _NO_PAISE.sub(f"{POINT}00", text) if "/-" in text or "/=" in text else text


@lru_cache(maxsize=1024)  # a number is taken apart several times on its way through one document
def readings(body: str) -> Mapping[Mark, Decimal]:
    """The value of ``body`` (digits and marks alone) under each decimal mark that it can be read with."""
    values = {mark: _read(body, mark) for mark in MARKS}
    return {mark: value for mark, value in values.items() if value is not None}


def _read(body: str, mark: Mark) -> Decimal | None:
    if _ONE_MARK.fullmatch(body):
        body = f"{body[:-3]}{POINT}{body[-2:]}"
    whole, _, decimals = body.partition(POINT if POINT in body else mark)
    if (decimals and not decimals.isdecimal()) or not (whole or decimals) or not _WHOLE.fullmatch(whole):
        return None
    digits = "".join(filter(str.isdecimal, whole)) or "0"
    return Decimal(f"{digits}.{decimals}" if decimals else digits)


def choose(body: str, decimal: Mark | None) -> Decimal:
    """The one value that ``body`` stands for in a document whose decimal mark is ``decimal``.

    :raises Ambiguous: there are two, and the mark is not known.
    :raises ValueError: there is none.
    """
    tight = _LOOSE.sub(r"\1", body)
    found = readings(tight)
    values = set(found.values())
    if len(values) == 1:
        return values.pop()
    if not values or tight != body:
        raise ValueError(f"{shown(body)} is not one number")
    if decimal is not None:
        return found[decimal]
    raise Ambiguous(
        f"{body} can be read as {found[',']} or as {found['.']} and nothing in the document decides; "
        "write it with two decimals, as in a plain number without group separators, if you know which it is"
    )


def take_apart(text: str, is_unit: Callable[[str], bool]) -> Printed:
    """Find the one number in ``text``.

    :param text: in plain characters.
    :param is_unit: tells whether a word around the number may be dropped.
    :raises ValueError: there is not exactly one number, or something else stands in the text.
    """
    numbers: list[str] = []
    shape = ""
    side: Literal["CR", "DR"] | None = None
    for part in _PART.finditer(spell_out(text)):
        kind, token = part.lastgroup, part.group()
        if kind == "number":
            numbers.append(token.rstrip(f" '.,{POINT}"))
        elif kind == "word" and numbers and token.rstrip(".").upper() in ("CR", "DR"):
            side = "CR" if token[0] in "cC" else "DR"
            continue
        elif kind == "other" or (kind == "word" and not is_unit(token)):
            raise ValueError(f"{shown(text)} holds more than a number")
        shape += {"number": "0", "word": "w", "open": "(", "close": ")", "sign": token}.get(kind or "", "")
    return Printed(_join(numbers, shape, text), "-" in shape or "(" in shape, side)


_SHAPE = re.compile(r"[-+]?0|0[-+]|\([-+]?0\)|-\(0\)")


def _join(numbers: list[str], shape: str, text: str) -> str:
    between = "0w0" in shape and len(numbers) == 2 and len(numbers[1]) == 2  # 12€50
    if between:
        numbers, shape = [f"{numbers[0]}{POINT}{numbers[1]}"], shape.replace("0w0", "0")
    if len(numbers) != 1 or not _SHAPE.fullmatch(shape.replace("w", "")):
        raise ValueError(f"{shown(text)} is not one number")
    return numbers[0]


def parse_amount(text: str, decimal: Mark | None = None) -> tuple[Decimal, Literal["CR", "DR"] | None]:
    """The amount that ``text`` prints, and the mark ``CR`` or ``DR`` behind it, which the caller has to make sense of.

    :param text: number, sign and currency as printed; nothing else.
    :param decimal: the document's decimal mark, where it is known.
    :raises Ambiguous: the number has two readings and ``decimal`` is not known.
    :raises ValueError: the text is no amount; the message is written for a language model.
    """
    if (simple := _simple(text)) is not None:
        return simple, None
    body = _short(text, "an amount")
    if "%" in body:
        raise ValueError(f"{shown(text)} is a percentage, not an amount; write the amount of money")
    if _EXPONENT.fullmatch(body):
        return Decimal(body), None
    if any(is_currency(code.group()) for code in _DOTTED_CODE.finditer(body)):
        raise ValueError(f"{shown(text)} has a point after the currency; write only the number")
    body = _ONE_AS_LETTER.sub("1", _ZERO_AS_LETTER.sub(lambda found: "0" * len(found.group()), body))
    printed = _explained(body, is_currency, text, "an amount: write only the number as printed, with sign and currency")
    return _signed(printed, decimal), printed.side


def parse_quantity(text: str, decimal: Mark | None = None) -> Decimal:
    """The number in front of a unit, as in ``2,5 h``, ``10 x`` and ``3 Stk.``; raises like :func:`parse_amount`."""
    if (simple := _simple(text)) is not None:
        return simple
    body = _short(text, "a quantity")
    if "%" in body:
        raise ValueError(f"{shown(text)} is a percentage, not a quantity")
    if _EXPONENT.fullmatch(body):
        return Decimal(body)
    number = re.sub(r"^[xX×] ?(?=\d)|(?<=\d) ?[×*]$", "", body)
    letter = _LETTER.search(number)
    unit = number[letter.start() :] if letter else ""
    if unit and (not _UNIT.fullmatch(unit) or _MULTIPLIER_WORDS & set(re.split(r"[ .]", unit))):
        raise ValueError(f"{shown(text)} is not one quantity; write only the number, in full")
    number = number.removesuffix(unit)
    return _signed(_explained(number, _no_unit, text, "a quantity: write only the number"), decimal)


def parse_percent(text: str, decimal: Mark | None = None) -> Decimal:
    """The number of a percentage: 19 for ``19 %`` and for ``19``; raises like :func:`parse_amount`."""
    if (simple := _simple(text)) is not None:
        return simple
    body = _short(text, "a percentage")
    if _EXPONENT.fullmatch(body):
        return Decimal(body)
    number = _PERCENT.sub("", body, count=1)
    return _signed(_explained(number, _no_unit, text, "a percentage: write only its number"), decimal)


def _simple(text: str) -> Decimal | None:
    """The value of a text that is nothing but digits, two decimals and a minus; ``None`` for any other."""
    if _SIMPLE.fullmatch(text) is None:
        return None
    value = Decimal(text.replace(",", "."))
    return value or value.copy_abs()  # there is no -0


def _no_unit(_: str) -> bool:
    return False


def _short(text: str, what: str) -> str:
    if len(text) > LONGEST:
        raise ValueError(f"{shown(text)} is too long for {what}; write only the number as printed")
    return " ".join(plain(text).split())


def _explained(body: str, is_unit: Callable[[str], bool], text: str, what: str) -> Printed:
    try:
        printed = take_apart(body, is_unit)
        choose(printed.body, ".")
    except ValueError:
        raise ValueError(f"{shown(text)} is not {what}") from None
    return printed


def _signed(printed: Printed, decimal: Mark | None) -> Decimal:
    value = choose(printed.body, decimal)
    return value.copy_negate() if printed.negative and value else value


def unmistakable(value: Decimal) -> str:
    """``value`` as text that has one reading in every document: 1.234 is written ``1.2340``."""
    text = format(value, "f")
    return f"{text}0" if len(set(readings(text.lstrip("-")).values())) > 1 else text


__all__ = [
    "MARKS",
    "Ambiguous",
    "Mark",
    "Printed",
    "choose",
    "parse_amount",
    "parse_percent",
    "parse_quantity",
    "readings",
    "spell_out",
    "take_apart",
    "unmistakable",
]
