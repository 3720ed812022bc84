"""The code in the documentation runs."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
BLOCKS = [
    pytest.param(page, block, id=f"{page.name}-{number}")
    for page in PAGES
    for number, block in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")))
]


@pytest.mark.parametrize(("page", "block"), BLOCKS)
def test_a_block_of_python_runs(page: Path, block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block of Python in the README and the guide runs by itself, with a scripted model in place of a real one."""
    from extractor.messages import Ask, Reply
    from extractor.testing import Scripted, call, reply

    lines = [{"description": "Brush", "quantity": "2", "unit_price": "4.50", "amount": "9.00"}]
    invoice = {
        "invoice_number": "A-1", "issue_date": "2024-03-05", "seller": "Brush & Co", "currency": "EUR", "net": "9.00",
        "tax": "1.00", "total": "10.00", "line_items": lines,
    }  # fmt: skip

    def answer(ask: Ask) -> Reply:
        name = ask.offers[0].name
        arguments = invoice if name == "create_invoice" else {"number": "7", "total": "10.00", "lines": []}
        return reply(call(name, **arguments))

    (tmp_path / "a.txt").write_text("Invoice A-1, number 7, Brush & Co, 2024-03-05, EUR 10.00")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(ROOT))
    model = Scripted(answer)
    monkeypatch.setattr("extractor.models.resolving.resolve", lambda models, *_: (model,))
    module = types.ModuleType(f"page_{page.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(block, page.name, "exec", dont_inherit=True), vars(module))
