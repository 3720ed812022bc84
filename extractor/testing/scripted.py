"""A model that answers from a script, and the words to write scripts in."""

from __future__ import annotations

import inspect
import json
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from extractor import plugins
from extractor.errors import ConfigurationError
from extractor.messages import Ask, Reply, ToolCall, Unanswered, Usage
from extractor.models import Model

Answer = Reply | Unanswered | ToolCall | str | Exception
"""What a script may hold: a reply; why there is none; one call; plain text; an exception, which is raised."""

Answering = Callable[[Ask], Answer | Awaitable[Answer]]


def call(function: str, /, **arguments: Any) -> ToolCall:
    """A call to a function, with its arguments as JSON text, as most providers send them.

    For arguments that are no JSON object, write ``ToolCall("", "create_invoice", "{broken")``.
    """
    return ToolCall("", function, json.dumps(arguments, ensure_ascii=False, default=str))


def reply(*calls: ToolCall, text: str = "", cut: bool = False, usage: Usage | None = None) -> Reply:
    """A model's reply; calls without an id are numbered.

    :param text: what it says beside the calls.
    :param cut: whether it was cut off by the cap on its length.
    :param usage: the tokens that it cost.
    """
    numbered = tuple(one if one.id else replace(one, id=f"call_{n}") for n, one in enumerate(calls, start=1))
    return Reply(text, numbered, "length" if cut else "stop", usage or Usage())


def shown(ask: Ask) -> str:
    """Everything that an ask says to the model, as one text: instructions, document, earlier results and remarks."""
    parts = []
    for message in ask.messages:
        parts += [message.content, *(result.content for result in message.tool_results)]
    return "\n".join(part for part in parts if part)


class Scripted:
    """A model that answers from a script, in order; or every ask by a function of the :class:`Ask`.

    Where several documents are worked on at once, the order of their asks is not fixed: use a function.

    :param answers: what to answer, one for each ask; or a single callable, plain or async, that answers every ask.
    :param name: what the model is known by; replies that are kept are kept under this name.

    ``asks`` lists every ask that was put, in order.
    """

    def __init__(self, *answers: Answer | Answering, name: str = "scripted") -> None:
        self.name = name
        self.asks: list[Ask] = []
        first = answers[0] if len(answers) == 1 else None
        self._answering: Answering | None = first if callable(first) else None
        self._total = len(answers)
        self._left = deque(() if self._answering else answers)

    def __repr__(self) -> str:
        return f"Scripted(name={self.name!r}, asks={len(self.asks)})"

    @property
    def identity(self) -> str:
        """What a request key needs to tell this model from others."""
        return self.name

    def prepare(self) -> None:
        """There is nothing to prepare."""

    async def aclose(self) -> None:
        """There is nothing to close."""

    async def ask(self, ask: Ask) -> Reply | Unanswered:
        """Answer from the script.

        :raises AssertionError: when the script is at its end.
        :raises TypeError: when the script holds what is no answer.
        """
        self.asks.append(ask)
        answer: Any = self._answering(ask) if self._answering else self._next()
        if inspect.isawaitable(answer):
            answer = await answer
        return _as_reply(answer)

    def _next(self) -> Answer | Answering:
        if not self._left:
            raise AssertionError(
                f"{self.name}: the script has {self._total} answers, and this was ask number {len(self.asks)}"
            )
        return self._left.popleft()


def model(name: str) -> Model:
    """The model ``scripted/NAME``, where NAME is the ``module:attribute`` of a callable, of a list of answers, or of a
    model such as a :class:`~extractor.testing.Cassette`.

    :raises ConfigurationError: when there is no such module or attribute, or when it is neither.
    """
    if ":" not in name:
        raise ConfigurationError(
            f"the model 'scripted/{name}' names no script",
            hint="write scripted/module:attribute, for a callable or a list",
        )
    script = plugins.attribute(name)
    if isinstance(script, Model) and not isinstance(script, type):
        return script
    if not callable(script) and not isinstance(script, (list, tuple)):
        kind = type(script).__name__
        raise ConfigurationError(f"{name} is {kind}, not a script", hint="make it a callable of the ask, or a list")
    return Scripted(*([script] if callable(script) else script), name=f"scripted/{name}")


def _as_reply(answer: object) -> Reply | Unanswered:
    if isinstance(answer, Exception):
        raise answer
    if isinstance(answer, (Reply, Unanswered)):
        return answer
    if isinstance(answer, ToolCall):
        return reply(answer)
    if isinstance(answer, str):
        return reply(text=answer)
    raise TypeError(
        f"a script answers with Reply, Unanswered, ToolCall, str or an exception, not {type(answer).__name__}"
    )
