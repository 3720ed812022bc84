"""What a hosted model takes from its name and the environment, before any request."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from extractor.errors import ConfigurationError
from extractor.messages import Ask, Message, Unanswered
from extractor.models.providers import FACTORIES

model = FACTORIES["openai"]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No address but the one that a test gives."""
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.mark.parametrize("key", ["", "  ", "sk-\nbroken", "sk-ключ"])
def test_a_key_that_is_missing_or_broken(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    """prepare raises one line that names the variable; ask returns the same line as a value."""
    monkeypatch.setenv("OPENAI_API_KEY", key)
    known = model("gpt-test")
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY") as caught:
        known.prepare()
    assert not key.strip() or key not in str(caught.value)
    answer = asyncio.run(known.ask(Ask((Message("user", "hello"),))))
    assert isinstance(answer, Unanswered)
    assert answer.is_fatal
    assert answer.cause == str(caught.value)


@pytest.mark.parametrize("address", ["localhost:8000", "ftp://host/v1", "https://", "http://[", "http://host:port/"])
def test_an_address_that_is_none(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """A base URL without scheme or host is refused when the model is built."""
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    with pytest.raises(ConfigurationError, match="OPENAI_BASE_URL"):
        model("gpt-test")


def test_a_model_needs_a_name() -> None:
    """An empty name is refused when the model is built."""
    with pytest.raises(ConfigurationError, match="openai/NAME"):
        model(" ")


def test_identity_tells_models_and_hosts_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Identity is provider, model, host and dialect; a password in the address is not part of it."""
    assert model("gpt-5-mini").identity == "openai/gpt-5-mini@api.openai.com#tools"
    monkeypatch.setenv("OPENAI_BASE_URL", "https://user:hush@Models.example:8443/v1")
    known = model("meta/llama")
    assert known.identity == "openai/meta/llama@models.example:8443#tools"
    assert "hush" not in repr(known)


def test_importing_the_adapter_imports_no_sdk() -> None:
    """The SDK and instructor wait for their first use."""
    code = (
        "import sys, extractor.models.providers as p; m = p.FACTORIES['openai']('x'); m.identity;"
        "print([n for n in ('openai', 'instructor', 'aiohttp') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
