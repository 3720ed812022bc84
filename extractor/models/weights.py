"""Weights on this machine: where they are, and how they get there.

Sources are tried in order, one line for each that fails; what arrives is verified by its SHA-256 and moved into place
in one step. What was fetched of an interrupted pull is kept, and the next pull goes on from there.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from extractor.errors import WeightsError
from extractor.models import fetching
from extractor.models.catalogue import Weights, entry

Say = Callable[[str], None]
Show = Callable[[int, int], None]
"""Called with bytes so far and bytes in all."""


def folder() -> Path:
    """Where weights are kept: ``EXTRACTOR_MODELS``, else the user's cache folder."""
    named = os.environ.get("EXTRACTOR_MODELS")
    if named:
        return Path(named).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("extractor") / "models"


def path_of(name: str) -> Path | None:
    """The verified file of a model of the catalogue, if it is on this machine."""
    weights = entry(name)
    path = folder() / weights.file
    return path if _is_verified(path, weights) else None


def pull(name: str, *, source: str | None = None, say: Say, show: Show | None = None) -> Path:
    """Have the weights of a model on this machine.

    :param source: a file or address to take them from, in place of the catalogue's own sources.
    :param say: told size and place before anything is fetched, and why each source failed that did.
    :param show: told the progress.
    :raises WeightsError: when no source has them, or there is no room for them.
    """
    weights = entry(name)
    target = folder() / weights.file
    if _is_verified(target, weights):
        return target
    _make(folder())
    with _lock(target, say):
        if _is_verified(target, weights):  # another process was at it
            return target
        _check_room(target, weights)
        say(f"{name}: {weights.bytes / 1e6:,.0f} MB ({weights.licence}) into {target.parent}")
        for where, fetch in fetching.ways(weights, source):
            try:
                _take(fetch, target, weights, show or (lambda _done, _all: None))
            except Exception as error:  # what a source sends is hostile: whatever comes of it, the next one is tried
                _give_up_if_full(error, target, weights)
                say(f"{where}: {_reason(error)}")
                continue
            _remember(target, weights)
            fetching.tidy(target.parent, weights)
            return target
    raise WeightsError(
        f"no source has the weights of {name}",
        hint="fetch the file yourself and use --from PATH, or local:PATH as model",
    )


def _take(fetch: fetching.Fetch, target: Path, weights: Weights, show: Show) -> None:
    """Fetch, verify and move into place; once more from the start if what an earlier pull left was at fault."""
    from_the_start = fetching.present(target.parent, weights) == 0
    while True:
        part = fetch(target.parent, show)
        if _digest(part) == weights.sha256:
            os.replace(part, target)  # noqa: PTH105 - one step, also over a file that is there
            return
        fetching.tidy(target.parent, weights)  # kept, it would spoil every pull to come
        if from_the_start:
            raise WeightsError("what it has is another file (its SHA-256 is not the catalogue's)")
        from_the_start = True


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _is_verified(path: Path, weights: Weights) -> bool:
    """Whether the file is there and has been verified; hashed again only when it has changed since."""
    try:
        state = path.stat()
    except OSError:
        return False
    if state.st_size != weights.bytes:
        return False
    with contextlib.suppress(OSError, ValueError, KeyError):
        known = json.loads(_sidecar(path).read_text())
        if known == _fingerprint(state, weights):
            return True
    with contextlib.suppress(OSError):
        if _digest(path) == weights.sha256:
            _remember(path, weights)
            return True
    return False


def _remember(path: Path, weights: Weights) -> None:
    with contextlib.suppress(OSError):  # a cache folder that is read-only: the file is hashed each time
        _sidecar(path).write_text(json.dumps(_fingerprint(path.stat(), weights)))


def _fingerprint(state: os.stat_result, weights: Weights) -> dict[str, object]:
    return {"size": state.st_size, "mtime": state.st_mtime_ns, "sha256": weights.sha256}


def _sidecar(path: Path) -> Path:
    return path.with_name(f".{path.name}.verified")


def _make(place: Path) -> None:
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WeightsError(f"the folder {place} cannot be made: {error.strerror}") from None


def _check_room(target: Path, weights: Weights) -> None:
    """Parts and the whole stand side by side for a while: twice the size, less what is there."""
    needed = 2 * weights.bytes - fetching.present(target.parent, weights)
    free = shutil.disk_usage(target.parent).free
    if free < needed:
        raise WeightsError(
            f"no room for {weights.name} in {target.parent}: needs {needed / 1e6:,.0f} MB, {free / 1e6:,.0f} are free",
            hint="free some space, or set EXTRACTOR_MODELS to another folder",
        )


def _give_up_if_full(error: Exception, target: Path, weights: Weights) -> None:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        raise WeightsError(
            f"the disk is full in {target.parent} while fetching {weights.name}",
            hint="free some space, or set EXTRACTOR_MODELS to another folder, and run again: what was fetched is kept",
        ) from None


def _reason(error: Exception) -> str:
    if isinstance(error, WeightsError):
        return str(error)
    return getattr(error, "strerror", None) or f"what it sends cannot be read ({type(error).__name__})"


@contextlib.contextmanager
def _lock(target: Path, say: Say) -> Iterator[None]:
    """One pull of a file at a time, across threads and processes.

    The lock is the operating system's, on an empty file that stays: it is given back when its holder dies, however
    that went, so that none is ever stale and none is ever taken from a living process.
    """
    path = target.with_name(f".{target.name}.lock")
    try:
        handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o666)
    except OSError as error:
        raise WeightsError(f"{target.parent} cannot be written: {error.strerror}") from None
    try:
        told = False
        while not _is_locked(handle, path):
            if not told:
                say(f"another process is fetching {target.name}; waiting for it")
                told = True
            time.sleep(0.2)
        yield
    finally:
        os.close(handle)


def _is_locked(handle: int, path: Path) -> bool:
    """Whether the lock could be taken now."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK):  # another one has it
            return False
        raise WeightsError(f"{path} cannot be locked: {error.strerror}",
                           hint="set EXTRACTOR_MODELS to a folder on this machine") from None  # fmt: skip
    return True
