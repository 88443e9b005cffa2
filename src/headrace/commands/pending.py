"""Pending entries: looking at them (XPENDING) and giving them to somebody else (XCLAIM, XAUTOCLAIM, XNACK)."""

from typing import Final

from headrace.commands.call import Call
from headrace.commands.groups import assign_record, consumer_record, find_group, pending_names, show
from headrace.commands.numbers import parse_integer
from headrace.commands.outcome import CHANGED, EMPTY_ARRAY, Outcome
from headrace.commands.refusals import SYNTAX
from headrace.commands.spec import added, block, command, integer, key, many, oneof, optional, text, unix_time, word
from headrace.engine.delivery import MAX_DELIVERIES, Consumer, Delivery
from headrace.engine.group import RELEASED_MS, Group
from headrace.engine.ids import MAX_ID, id_of, name_of, parse_range_end, parse_range_start, parse_strict_id
from headrace.engine.stream import Stream
from headrace.errors import CommandError
from headrace.journal.record import ACK, RELEASE, SET_GROUP, encode_record
from headrace.wire.encoder import (
    encode_array,
    encode_bulk,
    encode_integer,
    encode_null,
    encode_null_array,
)

AUTOCLAIM_COUNT: Final = 100
AUTOCLAIM_SCAN: Final = 10  # Entries looked at per entry asked for, as Redis does.
MAX_COUNT: Final = 2**63 - 1


# XPENDING


@command(
    "XPENDING", key("RO ACCESS"), text("group"),
    optional(
        block(
            "filters",
            optional(added("6.2.0", integer("min-idle-time", token="IDLE"))),
            text("start"), text("end"), integer("count"), optional(text("consumer")),
        )
    ),
    group="stream", flags="readonly", since="5.0.0",
    complexity="O(log(N)+M), N being the pending entries, M those returned; without a range O(C), C being consumers.",
    summary="What a group has been given and has not acknowledged.",
    tips="nondeterministic_output",
)  # fmt: skip
def xpending(ctx: Call, argv: list[bytes]) -> Outcome:
    if len(argv) == 3:
        _, group = find_group(ctx, argv[1], argv[2])
        return Outcome(summarise(ctx, group))
    if len(argv) < 6 or len(argv) > 9:
        raise CommandError(SYNTAX)
    at = 3
    min_idle_ms = 0
    if argv[3].upper() == b"IDLE":
        min_idle_ms = parse_integer(argv[4])
        if len(argv) < 8:
            raise CommandError(SYNTAX)
        at = 5
    count = max(0, parse_integer(argv[at + 2]))
    start = parse_range_start(argv[at])
    end = parse_range_end(argv[at + 1])
    _, group = find_group(ctx, argv[1], argv[2])
    consumer: Consumer | None = None
    if len(argv) > at + 3:  # Quirk of Redis, kept: words behind the consumer are not looked at.
        consumer = group.consumers.get(argv[at + 3])
        if consumer is None:
            return EMPTY_ARRAY
    if count == 0:
        return EMPTY_ARRAY
    return Outcome(list_pending(ctx, group, start, end, count, consumer, min_idle_ms))


def summarise(ctx: Call, group: Group) -> bytes:
    """Total, lowest ID, highest ID, and how many per consumer; the counts are bulk strings, as in Redis."""
    total = encode_integer(len(group.pending))
    if not group.pending:
        null = encode_null(resp3=ctx.resp3)
        return encode_array([total, null, null, encode_null_array(resp3=ctx.resp3)])
    lowest, highest = group.edges()
    consumers: list[bytes] = []
    for name in sorted(group.consumers):
        count = group.consumers[name].count_pending()
        if count:
            consumers.append(encode_array([encode_bulk(name), encode_bulk(b"%d" % count)]))
    return encode_array([total, encode_bulk(lowest), encode_bulk(highest), encode_array(consumers)])


def list_pending(
    ctx: Call, group: Group, start: int, end: int, count: int, consumer: Consumer | None, min_idle_ms: int
) -> bytes:
    names = group.pending_between(start, end, 0 if min_idle_ms > 0 else count, consumer)
    rows: list[bytes] = []
    for name in names:
        delivery = group.pending[name]
        idle_ms = idle_of(ctx, delivery)
        if min_idle_ms > 0 and 0 <= idle_ms < min_idle_ms:
            continue
        owner = encode_bulk(delivery.consumer.name if delivery.consumer is not None else b"")
        rows.append(encode_array([encode_bulk(name), owner, encode_integer(idle_ms), encode_integer(delivery.count)]))
        if len(rows) == count:
            break
    return encode_array(rows)


def idle_of(ctx: Call, delivery: Delivery) -> int:
    """Milliseconds since the delivery; -1 for an entry that was given back."""
    if delivery.consumer is None:
        return -1
    return max(0, ctx.now_ms - delivery.time_ms)


# XCLAIM


class Claim:
    """One claiming command: what to set, what it takes, and the records of it."""

    __slots__ = (
        "name", "group_name", "stream", "group", "consumer", "min_idle_ms", "time_ms", "count", "only_ids", "replies",
        "record", "is_changed", "run", "run_names", "run_count",
    )  # fmt: skip

    def __init__(self, ctx: Call, name: bytes, group_name: bytes, stream: Stream, group: Group) -> None:
        self.name = name
        self.group_name = group_name
        self.stream = stream
        self.group = group
        self.consumer: Consumer | None = None
        self.min_idle_ms = 0
        self.time_ms = ctx.now_ms
        self.count = -1  # RETRYCOUNT.
        self.only_ids = False
        self.replies: list[bytes] = []
        self.record = b""
        self.is_changed = False
        self.run: list[bytes] = []  # Neighbours that share one delivery, not yet assigned.
        self.run_names: set[bytes] = set()
        self.run_count = 0

    def start(self, ctx: Call, consumer: bytes) -> None:
        """The consumer appears by itself, also when it gets nothing."""
        if consumer not in self.group.consumers:
            self.is_changed = True
            self.record += consumer_record(ctx, self.name, self.group_name, consumer)
        self.consumer = self.group.get_consumer(consumer, ctx.now_ms)

    def take(self, ctx: Call, name: bytes, entry: bytes, count: int) -> None:
        """Claim one entry that has been delivered `count` times."""
        if self.count >= 0:
            count = self.count
        elif not self.only_ids:
            count = min(count + 1, MAX_DELIVERIES)
        if self.run and self.run_count != count:
            self.assign_run(ctx)
        self.run.append(name)
        self.run_names.add(name)
        self.run_count = count
        self.replies.append(encode_bulk(name) if self.only_ids else entry)
        self.is_changed = True
        assert self.consumer is not None
        self.consumer.active_ms = ctx.now_ms

    def drop(self, ctx: Call, name: bytes) -> None:
        """The entry is gone from the stream: it is pending no longer."""
        self.group.ack([name])
        self.is_changed = True
        if ctx.journaling:
            self.record += encode_record(ACK, ctx.db.number, self.name, self.group_name, name)

    def assign_run(self, ctx: Call) -> None:
        if not self.run:
            return
        assert self.consumer is not None
        self.group.assign(self.consumer, self.run, self.time_ms, self.run_count)
        if ctx.journaling:
            self.record += assign_record(
                ctx, self.name, self.group_name, self.consumer.name, self.time_ms, self.run_count, self.run
            )
        self.run = []
        self.run_names = set()


@command(
    "XCLAIM", key("RW UPDATE"), text("group"), text("consumer"), text("min-idle-time"), many(text("id")),
    optional(integer("ms", token="IDLE")), optional(unix_time("unix-time-milliseconds", token="TIME")),
    optional(integer("count", token="RETRYCOUNT")), optional(word("FORCE")), optional(word("JUSTID")),
    optional(text("lastid", token="LASTID")),
    group="stream", flags="write fast", since="5.0.0", complexity="O(log N) for each ID.",
    summary="Take over pending entries by ID, if they have been idle for long enough.",
    tips="nondeterministic_output",
)  # fmt: skip
def xclaim(ctx: Call, argv: list[bytes]) -> Outcome:
    """Claiming restarts the idle time and adds a delivery; JUSTID leaves the count alone."""
    stream, group = find_group(ctx, argv[1], argv[2])
    claim = Claim(ctx, argv[1], argv[2], stream, group)
    claim.min_idle_ms = max(0, parse_integer(argv[4], "ERR Invalid min-idle-time argument for XCLAIM"))
    ids: list[int] = []
    index = 5
    while index < len(argv):
        try:
            ids.append(parse_strict_id(argv[index]))
        except CommandError:
            break
        index += 1
    is_forced = False
    last_id = 0
    while index < len(argv):
        option = argv[index].upper()
        has_value = index + 1 < len(argv)
        if option == b"FORCE":
            is_forced = True
        elif option == b"JUSTID":
            claim.only_ids = True
        elif option in (b"IDLE", b"TIME", b"RETRYCOUNT") and has_value:
            error = f"ERR Invalid {option.decode()} option argument for XCLAIM"
            number = parse_integer(argv[index + 1], error)
            if option == b"IDLE":
                claim.time_ms = ctx.now_ms - number
            elif option == b"TIME":
                claim.time_ms = number
            else:
                claim.count = number
            index += 1
        elif option == b"LASTID" and has_value:
            last_id = parse_strict_id(argv[index + 1])
            index += 1
        else:
            raise CommandError(f"ERR Unrecognized XCLAIM option '{show(argv[index])}'")
        index += 1
    if last_id > group.last_id:
        group.last_id = last_id
        claim.is_changed = True
        if ctx.journaling:
            parts = (argv[1], argv[2], name_of(last_id), b"%d" % group.entries_read)
            claim.record += encode_record(SET_GROUP, ctx.db.number, *parts)
    if not 0 <= claim.time_ms <= ctx.now_ms:
        claim.time_ms = ctx.now_ms
    claim.start(ctx, argv[3])
    for entry_id in ids:
        claim_one(ctx, claim, entry_id, is_forced=is_forced)
    claim.assign_run(ctx)
    record = claim.record if claim.is_changed else None
    # A claim with an old time may be due at once for somebody who waits with CLAIM.
    wake = argv[1] if claim.time_ms != ctx.now_ms else None
    return Outcome(encode_array(claim.replies), record, wake)


def claim_one(ctx: Call, claim: Claim, entry_id: int, *, is_forced: bool) -> None:
    name = name_of(entry_id)
    if name in claim.run_names:
        claim.assign_run(ctx)
    delivery = claim.group.pending.get(name)
    entry = claim.stream.find(entry_id)
    if entry is None:
        if delivery is not None:
            claim.drop(ctx, name)
        return
    if delivery is None:
        if is_forced:
            # Quirk of Redis, kept: a forced entry counts as delivered once before the claim.
            claim.take(ctx, name, entry, 1)
        return
    if delivery.consumer is not None and claim.min_idle_ms and ctx.now_ms - delivery.time_ms < claim.min_idle_ms:
        return
    claim.take(ctx, name, entry, delivery.count)


@command(
    "XAUTOCLAIM", key("RW DELETE"), text("group"), text("consumer"), text("min-idle-time"), text("start"),
    optional(integer("count", token="COUNT")), optional(word("JUSTID")),
    group="stream", flags="write fast", since="6.2.0", complexity="O(1) if COUNT is small.",
    summary="Take over pending entries that have been idle for long enough, a few at a time.",
    tips="nondeterministic_output",
)  # fmt: skip
def xautoclaim(ctx: Call, argv: list[bytes]) -> Outcome:
    """The reply: where to go on (0-0 at the end), the entries, and the IDs that were dropped because they are gone."""
    min_idle_ms = max(0, parse_integer(argv[4], "ERR Invalid min-idle-time argument for XAUTOCLAIM"))
    start = parse_range_start(argv[5])
    count = AUTOCLAIM_COUNT
    only_ids = False
    index = 6
    while index < len(argv):
        option = argv[index].upper()
        if option == b"COUNT" and index + 1 < len(argv):
            count = parse_integer(argv[index + 1], "ERR COUNT must be > 0")
            if not 0 < count <= MAX_COUNT // AUTOCLAIM_SCAN // 16:
                raise CommandError("ERR COUNT must be > 0")
            index += 2
        elif option == b"JUSTID":
            only_ids = True
            index += 1
        else:
            raise CommandError(SYNTAX)
    stream, group = find_group(ctx, argv[1], argv[2])
    claim = Claim(ctx, argv[1], argv[2], stream, group)
    claim.min_idle_ms = min_idle_ms
    claim.only_ids = only_ids
    claim.start(ctx, argv[3])
    cursor, deleted = scan_and_claim(ctx, claim, start, count)
    reply = [encode_bulk(cursor), encode_array(claim.replies), encode_array([encode_bulk(name) for name in deleted])]
    return Outcome(encode_array(reply), claim.record if claim.is_changed else None)


def scan_and_claim(ctx: Call, claim: Claim, start: int, count: int) -> tuple[bytes, list[bytes]]:
    """Look at no more than 10 x count pending entries, by ID. Where to go on, and the names that were dropped."""
    group = claim.group
    attempts = count * AUTOCLAIM_SCAN
    names = group.pending_between(start, MAX_ID, attempts + 1, None)
    deleted: list[bytes] = []
    cursor = b"0-0"
    if len(names) > attempts:
        cursor = names.pop()
    entries = claim.stream.entries_at(names) if len(names) <= 2 * count else []
    for index, name in enumerate(names):
        if count == 0:
            cursor = name
            break
        delivery = group.pending[name]
        is_idle = delivery.consumer is None or ctx.now_ms - delivery.time_ms >= claim.min_idle_ms
        entry = entries[index] if entries else claim.stream.find(id_of(name))
        if entry is None:
            claim.drop(ctx, name)
            deleted.append(name)
            count -= 1
        elif is_idle or not claim.min_idle_ms:
            claim.take(ctx, name, entry, delivery.count)
            count -= 1
    claim.assign_run(ctx)
    return cursor, deleted


# XNACK

NACK_MODES: Final = (b"SILENT", b"FAIL", b"FATAL")


@command(
    "XNACK", key("RW UPDATE"), text("group"),
    oneof("mode", word("SILENT"), word("FAIL"), word("FATAL")),
    block("ids", integer("numids"), many(text("id")), token="IDS"),
    optional(integer("count", token="RETRYCOUNT")), optional(word("FORCE")),
    group="stream", flags="write fast", since="8.8.0", complexity="O(1) for each ID.",
    summary="Give pending entries back to the group without acknowledging them.",
)  # fmt: skip
def xnack(ctx: Call, argv: list[bytes]) -> Outcome:
    """Nobody owns them then, and any claim may take them at once, before all others.

    SILENT takes the delivery off the count, FAIL leaves it, FATAL sets it to the highest number there is.
    """
    stream = ctx.find_stream(argv[1])
    group = stream.groups.get(argv[2]) if stream is not None else None
    if stream is None or group is None:
        raise CommandError(f"NOGROUP No such key '{show(argv[1])}' or consumer group '{show(argv[2])}'")
    mode = argv[3].upper()
    if mode not in NACK_MODES:
        raise CommandError("ERR mode must be SILENT, FAIL, or FATAL")
    arguments, count, is_forced = parse_nack(argv)
    names = pending_names(group, arguments)
    released = 0
    record = b""
    for name in names:
        delivery = group.pending.get(name)
        if delivery is not None:
            before = delivery.count
        elif is_forced and stream.find(id_of(name)) is not None:
            before = 0
        else:
            continue
        after = count if count >= 0 else nack_count(mode, before, is_new=delivery is None)
        group.assign(None, [name], RELEASED_MS, after)
        released += 1
        if ctx.journaling:
            record += encode_record(RELEASE, ctx.db.number, argv[1], argv[2], b"%d" % after, name)
    if not released:
        return Outcome(encode_integer(0))
    return Outcome(encode_integer(released), record or CHANGED, argv[1])


def nack_count(mode: bytes, before: int, *, is_new: bool) -> int:
    if is_new:
        return 0
    if mode == b"SILENT":
        return max(0, before - 1)
    return MAX_DELIVERIES if mode == b"FATAL" else before


def parse_nack(argv: list[bytes]) -> tuple[list[bytes], int, bool]:
    """The IDs, RETRYCOUNT (-1: not given) and FORCE; options may stand before or behind the IDs."""
    ids: list[bytes] | None = None
    count = -1
    is_forced = False
    index = 4
    while index < len(argv):
        option = argv[index].upper()
        if option == b"IDS" and ids is None and index + 1 < len(argv):
            number = parse_integer(argv[index + 1], "ERR numids must be a positive integer")
            if number <= 0:
                raise CommandError("ERR numids must be a positive integer")
            if number > len(argv) - index - 2:
                raise CommandError("ERR number of IDs doesn't match numids")
            ids = argv[index + 2 : index + 2 + number]
            index += 2 + number
        elif option == b"RETRYCOUNT" and index + 1 < len(argv):
            count = parse_integer(argv[index + 1])
            if count < 0:
                raise CommandError("ERR Invalid RETRYCOUNT")
            index += 2
        elif option == b"FORCE":
            is_forced = True
            index += 1
        elif ids is None:
            raise CommandError("ERR expected IDS keyword")
        else:
            raise CommandError("ERR Unrecognized XNACK option")
    if ids is None:
        raise CommandError("ERR expected IDS keyword")
    for argument in ids:
        parse_strict_id(argument)
    return ids, count, is_forced
