"""The stub server: as a process of its own, for tests that kill its client, and every way in which it misbehaves."""

from __future__ import annotations

import copy
import http.client
import json
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stub_behaviour import Behaviour, Bucket, Temper
from stub_server import Received, Said, StubServer, by_request, first_offer, in_turn


def test_the_stub_runs_as_a_process(tmp_path: Path) -> None:
    """The stub serves from a process of its own, logs each request, and ends with its standard input."""
    log, script = tmp_path / "requests.jsonl", Path(sys.modules["stub_server"].__file__ or "")
    body = {"tools": [{"type": "function", "function": {"name": "create_invoice"}}]}
    command = [sys.executable, str(script), "--log", str(log), "--latency", "0.01"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as stub:
        assert stub.stdout is not None
        address = stub.stdout.readline().strip() + "/chat/completions"
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(address, data=json.dumps(body).encode(), timeout=10) as response:
            answer = json.load(response)
        stub.communicate(timeout=10)
    assert stub.returncode == 0
    assert answer["choices"][0]["message"]["tool_calls"][0]["function"] == {"name": "create_invoice", "arguments": "{}"}
    assert [json.loads(line) for line in log.read_text().splitlines()] == [
        {"path": "/v1/chat/completions", "body": body}
    ]


def test_with_nothing_on_offer_the_stub_says_so() -> None:
    """Without tools the default answer is text."""
    assert first_offer({}).body["choices"][0]["message"]["content"] == "nothing is on offer"


def post(address: str, body: Any = None) -> tuple[int, dict[str, str], bytes]:
    """Post without any SDK: status, headers by lower-case name, body."""
    sent = urllib.request.Request(address, data=json.dumps(body or {}).encode())
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(sent, timeout=10) as response:
            return response.status, {name.lower(): value for name, value in response.headers.items()}, response.read()
    except urllib.error.HTTPError as problem:
        with problem:
            return problem.code, {name.lower(): value for name, value in problem.headers.items()}, problem.read()


def chat(server: StubServer, said: str = "hello") -> tuple[int, dict[str, str], bytes]:
    """One opening question in OpenAI's format."""
    return post(f"{server.base_url}/chat/completions", {"messages": [{"role": "user", "content": said}]})


def test_a_process_takes_its_troubles_from_the_command_line() -> None:
    """Everything that a Behaviour says can be said as an option, and the last line counts what became of requests."""
    script = Path(sys.modules["stub_server"].__file__ or "")
    words = ["--rate", "0.001", "--capacity", "2", "--retry-after", "decimal", "--error-share", "1"]
    words += ["--error-statuses", "529", "--cut", "before", "--bad-share", "0.5", "--seed", "1", "--reverse", "2"]
    with subprocess.Popen(
        [sys.executable, str(script), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as stub:
        assert stub.stdout is not None
        address = stub.stdout.readline().strip() + "/chat/completions"
        statuses = [post(address)[0] for _ in range(3)]
        counted = json.loads(stub.communicate(timeout=10)[0])
    assert statuses == [529, 529, 429]
    assert (counted["error"], counted["limited"], counted["peak"]) == (2, 1, 1)


@given(
    rate=st.floats(0.5, 1000),
    capacity=st.integers(1, 100),
    pauses=st.lists(st.floats(0, 3), min_size=1, max_size=60),
)
def test_a_bucket_lets_through_what_it_says(rate: float, capacity: int, pauses: list[float]) -> None:
    """Never more than the capacity and the rate's share of the time; waiting as told gets a token."""
    bucket, now, passed = Bucket(rate, capacity), 0.0, 0
    for pause in pauses:
        now += pause
        wait = bucket.take(now)
        if wait:
            assert Bucket.take(copy.copy(bucket), now + wait + 1e-6) == 0
        else:
            passed += 1
    assert passed <= capacity + rate * now + 1e-6


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ("integer", {"retry-after": "1000"}),
        ("decimal", {"retry-after": "1000.000"}),
        ("ms", {"retry-after-ms": "1000000"}),
        ("none", {}),
    ],
)
def test_a_limit_refuses_before_any_latency(form: Any, told: dict[str, str]) -> None:
    """A 429 says when to come back in the form that was asked for, and waits for nothing."""
    behaviour = Behaviour(rate=0.001, capacity=1, retry_after=form)
    with StubServer(Said("yes"), behaviour=behaviour) as server:
        first = chat(server)
        server.latency = 1000.0
        status, headers, _body = chat(server)
    waits = {name: value for name, value in headers.items() if name.startswith("retry-after")}
    assert (first[0], status) == (200, 429)
    assert {name: pytest.approx(float(value), rel=0.01) for name, value in told.items()} == {
        name: float(value) for name, value in waits.items()
    }
    assert first[1]["x-ratelimit-limit-requests"] == "1"
    assert headers["x-ratelimit-remaining-requests"] == "0"
    assert server.tally == {"answered": 1, "limited": 1}


def test_anthropic_tells_its_limits_in_its_own_headers() -> None:
    """The state of the bucket is told as Anthropic tells it; Gemini and Bedrock say nothing."""
    bucket = Bucket(10, 10)
    told = bucket.headers("anthropic")
    assert told["anthropic-ratelimit-requests-limit"] == told["anthropic-ratelimit-requests-remaining"] == "10"
    assert told["anthropic-ratelimit-requests-reset"].endswith("Z")
    assert bucket.headers("gemini") == bucket.headers("bedrock") == {}


def fates(seed: int, **shares: float) -> list[str]:
    """What becomes of a thousand requests."""
    temper = Temper(Behaviour(seed=seed, **shares), lambda _received: Said("yes"))  # type: ignore[arg-type]
    found: list[str] = []
    before = temper.tally.copy()
    for _ in range(1000):
        temper.decide(Received(b"POST /v1/chat/completions HTTP/1.1\r\n"), 0.0)
        found.extend((temper.tally - before).keys())
        before = temper.tally.copy()
    return found


def test_shares_come_from_the_seed() -> None:
    """An equal seed gives equal troubles, in about the shares that were asked for."""
    shares = {"error_share": 0.05, "cut_share": 0.02, "html_share": 0.03, "truncated_share": 0.1}
    drawn = Counter(fates(1, **shares))
    assert fates(1, **shares) == fates(1, **shares) != fates(2, **shares)
    for name, share in (("error", 50), ("cut", 20), ("html", 30), ("truncated", 100)):
        assert share / 2 < drawn[name] < share * 2
    assert drawn.total() == 1000


@given(window=st.integers(1, 100), latency=st.floats(0.001, 10))
def test_later_requests_can_be_answered_earlier(window: int, latency: float) -> None:
    """Within a window each request waits less than the one before, and the first waits the whole latency."""
    behaviour = Behaviour(latency=latency, reverse=window)
    waits = [behaviour.delay(position) for position in range(window)]
    assert waits == sorted(set(waits), reverse=True)
    assert waits[0] == behaviour.delay(window) == latency


def test_bad_first_replies_go_to_opening_questions_only() -> None:
    """A share of the opening questions, the same ones whenever they come, gets the bad reply; a later turn never."""
    behaviour = Behaviour(bad_first=lambda received: Said(f"bad {received.asked().turns[0].text}"), bad_share=0.3)
    with StubServer(Said("good"), behaviour=behaviour) as server:
        first = [b"bad" in chat(server, f"document {number}")[2] for number in range(100)]
        again = [b"bad" in chat(server, f"document {number}")[2] for number in range(100)]
        turns = [{"role": "user", "content": "document 1"}, {"role": "assistant", "content": "bad"}]
        later = post(f"{server.base_url}/chat/completions", {"messages": turns})[2]
    assert first == again
    assert 15 < sum(first) < 45
    assert b"good" in later
    assert server.tally == {"bad": 2 * sum(first), "answered": 201 - 2 * sum(first)}


@pytest.mark.parametrize(("cut", "problem"), [("before", ConnectionError), ("midway", http.client.IncompleteRead)])
def test_connections_are_cut(cut: Any, problem: type[Exception]) -> None:
    """A connection ends without a byte, or in the middle of a body."""
    with StubServer(Said("yes"), behaviour=Behaviour(cut_share=1, cut=cut)) as server, pytest.raises(problem):
        chat(server)
    assert server.tally == {"cut": 1}


def test_other_troubles_come_with_status_200() -> None:
    """A page of HTML, an answer without choices, a cut-off answer and a refusal are all well as far as HTTP goes."""
    whole = Said(calls=[("f", {"a": "1"}), ("f", {"a": "2"})])
    bodies = {}
    for trouble in ("html", "empty", "truncated", "refusal"):
        shares: dict[str, Any] = {f"{trouble}_share": 1}
        with StubServer(whole, behaviour=Behaviour(**shares)) as server:
            status, headers, bodies[trouble] = chat(server)
            assert status == 200
            assert headers["content-type"].startswith("text/html" if trouble == "html" else "application/json")
    assert bodies["html"].startswith(b"<!DOCTYPE html>")
    assert json.loads(bodies["empty"])["choices"] == []
    cut = json.loads(bodies["truncated"])["choices"][0]
    assert cut["finish_reason"] == "length"
    assert [call["function"]["arguments"] for call in cut["message"]["tool_calls"]] == ['{"a": "1"}', '{"a":']
    assert json.loads(bodies["refusal"])["choices"][0]["message"]["refusal"]


def test_requests_share_a_connection_and_may_come_in_one_piece() -> None:
    """A connection stays open, and requests that arrive together, or byte by byte, are answered in their order."""
    body = json.dumps({"messages": [{"role": "user", "content": "x"}]}).encode()
    request = b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % len(body) + body
    answers = in_turn(Said("one"), Said("two"), Said("three"), Said("four"))
    with StubServer(answers) as server, socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        client.sendall(request * 3)
        for position in range(len(request)):
            client.sendall(request[position : position + 1])
        arrived = b""
        while b"four" not in arrived:
            arrived += client.recv(65536)
    assert arrived.index(b"one") < arrived.index(b"two") < arrived.index(b"three")
    assert len(server.requests) == 4


def test_an_error_in_the_answer_is_raised_where_the_test_sees_it() -> None:
    """What an answer function raises reaches the client as a 400, and the test on leaving the server."""
    with pytest.raises(ZeroDivisionError), StubServer(lambda _body: Said(str(1 / 0))) as server:
        assert chat(server)[0] == 400


def test_an_answer_may_be_chosen_by_the_whole_request() -> None:
    """A function by request sees headers, path and the question in no vendor's format."""
    with StubServer(by_request(lambda received: Said(received.asked().turns[0].text.upper()))) as server:
        assert b"HELLO" in chat(server)[2]
