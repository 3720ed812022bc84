"""How much memory a document takes, when its outcome is kept and when it is not.

    python benchmarks/memory.py --documents 5000

A stub in a process of its own answers at once; the pipeline writes to SQLite. Resident memory is read after the first
500 documents and after all of them; what it has grown by is divided by the documents between. "outcomes" keeps every
outcome in a list, as ``list(pipeline.map(...))`` does; "records" keeps ``outcome.records`` alone.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1])]
FIRST = 500
KEPT = {"nothing": lambda _: None, "records": lambda outcome: outcome.records, "outcomes": lambda outcome: outcome}


def resident() -> float:
    """Kilobytes of this process that stand in memory."""
    gc.collect()
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return float(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


def grown(documents: int, workers: int, keep: str) -> float:
    """Kilobytes a document between the first 500 and the last."""
    from throughput import Stub, document

    from extractor import Pipeline
    from extractor.extraction import Source
    from schemas.invoice import create_invoice

    with tempfile.TemporaryDirectory() as folder, Stub(0.0):
        pipeline = Pipeline(create_invoice, name="memory", database=f"sqlite:///{folder}/m.db", model="openai/stub")
        kept: list[Any] = []
        seen, begun = 0, 0.0

        async def run() -> None:
            nonlocal seen, begun
            sources = (Source(f"{n}.txt", data=document(n)) for n in range(documents))
            async for outcome in pipeline.amap(sources, workers=workers):
                assert outcome.status == "done", outcome.error
                what = KEPT[keep](outcome)
                if what is not None:
                    kept.append(what)
                seen += 1
                if seen == FIRST:
                    begun = resident()

        asyncio.run(run())
        return (resident() - begun) / (documents - FIRST)


def main() -> None:
    """Measure each way in a process of its own, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=5000)
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--keep", choices=list(KEPT))
    options = parser.parse_args()
    if options.keep:
        print(f"{options.keep:10} {grown(options.documents, options.workers, options.keep):6.2f} KB a document")
        return
    for keep in KEPT:
        command = [sys.executable, __file__, "--keep", keep, "--documents", str(options.documents)]
        subprocess.run([*command, "--workers", str(options.workers)], check=True)


if __name__ == "__main__":
    main()
