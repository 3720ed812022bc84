"""A model behind a provider's API: ``openai/<name>``, ``anthropic/<name>`` and the others of
:mod:`extractor.models.providers`.

Four things meet here, each in a place of its own: the *dialect* words an ask and reads a reply, the *wire* speaks the
provider's format, the *pace* holds all workers to one rate, and :mod:`extractor.models.transport` is the only retry
layer. The key is read when a client is made, handed to it, and kept nowhere else. SDKs are imported at first use, or by
:meth:`HostedModel.prepare`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from extractor import dialects, plugins
from extractor.errors import ConfigurationError, MissingExtra
from extractor.messages import Ask, Reply, Sampling, Unanswered, Usage
from extractor.models import tokens
from extractor.models.judging import Asked, judge, refused_parameter
from extractor.models.pace import Limits, Pace
from extractor.models.settings import Provider, Settings
from extractor.models.transport import Patience, Trouble, persist
from extractor.models.wires import Dropped, Sent, Wire, mapping
from extractor.prices import FREE

NIGHT = 12 * 3600.0
"""Seconds: how long a rate limit is waited out where nobody else can be asked."""

LEAST_ANSWER = 256
"""Tokens that an answer has to have room for."""

LEAST_READ = 0.75
"""Part of the pieces of a question that a server must report as read: below it, the server has cut the question."""

EXPECTED = 500
"""Tokens that an answer is thought to take until it says how many it took."""

LEAST_CONTEXT = 512
"""Tokens: no server reads less, so that a smaller report says nothing (some report a number that means nothing)."""


class HostedModel:
    """A model behind a provider's API; safe to use from any number of event loops, one after another or side by side.

    :param provider: who is asked.
    :param name: the model as the provider knows it; it may hold slashes of its own, and ``#`` with a dialect behind.
    :param settings: what the user says of it.
    :param patience: how long an ask goes on when the provider gives no answer.
    :raises ConfigurationError: the name is empty, or an address, a dialect or a setting is none.
    """

    def __init__(
        self, provider: Provider, name: str, settings: Settings | None = None, *, patience: Patience | None = None
    ) -> None:
        settings = settings or Settings()
        wire_name, _, dialect = name.partition("#")
        if not wire_name.strip():
            raise ConfigurationError("a hosted model needs a name", hint=f"write it as {provider.name}/NAME")
        self.name = f"{provider.name}/{name}"
        self.settings = settings
        self.workers = min(provider.workers, settings.concurrency or provider.workers)
        self.max_attempts = settings.max_attempts or 3
        self.policy = provider.policy
        self.price = FREE if provider.runs_here(settings) else None
        self._wire_name = wire_name
        self._dialect_name = dialect or settings.dialect or provider.dialect
        self._dialect = dialects.named(self._dialect_name)
        self._wire: Wire = plugins.attribute(provider.wire)(provider, wire_name, settings)
        self._patience = patience or Patience(limited=settings.patience or NIGHT)
        self._asked = Asked(
            self._wire.host,
            wire_name,
            provider.key_variable(settings),
            (provider.addresses or ("the endpoint",))[0],
            provider.name,
        )
        self._provider = provider
        self._pace = Pace(Limits(settings.rpm, settings.tpm, settings.concurrency))
        # Parameters that this model refused: dropped or renamed from then on.
        self._unfit: set[str] = set()
        # One client for each loop: a client's open connections belong to the loop that opened them.
        self._clients: dict[asyncio.AbstractEventLoop, tuple[Any, AsyncGenerator[None, None]]] = {}
        self._opening: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    def __repr__(self) -> str:
        wire = getattr(self, "_wire", None)  # one that could not be made is shown too
        return f"HostedModel({self.name!r}, host={wire.host if wire else None!r})"

    @property
    def identity(self) -> str:
        """Provider, model, host and dialect: what a request key needs to tell this model from others. Never the key."""
        return f"{self._provider.name}/{self._wire_name}@{self._wire.host}#{self._dialect_name}"

    def prepare(self) -> None:
        """Check what can be checked without a request, and import what asking needs.

        :raises ConfigurationError: the key is missing or cannot be a key.
        :raises MissingExtra: the provider's SDK is not installed.
        """
        try:
            self._wire.prepare()
        except (ConfigurationError, MissingExtra):
            raise
        except Exception as error:  # an SDK's own trouble in making a client, such as with a proxy that it cannot use
            raise self._no_client(error) from None

    def check(self) -> None:
        """Check what is needed when it comes to this model, without importing anything.

        :raises ConfigurationError: the key is missing or cannot be a key.
        """
        self._provider.secret(self.settings)

    def _no_client(self, error: Exception) -> ConfigurationError:
        what = f"a client for {self._wire.host} cannot be made ({type(error).__name__})"
        return ConfigurationError(what, hint="look at the proxy variables of the environment")

    async def ask(self, ask: Ask) -> Reply | Unanswered:
        """Put one ask to the model.

        :returns: the reply; or, as a value, why there is none. Nothing but cancellation is raised.
        """
        try:
            client = await self._client()
        except (ConfigurationError, MissingExtra) as error:
            return Unanswered("unauthorized", str(error), self.name)
        except Exception as error:
            return Unanswered("unauthorized", str(self._no_client(error)), self.name)
        worded = self._dialect.word(ask)
        context = self.settings.context
        if context:
            room = context - tokens.at_least(worded)
            if room < LEAST_ANSWER:
                cause = f"the question leaves no room for an answer in the {context:,} tokens of {self.name}"
                return Unanswered("too_long", cause, self.name)
            worded = replace(worded, sampling=_within(worded.sampling, room))

        lost = Usage()

        async def send() -> Reply | Unanswered | Trouble:
            nonlocal lost
            answer = await self._send(client, worded)
            lost += answer.usage if isinstance(answer, Trouble) else Usage()
            return answer

        expected = tokens.about(worded) + EXPECTED if self.settings.tpm else 0
        answer: Reply | Unanswered | Trouble = await persist(send, self._patience, self._pace, expected, _used)
        if isinstance(answer, Trouble):
            return Unanswered(answer.kind, answer.cause, self.name, lost)
        if isinstance(answer, Reply):
            answer = self._whole(replace(answer, model=self.name), ask, worded)
        # What answers without content have cost is paid as well.
        return replace(answer, model=self.name, usage=answer.usage + lost)

    async def aclose(self) -> None:
        """Close this loop's connections. A loop that ends by ``asyncio.run`` closes them by itself."""
        held = self._clients.get(asyncio.get_running_loop())
        if held is not None:
            await held[1].aclose()

    def _whole(self, reply: Reply, ask: Ask, worded: Ask) -> Reply | Unanswered:
        """The reply as the dialect reads it, unless the server has cut the question without a word."""
        read = reply.usage.input_tokens
        sent = tokens.at_least(worded) if read >= LEAST_CONTEXT else 0
        if read < LEAST_READ * sent:
            cause = f"{self._wire.host} read {read:,} tokens of a question of more than {sent:,}; raise its context"
            return Unanswered("too_long", cause, self.name, reply.usage)
        return self._dialect.read(reply, ask)

    async def _client(self) -> Any:
        loop = asyncio.get_running_loop()
        held = self._clients.get(loop)
        if held is None:
            for ended in [known for known in self._clients if known.is_closed()]:
                self._clients.pop(ended, None)
            async with self._opening.setdefault(loop, asyncio.Lock()):  # some clients take a while to be made
                held = self._clients.get(loop)
                if held is None:
                    client = await self._wire.open()
                    held = self._clients[loop] = (client, self._keep(loop, client))
                    await anext(held[1])
        return held[0]

    async def _keep(self, loop: asyncio.AbstractEventLoop, client: Any) -> AsyncGenerator[None, None]:
        """Hold a client until its loop ends: ``asyncio.run`` closes the generators of its loop before the loop itself,
        which is the one moment at which connections that nobody closed can still be closed."""
        try:
            yield
        finally:
            self._clients.pop(loop, None)
            await self._wire.close(client)

    async def _send(self, client: Any, ask: Ask) -> Reply | Unanswered | Trouble:
        """Make one request; another one at once when a parameter was refused that the request can do without."""
        host = self._wire.host
        while True:
            unfit = frozenset(self._unfit)
            try:
                async with asyncio.timeout(self.settings.timeout):
                    sent = await self._wire.send(client, self._wire.word(ask, unfit))
            except TimeoutError:
                return Trouble("timeout", f"{host} did not answer within {self.settings.timeout:.0f} s")
            except Dropped as error:
                return Trouble("unavailable", f"no connection to {host} ({error})")
            except Exception as error:
                # A value, as for any other end; the class alone, since the text may hold what was sent.
                cause = f"the request to {host} could not be made ({type(error).__name__})"
                return Trouble("unavailable", cause, passing=False)
            self._pace.heed(sent.headers)
            body = _json(sent)
            refused = refused_parameter(sent.status, body)
            if not refused or refused in unfit:
                return self._read(sent, body)
            self._unfit.add(refused)

    def _read(self, sent: Sent, body: Any) -> Reply | Unanswered | Trouble:
        if not 200 <= sent.status < 300:
            return judge(sent.status, body, sent.headers, self._asked)
        if not isinstance(body, Mapping):
            return Trouble(
                "unavailable", f"{self._wire.host} answered {sent.status} with a body that is no JSON object"
            )
        choices = body.get("choices")
        choice = mapping(choices[0]) if isinstance(choices, list) and choices else {}
        problem = choice.get("error") or body.get("error")
        if isinstance(problem, Mapping):
            # Routers in front of several providers pass an error on with status 200 and its own status as code.
            code = problem.get("code")
            status = code if isinstance(code, int) and 400 <= code < 600 else 502
            return judge(status, problem, sent.headers, self._asked)
        return self._wire.read(body)


def _within(sampling: Sampling, room: int) -> Sampling:
    """The sampling with an answer that fits into what the question leaves of the context."""
    return replace(sampling, max_tokens=min(sampling.max_tokens, room))


def _used(answer: Reply | Unanswered | Trouble) -> int:
    return 0 if isinstance(answer, Trouble) else answer.usage.input_tokens + answer.usage.output_tokens


def _json(sent: Sent) -> Any:
    """The body as JSON; ``None`` for what is none."""
    if isinstance(sent.body, Mapping):
        return sent.body
    try:
        return json.loads(sent.body)
    except (ValueError, RecursionError):
        return None


__all__ = ["HostedModel"]
