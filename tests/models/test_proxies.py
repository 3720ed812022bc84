"""The usual proxy variables, read once for a client."""

from __future__ import annotations

import pytest

from extractor.errors import ConfigurationError
from extractor.models.wires import lean

ADDRESS = "https://api.example.com/v1/chat/completions"


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing set."""
    for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)


def test_the_proxy_of_the_environment_is_taken_with_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    """Address and credentials are told apart, as the client wants them."""
    monkeypatch.setenv("HTTPS_PROXY", "http://me:word@proxy.example:3128")
    proxy, auth = lean._proxy_for(ADDRESS)
    assert str(proxy) == "http://proxy.example:3128"
    assert auth is not None
    assert (auth.login, auth.password) == ("me", "word")


def test_without_one_and_for_excepted_hosts_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable, or a host in ``NO_PROXY``: requests go straight."""
    assert lean._proxy_for(ADDRESS) == (None, None)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", "api.example.com")
    assert lean._proxy_for(ADDRESS) == (None, None)


def test_a_proxy_that_is_no_address_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line for people, before any request."""
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:port")
    with pytest.raises(ConfigurationError, match="proxy"):
        lean._proxy_for(ADDRESS)
