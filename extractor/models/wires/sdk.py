"""Chat completions through OpenAI's SDK, by instructor's client: for those who need what the SDK can do beside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from extractor.models.settings import Provider, Settings
from extractor.models.wires import Dropped, Sent

if TYPE_CHECKING:
    from openai import AsyncOpenAI


class SdkSender:
    """Requests by the SDK, with its retries off."""

    def __init__(self, provider: Provider, model: str, settings: Settings, base_url: str) -> None:
        self._provider = provider
        self._model = model
        self._settings = settings
        self._base_url = base_url

    def prepare(self) -> None:
        """Make a client and throw it away: that imports what a first ask would wait for, over a second in the run."""
        _ = self._client().chat.completions

    async def open(self) -> AsyncOpenAI:
        """A client for the running event loop."""
        return self._client()

    async def close(self, client: AsyncOpenAI) -> None:
        """Close its connections."""
        await client.close()

    async def send(self, client: AsyncOpenAI, request: dict[str, Any]) -> Sent:
        """Make one request."""
        import openai

        return await raw(client.chat.completions.with_raw_response.create(**request), openai)

    def _client(self) -> AsyncOpenAI:
        import instructor
        from openai import Timeout

        timeout = self._settings.timeout
        key = self._provider.secret(self._settings) or "none"
        client: AsyncOpenAI | None = instructor.from_provider(
            f"openai/{self._model}",
            async_client=True,
            api_key=key,
            base_url=self._base_url,
            max_retries=0,
            timeout=Timeout(timeout, connect=min(timeout, 20.0)),
            default_headers={**({"api-key": key} if self._provider.name == "azure" else {}), **self._settings.headers},
        ).client
        assert client is not None
        return client


async def raw(request: Any, sdk: Any) -> Sent:
    """The answer to a request of an SDK, whatever its status.

    :param sdk: the SDK's module; those of one maker's generator name their exceptions alike.
    :raises Dropped: when there is no connection, or it ended early.
    :raises TimeoutError: when the SDK gave it up.
    """
    try:
        sent = await request
    except sdk.APITimeoutError:
        raise TimeoutError from None
    except sdk.APIStatusError as error:
        return Sent(error.status_code, error.response.headers, error.response.content)
    except sdk.APIConnectionError as error:
        raise Dropped(type(error.__cause__).__name__) from None
    return Sent(sent.http_response.status_code, sent.headers, sent.http_response.content)
