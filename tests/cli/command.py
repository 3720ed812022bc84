"""The command as a person runs it: a process of its own, in a small project of its own."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faults import notes_project
from stub_server import Answer, StubServer, completion

HEADER = ("pipeline   ", "model      ", "price      ", "budget     ", "database   ", "documents  ")
NOWHERE = "http://127.0.0.1:9/v1"
"""An address at which nobody listens: what must not be asked fails loudly."""


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> list[str]:
        """The lines on stderr beside the header of a run and the sum at its end."""
        lines = [line for line in self.err.splitlines() if line.strip()]
        return [line for line in lines if not line.startswith(HEADER) and " tokens · " not in line]

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Stdout as JSON lines; anything else on it is an error."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def sum(self) -> dict[str, Any]:
        """The last line of ``run --json``."""
        return self.lines[-1]


@dataclass(frozen=True, slots=True)
class Project:
    """A project of notes in a folder; its model is a stub that may be absent."""

    folder: Path
    server: StubServer | None = None

    def environment(self, **changes: str | None) -> dict[str, str]:
        """What a command finds around it; ``None`` takes a variable away."""
        base = {**os.environ, "OPENAI_API_KEY": "sk-test", "EXTRACTOR_OFFLINE": "1"}
        base["EXTRACTOR_MODELS"] = str(self.folder / "weights")
        base["OPENAI_BASE_URL"] = self.server.base_url if self.server else NOWHERE
        merged: dict[str, str | None] = {**base, **changes}
        return {name: value for name, value in merged.items() if value is not None}

    def start(self, *words: str, **environment: str | None) -> subprocess.Popen[str]:
        """Start a command."""
        return subprocess.Popen(
            [sys.executable, "-m", "extractor", *words], cwd=self.folder, env=self.environment(**environment),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8",
        )  # fmt: skip

    def run(self, *words: str, **environment: str | None) -> Ran:
        """Run a command to its end; no command may take long, and none may show a traceback."""
        if not hasattr(os, "fork"):
            return ended(self.start(*words, **environment))
        out, err = self.folder.with_name("out"), self.folder.with_name("err")
        asked = {"words": words, "folder": str(self.folder), "environment": self.environment(**environment)}
        code = _forked({**asked, "out": str(out), "err": str(err)})
        return _checked(Ran(code, out.read_text("utf-8"), err.read_text("utf-8")))

    def write(self, name: str, content: str | bytes = "document 1 holds 2 notes\n") -> Path:
        """Write a file of the project."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    @property
    def asked(self) -> int:
        """How many questions the stub has met."""
        return len(self.server.requests) if self.server else 0


def ended(process: subprocess.Popen[str]) -> Ran:
    """Wait for a command to end."""
    try:
        out, err = process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return _checked(Ran(process.returncode, out, err))


def _checked(ran: Ran) -> Ran:
    assert "Traceback" not in ran.out + ran.err, ran.err
    return ran


@functools.cache
def _server() -> subprocess.Popen[str]:
    """The process that forks commands; it ends with this one, when its stdin closes."""
    return subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("forking.py"))],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def _forked(command: dict[str, Any]) -> int:
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps(command) + "\n")
    server.stdin.flush()
    return int(server.stdout.readline())


def lay_down(folder: Path, documents: int = 0, server: StubServer | None = None) -> Project:
    """A project with so many documents in ``docs``."""
    notes_project.lay_down(folder, documents)
    return Project(folder, server)


def one_note(body: dict[str, Any]) -> Answer:
    """The stub's answer to any document: one note, named by the document's number."""
    number = int(re.search(r"document (\d+)", json.dumps(body["messages"])).group(1))  # type: ignore[union-attr]
    note = {"document": number, "number": 0, "text": f"note of {number}"}
    return completion(calls=[("create_note", note)], usage=notes_project.USAGE)


def is_one_line(ran: Ran, code: int, *words: str) -> None:
    """The command ended with that code and said one line, which holds these words."""
    assert ran.code == code, ran.err
    assert len(ran.said) == 1, ran.err
    missing = [word for word in words if word not in ran.said[0]]
    assert not missing, f"{missing} not in {ran.said[0]!r}"


def texts(ran: Ran) -> Sequence[str]:
    """What the notes of ``records --json`` say."""
    return sorted(line["record"]["text"] for line in ran.lines)
