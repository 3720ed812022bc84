"""Where in a document each value of a record stands: page, span, boxes, and how surely."""

from __future__ import annotations

from extractor.evidence.finding import Finder
from extractor.evidence.policy import Policies
from extractor.evidence.values import ByPath, Evidence, Match

__all__ = ["ByPath", "Evidence", "Finder", "Match", "Policies"]
