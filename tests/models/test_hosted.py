"""Chat completions against a stub on the loopback: by the lean client, and by the real SDK through instructor's."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stub_server import Answer, StubServer, completion, error, in_turn

from extractor.messages import Ask, Message, Offer, Reply, Sampling, ToolCall, ToolResult, Unanswered, Usage
from extractor.models.hosted import HostedModel
from extractor.models.judging import Asked, judge
from extractor.models.providers import PROVIDERS
from extractor.models.settings import Settings
from extractor.models.transport import Patience
from extractor.models.wires import Sent
from extractor.models.wires import chat_shapes as chat
from extractor.models.wires.shapes import chat_shapes_of_instructor

KEY = "sk-secret-0123456789"
SECRET = "the-document-says-4711"
SCHEMA = {
    "type": "object",
    "properties": {"total": {"type": "string"}, "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}}},
    "required": ["total", "lines"],
    "additionalProperties": False,
    "$defs": {
        "Line": {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
            "additionalProperties": False,
        }
    },
}
OFFERS = (
    Offer("create_invoice", "Record one invoice.", SCHEMA, strict=True),
    Offer("create_receipt", "Record one receipt.", {"type": "object", "properties": {"total": {"type": "string"}}}),
)
ASK = Ask((Message("system", "Read."), Message("user", SECRET)), OFFERS)
QUICK = Patience(first=0.001, longest=0.002)
Serve = Callable[..., StubServer]
TRANSPORT = {"transport": "lean"}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key, and no proxy between the client and the stub."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.fixture(params=["lean", "sdk"])
def serve(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Serve]:
    """Start a stub that answers in turn, and point the environment at it; each test runs with both transports."""
    monkeypatch.setitem(TRANSPORT, "transport", request.param)
    running: list[StubServer] = []

    def start(*answers: Answer, by: Callable[[dict[str, Any]], Answer] | None = None) -> StubServer:
        server = StubServer(by or in_turn(*answers)).__enter__()
        running.append(server)
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        return server

    yield start
    for server in running:
        server.__exit__(None, None, None)


def hosted(patience: Patience = QUICK, timeout: float = 20.0, name: str = "gpt-test") -> HostedModel:
    return HostedModel(PROVIDERS["openai"], name, Settings(timeout=timeout, **TRANSPORT), patience=patience)


def put(ask: Ask = ASK, patience: Patience = QUICK, timeout: float = 20.0) -> Reply | Unanswered:
    return asyncio.run(hosted(patience, timeout).ask(ask))


def unanswered(ask: Ask = ASK, patience: Patience = QUICK, timeout: float = 20.0) -> Unanswered:
    answer = put(ask, patience, timeout)
    assert isinstance(answer, Unanswered)
    assert SECRET not in repr(answer)
    assert KEY not in repr(answer)
    return answer


def test_a_request_holds_what_was_asked(serve: Serve) -> None:
    """Model, messages, every function on offer and the sampling reach the server; a call is required."""
    server = serve(completion(calls=[("create_invoice", {})]))
    put(Ask(ASK.messages, OFFERS, sampling=Sampling(0.5, 100)))
    body = server.requests[0].body
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert body["model"] == "gpt-test"
    assert body["messages"] == [{"role": "system", "content": "Read."}, {"role": "user", "content": SECRET}]
    assert [tool["function"]["name"] for tool in body["tools"]] == ["create_invoice", "create_receipt"]
    assert [tool["function"].get("strict") for tool in body["tools"]] == [True, None]
    assert (body["tool_choice"], body["temperature"], body["max_tokens"]) == ("required", 0.5, 100)


def test_without_offers_nothing_is_said_of_tools(serve: Serve) -> None:
    """An ask without offers is plain chat, and its text comes back."""
    server = serve(completion("Good day."))
    answer = put(Ask(ASK.messages))
    assert isinstance(answer, Reply)
    assert answer.content == "Good day."
    assert not {"tools", "tool_choice"} & server.requests[0].body.keys()


def test_every_call_of_a_reply_is_read(serve: Serve) -> None:
    """Three calls, one of an unknown function and one with broken arguments: three come back, in order, untouched."""
    sent = [("create_invoice", '{"total": "1.00"}'), ("no_such_function", "{}"), ("create_invoice", '{"total": ')]
    serve(completion("and a word", calls=sent))
    answer = put()
    assert isinstance(answer, Reply)
    assert [(call.name, call.arguments) for call in answer.tool_calls] == sent
    assert [call.id for call in answer.tool_calls] == ["call_0", "call_1", "call_2"]
    assert (answer.content, answer.finish_reason, answer.model) == ("and a word", "stop", "openai/gpt-test")


def test_results_go_back_under_the_id_of_their_call(serve: Serve) -> None:
    """Each call's own result text is sent back as one tool message with its id, in call order."""
    server = serve(completion("done"))
    calls = (ToolCall("b", "create_invoice", '{"total": "1"}'), ToolCall("a", "create_receipt", {"total": "2"}))
    results = (ToolResult("b", "create_invoice", "recorded"), ToolResult("a", "create_receipt", "total: too small"))
    turns = (*ASK.messages, Message("assistant", "", calls), Message("tool", tool_results=results))
    put(Ask(turns, OFFERS))
    turn, *answers = server.requests[0].body["messages"][2:]
    assert [call["function"]["arguments"] for call in turn["tool_calls"]] == ['{"total": "1"}', '{"total": "2"}']
    assert [(answer["tool_call_id"], answer["content"]) for answer in answers] == [
        ("b", "recorded"),
        ("a", "total: too small"),
    ]
    assert {answer["role"] for answer in answers} == {"tool"}


def test_usage_is_read(serve: Serve) -> None:
    """Tokens in, out and cached are reported as the server counts them."""
    counted = {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 64}}
    serve(completion("x", usage=counted))
    assert put().usage == Usage(100, 7, 64)


def test_a_reply_that_is_cut_says_so(serve: Serve) -> None:
    """A reply that ends by length is a reply, with its calls as far as they are whole."""
    whole = ("create_receipt", '{"total": "7"}')
    serve(completion(calls=[whole, ("create_invoice", '{"total": "1')], finish_reason="length"))
    answer = put()
    assert isinstance(answer, Reply)
    assert answer.finish_reason == "length"
    assert [(call.name, call.arguments) for call in answer.tool_calls] == [whole]


@pytest.mark.parametrize(
    "answer", [completion(refusal=f"I will not read {SECRET}"), completion("", finish_reason="content_filter")]
)
def test_a_refusal_is_paid_for(serve: Serve, answer: Answer) -> None:
    """A refusal and a content filter come back as refused, with what they cost, after one request."""
    server = serve(answer)
    refused = unanswered()
    assert (refused.kind, refused.usage, len(server.requests)) == ("refused", Usage(10, 5), 1)


@pytest.mark.parametrize(
    ("answer", "kind", "word"),
    [
        (error(401, "invalid_api_key", message=f"Incorrect API key: {KEY}"), "unauthorized", "OPENAI_API_KEY"),
        (error(403, message=KEY), "unauthorized", "OPENAI_API_KEY"),
        (error(402, message="Insufficient Balance"), "unauthorized", "credit"),
        (error(429, "insufficient_quota", headers={"Retry-After": "1"}), "unauthorized", "quota"),
        (error(404, "model_not_found"), "unknown_model", "gpt-test"),
        (error(400, "model_not_found"), "unknown_model", "gpt-test"),
        (error(400, SECRET, message=f"bad {SECRET}"), "bad_request", "400"),
        (Answer({"detail": [SECRET]}, status=422), "bad_request", "422"),
        (Answer([SECRET], status=422), "bad_request", "422"),
        (Answer(f"<html>{SECRET}</html>", status=405), "bad_request", "405"),
        (error(400, "context_length_exceeded"), "too_long", "context"),
        (error(400, message="This model's maximum context length is 8 tokens."), "too_long", "context"),
        (Answer({"code": 400, "type": "exceed_context_size_error"}, status=400), "too_long", "context"),
        (error(413), "too_long", "context"),
        (error(400, message="max_tokens is over the maximum context length"), "bad_request", "400"),
        (error(400, "content_filter"), "refused", "content filter"),
    ],
)
def test_what_cannot_pass_is_sent_once(serve: Serve, answer: Answer, kind: str, word: str) -> None:
    """Each final refusal is one request and one line of our own, without a word of the provider's prose."""
    server = serve(answer)
    refused = unanswered()
    assert refused.kind == kind
    assert word in refused.cause
    assert "\n" not in refused.cause
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (error(500, "server_error"), "unavailable"),
        (error(503, headers={"Retry-After": "0"}), "unavailable"),
        (error(409), "unavailable"),
        (error(408), "timeout"),
        (Answer("<html>Bad gateway</html>", headers={"Content-Type": "text/html"}), "unavailable"),
        (Answer({"choices": []}), "unavailable"),
        (Answer({"choices": [{"message": None}]}), "unavailable"),
        (Answer({"error": {"message": SECRET, "code": 503}}), "unavailable"),
        (Answer("[" * 100_000), "unavailable"),
        (Answer(cut="before"), "unavailable"),
        (Answer({"choices": [], "filler": "x" * 5000}, cut="midway"), "unavailable"),
        (Answer("no gzip", headers={"Content-Encoding": "gzip"}), "unavailable"),
    ],
)
def test_trouble_takes_four_requests(serve: Serve, answer: Answer, kind: str) -> None:
    """One retry layer: whatever keeps failing is asked exactly four times, then comes back as a value."""
    server = serve(answer)
    assert (unanswered().kind, len(server.requests)) == (kind, 4)


def test_trouble_that_passes_is_not_seen(serve: Serve) -> None:
    """Three failures of different kinds, then the reply."""
    server = serve(error(500), Answer(cut="before"), Answer("<html>"), completion("here"))
    assert put() == Reply("here", usage=Usage(10, 5), model="openai/gpt-test")
    assert len(server.requests) == 4


def test_rate_limits_spend_no_try(serve: Serve) -> None:
    """Nine rate limits, by seconds and by milliseconds, are waited out; the tenth request has the reply."""
    soon = [error(429, headers={"retry-after-ms": "2"}), error(429, headers={"Retry-After": "0"}), error(429)]
    server = serve(*soon * 3, completion("here"))
    assert isinstance(put(), Reply)
    assert len(server.requests) == 10


def test_a_rate_limit_beyond_our_patience(serve: Serve) -> None:
    """A server that asks for an hour is asked once, and the cause says how long it wants."""
    server = serve(error(429, "rate_limit_exceeded", headers={"Retry-After": "3600"}))
    limited = unanswered()
    assert (limited.kind, len(server.requests)) == ("rate_limited", 1)
    assert "3600 s" in limited.cause


@pytest.mark.parametrize("slow", [Answer({}, latency=5.0), Answer({"x": "y" * 99}, drip=0.04)])
def test_a_slow_server_times_out(serve: Serve, slow: Answer) -> None:
    """A request is given up after its time, also when the server goes on sending single bytes."""
    server = serve(slow)
    assert unanswered(patience=Patience(tries=2, first=0.001), timeout=0.3).kind == "timeout"
    assert len(server.requests) == 2


def test_no_server_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """An address that nobody listens at is unavailable, not an exception."""
    with StubServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    assert unanswered().kind == "unavailable"


def test_a_parameter_that_a_model_refuses_is_changed_once_and_remembered(serve: Serve) -> None:
    """max_tokens is renamed and temperature dropped when the provider refuses them, and from then on at once."""

    def fussy(body: dict[str, Any]) -> Answer:
        if "max_tokens" in body:
            text = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
            return error(400, "unsupported_parameter", param="max_tokens", message=text)
        if "temperature" in body:
            return error(400, message="'temperature' does not support 0.0 with this model.")
        return completion("here")

    server = serve(by=fussy)
    reasoning = hosted(QUICK, name="o-test")
    assert isinstance(asyncio.run(reasoning.ask(ASK)), Reply)
    assert isinstance(asyncio.run(reasoning.ask(ASK)), Reply)
    assert len(server.requests) == 4
    assert server.requests[3].body["max_completion_tokens"] == 4096
    assert not {"max_tokens", "temperature"} & server.requests[3].body.keys()


def test_one_model_serves_one_loop_after_another(serve: Serve) -> None:
    """Four asyncio.run in a row with one model all have their reply, and leave no connection open."""
    serve(completion("here"))
    known = hosted(Patience(tries=1), name="gpt-test")
    assert all(isinstance(asyncio.run(known.ask(ASK)), Reply) for _ in range(4))
    assert not known._clients


def test_one_model_serves_loops_side_by_side(serve: Serve) -> None:
    """While one loop has its connections open, a loop in another thread has its reply over a client of its own."""
    serve(completion("here"))
    known = hosted(Patience(tries=1), name="gpt-test")

    async def ask() -> object:
        assert isinstance(await known.ask(ASK), Reply)
        return known._clients[asyncio.get_running_loop()][0]

    async def main() -> None:
        assert await ask() is not await asyncio.to_thread(asyncio.run, ask())
        assert len(known._clients) == 1

    asyncio.run(main())


def test_connections_are_shared_and_can_be_closed(serve: Serve) -> None:
    """Within a loop there is one client; aclose closes it, may be called twice, and asking goes on after it."""
    serve(completion("here"))
    known = hosted(Patience(tries=1), name="gpt-test")

    async def main() -> None:
        await known.aclose()
        await asyncio.gather(*(known.ask(ASK) for _ in range(5)))
        assert len(known._clients) == 1
        await known.aclose()
        await known.aclose()
        assert not known._clients
        assert isinstance(await known.ask(ASK), Reply)

    asyncio.run(main())


def test_sixty_four_at_a_time(serve: Serve) -> None:
    """Sixty-four asks are on their way together, and each gets its own answer."""

    def echo(body: dict[str, Any]) -> Answer:
        return completion(body["messages"][0]["content"], latency=0.5)

    server = serve(by=echo)
    known = hosted(Patience(tries=1), name="gpt-test")

    async def main() -> list[Reply | Unanswered]:
        return await asyncio.gather(*(known.ask(Ask((Message("user", str(n)),))) for n in range(64)))

    answers = asyncio.run(main())
    assert [answer.content for answer in answers if isinstance(answer, Reply)] == [str(n) for n in range(64)]
    assert server.peak == 64


def test_cancelling_an_ask_cancels_it(serve: Serve) -> None:
    """Cancellation is the one thing that an ask raises."""
    server = serve(Answer({}, latency=0.5))

    async def main() -> None:
        task = asyncio.create_task(HostedModel(PROVIDERS["openai"], "gpt-test").ask(ASK))
        while not server.requests:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_the_key_shows_nowhere(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    """Neither the model, its identity, its state nor any log at the lowest level holds the key."""
    serve(error(500), error(401, message=KEY))
    with caplog.at_level(logging.DEBUG):
        known = hosted(QUICK, name="gpt-test")
        known.prepare()
        answer = asyncio.run(known.ask(ASK))
    assert isinstance(answer, Unanswered)
    assert answer.kind == "unauthorized"
    shown = (repr(known), str(known), known.identity, repr(vars(known)), repr(answer), caplog.text)
    assert not [text for text in shown if KEY in text]


def test_instructors_shapes_are_the_dialects() -> None:
    """What instructor makes of offers and results is what the dialect says in its own words."""
    calls = (ToolCall("a", "create_invoice", "{}"), ToolCall("b", "create_receipt", None))
    results = (ToolResult("a", "create_invoice", "one"), ToolResult("b", "create_receipt", "two"))
    ask = Ask((*ASK.messages, Message("assistant", "x", calls), Message("tool", tool_results=results)), OFFERS)
    messages, payload = chat.word(ask, chat_shapes_of_instructor())
    own_messages, own_payload = chat.word(ask)
    assert messages == own_messages
    for tool in own_payload:
        tool["function"]["parameters"] = {
            **tool["function"]["parameters"],
            "required": sorted(tool["function"]["parameters"]["required"]),
        }
    assert payload == own_payload


def test_a_payload_is_made_once() -> None:
    """Equal offers share one payload; other offers have another."""
    shapes = chat_shapes_of_instructor()
    again = tuple(Offer(offer.name, offer.description, dict(offer.parameters), offer.strict) for offer in OFFERS)
    assert shapes.offered(OFFERS) is shapes.offered(again)
    assert shapes.offered(OFFERS[:1]) is not shapes.offered(OFFERS)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["choices", "message", "error", "code", "usage", "tool_calls", "function", "arguments"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON, st.integers(300, 599))
@settings(max_examples=150, deadline=None)
def test_any_json_is_read_to_a_value(body: Any, status: int) -> None:
    """Whatever JSON a server answers with, and whatever its status, what comes out is a value."""
    known = HostedModel(PROVIDERS["openai"], "gpt-test")
    for read in (body, {"choices": [{"message": body}]}, {"choices": [body], "usage": body}):
        found = known._read(Sent(200, {}, b""), read)
        assert isinstance(found, Reply) or found.cause
    assert "\n" not in judge(status, body, {}, Asked("host", "name", "KEY", "ADDRESS")).cause
