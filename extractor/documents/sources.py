"""From what a user names to files: files, folders, globs."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from extractor.errors import UsageError

LITTER = frozenset({"thumbs.db", "desktop.ini", "ehthumbs.db"})


def find(sources: Iterable[str | Path]) -> Iterator[Path]:
    """The files that sources name, each once, in a stable order, listed as they are asked for.

    A folder is walked with all that is below it. Hidden files and folders, the litter of operating systems, and
    symbolic links that lead out of the folder are left; every other file is a document, and one of a kind that is not
    read becomes a failure with a reason, not a gap. So does a folder in it that cannot be listed. A pattern is
    expanded as a shell does it, ``**`` too: it finds nothing hidden unless it says so; a folder that it finds is
    walked, except by a pattern with ``**``, which finds what is in folders anyway.

    :raises UsageError: when a source is no file, no folder, and a pattern that matches nothing.
    """
    seen: set[Path] = set()
    for source in sources:
        for path in _files(source):
            real = _real(path)
            if real not in seen:
                seen.add(real)
                yield path


def _files(source: str | Path) -> Iterator[Path]:
    path = Path(source)
    try:
        is_folder, exists = path.is_dir(), path.exists() or path.is_symlink()
    except (OSError, ValueError, RuntimeError):
        is_folder, exists = False, _is_link(path)
        if not exists:
            raise UsageError(f"{str(source)!r} is no path") from None
    if not str(source):
        raise UsageError("there is no file or folder ''", hint="the current folder is '.'")
    if is_folder:
        yield from _some(_below(path), f"the folder {str(source)!r} holds no documents")
    elif exists:
        yield path
    elif glob.has_magic(str(source)):
        yield from _some(_matching(path), f"nothing matches {str(source)!r}")
    else:
        raise UsageError(f"there is no file or folder {str(source)!r}")


def _some(paths: Iterator[Path], otherwise: str) -> Iterator[Path]:
    """The paths, of which there has to be one."""
    found = False
    for path in paths:
        found = True
        yield path
    if not found:
        raise UsageError(otherwise)


def _below(folder: Path) -> Iterator[Path]:
    root = _real(folder)
    closed: list[Path] = []
    for place, folders, files in os.walk(folder, onerror=lambda error: closed.append(Path(error.filename))):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(place) / name
            if not name.startswith(".") and name.lower() not in LITTER and _real(path).is_relative_to(root):
                yield path
    yield from closed


def _matching(pattern: Path) -> Iterator[Path]:
    """What a pattern matches. ``**`` does not follow links to folders, which may lead in circles."""
    parts = pattern.parts
    first = next(place for place, part in enumerate(parts) if glob.has_magic(part))
    root, rest = Path(*parts[:first]), parts[first:]
    is_deep = "**" in rest
    if rest[-1] == "**":
        rest = (*rest, "*")  # all files below, not the folders alone
    shows_hidden = any(part.startswith(".") for part in rest)
    for path in sorted(root.glob(str(Path(*rest)))):
        below = path.relative_to(root).parts
        if path.name.lower() in LITTER or (not shows_hidden and any(part.startswith(".") for part in below)):
            continue
        if not path.is_dir():
            yield path
        elif not is_deep:
            yield from _below(path)


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # links in a circle
        return path.absolute()


def _is_link(path: Path) -> bool:
    try:
        return path.is_symlink()
    except (OSError, ValueError):
        return False
