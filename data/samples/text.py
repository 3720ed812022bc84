"""Sample invoices as plain text, as an old accounting system prints them or a mail carries them."""

from __future__ import annotations

from samples.model import Invoice


def columns(one: Invoice) -> str:
    """A printed page: seller on top, number and dates to the right, items in columns."""
    label = one.labels
    facts = [(label["number"], one.number), (label["date"], one.day(one.issued)), *one.extra]
    if one.due:
        facts.append((label["due"], one.day(one.due)))
    top = [*one.seller, ""]
    address = [f"{label['to']}:", *(f"  {line}" for line in one.buyer)]
    right = [f"{name}: {value}" for name, value in facts]
    height = max(len(address), len(right))
    address += [""] * (height - len(address))
    right += [""] * (height - len(right))
    body = [f"{a:<38}{b}".rstrip() for a, b in zip(address, right, strict=True)]
    return "\n".join([*top, label["title"], "", *body, "", *items(one), "", *totals(one), "", *closing(one)]) + "\n"


def mail(one: Invoice) -> str:
    """An invoice in the body of a mail: short lines, no columns for the head."""
    label = one.labels
    head = [f"{label['title']} {one.number}", f"{label['date']}: {one.day(one.issued)}"]
    head += [f"{label['due']}: {one.day(one.due)}"] if one.due else []
    head += [f"{name}: {value}" for name, value in one.extra]
    who = [", ".join(one.seller), f"{label['to']}: {', '.join(one.buyer)}"]
    return "\n".join([*head, "", *who, "", *items(one), "", *totals(one), "", *closing(one)]) + "\n"


def items(one: Invoice) -> list[str]:
    """The item table."""
    label = one.labels
    head = f"{label['item']:<36}{label['qty']:>8}{label['price']:>14}{label['amount']:>14}"
    rows = [
        f"{line.description:<36}{one.quantity(line.quantity):>8}"
        f"{one.money(line.unit_price) if line.unit_price else '':>14}{one.money(line.amount):>14}"
        for line in one.lines
    ]
    return [head, "-" * len(head), *rows, "-" * len(head)]


def totals(one: Invoice) -> list[str]:
    """Net, taxes and total."""
    label = one.labels
    rows = [(label["net"], one.net), *one.taxes, (label["total"], one.total)]
    return [f"{name:>52}{one.priced(value):>20}" for name, value in rows]


def closing(one: Invoice) -> list[str]:
    """What stands under it."""
    return [line for line in (one.note, *one.footer) if line]
