"""Files, folders and globs."""

from __future__ import annotations

import os
from collections.abc import Iterator
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
    (folder / "alias.txt").symlink_to(folder / "b.txt")
    found = names(folder, folder / "b.txt", folder, f"{folder}/*.txt", f"{folder}/sub/../b.txt")
    assert [name for name in found if name in ("alias.txt", "b.txt")] == ["b.txt"]


def test_files_are_listed_as_they_are_asked_for(folder: Path) -> None:
    """The first file is there before a later source is looked at."""

    def sources() -> Iterator[Path]:
        yield folder
        raise AssertionError("the second source was asked for too early")

    assert next(find(sources())).name == "a.pdf"


def test_a_glob_that_the_shell_left_alone_is_expanded(folder: Path) -> None:
    """Quoted patterns work as in a shell, also over folders; what is hidden stays so unless it is named."""
    assert names(folder, f"{folder}/**/*.txt") == ["b.txt", "link.txt", "sub/c.txt"]
    assert names(folder, f"{folder}/**") == ["a.pdf", "b.txt", "link.txt", "sub/c.txt", "table.xlsx"]
    assert names(folder, f"{folder}/s*") == ["sub/c.txt"]
    assert names(folder, f"{folder}/[ab].*") == ["a.pdf", "b.txt"]
    assert names(folder, f"{folder}/.git/*.txt") == [".git/x.txt"]


def test_a_relative_pattern_gives_relative_paths(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths are named as the user named them."""
    monkeypatch.chdir(folder)
    assert [str(path) for path in find(["*.pdf", "sub"])] == ["a.pdf", "sub/c.txt"]


def test_a_file_whose_name_looks_like_a_pattern_is_a_file(folder: Path) -> None:
    """What exists is taken by its name."""
    (folder / "scan[1].txt").write_text("x")
    assert names(folder, folder / "scan[1].txt") == ["scan[1].txt"]


def test_links_in_a_circle_end(folder: Path) -> None:
    """Folders that hold themselves are walked once; a link to itself is a document that cannot be read."""
    for name in ("one", "two"):
        (folder / "sub" / name).symlink_to(folder, target_is_directory=True)
    (folder / "self").symlink_to(folder / "self")
    assert names(folder, folder) == ["a.pdf", "b.txt", "self", "table.xlsx", "sub/c.txt"]
    assert names(folder, f"{folder}/**/c.txt") == ["sub/c.txt"]
    with pytest.raises(UnreadableDocument, match="symbolic links"):
        load(next(find([folder / "self"])))


def test_a_folder_that_cannot_be_listed_is_a_failure_and_no_gap(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is found itself, so that reading it says why."""
    scan = os.scandir

    def scandir(path: str) -> object:
        if str(path).endswith("sub"):
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert names(folder, folder) == ["a.pdf", "b.txt", "table.xlsx", "sub"]


@pytest.mark.parametrize("source", ["nowhere", "nowhere/*.pdf", "\0", "", "n" * 300, "**/*.nothing"])
def test_a_source_that_names_nothing_is_an_error(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A typing slip is no empty success."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as caught:
        list(find([source]))
    assert "\n" not in str(caught.value)


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    """A run over nothing says so."""
    with pytest.raises(UsageError, match="holds no documents"):
        list(find([tmp_path]))
