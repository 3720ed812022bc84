"""Models that run on this machine: ``local/<name of the catalogue>``, or any GGUF file by ``local:PATH``.

Answers are held to a JSON schema (:mod:`extractor.dialects.json_schema`); a server of llama.cpp does not hold one to a
tool call.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import http.client
import json
import logging
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from extractor.dialects import json_schema
from extractor.errors import ConfigurationError
from extractor.messages import Ask, FinishReason, Reply, Unanswered, Usage
from extractor.models import weights
from extractor.models.catalogue import entry
from extractor.models.local_process import CONTEXT, Server, server_for

ANSWER_SECONDS = 1800.0
"""How long one answer may take: on a busy machine a long one takes minutes."""

LONGEST_ANSWER = 3072
"""Tokens. A small model that has begun to repeat itself does not stop by itself, and on a laptop that takes minutes: it
gets half of what a hosted one may write, and never more than this."""

FILE = "local:"

_CONTROL = re.compile(r"<(?=\||/?s>|[be]os>|(?:start|end)_of_turn>)|\[(?=/?INST\])")
"""Where a chat's own marks begin (``<|im_end|>`` and the like). The server reads them as such in a document too."""

say: Callable[[str], None] = logging.getLogger("extractor.models").warning
show: Callable[[int, int], None] | None = None
"""Told of a pull at first use; the command line puts its own progress bar here."""


def model(name: str) -> LocalModel:
    """The model of that name of the catalogue, or the file of ``local:PATH``.

    :raises ConfigurationError: when the catalogue has no such name, or there is no such file.
    """
    return LocalModel(name)


class LocalModel:
    """A model on this machine; all objects of one file share one server."""

    workers = 1
    """Documents in flight: the server answers one question at a time, and a second worker would only wait."""

    max_attempts = 2
    """A small model that was shown its error is seldom right the third time."""

    policy = "small"

    def __init__(self, name: str) -> None:
        self._file: Path | None = None
        if name.startswith(FILE):
            self._file = Path(name.removeprefix(FILE)).expanduser().absolute()
            if not self._file.is_file():
                raise ConfigurationError(f"there is no model file {str(self._file)!r}")
            self.name = name
        else:
            entry(name)
            self.name = f"local/{name}"

    def __repr__(self) -> str:
        return f"LocalModel({self.name!r})"

    @property
    def identity(self) -> str:
        """The hash of the weights, and the dialect."""
        return f"gguf:{self._digest()}#json_schema"

    def prepare(self) -> None:
        """Have the weights, and the server that has loaded them.

        :raises WeightsError: when the weights cannot be had.
        :raises MissingExtra: when llama.cpp is not installed.
        :raises ModelError: when the file cannot be loaded.
        """
        self._server()

    async def ask(self, ask: Ask) -> Reply | Unanswered:
        """Put a question to the server of this model."""
        worded = json_schema.word(ask)
        payload = {
            "messages": [{"role": one.role, "content": _plain(one.content)} for one in worded.messages],
            "temperature": ask.sampling.temperature,
            "max_tokens": max(1, min(ask.sampling.max_tokens // 2, LONGEST_ANSWER)),
            "seed": ask.sampling.sample,
            "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": worded.schema}},
        }
        for _ in range(2):  # a server that died is started once more
            server = await asyncio.to_thread(self._server)
            answer = await self._post(server, payload)
            if isinstance(answer, Unanswered):
                return answer
            if answer is not None:
                return self._read(answer, ask)
            await asyncio.to_thread(server.has_ended, 2.0)
        return Unanswered("unavailable", "the local server does not answer", self.name)

    async def aclose(self) -> None:
        """Nothing is held by an event loop; the server ends with the process."""

    def _server(self) -> Server:
        return server_for(self._path())

    def _path(self) -> Path:
        if self._file is None:  # found once: where the folder is read-only, to look is to hash a gigabyte
            name = self.name.removeprefix("local/")
            self._file = weights.path_of(name) or weights.pull(name, say=say, show=show)
        return self._file

    def _digest(self) -> str:
        if self.name.startswith(FILE):
            return _digest(self._path())
        return entry(self.name.removeprefix("local/")).sha256

    async def _post(self, server: Server, payload: dict[str, Any]) -> tuple[int, dict[str, Any]] | Unanswered | None:
        """The server's answer, or ``None`` when there is none; cancelling closes the connection."""
        connection = server.connect(ANSWER_SECONDS)
        try:
            return await asyncio.to_thread(_exchange, connection, server.key, payload)
        except TimeoutError:
            return Unanswered("timeout", f"no answer of the local server in {ANSWER_SECONDS:.0f} s", self.name)
        except asyncio.CancelledError:
            if connection.sock is not None:
                with contextlib.suppress(OSError):
                    connection.sock.shutdown(socket.SHUT_RDWR)
            raise

    def _read(self, answer: tuple[int, dict[str, Any]], ask: Ask) -> Reply | Unanswered:
        status, body = answer
        if status != 200:
            return self._refusal(status, body)
        used = body.get("usage") or {}
        cached = (used.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
        usage = Usage(used.get("prompt_tokens", 0), used.get("completion_tokens", 0), cached)
        choice = body["choices"][0]
        text = choice["message"].get("content") or ""
        reason: FinishReason = "length" if choice.get("finish_reason") == "length" else "stop"
        return json_schema.read(Reply(text, (), reason, usage, self.name), ask)

    def _refusal(self, status: int, body: dict[str, Any]) -> Unanswered:
        """A question that is too long is about one document, a schema about all; anything else is about the server."""
        error = body.get("error") or {}
        if error.get("type") == "exceed_context_size_error":
            tokens = error.get("n_prompt_tokens")
            most = error.get("n_ctx") or CONTEXT  # a model may have been made for less
            size = f"has about {tokens} tokens" if tokens else "is too long"
            cause = f"the document {size}; {self.name} reads at most {most}, question and answer together"
            return Unanswered("refused", cause, self.name)
        _, found, fault = str(error.get("message", "")).partition("JSON schema error")
        if found:
            return Unanswered("bad_request", f"llama.cpp does not take the schema{fault[:200]}", self.name)
        return Unanswered("unavailable", f"the local server answers {status}", self.name)


def _exchange(
    connection: http.client.HTTPConnection, key: str, payload: dict[str, Any]
) -> tuple[int, dict[str, Any]] | None:
    """:raises TimeoutError: when there is no answer in time."""
    body = json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace")  # half a surrogate pair is no JSON
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    try:
        connection.request("POST", "/v1/chat/completions", body, headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    except TimeoutError:
        raise
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()


def _plain(text: str) -> str:
    """The text with a blank in each mark by which it would end its turn and speak for someone else."""
    return _CONTROL.sub(lambda mark: f"{mark[0]} ", text)


@functools.lru_cache(maxsize=16)
def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
