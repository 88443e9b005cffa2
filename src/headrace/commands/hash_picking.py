"""Fields picked out of a hash: HRANDFIELD at random, HGETDEL by name and for good."""

from itertools import islice
from typing import Final

from headrace.commands.call import Call
from headrace.commands.hashes import encode_field, find_hash, remove_fields
from headrace.commands.numbers import MAX_INTEGER, parse_within
from headrace.commands.outcome import EMPTY_ARRAY, Outcome
from headrace.commands.refusals import SYNTAX
from headrace.commands.spec import block, command, integer, key, many, optional, text, word
from headrace.errors import CommandError
from headrace.wire.encoder import encode_array, encode_array_header, encode_bulk, encode_null

MOST_REPEATED: Final = 2**20  # Fields in one reply, when the same one may come again: a reply must end.


@command(
    "HRANDFIELD", key("RO access"),
    optional(block("options", integer("count"), optional(word("WITHVALUES")))),
    group="hash", flags="readonly", since="6.2.0", complexity="O(N) with N fields, quickly",
    summary="Fields of a hash, chosen at random.", tips="nondeterministic_output",
)  # fmt: skip
def hrandfield(ctx: Call, argv: list[bytes]) -> Outcome:
    """A negative count may give the same field more than once, and at most 1,048,576 in all."""
    if len(argv) == 2:
        fields = find_hash(ctx, argv[1])
        if fields is None:
            return Outcome(encode_null(resp3=ctx.resp3))
        return Outcome(encode_bulk(next(islice(fields, ctx.state.chance.below(len(fields)), None))))
    out_of_range = f"ERR value is out of range, value must between -{MAX_INTEGER} and {MAX_INTEGER}"
    count = parse_within(argv[2], -MAX_INTEGER, MAX_INTEGER, out_of_range)
    if len(argv) > 4 or (len(argv) == 4 and argv[3].upper() != b"WITHVALUES"):
        raise CommandError(SYNTAX)
    has_values = len(argv) == 4
    if count < -MOST_REPEATED or (has_values and count > MAX_INTEGER // 2):
        raise CommandError("ERR value is out of range")
    fields = find_hash(ctx, argv[1])
    if fields is None or count == 0:
        return EMPTY_ARRAY
    picked = pick(ctx, list(fields), count)
    return Outcome(encode_picked(ctx, fields, picked) if has_values else encode_array([encode_bulk(p) for p in picked]))


def pick(ctx: Call, names: list[bytes], count: int) -> list[bytes]:
    chance = ctx.state.chance
    if count < 0:
        return [names[chance.below(len(names))] for _ in range(-count)]
    return names if count >= len(names) else [names[place] for place in chance.sample(len(names), count)]


def encode_picked(ctx: Call, fields: dict[bytes, bytes], picked: list[bytes]) -> bytes:
    """Fields with their values: flat, or as pairs in RESP3."""
    parts: list[bytes] = [encode_array_header(len(picked) if ctx.resp3 else 2 * len(picked))]
    for field in picked:
        if ctx.resp3:
            parts.append(encode_array_header(2))
        parts.append(encode_bulk(field))
        parts.append(encode_bulk(fields[field]))
    return b"".join(parts)


@command(
    "HGETDEL", key("RW access delete"), block("fields", integer("numfields"), many(text("field")), token="FIELDS"),
    group="hash", flags="write fast", since="8.0.0", complexity="O(1) for each field",
    summary="Read fields of a hash and take them out.",
)  # fmt: skip
def hgetdel(ctx: Call, argv: list[bytes]) -> Outcome:
    name = argv[1]
    fields = find_hash(ctx, name)
    if argv[2].upper() != b"FIELDS":
        raise CommandError("ERR Mandatory argument FIELDS is missing or not at the right position")
    must_be_positive = "ERR Number of fields must be a positive integer"
    if parse_within(argv[3], 1, MAX_INTEGER, must_be_positive, must_be_positive) != len(argv) - 4:
        raise CommandError("ERR The `numfields` parameter must match the number of arguments")
    asked = argv[4:]
    gone = [] if fields is None else list(dict.fromkeys([field for field in asked if field in fields]))
    first = {field: index for index, field in reversed(list(enumerate(asked)))}
    # A field named twice is gone the second time.
    reply = encode_array(
        [encode_field(ctx, fields if first[field] == index else None, field) for index, field in enumerate(asked)]
    )
    if fields is None or not gone:
        return Outcome(reply)
    return Outcome(reply, remove_fields(ctx, name, fields, gone), name)
