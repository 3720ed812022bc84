"""How much memory and time a PDF of many pages takes.

    python benchmarks/large_pdf.py --pages 619

Writes a PDF of that many pages of running text with a table each, reads it in a fresh process, and prints the memory
of that process before and at its peak.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from reportlab.pdfgen.canvas import Canvas

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def written(path: Path, pages: int) -> None:
    """A PDF of so many pages."""
    canvas = Canvas(str(path))
    for page in range(pages):
        canvas.drawString(60, 800, f"Statement {page + 1} of {pages}")
        for line in range(40):
            canvas.drawString(60, 780 - 12 * line, f"The quick brown fox jumps over {page * 40 + line} lazy dogs again")
        for row in range(12):
            for column in range(5):
                canvas.drawString(60 + 90 * column, 280 - 14 * row, f"{page * row + column:,}.00")
        canvas.showPage()
    canvas.save()


def read(path: Path) -> None:
    """Read a file, and print what it took."""
    from extractor.documents import load, pdf

    _ = pdf
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    begun = time.perf_counter()
    document = load(path)
    seconds = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    words = sum(len(page.words) for page in document.pages)
    print(f"{len(document.pages)} pages, {words:,} words, {path.stat().st_size / 1e6:.1f} MB: {seconds:.1f} s")
    print(f"memory {before:.0f} MB before, {peak:.0f} MB at its peak")


def main() -> None:
    """Write, and read in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=619)
    parser.add_argument("--read", type=Path, help="read this file, in this process")
    arguments = parser.parse_args()
    if arguments.read:
        read(arguments.read)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.pdf"
        written(path, arguments.pages)
        subprocess.run([sys.executable, __file__, "--read", str(path)], check=True)


if __name__ == "__main__":
    main()
