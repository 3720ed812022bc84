"""What a model is offered, and what becomes of the arguments that it sends.

A :class:`Function` is made from a typed callable with a docstring, from a pydantic or SQLModel class, or from a JSON
schema; :func:`function` and :func:`from_schema` are the two ways in. Everything that can be wrong with a definition is
found here, when it is defined, and never while documents are read.

What a model sends is JSON text, so ``ConfigDict(strict=True)`` of a user's model is lifted when its arguments are
validated: strictness about Python types would refuse every ISO date.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar, Union

import typing_extensions
from pydantic import BaseModel, RootModel, TypeAdapter
from pydantic.errors import PydanticUserError

from extractor.errors import DefinitionError
from extractor.messages import Offer
from extractor.parameters import generated, shown, validator
from extractor.validation import validated

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Context:
    """What a function is told beside its arguments, when it asks for it; a model never sees any of it.

    ``document`` is the document that is being read, ``call_id`` the id of the present call, ``values`` what the host
    supplied with the document, ``style`` how the document prints numbers and dates. ``is_last_attempt``: what is
    rejected now is not asked again.
    """

    document: Any = None
    call_id: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    style: Any = None
    is_last_attempt: bool = False
    remarks: list[str] = field(default_factory=list, compare=False)

    def flag(self, remark: str) -> None:
        """Accept, but have a person look: the remark is kept with the record and shown with the outcome."""
        if remark not in self.remarks:
            self.remarks.append(remark)

    def get(self, key: str, default: Any = None) -> Any:
        """One of the host's values."""
        return self.values.get(key, default)


@dataclass(frozen=True, slots=True)
class Function:
    """One function on offer.

    :param name: 1 to 64 of ``A-Z a-z 0-9 _ -``.
    :param description: what it is for, as the model is told.
    :param parameters: JSON schema of the arguments, as the model is shown it.
    :param body: what is run, a plain or an async callable.
    :param adapter: makes the validated argument of the decoded ones; ``None`` hands them over as they are.
    :param argument: the body's parameter that takes the validated argument; ``None`` passes it by position.
    :param spread: the validated argument is a mapping, passed as keywords.
    :param takes_context: pass the :class:`Context`, as the keyword ``context_name``.
    :param strict: refuse a call that sends an argument nobody declared; they are ignored otherwise.
    :param timeout: seconds that one call may take, or ``None``.
    :param returns: the class that the body says it returns, where it says so.
    :raises DefinitionError: when the name or the timeout is none.
    """

    name: str
    description: str
    parameters: Mapping[str, Any] = field(repr=False)
    body: Callable[..., Any]
    adapter: type[BaseModel] | TypeAdapter[Any] | None = None
    argument: str | None = None
    spread: bool = False
    takes_context: bool = False
    context_name: str = "context"
    strict: bool = False
    timeout: float | None = None
    returns: Any = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise DefinitionError(
                f"{self.name!r} is no name that models can call", hint="use 1 to 64 letters, digits, _ and -"
            )
        if self.timeout is not None and not self.timeout > 0:
            raise DefinitionError(f"{self.name}: a timeout is a number of seconds above 0, not {self.timeout!r}")

    @property
    def offer(self) -> Offer:
        """What a model is shown."""
        return Offer(self.name, self.description, self.parameters, self.strict)

    def validate(self, arguments: Mapping[str, Any], context: dict[str, Any]) -> Any:
        """The validated argument for the body.

        :param arguments: decoded and repaired.
        :param context: for validators, as pydantic's ``ValidationInfo.context``.
        :raises pydantic.ValidationError: with everything that is wrong.
        """
        if self.adapter is None:
            return dict(arguments)
        return validated(self.adapter, dict(arguments), context)

    def call(self, value: Any, context: Context) -> Any:
        """Call the body with a validated argument; an async body returns its awaitable."""
        named = {self.context_name: context} if self.takes_context else {}
        if self.spread:
            return self.body(**value, **named)
        if self.argument is not None:
            return self.body(**{self.argument: value}, **named)
        return self.body(value, **named)


def function(
    target: Any,
    *,
    name: str | None = None,
    description: str | None = None,
    strict: bool = False,
    timeout: float | None = None,
) -> Function:
    """Make a function to offer.

    :param target: a typed callable, whose docstring (reST, Google or NumPy style) describes it and its parameters. A
        single parameter that is a pydantic or SQLModel class is spread: its fields are the arguments. A parameter
        named ``context``, or annotated with :class:`Context`, is supplied by us and not shown. Or a pydantic or
        SQLModel class, or a dataclass: the validated instance is then the result.
    :param name: by default the target's own, a class's in snake_case.
    :param description: by default from the docstring.
    :param strict: refuse arguments that nobody declared.
    :param timeout: seconds that one call may take.
    :raises DefinitionError: when the target cannot be offered to a model.
    """
    if _is_table(target):
        raise DefinitionError(
            f"{target.__name__} is a table, whose validators do not run when it is made",
            hint=f"wrap it by Pipeline({target.__name__}), which derives a draft, or write a function that takes one",
        )
    if isinstance(target, type):
        made = _of_class(target)
    elif callable(target):
        made = _of_callable(target, name)
    else:
        raise DefinitionError(f"a {type(target).__name__} is neither a callable nor a class to fill in")
    return dataclasses.replace(
        made,
        name=made.name if name is None else name,
        description=made.description if description is None else description,
        strict=strict,
        timeout=timeout,
    )


def from_schema(
    name: str,
    description: str,
    schema: Mapping[str, Any],
    body: Callable[..., Any],
    *,
    strict: bool = False,
    timeout: float | None = None,
) -> Function:
    """Make a function to offer from a JSON schema; the body takes the arguments as one dict.

    Required and unrecognised arguments, types, enums, lengths and bounds are checked, at every level; a recursive part
    is handed over as it is. A fractional number is a ``float``, as JSON has it: declare money as a string.

    :param schema: of an object. ``$defs`` are inlined.
    :param body: called with the dict, and with ``context`` when it has a parameter of that name.
    :raises DefinitionError: when the schema is not one of an object, or the body cannot take the arguments.
    """
    if not isinstance(schema, Mapping) or schema.get("type", "object") != "object":
        raise DefinitionError(f"{name}: the arguments are an object", hint='the schema needs "type": "object"')
    with _naming(name):
        parameters = shown({"type": "object", "properties": {}, **schema})
        adapter = validator(parameters)
    context, returns = _of_body(name, body)
    return Function(
        name, description, parameters, body, adapter, strict=strict, timeout=timeout, returns=returns,
        takes_context=context is not None, context_name=context or "context",
    )  # fmt: skip


def _of_body(name: str, body: Callable[..., Any]) -> tuple[str | None, Any]:
    """The name of the parameter for the context, and the class that is returned; a builtin tells neither."""
    try:
        parameters = inspect.signature(body).parameters
    except (TypeError, ValueError):
        return None, None
    hints = {} if isinstance(body, type) else _hints(body)
    context = next((key for key in parameters if key == "context" or hints.get(key) is Context), None)
    try:
        inspect.signature(body).bind({}, **({context: None} if context else {}))
    except TypeError:
        hint = "and a context, if it likes"
        raise DefinitionError(f"{name}: the body takes the arguments as one dict", hint=hint) from None
    return context, _returned(hints)


# -- from a class or a callable ----------------------------------------------------------------------------------------


def _of_class(target: type[Any]) -> Function:
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", target.__name__).lower()
    if not (issubclass(target, BaseModel) or dataclasses.is_dataclass(target)):
        hint = "give an instance of it" if "__call__" in vars(target) else "make it a pydantic model"
        raise DefinitionError(f"{target.__name__} is a class without declared fields", hint=hint)
    adapter: Any = target if issubclass(target, BaseModel) else TypeAdapter(target)
    with _naming(target.__name__):
        parameters = generated(adapter)
    if "properties" not in parameters:
        raise DefinitionError(f"{target.__name__} is not an object with named fields", hint="put it in a field")
    text = str(parameters.pop("description", ""))
    return Function(snake, text, parameters, itself, adapter, returns=target)


def itself(value: T) -> T:
    """The body of a class: the validated instance is the result."""
    return value


def _of_callable(target: Callable[..., Any], name: str | None) -> Function:
    chosen = name or _name_of(target)
    hints, accepted = _hints(target), _signature(target)
    context = [key for key in accepted if key == "context" or hints.get(key) is Context]
    if len(context) > 1:
        raise DefinitionError(f"{chosen}: {' and '.join(context)} would both be given the context")
    offered = {key: parameter for key, parameter in accepted.items() if key not in context}
    for key in offered:
        if key not in hints:
            raise DefinitionError(f"{chosen}: the parameter {key!r} has no annotation", hint="say what type it takes")
        if _is_table(_bare(hints[key])):
            raise DefinitionError(
                f"{chosen}: the parameter {key!r} is the table {_bare(hints[key]).__name__}",
                hint="take a draft (a class without table=True) and build the record from it",
            )
    single = next(iter(offered)) if len(offered) == 1 and _is_model(_bare(hints[next(iter(offered))])) else None
    adapter = _bare(hints[single]) if single else _keywords(chosen, hints, offered)
    with _naming(chosen):
        parameters = generated(adapter)
    for key, parameter in offered.items() if single is None else ():
        if isinstance(parameter.default, (str, int, float, types.NoneType)):
            parameters["properties"][key].setdefault("default", parameter.default)
    text = _documented(chosen, target, parameters, accepted)
    if parameters.get("description") == text or single is None:
        parameters.pop("description", None)
    return Function(
        chosen, text, parameters, target, adapter, argument=single, spread=single is None,
        takes_context=bool(context), context_name=context[0] if context else "context", returns=_returned(hints),
    )  # fmt: skip


def _keywords(name: str, hints: Mapping[str, Any], offered: Mapping[str, inspect.Parameter]) -> TypeAdapter[Any]:
    """One validator for all parameters; those with a default may be left out, and the default is then Python's."""
    typed: Any = typing_extensions
    fields = {
        key: (typed.Required if parameter.default is parameter.empty else typed.NotRequired)[hints[key]]
        for key, parameter in offered.items()
    }
    try:
        return TypeAdapter(typed.TypedDict(name, fields))
    except PydanticUserError as error:
        raise DefinitionError(f"{name}: {_first_line(error)}", hint="annotate it with a type that JSON has") from None


def _signature(target: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters that can be passed by name; those that a partial has bound are not a model's business."""
    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError):
        raise DefinitionError(f"{target!r} has no signature to read", hint="wrap it in a function") from None
    bound = target.keywords if isinstance(target, functools.partial) else {}
    for key, parameter in signature.parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise DefinitionError(
                f"{_name_of(target)}: the parameter {key!r} cannot be passed by name", hint="give it a name of its own"
            )
    return {key: parameter for key, parameter in signature.parameters.items() if key not in bound}


def _hints(target: Any) -> dict[str, Any]:
    target = _unbound(target)
    if not inspect.isroutine(target):
        target = type(target).__call__
    try:
        return typing.get_type_hints(target, include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        raise DefinitionError(
            f"{_name_of(target)}: an annotation cannot be read: {_first_line(error)}",
            hint="import its names at the top of the module, not under TYPE_CHECKING",
        ) from None


def _returned(hints: Mapping[str, Any]) -> Any:
    """The class of the native object: ``X`` of ``X | None`` and of ``tuple[str, X]`` too."""
    found = _bare(hints.get("return"))
    if typing.get_origin(found) in (Union, types.UnionType):
        rest = [one for one in typing.get_args(found) if one is not type(None)]
        found = rest[0] if len(rest) == 1 else found
    if typing.get_origin(found) is tuple and len(typing.get_args(found)) == 2 and typing.get_args(found)[0] is str:
        found = typing.get_args(found)[1]
    return None if found is type(None) else found


def _name_of(target: Any) -> str:
    target = _unbound(target)
    return str(getattr(target, "__name__", None) or type(target).__name__)


def _documented(name: str, target: Any, parameters: dict[str, Any], accepted: Mapping[str, inspect.Parameter]) -> str:
    """The description in the docstring; those of parameters are put beside them."""
    from docstring_parser import ParseError, parse

    target = _unbound(target)
    routine = target if inspect.isroutine(target) else type(target).__call__
    text = routine.__doc__ or ("" if inspect.isroutine(target) else type(target).__doc__) or ""
    try:
        doc = parse(inspect.cleandoc(text))
    except ParseError as error:
        raise DefinitionError(f"{name}: the docstring cannot be read: {_first_line(error)}") from None
    properties = parameters.get("properties", {})
    known = {*inspect.signature(target).parameters, *accepted, *properties}
    for entry in doc.params:
        for key in (part.strip().lstrip("*") for part in entry.arg_name.split(",")):
            if key not in known:
                raise DefinitionError(
                    f"{name}: the docstring describes {key!r}, which is no parameter", hint=f"there are {sorted(known)}"
                )
            if key in properties and entry.description and "description" not in properties[key]:
                properties[key]["description"] = entry.description
    return "\n\n".join(part for part in (doc.short_description, doc.long_description) if part)


# -- small things ------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _naming(name: str) -> Iterator[None]:
    """Put the function's name before what is wrong with its schema."""
    try:
        yield
    except DefinitionError as error:
        raise DefinitionError(f"{name}: {error.message}", hint=error.hint) from None


def _unbound(target: Any) -> Any:
    """What a partial is made of."""
    while isinstance(target, functools.partial):
        target = target.func
    return target


def _is_table(target: Any) -> bool:
    """Whether a class is mapped to a table; sqlmodel need not be imported to see it."""
    return isinstance(target, type) and getattr(target, "__table__", None) is not None


def _is_model(target: Any) -> bool:
    return isinstance(target, type) and issubclass(target, BaseModel) and not issubclass(target, RootModel)


def _bare(hint: Any) -> Any:
    return typing.get_args(hint)[0] if typing.get_origin(hint) is Annotated else hint


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
