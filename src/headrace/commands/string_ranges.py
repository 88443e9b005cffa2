"""Parts of a string: GETRANGE, SUBSTR, SETRANGE."""

from headrace.commands.call import Call
from headrace.commands.numbers import parse_integer
from headrace.commands.outcome import ZERO, Outcome
from headrace.commands.spec import command, integer, key, text
from headrace.commands.strings import change, check_length, find_string
from headrace.errors import CommandError
from headrace.wire.encoder import encode_bulk, encode_integer


@command(
    "GETRANGE", key("RO access"), integer("start"), integer("end"),
    group="string", flags="readonly", since="2.4.0", complexity="O(N) with N bytes returned",
    summary="A part of a string; both ends are part of it, negative ones count from the end.",
)  # fmt: skip
def getrange(ctx: Call, argv: list[bytes]) -> Outcome:
    return read_range(ctx, argv)


@command(
    "SUBSTR", key("RO access"), integer("start"), integer("end"),
    group="string", flags="readonly", since="1.0.0", complexity="O(N) with N bytes returned",
    summary="The old name of GETRANGE.",
)  # fmt: skip
def substr(ctx: Call, argv: list[bytes]) -> Outcome:
    return read_range(ctx, argv)


def read_range(ctx: Call, argv: list[bytes]) -> Outcome:
    start = parse_integer(argv[2])
    end = parse_integer(argv[3])
    value = find_string(ctx, argv[1])
    if value is None or (start < 0 and end < 0 and start > end):
        return Outcome(encode_bulk(b""))
    size = len(value)
    first = max(start + size, 0) if start < 0 else start
    last = max(end + size, 0) if end < 0 else end
    return Outcome(encode_bulk(value[first : max(last + 1, first)]))  # mypyc: a slice must not end before it begins.


@command(
    "SETRANGE", key("RW update"), integer("offset"), text("value"),
    group="string", flags="write denyoom", since="2.2.0", complexity="O(N) with N bytes in the string",
    summary="Write over a part of a string, which is lengthened with zero bytes where need be.",
)  # fmt: skip
def setrange(ctx: Call, argv: list[bytes]) -> Outcome:
    """An empty value changes nothing; the reply is the length all the same."""
    name = argv[1]
    offset = parse_integer(argv[2])
    if offset < 0:
        raise CommandError("ERR offset is out of range")
    value = find_string(ctx, name)
    part = argv[3]
    if not part:
        return ZERO if value is None else Outcome(encode_integer(len(value)))
    check_length(offset + len(part))
    old = b"" if value is None else value
    changed = old[:offset].ljust(offset, b"\0") + part + old[offset + len(part) :]
    return change(ctx, name, changed, encode_integer(len(changed)), b"setrange")
