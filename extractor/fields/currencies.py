"""Currencies: how they are printed, and which ISO 4217 code a printed one stands for.

There is no default currency. A symbol that several countries share is decided by what else the document names, or not
at all; ``$``, ``£`` and ``Fr.`` stand for the best known of theirs where the document says nothing to the contrary.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from extractor.fields.characters import plain, shown

_CURRENT_CODES = (
    "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF "
    "CLP CNH CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL "
    "HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL "
    "MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON "
    "RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH "
    "UGX USD UYU UZS VED VES VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG"
)
_FORMER_CODES = "ATS BEF CYP DEM EEK ESP FIM FRF GRD HRK IEP ITL LTL LUF LVL MTL NLG PTE SIT SKK"
CODES = frozenset((*_CURRENT_CODES.split(), *_FORMER_CODES.split()))
"""ISO 4217, current, and former ones that are still on paper."""
_LIVING = CODES - set(_FORMER_CODES.split())
_ALSO_WORDS = frozenset(
    ("ALL", "ANG", "BAM", "BHD", "COP", "CUP", "GEL", "LAK", "MAD", "MOP", "PEN", "RON", "SIT", "SOS", "TOP", "TRY")
)
"""Codes that are words or names as well."""

_CERTAIN = {
    "AED": "د.إ",
    "AUD": "A$ AU$ $AU",
    "BDT": "৳ taka",
    "BGN": "лв lv leva",
    "BRL": "R$ reais",
    "CAD": "C$ CA$ CAN$ CAD$ $CA $CAN $CAD",
    "CHF": "SFr Sfr sFr SFR Franken",
    "CNY": "CN¥ RMB yuan renminbi 人民币",
    "CRC": "₡ colones",
    "CZK": "Kč koruna korun",
    "EUR": "€ Euro Euros",
    "GBP": "UK£ sterling",
    "GHS": "₵ GH₵ cedi cedis",
    "HKD": "HK$ $HK",
    "HUF": "Ft forint",
    "IDR": "Rp rupiah",
    "ILS": "₪ shekel shekels",
    "INR": "₹",
    "JPY": "JP¥ yen 円",
    "KRW": "₩",
    "KZT": "₸",
    "MNT": "₮",
    "MXN": "MX$ Mex$ MXN$ $MX $MXN",
    "MYR": "RM ringgit",
    "NGN": "₦ naira",
    "NZD": "NZ$ $NZ",
    "PEN": "S/ soles",
    "PHP": "₱",
    "PLN": "zł zl złoty złotych zloty",
    "PYG": "₲",
    "RUB": "₽ rubles рублей",
    "SGD": "S$ SG$ $SG",
    "THB": "฿ baht",
    "TRY": "₺ TL lira",
    "TWD": "NT$ $NT",
    "UAH": "₴ грн hryvnia",
    "USD": "US$ U$S USD$ $US $USD",
    "VND": "₫ đ",
    "ZAR": "R",
}
_DOLLARS = "USD CAD AUD NZD SGD HKD TWD MXN ARS CLP COP UYU BBD BMD BND BSD BZD DOP FJD GYD JMD KYD LRD NAD SBD SRD TTD"
_SHARED = {
    "$": _DOLLARS,
    "dollar": _DOLLARS,
    "dollars": _DOLLARS,
    "£": "GBP EGP FKP GIP LBP SDG SHP SYP",
    "pound": "GBP EGP FKP GIP LBP SDG SHP SYP",
    "pounds": "GBP EGP FKP GIP LBP SDG SHP SYP",
    "¥": "CNY JPY",
    "元": "CNY HKD TWD",
    "fr": "CHF FRF BEF XAF XOF XPF",
    "francs": "CHF FRF BEF XAF XOF XPF",
    "kr": "DKK ISK NOK SEK",
    "krona": "ISK SEK",
    "kronor": "SEK",
    "krone": "DKK NOK",
    "kroner": "DKK NOK",
    "rs": "INR LKR MUR NPR PKR SCR",
    "rupees": "INR LKR MUR NPR PKR SCR",
    "rupee": "INR LKR MUR NPR PKR SCR",
    "peso": "ARS CLP COP CUP DOP MXN PHP UYU",
    "pesos": "ARS CLP COP CUP DOP MXN PHP UYU",
    "lei": "MDL RON",
    "leu": "MDL RON",
    "dh": "AED MAD",
    "dhs": "AED MAD",
    "dirhams": "AED MAD",
    "dinar": "BHD DZD IQD JOD KWD LYD RSD TND",
    "din": "MKD RSD",
    "﷼": "IRR OMR QAR SAR YER",
}
_BEST_KNOWN = {"$": "USD", "£": "GBP", "fr": "CHF", "dollar": "USD", "dollars": "USD", "pound": "GBP", "pounds": "GBP"}
_COUNTRIES = {
    "AED": "emirates dubai",
    "ARS": "argentina argentine",
    "AUD": "australia australian",
    "CAD": "canada canadian canadien canadiens",
    "CHF": "switzerland swiss schweiz schweizer suisse suisses svizzera svizzeri",
    "CLP": "chile chilean",
    "CNY": "china chinese 中国",
    "COP": "colombia colombian",
    "DKK": "denmark danish danmark danske",
    "EGP": "egypt egyptian",
    "GBP": "british",
    "HKD": "hong kong 香港",
    "INR": "india indian",
    "ISK": "iceland icelandic",
    "JPY": "japan japanese 日本",
    "LKR": "lanka",
    "MAD": "morocco moroccan maroc",
    "MXN": "mexico méxico mexican mexicanos",
    "NOK": "norway norwegian norge norske",
    "NPR": "nepal nepalese",
    "NZD": "zealand",
    "PHP": "philippines philippine",
    "PKR": "pakistan pakistani",
    "RON": "romania românia romanian",
    "SEK": "sweden swedish sverige svenska",
    "SGD": "singapore",
    "TWD": "taiwan 台灣 臺灣",
    "USD": "american us",
    "UYU": "uruguay",
}

_CODE_OF = {spelling: code for code, spellings in _CERTAIN.items() for spelling in spellings.split()}
_FOLDED = {spelling.casefold(): code for spelling, code in _CODE_OF.items()}
_LONG_WORDS = {spelling: code for spelling, code in _FOLDED.items() if len(spelling) > 3 and spelling.isalpha()}
_OPEN = {spelling: frozenset(codes.split()) for spelling, codes in _SHARED.items()}
_SHORT = {spelling for spelling in (*_FOLDED, *_OPEN) if spelling.isalpha() and len(spelling) < 3}.union(
    (spelling for spelling in _OPEN if spelling.isalpha() and len(spelling) == 3),
    (code.casefold() for code in _ALSO_WORDS),
) - {"円", "元"}
"""Words and abbreviations of other things too: in running text they count beside a number or in brackets alone."""
_OF_COUNTRY = {name: code for code, names in _COUNTRIES.items() for name in names.split()}

_MONEY = "$¢£¥฿৳₠-⃀﷼"
_BARE = re.compile(f"[{_MONEY}]")
_TOKEN = re.compile(rf"S/|(?:[^\W\d_]|[{_MONEY}])+")
_WITH_SYMBOL = re.compile(rf"[A-Za-z]{{0,3}}[{_MONEY}](?:[A-Z]{{1,3}}(?![^\W\d_]))?|(?<!\w)S/(?= ?\d)|[円元]")
_BESIDE_NUMBER = re.compile(r"\(([^\W\d_]{1,3})\)|\d ?([^\W\d_]{1,3})(?![^\W\d_])|(?<![^\W\d_])([^\W\d_]{1,3})\.? ?\d")
_OF_A_COUNTRY = re.compile(
    r"(?<![^\W\d_])([^\W\d_]{2,12}) (?:dollars?|kron[aeo]r?|pesos?|rupees?|pounds?|francs?)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Named:
    """The currencies of a document: ``codes`` it names outright, ``countries`` whose currency would be one to think
    of, and the ``shared`` symbols it prints."""

    codes: frozenset[str] = frozenset()
    countries: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()


NOTHING_NAMED = Named()


def is_currency(word: str) -> bool:
    """Whether ``word`` is a currency: a code, a symbol, an abbreviation or a name."""
    return bool(_candidates(word.rstrip(".")))


def _candidates(word: str) -> frozenset[str]:
    """The codes that ``word`` can stand for."""
    if word.upper() in CODES and len(word) == 3:
        return frozenset((word.upper(),))
    folded = word.casefold()
    if folded in _FOLDED:
        return frozenset((_FOLDED[folded],))
    return _OPEN.get(folded, frozenset())


def named_in(text: str, words: Iterable[str]) -> Named:
    """What a document says about currencies.

    :param text: the document, in plain characters.
    :param words: its words (runs of letters), as they are spelled.
    """
    words = frozenset(words)
    folded = {word.casefold() for word in words if len(word) < 14}
    symbols = _symbols_in(text) if not text.isascii() or "$" in text or "S/" in text else set()
    beside = _beside_numbers(text) if not folded.isdisjoint(_SHORT) else set()
    printed = {word for word in words if word.casefold() not in _SHORT} | symbols | beside
    codes = printed & _LIVING - ({"BHD"} if "sdn" in folded else set())  # a Malaysian company is a "Sdn Bhd"
    codes |= {_CODE_OF[word] for word in printed & _CODE_OF.keys()}
    codes |= {_LONG_WORDS[word] for word in folded & _LONG_WORDS.keys()}
    shared = {word.casefold() for word in printed} & _OPEN.keys()
    if shared:
        owners = {owner.casefold() for owner in _OF_A_COUNTRY.findall(text)}
        codes |= {_OF_COUNTRY[owner] for owner in owners & _OF_COUNTRY.keys()}
    countries = {_OF_COUNTRY[name] for name in (folded - {"us"}) & _OF_COUNTRY.keys()}  # "us" is a pronoun as well
    return Named(frozenset(codes), frozenset(countries), frozenset(shared))


def _beside_numbers(text: str) -> set[str]:
    return {word for pair in _BESIDE_NUMBER.findall(text) for word in pair if word.casefold() in _SHORT} - {"R"}


def _symbols_in(text: str) -> set[str]:
    """The symbols in a text with the letters that belong to them (``US$``); letters that make no currency are left."""
    found = set(_WITH_SYMBOL.findall(text))
    known = {symbol for symbol in found if _candidates(symbol)}
    return known.union(*(_BARE.findall(symbol) for symbol in found - known))


def candidates_in(word: str, named: Named, preferred: str | None = None) -> frozenset[str]:
    """The codes that a printed currency may stand for in a document; one when it is decided.

    :param word: code, symbol, abbreviation or name, without a number.
    :param named: what the document says about currencies.
    :param preferred: the code that the user says the documents are in; it decides between those that are possible.
    """
    return _decided(_candidates(word), _BEST_KNOWN.get(word.casefold()), named, preferred)


def _decided(possible: frozenset[str], best_known: str | None, named: Named, preferred: str | None) -> frozenset[str]:
    if len(possible) < 2:
        return possible
    if preferred in possible:
        return frozenset((preferred,))
    if possible & named.codes:
        return possible & named.codes
    nearby = possible & named.countries
    if best_known:
        return nearby | {best_known}
    return nearby or possible


def parse_currency(text: str, named: Named = NOTHING_NAMED, preferred: str | None = None) -> str:
    """The ISO code of the currency that ``text`` prints, with or without an amount.

    :raises ValueError: there is no currency, more than one, or one that nothing decides; the message is for a model.
    """
    if len(text) > 80:
        raise ValueError(
            f"{shown(text)} is too long for a currency; write only the currency, as printed or as ISO code"
        )
    line = plain(text)
    words = [found.group() for found in _TOKEN.finditer(line)]
    rest = _TOKEN.sub("", line)
    if not words or re.search(r"[^\d\s.,'()+=*·/-]", rest):
        raise ValueError(f"{shown(text)} is not a currency; write the currency as printed, or its ISO 4217 code")
    possible: frozenset[str] | None = None
    for word in words:
        codes = _candidates(word)
        owner = _OF_COUNTRY.get(word.casefold())
        codes = codes or (frozenset((owner,)) if owner and len(words) > 1 else codes)
        possible = codes if possible is None else possible & codes
    if not possible:
        raise ValueError(f"{shown(text)} is not one currency; write the currency as printed, or its ISO 4217 code")
    best_known = next((code for word in words if (code := _BEST_KNOWN.get(word.casefold())) in possible), None)
    decided = _decided(possible, best_known, named, preferred)
    if len(decided) == 1:
        return next(iter(decided))
    choice = ", ".join(sorted(decided)[:6])
    raise ValueError(
        f"{shown(text)} can be {choice} and nothing in the document decides; "
        "write the ISO 4217 code if the document makes clear which it is"
    )


__all__ = ["CODES", "NOTHING_NAMED", "Named", "candidates_in", "is_currency", "named_in", "parse_currency"]
