"""How many documents a second, and what a document costs this process, beside the floor of the same work.

    python benchmarks/throughput.py --documents 3000 --workers 64 --latency 0.2
    python benchmarks/throughput.py --transport sdk
    python benchmarks/throughput.py --evidence flag

A stub in a process of its own answers every document with an invoice of five lines after a fixed latency. The pipeline
asks, validates and writes to SQLite; the floor is a raw call of OpenAI's SDK with the same payload, and a bare insert
of the same objects through the ORM, both measured in this run. Evidence is off unless it is asked for: the floor does
not look for values either. Reported: documents a second beside workers / latency,
CPU of this process for each document, and its ratio to the floor.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "benchmarks")]
LINES = 5
NUMBER = re.compile(r"Invoice number: (T-\d+)")


def document(number: int) -> bytes:
    """An invoice of five lines, as text."""
    rows = "\n".join(f"{n}  Widget of size {n}    2   {10 + n}.50   {21 + 2 * n}.00" for n in range(LINES))
    return (
        f"Northwind Traders Ltd\n12 Harbour Road\nBristol\n\nINVOICE\n\nInvoice number: T-{number:06d}\n"
        f"Date: 5 March 2024\nBill to: Fabrikam GmbH\n\n#  Item  Qty  Price  Amount\n{rows}\n\n"
        f"Net  125.00 EUR\nVAT 20 %  25.00 EUR\nTotal  150.00 EUR\n"
    ).encode()


def arguments(number: str) -> dict[str, Any]:
    """What the model reads in it."""
    lines = [
        {
            "description": f"Widget of size {n}", "quantity": "2", "unit_price": f"{10 + n}.50",
            "amount": f"{21 + 2 * n}.00",
        }
        for n in range(LINES)
    ]  # fmt: skip
    return {
        "invoice_number": number, "issue_date": "5 March 2024", "due_date": None, "seller": "Northwind Traders Ltd",
        "buyer": "Fabrikam GmbH", "currency": "EUR", "net": "125.00", "tax": "25.00", "total": "150.00",
        "line_items": lines,
    }  # fmt: skip


def answer(body: dict[str, Any]) -> Any:
    """The stub's answer: the invoice of the document in the request."""
    from stub_server import completion

    found = NUMBER.search(str(body["messages"][-1]["content"]))
    number = found[1] if found else "T-none"
    usage = {"prompt_tokens": 700, "completion_tokens": 200, "total_tokens": 900}
    return completion(calls=[("create_invoice", arguments(number))], usage=usage)


class Stub:
    """The stub server as a process of its own."""

    def __init__(self, latency: float, *more: str) -> None:
        command = [sys.executable, str(ROOT / "tests/stub_server.py"), "--answer", "throughput:answer"]
        path = os.pathsep.join([str(ROOT / "benchmarks"), str(ROOT / "tests"), str(ROOT)])
        self._process = subprocess.Popen(
            [*command, "--latency", str(latency), *more], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip
        assert self._process.stdout is not None
        self.base_url = self._process.stdout.readline().strip()

    def __enter__(self) -> Stub:
        os.environ |= {"OPENAI_BASE_URL": self.base_url, "OPENAI_API_KEY": "none", "NO_PROXY": "127.0.0.1"}
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate("")


def measured(work: Any) -> tuple[float, float]:
    """Seconds by the clock and of this process's CPU."""
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def run_pipeline(
    documents: int, workers: int, transport: str, folder: Path, evidence: str = "off"
) -> tuple[float, float]:
    """The pipeline over the documents, its records in SQLite."""
    from extractor import Pipeline
    from extractor.extraction import Source
    from extractor.models.hosted import HostedModel
    from extractor.models.providers import PROVIDERS
    from extractor.models.settings import Settings
    from schemas.invoice import create_invoice

    model = HostedModel(PROVIDERS["openai"], "stub", Settings(transport=transport))
    model.prepare()
    pipeline = Pipeline(
        create_invoice,
        name="throughput",
        database=f"sqlite:///{folder}/throughput.db",
        model=model,
        evidence=evidence,  # type: ignore[arg-type]
    )
    done: dict[str, int] = {}

    async def all_of_them(first: int, number: int) -> None:
        sources = (Source(f"{n}.txt", data=document(n)) for n in range(first, first + number))
        async for outcome in pipeline.amap(sources, workers=workers):
            done[outcome.status] = done.get(outcome.status, 0) + 1
            (record,) = outcome.records
            assert record.invoice_number == f"T-{int(outcome.source.removesuffix('.txt')):06d}", "another's values"
            assert len(record.line_items) == LINES

    asyncio.run(all_of_them(10_000_000, min(documents, 64)))  # what is imported and made once
    done.clear()
    spent = measured(lambda: asyncio.run(all_of_them(0, documents)))
    assert done == {"done": documents}, done
    return spent


def run_sdk(documents: int, workers: int, base_url: str) -> tuple[float, float]:
    """Raw calls of OpenAI's SDK with the same payload, and nothing else."""
    from openai import AsyncOpenAI

    from extractor import Pipeline, prompts
    from extractor.messages import NOTHING_TO_EXTRACT, Ask
    from extractor.models.wires import chat_shapes
    from schemas.invoice import create_invoice

    offers = tuple(one.offer for one in Pipeline(create_invoice, name="floor").functions.values())
    messages, tools = chat_shapes.word(Ask(prompts.opening(document(1).decode()), (*offers, NOTHING_TO_EXTRACT)))

    async def calls(number: int) -> None:
        left: Iterator[int] = iter(range(number))
        async with AsyncOpenAI(api_key="none", base_url=base_url, max_retries=0) as client:

            async def worker() -> None:
                for _ in left:
                    sent = await client.chat.completions.create(
                        model="stub",
                        messages=messages,
                        tools=tools,
                        tool_choice="required",
                        max_tokens=4096,  # type: ignore[call-overload]
                    )
                    json.loads(sent.choices[0].message.tool_calls[0].function.arguments)

            await asyncio.gather(*(worker() for _ in range(workers)))

    asyncio.run(calls(64))
    return measured(lambda: asyncio.run(calls(documents)))


def run_orm(documents: int, folder: Path) -> tuple[float, float]:
    """A bare insert of the same objects through the ORM, 64 in a transaction."""
    from sqlalchemy.orm import Session
    from sqlmodel import SQLModel, create_engine

    from schemas.invoice import Invoice, InvoiceDraft, LineItem

    engine = create_engine(f"sqlite:///{folder}/orm.db")
    SQLModel.metadata.create_all(engine)
    draft = InvoiceDraft.model_validate(arguments("T-1"))

    def inserts(number: int) -> None:
        with Session(engine, expire_on_commit=False, autoflush=False) as session:
            for n in range(number):
                lines = [LineItem(**line.model_dump()) for line in draft.line_items]
                session.add(Invoice(**draft.model_dump(exclude={"line_items"}), line_items=lines))
                if n % 64 == 63:
                    session.commit()
                    session.expunge_all()
            session.commit()

    inserts(64)
    spent = measured(lambda: inserts(documents))
    engine.dispose()
    return spent


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=3000)
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--transport", default="lean", choices=["lean", "sdk"])
    parser.add_argument("--evidence", default="off", choices=["off", "flag"])
    parser.add_argument("--profile", type=Path, help="write a profile of the event loop's thread here")
    options = parser.parse_args()
    number, ceiling = options.documents, options.workers / options.latency
    with tempfile.TemporaryDirectory() as folder, Stub(options.latency) as stub:
        profile = None
        if options.profile:
            import cProfile

            profile = cProfile.Profile()
            profile.enable()
        wall, cpu = run_pipeline(number, options.workers, options.transport, Path(folder), options.evidence)
        if profile:
            profile.disable()
            profile.dump_stats(options.profile)
        raw_wall, raw_cpu = run_sdk(number, options.workers, stub.base_url)
        orm_wall, orm_cpu = run_orm(number, Path(folder))
    floor = (raw_cpu + orm_cpu) / number
    print(f"pipeline   {number / wall:7.1f} documents/s = {number / wall / ceiling:5.1%} of {ceiling:.0f}; "
          f"{1000 * cpu / number:.2f} ms CPU a document "
          f"({options.transport} transport, evidence {options.evidence})")  # fmt: skip
    print(f"raw SDK    {number / raw_wall:7.1f} requests/s  = {number / raw_wall / ceiling:5.1%} of {ceiling:.0f}; "
          f"{1000 * raw_cpu / number:.2f} ms CPU a request")  # fmt: skip
    print(f"bare ORM   {number / orm_wall:7.1f} inserts/s; {1000 * orm_cpu / number:.2f} ms CPU an insert")
    print(f"CPU of a document / (raw SDK call + bare insert) = {cpu / number / floor:.2f}")


if __name__ == "__main__":
    main()
