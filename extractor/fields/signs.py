"""Which amounts a document prints with a minus, and which without.

A model that copies ``(120.00)`` as ``120.00``, or ``$38.50`` as ``(38.50)``, has the digits right and the sign wrong.
Where the document prints these digits with one sign alone, there is one reading.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice

_MOST = 4000
"""Amounts that are remembered of one document."""

_LARGEST = Decimal(10) ** 15

_AMOUNT = re.compile(
    r"(?=[-(A-Z$£€¥\d])"  # cheaper than to try all that may stand before an amount at every letter
    r"(?P<before>(?:(?<![\w.,)])[-(]|\(-) ?)?"
    r"(?:[A-Z]{3} ?|[$£€¥] ?)?"
    r"(?P<inner>(?<=[A-Z$£€¥ ])-)?"
    r"(?P<number>\d{1,3}(?:[ .,']\d{3}){1,5}[.,]\d\d(?!\d)|\d{1,15}[.,]\d\d(?!\d))"
    r"(?P<after> ?\)|-(?!\w))?"
)


_NO_MARKS = str.maketrans("", "", " .,'")


def _is_negative(before: str, after: str) -> bool:
    bracketed = before.strip().startswith("(") and after.strip() == ")"
    return bracketed or "-" in before or after.strip() == "-"


@dataclass(frozen=True, slots=True)
class Signs:
    """The digits of amounts with two decimals, by the sign that they are printed with."""

    plus: frozenset[str] = frozenset()
    minus: frozenset[str] = frozenset()

    @classmethod
    def of(cls, text: str) -> Signs:
        """The amounts of a text in plain characters; the time taken is linear in its length."""
        found: dict[bool, set[str]] = {True: set(), False: set()}
        for match in islice(_AMOUNT.finditer(text), _MOST):
            before, inner, printed, after = match.group("before", "inner", "number", "after")
            negative = inner is not None or ((before or after) is not None and _is_negative(before or "", after or ""))
            found[negative].add(printed.translate(_NO_MARKS))
            if " " in printed:  # what stands before a space may be another column's
                found[negative].add(printed.rpartition(" ")[2].translate(_NO_MARKS))
        return cls(frozenset(found[False]), frozenset(found[True]))

    def as_printed(self, value: Decimal) -> Decimal:
        """The value with the one sign that its digits are printed with; as it is where both or none are printed."""
        if not value or abs(value) >= _LARGEST or value != round(value, 2):
            return value
        digits = f"{value:.2f}".replace(".", "").replace("-", "")
        if (digits in self.plus) == (digits in self.minus):
            return value
        return value.copy_abs().copy_negate() if digits in self.minus else value.copy_abs()
