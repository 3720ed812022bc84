"""What a stub server can be told to answer.

:class:`Said` and :class:`Fault` are written once and rendered in the format of the path that was asked
(``stub_formats``); :class:`Answer` is one HTTP response: with a ``Said`` or ``Fault`` as body it is rendered too, any
other body is sent as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

Finish = Literal["stop", "length", "refusal", "content_filter", "empty"]


class Spent(NamedTuple):
    """Tokens of one answer. ``input`` is all that was sent, with what was read from a cache or written to one."""

    input: int = 10
    output: int = 5
    cached: int = 0
    written: int = 0


@dataclass(frozen=True, slots=True)
class Said:
    """What the model said, in no vendor's format.

    :param calls: name and arguments. Arguments that are text go out as they are where the format carries text; where
        it carries an object they are parsed, and are ``{}`` when they are none.
    :param usage: ``(input, output, cached, written)``, shorter when the rest is 0; ``None`` sends no usage.
    :param finish: why the model stopped; ``"empty"`` answers without any choice, candidate or content.
    """

    text: str | None = None
    calls: Sequence[tuple[str, Any]] = ()
    usage: tuple[int, ...] | None = (10, 5, 0)
    finish: Finish = "stop"

    @property
    def spent(self) -> Spent | None:
        """The usage by name."""
        return None if self.usage is None else Spent(*self.usage)

    def cut_short(self) -> Said:
        """The same answer as a limit on tokens would have left it: the last thing said is half there."""
        if self.calls:
            name, arguments = self.calls[-1]
            whole = written(arguments)
            return replace(self, calls=(*self.calls[:-1], (name, whole[: len(whole) // 2])), finish="length")
        return replace(self, text=(self.text or "")[: len(self.text or "") // 2], finish="length")


@dataclass(frozen=True, slots=True)
class Fault:
    """An error, in no vendor's format; the format of the path says how it is worded.

    :param code: the vendor's own name of it; by default the one that goes with the status.
    """

    status: int
    message: str = "something is wrong"
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server does about one request.

    :param body: a :class:`Said` or :class:`Fault` is rendered in the format of the path, any other object is sent as
        JSON, text and bytes as they are.
    :param headers: sent beside the usual ones, and in their place where the names are the same.
    :param latency: seconds before anything is sent.
    :param cut: ``"before"`` closes the connection without a byte, ``"midway"`` after half of the body.
    :param drip: seconds between the single bytes of the body; 0 sends it in one piece.
    """

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    latency: float = 0.0
    cut: Literal["", "before", "midway"] = ""
    drip: float = 0.0


Reply = Answer | Said | Fault

HTML = Answer(
    "<!DOCTYPE html><html><head><title>Just a moment</title></head><body>Checking your browser.</body></html>",
    headers={"Content-Type": "text/html; charset=utf-8"},
)
"""The page of a proxy in the place of an answer."""


def written(arguments: Any) -> str:
    """Arguments as text: text as it is, anything else as JSON."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def completion(
    content: str | None = None,
    *,
    calls: Sequence[tuple[str, Any]] = (),
    finish_reason: str | None = None,
    refusal: str | None = None,
    usage: Mapping[str, Any] | None = None,
    latency: float = 0.0,
) -> Answer:
    """A well-formed OpenAI chat completion. Arguments of ``calls`` that are not text are written as JSON; ids are
    ``call_0`` and on."""
    message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": refusal}
    if calls:
        message["tool_calls"] = [
            {"id": f"call_{position}", "type": "function", "function": {"name": name, "arguments": written(sent)}}
            for position, (name, sent) in enumerate(calls)
        ]
    choice = {"index": 0, "message": message, "finish_reason": finish_reason or ("tool_calls" if calls else "stop")}
    return Answer(
        {
            "id": "chatcmpl-stub",
            "object": "chat.completion",
            "created": 0,
            "model": "stub",
            "choices": [choice],
            "usage": dict(usage or {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}),
        },
        latency=latency,
    )


def error(
    status: int,
    code: str | None = None,
    *,
    kind: str | None = None,
    message: str = "something is wrong",
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """An error in OpenAI's shape; ``kind`` is its ``type``."""
    body = {"error": {"message": message, "type": kind, "param": param, "code": code}}
    return Answer(body, status=status, headers=dict(headers or {}))


def in_turn(*answers: Reply) -> Callable[[dict[str, Any]], Reply]:
    """Answer the first request with the first answer and so on; the last one stays."""
    left = list(answers)
    return lambda _body: left.pop(0) if len(left) > 1 else left[0]


def first_offer(body: dict[str, Any]) -> Answer:
    """Call the first function on offer with no arguments, or say so when nothing is on offer; OpenAI chat only."""
    tools = body.get("tools") or []
    return completion(calls=[(tools[0]["function"]["name"], {})]) if tools else completion("nothing is on offer")


__all__ = [
    "HTML",
    "Answer",
    "Fault",
    "Finish",
    "Reply",
    "Said",
    "Spent",
    "completion",
    "error",
    "first_offer",
    "in_turn",
    "written",
]
