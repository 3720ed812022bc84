"""What follows from a value that does not stand in the document."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from extractor import Pipeline
from extractor.errors import DefinitionError
from extractor.evidence import Policies
from extractor.testing import Scripted, call


class Note(BaseModel):
    """A note."""

    title: str
    number: str | None = None
    kind: Literal["letter", "memo"] = "letter"


def extracted(tmp_path: Path, *sent: dict[str, Any], **options: Any) -> Any:
    """What comes of a short letter when these arguments are sent, one after the other."""
    pipeline = Pipeline(
        Note, name="notes", model=Scripted(*[call("note", **one) for one in sent]),
        database=f"sqlite:///{tmp_path}/notes.db", **options,
    )  # fmt: skip
    return pipeline.extract(b"Hello World\nNo. 12", name="a.txt")


def test_a_value_that_is_not_in_the_document_is_flagged(tmp_path: Path) -> None:
    """By default the record is kept and a person is told; what is there is kept with its place."""
    outcome = extracted(tmp_path, {"title": "Hello World", "number": "99"})
    assert outcome.flags == ('number: "99" does not stand in the document',)
    assert outcome.evidence["title"].match == "exact"
    assert outcome.evidence["number"].match == "absent"
    assert "kind" not in outcome.evidence


def test_a_value_that_has_to_be_in_the_document_is_asked_for_again(tmp_path: Path) -> None:
    """Where evidence is required the model hears, by path, what does not stand there."""
    outcome = extracted(
        tmp_path, {"title": "Hello World", "number": "99"}, {"title": "Hello World", "number": "12"}, evidence="require"
    )
    assert outcome.record.number == "12"
    assert 'number: "99" does not stand in the document' in outcome.attempts[0].errors[0]
    assert outcome.flags == ()


def test_evidence_can_be_off_for_a_field_and_for_all(tmp_path: Path) -> None:
    """A path that is off is neither looked for nor kept."""
    one = extracted(tmp_path, {"title": "Hello World", "number": "99"}, evidence={"number": "off"})
    assert (one.flags, list(one.evidence)) == ((), ["title"])
    (tmp_path / "notes.db").unlink()
    other = extracted(tmp_path, {"title": "None such"}, evidence="off")
    assert (other.flags, dict(other.evidence)) == ((), {})


def test_a_policy_is_of_the_longest_path() -> None:
    """A path stands for all below it, without the numbers of list items."""
    policies = Policies.of({"*": "off", "lines": "flag", "lines.amount": "require"})
    assert [policies.mode(path) for path in ("a", "lines.0.name", "lines[3].amount")] == ["off", "flag", "require"]


def test_a_policy_that_does_not_exist_is_refused() -> None:
    """The word is named, and those that exist."""
    with pytest.raises(DefinitionError, match="'demand' does not exist"):
        Policies.of("demand")  # type: ignore[arg-type]
