"""Asking for no more than what is wrong, freely or from a closed choice."""

from __future__ import annotations

from collections.abc import Sequence

from extractor.attempts.candidates import narrowed
from extractor.attempts.patching import plan, what_stands
from extractor.attempts.places import Wanted, wanted
from extractor.attempts.steps import Step, reask
from extractor.conversation import UNFIT, Conversation

KINDS = ("repair", "narrow")


def repair(state: Conversation) -> Step:
    """Ask for the values at fault alone; where that cannot be done, or was done in vain, for everything."""
    records = repairable(state)
    return plan(state, records, "repair", _asked(records, with_errors=True)) if records else reask(state)


def narrow(state: Conversation) -> Step:
    """The same from a closed choice, where the document holds candidates for some value."""
    records = repairable(state)
    closed = narrowed(state, records)
    return plan(state, closed, "narrow", _asked(closed, with_errors=False)) if closed else repair(state)


def repairable(state: Conversation) -> tuple[Wanted, ...]:
    """The open records with their values at fault, where everything that is open is of this kind, and the present
    model has not failed at it before."""
    is_in_vain = any(one.fault == UNFIT and one.kind in KINDS and one.rank == state.rank for one in state.attempts)
    return () if state.is_cut_off or is_in_vain else wanted(state)


def _asked(records: Sequence[Wanted], *, with_errors: bool) -> str:
    """The question. Small models read best what stands last: the names that are asked for."""
    lines = []
    if len(records) > 1:
        lines.append(f"{len(records)} records have to be mended: answer once for each of them, in this order.")
    for number, one in enumerate(records, start=1):
        head = f"Record {number} ({one.offer.name})" if len(records) > 1 else "The record"
        lines.append(f"{head} has these values, which are right: {what_stands(one)}")
        if with_errors:
            lines.append(f"It was not accepted: {one.obligation.error}")
        names = ", ".join(place.name for place in one.places)
        lines.append(f"Read in the document again, and answer with no more than: {names}")
        lines += [f"{place.name} is one of: {' | '.join(place.choices)}" for place in one.places if place.choices]
    return "\n".join(lines)
