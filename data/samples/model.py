"""What a sample invoice is, and how its numbers and dates are printed."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

MONTHS = {
    "en": [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ],
    "fr": [
        "janvier",
        "février",
        "mars",
        "avril",
        "mai",
        "juin",
        "juillet",
        "août",
        "septembre",
        "octobre",
        "novembre",
        "décembre",
    ],
}


@dataclass(frozen=True)
class Line:
    """One line; ``quantity`` and ``unit_price`` are None where they are not printed."""

    description: str
    quantity: str | None
    unit_price: str | None
    amount: str


@dataclass(frozen=True)
class Invoice:
    """One invoice. Amounts are plain decimals; ``mark`` and ``group`` say how they are printed."""

    number: str
    issued: date
    seller: tuple[str, ...]
    buyer: tuple[str, ...]
    currency: str
    lines: tuple[Line, ...]
    taxes: tuple[tuple[str, str], ...]
    labels: dict[str, str]
    due: date | None = None
    mark: str = "."
    group: str = ","
    dates: str = "iso"
    symbol: str = ""
    bracket_negative: bool = False
    extra: tuple[tuple[str, str], ...] = ()
    footer: tuple[str, ...] = ()
    note: str = ""
    size: int = field(default=10)

    @property
    def net(self) -> Decimal:
        """Sum of the lines."""
        return sum((Decimal(line.amount) for line in self.lines), Decimal(0))

    @property
    def tax(self) -> Decimal:
        """Sum of the taxes."""
        return sum((Decimal(amount) for _, amount in self.taxes), Decimal("0.00"))

    @property
    def total(self) -> Decimal:
        """What is to be paid."""
        return self.net + self.tax

    def money(self, value: str | Decimal) -> str:
        """An amount as this invoice prints it, without currency."""
        number = Decimal(value)
        text = f"{abs(number):,.2f}".replace(",", "\0").replace(".", self.mark).replace("\0", self.group)
        if number < 0:
            return f"({text})" if self.bracket_negative else f"-{text}"
        return text

    def priced(self, value: str | Decimal) -> str:
        """An amount with its currency, as the totals print it."""
        if self.symbol in ("$", "£"):
            text = self.money(value)
            return f"({self.symbol}{text[1:]}" if text.startswith("(") else f"{self.symbol}{text}"
        return f"{self.money(value)} {self.symbol or self.currency}"

    def quantity(self, text: str | None) -> str:
        """A quantity as it is printed."""
        return "" if text is None else text.replace(".", self.mark)

    def day(self, when: date) -> str:
        """A date as it is printed."""
        return {
            "iso": when.isoformat(),
            "german": f"{when:%d.%m.%Y}",
            "uk": f"{when:%d/%m/%Y}",
            "us": f"{MONTHS['en'][when.month - 1]} {when.day}, {when.year}",
            "long": f"{when.day} {MONTHS['en'][when.month - 1]} {when.year}",
            "french": f"{when.day} {MONTHS['fr'][when.month - 1]} {when.year}",
        }[self.dates]

    def gold(self) -> dict[str, object]:
        """What is right."""
        return {
            "invoice_number": self.number,
            "issue_date": self.issued.isoformat(),
            "due_date": self.due.isoformat() if self.due else None,
            "seller": self.seller[0],
            "buyer": self.buyer[0],
            "currency": self.currency,
            "net": str(self.net),
            "tax": str(self.tax),
            "total": str(self.total),
            "line_items": [
                {
                    "description": line.description,
                    "quantity": line.quantity,
                    "unit_price": line.unit_price,
                    "amount": line.amount,
                }
                for line in self.lines
            ],
        }
