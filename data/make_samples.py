"""Write the sample documents and their gold: ``python data/make_samples.py`` (needs reportlab)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from samples import content, pdf, text  # noqa: E402 - the folder beside this file comes first

DOCUMENTS = {
    "invoice RB-20417.txt": (text.columns, "utf-8", (content.ROOFING,)),
    "Rechnung 2024-0117.txt": (text.columns, "cp1252", (content.BAKERY,)),
    "facture-fevrier.txt": (text.mail, "utf-8", (content.CARPENTER,)),
    "april windows.txt": (text.mail, "utf-8", (content.CLEANING,)),
    "credit_note_93.txt": (text.columns, "utf-8", (content.CREDIT,)),
    "koerier mei juni.txt": (text.columns, "utf-8", (content.COURIER_MAY, content.COURIER_JUNE)),
    "meeting notes.txt": (None, "utf-8", ()),
    "scan_0012.pdf": (pdf.classic, "", (content.OFFICE,)),
    "Treuhand 24-1038.pdf": (pdf.classic, "", (content.ALPS,)),
    "fattura_219.pdf": (pdf.two_columns, "", (content.WINE,)),
    "HW-3306.pdf": (pdf.paged, "", (content.HARDWARE,)),
    "1107 nimbus.pdf": (pdf.wide, "", (content.STUDIO,)),
    "INV-0612.pdf": (pdf.two_columns, "", (content.TRAINING,)),
    "baadevaerft.pdf": (pdf.classic, "", (content.BOATS,)),
}


def render(name: str) -> bytes:
    """The bytes of one document."""
    layout, encoding, invoices = DOCUMENTS[name]
    if layout is None:
        return content.MEETING.encode()
    if not encoding:
        (one,) = invoices
        return layout(one)
    return "\f\n".join(layout(one) for one in invoices).encode(encoding)


def gold() -> list[dict[str, object]]:
    """What is right, one entry a document."""
    return [
        {"doc": f"invoices/{name}", "records": [one.gold() for one in one_of[2]]} for name, one_of in DOCUMENTS.items()
    ]


if __name__ == "__main__":
    (HERE / "invoices").mkdir(exist_ok=True)
    for document in DOCUMENTS:
        (HERE / "invoices" / document).write_bytes(render(document))
    lines = [json.dumps(entry, ensure_ascii=False) for entry in gold()]
    (HERE / "gold.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
