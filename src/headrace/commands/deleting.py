"""Taking entries out of a stream: by ID (XDEL, XDELEX) and the oldest (XTRIM)."""

from headrace.commands.call import Call
from headrace.commands.notifications import STREAM
from headrace.commands.numbers import parse_integer
from headrace.commands.outcome import CHANGED, ZERO, Outcome
from headrace.commands.refusals import SYNTAX
from headrace.commands.spec import added, block, command, integer, key, many, oneof, optional, text, word
from headrace.commands.trimming import DELETE_REFERENCES, ONLY_ACKED, POLICIES, Trim, trim
from headrace.engine.ids import (
    name_of,
    parse_strict_id,
)
from headrace.engine.stream import Stream
from headrace.errors import CommandError
from headrace.journal.record import (
    DELETE,
    FORGET,
    encode_record,
)
from headrace.wire.encoder import (
    encode_array,
    encode_integer,
)


@command(
    "XDEL", key("RW DELETE"), many(text("id")),
    group="stream", flags="write fast", since="5.0.0", complexity="O(1) for each entry.",
    summary="Delete entries by ID.",
)  # fmt: skip
def xdel(ctx: Call, argv: list[bytes]) -> Outcome:
    """The reply counts those that were there. Pending references to them stay."""
    stream = ctx.find_stream(argv[1])
    if stream is None:
        return ZERO
    ids = [parse_strict_id(argument) for argument in argv[2:]]
    deleted = stream.delete(ids)
    if not deleted:
        return ZERO
    ctx.notify(STREAM, b"xdel", argv[1])
    return Outcome(encode_integer(len(deleted)), delete_record(ctx, argv[1], deleted, forgets=False))


def delete_record(ctx: Call, name: bytes, deleted: list[int], *, forgets: bool) -> bytes:
    if not ctx.journaling:
        return CHANGED
    names = [name_of(entry_id) for entry_id in deleted]
    record = encode_record(DELETE, ctx.db.number, name, *names)
    return record + encode_record(FORGET, ctx.db.number, name, *names) if forgets else record


def parse_ids_block(argv: list[bytes], index: int) -> tuple[int, list[bytes]]:
    """`[policy] IDS numids id…`, the policy before or behind: the policy and the IDs, not yet parsed.

    Quirk of Redis, kept: of several IDS the last one counts.
    """
    policy = -1
    ids: list[bytes] | None = None
    while index < len(argv):
        option = argv[index].upper()
        if option in POLICIES and policy < 0:
            policy = POLICIES[option]
            index += 1
        elif option == b"IDS" and index + 1 < len(argv):
            count = parse_integer(argv[index + 1], "ERR Number of IDs must be a positive integer")
            if count <= 0:
                raise CommandError("ERR Number of IDs must be a positive integer")
            if count > len(argv) - index - 2:
                raise CommandError("ERR The `numids` parameter must match the number of arguments")
            ids = argv[index + 2 : index + 2 + count]
            index += 2 + count
        else:
            raise CommandError(SYNTAX)
    if ids is None:
        raise CommandError("ERR IDS option is required")
    return max(0, policy), ids


@command(
    "XDELEX", key("RW DELETE"),
    optional(oneof("condition", word("KEEPREF"), word("DELREF"), word("ACKED"))),
    block("ids", integer("numids"), many(text("id")), token="IDS"),
    group="stream", flags="write fast", since="8.2.0", complexity="O(1) for each entry, times the groups.",
    summary="Delete entries by ID, with a say in what happens to pending references.",
)  # fmt: skip
def xdelex(ctx: Call, argv: list[bytes]) -> Outcome:
    """Per ID: 1 deleted, -1 not there, 2 kept because some group still needs it (ACKED)."""
    stream = ctx.find_stream(argv[1])
    policy, arguments = parse_ids_block(argv, 2)
    if stream is None:
        return Outcome(encode_array([encode_integer(-1)] * len(arguments)))
    ids = [parse_strict_id(argument) for argument in arguments]
    # References go also where the entry itself is gone already.
    forgets = policy == DELETE_REFERENCES and stream.forget([name_of(entry_id) for entry_id in ids])
    results: list[bytes] = []
    deleted: list[int] = []
    for entry_id in ids:
        result = delete_by_policy(stream, entry_id, policy)
        if result == 1:
            deleted.append(entry_id)
        results.append(encode_integer(result))
    if deleted:
        ctx.notify(STREAM, b"xdel", argv[1])
    record = delete_record(ctx, argv[1], ids if forgets else deleted, forgets=forgets) if deleted or forgets else None
    return Outcome(encode_array(results), record)


def delete_by_policy(stream: Stream, entry_id: int, policy: int) -> int:
    """1 deleted, -1 not there, 2 still needed. Needed is asked first, so an unknown ID ahead of a group answers 2."""
    if policy == ONLY_ACKED and stream.is_wanted(entry_id):
        return 2
    if policy == DELETE_REFERENCES:
        stream.forget([name_of(entry_id)])
    return 1 if stream.delete([entry_id]) else -1


@command(
    "XTRIM", key("RW DELETE"),
    block(
        "trim",
        oneof("strategy", word("MAXLEN"), added("6.2.0", word("MINID"))),
        optional(oneof("operator", word("=", "equal"), word("~", "approximately"))),
        text("threshold"),
        optional(added("6.2.0", integer("count", token="LIMIT"))),
        optional(oneof("condition", word("KEEPREF"), word("DELREF"), word("ACKED"))),
    ),
    group="stream", flags="write", since="5.0.0", complexity="O(N), N being the entries that go.",
    summary="Delete the oldest entries, by length or by ID.",
    tips="nondeterministic_output",
)  # fmt: skip
def xtrim(ctx: Call, argv: list[bytes]) -> Outcome:
    options = Trim()
    index = 2
    while index < len(argv):
        index = options.take(argv, index, argv[index].upper())
        if index < 0:
            raise CommandError(SYNTAX)
    options.finish(ctx, must_trim=True)
    stream = ctx.find_stream(argv[1])
    if stream is None:
        return ZERO
    removed, record = trim(ctx, argv[1], stream, options)
    return Outcome(encode_integer(removed), record) if removed else ZERO
