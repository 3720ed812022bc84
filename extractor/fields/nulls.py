"""Words that models write where they mean "there is no value"."""

from __future__ import annotations

_LONGEST = 24
"""No word below is longer; a longer text is a value, and is not folded to find out."""

_SINGLE = (
    "n/a n.a. n.a na #n/a n/d n.d. none null nil undefined unknown unspecified missing absent blank "
    "k.a. entfällt unbekannt keine néant inconnu aucun sconosciuto nessuno desconocido ninguno onbekend geen "
    "desconhecido nenhum"
)
_WORDS = frozenset(_SINGLE.split()) | {
    "",
    "k. a.",
    "n. a.",
    "keine angabe",
    "not available",
    "not applicable",
    "not specified",
    "not stated",
    "not provided",
    "not given",
    "not found",
    "not present",
    "not mentioned",
    "no value",
    "non applicable",
    "nicht angegeben",
    "nicht vorhanden",
}
_DASHES = "-‐‑‒–—―−_."
_WRAPPING = " \t\r\n\f\v\xa0\u202f\"'`<>[](){}"


def nullish(text: str) -> bool:
    """Whether a model that sends ``text`` for a nullable field most likely means null.

    Case, quotes, brackets and white space around the word do not matter, nor how many dashes there are. Zero is a
    value, and so is every number. The caller still has to see that the literal does not stand in the document as the
    value (a customer may be called "None").

    :param text: what the model sent.
    """
    if not text.strip(_WRAPPING + _DASHES):
        return True
    return len(text) <= _LONGEST and text.strip(_WRAPPING).casefold() in _WORDS


__all__ = ["nullish"]
