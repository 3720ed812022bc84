"""From what a user names to files: files, folders, globs."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from extractor.errors import UsageError

LITTER = frozenset({"thumbs.db", "desktop.ini"})


def find(sources: Iterable[str | Path]) -> Iterator[Path]:
    """The files that sources name, each once, in a stable order.

    A folder is walked with all that is below it. Hidden files and folders, the litter of operating systems, and
    symbolic links that lead out of the folder are left; every other file is a document, and one of a kind that is not
    read becomes a failure with a reason, not a gap.

    :raises UsageError: when a source is no file, no folder, and a pattern that matches nothing.
    """
    seen: set[Path] = set()
    for source in sources:
        for path in _files(source):
            real = path.resolve()
            if real not in seen:
                seen.add(real)
                yield path


def _files(source: str | Path) -> Iterator[Path]:
    path = Path(source)
    try:
        is_folder, exists = path.is_dir(), path.exists() or path.is_symlink()
    except (OSError, ValueError):
        raise UsageError(f"{str(source)!r} is no path") from None
    if is_folder:
        yield from _below(path)
    elif exists:
        yield path
    elif glob.has_magic(str(source)):
        yield from _matching(str(source))
    else:
        raise UsageError(f"there is no file or folder {str(source)!r}")


def _below(folder: Path) -> Iterator[Path]:
    root = folder.resolve()
    found = False
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(place) / name
            if name.startswith(".") or name.lower() in LITTER or not path.resolve().is_relative_to(root):
                continue
            found = True
            yield path
    if not found:
        raise UsageError(f"the folder {str(folder)!r} holds no documents")


def _matching(pattern: str) -> Iterator[Path]:
    found = False
    for match in sorted(glob.iglob(pattern, recursive=True)):  # noqa: PTH207 - Path.glob takes no absolute pattern
        if Path(match).is_file():
            found = True
            yield Path(match)
    if not found:
        raise UsageError(f"nothing matches {pattern!r}")
