"""Whatever is printed in a known style comes back as the value it was printed from."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from extractor.fields import Amount, Currency, Identifier, Percent, PrintedDate, PrintedText, Quantity, Style

AMOUNT = TypeAdapter[Decimal](Amount)
DATE = TypeAdapter[date](PrintedDate)
EVERY = [TypeAdapter(kind) for kind in (Amount, Quantity, Percent, PrintedDate, Currency, Identifier, PrintedText)]

decimals = st.builds(
    lambda cents, places: Decimal(cents).scaleb(-places), st.integers(-(10**12), 10**12), st.integers(0, 4)
)
money = st.builds(lambda cents: Decimal(cents).scaleb(-2), st.integers(-(10**12), 10**12))
days = st.dates(date(1950, 1, 1), date(2049, 12, 31))
styles = st.sampled_from(
    [(".", ","), (".", "'"), (".", " "), (".", ""), (",", "."), (",", " "), (",", "\u202f"), (",", "’"), (",", "")]
)
frames = st.sampled_from(["{}", "EUR {}", "{} EUR", "€{}", "{} $", "CHF {}", "Rs. {}"])
signs = st.sampled_from(["-{}", "{}-", "({})", "\u2212{}", "- {}"])

MONTHS = [
    "January February March April May June July August September October November December",
    "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "januari februari maart april mei juni juli augustus september oktober november december",
    "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
]
NUMERIC = {"DMY": "{d:02}/{m:02}/{y}", "MDY": "{m:02}/{d:02}/{y}", "YMD": "{s:02}/{m:02}/{d:02}"}


def printed(value: Decimal, decimal: str, group: str, sign: str, frame: str) -> str:
    """``value`` as a document of that style prints it."""
    text = f"{abs(value):,f}".replace(",", "\0").replace(".", decimal).replace("\0", group)
    return frame.format(sign.format(text) if value < 0 else text)


@settings(max_examples=300, deadline=None)
@given(decimals, styles, frames, signs)
def test_amounts_come_back(value: Decimal, style: tuple[str, str], frame: str, sign: str) -> None:
    """Any Decimal, printed in any style that is decided, is read back exactly."""
    decimal, group = style
    known = Style(decimal="." if decimal == "." else ",")
    assert AMOUNT.validate_python(printed(value, decimal, group, sign, frame), context={"style": known}) == value


@settings(max_examples=200, deadline=None)
@given(money, styles, frames, signs)
def test_cents_need_no_style(value: Decimal, style: tuple[str, str], frame: str, sign: str) -> None:
    """An amount with two decimals has one reading in every document."""
    for known in (Style(), Style(decimal="."), Style(decimal=",")):
        assert AMOUNT.validate_python(printed(value, *style, sign, frame), context={"style": known}) == value


@settings(max_examples=200, deadline=None)
@given(decimals)
def test_typed_values_and_json_come_back(value: Decimal) -> None:
    """A Decimal passes unchanged, and its JSON form reads back in every style."""
    assert AMOUNT.validate_python(value) is value
    for known in (Style(), Style(decimal="."), Style(decimal=",")):
        assert AMOUNT.validate_json(AMOUNT.dump_json(value), context={"style": known}) == value


@settings(max_examples=200, deadline=None)
@given(
    days,
    st.sampled_from(MONTHS),
    st.sampled_from(["{d} {n} {y}", "{d}. {n} {y}", "{n} {d}, {y}", "{d} de {n} de {y}", "{d}-{a}-{y}"]),
)
def test_named_dates_come_back(day: date, months: str, form: str) -> None:
    """A date with a month name of any language is read back without a style."""
    name = months.split()[day.month - 1]
    abbreviated = name if name[:3] == "jui" else name[:3]
    assert DATE.validate_python(form.format(d=day.day, n=name, a=abbreviated, y=day.year)) == day


@settings(max_examples=200, deadline=None)
@given(days, st.sampled_from(["DMY", "MDY", "YMD"]))
def test_numeric_dates_come_back(day: date, order: str) -> None:
    """A numeric date in the document's order, an ISO date and a date with points are read back."""
    context = {"style": Style.of("", date_order=order)}  # type: ignore[arg-type]
    parts = {"d": day.day, "m": day.month, "y": day.year, "s": day.year % 100}
    assert DATE.validate_python(NUMERIC[order].format(**parts), context=context) == day
    assert DATE.validate_python(day.isoformat(), context=context) == day
    assert DATE.validate_python(f"{day:%Y%m%d}", context=context) == day
    assert DATE.validate_python("{d:02}.{m:02}.{y}".format(**parts)) == day
    assert DATE.validate_python(day, context=context) == day


@settings(max_examples=100, deadline=None)
@given(
    st.lists(money, min_size=1, max_size=20),
    st.lists(days, min_size=1, max_size=10),
    styles,
    st.sampled_from(["DMY", "MDY"]),
)
def test_the_style_of_a_printed_document_is_found(
    amounts: list[Decimal], dates: list[date], style: tuple[str, str], order: str
) -> None:
    """A document printed in one style is read in that style, and each of its values comes back."""
    shown = [printed(amount, *style, "-{}", "EUR {}") for amount in amounts]
    when = [NUMERIC[order].format(d=day.day, m=day.month, y=day.year) for day in dates]
    found = Style.of("\n".join([*shown, *when]))
    assert found.decimal == style[0]
    assert found.date_order == (order if any(day.day > 12 for day in dates) else None)
    assert [AMOUNT.validate_python(text, context={"style": found}) for text in shown] == amounts
    if found.date_order:
        assert [DATE.validate_python(text, context={"style": found}) for text in when] == dates


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=60), st.text(alphabet="0123456789.,'- /()€$EURx%", max_size=40)))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text makes a type, or the style of a document, fail in any other way than by a validation error."""
    context = {"style": Style.of(text), "flags": []}
    for adapter in EVERY:
        try:
            value = adapter.validate_python(text, context=context)
        except ValidationError:
            continue
        assert adapter.validate_python(value, context=context) == value
