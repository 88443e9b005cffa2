"""XINFO: what a stream, its groups and its consumers look like from inside."""

from headrace.commands.call import Call
from headrace.commands.groups import no_group, wrong_arguments
from headrace.commands.help import help_reply
from headrace.commands.numbers import MAX_INTEGER, parse_integer
from headrace.commands.outcome import Outcome
from headrace.commands.refusals import NO_SUCH_KEY
from headrace.commands.spec import block, command, container, integer, key, optional, text, word
from headrace.engine.delivery import Consumer
from headrace.engine.group import Group
from headrace.engine.ids import MAX_ID, name_of
from headrace.engine.stream import UNKNOWN, Stream
from headrace.errors import CommandError
from headrace.wire.encoder import encode, encode_array, encode_bulk, encode_integer, encode_map_header, encode_null

FULL_COUNT = 10  # Entries and pending entries that FULL shows unless told otherwise.

container("XINFO", group="stream", since="5.0.0", summary="Commands that look into a stream.")


def get_stream(ctx: Call, name: bytes) -> Stream:
    stream = ctx.find_stream(name)
    if stream is None:
        raise CommandError(NO_SUCH_KEY)
    return stream


def pairs(ctx: Call, items: list[tuple[str, bytes]]) -> bytes:
    """A map of names and values that are encoded already."""
    parts = [encode_map_header(len(items), resp3=ctx.resp3)]
    for name, value in items:
        parts.append(encode_bulk(name.encode()))
        parts.append(value)
    return b"".join(parts)


@command(
    "XINFO STREAM", key("RO ACCESS"),
    optional(block("full-block", word("FULL"), optional(integer("count", token="COUNT")))),
    group="stream", flags="readonly", since="5.0.0", complexity="O(1); O(N) with FULL, N being what it shows.",
    summary="A stream's length, IDs and counters; with FULL also entries, groups and pending entries.",
)  # fmt: skip
def xinfo_stream(ctx: Call, argv: list[bytes]) -> Outcome:
    """The key is looked up before the options are read, as in Redis; a negative COUNT counts as none given."""
    stream = get_stream(ctx, argv[2])
    is_full = False
    count = FULL_COUNT
    if len(argv) > 3:
        if argv[3].upper() != b"FULL" or len(argv) not in (4, 6):
            raise wrong_arguments(argv)
        is_full = True
        if len(argv) == 6:
            if argv[4].upper() != b"COUNT":
                raise wrong_arguments(argv)
            count = parse_integer(argv[5])
            if count < 0:
                count = FULL_COUNT
    if is_full:
        return Outcome(pairs(ctx, describe(ctx, stream) + describe_fully(ctx, stream, count)))
    first, last = edge_entries(ctx, stream)
    items = describe(ctx, stream)
    items += [("groups", encode_integer(len(stream.groups))), ("first-entry", first), ("last-entry", last)]
    return Outcome(pairs(ctx, items))


def describe(ctx: Call, stream: Stream) -> list[tuple[str, bytes]]:
    """What the plain and the full form share. Our nodes stand for the keys of Redis's radix tree."""
    settings = ctx.state.settings
    seen = stream.idempotence
    if seen is not None:
        seen.expire(ctx.now_ms)
    return [
        ("length", encode_integer(stream.length)),
        ("radix-tree-keys", encode_integer(len(stream.nodes))),
        ("radix-tree-nodes", encode_integer(len(stream.nodes) + 1)),
        ("last-generated-id", encode_bulk(name_of(stream.last_id))),
        ("max-deleted-entry-id", encode_bulk(name_of(stream.max_deleted))),
        ("entries-added", number_or_null(ctx, stream.entries_added)),
        ("recorded-first-entry-id", encode_bulk(name_of(stream.first_id))),
        ("idmp-duration", encode_integer(seen.duration_s if seen is not None else settings.idmp_duration_s)),
        ("idmp-maxsize", encode_integer(seen.max_size if seen is not None else settings.idmp_max_size)),
        ("pids-tracked", encode_integer(len(seen.producers) if seen is not None else 0)),
        ("iids-tracked", encode_integer(seen.count_records() if seen is not None else 0)),
        ("iids-added", encode_integer(seen.added if seen is not None else 0)),
        ("iids-duplicates", encode_integer(seen.duplicates if seen is not None else 0)),
    ]


def edge_entries(ctx: Call, stream: Stream) -> tuple[bytes, bytes]:
    if stream.length == 0:
        null = encode_null(resp3=ctx.resp3)
        return null, null
    _, first = stream.read_range(0, MAX_ID, 1)
    _, last = stream.read_range_backwards(0, MAX_ID, 1)
    return first[0], last[0]


def describe_fully(ctx: Call, stream: Stream, count: int) -> list[tuple[str, bytes]]:
    found, pieces = stream.read_range(0, MAX_ID, count)
    groups = [describe_group_fully(ctx, stream, name, count) for name in sorted(stream.groups)]
    return [("entries", b"*%d\r\n" % found + b"".join(pieces)), ("groups", encode_array(groups))]


def number_or_null(ctx: Call, number: int | None) -> bytes:
    """Counters can be set to the highest number a reply can hold; what is counted from there on is not shown."""
    return encode_null(resp3=ctx.resp3) if number is None else encode_integer(min(number, MAX_INTEGER))


def entries_read(ctx: Call, group: Group) -> bytes:
    return number_or_null(ctx, group.entries_read if group.entries_read != UNKNOWN else None)


def describe_group_fully(ctx: Call, stream: Stream, name: bytes, count: int) -> bytes:
    group = stream.groups[name]
    pending: list[bytes] = []
    for entry_name in group.pending_between(0, MAX_ID, count, None):
        delivery = group.pending[entry_name]
        owner = delivery.consumer.name if delivery.consumer is not None else b""
        pending.append(encode([entry_name, owner, delivery.time_ms, delivery.count], resp3=ctx.resp3))
    consumers = [describe_consumer_fully(ctx, group, group.consumers[each], count) for each in sorted(group.consumers)]
    items = [
        ("name", encode_bulk(name)),
        ("last-delivered-id", encode_bulk(name_of(group.last_id))),
        ("entries-read", entries_read(ctx, group)),
        ("lag", number_or_null(ctx, stream.lag_of(group))),
        ("pel-count", encode_integer(len(group.pending))),
    ]
    if group.released:
        items.append(("nacked-count", encode_integer(group.released)))
    items += [("pending", encode_array(pending)), ("consumers", encode_array(consumers))]
    return pairs(ctx, items)


def describe_consumer_fully(ctx: Call, group: Group, consumer: Consumer, count: int) -> bytes:
    pending: list[bytes] = []
    for entry_name in group.pending_between(0, MAX_ID, count, consumer):
        delivery = group.pending[entry_name]
        pending.append(encode([entry_name, delivery.time_ms, delivery.count], resp3=ctx.resp3))
    return pairs(
        ctx,
        [
            ("name", encode_bulk(consumer.name)),
            ("seen-time", encode_integer(consumer.seen_ms)),
            ("active-time", encode_integer(consumer.active_ms)),
            ("pel-count", encode_integer(consumer.count_pending())),
            ("pending", encode_array(pending)),
        ],
    )


@command(
    "XINFO GROUPS", key("RO ACCESS"),
    group="stream", flags="readonly", since="5.0.0", complexity="O(1) for each group.",
    summary="The groups of a stream: consumers, pending entries, position and lag.",
)  # fmt: skip
def xinfo_groups(ctx: Call, argv: list[bytes]) -> Outcome:
    stream = get_stream(ctx, argv[2])
    groups: list[bytes] = []
    for name in sorted(stream.groups):
        group = stream.groups[name]
        groups.append(
            pairs(
                ctx,
                [
                    ("name", encode_bulk(name)),
                    ("consumers", encode_integer(len(group.consumers))),
                    ("pending", encode_integer(len(group.pending))),
                    ("last-delivered-id", encode_bulk(name_of(group.last_id))),
                    ("entries-read", entries_read(ctx, group)),
                    ("lag", number_or_null(ctx, stream.lag_of(group))),
                ],
            )
        )
    return Outcome(encode_array(groups))


@command(
    "XINFO CONSUMERS", key("RO ACCESS"), text("group"),
    group="stream", flags="readonly", since="5.0.0", complexity="O(1) for each consumer.",
    summary="The consumers of a group: pending entries, and when they were last seen and active.",
    tips="nondeterministic_output",
)  # fmt: skip
def xinfo_consumers(ctx: Call, argv: list[bytes]) -> Outcome:
    stream = get_stream(ctx, argv[2])
    group = stream.groups.get(argv[3])
    if group is None:
        raise no_group(argv[3], argv[2])
    consumers: list[bytes] = []
    for name in sorted(group.consumers):
        consumer = group.consumers[name]
        inactive_ms = max(0, ctx.now_ms - consumer.active_ms) if consumer.active_ms >= 0 else -1
        consumers.append(
            pairs(
                ctx,
                [
                    ("name", encode_bulk(name)),
                    ("pending", encode_integer(consumer.count_pending())),
                    ("idle", encode_integer(max(0, ctx.now_ms - consumer.seen_ms))),
                    ("inactive", encode_integer(inactive_ms)),
                ],
            )
        )
    return Outcome(encode_array(consumers))


@command(
    "XINFO HELP", group="stream", flags="loading stale", since="5.0.0", complexity="O(1)", summary="What XINFO can do.",
)  # fmt: skip
def xinfo_help(ctx: Call, argv: list[bytes]) -> Outcome:
    return help_reply(
        "XINFO",
        [
            "CONSUMERS <key> <group>",
            "    The consumers of a group.",
            "GROUPS <key>",
            "    The groups of a stream.",
            "STREAM <key> [FULL [COUNT <count>]]",
            "    The stream itself; with FULL also entries, groups and pending entries.",
        ],
    )
