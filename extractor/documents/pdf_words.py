"""The words of a PDF page, each with its place.

pdfium gives the letters of a page as one text. White space parts it into words; most words are drawn by one text
object, and then two letters tell where a word stands, its first and its last. A word of several objects is looked at
letter by letter (:mod:`extractor.documents.pdf_letters`), for pdfium runs together what stands apart. Words that follow
one another in one object are kept together, which is most of what makes this quick.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator, Set
from typing import Any, NamedTuple

from extractor.documents.layout import RIGHT_TO_LEFT, WIDE, Word
from extractor.documents.pdf_letters import Part, Pen, Sides, parted, spelled
from extractor.documents.pdfium import address, quick

LETTERS = 500_000
"""Letters of one page at the most; a page that has more is made to stop programs, not to be read."""

_SPACES = "\\x01\\x03-\\x20\\x7f-\\xa0\\u2000-\\u200b\\u2028\\u2029\\u202f\\u205f\\u3000\\ufeff\\uffff"
_WORD = re.compile(f"[^\\x00{_SPACES}][^{_SPACES}]*")
"""A letter, and what follows up to the next white space; a letter without a name begins no word."""
_TO_SPELL = re.compile("[\\x00\\x02\\xad\\ufffe\\ud800-\\udfff]")
_DOUBLED = re.compile(r"(?:(\S)\1){2,}")
_LONG = 2.5
"""How many ems a letter takes up at the most; where a word is longer, something in it stands apart."""
_NO_PEN = Pen(0, 0.0, 0.0)


class TooManyLetters(Exception):
    """A page holds more than is read."""


class _Run(NamedTuple):
    """Where words of one object that follow one another begin: in the text, in the sides, and on the page."""

    start: int
    first: int
    left: float


class Found:
    """The words of a page.

    :ivar words: by the direction in which they run, in quarters of a turn; ``Word.first`` counts in ``sides``.
    :ivar sides: left, top, right and bottom of each single word, on the page before it is turned.
    :ivar objects: for each of them the text object that draws it, by address; 0 where that is not known.
    :ivar nameless: how many letters are drawn of which the font does not say what they are.
    """

    def __init__(self, textpage: Any) -> None:
        """Find the words.

        :raises TooManyLetters: when there are more than are read.
        """
        import pypdfium2.raw as pdfium

        count = pdfium.FPDFText_CountChars(textpage)
        if count > LETTERS:
            raise TooManyLetters
        self._textpage = address(textpage)
        self._text = text = _text(textpage, count)
        self._is_plain = _TO_SPELL.search(text) is None
        self._pens: dict[tuple[float, float], Pen] = {}
        self.words: dict[int, list[Word]] = {0: []}
        self.sides: list[tuple[float, float, float, float]] = []
        self.objects: list[int] = []
        self.nameless = text.count("\0")
        self._collect()

    def _collect(self) -> None:
        text, sides, objects = self._text, self.sides, self.objects
        is_doubled = _DOUBLED.search(text) is not None
        joins = self._is_plain and RIGHT_TO_LEFT.search(text) is None
        drawn, pen, run, until, right = 0, _NO_PEN, _Run(0, 0, 0.0), 0, 0.0
        for (start, end), one, (x1, top, x2, low, x3, _, x4, low2) in self._placed():
            if one != drawn:
                if until:
                    self._close(run, until, right, pen)
                until, drawn = 0, one
                pen = self._pen(start, low, top) if one else _NO_PEN
            is_level = low == low2 and x1 <= x3 and x2 <= x4 and x4 - x1 < _LONG * pen.em * (end - start)
            if is_level and pen.quarter == 0 and not (is_doubled and _DOUBLED.fullmatch(text, start, end)):
                if not (joins and until + 1 == start and 0 <= x1 - right < WIDE * pen.em and text[until] == " "):
                    if until:
                        self._close(run, until, right, pen)
                    run = _Run(start, len(sides), x1)
                sides.append((x1, top, x4, low))
                objects.append(one)
                until, right = end, x4
                continue
            if until:
                self._close(run, until, right, pen)
                until = 0
            for part in parted(self._textpage, text, start, end):
                self._add(part)
        if until:
            self._close(run, until, right, pen)

    def put(self, text: str, sides: tuple[float, float, float, float]) -> None:
        """Add a sign that stands over the page, as a word."""
        left, top, right, bottom = sides
        em = max(1.0, top - bottom)
        self.words[0].append(Word(text, left, right, bottom + 0.2 * em, em, len(self.sides), 1))
        self.sides.append(sides)
        self.objects.append(0)

    def hide(self, gone: Set[int]) -> str:
        """Take words away.

        :param gone: their numbers.
        :returns: what they say.
        """
        hidden: list[str] = []
        for quarter, words in self.words.items():
            kept: list[Word] = []
            for word in words:
                numbers = range(word.first, word.first + word.words)
                if gone.isdisjoint(numbers):
                    kept.append(word)
                    continue
                for number, text in zip(numbers, word.text.split(" "), strict=True):
                    if number in gone:
                        hidden.append(text)
                    else:
                        left, right = Sides(*self.sides[number]).along(quarter)
                        kept.append(Word(text, left, right, word.base, word.em, number, 1))
            words[:] = kept
        return " ".join(hidden)

    def _close(self, run: _Run, until: int, right: float, pen: Pen) -> None:
        """Keep a run of words that one object draws."""
        text = self._text[run.start : until]
        if self._is_plain or (text := spelled(text)):
            count = len(self.sides) - run.first
            self.words[0].append(Word(text, run.left, right, pen.base, pen.em, run.first, count))
        else:
            del self.sides[run.first :], self.objects[run.first :]

    def _add(self, part: Part) -> None:
        """Keep a word that was looked at letter by letter."""
        left, right = part.sides.along(part.pen.quarter)
        word = Word(part.text, left, right, part.pen.base, part.pen.em, len(self.sides), 1)
        self.words.setdefault(part.pen.quarter, []).append(word)
        self.sides.append(part.sides)
        self.objects.append(part.drawn_by)

    def _pen(self, letter: int, low: float, top: float) -> Pen:
        """The pen of a letter; letters that reach from one height to another, to a hair, are set alike."""
        pen = self._pens.get((low, top))
        if pen is None:
            pen = Pen.at(self._textpage, letter)
            if pen.quarter == 0:
                self._pens[low, top] = pen
        return pen

    def _placed(self) -> Iterator[tuple[tuple[int, int], int, tuple[float, ...]]]:
        """Each word with its object, 0 where it has several, and the boxes of its first and last letter."""
        spans = [match.span() for match in _WORD.finditer(self._text)]
        corners = (ctypes.c_float * (8 * len(spans)))()
        calls, page, into = quick(), self._textpage, ctypes.addressof(corners)
        box, object_of = calls.letter_box, calls.object_of
        objects: list[int] = []
        last: int | None = 0
        for start, end in spans:
            box(page, start, into)
            box(page, end - 1, into + 16)
            into += 32
            one = object_of(page, end - 1)
            is_whole = one == last or end - start == 1 or object_of(page, start) == one
            objects.append(one if is_whole and one else 0)
            last = one
        each = iter(corners[:])
        return zip(spans, objects, zip(*[each] * 8, strict=True), strict=True)


def _text(textpage: Any, count: int) -> str:
    """The letters of a page, one for each of pdfium's: also what has no name, and half of a pair."""
    import pypdfium2.raw as pdfium

    buffer = (ctypes.c_ushort * (count + 1))()
    length = pdfium.FPDFText_GetText(textpage, 0, count, buffer) - 1
    text = bytes(buffer)[: 2 * max(length, 0)].decode("utf-16-le", "surrogatepass")
    code, page = quick().unicode, address(textpage)
    if length == count == len(text):
        return re.sub("\ufffe", lambda match: chr(min(code(page, match.start()), 0x10FFFF)), text)
    return "".join(chr(min(code(page, at), 0x10FFFF)) for at in range(count))
