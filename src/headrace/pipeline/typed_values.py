"""Texts of fields, or values of JSON, -> an Arrow column of a declared type. Pure.

What does not fit the type is null, and its place is told. Texts are tried all at once, and one by one where one of them
is refused; the second way accepts whatever the first does, so a value does not depend on its neighbours.

    type                   as text in a field                          in JSON
    string                 UTF-8                                       a text; anything else as its JSON
    binary                 as it is                                    base64
    boolean                true, t, yes, y, 1, false, f, no, n, 0      true, false
    byte … long            12, -3                                      a whole number
    float, double          1.5, 1e3, NaN, Infinity                     a number; "NaN", "Infinity", "-Infinity"
    decimal                1.5, 1e3; rounded half up to its scale      the same, or such a text
    date                   2026-11-15                                  the same
    timestamp              2026-11-15T12:30:00Z; UTC without a zone    the same
    struct, array, map     JSON                                        an object, an array, an object
"""

import base64
import decimal
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import ConfigError

Convert = Callable[[Any], Any]  # A value -> one that Arrow takes; ValueError: it does not fit.

TRUE_WORDS: Final = frozenset({"true", "t", "yes", "y", "1"})
FALSE_WORDS: Final = frozenset({"false", "f", "no", "n", "0"})
WHOLE: Final = re.compile(r"[+-]?[0-9]+")
DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
TIME: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}(:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?)?(Z|[+-][0-9:]+)?)?"
)
YEAR_ONE: Final = datetime(1, 1, 1, tzinfo=UTC)
NOT_A_NUMBER: Final = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
# What Arrow takes for a type without our looking at each value.
PLAIN: Final[dict[Any, type]] = {
    pa.string(): str, pa.bool_(): bool, pa.int8(): int, pa.int16(): int, pa.int32(): int, pa.int64(): int,
    pa.float64(): float,
}  # fmt: skip
ODD: Final = np.frombuffer(b"xX(_", np.uint8)  # Arrow reads 0x1F as a number and nan(1) as none; we take neither.
ENCODER: Final = msgspec.json.Encoder(decimal_format="number")
JSON: Final = msgspec.json.Decoder(float_hook=decimal.Decimal)  # All digits are kept.
PLAIN_CONTEXT: Final = decimal.Context(prec=76, rounding=decimal.ROUND_HALF_UP, traps=[decimal.InvalidOperation])


def from_texts(texts: Any, kind: Any) -> tuple[Any, Any]:
    """A binary array -> an array of the type, and which of its places did not fit: a bool array, or None for none."""
    if pa.types.is_binary(kind):
        return texts, None
    try:
        column = cast_all(texts, kind)
    except pa.ArrowInvalid:
        column = None
    if column is not None:
        return column, None
    return convert_all(texts.to_pylist(), text_converter(kind), kind)


def from_objects(objects: Sequence[Any], kind: Any) -> tuple[Any, Any]:
    """The same for values as JSON gives them."""
    if set(map(type, objects)) <= {type(None), PLAIN.get(kind)}:  # Arrow takes them as they are.
        try:
            return pa.array(objects, kind), None
        except (pa.ArrowInvalid, OverflowError):
            pass
    return convert_all(objects, json_converter(kind), kind)


def check_type(kind: Any, name: str) -> None:
    """Refuse a type that nothing can be read as."""
    try:
        json_converter(kind)
    except ConfigError as error:
        raise ConfigError(f"column {name!r} cannot be read: {error}") from None


def decode_json(text: bytes) -> Any:
    """Raises ValueError for what is no JSON, or too deep."""
    try:
        return JSON.decode(text)
    except RecursionError:
        raise ValueError("too deep") from None


# All at once


def cast_all(texts: Any, kind: Any) -> Any:
    """Raises ArrowInvalid, or gives None, where it is better looked at one by one."""
    types = pa.types
    words = texts.cast(pa.string())
    if types.is_string(kind):
        return words
    if types.is_nested(kind) or ((types.is_floating(kind) or types.is_integer(kind)) and has_odd_bytes(texts)):
        return None
    if types.is_timestamp(kind):
        column = cast_times(words, kind)
        return column if is_after_christ(column) else None
    column = words.cast(kind)
    return column if not types.is_date(kind) or is_after_christ(column) else None


def cast_times(words: Any, kind: Any) -> Any:
    """With zones in all texts, or in none of them."""
    if kind.tz is None:
        return words.cast(kind)
    try:
        return words.cast(kind)
    except pa.ArrowInvalid:
        return words.cast(pa.timestamp(kind.unit)).view(pa.int64()).view(kind)


def is_after_christ(column: Any) -> bool:
    first = pc.min(column.cast(pa.timestamp("us", "UTC"))).value
    return first is None or first >= round(YEAR_ONE.timestamp() * 1_000_000)


def has_odd_bytes(texts: Any) -> bool:
    data = texts.buffers()[2]
    return data is not None and bool(np.isin(np.frombuffer(data, np.uint8), ODD).any())


# One by one


def convert_all(values: Sequence[Any], convert: Convert, kind: Any) -> tuple[Any, Any]:
    result: list[Any] = []
    misfits: list[int] = []
    for place, value in enumerate(values):
        try:
            result.append(None if value is None else convert(value))
        except (ValueError, ArithmeticError):
            misfits.append(place)
            result.append(None)
    is_misfit: Any = None
    if misfits:
        is_misfit = np.zeros(len(result), bool)
        is_misfit[misfits] = True
    return pa.array(result, kind), is_misfit


def text_converter(kind: Any) -> Convert:
    types = pa.types
    if types.is_nested(kind):
        convert_object = json_converter(kind)
        return lambda text: convert_object(need_some(decode_json(text)))
    convert = plain_converter(kind)
    return lambda text: convert(text.decode("utf-8"))


def plain_converter(kind: Any) -> Convert:
    """For a text, as str."""
    types = pa.types
    if types.is_string(kind):
        return str
    if types.is_boolean(kind):
        return parse_boolean
    if types.is_integer(kind):
        return lambda text: check_range(parse_whole(text), kind.bit_width)
    if types.is_floating(kind):
        return parse_float
    if types.is_decimal(kind):
        return lambda text: round_decimal(decimal.Decimal(plain_number(text)), kind)
    if types.is_date(kind):
        return parse_day
    if types.is_timestamp(kind):
        return lambda text: parse_time(text, has_zone=kind.tz is not None)
    raise ConfigError(f"the type {kind} is not supported.")


def json_converter(kind: Any) -> Convert:
    types = pa.types
    if types.is_string(kind):
        return lambda value: value if type(value) is str else ENCODER.encode(value).decode()
    if types.is_binary(kind):
        return lambda value: base64.b64decode(need(value, str), validate=True)
    if types.is_boolean(kind):
        return lambda value: need(value, bool)
    if types.is_integer(kind):
        return lambda value: check_range(need(value, int), kind.bit_width)
    if types.is_floating(kind):
        return to_float
    if types.is_decimal(kind):
        return lambda value: round_decimal(to_decimal(value), kind)
    if types.is_struct(kind):
        return struct_converter(kind)
    if types.is_list(kind):
        convert_item = field_converter(kind.value_field)
        return lambda value: [convert_item(item) for item in need(value, list)]
    if types.is_map(kind):
        convert_key = str if types.is_string(kind.key_type) else plain_converter(kind.key_type)
        convert_value = field_converter(kind.item_field)
        return lambda value: [(convert_key(key), convert_value(item)) for key, item in need(value, dict).items()]
    convert_text = plain_converter(kind)
    return lambda value: convert_text(need(value, str))


def struct_converter(kind: Any) -> Convert:
    converters = [(field.name, field_converter(field)) for field in kind]

    def convert(value: Any) -> dict[str, Any]:
        fields = need(value, dict)
        return {name: convert_field(fields.get(name)) for name, convert_field in converters}

    return convert


def field_converter(field: Any) -> Convert:
    """For a value inside another one; null fits where the type says so."""
    convert = json_converter(field.type)
    if field.nullable:
        return lambda value: None if value is None else convert(value)
    return lambda value: convert(need_some(value))


def need_some(value: Any) -> Any:
    if value is None:
        raise ValueError
    return value


def need(value: Any, kind: type) -> Any:
    """bool is no int here."""
    if type(value) is not kind:
        raise ValueError
    return value


def parse_boolean(text: str) -> bool:
    word = text.strip().lower()
    if word in TRUE_WORDS:
        return True
    if word in FALSE_WORDS:
        return False
    raise ValueError


def parse_whole(text: str) -> int:
    word = text.strip()
    if not WHOLE.fullmatch(word):
        raise ValueError
    return int(word)


def check_range(number: int, bits: int) -> int:
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise ValueError
    return number


def parse_float(text: str) -> float:
    return float(plain_number(text))


def plain_number(text: str) -> str:
    """Python would also take 1_000 and digits of other scripts."""
    if "_" in text or not text.isascii():
        raise ValueError
    return text.strip()


def to_float(value: Any) -> float:
    if type(value) is str:
        value = NOT_A_NUMBER.get(value)
    if type(value) not in (int, float, decimal.Decimal):
        raise ValueError
    return float(value)


def to_decimal(value: Any) -> decimal.Decimal:
    if type(value) is str:
        value = plain_number(value)
    elif type(value) not in (int, decimal.Decimal):
        raise ValueError
    return decimal.Decimal(value)


def round_decimal(number: decimal.Decimal, kind: Any) -> decimal.Decimal:
    if not number.is_finite():
        raise ValueError
    rounded = number.quantize(decimal.Decimal(1).scaleb(-kind.scale), context=PLAIN_CONTEXT)
    if len(rounded.as_tuple().digits) > kind.precision and rounded != 0:
        raise ValueError
    return rounded


def parse_day(text: str) -> date:
    word = text.strip()
    if not DAY.fullmatch(word):
        raise ValueError
    return date.fromisoformat(word)


def parse_time(text: str, *, has_zone: bool) -> datetime:
    word = text.strip()
    if not TIME.fullmatch(word):
        raise ValueError
    time = datetime.fromisoformat(word)
    if has_zone:
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    if time.tzinfo is not None:
        raise ValueError
    return time
