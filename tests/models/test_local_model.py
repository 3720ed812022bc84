"""The real small model, in its own process."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from extractor import prompts
from extractor.errors import ConfigurationError, MissingExtra, ModelError
from extractor.messages import NOTHING_TO_EXTRACT, Ask, Offer, Reply, Sampling, Unanswered
from extractor.models import local_process
from extractor.models.local import LocalModel, model

NAME = "smollm2-135m"
FIELDS = {"city": {"type": "string", "maxLength": 20}, "year": {"type": "string", "maxLength": 4}}
OFFER = Offer(
    "create_note",
    "Record a note.",
    {"type": "object", "properties": FIELDS, "required": ["city", "year"], "additionalProperties": False},
)


def ask(text: str, max_tokens: int = 60) -> Ask:
    """A question about a document."""
    return Ask(prompts.opening(text), (OFFER, NOTHING_TO_EXTRACT), sampling=Sampling(max_tokens=max_tokens))


@pytest.fixture(scope="module")
def small() -> LocalModel:
    """The smallest model of the catalogue, fetched if it is not here."""
    found = model(NAME)
    found.prepare()
    return found


def test_an_answer_is_held_to_the_schema_and_counted(small: LocalModel) -> None:
    """The text begins the object that was asked for, and its tokens are counted."""
    answer = asyncio.run(small.ask(ask("The fair was in Ghent in 1913.")))
    assert isinstance(answer, Reply)
    assert answer.tool_calls or answer.content.lstrip().startswith('{"create_note"') or "create_note" in answer.content
    assert answer.usage.input_tokens > 50
    assert 0 < answer.usage.output_tokens <= 60
    assert (answer.model, answer.finish_reason in ("stop", "length")) == (f"local/{NAME}", True)


def test_one_server_serves_every_object_loop_and_thread(small: LocalModel) -> None:
    """Two objects of one name, and one loop after the other, share one process."""
    first = local_process.server_for(small._path())
    asyncio.run(model(NAME).ask(ask("Bruges, 1302.", 8)))
    asyncio.run(small.ask(ask("Bruges, 1302.", 8)))
    assert local_process.server_for(small._path()) is first


def test_the_key_is_needed_and_is_on_no_command_line(small: LocalModel) -> None:
    """Nobody else on this machine can use the server, or read the key from the list of processes."""
    server = local_process.server_for(small._path())
    connection = server.connect(10)
    connection.request("POST", "/v1/chat/completions", b"{}", {"Content-Type": "application/json"})
    assert connection.getresponse().status == 401
    connection.close()
    if sys.platform == "linux":
        words = Path(f"/proc/{server.process.pid}/cmdline").read_bytes()
        assert server.key.encode() not in words
    assert server.address.startswith("http://127.0.0.1:")


def test_a_document_that_is_too_long_is_refused_by_its_size(small: LocalModel) -> None:
    """Never silently halved: the document is refused, and the run goes on with others."""
    answer = asyncio.run(small.ask(ask("The fair was in Ghent in 1913. " * 1500)))
    assert isinstance(answer, Unanswered)
    assert (answer.kind, answer.is_fatal) == ("refused", False)
    assert "reads at most 8192" in answer.cause


def test_a_server_that_died_is_started_again(small: LocalModel) -> None:
    """One crash costs no document."""
    local_process.server_for(small._path()).process.kill()
    assert isinstance(asyncio.run(small.ask(ask("Liège, 1905.", 8))), Reply)


def test_the_server_dies_with_its_parent_however_that_went(small: LocalModel) -> None:
    """SIGKILL of the parent leaves no process behind."""
    code = (
        "import sys, time\nfrom extractor.models.local import model\nfrom extractor.models import local_process\n"
        f"m = model({NAME!r}); m.prepare()\n"
        "print(local_process.server_for(m._path()).process.pid, flush=True)\ntime.sleep(600)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and _runs(child):
        time.sleep(0.05)
    assert not _runs(child)


def _runs(pid: int) -> bool:
    """Whether a process still runs; one that has ended and waits to be collected does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_a_file_that_is_no_model_is_one_clear_line(tmp_path: Path) -> None:
    """A broken download, a wrong path, a missing package: each says what to do."""
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF but not really")
    with pytest.raises(ModelError, match=r"broken\.gguf cannot be loaded"):
        model(f"local:{broken}").prepare()
    with pytest.raises(ConfigurationError, match="there is no model file"):
        model("local:nowhere.gguf")


def test_a_missing_package_is_named_with_its_line(small: LocalModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra that brings llama.cpp is in the message."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'extractor\[local\]'"):
        small.prepare()
