"""Printed dates: numbers in three orders, month names of seven languages, and what has one reading."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from datetime import date
from typing import Literal

from extractor.fields.characters import plain, shown
from extractor.fields.numbers import Ambiguous

Order = Literal["DMY", "MDY", "YMD"]
ORDERS: tuple[Order, Order, Order] = ("DMY", "MDY", "YMD")
LONGEST = 80
_PIVOT = 50
"""Two-digit years below it are of this century: due dates lie ahead, births and foundings behind."""

_MONTH_NAMES = (
    "january januar janner janvier gennaio enero januari janeiro",
    "february februar feber fevrier febbraio febrero februari fevereiro",
    "march marz maerz mars marzo maart mrt marco",
    "april avril aprile abril",
    "may mai maggio mayo mei maio",
    "june juni juin giugno junio junho",
    "july juli juillet luglio julio julho",
    "august aout agosto augustus",
    "september septembre settembre septiembre setiembre setembro",
    "october oktober octobre ottobre octubre outubro",
    "november novembre noviembre novembro",
    "december dezember decembre dicembre diciembre dezembro",
)
_DAY_NAMES = (
    "monday tuesday wednesday thursday friday saturday sunday "
    "montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag "
    "lundi mardi mercredi jeudi vendredi samedi dimanche lunedi martedi mercoledi giovedi venerdi sabato domenica "
    "lunes martes miercoles jueves viernes sabado domingo segunda terca quarta quinta sexta feira "
    "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag"
)
_FILLERS = (
    "the of on dated date day le la du den der dem am vom datum de del di il do da dia el em op a "
    "d l st nd rd th er eme e o"
)


def _prefixes(names: str, shortest: int) -> set[str]:
    return {name[:length] for name in names.split() for length in range(shortest, len(name) + 1)}


def _months() -> dict[str, int]:
    """Every name and every beginning of one of at least three letters that belongs to one month alone."""
    owners: dict[str, set[int]] = {}
    for number, names in enumerate(_MONTH_NAMES, start=1):
        for prefix in _prefixes(names, 3):
            owners.setdefault(prefix, set()).add(number)
    return {prefix: numbers.pop() for prefix, numbers in owners.items() if len(numbers) == 1}


_MONTHS = _months()
_WEEKDAYS = _prefixes(_DAY_NAMES, 2)
_DROPPED = _WEEKDAYS | set(_FILLERS.split())

_TIME = re.compile(
    r"(?<=\d)(?:[t,]| )(?: ?(?:um|at|a) )?\s?\d{1,2}[:h]\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?"
    r" ?(?:am|pm|a\.m\.|p\.m\.|uhr|h|z|utc|gmt|cet|cest|[+-]\d{2}:?\d{2})?$"
    r"|(?<=\d{8})t\d{4}(?:\d{2})?z?$"
)
_ALLOWED = re.compile(r"[a-z\d .,/'()-]*")
_PIECE = re.compile(r"\d+|[a-z]+")
_POINTED = re.compile(r"\d\. ?\d{1,2}\. ?\d")
_NUMERIC = re.compile(  # a pattern that begins with a digit, and then looks behind it, is looked for faster
    r"(\d(?<!\d\d)(?<!\d[./]\d)(?:\d{3}|\d?))([./-])(\d{1,2})\2(\d{4}|\d{1,2})(?!\d|\2\d)"
)
_NAMED = re.compile(
    r"(?<!\d)\d{1,2}[. -]{0,2}(?:of |de )?[^\W\d_]{3,10}[.,]?[ -]?(?:de )?\d{4}(?!\d)"
    r"|(?<![^\W\d_])[^\W\d_]{3,10}\.? \d{1,2}(?:st|nd|rd|th)?,? \d{4}(?!\d)"
)


def parse_date(text: str, order: Order | None = None) -> date:
    """The date that ``text`` prints; a time of day behind it is dropped.

    :param text: the date as printed; nothing else.
    :param order: the order of day, month and year in the document's numeric dates, where it is known.
    :raises Ambiguous: the date has two readings and ``order`` is not known.
    :raises ValueError: the text is no date; the message is written for a language model.
    """
    if len(text) > LONGEST:
        raise ValueError(f"{shown(text)} is too long for a date; write only the date as printed")
    line = _ascii(" ".join(plain(text).split()))
    line = _TIME.sub("", line)
    pieces = _PIECE.findall(line)
    numbers = [piece for piece in pieces if piece.isdecimal()]
    names = [piece for piece in pieces if not piece.isdecimal()]
    if not numbers or not _ALLOWED.fullmatch(line):
        raise ValueError(f"{shown(text)} is not a date; write only the date as printed")
    if any(name not in _MONTHS and name not in _DROPPED for name in names):
        raise ValueError(f"{shown(text)} holds more than a date; write only the date as printed")
    months = [name for name in names if name in _MONTHS]
    if len(months) > 1 and months[0] in _WEEKDAYS:  # "mar" is Tuesday and March
        del months[0]
    if not months or (len(numbers) == 3 and months[0] in _WEEKDAYS):
        return _numeric(numbers, line, text, order)
    found = _with_month(numbers, _MONTHS[months[0]]) if len(months) == 1 else None
    if found is None:
        raise ValueError(f"{shown(text)} is not one full date; a date needs its day, month and year")
    return found


def _ascii(text: str) -> str:
    """Lower case, accents taken off, East Asian date marks as dashes."""
    if text.isascii():
        return text.lower()
    dashed = re.sub(r"[年月년월] ?", "-", text)
    dashed = re.sub(r"[日일]", " ", dashed).replace("º", "").replace("ª", "").replace("°", "").strip()
    return "".join(c for c in unicodedata.normalize("NFKD", dashed.casefold()) if not unicodedata.combining(c))


def _with_month(numbers: list[str], month: int) -> date | None:
    if len(numbers) != 2:
        return None
    day, year = numbers
    if len(day) == 4 or (len(year) <= 2 and int(day) > 31):
        day, year = year, day
    return _date(year, month, day)


def _numeric(numbers: list[str], line: str, text: str, order: Order | None) -> date:
    if len(numbers) == 1 and len(numbers[0]) == 8:
        digits = numbers[0]
        numbers = [digits[:4], digits[4:6], digits[6:]]
    found = readings(numbers)
    if len(numbers) == 3 and order != "YMD" and len(found) > 1:
        found.pop("YMD", None)
    values = set(found.values())
    if len(values) == 1:
        return values.pop()
    if not values:
        raise ValueError(f"{shown(text)} is not one full date; write the day, month and year as printed")
    if order in found:
        return found[order]
    if _POINTED.search(line) and "DMY" in found:  # points belong to the order that begins with the day
        return found["DMY"]
    first, second = sorted(values)[:2]
    raise Ambiguous(
        f"{shown(text)} can be read as {first} or as {second} and nothing in the document decides; "
        "write it as YYYY-MM-DD if the document makes the order clear"
    )


def readings(numbers: list[str]) -> dict[Order, date]:
    """The dates that three numbers, in the order printed, can stand for, by that order."""
    if len(numbers) != 3:
        return {}
    first, second, third = numbers
    if len(first) == 4:
        found: dict[Order, date | None] = {"YMD": _date(first, second, third)}
    else:
        found = {"DMY": _date(third, second, first), "MDY": _date(third, first, second)}
        if len(third) <= 2:
            found["YMD"] = _date(first, second, third)
    return {order: value for order, value in found.items() if value is not None}


def _date(year: str, month: str | int, day: str) -> date | None:
    """The date, if there is such a day and the numbers have the length that their part of a date has."""
    if len(year) not in (2, 4) or len(str(month)) > 2 or len(day) > 2:
        return None
    number = int(year)
    if len(year) == 2:
        number += 2000 if number < _PIVOT else 1900
    if number < 1000:
        return None
    try:
        return date(number, int(month), int(day))
    except ValueError:
        return None


def numeric_dates(text: str) -> Iterator[tuple[str, str, list[str]]]:
    """The numeric dates in a text: the token, the mark between its numbers, and the numbers."""
    for found in _NUMERIC.finditer(text):
        first, mark, second, third = found.groups()
        yield found.group(), mark, [first, second, third]


def named_dates(text: str, at_most: int = 256) -> Iterator[date]:
    """The dates in a text whose month is a word."""
    for found, _ in zip(_NAMED.finditer(text), range(at_most), strict=False):
        try:
            yield parse_date(found.group())
        except ValueError:
            continue


__all__ = ["ORDERS", "Order", "named_dates", "numeric_dates", "parse_date", "readings"]
