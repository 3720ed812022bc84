"""OpenAI's responses: what is sent, and what is read, by the real SDK against a stub."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from stub_answers import Answer, Fault, Said
from wire_cases import ASK, KEY, OFFERS, PICTURE, ROUNDS, SCHEMA, asking, hosted, one, put

from extractor.messages import Ask, Message, Reply, Sampling, Unanswered, Usage
from extractor.models.providers import PROVIDERS
from extractor.models.settings import Settings
from extractor.models.transport import Trouble
from extractor.models.wires.responses import ResponsesWire

NAME = "openai-responses"
NONE: frozenset[str] = frozenset()


def word(ask: Ask, unfit: frozenset[str] = NONE) -> dict[str, Any]:
    return ResponsesWire(PROVIDERS[NAME], "test-model", Settings()).word(ask, unfit)


def read(body: dict[str, Any]) -> Reply | Unanswered | Trouble:
    return ResponsesWire(PROVIDERS[NAME], "test-model", Settings()).read(body)


def test_a_request_holds_what_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that was asked reaches the server, which is told to store nothing."""
    with asking(monkeypatch, NAME, Said("done")) as server:
        one(hosted(NAME, headers={"X-Team": "a"}), replace(ASK, sampling=Sampling(0.5, 100)))
    (received,) = server.requests
    assert (received.path, received.key, received.headers["x-team"]) == ("/v1/responses", KEY, "a")
    asked = received.asked()
    assert (asked.model, asked.system, asked.max_tokens, asked.temperature) == ("test-model", "Read.", 100, 0.5)
    assert [(tool.name, tool.description) for tool in asked.tools] == [(o.name, o.description) for o in OFFERS]
    assert [tool.strict for tool in asked.tools] == [True, False]
    assert asked.tools[0].schema == SCHEMA
    assert asked.tool_choice == "required"
    assert received.body["store"] is False


@pytest.mark.parametrize(
    ("ask", "unfit", "found"),
    [
        (ASK, (), ("required", None)),
        (replace(ASK, tool_choice="auto", parallel=False), (), ("auto", False)),
        (replace(ASK, tool_choice="create_receipt"), (), ({"type": "function", "name": "create_receipt"}, None)),
        (replace(ASK, parallel=False), ("tool_choice", "parallel_tool_calls"), ("auto", None)),
    ],
)
def test_the_choice_of_a_function(ask: Ask, unfit: tuple[str, ...], found: tuple[Any, Any]) -> None:
    """Some function, any or none, one by name, and one at a time; what the model refused is left out."""
    request = word(ask, frozenset(unfit))
    assert (request["tool_choice"], request.get("parallel_tool_calls")) == found


def test_strict_is_always_said() -> None:
    """A function without a word about it would be taken for a strict one, and its schema be refused."""
    assert [tool["strict"] for tool in word(ASK, frozenset({"strict"}))["tools"]] == [False, False]


def test_text_is_held_to_a_schema() -> None:
    """A dialect's schema is the format of the answer, strict where the schema is closed."""
    request = word(replace(ASK, offers=(), schema=SCHEMA))
    form = {"type": "json_schema", "name": "answer", "schema": SCHEMA, "strict": True}
    assert request["text"] == {"format": form}
    assert not {"tools", "tool_choice"} & request.keys()
    assert not word(replace(ASK, offers=(), schema={"type": "object"}))["text"]["format"]["strict"]


def test_parameters_that_are_refused_are_left_out() -> None:
    """Temperature and cap are things that a request can do without."""
    assert not {"temperature", "max_output_tokens"} & word(ASK, frozenset({"temperature", "max_tokens"})).keys()


def test_rounds_go_back_in_the_providers_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each result stands under its own call, after the turn's text and before what is said beside the results."""
    with asking(monkeypatch, NAME, Said("done")) as server:
        one(hosted(NAME), ROUNDS)
    items = server.requests[0].body["input"]
    kinds = [item.get("type", item.get("role")) for item in items]
    assert kinds == [
        "user", "assistant", *["function_call"] * 3, *["function_call_output"] * 3, "user", "function_call",
        "function_call_output",
    ]  # fmt: skip
    calls = [item for item in items if item.get("type") == "function_call"]
    results = [item for item in items if item.get("type") == "function_call_output"]
    assert [call["call_id"] for call in calls] == [result["call_id"] for result in results]
    assert len({call["call_id"] for call in calls}) == 4
    assert [result["output"] for result in results] == ["recorded", "no such function", "not JSON", "total: is missing"]
    assert [call["arguments"] for call in calls[:2]] == ['{"total": "1"}', '{"a": 1}']


def test_pictures_stand_before_the_text() -> None:
    """A picture is an address that holds it."""
    (item,) = word(Ask((Message("user", "Read.", images=(PICTURE,)),)))["input"]
    picture = {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,iVBORw=="}
    assert item == {"role": "user", "content": [picture, {"type": "input_text", "text": "Read."}]}


def test_every_call_of_a_reply_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three calls, one of an unknown function and one with broken arguments: three come back, in order, untouched."""
    calls = [("create_invoice", '{"total": "1.00"}'), ("no_such", "{}"), ("create_invoice", '{"total": ')]
    with asking(monkeypatch, NAME, Said("a word", calls=calls, usage=(100, 7, 64))):
        answer = one(hosted(NAME))
    assert isinstance(answer, Reply)
    assert [(call.name, call.arguments) for call in answer.tool_calls] == calls
    assert [call.id for call in answer.tool_calls] == ["call_0", "call_1", "call_2"]
    assert (answer.content, answer.finish_reason, answer.usage) == ("a word", "stop", Usage(100, 7, 64))


def test_calls_in_odd_shapes_are_read() -> None:
    """A call without an id or with free text is still a call."""
    items = [{"type": "function_call", "name": "f", "arguments": [1]}, None, {"type": "custom_tool_call", "input": "x"}]
    answer = read({"output": [*items, {"type": "reasoning"}]})
    assert isinstance(answer, Reply)
    assert [(call.id, call.name, call.arguments) for call in answer.tool_calls] == [
        ("call_0", "f", "[1]"), ("call_1", "", "x"),
    ]  # fmt: skip


def test_a_refusal_and_a_filter_are_refused() -> None:
    """Both come back as refused, with what they cost; a refusal beside a call is a reply."""
    message = {"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}
    used = {"usage": {"input_tokens": 3, "output_tokens": 1}}
    for body in (
        {"output": [message], **used},
        {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}, **used},
    ):
        answer = read(body)
        assert isinstance(answer, Unanswered)
        assert (answer.kind, answer.usage) == ("refused", Usage(3, 1))
    assert isinstance(read({"output": [message, {"type": "function_call", "name": "f"}]}), Reply)


def test_a_cut_without_a_word_is_a_cut() -> None:
    """A model that reasoned until its limit has answered, at length."""
    assert read({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": []}) == Reply(
        finish_reason="length"
    )


@pytest.mark.parametrize("body", [{}, {"output": 7}, {"output": [{"type": "message", "content": [None]}]}])
def test_an_answer_without_content_is_trouble(body: dict[str, Any]) -> None:
    """Whatever holds neither text nor a call is asked for again."""
    answer = read(body)
    assert isinstance(answer, Trouble)
    assert answer.passing


def test_a_failed_response_is_judged_by_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A response of status 200 that failed says why in its body, and may pass."""
    failed = Answer({"status": "failed", "error": {"code": "server_error", "message": "x"}, "output": []})
    with asking(monkeypatch, NAME, failed, Said("done")) as server:
        answer = one(hosted(NAME))
    assert isinstance(answer, Reply)
    assert len(server.requests) == 2


def test_a_parameter_that_a_model_refuses_is_dropped_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A temperature that a reasoning model does not take is left out at once, and from then on."""
    refusal = Fault(400, "Unsupported parameter: 'temperature' is not supported with this model.")
    with asking(monkeypatch, NAME, refusal, Said("done")) as server:
        answers = put(hosted(NAME), ASK, ASK)
    assert all(isinstance(answer, Reply) for answer in answers)
    assert ["temperature" in request.body for request in server.requests] == [True, False, False]
