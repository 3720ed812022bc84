"""Words of a page, kept flat."""

from hypothesis import given
from hypothesis import strategies as st

from extractor.documents.document import Box, Word, Words


def test_words_come_back_as_they_were_given() -> None:
    """What is kept flat is read as the words that went in."""
    words = [Word(0, 5, Box(1, 2, 30, 12)), Word(6, 9, Box(32, 2, 50, 12))]
    kept = Words.of(words)
    assert list(kept) == words
    assert kept[-1] == words[1]
    assert len(kept) == 2


@given(st.integers(0, 40), st.integers(0, 40))
def test_words_within_a_span_are_those_that_share_a_letter_with_it(start: int, end: int) -> None:
    """A word belongs to a span as soon as one of its letters does."""
    words = [Word(at, at + 3, Box(at, 0, at + 3, 1)) for at in range(0, 40, 4)]
    wanted = tuple(word for word in words if word.start < end and start < word.end)
    assert Words.of(words).within(start, end) == (wanted if start < end else ())
