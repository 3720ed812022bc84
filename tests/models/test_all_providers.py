"""One contract for every provider of the table: the same conversation, the same troubles, the same values."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stub_answers import HTML, Answer, Fault, Said
from wire_cases import ASK, KEY, QUICK, ROUNDS, SCHEMA, asking, hosted, one, put, wire_of

from extractor.errors import ConfigurationError, MissingExtra
from extractor.messages import Ask, Message, Reply, ToolResult, Unanswered, Usage, Verdict
from extractor.models.hosted import HostedModel
from extractor.models.providers import PROVIDERS
from extractor.models.settings import Settings
from extractor.models.wires import Sent

pytestmark = [
    pytest.mark.parametrize("provider", list(PROVIDERS)),
    # The SDK's own client is a subclass that its HTTP library has come to discourage.
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning"),
]
OWN_WIRE = ("anthropic", "google", "bedrock", "openai-responses")
OBJECTS = ("anthropic", "google", "bedrock")
"""Providers whose calls carry objects, not text."""


@pytest.fixture(autouse=True)
def addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings of whoever runs the tests."""
    for row in PROVIDERS.values():
        for name in (*row.addresses, *row.keys, "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
            monkeypatch.delenv(name, raising=False)


def unanswered(provider: str, ask: Ask = ASK, **said: Any) -> Unanswered:
    answer = one(hosted(provider, **said), ask)
    assert isinstance(answer, Unanswered)
    assert "\n" not in answer.cause
    return answer


def test_a_conversation_of_two_rounds(monkeypatch: pytest.MonkeyPatch, provider: str) -> None:
    """A bad reply, its results each under its own call, and a good reply; every call of both is read, and counted."""
    bad = Said(calls=[("create_invoice", {"total": "?"}), ("create_receipt", {"total": "2"})], usage=(100, 7, 64))
    good = Said("here", calls=[("create_invoice", {"total": "1.00"})], usage=(120, 5))
    with asking(monkeypatch, provider, bad, good) as server:
        model = hosted(provider)
        first = one(model)
        assert isinstance(first, Reply)
        results = tuple(
            ToolResult(call.id, call.name, f"about {call.name}", verdict)
            for call, verdict in zip(first.tool_calls, (Verdict.REJECTED, Verdict.ACCEPTED), strict=True)
        )
        turn = (*ASK.messages, first.as_message(), Message("tool", tool_results=results))
        second = one(model, replace(ASK, messages=turn))
    assert isinstance(second, Reply)
    assert [call.name for call in (*first.tool_calls, *second.tool_calls)] == [
        "create_invoice", "create_receipt", "create_invoice",
    ]  # fmt: skip
    assert (first.usage, second.usage) == (Usage(100, 7, 64), Usage(120, 5))
    assert (second.content, second.model) == ("here", model.name)
    assert len(server.requests) == 2
    asked = server.requests[1].asked()
    (said,) = [one for one in asked.turns if one.role == "assistant"]
    (told,) = [one for one in asked.turns if one.role == "tool"]
    assert [(call.name, call.arguments) for call in said.calls] == [
        ("create_invoice", {"total": "?"}), ("create_receipt", {"total": "2"}),
    ]  # fmt: skip
    assert {call.id: f"about {call.name}" for call in said.calls} == dict(told.results)


def test_what_is_asked_for(monkeypatch: pytest.MonkeyPatch, provider: str) -> None:
    """Each function is on offer, a call is required, and key, model, system text and sampling are there."""
    with asking(monkeypatch, provider, Said("done")) as server:
        one(hosted(provider))
    (received,) = server.requests
    asked = received.asked()
    assert received.key == KEY
    assert (asked.model, asked.system, asked.turns[0].text) == ("test-model", "Read.", ASK.messages[1].content)
    assert [tool.name for tool in asked.tools] == ["create_invoice", "create_receipt"]
    assert asked.tool_choice in ("required", "any")
    assert (asked.max_tokens, asked.temperature) == (4096, 0.0)


def test_a_conversation_that_began_elsewhere_goes_on(monkeypatch: pytest.MonkeyPatch, provider: str) -> None:
    """Ids that come twice or that few take, names nobody offered and broken arguments go out as each provider takes
    them: as many results as calls, and no text lost."""
    with asking(monkeypatch, provider, Said("done", usage=(500, 5))) as server:
        assert isinstance(one(hosted(provider), ROUNDS), Reply)
    asked = server.requests[0].asked()
    told = [text for turn in asked.turns for text in turn.results.values()]
    calls = [call for turn in asked.turns for call in turn.calls]
    assert told == ["recorded", "no such function", "not JSON", "total: is missing"]
    assert [call.name for call in calls] == ["create_invoice", "make_up", "create_receipt", "create_receipt"]
    assert [call.arguments for call in calls] == [{"total": "1"}, {"a": 1}, {"malformed_arguments": '{"total'}, {}]
    assert all(len(call.id) <= 40 for call in calls)


def test_text_is_held_to_a_schema_where_a_dialect_asks_for_it(monkeypatch: pytest.MonkeyPatch, provider: str) -> None:
    """The text of an answer comes back with its calls, and the schema goes along where the provider can hold it."""
    said = Said(json.dumps({"create_invoice": [{"total": "1.00", "lines": []}]}), usage=(500, 5))
    ask = replace(ASK, offers=ASK.offers[:1])
    with asking(monkeypatch, provider, said) as server:
        answer = one(hosted(provider, dialect="json_schema"), ask)
    assert isinstance(answer, Reply)
    assert [(call.name, call.arguments) for call in answer.tool_calls] == [
        ("create_invoice", {"total": "1.00", "lines": []})
    ]
    asked = server.requests[0].asked()
    assert not asked.tools
    assert (asked.schema is None) == (provider == "bedrock")


@pytest.mark.parametrize("name", ["no_such_function", "nothing_to_extract"])
def test_a_call_of_any_name_is_read(monkeypatch: pytest.MonkeyPatch, provider: str, name: str) -> None:
    """No call is dropped, whatever its name."""
    with asking(monkeypatch, provider, Said(calls=[(name, {"a": 1}), (name, {"a": 1})])):
        answer = one(hosted(provider))
    assert isinstance(answer, Reply)
    assert [call.name for call in answer.tool_calls] == [name, name]
    assert len({call.id for call in answer.tool_calls}) == 2


def test_a_reply_that_is_cut_keeps_what_is_whole(monkeypatch: pytest.MonkeyPatch, provider: str) -> None:
    """The call that the cut went through is no call; where calls are objects, the last one may be half there."""
    calls: list[tuple[str, Any]] = [("create_invoice", {"total": "1"}), ("create_invoice", '{"total": "2')]
    with asking(monkeypatch, provider, Said(calls=calls, finish="length")):
        answer = one(hosted(provider))
    assert isinstance(answer, Reply)
    assert answer.finish_reason == "length"
    (whole,) = answer.tool_calls
    assert whole.arguments == ({"total": "1"} if provider in OBJECTS else '{"total": "1"}')


@pytest.mark.parametrize("finish", ["refusal", "content_filter"])
def test_a_refusal_is_paid_for(monkeypatch: pytest.MonkeyPatch, provider: str, finish: Any) -> None:
    """A refusal and a filter come back as refused, with what they cost, after one request."""
    with asking(monkeypatch, provider, Said("no", finish=finish, usage=(30, 2))) as server:
        refused = unanswered(provider)
    assert (refused.kind, refused.usage, len(server.requests)) == ("refused", Usage(30, 2), 1)


def test_a_wrong_key_stops_the_run(monkeypatch: pytest.MonkeyPatch, provider: str) -> None:
    """A key that is not accepted is asked with once, and the cause names its variable."""
    with asking(monkeypatch, provider, Fault(401, f"wrong key {KEY}")) as server:
        refused = unanswered(provider)
    assert (refused.kind, refused.is_fatal, len(server.requests)) == ("unauthorized", True, 1)
    assert PROVIDERS[provider].keys[0] in refused.cause


def test_an_unknown_model_stops_the_run(monkeypatch: pytest.MonkeyPatch, provider: str) -> None:
    """A name that the provider does not know is asked for once, and the cause holds it."""
    with asking(monkeypatch, provider, Fault(404)) as server:
        refused = unanswered(provider)
    assert (refused.kind, refused.is_fatal, len(server.requests)) == ("unknown_model", True, 1)
    assert "test-model" in refused.cause


TOO_LONG = {
    "anthropic": "prompt is too long: 210000 tokens > 200000 maximum",
    "google": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "bedrock": "Input is too long for requested model.",
}


def test_a_document_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch, provider: str) -> None:
    """Every provider says in its own words that the question is too long; it is one document's matter."""
    text = TOO_LONG.get(provider, "This model's maximum context length is 8192 tokens.")
    with asking(monkeypatch, provider, Fault(400, text)) as server:
        refused = unanswered(provider)
    assert (refused.kind, refused.is_fatal, len(server.requests)) == ("too_long", False, 1)
    assert "context" in refused.cause


def test_a_rate_limit_is_waited_out(monkeypatch: pytest.MonkeyPatch, provider: str) -> None:
    """Rate limits are waited out as long as the provider says, and spend no try."""
    limit = Fault(429, "slow down", headers={"Retry-After": "0.01"})
    with asking(monkeypatch, provider, *[limit] * 5, Said("here")) as server:
        assert isinstance(one(hosted(provider)), Reply)
    assert len(server.requests) == 6


def test_trouble_that_passes_is_not_seen(monkeypatch: pytest.MonkeyPatch, provider: str) -> None:
    """A fault of the server, a dropped connection and a proxy's page, then the reply: one request each."""
    with asking(monkeypatch, provider, Fault(500), Answer(cut="before"), HTML, Said("here")) as server:
        answer = one(hosted(provider))
    assert isinstance(answer, Reply)
    assert (answer.content, len(server.requests)) == ("here", 4)


@pytest.mark.parametrize(
    "answer",
    [
        Fault(503), HTML, Answer(HTML.body, status=502, headers=HTML.headers), Answer(cut="before"),
        Answer(Said("x" * 5000), cut="midway"), Answer("[" * 100_000), Answer([7]),
        Said(finish="empty", usage=(10, 0, 0)),
        Answer("no gzip", headers={"Content-Encoding": "gzip"}),
    ],
    ids=["503", "page", "page 502", "cut", "midway", "deep", "list", "empty", "gzip"],
)  # fmt: skip
def test_trouble_takes_four_requests(monkeypatch: pytest.MonkeyPatch, provider: str, answer: Any) -> None:
    """One retry layer: no SDK retries, whatever keeps failing is asked four times and comes back as a value."""
    with asking(monkeypatch, provider, answer) as server:
        refused = unanswered(provider)
    assert (refused.kind, len(server.requests)) == ("unavailable", 4)


def test_a_slow_server_times_out(monkeypatch: pytest.MonkeyPatch, provider: str) -> None:
    """A request is given up after its time."""
    with asking(monkeypatch, provider, Answer(Said("late"), latency=5.0)):
        assert unanswered(provider, timeout=0.2).kind == "timeout"


def test_nobody_listens(monkeypatch: pytest.MonkeyPatch, provider: str) -> None:
    """An address that nobody listens at is unavailable, not an exception."""
    with asking(monkeypatch, provider, Said("here")):
        pass
    assert unanswered(provider).kind == "unavailable"


def test_loops_one_after_another(monkeypatch: pytest.MonkeyPatch, provider: str) -> None:
    """One model serves one event loop after another, and leaves no connection open."""
    with asking(monkeypatch, provider, Said("here")):
        model = hosted(provider)
        model.prepare()
        assert all(isinstance(answer, Reply) for _ in range(2) for answer in put(model, ASK, ASK))
    assert not model._clients


def test_the_host_is_named_without_secrets(monkeypatch: pytest.MonkeyPatch, provider: str) -> None:
    """Identity and description hold host and model, and never a key or a password."""
    monkeypatch.setenv(PROVIDERS[provider].keys[0], KEY)
    model = hosted(provider, endpoint="https://user:hush@Models.example:8443/v1")
    assert wire_of(model).host == "models.example:8443"
    assert model.identity == f"{provider}/test-model@models.example:8443#tools"
    assert not any(secret in repr(model) for secret in ("hush", KEY))


@pytest.mark.parametrize("address", ["localhost:8000", "ftp://host/v1", "https://", "http://[", "http://host:port/"])
def test_an_address_that_is_none(provider: str, address: str) -> None:
    """An address without scheme or host is refused when the model is made."""
    with pytest.raises(ConfigurationError, match="is no address"):
        hosted(provider, endpoint=address)


def test_a_missing_key_is_named(monkeypatch: pytest.MonkeyPatch, provider: str) -> None:
    """prepare names the variable, and asking has the same line as a value; local servers need no key."""
    row = PROVIDERS[provider]
    if not row.needs_key:
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", KEY)
        hosted(provider, endpoint="http://127.0.0.1:1").prepare()
        return
    model = hosted(provider, endpoint="http://127.0.0.1:1")
    with pytest.raises(ConfigurationError, match=f"{row.keys[0]} is not set") as caught:
        model.prepare()
    answer = one(model)
    assert isinstance(answer, Unanswered)
    assert (answer.kind, answer.cause) == ("unauthorized", str(caught.value))


SDKS = {"anthropic": "anthropic", "google": "google.genai", "bedrock": "boto3"}


def test_a_missing_sdk_names_its_extra(monkeypatch: pytest.MonkeyPatch, provider: str) -> None:
    """Without the SDK, prepare and asking say what to install; the others need nothing but what comes along."""
    row = PROVIDERS[provider]
    assert bool(row.extra) == (provider in SDKS)
    if not row.extra:
        return
    monkeypatch.setenv(row.keys[0], KEY)
    monkeypatch.setitem(sys.modules, SDKS[provider], None)
    model = hosted(provider, endpoint="http://127.0.0.1:1")
    with pytest.raises(MissingExtra, match=rf"extractor\[{row.extra}\]"):
        model.prepare()
    answer = one(model)
    assert isinstance(answer, Unanswered)
    assert row.extra in answer.cause


def test_making_a_model_imports_no_sdk(provider: str) -> None:
    """SDKs and instructor wait for their first use."""
    code = (
        f"import sys; from extractor.models.providers import FACTORIES; from extractor.models.settings import Settings;"
        f"FACTORIES[{provider!r}]('x', Settings(endpoint='http://127.0.0.1:1')).identity;"
        "print([n for n in ('openai', 'instructor', 'anthropic', 'google.genai', 'boto3', 'botocore',"
        "'aiohttp') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


KEYS = ["choices", "message", "error", "code", "usage", "tool_calls", "function", "arguments", "content", "type", "id",
        "input", "name", "output", "candidates", "parts", "functionCall", "args", "toolUse", "stop_reason", "text",
        "promptFeedback", "usageMetadata", "finishReason", "stopReason", "incomplete_details", "status"]  # fmt: skip
WORDS = ["tool_use", "text", "message", "function_call", "refusal", "max_tokens", "MAX_TOKENS", "incomplete", ""]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=15,
)


@given(body=JSON)
@settings(max_examples=60, deadline=None)
def test_any_json_is_read_to_a_value(provider: str, body: Any) -> None:
    """Whatever JSON a server answers with, what comes out is a value."""
    model = HostedModel(PROVIDERS[provider], "test-model", Settings(endpoint="http://127.0.0.1:1"), patience=QUICK)
    frames = [
        body, {"choices": [{"message": body}]}, {"content": body}, {"content": [body]}, {"output": [body]},
        {"candidates": [{"content": {"parts": [body]}}]}, {"output": {"message": {"content": [body]}}}, {"usage": body},
    ]  # fmt: skip
    for frame in frames:
        found = model._read(Sent(200, {}, b""), frame)
        assert isinstance(found, Reply) or "\n" not in found.cause


def test_every_provider_is_in_the_page(provider: str) -> None:
    """The page of providers names each provider, its variables and its extra."""
    page = (Path(__file__).parents[2] / "docs" / "providers.md").read_text(encoding="utf-8")
    row = PROVIDERS[provider]
    assert f"`{provider}/" in page
    assert all(f"`{name}`" in page for name in (*row.addresses, *row.keys, *([row.extra] if row.extra else [])))


def test_schemas_are_not_changed_by_wording(monkeypatch: pytest.MonkeyPatch, provider: str) -> None:
    """What is on offer is shared by all asks: no wire writes into it."""
    before = json.dumps([dict(offer.parameters) for offer in ASK.offers])
    with asking(monkeypatch, provider, Said("done")):
        put(hosted(provider), ASK, replace(ASK, schema=SCHEMA, offers=()), ROUNDS)
    assert json.dumps([dict(offer.parameters) for offer in ASK.offers]) == before
