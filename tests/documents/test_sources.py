"""Files, folders and globs."""

from __future__ import annotations

from pathlib import Path

import pytest

from extractor.documents import find, load
from extractor.errors import UnreadableDocument, UsageError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder as people keep them."""
    for name in ("b.txt", "a.pdf", "sub/c.txt", ".hidden", ".git/x.txt", "Thumbs.db", "table.xlsx"):
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    (tmp_path / "outside.txt").write_text("secret")
    (tmp_path / "in" / "link.txt").symlink_to(tmp_path / "outside.txt")
    return tmp_path / "in"


def names(folder: Path, *sources: str | Path) -> list[str]:
    """What is found, relative to the folder."""
    return [str(path.relative_to(folder)) for path in find(sources)]


def test_a_folder_is_walked_without_hidden_files_litter_and_links_that_lead_out(folder: Path) -> None:
    """Everything else is a document, also of a kind that is not read: a gap would be silent."""
    assert names(folder, folder) == ["a.pdf", "b.txt", "table.xlsx", "sub/c.txt"]


def test_a_file_named_twice_is_found_once(folder: Path) -> None:
    """Overlapping sources name no document twice."""
    assert names(folder, folder / "b.txt", folder, f"{folder}/*.txt").count("b.txt") == 1


def test_a_glob_that_the_shell_left_alone_is_expanded(folder: Path) -> None:
    """Quoted patterns work, also over folders."""
    assert names(folder, f"{folder}/**/*.txt") == ["b.txt", "link.txt", "sub/c.txt"]


@pytest.mark.parametrize("source", ["nowhere", "nowhere/*.pdf", "\0"])
def test_a_source_that_names_nothing_is_an_error(source: str) -> None:
    """A typing slip is no empty success."""
    with pytest.raises(UsageError):
        list(find([source]))


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    """A run over nothing says so."""
    with pytest.raises(UsageError, match="holds no documents"):
        list(find([tmp_path]))


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    """A vanished file and a folder are document errors with the reason."""
    for path in (tmp_path, tmp_path / "gone.txt"):
        with pytest.raises(UnreadableDocument, match="cannot be read"):
            load(path)
