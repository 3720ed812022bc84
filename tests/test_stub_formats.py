"""The stub speaks each vendor's format: the vendor's own SDK says so."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from stub_asked import Tool
from stub_clients import CLIENTS, QUESTION, SCHEMA, Client, Seen, anthropic_messages, bedrock_converse, refused_by
from stub_formats import Format, format_of
from stub_server import Fault, Received, Said, StubServer

ANSWER = Said("Here they are.", [("create_invoice", {"total": "3"}), ("other", {})], usage=(100, 20, 30, 10))
WHOLE = {"in": 100, "out": 20, "cached": 30}
WITHOUT_CACHE = {"in": 60, "out": 20, "cached": 30, "written": 10}
ENDS = {
    "openai_chat": ("tool_calls", "length", "stop", "content_filter"),
    "azure_deployment": ("tool_calls", "length", "stop", "content_filter"),
    "azure_v1": ("tool_calls", "length", "stop", "content_filter"),
    "openai_responses": ("completed", "max_output_tokens", "completed", "content_filter"),
    "anthropic_messages": ("tool_use", "max_tokens", "refusal", "refusal"),
    "google_gemini": ("STOP", "MAX_TOKENS", "PROHIBITED_CONTENT", "SAFETY"),
    "bedrock_converse": ("tool_use", "max_tokens", "guardrail_intervened", "content_filtered"),
}
"""How each format ends with calls, by length, in a refusal, by a filter."""
LIMITED = {
    "openai_chat": ("RateLimitError", 429, "rate_limit_exceeded", "7"),
    "azure_deployment": ("RateLimitError", 429, "rate_limit_exceeded", "7"),
    "azure_v1": ("RateLimitError", 429, "rate_limit_exceeded", "7"),
    "openai_responses": ("RateLimitError", 429, "rate_limit_exceeded", "7"),
    "anthropic_messages": ("RateLimitError", 429, "rate_limit_error", "7"),
    "google_gemini": ("ClientError", 429, "RESOURCE_EXHAUSTED", "7"),
    "bedrock_converse": ("ThrottlingException", 429, "ThrottlingException", "7"),
}


@pytest.fixture(autouse=True)
def _no_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key-1")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in (
        "AWS_PROFILE",
        "AWS_SESSION_TOKEN",
        "AWS_BEARER_TOKEN_BEDROCK",
        "ANTHROPIC_AUTH_TOKEN",
        "GOOGLE_API_KEY",
        "GOOGLE_GENAI_USE_VERTEXAI",
    ):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/nonexistent")


def every_client(test: Callable[..., None]) -> Callable[..., None]:
    """Once for each vendor's client."""
    marked: Callable[..., None] = pytest.mark.parametrize("ask", CLIENTS, ids=lambda ask: ask.__name__)(test)
    return marked


@every_client
def test_one_answer_is_read_by_each_vendors_client(ask: Client) -> None:
    """An answer written once arrives with its text, every call, and the tokens as the vendor counts them."""
    with StubServer(ANSWER) as server:
        seen = ask(server)
    usage = WITHOUT_CACHE if ask in (anthropic_messages, bedrock_converse) else WHOLE
    assert seen == Seen(
        "Here they are.", [("create_invoice", {"total": "3"}), ("other", {})], usage, ENDS[ask.__name__][0]
    )


@every_client
def test_one_question_is_read_from_each_vendors_client(ask: Client) -> None:
    """The same question in every format reads as the same value, and so does the key it was sent with."""
    with StubServer(ANSWER) as server:
        ask(server)
    (received,) = server.requests
    assert received.asked() == QUESTION
    assert received.key == "key-1"


@every_client
def test_each_end_of_an_answer_is_the_vendors_own(ask: Client) -> None:
    """A cut, refused or filtered answer ends as the vendor's servers end it; an empty one holds nothing."""
    said = ("length", "refusal", "content_filter", "empty")
    answers = [Said("I cannot", finish=finish) for finish in said]  # type: ignore[arg-type]
    with StubServer(lambda _body: answers.pop(0)) as server:
        *ends, empty = [ask(server) for _ in said]
    assert tuple(seen.finish for seen in ends) == ENDS[ask.__name__][1:]
    assert (empty.text, empty.calls) == (None, [])


@every_client
def test_an_error_is_the_vendors_own(ask: Client) -> None:
    """A refusal written once is raised as the vendor's own error, with its status, its name and its headers."""
    with StubServer(Fault(429, "slowly", headers={"Retry-After": "7"})) as server:
        assert refused_by(ask, server) == LIMITED[ask.__name__]


@pytest.mark.parametrize(
    ("path", "wire"),
    [
        ("/v1/chat/completions", "chat"),
        ("/openai/deployments/mine/chat/completions?api-version=1", "chat"),
        ("/v1/responses", "responses"),
        ("/v1/messages", "anthropic"),
        ("/v1beta/models/gemini-x:generateContent?alt=json", "gemini"),
        ("/model/eu.anthropic.claude%3A0/converse", "bedrock"),
        ("/v1/models", "chat"),
    ],
)
def test_the_path_says_the_format(path: str, wire: Format) -> None:
    """The end of the path chooses the format; an unknown path is answered in OpenAI's."""
    assert format_of(path) == wire


def put(server: StubServer, path: str, body: Any, **headers: str) -> tuple[int, Any]:
    """Post a body without any SDK: status and what came back."""
    sent = urllib.request.Request(f"{server.url}{path}", data=json.dumps(body).encode(), headers=headers)
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(sent, timeout=10) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as problem:
        with problem:
            return problem.code, json.load(problem)


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/v1/messages", {"x-api-key": "k"}, 400),
        ("/v1/messages", {"x-api-key": "k", "anthropic-version": "2023-06-01"}, 400),
        ("/openai/deployments/mine/chat/completions", {"api-key": "k"}, 400),
        ("/openai/deployments/mine/chat/completions?api-version=1", {}, 401),
        ("/v1beta/models/x:generateContent", {}, 403),
        ("/model/x/converse", {}, 403),
    ],
)
def test_what_a_vendor_demands_is_demanded(path: str, headers: dict[str, str], status: int) -> None:
    """A request without the vendor's key, version or obligatory field is refused, whatever the answer is."""
    with StubServer(ANSWER) as server:
        assert put(server, path, {"messages": []}, **headers)[0] == status
    assert server.tally == {"invalid": 1}


DECLARED = {"name": "f", "parameters": SCHEMA}
TEXT_FORM = {"type": "json_schema", "name": "x", "schema": SCHEMA}
GEMINI_FORM = {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}
BEDROCK_TOOL = {"toolSpec": {"name": "f", "inputSchema": {"json": SCHEMA}, "strict": True}}
BEDROCK_FORM = {"type": "json_schema", "structure": {"jsonSchema": {"schema": json.dumps(SCHEMA)}}}


@pytest.mark.parametrize(
    ("path", "body", "parallel", "strict"),
    [
        (
            "/v1/chat/completions",
            {
                "tools": [{"type": "function", "function": {**DECLARED, "strict": True}}],
                "tool_choice": "required",
                "parallel_tool_calls": False,
                "response_format": {"type": "json_schema", "json_schema": TEXT_FORM},
            },
            False,
            True,
        ),
        (
            "/v1/responses",
            {
                "tools": [{"type": "function", **DECLARED, "strict": True}],
                "tool_choice": "required",
                "parallel_tool_calls": False,
                "text": {"format": TEXT_FORM},
            },
            False,
            True,
        ),
        (
            "/v1/messages",
            {
                "tools": [{"name": "f", "input_schema": SCHEMA, "strict": True}],
                "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
                "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
            },
            False,
            True,
        ),
        (
            "/v1beta/models/x:generateContent",
            {
                "tools": [{"functionDeclarations": [DECLARED]}],
                "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
                "generationConfig": GEMINI_FORM,
            },
            None,
            None,
        ),
        (
            "/model/x/converse",
            {
                "toolConfig": {"tools": [BEDROCK_TOOL], "toolChoice": {"any": {}}},
                "outputConfig": {"textFormat": BEDROCK_FORM},
            },
            None,
            True,
        ),
    ],
)
def test_schemas_and_modes_are_read(path: str, body: Any, parallel: bool | None, strict: bool | None) -> None:
    """A strict tool, a demanded call, calls one at a time and a response format read alike where a format has them."""
    asked = Received(f"POST {path} HTTP/1.1\r\n".encode(), json.dumps(body).encode()).asked()
    assert asked.tools == (Tool("f", SCHEMA, strict),)
    assert (asked.tool_choice, asked.only, asked.parallel, asked.schema) == ("required", (), parallel, SCHEMA)


def test_gemini_without_ids_pairs_calls_and_results() -> None:
    """Where a format carries no ids, the n-th result of a name belongs to the n-th call."""
    calls = [{"functionCall": {"name": "f", "args": {"n": number}}} for number in range(2)]
    results = [{"functionResponse": {"name": "f", "response": {"result": f"r{number}"}}} for number in range(2)]
    body = {"contents": [{"role": "model", "parts": calls}, {"role": "user", "parts": results}]}
    asked = Received(b"POST /v1beta/models/x:generateContent HTTP/1.1\r\n", json.dumps(body).encode()).asked()
    spoken, answered = asked.turns
    assert [call.id for call in spoken.calls] == ["f:0", "f:1"]
    assert answered.results == {"f:0": "r0", "f:1": "r1"}
