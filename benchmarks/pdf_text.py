"""How long reading PDFs takes, against pdfium's own text alone.

    python benchmarks/pdf_text.py FOLDER --times 7

Both read every page of every PDF in the folder, in the same process, in turns; the quickest turn of each counts.
pdfium's is pypdfium2's ``get_text_bounded``: one string a page, in the order of drawing, without places. Ours is the
loader, with layout, the box of every word, and the hash of the file. Files that either refuses are left out.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pypdfium2

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def theirs(data: bytes) -> int:
    """Letters that pdfium finds."""
    pdf, letters = pypdfium2.PdfDocument(data), 0
    for page in pdf:
        textpage = page.get_textpage()
        letters += len(textpage.get_text_bounded())
        textpage.close()
        page.close()
    pdf.close()
    return letters


def ours(data: bytes) -> int:
    """Words that the loader finds, with a box each."""
    from extractor.documents import pdf

    return sum(len(page.words) for page in pdf.load(data, "file").pages)


def readable(files: list[bytes]) -> list[bytes]:
    """The files that both can read."""
    from extractor.errors import DocumentError

    kept = []
    for data in files:
        try:
            theirs(data), ours(data)
        except (pypdfium2.PdfiumError, DocumentError):
            continue
        kept.append(data)
    return kept


def seconds(read: Callable[[bytes], int], files: list[bytes]) -> float:
    """How long a turn takes."""
    begun = time.perf_counter()
    for data in files:
        read(data)
    return time.perf_counter() - begun


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="searched with its subfolders for *.pdf")
    parser.add_argument("--times", type=int, default=7, help="turns of each")
    arguments = parser.parse_args()
    files = readable([path.read_bytes() for path in sorted(arguments.folder.rglob("*.pdf"))])
    turns = [(seconds(theirs, files), seconds(ours, files)) for _ in range(arguments.times)]
    floor, mine = (min(side) for side in zip(*turns, strict=True))
    letters, words = sum(map(theirs, files)), sum(map(ours, files))
    print(f"{len(files)} files, {letters:,} letters, {words:,} words")
    print(f"pdfium's text {floor:.3f} s, ours with boxes {mine:.3f} s: {mine / floor:.2f} times")


if __name__ == "__main__":
    main()
