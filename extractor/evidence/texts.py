"""Where words stand on a page: whole tokens, whatever their case, spaces, line breaks and hyphens.

A page is squeezed to its letters and digits, in one spelling (NFKD, case folded), and a value likewise; a value is
looked for in the squeezed page, and what is found counts where it begins and ends as a token of the page does. In
scripts that put no spaces between words every character is a token.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice, pairwise

MOST_PLACES = 64
"""Places of one value on one page that are looked at."""

_TOKEN = re.compile(r"(?:[^\W_]|(?<=\w)[\u0300-\u036f])+")
_ALONE = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f]"
)
"""Letters of scripts that put no spaces between words: Thai, Lao, Burmese, Khmer, Japanese, Chinese."""
_CELL = re.compile(r"\s{2}|[\t\n|]")
_FARTHEST, _MOST_GAPS = 60, 3
"""Tokens that may stand between two words of one value, and how often others may stand between."""
_ALIKE = str.maketrans("0185|!i", "olbslll")
_GLUE = frozenset(".,'/-_:")
_SOFT = "\u00ad"


@dataclass(frozen=True, slots=True)
class Squeezed:
    """A text by its letters and digits alone.

    :ivar text: the original.
    :ivar letters: its letters and digits in one spelling, without anything between them.
    :ivar starts: where each token begins in ``letters``, and one past the end.
    :ivar spans: start and end of each token in ``text``, one after the other.
    :ivar uneven: tokens that are longer or shorter when spelled so: where in ``text`` each of their letters comes from.
    """

    text: str
    letters: str
    starts: array[int]
    spans: array[int]
    uneven: dict[int, list[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str) -> Squeezed:
        """Squeeze a text; the time taken is linear in its length."""
        parts: list[str] = []
        starts, spans = array("I"), array("I")
        uneven: dict[int, list[int]] = {}
        length = 0
        for found in _TOKEN.finditer(text):
            token, begin, end = found.group(), found.start(), found.end()
            spelled = token.lower()
            if not token.isascii():
                spelled, origins = _spelled(token, begin)
                if origins is not None:
                    uneven[len(starts)] = origins
            starts.append(length)
            spans.extend((begin, end))
            parts.append(spelled)
            length += len(spelled)
        starts.append(length)
        return cls(text, "".join(parts), starts, spans, uneven)

    def token_at(self, letter: int) -> int:
        """The number of the token that a letter belongs to."""
        return bisect_right(self.starts, letter) - 1

    def place(self, letter: int) -> int:
        """Where in the text a letter stands."""
        token = self.token_at(letter)
        inside = letter - self.starts[token]
        origins = self.uneven.get(token)
        return origins[inside] if origins is not None else self.spans[2 * token] + inside

    def find(self, wanted: Squeezed) -> Iterator[tuple[int, int, bool]]:
        """The places of another text in this one: start and end in ``text``, and whether whole words were joined or
        parted in another way than in what is wanted."""
        letters, at, tries = wanted.letters, -1, 0
        while letters and tries < MOST_PLACES:
            at = self.letters.find(letters, at + 1)
            if at < 0:
                return
            tries += 1
            end = at + len(letters)
            if self._begins(at) and self._ends(end):
                start, stop = self.place(at), self.place(end - 1) + 1
                stop = self._with_marks(stop)
                if self._is_whole(at, end) and (gaps := self._gaps(at, end, wanted)) is not None:
                    yield start, stop, gaps

    def blurred(self) -> Squeezed:
        """The same with one letter for all that OCR takes for one another."""
        return replace(self, letters=self.letters.translate(_ALIKE))

    def scattered(self, wanted: Squeezed) -> Iterator[tuple[int, int, int]]:
        """The places of another text whose words stand in several cells of a table, or on lines with others between:
        start, end, and how many gaps there are."""
        words = wanted.tokens()
        if len(words) < 2:
            return
        if words[0] not in self.letters or words[-1] not in self.letters:
            return
        mine = self.tokens()
        firsts = islice((n for n, word in enumerate(mine) if word == words[0]), MOST_PLACES)
        for first in firsts:
            if (found := self._followed(mine, first, words)) is not None:
                last, gaps = found
                yield self.spans[2 * first], self.spans[2 * last + 1], gaps

    def tokens(self) -> list[str]:
        """Its tokens, spelled as ``letters`` are."""
        return [self.letters[start:end] for start, end in pairwise(self.starts)]

    def _followed(self, mine: list[str], first: int, words: list[str]) -> tuple[int, int] | None:
        at, gaps = first, 0
        for word in words[1:]:
            if at + 1 < len(mine) and mine[at + 1] == word:
                at += 1
                continue
            gaps += 1
            later = range(at + 2, min(at + _FARTHEST, len(mine)))
            at = next((n for n in later if mine[n] == word and self._parts(at, at + 1) and self._parts(n - 1, n)), -1)
            if at < 0 or gaps > _MOST_GAPS:
                return None
        return at, gaps

    def _parts(self, left: int, right: int) -> bool:
        """Whether a cell or a line ends between two tokens."""
        return _CELL.search(self.text, self.spans[2 * left + 1], self.spans[2 * right]) is not None

    def _with_marks(self, stop: int) -> int:
        """Combining marks belong to the letter before them."""
        while stop < len(self.text) and unicodedata.combining(self.text[stop]):
            stop += 1
        return stop

    def _begins(self, letter: int) -> bool:
        token = self.token_at(letter)
        return self.starts[token] == letter or self._is_alone(letter) or self._is_alone(letter - 1)

    def _ends(self, letter: int) -> bool:
        token = self.token_at(letter - 1)
        return self.starts[token + 1] == letter or self._is_alone(letter - 1) or self._is_alone(letter)

    def _is_alone(self, letter: int) -> bool:
        return not self.letters[letter].isascii() and _ALONE.match(self.letters[letter]) is not None

    def _is_whole(self, start: int, end: int) -> bool:
        """Not a part of a longer number or identifier: 1,60 does not stand in 1.471,60, nor 117 in 2024-117."""
        first, last = self.token_at(start), self.token_at(end - 1)
        return not (self._is_glued(first - 1, first) or self._is_glued(last, last + 1))

    def _is_glued(self, left: int, right: int) -> bool:
        if left < 0 or right >= len(self.starts) - 1:
            return False
        between = self.text[self.spans[2 * left + 1] : self.spans[2 * right]]
        return len(between) == 1 and between in _GLUE and self._has_digit(left) and self._has_digit(right)

    def _has_digit(self, token: int) -> bool:
        return any(map(str.isdigit, self.letters[self.starts[token] : self.starts[token + 1]]))

    def _gaps(self, start: int, end: int, wanted: Squeezed) -> bool | None:
        """Whether tokens part elsewhere than in what is wanted; ``None`` where they part so that it is another text."""
        first, last = self.token_at(start), self.token_at(end - 1)
        mine = {self.starts[token] - start for token in range(first + 1, last + 1)}
        more = mine - set(wanted.starts)
        for letter in more:
            token = self.token_at(start + letter)
            before, after = token - 1, token
            between = self.text[self.spans[2 * before + 1] : self.spans[2 * after]]
            if not self._may_part(between, before, after, len(wanted.letters)):
                return None
        return bool(more) or len(mine) < len(wanted.starts) - 2

    def _may_part(self, between: str, before: int, after: int, length: int) -> bool:
        """A word is parted by a hyphen at the end of a line, a number or identifier in groups or by marks."""
        if _SOFT in between or (between.startswith(("-", "\u2010")) and between[1:].strip(" \t\r") == "\n"):
            return True
        grouped = self._has_digit(before) or self._has_digit(after)
        return grouped and (between in _IN_NUMBERS or (between in _IN_GROUPS and length >= _GROUPED))


@lru_cache(maxsize=4096)  # a value is looked for on every page
def squeezed(value: str) -> Squeezed:
    """A value that is looked for, by its letters and digits."""
    return Squeezed.of(value)


_GROUPED = 8
"""Letters that a text has at least that is printed in groups: 1 2 is not 12, and DE12 1234 5678 is one IBAN."""
_IN_GROUPS = frozenset((" ", "\u00a0", "\u202f", "."))
_IN_NUMBERS = frozenset(("-", "/", "'", "\u2010", "\u2011", "\u2013"))


def _spelled(token: str, begin: int) -> tuple[str, list[int] | None]:
    """A token in one spelling, and where each of its letters comes from when they are not as many."""
    letters: list[str] = []
    origins: list[int] = []
    for at, character in enumerate(token, begin):
        for letter in unicodedata.normalize("NFKD", character).casefold():
            if letter.isalnum() or unicodedata.combining(letter):
                letters.append(letter)
                origins.append(at)
    is_even = len(letters) == len(token) and all(origin == begin + n for n, origin in enumerate(origins))
    return "".join(letters), None if is_even else origins
