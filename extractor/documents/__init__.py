"""Documents: what they are, where they are found, and how they are read."""

from __future__ import annotations

from extractor.documents.document import Document, Page
from extractor.documents.loading import load
from extractor.documents.sources import find

__all__ = ["Document", "Page", "find", "load"]
