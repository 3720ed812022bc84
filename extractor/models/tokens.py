"""How many tokens a text is, without a tokenizer: a number that it cannot be less than, and one that it is about.

Byte-pair tokenizers cut a text into words, runs of digits and runs of marks before they join anything, and never join
across such a border. The number of these pieces is therefore a lower bound for all of them; a server that reports
fewer tokens has not read the whole question.
"""

from __future__ import annotations

import re

from extractor.messages import Ask

_PIECES = re.compile(r"[^\W\d_]+|\d+|[^\w\s]+|_+")
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
    return sum(sum(1 for _ in _PIECES.finditer(text)) for text in texts(ask))


def about(ask: Ask) -> int:
    """About how many tokens the question is, its offers included."""
    characters = sum(len(text) for text in texts(ask))
    characters += sum(len(str(offer.parameters)) + len(offer.description) for offer in ask.offers)
    return round(characters / PER_TOKEN)
