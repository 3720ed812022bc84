"""The state of the loop, and every decision about it, as pure functions of frozen values.

An *obligation* is a call that was rejected and has to be mended: it closes by an accepted call that is about the same
record, or when the model drops it by ``nothing_to_extract``, never by silence. A *standing* record was accepted; it is
not run again, and a change to it that nobody asked for is answered "stands" and flagged.
"""

from __future__ import annotations

from extractor.conversation.judging import after_reply, after_silence, nudge, with_own_ids
from extractor.conversation.sorting import Sorted, sort_calls
from extractor.conversation.state import (
    CUT_OFF,
    KEPT,
    NO_CALL,
    UNFIT,
    Aside,
    Conversation,
    Merged,
    Obligation,
    Rules,
    Standing,
)

__all__ = [
    "CUT_OFF",
    "KEPT",
    "NO_CALL",
    "UNFIT",
    "Aside",
    "Conversation",
    "Merged",
    "Obligation",
    "Rules",
    "Sorted",
    "Standing",
    "after_reply",
    "after_silence",
    "nudge",
    "sort_calls",
    "with_own_ids",
]
