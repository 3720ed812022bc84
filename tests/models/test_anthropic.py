"""Anthropic's messages: what is sent, and what is read, by the real SDK against a stub."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from stub_answers import Answer, Fault, Said
from wire_cases import ASK, KEY, OFFERS, PICTURE, ROUNDS, SCHEMA, asking, hosted, one, put, wire_of

from extractor.messages import Ask, Message, Offer, Reply, Sampling, Unanswered, Usage
from extractor.models.providers import PROVIDERS
from extractor.models.settings import Settings
from extractor.models.transport import Trouble
from extractor.models.wires.anthropic import AnthropicWire
from extractor.models.wires.payloads import compiles

NONE: frozenset[str] = frozenset()


def word(ask: Ask, unfit: frozenset[str] = NONE, *, is_strict: bool = True) -> dict[str, Any]:
    return AnthropicWire(replace(PROVIDERS["anthropic"], strict=is_strict), "test-model", Settings()).word(ask, unfit)


def read(body: dict[str, Any]) -> Reply | Unanswered | Trouble:
    return AnthropicWire(PROVIDERS["anthropic"], "test-model", Settings()).read(body)


def test_a_request_holds_what_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Key, version, model, system text, document, every function and the sampling reach the server."""
    with asking(monkeypatch, "anthropic", Said("done")) as server:
        one(hosted("anthropic", headers={"X-Team": "a"}), replace(ASK, sampling=Sampling(0.5, 100)))
    (received,) = server.requests
    assert (received.path, received.key, received.headers["x-team"]) == ("/v1/messages", KEY, "a")
    asked = received.asked()
    assert (asked.model, asked.system, asked.max_tokens, asked.temperature) == ("test-model", "Read.", 100, 0.5)
    assert [(tool.name, tool.description) for tool in asked.tools] == [(o.name, o.description) for o in OFFERS]
    assert asked.tools[0].schema == SCHEMA
    assert asked.tool_choice == "required"


def test_a_name_and_a_description_are_sent_once() -> None:
    """What stands beside a schema is not said in it again, and a function without a description is given none."""
    tools = word(Ask((), (*OFFERS, Offer("bare", "", {"type": "object"}))))["tools"]
    assert [tool["description"] for tool in tools] == ["Record one invoice.", "Record one receipt.", ""]
    assert not any({"title", "description"} & tool["input_schema"].keys() for tool in tools)


@pytest.mark.parametrize(
    ("ask", "unfit", "choice"),
    [
        (ASK, (), {"type": "any"}),
        (replace(ASK, tool_choice="auto"), (), {"type": "auto"}),
        (replace(ASK, tool_choice="create_receipt"), (), {"type": "tool", "name": "create_receipt"}),
        (replace(ASK, parallel=False), (), {"type": "any", "disable_parallel_tool_use": True}),
        (replace(ASK, parallel=False), ("parallel_tool_calls", "tool_choice"), {"type": "auto"}),
    ],
)
def test_the_choice_of_a_function(ask: Ask, unfit: tuple[str, ...], choice: dict[str, Any]) -> None:
    """Some function, any or none, one by name, and one at a time; what the model refused is left out."""
    assert word(ask, frozenset(unfit))["tool_choice"] == choice


def test_strict_is_for_schemas_that_the_decoder_takes() -> None:
    """A closed schema is held, one with bounds is not, nor any where the model refuses it or the row says no."""
    assert [tool.get("strict") for tool in word(ASK)["tools"]] == [True, None]
    assert "strict" not in word(ASK, frozenset({"strict"}))["tools"][0]
    assert "strict" not in word(ASK, is_strict=False)["tools"][0]


def test_what_a_decoder_takes() -> None:
    """No bounds, no open objects, no recursion, few unions: anything else is asked for without a promise."""
    nullable = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    closed = {"type": "object", "additionalProperties": False}
    wide = {**closed, "properties": {f"f{n}": nullable for n in range(17)}, "required": [f"f{n}" for n in range(17)]}
    nested = {**closed, "properties": {"next": {"$ref": "#/$defs/Node"}}, "required": ["next"]}
    assert compiles(SCHEMA)
    assert compiles({**closed, "properties": {"a": nullable}, "required": []})
    assert not compiles(wide)
    assert not compiles({**closed, "properties": {f"f{n}": {"type": "string"} for n in range(25)}})
    assert not compiles({**nested, "$defs": {"Node": nested}})
    assert not compiles({"type": "object", "properties": {}})
    assert not compiles({**closed, "properties": {"a": {"type": "string", "maxLength": 3}}})


def test_no_more_is_held_than_a_request_may_hold() -> None:
    """Functions are held to their schemas in order, until their unions are more than the provider compiles."""
    nullable = {"type": ["string", "null"]}
    schema = {
        "type": "object",
        "properties": {f"f{n}": nullable for n in range(9)},
        "required": [f"f{n}" for n in range(9)],
        "additionalProperties": False,
    }
    offers = tuple(Offer(f"make_{n}", "", schema, strict=True) for n in range(3))
    assert [tool.get("strict") for tool in word(replace(ASK, offers=offers))["tools"]] == [True, None, None]


def test_text_is_held_to_a_schema() -> None:
    """A dialect's schema is the format of the answer, where the decoder takes it; there are no functions then."""
    request = word(replace(ASK, offers=(), schema=SCHEMA))
    assert request["output_config"] == {"format": {"type": "json_schema", "schema": SCHEMA}}
    assert not {"tools", "tool_choice"} & request.keys()
    assert "output_config" not in word(replace(ASK, offers=(), schema={"type": "object"}))


def test_a_temperature_that_is_refused_is_left_out() -> None:
    """max_tokens stays in any case, since nothing is answered without it."""
    request = word(ASK, frozenset({"temperature", "max_tokens"}))
    assert "extra_body" not in request
    assert request["max_tokens"] == 4096


def test_rounds_go_back_in_the_providers_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each result stands under its own call, errors are marked, sides alternate, and ids are such as it takes."""
    with asking(monkeypatch, "anthropic", Said("done")) as server:
        one(hosted("anthropic"), ROUNDS)
    messages = server.requests[0].body["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "assistant", "user"]
    uses = [block for message in messages for block in message["content"] if block["type"] == "tool_use"]
    results = [block for message in messages for block in message["content"] if block["type"] == "tool_result"]
    assert [use["id"] for use in uses] == [result["tool_use_id"] for result in results]
    assert len({use["id"] for use in uses}) == 4
    assert all(use["id"].replace("_", "").isalnum() for use in uses)
    assert [use["name"] for use in uses] == ["create_invoice", "make_up", "create_receipt", "create_receipt"]
    assert [use["input"] for use in uses] == [{"total": "1"}, {"a": 1}, {"malformed_arguments": '{"total'}, {}]
    assert [(result["content"], result["is_error"]) for result in results] == [
        ("recorded", False), ("no such function", True), ("not JSON", True), ("total: is missing", True),
    ]  # fmt: skip
    assert messages[2]["content"][-1] == {"type": "text", "text": "Still to be mended: one."}


def test_what_is_asked_again_begins_the_same() -> None:
    """Functions, system text and document stay byte for byte the same in a second round; nothing is marked for a cache
    that costs more to write than most documents would save."""
    first, second = word(ASK), word(ROUNDS)
    assert "cache_control" not in str(first)
    assert (first["tools"], first["system"], first["messages"][0]) == (
        second["tools"], second["system"], second["messages"][0],
    )  # fmt: skip


def test_pictures_stand_before_the_text() -> None:
    """A picture is a block with its media type; blank texts are left out."""
    request = word(replace(ASK, messages=(Message("user", "  "), Message("user", "Read.", images=(PICTURE,)))))
    assert request["messages"][0]["content"] == [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}},
        {"type": "text", "text": "Read."},
    ]


def test_every_call_of_a_reply_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two calls, one of an unknown function, and a word beside them: all come back, in order."""
    said = Said("a word", calls=[("create_invoice", {"total": "1"}), ("no_such", {})], usage=(100, 7, 64, 16))
    with asking(monkeypatch, "anthropic", said):
        answer = one(hosted("anthropic"))
    assert isinstance(answer, Reply)
    assert [(call.id, call.name, call.arguments) for call in answer.tool_calls] == [
        ("toolu_0", "create_invoice", {"total": "1"}), ("toolu_1", "no_such", {}),
    ]  # fmt: skip
    assert (answer.content, answer.finish_reason, answer.model) == ("a word", "stop", "anthropic/test-model")
    assert answer.usage == Usage(100, 7, 64)


def test_a_reply_that_is_cut_keeps_what_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last call of a reply that its length cut off may be half there, and is not taken for a whole one."""
    calls = [("create_invoice", {"total": "1"}), ("create_invoice", {"total": "2"})]
    with asking(monkeypatch, "anthropic", Said(calls=calls, finish="length")):
        answer = one(hosted("anthropic"))
    assert isinstance(answer, Reply)
    assert answer.finish_reason == "length"
    assert [call.arguments for call in answer.tool_calls] == [{"total": "1"}]


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded"])
def test_a_cut_without_a_word_is_a_cut(reason: str) -> None:
    """A reply that was cut off before its first word is no trouble of the server's."""
    answer = read({"content": [], "stop_reason": reason, "usage": {"input_tokens": 3}})
    assert answer == Reply(finish_reason="length", usage=Usage(3))


def test_a_refusal_is_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal comes back as refused, with what it cost, after one request."""
    with asking(monkeypatch, "anthropic", Said("I will not.", finish="refusal")) as server:
        answer = one(hosted("anthropic"))
    assert isinstance(answer, Unanswered)
    assert (answer.kind, answer.usage, len(server.requests)) == ("refused", Usage(10, 5), 1)


@pytest.mark.parametrize(
    "body", [{}, {"content": None}, {"content": [None, 7], "usage": []}, {"content": [{"type": "thinking"}]}]
)
def test_an_answer_without_content_is_trouble(body: dict[str, Any]) -> None:
    """Whatever holds neither text nor a call is asked for again."""
    answer = read(body)
    assert isinstance(answer, Trouble)
    assert (answer.kind, answer.passing) == ("unavailable", True)


def test_calls_in_odd_shapes_are_read() -> None:
    """A call without an id, a name or an object is still a call, under an id of its own."""
    blocks = [{"type": "tool_use", "input": [1]}, {"type": "tool_use", "id": "call_0", "name": "f", "input": "x"}]
    answer = read({"content": blocks})
    assert isinstance(answer, Reply)
    assert [(call.id, call.name, call.arguments) for call in answer.tool_calls] == [
        ("call_0", "", "[1]"), ("call_0_1", "f", "x"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "kind", "requests"),
    [
        (Fault(529), "unavailable", 4),
        (Answer(cut="before"), "unavailable", 4),
        (Answer(Said("x" * 5000), cut="midway"), "unavailable", 4),
        (Answer("<html>", headers={"Content-Type": "text/html"}), "unavailable", 4),
        (Fault(413), "too_long", 1),
        (Fault(403), "unauthorized", 1),
        (Fault(400, "bad"), "bad_request", 1),
    ],
)
def test_errors_come_back_as_values(
    monkeypatch: pytest.MonkeyPatch, answer: Answer | Fault, kind: str, requests: int
) -> None:
    """What may pass is asked four times by our one retry layer, what cannot is asked once."""
    with asking(monkeypatch, "anthropic", answer) as server:
        found = one(hosted("anthropic"))
    assert isinstance(found, Unanswered)
    assert (found.kind, len(server.requests)) == (kind, requests)


def test_a_slow_server_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request is given up after its time."""
    with asking(monkeypatch, "anthropic", Answer(Said("late"), latency=5.0)):
        found = one(hosted("anthropic", timeout=0.2))
    assert isinstance(found, Unanswered)
    assert found.kind == "timeout"


def test_a_parameter_that_a_model_refuses_is_dropped_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A temperature that a model does not know any more is left out at once, and from then on."""
    refusal = Fault(400, "`temperature` is deprecated for this model.")
    with asking(monkeypatch, "anthropic", refusal, Said("done")) as server:
        answers = put(hosted("anthropic"), ASK, ASK)
    assert all(isinstance(answer, Reply) for answer in answers)
    assert ["temperature" in request.body for request in server.requests] == [True, False, False]


def test_the_address_may_have_a_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """An address that ends in the version asks at the same place."""
    with asking(monkeypatch, "anthropic", Said("done")) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.base_url + "/")
        model = hosted("anthropic")
        one(model)
    assert server.requests[0].path == "/v1/messages"
    assert wire_of(model).host == f"127.0.0.1:{server.port}"
