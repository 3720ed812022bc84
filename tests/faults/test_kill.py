"""SIGKILL in the middle of a run, again and again."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from faults import notes_project
from stub_server import StubServer

DOCUMENTS = 90
KILLS = 20
WORKERS = 4


def start(project: Path, server: StubServer) -> subprocess.Popen[bytes]:
    """``extractor run`` in a process of its own."""
    environment = {**os.environ, "OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-test"}
    command = [sys.executable, "-m", "extractor", "run", "notes", "docs", "--workers", str(WORKERS)]
    return subprocess.Popen(
        command, cwd=project, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )  # fmt: skip


def kill_after(process: subprocess.Popen[bytes], server: StubServer, requests: int, delay: float) -> bool:
    """Kill once the server has met so many more requests; returns whether the process was still running."""
    goal, deadline = len(server.requests) + requests, time.monotonic() + 60
    while len(server.requests) < goal and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    time.sleep(delay)
    alive = process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return alive


def test_killed_twenty_times_every_document_has_its_records_exactly_once(tmp_path: Path) -> None:
    """After twenty kills and one last run each note stands once, and asks repeat at most those in flight at a kill."""
    project = tmp_path / "project"
    notes_project.lay_down(project, DOCUMENTS)
    chance = random.Random(20261130)
    with StubServer(notes_project.answer) as server:
        killed = 0
        for _ in range(KILLS):
            killed += kill_after(start(project, server), server, chance.randint(1, 6), chance.uniform(0, 0.06))
        last = start(project, server)
        _, said = last.communicate(timeout=120)
        asked = len(server.requests)
        assert last.returncode == 0, said.decode()
        settled = start(project, server)
        settled.communicate(timeout=60)
        assert len(server.requests) == asked, "a settled document was asked again"
    assert killed >= KILLS * 3 // 4, "the kills came too late to prove anything"
    with sqlite3.connect(project / "notes.db") as database:
        rows = Counter(database.execute("select document, number, text from note").fetchall())
        statuses = Counter(row[0] for row in database.execute("select status from extractor_work"))
        (integrity,) = database.execute("pragma integrity_check").fetchone()
    wanted = {(d, n, f"note {n} of {d}") for d in range(DOCUMENTS) for n in range(d % 3 + 1)}
    assert set(rows) == wanted
    assert set(rows.values()) == {1}
    assert statuses == {"done": DOCUMENTS}
    assert integrity == "ok"
    assert asked <= notes_project.asks_needed(DOCUMENTS) + killed * WORKERS
