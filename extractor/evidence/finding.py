"""Where every value of a record stands in a document.

Each value is looked for on every page, by its kind: numbers, dates and currencies by what they come to, text by its
whole tokens. Of several places one is chosen: values of one object (a line item, a seller) stand together, list items
stand in order, and a value stands beside its label.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from extractor.documents.document import Document
from extractor.evidence.leaves import Leaf, leaves
from extractor.evidence.pages import Found, Searched
from extractor.evidence.values import Evidence
from extractor.fields.style import Style

MOST_PLACES = 200
"""Places of one value that are weighed against each other."""
MOST_ROWS = 300
"""Lines that an object may begin on."""

_FAR = 40
"""Lines from which on one distance is as bad as another."""
_ROW = 4
"""Lines that the values of one list item are spread over."""


class Finder:
    """Finds the values of records in one document.

    :param document: read.
    :param style: how it prints numbers and dates.
    """

    def __init__(self, document: Document, style: Style) -> None:
        self._visible: list[Searched] = []
        self._hidden: list[Searched] = []
        line = 0
        for page in document.pages:
            self._visible.append(Searched(page, style, line))
            line += page.text.count("\n") + 2
            if page.hidden:
                self._hidden.append(Searched(page, style, line, hidden=True))

    def find(self, sent: Mapping[str, Any], value: Any = None) -> tuple[Evidence, ...]:
        """Where each value of a record stands, in the order of its paths.

        :param sent: the arguments of the call, as JSON has them.
        :param value: the same, validated, by which numbers and dates are known as such.
        """
        wanted = list(leaves(sent, value))
        places = {leaf.path: self._places(leaf) for leaf in wanted}
        chosen = Choice(wanted, places).made()
        return tuple(_evidence(leaf, chosen.get(leaf.path)) for leaf in wanted)

    def _places(self, leaf: Leaf) -> list[Found]:
        for pages in (self._visible, self._hidden):
            everywhere = (place for page in pages for place in page.places(leaf.sent, leaf.value))
            found = list(islice(everywhere, MOST_PLACES))
            if found:
                best = max(_RANK[one.match] for one in found)
                if best > _RANK["fuzzy"]:
                    found = [one for one in found if one.match != "fuzzy"]
                return found
        return []


_RANK = {"exact": 3, "normalised": 3, "fuzzy": 1, "hidden": 0, "absent": 0}


def _evidence(leaf: Leaf, found: Found | None) -> Evidence:
    if found is None:
        return Evidence(leaf.path, str(leaf.sent), "absent", 0.0)
    page = found.page
    return Evidence(
        leaf.path, found.printed, found.match, found.score, page.page.number, found.start, found.end,
        page.boxes(found.start, found.end), page.snippet(found.start, found.end),
    )  # fmt: skip


class Choice:
    """The choice of one place for each value, out of all where it may stand."""

    def __init__(self, wanted: Sequence[Leaf], places: Mapping[str, list[Found]]) -> None:
        self._places = places
        self._groups: dict[str, list[Leaf]] = defaultdict(list)
        for leaf in wanted:
            if places[leaf.path]:
                self._groups[leaf.parent].append(leaf)
        self._chosen: dict[str, Found] = {}
        self._taken: dict[tuple[int, int, int], str] = {}

    def made(self) -> dict[str, Found]:
        """The place of each value that has one, by path."""
        rows: dict[str, int] = {}
        for parent in sorted(self._groups, key=_depth_first):
            group = self._groups[parent]
            if parent:
                listed, _, last = parent.rpartition(".")
                after = rows.get(listed, -1) if last.isdigit() else -1
                row = self._row(group, after)
                if last.isdigit():
                    rows[listed] = row
                self._beside(group, partial(_lines_away, row))
            else:
                self._beside(group, self._near_siblings(group))
        return self._chosen

    def _row(self, group: Sequence[Leaf], after: int) -> int:
        """The line that the values of an object stand on, or just below: where most of them do, the rare ones counting
        most; that of a list item comes behind the one before."""
        rarest = sorted((self._places[leaf.path] for leaf in group), key=len)
        lines = sorted({place.line for places in rarest[:3] for place in places})[:MOST_ROWS]
        if len(lines) == 1:
            return lines[0]
        worths = [self._worths(places) for places in rarest]
        best, most = lines[0], -1e9
        for line in lines:
            score = -0.001 * (line - lines[0])
            score -= 0.0 if line > after or after < 0 else 0.3 if line == after else 2.0
            score += sum(_nearness(worth, line) for worth in worths)
            if score > most:
                best, most = line, score
        return best

    def _worths(self, places: Sequence[Found]) -> Mapping[int, float]:
        """What it says for a line that a value stands on it: a rare one says more, one that is taken already less."""
        worths: dict[int, float] = {}
        rarity = 0.5 + 1 / (1 + len(places))
        for place in places:
            worth = rarity * (0.4 if self._is_taken(place) else 1.0)
            worths[place.line] = max(worth, worths.get(place.line, 0.0))
        return worths

    def _near_siblings(self, group: Sequence[Leaf]) -> Callable[[Found], float]:
        certain = [places[0].line for leaf in group if len(places := self._places[leaf.path]) == 1]

        def distance(place: Found) -> float:
            return min((abs(place.line - line) for line in certain), default=0) if certain else 0

        return distance

    def _beside(self, group: Sequence[Leaf], distance: Callable[[Found], float]) -> None:
        for leaf in sorted(group, key=lambda leaf: len(self._places[leaf.path])):
            places = self._places[leaf.path]
            best = places[0]
            if len(places) > 1:
                best = min(places, key=lambda place: self._cost(leaf, place, distance(place)))
            self._chosen[leaf.path] = best
            self._taken.setdefault(_spot(best), leaf.path)

    def _cost(self, leaf: Leaf, place: Found, distance: float) -> tuple[float, int, int]:
        cost = min(distance, _FAR) + (6.0 if self._is_taken(place) else 0.0) - 2.0 * place.score
        if not _is_listed(leaf):  # the label of a list item stands over its column
            cost -= 5.0 * _labelled(leaf, place)
        return cost, place.line, place.start

    def _is_taken(self, place: Found) -> bool:
        return _spot(place) in self._taken


def _nearness(worths: Mapping[int, float], line: int) -> float:
    """How well a value fits to a row that begins on a line."""
    return max(worths.get(line + away, 0.0) * (1 - away / (2 * _ROW)) for away in range(_ROW))


def _lines_away(line: int, place: Found) -> float:
    return abs(place.line - line)


def _spot(place: Found) -> tuple[int, int, int]:
    return (-1 if place.page.is_hidden else 1) * place.page.page.number, place.start, place.end


def _depth_first(parent: str) -> tuple[int, list[tuple[bool, int, str]]]:
    """Lists before single objects, those before the record itself; list items in order."""
    parts = [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parent.split(".")]
    return (0 if any(digit for digit, _, _ in parts) else 1 if parent else 2), parts


def _is_listed(leaf: Leaf) -> bool:
    return leaf.parent.rpartition(".")[2].isdigit()


def _labelled(leaf: Leaf, place: Found) -> float:
    """How much of a value's own name stands before it: on its line, or else on the line above; from 0 to 1."""
    words = [word for word in leaf.name.lower().split("_") if len(word) > 2]
    if not words:
        return 0.0
    before, above = place.page.before(place.start).lower(), place.page.above(place.start).lower()
    return sum(1.0 if word in before else 0.4 if word in above else 0.0 for word in words) / len(words)
