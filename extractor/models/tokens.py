"""How many tokens a text is, without a tokenizer: a number that it cannot be less than, and one that it is about.

Byte-pair tokenizers cut a text into words (with a mark before them), runs of digits and runs of marks before they join
anything, and do not join across such a border. The number of these pieces is therefore a lower bound for the common
ones; a server that reports far fewer tokens has not read the whole question.
"""

from __future__ import annotations

import re
from functools import lru_cache

from extractor.messages import Ask

_PIECES = re.compile(r"[^\w\s]?[^\W\d]+|\d+|[^\w\s]+")
_SHORT = 8192
"""Characters of a text whose count is remembered for a while."""
PER_TOKEN = 3.5
"""Characters of a document's text that are about one token; prose has more, tables of numbers have fewer."""


def texts(ask: Ask) -> list[str]:
    """Everything in an ask that a model reads as text, its offers left out."""
    parts: list[str] = []
    for message in ask.messages:
        parts.append(message.content)
        parts += [result.content for result in message.tool_results]
    return parts


def at_least(ask: Ask) -> int:
    """A number of tokens that the question cannot be shorter than, whatever the tokenizer."""
    return sum(map(_pieces, texts(ask)))


def _pieces(text: str) -> int:
    return _pieces_of_short(text) if len(text) <= _SHORT else sum(1 for _ in _PIECES.finditer(text))


@lru_cache(maxsize=64)  # what is said with every document
def _pieces_of_short(text: str) -> int:
    return len(_PIECES.findall(text))


def about(ask: Ask) -> int:
    """About how many tokens the question is, its offers included."""
    characters = sum(len(text) for text in texts(ask))
    characters += sum(len(str(offer.parameters)) + len(offer.description) for offer in ask.offers)
    return round(characters / PER_TOKEN)
