"""extractor turns documents into validated records in your own database, with a language model doing the reading.

::

    from extractor import Pipeline

    invoices = Pipeline(create_invoice)
    outcome = invoices.extract("a.pdf")

Every public name is imported when it is first used, so that ``import extractor`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from extractor.chain import opening as opening
    from extractor.chain import until_success as until_success
    from extractor.conversation import Rules as Rules
    from extractor.documents import Document as Document
    from extractor.documents import load as load
    from extractor.drafts import build as build
    from extractor.drafts import draft_of as draft_of
    from extractor.drivers import arun as arun
    from extractor.drivers import run as run
    from extractor.errors import ExtractorError as ExtractorError
    from extractor.errors import Rejected as Rejected
    from extractor.functions import Context as Context
    from extractor.functions import Function as Function
    from extractor.functions import function as function
    from extractor.outcome import Outcome as Outcome
    from extractor.outcome import Status as Status
    from extractor.pipeline import Pipeline as Pipeline

_HOMES = {
    "Context": "extractor.functions",
    "Document": "extractor.documents",
    "ExtractorError": "extractor.errors",
    "Function": "extractor.functions",
    "Outcome": "extractor.outcome",
    "Pipeline": "extractor.pipeline",
    "Rejected": "extractor.errors",
    "Rules": "extractor.conversation",
    "Status": "extractor.outcome",
    "arun": "extractor.drivers",
    "build": "extractor.drafts",
    "draft_of": "extractor.drafts",
    "function": "extractor.functions",
    "load": "extractor.documents",
    "opening": "extractor.chain",
    "run": "extractor.drivers",
    "until_success": "extractor.chain",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605 - a test holds it to the names above


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'extractor' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
