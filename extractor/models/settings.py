"""What is set about a model beside its name, and what is known of a provider."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any
from urllib.parse import urlsplit

from extractor.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a user may say of a model, on the command line or in ``[tool.extractor.models.NAME]``.

    :param endpoint: address in place of the provider's own.
    :param api_version: for Azure's dated API; its undated one is used without.
    :param key: name of the environment variable that holds the key, in place of the provider's own.
    :param dialect: how asks are worded; by default what the provider does best.
    :param rpm: requests a minute, all workers together.
    :param tpm: tokens a minute.
    :param concurrency: requests in flight.
    :param max_attempts: answers that a document is worth.
    :param context: tokens that the model reads, question and answer together; a longer question is not sent.
    :param headers: sent with every request.
    :param transport: ``lean``, or ``sdk`` to send chat completions through the vendor's SDK.
    :param patience: seconds that a rate limit is waited out; a night by default, less where another model stands by.
    :param timeout: seconds after which one request is given up.
    """

    endpoint: str | None = None
    api_version: str | None = None
    key: str | None = None
    dialect: str | None = None
    rpm: float | None = None
    tpm: float | None = None
    concurrency: int | None = None
    max_attempts: int | None = None
    context: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    transport: str = "lean"
    patience: float | None = None
    timeout: float = 300.0

    @property
    def as_key(self) -> tuple[object, ...]:
        """The settings as the key of a dictionary."""
        values = (getattr(self, one.name) for one in fields(self))
        return tuple(tuple(sorted(value.items())) if isinstance(value, Mapping) else value for value in values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """What is known of a provider.

    :param wire: ``module:attribute`` of its wire, which is made with provider, model and settings.
    :param base_url: its address; the first variable of ``addresses`` that is set goes before it.
    :param keys: environment variables that may hold the key, first choice first.
    :param needs_key: whether it asks for one at all.
    :param forced: its word for "call some function".
    :param strict: whether it takes ``strict`` on functions, and then holds the arguments to the schema.
    :param parallel: whether it takes ``parallel_tool_calls``.
    :param dialect: what it does best.
    :param policy: ``strong`` or ``small``: which attempts suit the models that stand there.
    :param workers: documents worth having in flight.
    :param extra: the extra of our package that brings its SDK.
    """

    name: str
    wire: str = "extractor.models.wires.chat:ChatWire"
    base_url: str = ""
    addresses: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    needs_key: bool = True
    forced: str = "required"
    strict: bool = False
    parallel: bool = True
    dialect: str = "tools"
    policy: str = "strong"
    workers: int = 16
    extra: str = ""

    def address(self, settings: Settings) -> tuple[str, str]:
        """The address that is asked, and where it was said: the setting's or the variable's name.

        :raises ConfigurationError: when it is no http(s) address.
        """
        said = next((name for name in self.addresses if os.environ.get(name, "").strip()), "")
        origin = "endpoint" if settings.endpoint else said or (self.addresses[0] if self.addresses else self.name)
        url = settings.endpoint or os.environ.get(said, "").strip() or self.base_url
        if not url:
            raise ConfigurationError(f"{origin} is not set", hint=f"give the address of your {self.name} endpoint")
        host_of(url, origin)
        return url.rstrip("/"), origin

    def runs_here(self, settings: Settings) -> bool:
        """Whether it is a server of one's own on this machine, whose tokens cost nothing."""
        if self.needs_key or not self.base_url:
            return False
        url, origin = self.address(settings)
        return host_of(url, origin).partition(":")[0] in ("localhost", "127.0.0.1")

    def key_variable(self, settings: Settings) -> str:
        """The environment variable that holds the key: the first that is set, else the first there is."""
        names = (settings.key,) if settings.key else self.keys
        return next((name for name in names if os.environ.get(name, "").strip()), names[0] if names else "")

    def secret(self, settings: Settings) -> str:
        """The key. It is read when a client is made, handed to it, and kept nowhere else.

        :raises ConfigurationError: when it is missing or cannot be one.
        """
        variable = self.key_variable(settings)
        key = os.environ.get(variable, "").strip() if variable else ""
        if not key and self.needs_key:
            hint = "set it to your provider's key, or to any word for a server that asks for none"
            raise ConfigurationError(f"{variable} is not set", hint=hint)
        if key and not (key.isascii() and key.isprintable() and " " not in key):
            raise ConfigurationError(f"{variable} holds characters that no key has", hint="copy the key once more")
        return key


def host_of(url: str, origin: str) -> str:
    """Host and port of an address, without a user or password that it may hold.

    :raises ConfigurationError: when it is no http(s) address; ``origin`` says where it was given.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        parts, host, port = urlsplit(""), "", None
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigurationError(f"{origin} is no address", hint="give it as https://HOST/v1")
    return f"{host}:{port}" if port else host


def of(options: Mapping[str, Any]) -> Settings:
    """The settings in a mapping, without what is ``None``."""
    return Settings(**{name: value for name, value in options.items() if value is not None})
