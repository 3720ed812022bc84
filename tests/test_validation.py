"""The document's context reaches every validator."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel, ValidationInfo, field_validator
from sqlmodel import SQLModel

from extractor.fields import Amount, Style
from extractor.functions import function


class Seen(SQLModel):
    """Notes the context that its validator is given."""

    text: str

    @field_validator("text", mode="before")
    @classmethod
    def note(cls, value: str, info: ValidationInfo) -> str:
        """Say what was seen."""
        return f"{value} {(info.context or {}).get('mark')}"


class Inner(SQLModel):
    """A line."""

    amount: Amount
    seen: list[Seen]


class Outer(SQLModel):
    """A record with lines."""

    lines: list[Inner]
    one: Inner | None = None


class Plain(BaseModel):
    """A pydantic class around SQLModel ones."""

    lines: list[Inner]


def many(lines: list[Inner], one: Inner | None = None) -> Any:
    """Record lines."""
    return lines


LINE = {"amount": "1.500", "seen": [{"text": "a"}]}


@pytest.mark.parametrize("target", [Outer, Plain, many])
def test_the_context_reaches_nested_sqlmodel_classes(target: Any) -> None:
    """An amount in a line is read in the document's style, and a user's own validator sees it too, at any depth."""
    context = {"style": Style(decimal=","), "flags": [], "mark": "here"}
    value = function(target).validate({"lines": [LINE]}, context)
    (line,) = value["lines"] if isinstance(value, dict) else value.lines
    assert (line.amount, line.seen[0].text) == (Decimal(1500), "a here")
    assert type(line) is Inner
    assert line.model_dump()["seen"] == [{"text": "a here"}]
