"""The house rules that a program can see."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import extractor

ROOT = Path(__file__).parent.parent
MODULES = sorted((ROOT / "extractor").rglob("*.py"))
HEAVY = ("sqlmodel", "sqlalchemy", "instructor", "openai", "pandas", "ray", "xllamacpp", "pypdfium2", "pydantic")


def in_a_fresh_process(code: str) -> str:
    """What a new interpreter prints."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout


def test_importing_extractor_loads_nothing_heavy() -> None:
    """``import extractor`` costs next to nothing: no ORM, no SDK, no pandas."""
    code = f"import extractor, sys, json; print(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    assert json.loads(in_a_fresh_process(code)) == []


def test_the_help_loads_nothing_heavy() -> None:
    """``extractor --help`` answers before any of it is needed."""
    code = f"import extractor.cli.app, sys, json; print(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    assert json.loads(in_a_fresh_process(code)) == []


def test_public_names_are_all_there() -> None:
    """Every name of ``__all__`` can be imported, and the type checker knows each of them."""
    shown = (ROOT / "extractor" / "__init__.py").read_text()
    for name in extractor.__all__:
        assert getattr(extractor, name) is not None
        assert f" import {name} as {name}" in shown
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = extractor.nonsense  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_room_is_too_large(path: Path) -> None:
    """No file has more than 400 lines, no function more than 40, and none is called after nothing."""
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 400
    assert path.stem not in ("utils", "base", "core", "common", "helpers")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            body = [one for one in node.body if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))]
            length = (node.end_lineno or 0) - body[0].lineno + 1 if body else 0
            assert length <= 40, f"{node.name} has {length} lines"


def test_the_loop_is_on_one_screen_and_knows_no_vendor_database_or_command() -> None:
    """The heart is a page of its own."""
    text = (ROOT / "extractor" / "chain.py").read_text()
    (loop,) = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef) and n.name == "until_success"]
    assert (loop.end_lineno or 0) - loop.lineno <= 40
    imported = set(re.findall(r"^from (\S+) import", text, re.MULTILINE))
    assert {name for name in imported if name.startswith("extractor")} <= {
        "extractor.attempts", "extractor.conversation", "extractor.messages", "extractor.outcome", "extractor.verdicts",
    }  # fmt: skip


def test_every_test_states_its_fact() -> None:
    """A test has a docstring that ends in a full stop."""
    for path in (ROOT / "tests").rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_"):
                assert (ast.get_docstring(node) or "").endswith("."), f"{path.name}: {node.name}"


def test_every_command_is_documented() -> None:
    """The command page names each command and each of its options."""
    from typer.main import get_command

    from extractor.cli.app import app

    page = (ROOT / "docs" / "commands.md").read_text()
    groups = [("extractor", get_command(app))]
    while groups:
        name, command = groups.pop()
        groups += [(f"{name} {key}", one) for key, one in getattr(command, "commands", {}).items()]
        if not getattr(command, "commands", None):
            assert f"`{name}" in page, name
            for option in (o for p in command.params for o in p.opts if o.startswith("--")):
                assert option in page, f"{name} {option}"


def test_what_is_declared_is_what_is_built_in() -> None:
    """Plugins of ours come in by the entry points that anyone uses."""
    from extractor import plugins

    with (ROOT / "pyproject.toml").open("rb") as stream:
        declared = tomllib.load(stream)["project"]["entry-points"]
    for group, ours in plugins.BUILT_IN.items():
        assert declared[group] == dict(ours)
