"""Calls: from what a model sent to one result each.

``decode ▸ repair ▸ check keys ▸ validate ▸ run``. The first four are :func:`prepare`, the last is :func:`invoke`;
:func:`perform` does both for all calls of a reply at once. Whatever a model sends comes to a result, never to an
exception.

Numbers with a fraction are decoded as :class:`~decimal.Decimal`, so that no digit is lost on the way to a validator; in
:attr:`~extractor.messages.ToolResult.arguments`, which have to be JSON, they stand as their text, as they were printed.
"""

from __future__ import annotations

import asyncio
import inspect
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Any

from pydantic import ValidationError

from extractor import feedback
from extractor.coercion import Unusable, broken_text, decode, echoes_schema, repair
from extractor.errors import Rejected
from extractor.evidence.policy import Examine
from extractor.evidence.values import Evidence
from extractor.feedback import Problem
from extractor.functions import Context, Function, itself
from extractor.messages import ToolCall, ToolResult, Verdict
from extractor.parameters import is_path, undeclared
from extractor.threads import Caught, in_own_thread

SUCCESS = "SUCCESS"
"""What a model reads when a function returned an object, or nothing."""

AT_ONCE = 32
"""Calls of one reply that run at the same time."""

LONG = 20_000
"""Letters of a document that is searched in a thread, so that no other waits for it."""

_MOST_BODIES = 1024

MOST_FLAGS = 20
"""Remarks about ignored arguments that one call may make."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call whose arguments are valid: ``value`` is ready for the body, ``arguments`` are as JSON has them."""

    call: ToolCall
    function: Function
    value: Any
    context: Context
    arguments: Mapping[str, Any]
    flags: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()


async def perform(
    calls: Sequence[ToolCall],
    functions: Mapping[str, Function],
    context: Context,
    validation: Mapping[str, Any],
    examine: Examine | None = None,
) -> tuple[ToolResult, ...]:
    """Run the calls of one reply, all at once; one result each, in call order.

    Plain functions run in threads, so that the event loop is not held up, and see the caller's context variables.

    :param functions: on offer, by name.
    :param context: for functions that ask for one; each gets it with its own ``call_id``.
    :param validation: for validators, as pydantic's ``ValidationInfo.context``. Each call gets its own copy, with a
        list ``flags`` for remarks to people, and ``style``. ``text`` is the document's text, where there is one.
    :param examine: looks for the valid values in the document, before the function runs.
    """
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(call: ToolCall) -> ToolResult:
        function = functions.get(call.name)
        if function is None:
            return _rejected(call, feedback.unknown_function(call.name, tuple(functions)))
        prepared = prepare(call, function, context, validation)
        if isinstance(prepared, Prepared) and examine is not None:
            is_long = len(str(validation.get("text", ""))) > LONG
            prepared = (
                await asyncio.to_thread(_examined, prepared, examine) if is_long else _examined(prepared, examine)
            )
        if isinstance(prepared, ToolResult):
            return prepared
        async with gate:
            return await invoke(prepared)

    if len(calls) == 1 and not _has_async_body(functions.get(calls[0].name)):
        return (await one(calls[0]),)  # no task of its own: a plain function sees its thread's copy of the context
    return tuple(await asyncio.gather(*map(one, calls)))


def _has_async_body(function: Function | None) -> bool:
    return function is not None and _is_async(function.body)


# -- decode, repair, validate ------------------------------------------------------------------------------------------


def prepare(
    call: ToolCall, function: Function, context: Context, validation: Mapping[str, Any]
) -> Prepared | ToolResult:
    """Make a call's arguments ready for the body, or say in a result everything that is wrong with them."""
    try:
        sent = decode(call.arguments)
    except Unusable as error:
        return _rejected(call, feedback.unusable(error.kind, str(error)))
    if echoes_schema(sent, function.parameters):
        return _rejected(call, feedback.echoed(tuple(function.parameters.get("properties", {}))), _storable(sent))
    try:
        return _validated(call, function, sent, replace(context, call_id=call.id, remarks=[]), validation)
    except Rejected as error:
        return _mend(call, function, error.reasons, _storable(sent))
    except Exception as error:  # a bug in a user's validator
        return _failed(call, error, _storable(sent))


def _validated(
    call: ToolCall, function: Function, sent: dict[str, Any], context: Context, validation: Mapping[str, Any]
) -> Prepared | ToolResult:
    text = str(validation.get("text") or "")
    arguments, remarks = repair(sent, function.parameters, text)
    found = _check(call, function, arguments, context, validation)
    if not isinstance(found, Prepared) and text:
        # "N/A" was kept since the document prints it as a value: where it is no valid one, it is null after all
        nulled, _ = repair(sent, function.parameters)
        again = _check(call, function, nulled, context, validation) if nulled != arguments else found
        found = again if isinstance(again, Prepared) else found
    if isinstance(found, Prepared):
        flags = tuple(dict.fromkeys((*remarks, *found.flags)))
        return found if flags == found.flags else replace(found, flags=flags)
    return _refused(call, function, arguments, found)


def _check(
    call: ToolCall, function: Function, arguments: dict[str, Any], context: Context, validation: Mapping[str, Any]
) -> Prepared | list[Problem]:
    """Keys, texts and values, all at once."""
    flags: list[Any] = []
    broken = () if _is_plain(call.arguments) else broken_text(arguments)
    problems = [Problem(path, "holds characters that are no valid text") for path in broken]
    foreign = tuple(undeclared(arguments, function.parameters, function.parameters))
    if function.strict:
        problems += [Problem(path, feedback.FOREIGN) for path in foreign]
    try:
        value = function.validate(arguments, {"style": context.style, **validation, "flags": flags})
    except ValidationError as error:
        problems += feedback.problems(error, arguments, function.parameters.get("properties", ()))
    if problems:
        return problems
    said = (*map(str, flags), *_ignored(function, foreign))
    return Prepared(call, function, value, context, _storable(arguments), said)


def _examined(prepared: Prepared, examine: Examine) -> Prepared | ToolResult:
    """A valid call with where its values stand; sent back where one has to stand in the document and does not."""
    found = examine(prepared.arguments, prepared.value, prepared.function.parameters)
    if found.problems:
        return _refused(prepared.call, prepared.function, dict(prepared.arguments), found.problems)
    return replace(prepared, flags=(*prepared.flags, *found.flags), evidence=found.evidence)


def _refused(call: ToolCall, function: Function, arguments: dict[str, Any], found: Sequence[Problem]) -> ToolResult:
    """Wrong names in a form of their own, everything else by its path."""
    schema = function.parameters
    accepted = tuple(schema.get("properties", {}))
    missing = [p.path for p in found if p.message == feedback.REQUIRED and p.path in accepted]
    foreign = [p.path for p in found if p.message == feedback.FOREIGN and p.path in arguments]
    parts = []
    if missing or foreign:
        unrecognised = [key for key in arguments if key not in accepted]
        given = [key for key in arguments if key in accepted]
        names = feedback.Names(schema.get("required", ()), missing, unrecognised, given, accepted)
        parts.append(feedback.argument_errors(names))
    rest = [p for p in found if p.path not in missing and p.path not in foreign]
    text = "; ".join(parts + ([feedback.as_text(rest)] if rest else []))
    paths = (*missing, *(p.path for p in rest if p.path and is_path(p.path, schema)))
    return _rejected(call, text, _storable(arguments), paths)


def _ignored(function: Function, foreign: Sequence[str]) -> tuple[str, ...]:
    named = (feedback.clean(path[:100]) for path in foreign[:MOST_FLAGS])
    return tuple(f"{function.name}: {path} is no argument and was ignored" for path in named)


def _is_plain(arguments: object) -> bool:
    """Whether arguments are text that can hold no halves of characters: it has no other letters and no escapes."""
    return isinstance(arguments, str) and arguments.isascii() and "\\u" not in arguments


_AS_THEY_ARE = frozenset((bool, int, float, type(None)))


def _storable(value: Any) -> Any:
    """Arguments as JSON has them: fractions as their text, and no text that cannot be stored."""
    if type(value) is str:  # the most there are
        return value if value.isascii() and "\0" not in value else feedback.clean(value)
    if isinstance(value, (dict, Mapping)):
        return {
            _storable(str(key)): item if type(item) in _AS_THEY_ARE else _storable(item) for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_storable(item) for item in value]
    if isinstance(value, (Decimal, str)):
        return feedback.clean(str(value))
    return value if value is None or isinstance(value, (bool, int, float)) else feedback.clean(str(value))


# -- run ---------------------------------------------------------------------------------------------------------------


class _TimedOut(Exception):
    """The function took longer than it may."""


async def invoke(prepared: Prepared) -> ToolResult:
    """Run the body of a prepared call.

    :class:`~extractor.errors.Rejected`, and a model of the body's own that does not validate, send the model back with
    the reasons; so does running out of time. Any other exception is a bug: ``FAILED``, and nothing of it is told.
    """
    call, function = prepared.call, prepared.function
    try:
        return _accepted(prepared, await _run(prepared))
    except _TimedOut:
        return _rejected(call, f"timed out after {function.timeout:g} s", prepared.arguments, flags=prepared.flags)
    except Rejected as error:
        return _mend(call, function, error.reasons, prepared.arguments, prepared.flags)
    except ValidationError as error:
        found = feedback.problems(error)
        paths = tuple(p.path for p in found if p.path and is_path(p.path, function.parameters))
        return _rejected(call, feedback.as_text(found), prepared.arguments, paths, prepared.flags)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return _failed(call, error, prepared.arguments, prepared.flags)  # the body's own, nobody asked for it
    except (Exception, SystemExit) as error:
        return _failed(call, error, prepared.arguments, prepared.flags)


async def _run(prepared: Prepared) -> Any:
    function = prepared.function
    if function.body is itself:
        return prepared.value
    work = partial(function.call, prepared.value, prepared.context)
    if function.timeout is None:
        value = work() if _is_async(function.body) else await _in_thread(work, function)
        return await value if inspect.isawaitable(value) else value
    try:
        async with asyncio.timeout(function.timeout) as limit:
            value = work() if _is_async(function.body) else await _in_thread(work, function)
            return await value if inspect.isawaitable(value) else value
    except TimeoutError:
        if limit.expired():
            raise _TimedOut from None
        raise


_ASYNC: dict[int, tuple[Callable[..., Any], bool]] = {}


def _is_async(body: Callable[..., Any]) -> bool:
    """Whether a body is awaited; found out once for each body (which is held, so that its identity is its own)."""
    known = _ASYNC.get(id(body))
    if known is None:
        if len(_ASYNC) >= _MOST_BODIES:
            _ASYNC.clear()
        found = inspect.iscoroutinefunction(body) or inspect.iscoroutinefunction(type(body).__call__)
        known = _ASYNC[id(body)] = (body, found)
    return known[1]


async def _in_thread(work: Callable[[], Any], function: Function) -> Any:
    if function.timeout is not None:  # time is counted from its start, and a hung one does not keep us from leaving
        return await in_own_thread(work, f"extractor-{function.name}")
    return (await asyncio.to_thread(Caught.of, work)).result()


# -- results -----------------------------------------------------------------------------------------------------------


def _accepted(prepared: Prepared, value: Any) -> ToolResult:
    """What a function returned, by the contract: text, (text, object), object, nothing, or a ready result."""
    call, flags = prepared.call, (*prepared.flags, *prepared.context.remarks)
    if isinstance(value, ToolResult):
        arguments = prepared.arguments if value.arguments is None else value.arguments
        return replace(
            value, call_id=call.id, name=call.name, arguments=arguments, flags=(*flags, *value.flags),
            evidence=prepared.evidence,
        )  # fmt: skip
    content, native = SUCCESS, value
    if isinstance(value, str):
        content, native = value, None
    elif type(value) is tuple and len(value) == 2 and isinstance(value[0], str):
        content, native = value
    return ToolResult(
        call.id, call.name, feedback.clean(content), processed_content=native, arguments=prepared.arguments,
        flags=flags, evidence=prepared.evidence,
    )  # fmt: skip


def _mend(
    call: ToolCall, function: Function, reasons: Sequence[str], arguments: Any, flags: tuple[str, ...] = ()
) -> ToolResult:
    """The user's own function sent the model back."""
    told = [str(reason) for reason in reasons]
    heads = (reason.partition(": ")[0] for reason in told if ": " in reason)
    paths = tuple(head for head in heads if is_path(head, function.parameters))
    return _rejected(call, feedback.clean("; ".join(told)), arguments, paths, flags)


def _rejected(
    call: ToolCall, text: str, arguments: Any = None, paths: Sequence[str] = (), flags: tuple[str, ...] = ()
) -> ToolResult:
    unique = tuple(dict.fromkeys(paths))
    return ToolResult(call.id, call.name, text, Verdict.REJECTED, arguments=arguments, paths=unique, flags=flags)


def _failed(call: ToolCall, error: BaseException, arguments: Any = None, flags: tuple[str, ...] = ()) -> ToolResult:
    """A bug in the user's code: people get the traceback, the model nothing of it."""
    cause = "".join(traceback.format_exception(error))
    return ToolResult(
        call.id, call.name, "the function failed", Verdict.FAILED, arguments=arguments, flags=flags, cause=cause
    )
