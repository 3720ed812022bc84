"""What an answer with an error status comes to.

None of a provider's prose enters a cause: it may echo what was sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from extractor.messages import UnansweredKind
from extractor.models.transport import Trouble, retry_after

QUOTA = {
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "insufficient_balance",
    "billing_error",
}
FILTERED = {"content_filter", "content_policy_violation", "invalid_prompt", "moderation_blocked"}
TOO_LONG_CODES = {
    "context_length_exceeded",
    "exceed_context_size_error",
    "string_above_max_length",
    "request_too_large",
}
TOO_LONG = (
    "maximum context length", "context length", "context size", "context window", "prompt is too long",
    "input is too long", "exceed context limit", "exceeds the maximum number of tokens", "input token count",
)  # fmt: skip
BAD_PICTURE = ("could not process image", "image exceeds", "invalid image", "unable to process input image")
WRONG_KEY = {"invalid_api_key", "api_key_invalid", "authentication_error", "permission_error", "unauthenticated",
             "permission_denied", "unrecognizedclientexception", "accessdeniedexception"}  # fmt: skip
NO_MODEL = {"model_not_found", "not_found_error", "not_found", "resourcenotfoundexception"}
LIMITED = {"rate_limit_error", "rate_limit_exceeded", "resource_exhausted", "throttlingexception"}
PASSING = {"overloaded_error", "modelnotreadyexception", "modeltimeoutexception", "serviceunavailableexception"}
IN_OTHER_WORDS = (
    ("tool_choice forces", "tool_choice"), ("mode=any", "tool_choice"), ("too many states", "response_json_schema"),
)  # fmt: skip
NOT_TAKEN = (
    "unsupported", "not support", "n't support", "deprecated", "extra inputs are not permitted", "may not be enabled",
    "too many states",
)  # fmt: skip
DROPPABLE = ("max_tokens", "temperature", "parallel_tool_calls", "tool_choice", "strict", "seed", "output_config",
             "response_json_schema")  # fmt: skip
"""Parameters that a request can do without, or name otherwise."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Code, type, message and parameter of an error, in lower case, bounded; empty where it has none."""

    code: str
    kind: str
    text: str
    param: str

    @classmethod
    def of(cls, body: Any) -> Facts:
        """The facts in a body, in whichever of the providers' envelopes they stand."""
        body = body if isinstance(body, Mapping) else {}
        inner = body.get("error", body)
        if isinstance(inner, str):
            inner = {"message": inner}
        inner = inner if isinstance(inner, Mapping) else {}
        details = inner.get("details")
        reasons = [d.get("reason") for d in details if isinstance(d, Mapping)] if isinstance(details, list) else []
        found = {
            "code": next((r for r in reasons if isinstance(r, str)), inner.get("code")),
            "kind": inner.get("type") or inner.get("status"),
            "text": inner.get("message"),
            "param": inner.get("param"),
        }
        return cls(**{name: str(value or "").lower()[:2000] for name, value in found.items()})

    @property
    def named(self) -> set[str]:
        """Code and type."""
        return {self.code, self.kind}


@dataclass(frozen=True, slots=True)
class Asked:
    """Who was asked, for the words of a cause: host, model, the variable of the key, and where the address is set."""

    host: str
    model: str
    key: str
    address: str
    provider: str = "openai"


def judge(status: int, body: Any, headers: Mapping[str, str], asked: Asked) -> Trouble:
    """What an answer with an error status comes to.

    :param body: the body as JSON, or anything else.
    :param headers: read for how long to wait.
    """
    facts = Facts.of(body)
    word = _word(facts.code) or _word(facts.kind)
    said = f"{asked.host} answered {status}" + (f" ({word})" if word else "")
    for applies, what, why in _final(status, facts, asked):
        if applies:
            return Trouble(what, f"{said}: {why}", passing=False)
    if status == 429 or facts.named & LIMITED:
        return Trouble("rate_limited", said, spends=False, wait=retry_after(headers))
    if status in (408, 409, 424, 499) or status >= 500 or facts.named & PASSING:
        return Trouble("timeout" if status == 408 else "unavailable", said, wait=retry_after(headers))
    other = f"{asked.provider}/{asked.model}#json"
    why = f"it does not take the request; if {asked.model!r} cannot call functions, ask {other}"
    return Trouble("bad_request", f"{said}: {why}", passing=False)


def refused_parameter(status: int, body: Any) -> str:
    """The parameter that the provider does not take for this model, if that is what it says and we can do without."""
    if status not in (400, 422):
        return ""
    facts = Facts.of(body)
    is_named = facts.code in ("unsupported_parameter", "unsupported_value")
    if not is_named and not any(phrase in facts.text for phrase in NOT_TAKEN):
        return ""
    said = facts.param or facts.text
    return next((name for words, name in IN_OTHER_WORDS if words in said), "") or next(
        (name for name in DROPPABLE if name in said), ""
    )


def _final(status: int, facts: Facts, asked: Asked) -> list[tuple[bool, UnansweredKind, str]]:
    """What no second request would change, the surest first."""
    key = asked.key or "the environment"
    return [
        (
            status == 402 or bool(facts.named & QUOTA) or "credit balance is too low" in facts.text,
            "unauthorized",
            f"the quota or credit of the key in {key} is used up",
        ),
        (
            facts.code in FILTERED or (status == 403 and "moderation" in facts.text) or "content filter" in facts.text,
            "refused",
            "a content filter stopped it",
        ),
        (
            status == 413 or bool(facts.named & TOO_LONG_CODES) or _is_too_long(status, facts.text),
            "too_long",
            "document and prompt are longer than the model's context",
        ),
        (
            status == 400 and any(phrase in facts.text for phrase in BAD_PICTURE),
            "refused",
            "the model does not take the document's pictures",
        ),
        (
            status in (401, 403) or bool(facts.named & WRONG_KEY),
            "unauthorized",
            f"the key in {key} is not accepted",
        ),
        (
            status == 404 or bool(facts.named & NO_MODEL),
            "unknown_model",
            f"no model {asked.model!r} there; check the name and {asked.address}",
        ),
    ]


def _is_too_long(status: int, text: str) -> bool:
    # A cap on the answer that is too large for the model is a matter of settings, not of one document.
    is_cap = "max_tokens" in text and "input length" not in text
    return status in (400, 422) and not is_cap and any(phrase in text for phrase in TOO_LONG)


def _word(text: str) -> str:
    """A code or type as providers spell them; anything else might be an echo of what was sent."""
    return text if len(text) <= 48 and text.replace("_", "").isalpha() and text.isascii() else ""


__all__ = ["Asked", "Facts", "judge", "refused_parameter"]
