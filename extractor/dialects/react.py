"""ReAct: Thought, Action, Action Input, Observation, Final Answer, for models that reason in plain text.

An action is a call, and ``Action`` comes from the closed list of functions; a name that is not in it is a call all the
same, so that the model is told which there are. Observations are always the host's: they are how results are worded,
and a reply is read only up to the first one that the model invents. Where more actions follow an invented observation,
the reply counts as cut off there (``finish_reason`` ``length``): they are not run, and not lost either, since what is
missing of such a reply is asked for again. The loop ends once everything in a reply is accepted, so the model is asked
for the actions of all records in one answer, and several are read.

A reply has actions or a final answer; with neither it has no calls, which the loop feeds back as an error of form. A
final answer that holds records is read as :mod:`extractor.dialects.json` would read it. One that holds none says that
there is nothing to extract, but only in place of a first action: once a call was made, whatever is still open has to
be mended or given up by name, and the text is fed back. Where text is an answer (``tool_choice`` ``auto``), the final
answer is that text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from extractor.dialects.calls import Arguments, calls_in, nothing, numbered
from extractor.dialects.json_text import Open, Reading, string_at
from extractor.dialects.wording import joined, may_pass, plain_turns, wanted, with_objects, with_schemas
from extractor.fields.nulls import nullish
from extractor.messages import NOTHING_TO_EXTRACT, Ask, FinishReason, Message, Reply
from extractor.parameters import branches, kind_of

THOUGHT, ACTION, INPUT, OBSERVATION, FINAL = "thought", "action", "actioninput", "observation", "finalanswer"

_LABEL = re.compile(
    r"^[ \t>#*_-]{0,8}+(thought|action[ _]?input|action|observation|final[ _]?answer)[*_]{0,2}[ \t]{0,4}:[*_]{0,2}",
    re.IGNORECASE | re.MULTILINE,
)
_FENCE = re.compile(r"[\s`'(:,*]*+(?:json\b\s*+)?")
_NAME = re.compile(r"[\s`'\"*\[<]*+([\w.-]{1,100}+)[`'\"*\]>]*+")
_LONGEST_REASON = 300


def word(ask: Ask) -> Ask:
    """The ask in plain text turns: earlier calls as actions, their results as observations."""
    turns = plain_turns(ask.messages, _content, _instructions(ask))
    return replace(ask, messages=joined(turns), offers=(), tool_choice="auto")


def read(reply: Reply, ask: Ask) -> Reply:
    """The reply with its actions as calls; of one that was cut off, with those whose input is whole.

    Beside actions, the text of the reply is the thought before them.
    """
    is_cut, is_text = reply.finish_reason == "length", ask.tool_choice == "auto"
    turn = _turn(reply.content, ask)
    if turn.actions:
        found = [(one.name, one.arguments) for one in turn.actions if one.is_whole or not is_cut]
        reason: FinishReason = "length" if turn.goes_on else reply.finish_reason
        return replace(reply, content=turn.thought, tool_calls=numbered(found, ask), finish_reason=reason)
    if turn.final is None:
        calls = () if is_cut else calls_in(turn.thought, ask, named_only=is_text)
        return replace(reply, content="" if calls else turn.thought, tool_calls=calls)
    calls = calls_in(turn.final, ask, is_cut=is_cut, named_only=is_text)
    is_first = not any(message.tool_calls for message in ask.messages)
    if not calls and is_first and not is_cut and not is_text:
        calls = numbered([nothing(" ".join(turn.final.split())[:_LONGEST_REASON] or "no reason given")], ask)
    return replace(reply, content="" if calls else turn.final, tool_calls=calls)


# -- reading -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Part:
    """What stands under one label. ``value`` is the JSON at its beginning; ``is_whole``: nothing of it can be missing.

    ``start`` is where the label begins, ``end`` where the text under it does.
    """

    kind: str
    text: str
    value: Any
    is_whole: bool
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Action:
    name: str
    arguments: Arguments
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class _Turn:
    """What a reply says, up to the first observation; ``final`` is the final answer, if there is one.

    ``goes_on``: more actions follow the observation.
    """

    thought: str
    actions: tuple[_Action, ...]
    final: str | None = None
    goes_on: bool = False


def _turn(text: str, ask: Ask) -> _Turn:
    actions: list[_Action] = []
    waiting, thought, final = "", text, None
    parts = _parts(text)
    for part in parts:
        if part.kind == INPUT and waiting:
            actions += _inputs(waiting, part, ask)
            waiting = ""
        elif part.kind in (ACTION, OBSERVATION, FINAL):
            actions += [_Action(waiting, None)] if waiting else []
            waiting = ""
            thought = text[: part.start] if thought is text else thought
        if part.kind == ACTION:
            waiting = _action_name(part.text)
            if part.value is not None:
                actions += _inputs(waiting, part, ask) if waiting else _written_as_json(part.value, ask)
                waiting = ""
        elif part.kind == FINAL:
            final = _before_observation(text[part.end :])
        if part.kind in (OBSERVATION, FINAL):
            break
    actions += [_Action(waiting, None, is_whole=False)] if waiting else []
    goes_on = any(part.kind == ACTION and _action_name(part.text) for part in parts) if final is None else False
    return _Turn(_without_label(thought), tuple(actions), final, goes_on)


def _parts(text: str) -> Iterator[_Part]:
    """From label to label; JSON is passed over as a whole, whatever labels stand in its texts."""
    label = _LABEL.search(text)
    while label:
        kind, start = _kind(label), label.end()
        value, at = _json_at(text, start, kind) if kind in (ACTION, INPUT) else (None, start)
        following = _LABEL.search(text, at)
        end = following.start() if following else len(text)
        is_whole = value is not None or following is not None
        yield _Part(kind, text[start:end].strip(), value, is_whole, label.start(), start)
        label = following


def _kind(label: re.Match[str]) -> str:
    return label[1].lower().replace("_", "").replace(" ", "")


def _json_at(text: str, at: int, kind: str) -> tuple[Any, int]:
    """The object or list that stands next, bare, in a fence or in quotes, and where reading goes on.

    Behind ``Action`` the name may stand before it.
    """
    start = _behind(_FENCE, text, at)
    if kind == ACTION and text[start : start + 1] not in ("{", "["):
        start = _behind(_FENCE, text, _behind(_NAME, text, at))
    quoted = string_at(text, start)
    if quoted is not None:
        inside = Reading(quoted[0], 0).run() if quoted[0][:1] in ("{", "[") else None
        is_whole = inside is not None and not isinstance(inside.value, Open)
        return (inside.value, quoted[1]) if inside is not None and is_whole else (None, start)
    if text[start : start + 1] not in ("{", "["):
        return None, at
    reading = Reading(text, start)
    found = reading.run()
    is_whole = found is not None and not isinstance(found.value, Open)
    return found.value if found is not None and is_whole else None, reading.at


def _behind(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _action_name(text: str) -> str:
    """The name of the function; empty where none is meant, or where JSON stands in its place."""
    match = _NAME.match(text)
    if match is None or nullish(match[1]) or text.lstrip("`' \n").removeprefix("json").lstrip()[:1] in ("{", "["):
        return ""
    return match[1]


def _inputs(name: str, part: _Part, ask: Ask) -> Iterator[_Action]:
    """One action; a list of objects is one for each."""
    if isinstance(part.value, list) and part.value and all(isinstance(item, dict) for item in part.value):
        yield from (_Action(name, item) for item in part.value)
    elif part.value is not None:
        yield _Action(name, part.value if isinstance(part.value, dict) else json.dumps(part.value))
    else:
        yield _Action(name, _plain(name, part.text.strip("`").strip(), ask), part.is_whole)


def _written_as_json(value: Any, ask: Ask) -> Iterator[_Action]:
    for call in calls_in(json.dumps(value), ask):
        yield _Action(call.name, call.arguments)


def _plain(name: str, said: str, ask: Ask) -> Arguments:
    """An input that is plain text: it is the argument of a function that takes one text and nothing else."""
    schema: Any = next((offer.parameters for offer in ask.offers if offer.name == name), {})
    fields = list(schema.get("properties", {}).items())
    is_text = len(fields) == 1 and all(kind_of(branch) == "string" for branch in branches(fields[0][1], schema))
    if is_text and not nullish(said) and said[0] not in "{[":
        return {fields[0][0]: said.strip("\"'")}
    return said or None


def _before_observation(text: str) -> str:
    at = next((label.start() for label in _LABEL.finditer(text) if _kind(label) == OBSERVATION), len(text))
    return text[:at].strip()


def _without_label(thought: str) -> str:
    text = thought.strip()
    label = _LABEL.match(text)
    return text[label.end() :].strip() if label and _kind(label) == THOUGHT else text


# -- wording -----------------------------------------------------------------------------------------------------------


def _instructions(ask: Ask) -> str:
    """The form stands last: small models copy that."""
    offers = wanted(ask)
    if not offers:
        return ""
    names = [offer.name for offer in offers] + ([NOTHING_TO_EXTRACT.name] if may_pass(ask) else [])
    number = "Repeat Action and Action Input for every record, all in one answer." if ask.parallel else "Act once."
    lines = [
        *with_schemas(offers),
        f"The actions are {', '.join(names)}. {number} Then stop.",
        "What came of it is told to you as Observation; never write one yourself.",
        "Only where no action is to be taken, write Final Answer: and say why.",
        "Copy every value as it is printed in the document above. Answer in this form:",
        "Thought: …",
        f"Action: {offers[0].name}",
        "Action Input: {…}",
    ]
    return "\n".join(lines)


def _content(message: Message) -> str:
    if message.role == "tool":
        single = len(message.tool_results) == 1
        heads = [f"{one.name} {n}: " for n, one in enumerate(message.tool_results, start=1)]
        texts = [one.content for one in message.tool_results]
        return "\n".join(
            f"Observation: {'' if single else head}{said}" for head, said in zip(heads, texts, strict=True)
        )
    if not message.tool_calls:
        return message.content
    lines = [f"Thought: {message.content}"] if message.content.strip() else []
    for call in with_objects(message).tool_calls:
        sent = call.arguments
        said = sent if isinstance(sent, str) else json.dumps(dict(sent or {}), ensure_ascii=False, default=str)
        lines += [f"Action: {call.name}", f"Action Input: {said}"]
    return "\n".join(lines)
