"""Instructor's payloads and message shapes.

Its request handler makes the payload of a function, once for each set of offers; its re-ask handler shapes an answered
turn, and its one text for all calls is replaced by each call's own. Our offers are JSON schemas already, so the handler
is given a stand-in class that hands out the schema as it is; its ``tool_choice``, which would force one function of
several, is not used; ``strict`` is set here, for those schemas alone that a provider's constrained decoding can take.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from extractor.messages import Offer, ToolResult
from extractor.models.wires.chat_shapes import Wire, takes_strict

OfferKey = tuple[tuple[str, str, str, bool], ...]


class InstructorShapes:
    """Instructor's payloads and message shapes for chat completions with tools."""

    def __init__(self) -> None:
        from instructor.v2 import Mode, Provider, mode_registry

        self._handlers = mode_registry.get_handlers(Provider.OPENAI, Mode.TOOLS)
        self._payload = lru_cache(maxsize=128)(self._build)

    def offered(self, offers: Sequence[Offer]) -> list[Wire]:
        """The payload of these offers, from the cache when they were offered before."""
        return self._payload(offer_key(tuple(offers)))

    def answered(self, turn: Wire, results: Sequence[ToolResult]) -> list[Wire]:
        """The turn and the results of its calls, each under the id of its call."""
        from openai.types.chat import ChatCompletion

        choice = {"index": 0, "finish_reason": "tool_calls", "message": turn}
        frame = {"id": "", "object": "chat.completion", "created": 0, "model": "", "choices": [choice]}
        reply = ChatCompletion.model_validate(frame)
        # The handler appends to the list that it is given, and writes the error's text to every call.
        shaped = self._handlers.reask_handler({"messages": []}, reply, ValueError())["messages"]
        texts = {result.call_id: result.content for result in results}
        return [shaped[0], *({**answer, "content": texts.get(answer["tool_call_id"], "")} for answer in shaped[1:])]

    def _build(self, offers: OfferKey) -> list[Wire]:
        payload: list[Wire] = []
        for name, description, text, strict in offers:
            parameters = json.loads(text)
            schema = {**parameters, "title": name, "description": description}
            _, request = self._handlers.request_handler(stand_in(schema), {"messages": []})
            payload.extend(request["tools"])
            if strict and takes_strict(parameters):
                payload[-1]["function"]["strict"] = True
        return payload


@cache
def chat_shapes_of_instructor() -> InstructorShapes:
    """The one object that holds the payloads made so far."""
    return InstructorShapes()


_KEYS: dict[tuple[int, ...], tuple[tuple[Offer, ...], OfferKey]] = {}


def offer_key(offers: tuple[Offer, ...]) -> OfferKey:
    """Offers as a key of a cache. The same objects are offered for every document, so that the key is made once for
    them; it is held together with them, so that no other object can have their identity."""
    identity = tuple(map(id, offers))
    known = _KEYS.get(identity)
    if known is None:
        key = tuple((one.name, one.description, json.dumps(dict(one.parameters)), one.strict) for one in offers)
        if len(_KEYS) >= 256:
            _KEYS.clear()
        known = _KEYS[identity] = (offers, key)
    return known[1]


def stand_in(schema: dict[str, Any]) -> type[Any]:
    """A model class that hands out ``schema`` as its own: what instructor makes a payload from is a class."""
    from pydantic import BaseModel

    # No docstring below: instructor would read it for descriptions of parameters.
    class Offered(BaseModel):
        @classmethod
        def model_json_schema(cls, *_: Any, **__: Any) -> dict[str, Any]:
            return schema

    return Offered
