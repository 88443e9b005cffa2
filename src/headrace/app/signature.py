"""What a handler's function asks for, read from its annotations, and how a message becomes that.

The message is the one parameter that is neither a Context nor of a provided type. Its annotation says how it is read:

    dict, dataclass, TypedDict, msgspec.Struct, pydantic model      the field `data` as JSON; without it, the fields
    bytes, str                                                      the field `data` as it is
    Entry                                                           the stored entry, fields in order and as bytes
    none, or Any                                                    as Entry.payload gives it

A batch handler takes list[T]. A message that does not fit is a Misfit: no further try could help.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, get_args, get_origin, get_type_hints

import msgspec

from headrace.app.context import Context
from headrace.app.delivery import Delivery, Words
from headrace.client import layout
from headrace.client.results import Entry, decode_text
from headrace.errors import ConfigError, HeadraceError, Misfit

Decoder = Callable[[Delivery], Any]

OURS: Final = b"hr:"  # Fields of ours; never part of a payload.
SHOWN_DATA: Final = 80  # Bytes of a misfit shown in its error.


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    annotation: Any  # inspect.Parameter.empty where there is none.
    has_default: bool


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a function, and what each is to be given."""

    message: str | None  # The parameter that takes the message.
    context: str | None
    injected: dict[str, Any]  # Parameter -> the provided type.
    decode: Decoder


def read_parameters(function: Callable[..., Any]) -> list[Parameter]:
    """The parameters with their annotations as types, also where those are written as text."""
    name = name_of(function)
    try:
        signature = inspect.signature(function)
        hints = get_type_hints(function)
    except (NameError, TypeError, ValueError) as error:
        raise ConfigError(f"the parameters of {name} cannot be read: {error}.") from error
    found = []
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise ConfigError(f"{name} takes {parameter.name!r} by position only; remove the / from its parameters.")
        annotation = hints.get(parameter.name, parameter.empty)
        found.append(Parameter(parameter.name, annotation, parameter.default is not parameter.empty))
    return found


def resolve(name: str, parameters: list[Parameter], provided: Mapping[Any, Any], *, is_batch: bool) -> Signature:
    """Which parameter is the message, which the context, and which are provided."""
    context: str | None = None
    injected: dict[str, Any] = {}
    open_ones: list[Parameter] = []
    for parameter in parameters:
        if is_context(parameter.annotation, is_batch=is_batch):
            context = parameter.name
        elif parameter.annotation is Context:
            raise ConfigError(
                f"{name} takes batches, with a context per message. Write {parameter.name}: list[Context]."
            )
        elif is_provided(parameter.annotation, provided):
            injected[parameter.name] = parameter.annotation
        else:
            open_ones.append(parameter)
    needed = [parameter for parameter in open_ones if not parameter.has_default]
    if len(needed) > 1:
        names = ", ".join(parameter.name for parameter in needed)
        raise ConfigError(
            f"{name} asks for {names}: only one of them can be the message. Annotate the others with Context or a type "
            "that app.provide makes."
        )
    message = needed[0] if needed else open_ones[0] if open_ones else None
    if message is None:
        return Signature(None, context, injected, decode_any)
    annotation = message.annotation
    if is_batch:
        annotation = element_of(name, message)
    return Signature(message.name, context, injected, make_decoder(annotation))


def is_context(annotation: Any, *, is_batch: bool) -> bool:
    if is_batch:
        return get_origin(annotation) is list and get_args(annotation) == (Context,)
    return annotation is Context


def is_provided(annotation: Any, provided: Mapping[Any, Any]) -> bool:
    try:
        return annotation in provided
    except TypeError:  # Not hashable, so nobody provides it.
        return False


def element_of(name: str, message: Parameter) -> Any:
    annotation = message.annotation
    if annotation in (inspect.Parameter.empty, list):
        return inspect.Parameter.empty
    arguments = get_args(annotation)
    if get_origin(annotation) is not list or len(arguments) != 1:
        raise ConfigError(f"{name} takes batches, so {message.name} must be a list. Write {message.name}: list[Click].")
    return arguments[0]


def name_of(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", function))


# Decoding


def fields_of(words: Words) -> dict[str, str]:
    """An entry that somebody else wrote is its fields."""
    return {
        decode_text(words[index]): decode_text(words[index + 1])
        for index in range(0, len(words) - 1, 2)
        if not words[index].startswith(OURS)
    }


def make_decoder(annotation: Any) -> Decoder:
    if annotation is inspect.Parameter.empty or annotation is Any:
        return decode_any
    if annotation is bytes:
        return decode_bytes
    if annotation is str:
        return decode_str
    if annotation is Entry:
        return Delivery.entry
    if callable(getattr(annotation, "model_validate_json", None)):  # pydantic, without importing it.
        return pydantic_decoder(annotation)
    return msgspec_decoder(annotation)


def decode_any(delivery: Delivery) -> Any:
    data = delivery.find(layout.DATA)
    if data is None:
        return fields_of(delivery.words)
    try:
        return layout.decode_payload(data, delivery.find(layout.TYPE), delivery.id)
    except HeadraceError as error:
        raise Misfit(f"the data is not JSON: {error.__cause__}. It begins with {shown(data)}.") from error


def decode_bytes(delivery: Delivery) -> bytes:
    data = delivery.find(layout.DATA)
    if data is None:
        raise Misfit("the entry has no field 'data', and the handler asks for bytes.")
    return data


def decode_str(delivery: Delivery) -> str:
    return decode_text(decode_bytes(delivery))


def msgspec_decoder(annotation: Any) -> Decoder:
    try:
        is_known = not isinstance(msgspec.inspect.type_info(annotation), msgspec.inspect.CustomType)
        decode_json = msgspec.json.Decoder(annotation).decode
    except (TypeError, NotImplementedError):
        is_known = False
    if not is_known:
        raise ConfigError(
            f"a message cannot become {annotation!r}. Annotate it with dict, a dataclass, a TypedDict, a "
            "msgspec.Struct, a pydantic model, bytes or str; or make one with app.provide, if it is no message."
        )
    data_name = layout.DATA

    def decode(delivery: Delivery) -> Any:
        words = delivery.words
        data = words[1] if len(words) == 2 and words[0] == data_name else delivery.find(data_name)
        try:
            if data is not None:
                return decode_json(data)
            return msgspec.convert(fields_of(words), annotation, strict=False)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise misfit(annotation, error, data) from error

    return decode


def pydantic_decoder(model: Any) -> Decoder:
    def decode(delivery: Delivery) -> Any:
        data = delivery.find(layout.DATA)
        try:
            return model.model_validate(fields_of(delivery.words)) if data is None else model.model_validate_json(data)
        except ValueError as error:  # pydantic's ValidationError is one.
            raise misfit(model, error, data) from error

    return decode


def misfit(wanted: Any, error: Exception, data: bytes | None) -> Misfit:
    name = getattr(wanted, "__name__", str(wanted))
    begin = "" if data is None else f" The data begins with {shown(data)}."
    return Misfit(f"the message is no {name}: {str(error).rstrip('.')}.{begin}")


def shown(data: bytes) -> str:
    return repr(data[:SHOWN_DATA].decode("utf-8", "replace"))
