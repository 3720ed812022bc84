"""What a run has spent, and what it may.

Before a question is put, the most that it can cost is set aside: an upper bound of its tokens, and an answer as long as
its cap allows. Where that does not fit beside what is spent and set aside already, the question waits until what is in
flight has ended; where nothing is in flight any more, the run is stopped and the document is left for a later one. So a
limit is never passed, whatever the number of workers.
"""

from __future__ import annotations

import asyncio
import json
import string
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from extractor.engines.local import LeftForLater
from extractor.messages import Ask, Reply, Unanswered, Usage
from extractor.prices import Tariff, dollars

A_QUESTION = 600
"""Tokens that providers and dialects add to a question of their own: how calls are written, how answers are framed."""
A_MESSAGE = 16
AN_IMAGE = 5000

_SHORT = (string.ascii_lowercase + " \t\r\n").encode()
"""Bytes of which two or more make a token in every tokenizer; others may be one each: digits, marks, capitals."""


def at_most(ask: Ask) -> Usage:
    """More tokens than an ask can come to, without a tokenizer.

    Small letters and blanks of ASCII are counted by half, everything else byte by byte. With a tokenizer that makes a
    token of each digit, invoices come to 1.4 to 2.7 times of what they are, and no text that we tried to less than it
    is. What turns out dearer all the same is charged as it is.
    """
    shown = [offer.name + offer.description + json.dumps(offer.parameters, default=dict) for offer in ask.offers]
    tokens, images = A_QUESTION, 0
    for message in ask.messages:
        tokens += A_MESSAGE * (1 + len(message.tool_results) + len(message.tool_calls))
        images += len(message.images)
        shown += [message.content, *(result.content for result in message.tool_results)]
        shown += [call.name + _text(call.arguments) for call in message.tool_calls]
    data = "".join(shown).encode("utf-8", "surrogatepass")
    other = len(data.translate(None, _SHORT))
    return Usage(tokens + AN_IMAGE * images + other + (len(data) - other) // 2, ask.sampling.max_tokens)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may cost at the most: US dollars, tokens in and out together."""

    cost: Decimal | None = None
    tokens: int | None = None

    def __bool__(self) -> bool:
        return self.cost is not None or self.tokens is not None


class Account:
    """The sums of a run's live asks, by which its limits are kept. Belongs to the event loop of its run.

    :param tariffs: the price of each rank's model.
    :param limits: what the run may cost.
    :param stop: told why, when a limit is reached.
    """

    def __init__(
        self, tariffs: Sequence[Tariff], limits: Limits | None = None, stop: Callable[[str], None] = lambda _: None
    ) -> None:
        self.asks = 0
        self.usage = Usage()
        self.cost = Decimal(0)
        self.unpriced = 0
        """Asks whose price is not known; :attr:`cost` is the sum of the others."""
        self.tariffs = tuple(tariffs)
        self._limits = limits or Limits()
        self._stop = stop
        self._is_reached = False
        self._spent, self._held, self._in_flight = _Sum(), _Sum(), 0
        self._waiting: list[asyncio.Future[None]] = []

    async def put(
        self, ask: Ask, put: Callable[[Ask], Awaitable[Reply | Unanswered]]
    ) -> tuple[Reply | Unanswered, Decimal | None]:
        """Put a question when there is money for it; the answer, and what it cost.

        :raises LeftForLater: when there is not, and nothing in flight could leave any.
        """
        tariff = self.tariffs[ask.rank]
        worst = at_most(ask) if self._limits else Usage()
        held = _Sum(worst.input_tokens + worst.output_tokens, tariff.of(worst) or Decimal(0))
        if self._limits:
            await self._admit(held)
        answer: Reply | Unanswered | None = None
        cost: Decimal | None = None
        try:
            answer = await put(ask)
        finally:
            self._release(held)
            if answer is not None:
                cost = self._charge(answer, tariff, held)
            self._wake()
        return answer, cost

    async def _admit(self, wanted: _Sum) -> None:
        while self._is_reached or not self._fits(wanted):
            if self._is_reached or not self._in_flight:
                self._reach(wanted)
                raise LeftForLater
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        self._held += wanted
        self._in_flight += 1

    def _fits(self, wanted: _Sum) -> bool:
        then = self._spent + self._held + wanted
        limits = self._limits
        return (limits.cost is None or then.cost <= limits.cost) and (
            limits.tokens is None or then.tokens <= limits.tokens
        )

    def _reach(self, wanted: _Sum) -> None:
        if not self._is_reached:
            self._is_reached = True
            self._stop(self._reason(wanted))
            self._wake()

    def _reason(self, wanted: _Sum) -> str:
        limits, spent = self._limits, self._spent
        if limits.cost is not None and spent.cost + wanted.cost > limits.cost:
            limit, used, more = dollars(limits.cost), dollars(spent.cost), dollars(wanted.cost)
        else:
            limit, used, more = f"{limits.tokens:,} tokens", f"{spent.tokens:,}", f"{wanted.tokens:,}"
        return f"the budget of {limit} is reached (spent {used}, the next question may take {more})"

    def _release(self, held: _Sum) -> None:
        if self._limits:
            self._held -= held
            self._in_flight -= 1

    def _charge(self, answer: Reply | Unanswered, tariff: Tariff, held: _Sum) -> Decimal | None:
        """Count one ask; an answer without a word about its tokens counts as all that was set aside for it."""
        usage = answer.usage
        is_told = isinstance(answer, Unanswered) or bool(usage.input_tokens or usage.output_tokens)
        cost = tariff.of(usage) if is_told or tariff.is_free else None
        self.asks += 1
        self.usage += usage
        self.unpriced += cost is None
        self.cost += cost or 0
        self._spent += _Sum(usage.input_tokens + usage.output_tokens, cost or Decimal(0)) if is_told else held
        return cost

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for turn in waiting:
            if not turn.done():
                turn.set_result(None)


@dataclass(frozen=True, slots=True)
class _Sum:
    tokens: int = 0
    cost: Decimal = Decimal(0)

    def __add__(self, other: _Sum) -> _Sum:
        return _Sum(self.tokens + other.tokens, self.cost + other.cost)

    def __sub__(self, other: _Sum) -> _Sum:
        return _Sum(self.tokens - other.tokens, self.cost - other.cost)


def _text(arguments: object) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, default=dict)


__all__ = ["Account", "Limits", "at_most"]
