"""Google's Gemini: what is sent, and what is read, by the real SDK against a stub."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stub_answers import Answer, Fault, Said
from wire_cases import ASK, KEY, OFFERS, PICTURE, ROUNDS, SCHEMA, asking, hosted, one, put

from extractor.messages import Ask, Message, Reply, Sampling, Unanswered, Usage
from extractor.models.providers import PROVIDERS
from extractor.models.settings import Settings
from extractor.models.transport import Trouble
from extractor.models.wires.gemini import GeminiWire
from extractor.models.wires.gemini_schema import for_gemini

# The SDK's own client is a subclass that its HTTP library has come to discourage.
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")
NONE: frozenset[str] = frozenset()
LINE = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def wire() -> GeminiWire:
    return GeminiWire(PROVIDERS["google"], "test-model", Settings())


def word(ask: Ask, unfit: frozenset[str] = NONE) -> dict[str, Any]:
    config: dict[str, Any] = wire().word(ask, unfit)["config"]
    return config


def read(body: dict[str, Any]) -> Reply | Unanswered | Trouble:
    return wire().read(body)


def test_a_request_holds_what_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Key, model, system text, document, every function and the sampling reach the server."""
    with asking(monkeypatch, "google", Said("done")) as server:
        one(hosted("google", headers={"X-Team": "a"}), replace(ASK, sampling=Sampling(0.5, 100, 3)))
    (received,) = server.requests
    assert received.path.endswith("/models/test-model:generateContent")
    assert (received.key, received.headers["x-team"]) == (KEY, "a")
    asked = received.asked()
    assert (asked.model, asked.system, asked.max_tokens, asked.temperature) == ("test-model", "Read.", 100, 0.5)
    assert [(tool.name, tool.description) for tool in asked.tools] == [(o.name, o.description) for o in OFFERS]
    assert asked.tool_choice == "required"
    assert received.body["generationConfig"]["seed"] == 3


def test_a_schema_goes_out_in_the_part_that_the_provider_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """References are put in place, and what the provider does not know is left out, before the request is made."""
    with asking(monkeypatch, "google", Said("done")) as server:
        one(hosted("google"))
    (tools,) = server.requests[0].body["tools"]
    sent = [
        declared.get("parametersJsonSchema", declared.get("parameters_json_schema"))
        for declared in tools["functionDeclarations"]
    ]
    properties = {"total": {"type": "string"}, "lines": {"type": "array", "items": LINE}}
    assert sent == [
        {"type": "object", "properties": properties, "required": ["total", "lines"]},
        {"type": "object", "properties": {"total": {"type": "string"}}},
    ]


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        ({"const": "a"}, {"enum": ["a"]}),
        ({"enum": ["a", None, 1, True]}, {"enum": ["a", 1]}),
        ({"enum": [None]}, {}),
        ({"type": "string", "format": "date", "pattern": "x"}, {"type": "string", "description": "(format: date)"}),
        (
            {"type": "string", "description": "When.", "format": "date"},
            {"type": "string", "description": "When. (format: date)"},
        ),
        ({"additionalProperties": {"type": "string", "minLength": 1}}, {"additionalProperties": {"type": "string"}}),
        ({"anyOf": [{"$ref": "#/$defs/A", "description": "b"}], "$defs": {"A": {"type": "string"}}},
         {"anyOf": [{"type": "string", "description": "b"}]}),
        ({"properties": {"title": {"type": "string"}}}, {"properties": {"title": {"type": "string"}}}),
    ],
)  # fmt: skip
def test_schemas_are_respelt(schema: dict[str, Any], found: dict[str, Any]) -> None:
    """Each of what Gemini spells in another way, or does not know."""
    assert for_gemini(schema) == found


def test_a_schema_that_holds_itself_keeps_its_reference() -> None:
    """Only recursion is left as a reference, to a definition that is there."""
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}, "additionalProperties": False}
    found = for_gemini({"$ref": "#/$defs/Node", "$defs": {"Node": node}})
    expected = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    assert found == {**expected, "$defs": {"Node": expected}}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["type", "properties", "items", "anyOf", "$ref", "enum", "const", "format"]), inner
            )
        ),
        max_leaves=12,
    )
)
def test_any_schema_is_respelt_without_an_error(schema: Any) -> None:
    """What stands in a schema is a user's: whatever it is, what comes out is an object."""
    assert isinstance(for_gemini({"type": "object", "properties": {"a": schema}}), dict)


@pytest.mark.parametrize(
    ("ask", "unfit", "choice"),
    [
        (ASK, (), {"mode": "ANY"}),
        (replace(ASK, tool_choice="auto"), (), {"mode": "AUTO"}),
        (replace(ASK, tool_choice="create_receipt"), (), {"mode": "ANY", "allowed_function_names": ["create_receipt"]}),
        (ASK, ("tool_choice",), {"mode": "AUTO"}),
    ],
)
def test_the_choice_of_a_function(ask: Ask, unfit: tuple[str, ...], choice: dict[str, Any]) -> None:
    """Some function, any or none, and one by name; what the model refused is left out."""
    assert word(ask, frozenset(unfit))["tool_config"] == {"function_calling_config": choice}


def test_text_is_held_to_a_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dialect's schema is the format of the answer; there are no functions then."""
    with asking(monkeypatch, "google", Said('{"total": "1"}')) as server:
        one(hosted("google"), replace(ASK, offers=(), schema=SCHEMA))
    settings = server.requests[0].body["generationConfig"]
    assert settings["responseMimeType"] == "application/json"
    assert settings["responseJsonSchema"] == for_gemini(SCHEMA)
    assert not {"tools", "toolConfig"} & server.requests[0].body.keys()


def test_parameters_that_are_refused_are_left_out() -> None:
    """Temperature, cap and number of the draw are things that a request can do without."""
    ask = replace(ASK, sampling=Sampling(sample=2))
    known = {"temperature", "max_output_tokens", "seed"}
    assert known <= word(ask).keys()
    assert not known & word(ask, frozenset({"temperature", "max_tokens", "seed"})).keys()


def test_rounds_go_back_in_the_providers_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each result stands under its call's id and name, errors are told from values, and sides alternate."""
    with asking(monkeypatch, "google", Said("done")) as server:
        one(hosted("google"), ROUNDS)
    contents = server.requests[0].body["contents"]
    assert [content["role"] for content in contents] == ["user", "model", "user", "model", "user"]
    parts = [part for content in contents for part in content["parts"]]
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    results = [part["functionResponse"] for part in parts if "functionResponse" in part]
    assert [(call["id"], call["name"]) for call in calls] == [(one["id"], one["name"]) for one in results]
    assert len({call["id"] for call in calls}) == 4
    assert [call["args"] for call in calls] == [{"total": "1"}, {"a": 1}, {"malformed_arguments": '{"total'}, {}]
    assert [result["response"] for result in results] == [
        {"output": "recorded"}, {"error": "no such function"}, {"error": "not JSON"}, {"error": "total: is missing"},
    ]  # fmt: skip


def test_the_first_call_of_a_turn_is_signed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls go back with the words that stand for a missing signature, since newer models refuse an unsigned one."""
    with asking(monkeypatch, "google", Said("done")) as server:
        one(hosted("google"), ROUNDS)
    turns = [content["parts"] for content in server.requests[0].body["contents"] if content["role"] == "model"]
    signed = [[part.get("thoughtSignature") for part in parts] for parts in turns]
    words = "skip_thought_signature_validator"
    assert signed == [[None, words, None, None], [words]]


def test_pictures_stand_before_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """A picture is a part with its media type."""
    with asking(monkeypatch, "google", Said("done")) as server:
        one(hosted("google"), Ask((Message("user", "Read.", images=(PICTURE,)),)))
    picture, text = server.requests[0].body["contents"][0]["parts"]
    inline = picture["inlineData"]
    assert (inline.get("mimeType", inline.get("mime_type")), inline["data"]) == ("image/png", "iVBORw==")
    assert text == {"text": "Read."}


def test_thoughts_are_paid_for_and_are_no_answer() -> None:
    """What a model thinks is part of the output that is counted, and of no text that is read."""
    parts = [{"text": "hm", "thought": True}, {"text": "a"}, {"functionCall": {"name": "f"}}, {"text": "b"}]
    counted = {"promptTokenCount": 9, "candidatesTokenCount": 2, "thoughtsTokenCount": 5, "cachedContentTokenCount": 4}
    answer = read({"candidates": [{"content": {"parts": parts}}], "usageMetadata": counted})
    assert isinstance(answer, Reply)
    assert (answer.content, answer.usage) == ("ab", Usage(9, 7, 4))
    assert [(call.id, call.name, call.arguments) for call in answer.tool_calls] == [("call_0", "f", None)]


@pytest.mark.parametrize(
    "body",
    [
        {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}},
        {"candidates": [{"finishReason": "SAFETY"}]},
        {"candidates": [{"finishReason": "RECITATION", "content": {"parts": [{"text": "half"}]}}]},
    ],
)
def test_what_a_filter_stopped_is_refused(body: dict[str, Any]) -> None:
    """A blocked question and a stopped answer come back as refused, with what they cost."""
    answer = read({**body, "usageMetadata": {"promptTokenCount": 3}})
    assert isinstance(answer, Unanswered)
    assert (answer.kind, answer.usage) == ("refused", Usage(3))


def test_a_call_that_the_model_misspelt_is_an_answer_without_one() -> None:
    """The model hears that it called nothing, rather than being asked the same once more."""
    assert read({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]}) == Reply()


@pytest.mark.parametrize(
    "body", [{}, {"candidates": [None]}, {"candidates": [{"content": {"parts": 7}, "finishReason": "STOP"}]}]
)
def test_an_answer_without_content_is_trouble(body: dict[str, Any]) -> None:
    """Whatever holds neither text nor a call is asked for again."""
    answer = read(body)
    assert isinstance(answer, Trouble)
    assert answer.passing


def test_a_cut_without_a_word_is_a_cut() -> None:
    """A model that thought until its limit has answered, at length."""
    assert read({"candidates": [{"finishReason": "MAX_TOKENS"}]}) == Reply(finish_reason="length")


def test_the_wait_that_stands_in_the_body_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rate limit says in its body how long to wait; no header does."""
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3600.5s"}
    body = {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "slow", "details": [info]}}
    with asking(monkeypatch, "google", Answer(body, status=429)) as server:
        answer = one(hosted("google"))
    assert isinstance(answer, Unanswered)
    assert (answer.kind, len(server.requests)) == ("rate_limited", 1)
    assert "3600 s" in answer.cause


def test_a_wrong_key_is_told_from_a_wrong_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that is none is answered with 400 and a reason."""
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]
    body = {"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": f"bad {KEY}", "details": details}}
    with asking(monkeypatch, "google", Answer(body, status=400)):
        answer = one(hosted("google"))
    assert isinstance(answer, Unanswered)
    assert answer.kind == "unauthorized"
    assert "GEMINI_API_KEY" in answer.cause


def test_a_parameter_that_a_model_refuses_is_dropped_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A temperature that a model does not take is left out at once, and from then on."""
    with asking(monkeypatch, "google", Fault(400, "temperature is not supported by this model"), Said("done")) as stub:
        answers = put(hosted("google"), ASK, ASK)
    assert all(isinstance(answer, Reply) for answer in answers)
    assert ["temperature" in request.body["generationConfig"] for request in stub.requests] == [True, False, False]


def test_an_error_whose_body_is_none_is_trouble_that_may_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error status with a broken body, or a page, is asked four times, not taken for our own mistake."""
    for answer in (Answer("{", status=503), Answer("<html>", status=502, headers={"Content-Type": "text/html"})):
        with asking(monkeypatch, "google", answer) as server:
            found = one(hosted("google"))
        assert isinstance(found, Unanswered)
        assert (found.kind, len(server.requests)) == ("unavailable", 4)


def test_the_address_may_have_a_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """An address that ends in a version is asked by that version."""
    with asking(monkeypatch, "google", Said("done")) as server:
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url + "/v1beta/")
        one(hosted("google"))
    assert server.requests[0].path.startswith("/v1beta/models/")
