"""Amazon Bedrock: what is sent, and what is read, by boto3 against a stub."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import TokenRetrievalError
from stub_answers import Fault, Said
from wire_cases import ASK, KEY, OFFERS, PICTURE, ROUNDS, SCHEMA, asking, hosted, one, put, wire_of

from extractor.errors import ConfigurationError
from extractor.messages import Ask, Message, Offer, Reply, Sampling, Unanswered, Usage
from extractor.models.providers import PROVIDERS
from extractor.models.settings import Settings
from extractor.models.transport import Trouble
from extractor.models.wires.bedrock import BedrockWire

ROW = PROVIDERS["bedrock"]
NONE: frozenset[str] = frozenset()


def word(ask: Ask, unfit: frozenset[str] = NONE, *, is_strict: bool = False) -> dict[str, Any]:
    return BedrockWire(replace(ROW, strict=is_strict), "test-model", Settings()).word(ask, unfit)


def read(body: dict[str, Any]) -> Reply | Unanswered | Trouble:
    return BedrockWire(ROW, "test-model", Settings()).read(body)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No credentials or settings of whoever runs the tests."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
                 *ROW.keys, *ROW.addresses):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/nonexistent")


def test_a_request_holds_what_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Key, model, system text, document, every function and the sampling reach the server."""
    model = "anthropic.claude-test-v1:0"
    with asking(monkeypatch, "bedrock", Said("done")) as server:
        known = hosted("bedrock", headers={"X-Team": "a"})
        wire_of(known)._model = model  # type: ignore[attr-defined]
        one(known, replace(ASK, sampling=Sampling(0.5, 100)))
    (received,) = server.requests
    assert (received.key, received.headers["x-team"]) == (KEY, "a")
    asked = received.asked()
    assert (asked.model, asked.system, asked.max_tokens, asked.temperature) == (model, "Read.", 100, 0.5)
    assert [(tool.name, tool.description) for tool in asked.tools] == [(o.name, o.description) for o in OFFERS]
    assert asked.tools[0].schema == SCHEMA
    assert asked.tool_choice == "required"


def test_the_key_may_stand_in_another_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable that the settings name goes before the provider's own."""
    with asking(monkeypatch, "bedrock", Said("done")) as server:
        monkeypatch.setenv("MY_KEY", "another")
        one(hosted("bedrock", key="MY_KEY"))
    assert server.requests[0].key == "another"


def test_a_request_is_signed_by_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a key, AWS credentials sign the request, for the region that is set."""
    with asking(monkeypatch, "bedrock", Said("done")) as server:
        monkeypatch.delenv(ROW.keys[0])
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA0")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
        monkeypatch.setenv("AWS_REGION", "eu-central-1")
        assert isinstance(one(hosted("bedrock")), Reply)
    signature = server.requests[0].headers["authorization"]
    assert signature.startswith("AWS4-HMAC-SHA256 Credential=AKIA0/")
    assert "/eu-central-1/bedrock/" in signature


def test_who_is_asked_without_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host is that of the region; without a region prepare says what is missing."""
    monkeypatch.setenv(ROW.keys[0], KEY)
    with pytest.raises(ConfigurationError, match="AWS_REGION is not set"):
        hosted("bedrock").prepare()
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    model = hosted("bedrock")
    assert wire_of(model).host == "bedrock-runtime.eu-west-1.amazonaws.com"
    model.prepare()


def test_without_key_or_credentials_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Missing credentials are one line, before any request."""
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    with pytest.raises(ConfigurationError, match="AWS_BEARER_TOKEN_BEDROCK is not set"):
        hosted("bedrock").prepare()


@pytest.mark.parametrize(
    ("ask", "choice"),
    [
        (ASK, {"any": {}}),
        (replace(ASK, tool_choice="auto"), {"auto": {}}),
        (replace(ASK, tool_choice="create_receipt"), {"tool": {"name": "create_receipt"}}),
    ],
)
def test_the_choice_of_a_function(ask: Ask, choice: dict[str, Any]) -> None:
    """Some function, any or none, and one by name; a model that refuses it is asked without."""
    assert word(ask)["toolConfig"]["toolChoice"] == choice
    assert "toolChoice" not in word(ask, frozenset({"tool_choice"}))["toolConfig"]


def test_strict_is_for_models_that_hold_it() -> None:
    """Strict is sent where the row says so, for schemas that a decoder takes."""
    specs = [[tool["toolSpec"].get("strict") for tool in word(ASK, is_strict=on)["toolConfig"]["tools"]]
             for on in (True, False)]  # fmt: skip
    assert specs == [[True, None], [None, None]]


def test_a_function_without_a_description_is_given_its_name() -> None:
    """The provider refuses an empty one."""
    (tool,) = word(replace(ASK, offers=(Offer("f", "", {"type": "object"}),)))["toolConfig"]["tools"]
    assert tool["toolSpec"] == {"name": "f", "description": "f", "inputSchema": {"json": {"type": "object"}}}


def test_parameters_that_are_refused_are_left_out() -> None:
    """Temperature and cap are things that a request can do without."""
    assert word(ASK, frozenset({"temperature"}))["inferenceConfig"] == {"maxTokens": 4096}
    assert "inferenceConfig" not in word(ASK, frozenset({"temperature", "max_tokens"}))


def test_rounds_go_back_in_the_providers_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each result stands under its own call with its status, and sides alternate."""
    with asking(monkeypatch, "bedrock", Said("done")) as server:
        one(hosted("bedrock"), ROUNDS)
    messages = server.requests[0].body["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "assistant", "user"]
    blocks = [block for message in messages for block in message["content"]]
    uses = [block["toolUse"] for block in blocks if "toolUse" in block]
    results = [block["toolResult"] for block in blocks if "toolResult" in block]
    assert [use["toolUseId"] for use in uses] == [result["toolUseId"] for result in results]
    assert len({use["toolUseId"] for use in uses}) == 4
    assert [use["input"] for use in uses] == [{"total": "1"}, {"a": 1}, {"malformed_arguments": '{"total'}, {}]
    assert [(result["content"], result["status"]) for result in results] == [
        ([{"text": "recorded"}], "success"), ([{"text": "no such function"}], "error"),
        ([{"text": "not JSON"}], "error"), ([{"text": "total: is missing"}], "error"),
    ]  # fmt: skip


def test_pictures_stand_before_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """A picture is a block with its format."""
    with asking(monkeypatch, "bedrock", Said("done")) as server:
        one(hosted("bedrock"), Ask((Message("user", "Read.", images=(PICTURE,)),)))
    picture = {"image": {"format": "png", "source": {"bytes": "iVBORw=="}}}
    assert server.requests[0].body["messages"][0]["content"] == [picture, {"text": "Read."}]


def test_usage_holds_what_the_cache_read_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens of the cache are part of what was read."""
    with asking(monkeypatch, "bedrock", Said("x", usage=(100, 7, 64, 16))):
        answer = one(hosted("bedrock"))
    assert answer.usage == Usage(100, 7, 64)


@pytest.mark.parametrize("reason", ["guardrail_intervened", "content_filtered"])
def test_what_a_filter_stopped_is_refused(reason: str) -> None:
    """A guardrail and a filter come back as refused, with what they cost."""
    answer = read({"stopReason": reason, "usage": {"inputTokens": 3, "outputTokens": 1}})
    assert isinstance(answer, Unanswered)
    assert (answer.kind, answer.usage) == ("refused", Usage(3, 1))


def test_ends_that_are_none_of_the_servers_faults() -> None:
    """A cut without a word and a call that the model misspelt are answers."""
    assert read({"stopReason": "max_tokens"}) == Reply(finish_reason="length")
    assert read({"stopReason": "malformed_tool_use"}) == Reply()


@pytest.mark.parametrize("body", [{}, {"output": {"message": {"content": [None]}}, "stopReason": "end_turn"}])
def test_an_answer_without_content_is_trouble(body: dict[str, Any]) -> None:
    """Whatever holds neither text nor a call is asked for again."""
    answer = read(body)
    assert isinstance(answer, Trouble)
    assert answer.passing


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault(403), "unauthorized"),
        (Fault(400, "The provided model identifier is invalid."), "unknown_model"),
        (Fault(400, "Input is too long for requested model."), "too_long"),
        (Fault(400, "no"), "bad_request"),
    ],
)
def test_what_cannot_pass_is_sent_once(monkeypatch: pytest.MonkeyPatch, fault: Fault, kind: str) -> None:
    """Errors are known by their names, and one of many meanings by what it says."""
    with asking(monkeypatch, "bedrock", fault) as server:
        answer = one(hosted("bedrock"))
    assert isinstance(answer, Unanswered)
    assert (answer.kind, len(server.requests)) == (kind, 1)


def test_a_choice_that_a_model_does_not_know_is_dropped_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some models cannot be made to call: they are asked without, at once and from then on."""
    refusal = Fault(400, "This model doesn't support the toolConfig.toolChoice.any field.")
    with asking(monkeypatch, "bedrock", refusal, Said("done")) as server:
        answers = put(hosted("bedrock"), ASK, ASK)
    assert all(isinstance(answer, Reply) for answer in answers)
    assert ["toolChoice" in request.body["toolConfig"] for request in server.requests] == [True, False, False]


def test_credentials_that_have_ended_stop_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A token that cannot be had is no document's matter, and nobody is asked."""
    with asking(monkeypatch, "bedrock", Said("x")) as server:

        class Ended:
            def converse(self, **_: Any) -> None:
                raise TokenRetrievalError(provider="sso", error_msg=KEY)

            def close(self) -> None:
                pass

        model = hosted("bedrock")
        monkeypatch.setattr(wire_of(model), "_client", Ended)
        answer = one(model)
    assert isinstance(answer, Unanswered)
    assert (answer.kind, server.requests) == ("unauthorized", [])
