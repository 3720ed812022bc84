"""The stub server as a process of its own, for tests that kill its client."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

from stub_server import first_offer


def test_the_stub_runs_as_a_process(tmp_path: Path) -> None:
    """The stub serves from a process of its own, logs each request, and ends with its standard input."""
    log, script = tmp_path / "requests.jsonl", Path(sys.modules["stub_server"].__file__ or "")
    body = {"tools": [{"type": "function", "function": {"name": "create_invoice"}}]}
    command = [sys.executable, str(script), "--log", str(log), "--latency", "0.01"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as stub:
        assert stub.stdout is not None
        address = stub.stdout.readline().strip() + "/chat/completions"
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(address, data=json.dumps(body).encode(), timeout=10) as response:
            answer = json.load(response)
        stub.communicate(timeout=10)
    assert stub.returncode == 0
    assert answer["choices"][0]["message"]["tool_calls"][0]["function"] == {"name": "create_invoice", "arguments": "{}"}
    assert [json.loads(line) for line in log.read_text().splitlines()] == [
        {"path": "/v1/chat/completions", "body": body}
    ]


def test_with_nothing_on_offer_the_stub_says_so() -> None:
    """Without tools the default answer is text."""
    assert first_offer({}).body["choices"][0]["message"]["content"] == "nothing is on offer"
