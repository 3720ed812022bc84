"""Table ▸ draft, draft ▸ record graph.

A draft is what a model must supply; a table is what the database keeps. :func:`draft_of` derives the one from the
other, :func:`build` makes a table's record, with its related records, out of a validated draft.
"""

from __future__ import annotations

from extractor.drafts.building import build
from extractor.drafts.deriving import draft_of

__all__ = ["build", "draft_of"]
