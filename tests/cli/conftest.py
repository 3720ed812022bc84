"""What tests of single commands stand on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.command import Project, lay_down, one_note
from stub_server import StubServer


@pytest.fixture
def notes(tmp_path: Path) -> Project:
    """A project with one document; nobody may be asked."""
    return lay_down(tmp_path / "project", 1)


@pytest.fixture
def server() -> Iterator[StubServer]:
    """A stub that answers with one note."""
    with StubServer(one_note) as running:
        yield running
