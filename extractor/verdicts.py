"""From the last state of a conversation to its outcome."""

from __future__ import annotations

from extractor.conversation import Conversation
from extractor.messages import Unanswered, Verdict
from extractor.outcome import Outcome, Status


def conclude(state: Conversation) -> Outcome:
    """What came of it, with every cause kept."""
    bug = state.bug
    return Outcome(
        status=_status(state),
        results=tuple(one.result for one in state.standing),
        transcript=state.transcript,
        attempts=state.attempts,
        usage=state.usage,
        flags=state.flags,
        error=_error(state),
        cause=bug.cause if bug is not None else None,
        unanswered=state.unanswered,
    )


def _status(state: Conversation) -> Status:
    if state.bug is not None:
        return Status.FAILED
    if not state.is_settled:
        return _unsettled(state)
    if state.standing:
        only_duplicates = all(one.result.verdict is Verdict.DUPLICATE for one in state.standing)
        return Status.DUPLICATE if only_duplicates else Status.DONE
    return Status.DONE if state.is_answered else Status.EMPTY


def _unsettled(state: Conversation) -> Status:
    """Attempts ran out, or nobody answered. Trouble in transport never settles a document."""
    unanswered = state.unanswered
    if unanswered is None:
        return Status.EXHAUSTED
    if unanswered.kind != "refused":
        return Status.FAILED
    return Status.EXHAUSTED if state.standing else Status.REFUSED


def _error(state: Conversation) -> str:
    """One line, the latest cause first."""
    if state.bug is not None:
        return f"{state.bug.name}: the function raised an exception that is not Rejected"
    if state.is_settled:
        return "" if state.standing else state.given_up or ""
    causes = [a.answer for a in state.attempts if isinstance(a.answer, Unanswered)]
    lines = [f"{cause.model or 'model'}: {cause.cause}" for cause in reversed(causes)]
    if state.unanswered is None or state.obligations:
        lines.insert(0 if state.unanswered is None else len(lines), _spent(state))
    return " ".join("; ".join(lines).split())


def _spent(state: Conversation) -> str:
    """What the attempts ended with."""
    spent = sum(1 for attempt in state.attempts if not isinstance(attempt.answer, Unanswered))
    last = [obligation.error for obligation in state.obligations]
    last = last or [error for attempt in state.attempts[-1:] for error in attempt.errors]
    if state.is_cut_off and state.standing:
        last.append("records may be missing, since an answer was cut off")
    repeats = ", the last of which repeats the one before" if state.repeats else ""
    return f"after {spent} attempts{repeats}: {'; '.join(last)}"
