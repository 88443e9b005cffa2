"""Numbers with fractions: INCRBYFLOAT and HINCRBYFLOAT. How they are added and written is in `engine/long_double.py`.

The journal gets the result, so replaying it adds nothing again.
"""

from typing import Final

from headrace.commands.call import Call
from headrace.commands.hashes import find_hash, set_fields, set_record
from headrace.commands.notifications import HASH
from headrace.commands.numbers import NOT_A_FLOAT
from headrace.commands.outcome import Outcome
from headrace.commands.spec import command, double, key, text
from headrace.commands.strings import change, find_string
from headrace.engine.long_double import Number, add, encode_number, parse_number
from headrace.errors import CommandError
from headrace.wire.encoder import encode_bulk

NOT_FINITE: Final = "ERR increment would produce NaN or Infinity"


def get_number(value: bytes, error: str = NOT_A_FLOAT) -> Number:
    number = parse_number(value)
    if number is None:
        raise CommandError(error)
    return number


def encode_sum(left: Number, right: Number) -> bytes:
    total = add(left, right)
    if total.is_infinite:
        raise CommandError(NOT_FINITE)
    return encode_number(total)


@command(
    "INCRBYFLOAT", key("RW access update"), double("increment"),
    group="string", flags="write denyoom fast", since="2.6.0", complexity="O(1)",
    summary="Add to a number that may have a fraction.",
)  # fmt: skip
def incrbyfloat(ctx: Call, argv: list[bytes]) -> Outcome:
    """Written without an exponent and with up to 17 decimals, as Redis writes it."""
    name = argv[1]
    value = find_string(ctx, name)
    total = encode_sum(get_number(b"0" if value is None else value), get_number(argv[2]))
    return change(ctx, name, total, encode_bulk(total), b"incrbyfloat")


@command(
    "HINCRBYFLOAT", key("RW access update"), text("field"), double("increment"),
    group="hash", flags="write denyoom fast", since="2.6.0", complexity="O(1)",
    summary="Add to the number in a field of a hash; it may have a fraction.",
)  # fmt: skip
def hincrbyfloat(ctx: Call, argv: list[bytes]) -> Outcome:
    name = argv[1]
    amount = get_number(argv[3])
    if amount.is_infinite:
        raise CommandError("ERR value is NaN or Infinity")
    fields = find_hash(ctx, name)
    value = b"0" if fields is None else fields.get(argv[2], b"0")
    words = [argv[2], encode_sum(get_number(value, "ERR hash value is not a float"), amount)]
    set_fields(ctx, name, fields, words)
    ctx.notify(HASH, b"hincrbyfloat", name)
    return Outcome(encode_bulk(words[1]), set_record(ctx, name, words), name)
