"""Which record a later call is about: what was tried in order to break it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extractor.matching import Arguments, Target, assign, canonical, decoded, leaves, said

KNOWN = frozenset({"f", "g"})


def standing(index: int, arguments: Arguments | None, *, at: int = 0, name: str = "f", taken: bool = False) -> Target:
    return Target(name, at, arguments, False, index, is_taken=taken)


def rejected(
    index: int, arguments: Arguments | None, *, at: int = 0, name: str = "f", faults: tuple[str, ...] = ()
) -> Target:
    return Target(name, at, arguments, True, index, at_fault=faults)


def about(calls: list[Any], *targets: Target, more: bool = False) -> list[str]:
    """For each call ``name, arguments`` or ``arguments``: ``open 0``, ``stands 1`` or ``new``."""
    named = [one if isinstance(one, tuple) else ("f", one) for one in calls]
    found = assign([(position, *one) for position, one in enumerate(named)], targets, KNOWN, is_more_due=more)
    return [_word(found.get(position)) for position in range(len(named))]


def _word(target: Target | None) -> str:
    if target is None:
        return "new"
    return f"{'open' if target.is_open else 'stands'} {target.index}"


def invoice(number: int, **changes: Any) -> dict[str, Any]:
    """One of several invoices of the same supplier: they differ in number, amounts and lines."""
    return {
        "supplier": "Miller Ltd",
        "supplier_tax_id": "GB123",
        "currency": "GBP",
        "issue_date": "2024-03-01",
        "invoice_number": f"2024-{number}",
        "net": f"{number}0.00",
        "tax": f"{number}.00",
        "total": f"{number}1.00",
        "lines": [{"text": "Carpentry", "quantity": "1", "price": f"{number}0.00"}],
        **changes,
    }


A, B, C = invoice(1), invoice(2), invoice(3)
B_BAD = invoice(2, total="99.00")


def test_the_mended_twin_goes_to_its_obligation() -> None:
    """The mended second invoice is not taken for a changed version of the first."""
    assert about([B], standing(0, A), rejected(0, B_BAD, at=1)) == ["open 0"]


def test_a_forgotten_twin_is_new() -> None:
    """Beside the mended second invoice a third one is new, wherever it stands."""
    targets = standing(0, A), rejected(0, B_BAD, at=1)
    assert about([B, C], *targets) == ["open 0", "new"]
    assert about([C, B], *targets) == ["new", "open 0"]


def test_a_forgotten_twin_alone_is_new_and_closes_nothing() -> None:
    """The third invoice alone is neither the first one changed nor the second one mended."""
    assert about([C], standing(0, A), rejected(0, B_BAD, at=1)) == ["new"]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_all_sent_again_in_any_order(order: tuple[int, ...]) -> None:
    """All records sent again in another order, two of them mended: each finds its own."""
    calls = [(A, "stands 0"), (B, "open 0"), (C, "open 1")]
    targets = standing(0, A), rejected(0, B_BAD, at=1), rejected(1, invoice(3, net="1.00"), at=2)
    given_calls = [calls[place][0] for place in order]
    assert about(given_calls, *targets) == [calls[place][1] for place in order]


def test_an_amended_record_stands() -> None:
    """A changed version of a standing invoice is about that one, in its old place or elsewhere."""
    changed = invoice(1, tax="1.10")
    targets = standing(0, A), rejected(0, B_BAD, at=1)
    assert about([changed, B], *targets) == ["stands 0", "open 0"]
    assert about([B, changed], *targets) == ["open 0", "stands 0"]
    assert about([changed], *targets) == ["stands 0"]


def test_a_line_that_was_missing() -> None:
    """A mended invoice that gained a line at the top is still most like what it was."""
    line = {"text": "Oak", "quantity": "3", "price": "7.00"}
    targets = rejected(0, A), rejected(1, B_BAD, at=1)
    assert about([invoice(2, lines=[line, *B["lines"]]), A], *targets) == ["open 1", "open 0"]


def test_equal_amounts_tell_nothing() -> None:
    """Monthly invoices with the same amounts: only number and date tell them apart, and that is enough."""
    rent = {"supplier": "Estates", "net": "500.00", "tax": "0.00", "total": "500.00", "currency": "EUR"}
    months = [{**rent, "number": str(n), "date": f"2024-0{n}-01"} for n in range(1, 4)]
    targets = standing(0, months[0]), rejected(0, {**months[1], "date": "2024-02-30"}, at=1)
    assert about([months[1], months[2]], *targets) == ["open 0", "new"]
    assert about([{**months[0], "tax": "1.00"}, months[1]], *targets) == ["stands 0", "open 0"]


def test_tiny_records() -> None:
    """Records of two fields: the mended one keeps one of them, a new one with an equal price is new."""
    coffee, tea, milk = (
        {"item": item, "price": price} for item, price in (("coffee", "2"), ("tea", "3"), ("milk", "2"))
    )
    targets = standing(0, coffee), rejected(0, {"item": "tea", "price": "x"}, at=1)
    assert about([tea], *targets) == ["open 0"]
    assert about([tea, milk], *targets) == ["open 0", "new"]
    assert about([{"item": "coffee", "price": "2.50"}, tea], *targets) == ["stands 0", "open 0"]


def test_one_record_written_anew() -> None:
    """Where nothing stands, the one call answers the one obligation, however little they have in common."""
    assert about([A], rejected(0, {"item": "coffee", "price": "2"})) == ["open 0"]
    assert about([{"item": "tea", "price": "3"}], rejected(0, {"item": "coffee", "price": "2"})) == ["open 0"]


def test_wrong_field_names() -> None:
    """A call whose fields had other names cannot be compared; its mended version answers it all the same."""
    misnamed = {"InvoiceNo": "2024-2", "Sum": "21.00"}
    assert about([B], standing(0, A), rejected(0, misnamed, at=1)) == ["open 0"]
    assert about([A | {"tax": "1.10"}, B], standing(0, A), rejected(0, misnamed, at=1)) == ["stands 0", "open 0"]


def test_broken_json_then_good() -> None:
    """A call that could not be read is answered by the call that is left over, not by a changed standing record."""
    targets = standing(0, A), rejected(0, None, at=1)
    assert about([B], *targets) == ["open 0"]
    assert about([B, C], standing(0, A, taken=True), rejected(0, None, at=1)) == ["open 0", "new"]
    assert about([A | {"tax": "1.10"}, B], *targets) == ["stands 0", "open 0"]
    assert about([A | {"tax": "1.10"}], *targets) == ["stands 0"]


def test_a_repeated_record_is_spoken_for() -> None:
    """Where a standing record is repeated word for word, a near twin beside it is another record."""
    twin = A | {"invoice_number": "2024-9"}
    unreadable = rejected(0, None, at=1)
    assert about([twin], standing(0, A), unreadable) == ["stands 0"]
    assert about([twin], standing(0, A, taken=True), unreadable) == ["open 0"]


def test_broken_json_again() -> None:
    """A call that cannot be read either is another try at the one that could not be read."""
    assert about([None], standing(0, A), rejected(0, None, at=1)) == ["open 0"]
    assert about([None, B], rejected(0, None), rejected(1, B_BAD, at=1)) == ["open 0", "open 1"]


def test_a_missing_field_that_tells_the_records_apart() -> None:
    """The rejected record lacked just the field that tells it from the other; its mended version finds it."""
    first = {"supplier": "Miller", "number": "1"}
    targets = standing(0, first), rejected(0, {"supplier": "Miller"}, at=1)
    assert about([{"supplier": "Miller", "number": "2"}], *targets) == ["open 0"]


def test_faults_are_expected_to_change() -> None:
    """When every telling field was at fault, a call with other values in all of them is the mended one."""
    bad = invoice(
        2, invoice_number="x", net="a", tax="b", total="c", lines=[{"text": "-", "quantity": "-", "price": "-"}]
    )
    faults = ("invoice_number", "net", "tax", "total", "lines.0.text", "lines.0.quantity", "lines.0.price")
    assert about([B], standing(0, A), rejected(0, bad, at=1)) == ["new"]
    assert about([B], standing(0, A), rejected(0, bad, at=1, faults=faults)) == ["open 0"]
    assert about([B], standing(0, A), rejected(0, bad, at=1, faults=(*faults[:4], "lines"))) == ["open 0"]


def test_functions_are_kept_apart() -> None:
    """A call is about a record of its own function only."""
    assert about([("g", B)], standing(0, A), rejected(0, B_BAD, at=1)) == ["new"]
    assert about([("g", A)], standing(0, A)) == ["new"]


def test_unknown_names_fit_any_obligation() -> None:
    """A name that does not exist may have meant any function, but nothing under it claims a standing record."""
    assert about([B], rejected(0, B, name="create")) == ["open 0"]
    assert about([("create", B)], rejected(0, B_BAD)) == ["open 0"]
    assert about([("create", A)], standing(0, A)) == ["new"]


def test_twins_that_stand_need_no_obligation_of_their_kind() -> None:
    """Two standing invoices show what tells them apart; a third is new though what is open is of another function."""
    note = rejected(0, {"number": "N-1"}, name="g")
    assert about([C], standing(0, A), standing(1, B, at=1), note) == ["new"]


def test_at_most_one_call_each() -> None:
    """Two calls that are like one obligation: the likest takes it, the other is new."""
    assert about([invoice(2, net="1.00"), B], rejected(0, B_BAD)) == ["new", "open 0"]


def test_equal_calls_take_equal_obligations_in_order() -> None:
    """Equal rejected calls are answered in order."""
    line = {"text": "Screw", "price": "x"}
    mended = {"text": "Screw", "price": "1"}
    assert about([mended, mended, mended], rejected(0, line), rejected(1, line, at=1)) == ["open 0", "open 1", "new"]


def test_a_new_record_after_a_cut_reply() -> None:
    """After a cut reply new records are due: one that is like the rejected one in its supplier alone is another."""
    assert about([A], rejected(0, B_BAD)) == ["open 0"]
    assert about([A], rejected(0, B_BAD), more=True) == ["new"]
    assert about([A, B], rejected(0, B_BAD), more=True) == ["new", "open 0"]
    assert about([B], rejected(0, None), more=True) == ["open 0"]
    assert about([{"item": "tea", "price": "3"}], rejected(0, {"item": "milk", "price": "2"}), more=True) == ["new"]


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (None, {}),
        ("", {}),
        (" \n", {}),
        ("null", {}),
        ({}, {}),
        ('{"a": 1}', {"a": 1}),
        ("[1]", None),
        ('"text"', None),
        ("1", None),
        ("{broken", None),
        ("[" * 100_000, None),
    ],
)
def test_decoded(sent: Any, read: Arguments | None) -> None:
    """Arguments are an object, an empty one where there are none, or nothing that can be read."""
    assert decoded(sent) == read


def test_said() -> None:
    """Calls say the same whatever the order of keys, the type of a value, or nulls; not when values are swapped."""
    assert said('{"a": 1, "b": null}') == said({"a": "1"})
    assert said({"lines": [{"a": 1, "b": 2}, {"a": 2, "b": 1}]}) != said(
        {"lines": [{"a": 1, "b": 1}, {"a": 2, "b": 2}]}
    )
    assert said("{broken") == "{broken"
    assert said("[1]") != said("[2]")


class _Frozen(Mapping[str, Any]):
    def __init__(self, **values: Any) -> None:
        self._values = values

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def test_canonical() -> None:
    """One text for equal values, for any kind of mapping."""
    assert canonical({"b": [1, None], "a": "ä"}) == '{"a":"ä","b":[1,null]}'
    assert canonical({"x": _Frozen(b=1, a=2)}) == '{"x":{"a":2,"b":1}}'


values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "x", "y"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from("abcd"), values, max_size=4)


@given(objects)
def test_leaves_do_not_depend_on_order(value: dict[str, Any]) -> None:
    """The order of keys does not change what a call says."""
    turned = dict(reversed(value.items()))
    assert said(value) == said(turned)
    assert sorted(leaves(value), key=repr) == sorted(leaves(turned), key=repr)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("fgh"), st.none() | objects), max_size=5),
    st.lists(st.tuples(st.sampled_from("fgh"), st.none() | objects, st.booleans(), st.booleans()), max_size=5),
)
def test_every_target_once(calls: list[tuple[str, Any]], known: list[tuple[str, Any, bool, bool]]) -> None:
    """Whatever is sent: one target at most for each call, one call for each target, and never one that is taken."""
    targets = [
        Target(name, index, arguments, is_open, index, is_taken=is_taken and not is_open)
        for index, (name, arguments, is_open, is_taken) in enumerate(known)
    ]
    found = assign([(position, *one) for position, one in enumerate(calls)], targets, KNOWN)
    assert set(found) <= set(range(len(calls)))
    assert len({target.index for target in found.values()}) == len(found)
    assert not any(target.is_taken for target in found.values())


def test_many_calls_are_matched_in_time() -> None:
    """As many calls as fit into a reply, against as many records, take no more than a moment."""
    calls = [(n, "f", {"item": str(n), "price": str(n % 7)}) for n in range(200)]
    targets = [standing(n, {"item": str(n + 100), "price": "1"}, at=n) for n in range(200)]
    begun = time.perf_counter()
    assign(calls, targets, KNOWN)
    assert time.perf_counter() - begun < 5
