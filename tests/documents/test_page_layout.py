"""Words with places become lines."""

from __future__ import annotations

import re
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from extractor.documents.layout import Word, lines


def words(*rows: tuple[float, str], em: float = 10.0, left: float = 0.0) -> list[Word]:
    """Rows of text at a height; a letter is half an em wide, and a tab leads to the next 100 points."""
    found = []
    for base, row in rows:
        for column, cell in enumerate(row.split("\t")):
            place = left + 100 * column
            for text in cell.split():
                found.append(Word(text, place, place + em / 2 * len(text), base, em))
                place += em / 2 * (len(text) + 0.6)
    return found


places = st.floats(-1e6, 1e6, allow_nan=False)
anywhere = st.builds(
    lambda text, left, width, base, em: Word(text, left, left + width, base, em),
    st.text(st.characters(categories=("L", "N")), min_size=1, max_size=6),
    places,
    st.floats(0, 1e4),
    places,
    st.floats(0.2, 1e4),
)


@given(st.lists(anywhere, min_size=1, max_size=60))
@settings(max_examples=60, deadline=None)
def test_no_letter_is_lost_or_made_up(found: list[Word]) -> None:
    """Wherever words stand, and however large they are, each comes out once."""
    assert Counter(" ".join(lines(found)).split()) == Counter(word.text for word in found)


@given(st.permutations(words((700, "Screws\t12\t57.60"), (685, "Paint\t6\t348.00"), (670, "Total\t\t405.60"))))
@settings(max_examples=20, deadline=None)
def test_the_order_of_drawing_does_not_matter(found: list[Word]) -> None:
    """A table is read row by row in whatever order its words come, with wide gaps between its columns."""
    table = [["Screws", "12", "57.60"], ["Paint", "6", "348.00"], ["Total", "405.60"]]
    assert [re.split(r" {2,}", line) for line in lines(found)] == table


def test_a_raised_mark_belongs_to_the_line_that_it_stands_on() -> None:
    """A footnote's figure does not make a line of its own."""
    mark = Word("1", 52, 55, 703.5, 6)
    assert lines([mark, *words((700, "net amount"), (688, "gross amount"))]) == ["net amount 1", "gross amount"]


def test_a_large_title_swallows_no_lines_beside_it() -> None:
    """A title as tall as three lines of an address leaves them apart."""
    title = Word("INVOICE", 0, 150, 700, 36)
    address = words((722, "Dock 5"), (711, "20457 Hamburg"), (700, "Germany"), em=9, left=300)
    text = [line.split() for line in lines([title, *address]) if line]
    assert text == [["Dock", "5"], ["20457", "Hamburg"], ["INVOICE", "Germany"]]


def test_a_gap_between_paragraphs_is_an_empty_line() -> None:
    """Where lines stand further apart than usual, the text says so."""
    assert lines(words((700, "a"), (688, "b"), (676, "c"), (640, "d"))) == ["a", "b", "c", "", "d"]


def test_lines_that_stand_close_do_not_chain() -> None:
    """Two columns whose lines are out of step stay two sets of lines."""
    left = words(*((700 - 12 * row, f"left{row}") for row in range(5)))
    right = words(*((694 - 12 * row, f"right{row}") for row in range(5)), left=200)
    assert [line for line in lines(left + right) if line] == [
        f"{side}{row}" for row in range(5) for side in ("left", "right")
    ]


def test_columns_of_running_text_are_read_one_after_the_other() -> None:
    """Also three of them, out of step, below a title that crosses them all."""
    prose = "the goods stay ours until they are paid"
    found = words((760, "Terms and conditions that hold for all three of the columns that stand below this very title"))
    for column in range(3):
        rows = ((700 - 12 * row - 3 * column, f"c{column}r{row} {prose}") for row in range(8))
        found += words(*rows, left=240 * column)
    first = [line.split()[0] for line in lines(found) if line.startswith("c")]
    assert first == [f"c{column}r{row}" for column in range(3) for row in range(8)]


def test_a_long_description_beside_amounts_is_no_column_of_running_text() -> None:
    """Each amount stays on the line of what it is for."""
    rows = [(700 - 12 * row, f"item {row} with a long description of it") for row in range(9)]
    amounts = words(*((base, f"{row}00.00") for row, (base, _) in enumerate(rows)), left=400)
    assert all(line.endswith(f"{row}00.00") for row, line in enumerate(lines(words(*rows) + amounts)))


def test_a_script_that_runs_from_right_to_left_is_read_so() -> None:
    """Words come in the order of reading; foreign words that stand together keep theirs."""
    row = [Word("שלום", 200, 230, 700, 10), Word("Acme", 140, 165, 700, 10), Word("Ltd", 168, 185, 700, 10)]
    assert lines([*row, Word("תודה", 100, 130, 700, 10)]) == ["שלום  Acme Ltd  תודה"]
