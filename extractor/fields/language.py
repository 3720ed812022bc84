"""What the language and the market of a document suggest about its style: hints, for where it has no evidence."""

from __future__ import annotations

import re
from collections.abc import Collection

_COMMA = (
    # German
    "der das und ist nicht mit für von den dem ein eine auf zur zum bei wir sie wird rechnung rechnungsnummer betrag "
    "datum menge mwst summe gesamt gesamtbetrag preis netto brutto zzgl inkl steuer zahlbar tagen kunde lieferung "
    "seite "
    # French
    "le les des et est pour dans vous nous du au avec sur facture montant tva ttc client quantité prix désignation "
    "échéance société paiement une "
    # Italian
    "il gli della del di che sono è fattura importo iva imponibile totale quantità prezzo descrizione scadenza spa srl "
    # Spanish
    "el los las por para factura importe fecha cantidad precio descripción cliente base una "
    # Dutch
    "het een van voor niet factuur factuurnummer bedrag btw aantal prijs omschrijving totaal betaling klant "
    # Portuguese
    "os da do em com não fatura valor quantidade preço descrição são dos"
)
_ENGLISH = (
    "the of and to for by with this that be is are or from as shall any your you we invoice amount date due quantity "
    "price description tax subtotal payment bill customer qty number page please thank"
)
_COMMA_WORDS = frozenset(_COMMA.split())
_ENGLISH_WORDS = frozenset(_ENGLISH.split())
_POINT_MARKETS = re.compile(
    r"(?<![^\W\d_])(?:CHF|SFr|MXN|RFC|México|PEN|GTQ|DOP|HNL)(?![^\W\d_])"
    r"|\$|S/ ?\d|\d'\d{3}(?!\d)"
)
_DAY_FIRST = (
    "AED ARS AUD BDT BRL CLP COP CZK DKK EGP HKD IDR ILS INR KES LKR MXN MYR NGN NOK NZD PEN PKR PLN RON RSD RUB SAR "
    "SGD THB TRY TZS UAH UGX VND"
)
_DAY_FIRST_CURRENCIES = frozenset(_DAY_FIRST.split())
_DAY_FIRST_COMPANIES = frozenset(("sdn", "bhd", "pty", "pvt"))


def comma_language(words: Collection[str]) -> bool:
    """Whether these words, in lower case, are German, French, Italian, Spanish, Dutch or Portuguese."""
    comma = english = 0
    seen: set[str] = set()
    for word in words:
        if word in _COMMA_WORDS:
            comma += 1
            seen.add(word)
        elif word in _ENGLISH_WORDS:
            english += 1
    return len(seen) >= 3 and comma > 2 * english


def point_market(text: str) -> bool:
    """Whether the text names a market that writes a decimal point in spite of its language, such as Switzerland."""
    return _POINT_MARKETS.search(text) is not None


def day_first_market(currencies: Collection[str], words: Collection[str]) -> bool:
    """Whether a document is at home where dates begin with the day.

    :param currencies: the codes that it names; money that is used at home alone tells where that is.
    :param words: its words, in lower case; so do the forms of companies.
    """
    if currencies and _DAY_FIRST_CURRENCIES.issuperset(currencies):
        return True
    return "USD" not in currencies and not _DAY_FIRST_COMPANIES.isdisjoint(words)


__all__ = ["comma_language", "day_first_market", "point_market"]
