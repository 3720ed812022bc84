"""A lean HTTP client for JSON APIs: aiohttp, without a vendor's SDK on top.

An SDK's ``create`` costs ten times the CPU of the request itself, which is what bounds a process with many documents
in flight. Nothing is retried here, no redirect is followed (it would carry the key along), and a body has a limit.
"""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from extractor.errors import ConfigurationError
from extractor.models.wires import Dropped, Sent

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

LIMIT = 64 * 1024 * 1024
"""Bytes of a body: an answer has kilobytes; what is larger is none."""


def open_session(url: str, headers: Mapping[str, str], timeout: float) -> aiohttp.ClientSession:
    """A session for the running event loop and one address; it honours the usual proxy variables.

    They are read here, once: ``trust_env`` would read them, and ``.netrc``, in two threads for every request.

    :raises ConfigurationError: when what they name is no address.
    """
    import aiohttp

    proxy, proxy_auth = _proxy_for(url)
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=_context()),
        timeout=aiohttp.ClientTimeout(total=timeout, sock_connect=min(timeout, 20.0)),
        headers={"User-Agent": "extractor", **headers, "Content-Type": "application/json"},
        cookie_jar=aiohttp.DummyCookieJar(),
        proxy=proxy,
        proxy_auth=proxy_auth,
        auto_decompress=True,
    )


def _proxy_for(url: str) -> tuple[URL | None, aiohttp.BasicAuth | None]:
    """The proxy that the environment names for an address, if any.

    :raises ConfigurationError: when what it names is no address.
    """
    from aiohttp.helpers import get_env_proxy_for_url
    from yarl import URL

    try:
        return get_env_proxy_for_url(URL(url))
    except LookupError:
        return None, None
    except ValueError:
        raise ConfigurationError("the environment names a proxy that is no address", hint="see HTTPS_PROXY") from None


async def post(session: aiohttp.ClientSession, url: str, request: Mapping[str, Any]) -> Sent:
    """Make one request.

    :raises Dropped: when there is no connection, or it ended before the answer was whole.
    :raises TimeoutError: when the time is over.
    """
    import aiohttp

    data = json.dumps(request, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    try:
        async with session.post(url, data=data, allow_redirects=False) as answer:
            body = await answer.content.read(LIMIT + 1) if answer.content_length is None else await answer.read()
            while answer.content_length is None and len(body) <= LIMIT and not answer.content.at_eof():
                body += await answer.content.read(LIMIT + 1 - len(body))
            return Sent(answer.status, answer.headers, body if len(body) <= LIMIT else b"")
    except TimeoutError:
        raise
    except (aiohttp.ClientError, OSError) as error:
        raise Dropped(type(error).__name__) from None


def _context() -> ssl.SSLContext:
    """The system's trusted certificates, or the bundle of certifi where nobody has set another: some systems have none
    in Python's own place."""
    if os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR"):
        return ssl.create_default_context()
    try:
        import certifi
    except ImportError:
        return ssl.create_default_context()
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context
