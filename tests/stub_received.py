"""One request to a stub server: as it came, and as :class:`stub_asked.Asked`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import unquote

from stub_answers import Fault
from stub_asked import Asked
from stub_formats import Format, format_of
from stub_readers import READERS


@dataclass(frozen=True)
class Received:
    """One request as it arrived; the names of ``headers`` are in lower case."""

    head: bytes
    raw: bytes = b""

    @cached_property
    def path(self) -> str:
        """With its query."""
        return self.head.split(b" ", 2)[1].decode("latin-1")

    @cached_property
    def headers(self) -> dict[str, str]:
        """By name in lower case."""
        lines = self.head.decode("latin-1").strip().split("\r\n")[1:]
        return {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}

    @cached_property
    def body(self) -> dict[str, Any]:
        """The JSON that was sent."""
        parsed: dict[str, Any] = json.loads(self.raw) if self.raw else {}
        return parsed

    @property
    def wire(self) -> Format:
        """The format of its path."""
        return format_of(self.path)

    @property
    def key(self) -> str | None:
        """The key it was sent with, in whatever header the vendor wants it."""
        found = (self.headers.get(name) for name in ("api-key", "x-api-key", "x-goog-api-key"))
        return next((key for key in found if key), None) or _authorized(self.headers.get("authorization", ""))

    def asked(self) -> Asked:
        """The same question in no vendor's format."""
        model = self.path.partition("?")[0].rpartition("/")[2].partition(":")[0]
        if self.wire == "bedrock":
            model = unquote(self.path.split("/")[-2])
        return READERS[self.wire]({"model": model, **self.body})

    def fault(self) -> Fault | None:
        """What a server of this format would refuse at once, whatever the question is."""
        missing = ""
        if self.wire == "anthropic":
            if "anthropic-version" not in self.headers:
                missing = "the header anthropic-version"
            elif b'"max_tokens"' not in self.raw:
                missing = "max_tokens"
        elif "/openai/deployments/" in self.path and "api-version=" not in self.path:
            missing = "api-version in the query"
        if missing:
            return Fault(400, f"{missing} is required")
        is_open = self.wire in ("chat", "responses") and not self.path.startswith("/openai/")
        if is_open or self.key:
            return None
        return Fault(403 if self.wire in ("gemini", "bedrock") else 401, "no key was sent")


def _authorized(header: str) -> str | None:
    """The key of a bearer, or the access key of Amazon's signature."""
    signed = re.search(r"Credential=([^/]+)/", header)
    return signed[1] if signed else header.removeprefix("Bearer ") or None


__all__ = ["Received"]
