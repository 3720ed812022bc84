"""The field types: printed values in, typed values out.

Each is an ``Annotated`` type for pydantic and SQLModel fields. A validator that runs before pydantic's own reads what
is printed, so that the types hold under ``strict`` too; typed values pass as they are. Two keys of the validation
context count, and both may be missing:

``style``
    the :class:`~extractor.fields.style.Style` of the document; without it the style is undecided.
``flags``
    a list, to which remarks for people are appended.

To a model every one of them is a string: JSON numbers would go through floats, and a date format would ask the model to
rewrite what it should copy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Annotated, Any, Final, NoReturn

from pydantic import BeforeValidator, PlainSerializer, ValidationInfo, WithJsonSchema
from pydantic_core import PydanticCustomError

from extractor.fields.characters import shown
from extractor.fields.currencies import CODES, candidates_in, parse_currency
from extractor.fields.dates import parse_date
from extractor.fields.numbers import Mark, parse_amount, parse_percent, parse_quantity, unmistakable
from extractor.fields.style import UNDECIDED, Style

_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
_INVISIBLE = re.compile(r"[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")


def _refuse(kind: str, reason: str) -> NoReturn:
    """Raise what pydantic turns into one line of a validation error; ``reason`` may hold braces."""
    raise PydanticCustomError(kind, "{reason}", {"reason": reason})


def _style(info: ValidationInfo) -> Style:
    context = info.context
    style = context.get("style") if isinstance(context, (dict, Mapping)) else None  # dict: what is nearly always there
    return style if isinstance(style, Style) else UNDECIDED


def _flag(info: ValidationInfo, remark: str) -> None:
    flags = info.context.get("flags") if isinstance(info.context, Mapping) else None
    line = f"{info.field_name or 'value'}: {remark}"
    if isinstance(flags, list) and line not in flags:
        flags.append(line)


def _decimal(value: Any, kind: str, read: Callable[[str], Decimal]) -> Decimal:
    """A typed number as it is, a float by its shortest form, a text as ``read`` reads it."""
    if isinstance(value, str):
        try:
            return read(value)
        except ValueError as error:
            _refuse(kind, str(error))
    if isinstance(value, bool) or not isinstance(value, (Decimal, int, float)):
        _refuse(kind, f"write the {kind} as text, as it is printed")
    number = value if isinstance(value, Decimal) else Decimal(repr(value) if isinstance(value, float) else value)
    if not number.is_finite():
        _refuse(kind, f"write the {kind} as a number, as it is printed")
    return number


def _decimal_type(kind: str, read: Callable[[str, Mark | None], Decimal]) -> BeforeValidator:
    def validate(value: Any, info: ValidationInfo) -> Decimal:
        style = _style(info)
        return _undoubted(_decimal(value, kind, lambda text: read(text, style.decimal)), info, style)

    return BeforeValidator(validate)


def _undoubted(number: Decimal, info: ValidationInfo, style: Style) -> Decimal:
    if not style.doubtful_amounts:
        return number
    size = number.copy_abs()
    for doubtful, token in style.doubtful_amounts:
        if doubtful == size:
            _flag(info, f"{token} in the document has two readings; {number} is the one that the model chose")
            break
    return number


def _amount(value: Any, info: ValidationInfo) -> Decimal:
    style = _style(info)

    def read(text: str) -> Decimal:
        number, side = parse_amount(text, style.decimal)
        if side is None or not number:
            return number
        # The mark stands on the side that is out of the ordinary; an account that marks both counts in the holder's
        # favour what is marked CR.
        signed = number.copy_abs() if side == "CR" and style.debits else number.copy_abs().copy_negate()
        _flag(info, f"{shown(text)} is marked {side} and was read as {signed}")
        return signed

    number = _decimal(value, "amount", read)
    if isinstance(value, str) and (printed := style.signs.as_printed(number)) != number:
        _flag(info, f"{shown(value)} was read as {printed}, the sign that the document prints")
        number = printed
    return _undoubted(number, info, style)


def _printed_date(value: Any, info: ValidationInfo) -> date:
    style = _style(info)
    if isinstance(value, str):
        try:
            day = parse_date(value, style.date_order)
        except ValueError as error:
            _refuse("date", str(error))
    elif isinstance(value, datetime):
        if value.time() != time():
            _refuse("date", "this is a date without a time of day; write only the date, as it is printed")
        day = value.date()
    elif isinstance(value, date):
        day = value
    else:
        _refuse("date", "write the date as text, as it is printed")
    for doubtful, token in style.doubtful_dates:
        if doubtful == day:
            _flag(info, f"{token} in the document has two readings; {day} is the one that the model chose")
            break
    return day


def _currency(value: Any, info: ValidationInfo) -> str:
    if not isinstance(value, str):
        _refuse("currency", "write the currency as text, as it is printed or as its ISO 4217 code")
    style = _style(info)
    try:
        code = parse_currency(value, style.named, style.preferred)
    except ValueError as error:
        _refuse("currency", str(error))
    if value.strip().upper() in CODES and code not in (style.preferred, *style.named.codes):
        _question(code, info, style)
    return code


def _question(code: str, info: ValidationInfo, style: Style) -> None:
    """Flag a code that the document does not name: it rests on a symbol that several countries share, or on nothing."""
    symbols = [(symbol, candidates_in(symbol, style.named, style.preferred)) for symbol in sorted(style.named.shared)]
    if any(codes == {code} for _, codes in symbols):
        return
    if symbols:
        _flag(info, f"the document prints {symbols[0][0]} and does not name {code}; the model chose it")
    elif style.named.codes:
        _flag(info, f"the document does not name {code}; the model chose it")


def _text(value: Any, info: ValidationInfo) -> str:
    if isinstance(value, str) and value.isascii() and value.isprintable():
        return " ".join(value.split())
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        _refuse("text", "write this as text, as it is printed")
    text = _CONTROLS.sub("", str(value))
    if isinstance(value, str) and len(text) != len(value):
        _flag(info, "control characters were taken out")
    return " ".join(_INVISIBLE.sub("", text).split())


def _identifier(value: Any, info: ValidationInfo) -> str:
    text = _text(value, info)
    if not text:
        _refuse("identifier", "this is empty; write the identifier as it is printed")
    return text


def _exact(value: Any) -> Any:
    """A Decimal as text that these types read back in any document; table objects may hold what was never validated."""
    return unmistakable(value) if isinstance(value, Decimal) else value


_AS_PRINTED: Final = WithJsonSchema({"type": "string", "description": "as printed"})
_NUMBER_AS_PRINTED: Final = WithJsonSchema(
    # Without the pattern a small model that is held to a schema writes formulas and labels. With more than a minus in
    # front it takes whatever is allowed there for a currency sign; brackets are read all the same where they are sent.
    {"type": "string", "description": "as printed", "pattern": r"^-?[0-9][0-9.,' ]{0,18}$"}
)
_EXACT: Final = PlainSerializer(_exact, when_used="json")

Amount = Annotated[Decimal, BeforeValidator(_amount), _EXACT, _NUMBER_AS_PRINTED]
"""An amount of money: number, sign and currency as printed; the currency is dropped. Never a percentage."""

Quantity = Annotated[Decimal, _decimal_type("quantity", parse_quantity), _EXACT, _NUMBER_AS_PRINTED]
"""A number of things; its unit (``3 Stk``, ``2,5 h``, ``10 x``) is dropped."""

Percent = Annotated[Decimal, _decimal_type("percentage", parse_percent), _EXACT, _NUMBER_AS_PRINTED]
"""The number of a percentage: 19 for ``19 %``."""

PrintedDate = Annotated[date, BeforeValidator(_printed_date), _AS_PRINTED]
"""A date in any usual print; an order of day and month that nothing decides is refused."""

Currency = Annotated[str, BeforeValidator(_currency), _AS_PRINTED]
"""An ISO 4217 code, from a code, a symbol or a name; there is no default currency."""

Identifier = Annotated[str, BeforeValidator(_identifier)]
"""A number that is a name, as text: leading zeros stay. Never empty."""

PrintedText = Annotated[str, BeforeValidator(_text)]
"""Text on one line, without control characters."""

__all__ = ["Amount", "Currency", "Identifier", "Percent", "PrintedDate", "PrintedText", "Quantity"]
