"""The providers, and what is known of each. A name below is what stands before the slash in a model's name.

Whoever speaks OpenAI's chat completions is one row of a table; the others have a wire of their own. Facts are from the
providers' public API references.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping

from extractor.models.hosted import HostedModel
from extractor.models.settings import Provider, Settings


def _local(name: str, port: int, variable: str, policy: str = "small", workers: int = 4) -> Provider:
    """A server that people run themselves: no key, and answers held to a schema rather than calls."""
    return Provider(
        name=name, base_url=f"http://localhost:{port}/v1", addresses=(f"{variable}_BASE_URL",),
        keys=(f"{variable}_API_KEY",), needs_key=False, strict=True, dialect="json_schema", policy=policy,
        workers=workers,
    )  # fmt: skip


_ROWS: tuple[Provider, ...] = (
    Provider(
        name="openai", base_url="https://api.openai.com/v1", addresses=("OPENAI_BASE_URL",),
        keys=("OPENAI_API_KEY",), strict=True,
    ),
    Provider(
        name="openai-responses", wire="extractor.models.wires.responses:ResponsesWire",
        base_url="https://api.openai.com/v1", addresses=("OPENAI_BASE_URL",), keys=("OPENAI_API_KEY",), strict=True,
    ),
    Provider(
        name="azure", addresses=("AZURE_OPENAI_ENDPOINT",), keys=("AZURE_OPENAI_API_KEY",), strict=True,
    ),
    Provider(
        name="anthropic", wire="extractor.models.wires.anthropic:AnthropicWire", base_url="https://api.anthropic.com",
        addresses=("ANTHROPIC_BASE_URL",), keys=("ANTHROPIC_API_KEY",), strict=True,
        extra="anthropic",
    ),
    Provider(
        name="google", wire="extractor.models.wires.gemini:GeminiWire",
        base_url="https://generativelanguage.googleapis.com", addresses=("GOOGLE_GEMINI_BASE_URL",),
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"), extra="google",
    ),
    Provider(
        name="bedrock", wire="extractor.models.wires.bedrock:BedrockWire",
        addresses=("AWS_ENDPOINT_URL_BEDROCK_RUNTIME",), keys=("AWS_BEARER_TOKEN_BEDROCK",), needs_key=False,
        extra="bedrock",
    ),
    Provider(
        name="mistral", base_url="https://api.mistral.ai/v1", addresses=("MISTRAL_BASE_URL",),
        keys=("MISTRAL_API_KEY",), forced="any",
    ),
    Provider(
        name="groq", base_url="https://api.groq.com/openai/v1", addresses=("GROQ_BASE_URL",), keys=("GROQ_API_KEY",),
    ),
    Provider(
        name="together", base_url="https://api.together.xyz/v1", addresses=("TOGETHER_BASE_URL",),
        keys=("TOGETHER_API_KEY",), parallel=False,
    ),
    Provider(
        name="fireworks", base_url="https://api.fireworks.ai/inference/v1", addresses=("FIREWORKS_BASE_URL",),
        keys=("FIREWORKS_API_KEY",), parallel=False,
    ),
    Provider(
        name="deepseek", base_url="https://api.deepseek.com/v1", addresses=("DEEPSEEK_BASE_URL",),
        keys=("DEEPSEEK_API_KEY",), parallel=False,
    ),
    Provider(
        name="openrouter", base_url="https://openrouter.ai/api/v1", addresses=("OPENROUTER_BASE_URL",),
        keys=("OPENROUTER_API_KEY",), strict=True,
    ),
    Provider(name="xai", base_url="https://api.x.ai/v1", addresses=("XAI_BASE_URL",), keys=("XAI_API_KEY",)),
    _local("ollama", 11434, "OLLAMA"),
    _local("vllm", 8000, "VLLM", policy="strong", workers=16),
    _local("lmstudio", 1234, "LMSTUDIO"),
    _local("llamacpp", 8080, "LLAMACPP"),
)  # fmt: skip

MOST = 64
"""Models of a provider that are remembered."""

PROVIDERS: Mapping[str, Provider] = {row.name: row for row in _ROWS}


def _sealed(variable: str) -> bytes:
    """What an environment variable holds, so that it can be compared and not read: it may be a key."""
    return hashlib.blake2b(os.environ.get(variable, "").encode("utf-8", "surrogateescape"), key=_SEAL).digest()


_SEAL = os.urandom(32)


class Factory:
    """Makes the models of one provider; what a plugin entry names."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self._made: dict[tuple[object, ...], HostedModel] = {}

    def __call__(self, name: str, settings: Settings | None = None) -> HostedModel:
        """The model of that name: the same object for the same settings and environment, so that its connections and
        what it has learnt of the provider's limits serve every call of a process.

        :raises ConfigurationError: when the name or a setting is none.
        """
        settings = settings or Settings()
        variables = (*self.provider.addresses, *self.provider.keys, settings.key or "")
        key = (os.getpid(), name, settings.as_key, *map(_sealed, variables))
        if key not in self._made:
            if len(self._made) >= MOST:
                self._made.clear()
            self._made[key] = HostedModel(self.provider, name, settings)
        return self._made[key]


FACTORIES: Mapping[str, Factory] = {name: Factory(provider) for name, provider in PROVIDERS.items()}
