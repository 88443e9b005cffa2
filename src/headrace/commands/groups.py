"""Consuming through a group: XREADGROUP, XACK, XACKDEL."""

from typing import Final

from headrace.commands.call import Call
from headrace.commands.deleting import delete_by_policy, delete_record, parse_ids_block
from headrace.commands.notifications import STREAM
from headrace.commands.outcome import CHANGED, ZERO, Outcome
from headrace.commands.read_options import NO_CLAIM, ReadOptions, parse_read, wait
from headrace.commands.spec import block, command, integer, key, many, oneof, optional, text, word
from headrace.commands.trimming import DELETE_REFERENCES
from headrace.engine.delivery import MAX_DELIVERIES, Consumer
from headrace.engine.group import Group
from headrace.engine.ids import MAX_ID, name_of, parse_strict_id
from headrace.engine.stream import Stream
from headrace.engine.waiters import NO_TIME
from headrace.errors import CommandError
from headrace.journal.record import (
    ACK,
    ASSIGN,
    CREATE_CONSUMER,
    DELIVER,
    encode_record,
)
from headrace.wire.encoder import (
    encode_array,
    encode_array_header,
    encode_bulk,
    encode_integer,
    encode_map_header,
    encode_null_array,
)

LOOK_AGAIN_MS: Final = 50  # A waiting CLAIM looks no more often for what others were given meanwhile.
CREATE_WORDS: Final = 8  # At most, with all options once. Redis counts them after all other checks.
SETID_WORDS: Final = (5, 7)
KEY_REQUIRED: Final = (
    "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option "
    "to create an empty stream automatically."
)


def show(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def no_group(group: bytes, name: bytes) -> CommandError:
    return CommandError(f"NOGROUP No such consumer group '{show(group)}' for key name '{show(name)}'")


def find_group(ctx: Call, name: bytes, group: bytes) -> tuple[Stream, Group]:
    """For XPENDING, XCLAIM and their kin: both must be there."""
    stream = ctx.find_stream(name)
    found = stream.groups.get(group) if stream is not None else None
    if stream is None or found is None:
        raise CommandError(f"NOGROUP No such key '{show(name)}' or consumer group '{show(group)}'")
    return stream, found


def wrong_arguments(argv: list[bytes]) -> CommandError:
    return CommandError(
        f"ERR unknown subcommand or wrong number of arguments for '{show(argv[1])}'. Try {show(argv[0]).upper()} HELP."
    )


def consumer_record(ctx: Call, name: bytes, group: bytes, consumer: bytes) -> bytes:
    """A consumer appears: the record of it, and the event."""
    ctx.notify(STREAM, b"xgroup-createconsumer", name)
    if not ctx.journaling:
        return CHANGED
    return encode_record(CREATE_CONSUMER, ctx.db.number, name, group, consumer, b"%d" % ctx.now_ms)


# XREADGROUP


class Given:
    """What one XREADGROUP gives: replies per stream, and the records of it."""

    __slots__ = ("parts", "streams", "record", "is_changed", "due_ms")

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.streams = 0
        self.record = b""
        self.is_changed = False
        self.due_ms = NO_TIME  # When an entry could become claimable.


@command(
    "XREADGROUP",
    block("group-block", text("group"), text("consumer"), token="GROUP"),
    optional(integer("count", token="COUNT")),
    optional(integer("milliseconds", token="BLOCK")),
    optional(integer("min-idle-time", token="CLAIM")),
    optional(word("NOACK")),
    block("streams", many(key("RO ACCESS", keyword="STREAMS", keyword_start=4)), many(text("id")), token="STREAMS"),
    group="stream", flags="write blocking movablekeys", since="5.0.0",
    complexity="O(M) for each stream, M being the entries returned.",
    summary="Entries no consumer of the group has been given yet, or this consumer's own pending ones.",
)  # fmt: skip
def xreadgroup(ctx: Call, argv: list[bytes]) -> Outcome:
    """`>` gives new entries, which become pending with the consumer. Any other ID gives the consumer's own pending
    entries behind it, at once. CLAIM gives entries first that were pending with anybody for so long.
    """
    options = parse_read(argv, "xreadgroup")
    groups = check_groups(ctx, options)
    given = Given()
    for index in range(len(options.keys)):
        name = options.keys[index]
        stream, group = groups[index]
        consumer = get_consumer(ctx, name, options, group, given)
        if options.ids[index] != b">":
            give_history(ctx, name, stream, group, consumer, options.ids[index], options, given)
            options.claim_idle_ms = NO_CLAIM  # Quirk of Redis, kept: history ends CLAIM for the streams behind it too.
        elif options.claim_idle_ms == NO_CLAIM:
            give_new(ctx, name, stream, group, consumer, options, given)
        else:
            give_claimed(ctx, name, stream, group, consumer, options, given)
    record = given.record if given.is_changed else None
    if given.streams:
        header = encode_map_header(given.streams, resp3=True) if ctx.resp3 else encode_array_header(given.streams)
        return Outcome(header + b"".join(given.parts), record)
    if options.block_ms < 0 or not ctx.may_block:
        return Outcome(encode_null_array(resp3=ctx.resp3), record)
    wait(ctx, argv, options, given.due_ms)
    return Outcome(b"", record)


def check_groups(ctx: Call, options: ReadOptions) -> list[tuple[Stream, Group]]:
    """Every stream must have the group, and every ID must be right, before anything is given."""
    found: list[tuple[Stream, Group]] = []
    for index in range(len(options.keys)):
        name = options.keys[index]
        stream = ctx.find_stream(name)
        group = stream.groups.get(options.group) if stream is not None else None
        if stream is None or group is None:
            raise CommandError(
                f"NOGROUP No such key '{show(name)}' or consumer group '{show(options.group)}' "
                "in XREADGROUP with GROUP option"
            )
        argument = options.ids[index]
        if argument in (b"$", b"+"):
            sign = argument.decode()
            raise CommandError(
                f"ERR The {sign} ID is meaningless in the context of XREADGROUP: you want to read the history of this "
                "consumer by specifying a proper ID, or use the > ID to get new messages. "
                f"The {sign} ID would just return an empty result set."
            )
        if argument != b">" and parse_strict_id(argument) == MAX_ID:
            options.ids[index] = b">"  # Quirk of Redis, kept: the highest ID there is stands for it.
        found.append((stream, group))
    return found


def get_consumer(ctx: Call, name: bytes, options: ReadOptions, group: Group, given: Given) -> Consumer:
    """The consumer appears by itself at first mention, also when nothing is given to it."""
    if options.consumer not in group.consumers:
        given.is_changed = True
        given.record += consumer_record(ctx, name, options.group, options.consumer)
    return group.get_consumer(options.consumer, ctx.now_ms)


def add_stream(ctx: Call, given: Given, name: bytes, count: int, entries: list[bytes]) -> None:
    given.streams += 1
    if not ctx.resp3:
        given.parts.append(b"*2\r\n")
    given.parts.append(encode_bulk(name))
    given.parts.append(encode_array_header(count))
    given.parts += entries


def give_new(
    ctx: Call, name: bytes, stream: Stream, group: Group, consumer: Consumer, options: ReadOptions, given: Given
) -> None:
    entries = deliver(ctx, name, stream, group, consumer, options, options.count, given)
    if entries:
        add_stream(ctx, given, name, len(entries), entries)


def deliver(
    ctx: Call, name: bytes, stream: Stream, group: Group, consumer: Consumer, options: ReadOptions, count: int,
    given: Given,
) -> list[bytes]:  # fmt: skip
    """Give the group's next entries to the consumer. The journal needs only how many: replay reads the same ones."""
    names, entries = stream.read_new(group, count)
    if not names:
        return entries
    stream.count_read(group, names)
    if not options.acks_at_once:
        group.deliver(consumer, names, ctx.now_ms)
        consumer.active_ms = ctx.now_ms
    given.is_changed = True
    if ctx.journaling:
        flag = b"0" if options.acks_at_once else b"1"
        parts = (name, options.group, options.consumer, b"%d" % ctx.now_ms, b"%d" % len(names), flag)
        given.record += encode_record(DELIVER, ctx.db.number, *parts)
    return entries


def give_history(
    ctx: Call, name: bytes, stream: Stream, group: Group, consumer: Consumer, after: bytes, options: ReadOptions,
    given: Given,
) -> None:  # fmt: skip
    """The consumer's own pending entries. Reading them counts as a delivery, as in Redis: idle restarts.

    Redis does not count it as a change, so the record goes to the journal on its own.
    """
    names = group.pending_between(parse_strict_id(after) + 1, MAX_ID, options.count, consumer)
    entries = stream.entries_at(names)
    replies: list[bytes] = []
    present: list[bytes] = []
    for entry_name, entry in zip(names, entries, strict=True):
        if entry is None:
            replies.append(b"*2\r\n" + encode_bulk(entry_name) + encode_null_array(resp3=ctx.resp3))
        else:
            replies.append(entry)
            present.append(entry_name)
    record = assign_again(ctx, name, options.group, group, consumer, present)
    if record:
        ctx.state.records.append(record)
    add_stream(ctx, given, name, len(replies), replies)


def assign_again(
    ctx: Call, name: bytes, group_name: bytes, group: Group, consumer: Consumer, names: list[bytes]
) -> bytes:
    """Entries are delivered once more, to this consumer, now. Neighbours with the same count share one delivery."""
    record = b""
    start = 0
    while start < len(names):
        count = group.pending[names[start]].count
        end = start + 1
        while end < len(names) and group.pending[names[end]].count == count:
            end += 1
        run = names[start:end]
        count = min(count + 1, MAX_DELIVERIES)
        group.assign(consumer, run, ctx.now_ms, count)
        if ctx.journaling:
            record += assign_record(ctx, name, group_name, consumer.name, ctx.now_ms, count, run)
        start = end
    return record


def assign_record(
    ctx: Call, name: bytes, group: bytes, consumer: bytes, time_ms: int, count: int, names: list[bytes]
) -> bytes:
    return encode_record(ASSIGN, ctx.db.number, name, group, consumer, b"%d" % time_ms, b"%d" % count, *names)


def give_claimed(
    ctx: Call, name: bytes, stream: Stream, group: Group, consumer: Consumer, options: ReadOptions, given: Given
) -> None:
    """CLAIM: first what has been idle for long enough, longest first, then new entries. Four elements each.

    Entries that are gone from the stream are passed over and stay pending. NOACK does not touch claimed entries.
    """
    idle_ms = options.claim_idle_ms
    names, replies = find_idle(ctx, stream, group, idle_ms, options.count)
    if names:
        given.record += assign_again(ctx, name, options.group, group, consumer, names)
        given.is_changed = True
        consumer.active_ms = ctx.now_ms
    if options.count == 0 or len(names) < options.count:
        left = options.count - len(names) if options.count else 0
        for entry in deliver(ctx, name, stream, group, consumer, options, left, given):
            replies.append(b"*4\r\n" + entry[4:] + b":0\r\n:0\r\n")
    if replies:
        add_stream(ctx, given, name, len(replies), replies)
    else:
        # Whatever is delivered from now on is not due before now + idle; what is pending may be due earlier.
        oldest_ms = group.first_time_after(ctx.now_ms - idle_ms)
        due_ms = ctx.now_ms + max(LOOK_AGAIN_MS, idle_ms)
        if oldest_ms >= 0:
            due_ms = min(due_ms, oldest_ms + idle_ms)
        given.due_ms = due_ms if given.due_ms == NO_TIME else min(given.due_ms, due_ms)


def find_idle(ctx: Call, stream: Stream, group: Group, idle_ms: int, count: int) -> tuple[list[bytes], list[bytes]]:
    """Names and replies of entries pending for at least idle_ms, at most count (0: all)."""
    found: list[bytes] = []
    replies: list[bytes] = []
    most = count  # Names looked at together; more and more, because what is gone is looked at in vain.
    for delivery in group.idle_deliveries(ctx.now_ms - idle_ms):
        if delivery.is_gone:
            continue
        has_any = False
        idle = encode_integer(ctx.now_ms - delivery.time_ms if delivery.consumer is not None else -1)
        tail = idle + encode_integer(delivery.count)
        names, place = group.names_from(delivery, 0, most or len(delivery.names))
        while names:
            for name, entry in zip(names, stream.entries_at(names), strict=True):
                if entry is None:
                    continue
                has_any = True
                found.append(name)
                replies.append(b"*4\r\n" + entry[4:] + tail)
                if len(found) == count:
                    return found, replies
            most *= 2
            names, place = group.names_from(delivery, place, most or len(delivery.names))
        delivery.is_gone = not has_any
    return found, replies


# Acknowledging


def pending_names(group: Group, arguments: list[bytes]) -> list[bytes]:
    """IDs as sent -> names. A pending one is found as it is; only the others are parsed, all before any change."""
    unfolded = group.pending.unfolded
    names: list[bytes] = []
    for argument in arguments:
        names.append(argument if argument in unfolded else name_of(parse_strict_id(argument)))
    return names


@command(
    "XACK", key("RW UPDATE"), text("group"), many(text("id")),
    group="stream", flags="write fast", since="5.0.0", complexity="O(1) for each ID.",
    summary="Tell a group that entries have been processed.",
)  # fmt: skip
def xack(ctx: Call, argv: list[bytes]) -> Outcome:
    """Entries that are not pending are skipped, so repeating an XACK is harmless.

    A missing key or group answers 0 before the IDs are looked at, as Redis does.
    """
    stream = ctx.find_stream(argv[1])
    group = stream.groups.get(argv[2]) if stream is not None else None
    if group is None:
        return ZERO
    acked = group.ack(pending_names(group, argv[3:]))
    if not acked:
        return ZERO
    record = encode_record(ACK, ctx.db.number, argv[1], argv[2], *acked) if ctx.journaling else CHANGED
    return Outcome(encode_integer(len(acked)), record)


@command(
    "XACKDEL", key("RW DELETE UPDATE"), text("group"),
    optional(oneof("condition", word("KEEPREF"), word("DELREF"), word("ACKED"))),
    block("ids", integer("numids"), many(text("id")), token="IDS"),
    group="stream", flags="write fast", since="8.2.0", complexity="O(1) for each ID, times the groups.",
    summary="Tell a group that entries have been processed, and delete them.",
)  # fmt: skip
def xackdel(ctx: Call, argv: list[bytes]) -> Outcome:
    """Per ID: 1 acknowledged and deleted, -1 not pending here, 2 acknowledged but kept for another group (ACKED)."""
    stream = ctx.find_stream(argv[1])
    policy, arguments = parse_ids_block(argv, 3)
    group = stream.groups.get(argv[2]) if stream is not None else None
    if stream is None or group is None:
        return Outcome(encode_array([encode_integer(-1)] * len(arguments)))
    ids = [parse_strict_id(argument) for argument in arguments]
    results: list[bytes] = []
    acked: list[bytes] = []
    deleted: list[int] = []
    for entry_id in ids:
        name = name_of(entry_id)
        if not group.ack([name]):
            results.append(encode_integer(-1))
            continue
        acked.append(name)
        if delete_by_policy(stream, entry_id, policy) == 2:
            results.append(encode_integer(2))
        else:
            deleted.append(entry_id)
            results.append(encode_integer(1))
    if not acked:
        return Outcome(encode_array(results))
    if deleted:
        ctx.state.touch(ctx.db.number, argv[1])
        ctx.notify(STREAM, b"xdel", argv[1])
    record = CHANGED
    if ctx.journaling:
        record = encode_record(ACK, ctx.db.number, argv[1], argv[2], *acked)
        if deleted:
            record += delete_record(ctx, argv[1], deleted, forgets=policy == DELETE_REFERENCES)
    return Outcome(encode_array(results), record)
