"""What every test stands on: no network beyond this machine, and no configuration of whoever runs the tests."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest

_connect = socket.socket.connect
_connect_ex = socket.socket.connect_ex


def _check(address: Any) -> None:
    if not isinstance(address, tuple):
        return  # a socket file on this machine
    host = str(address[0]).partition("%")[0]
    if host in ("localhost", ""):
        return
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    if not local:
        raise PermissionError(f"tests reach no host beyond this machine, and this one wanted {host!r}")


def _guarded_connect(self: socket.socket, address: Any) -> None:
    _check(address)
    _connect(self, address)


def _guarded_connect_ex(self: socket.socket, address: Any) -> int:
    _check(address)
    return _connect_ex(self, address)


@pytest.fixture(autouse=True, scope="session")
def _no_network() -> Iterator[None]:
    patch = pytest.MonkeyPatch()
    patch.setattr(socket.socket, "connect", _guarded_connect)
    patch.setattr(socket.socket, "connect_ex", _guarded_connect_ex)
    yield
    patch.undo()


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("EXTRACTOR_", "OPENAI_")) and name != "EXTRACTOR_MODELS":
            monkeypatch.delenv(name)
