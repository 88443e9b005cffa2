"""What the steps of workers (HR.*) share: who owns a pending entry, and one step's changes to several keys.

A step looks all its keys up first, so that a key of another type refuses it before anything has changed. Its records
are joined: the journal keeps all of them or none.
"""

from typing import Final

from headrace.commands import hashes, sorted_sets
from headrace.commands.call import Call
from headrace.commands.groups import pending_names
from headrace.commands.hashes import find_hash
from headrace.commands.lists import find_list, new_list
from headrace.commands.notifications import GENERIC, HASH, LIST, SORTED_SET
from headrace.commands.outcome import CHANGED, Outcome
from headrace.commands.sorted_sets import find_sorted_set
from headrace.commands.streams import EXHAUSTED, append
from headrace.engine.delivery import Consumer, Delivery
from headrace.engine.group import Group
from headrace.engine.ids import MAX_PART
from headrace.engine.lists import LEFT, put_elements
from headrace.engine.stream import Stream
from headrace.errors import CommandError
from headrace.journal.record import PUSH, REMOVE, encode_record
from headrace.wire.encoder import encode_array, encode_integer

MOST: Final = 1000  # IDs in one call, so that none takes long. client/worker_steps.py cuts to the same number.
LAST_MS: Final = 2**53  # Times are scores of a sorted set: doubles, exact up to here.
SPARE_IDS: Final = 1 << 20  # More than the words of a command.
TOO_MANY: Final = f"ERR at most {MOST} IDs are possible in one call"


class Step:
    """One step as it goes: what it has done so far, as records, and the keys it has changed."""

    __slots__ = ("ctx", "records", "is_changed")

    def __init__(self, ctx: Call) -> None:
        self.ctx = ctx
        self.records: list[bytes] = []
        self.is_changed = False

    def note(self, key: bytes, record: bytes | None) -> None:
        """A key has changed, and this is the record of it."""
        if record is not None:
            self.is_changed = True
            if record:
                self.records.append(record)
            if self.ctx.state.watched:
                self.ctx.touch(key)

    def outcome(self, reply: bytes, wake: bytes | None = None) -> Outcome:
        if not self.is_changed:
            return Outcome(reply, None, wake)
        return Outcome(reply, b"".join(self.records) if self.ctx.journaling else CHANGED, wake)

    # Streams

    def add(self, key: bytes, words: list[bytes], start: int) -> None:
        """Add an entry of words[start:]; the stream is made where it is missing, and its readers wake up."""
        stream = self.ctx.find_stream(key)
        if stream is None:
            stream = self.ctx.new_stream(key)
        ms, seq = stream.next_id(self.ctx.now_ms)
        added = append(self.ctx, key, stream, ms, seq, words, start)
        self.note(key, added.record)
        self.ctx.wake(self.ctx.db.number, key)

    # Lists

    def push(self, key: bytes, side: bytes, elements: list[bytes]) -> None:
        """One after the other, at one end; the list is made where it is missing."""
        found = find_list(self.ctx, key)
        put_elements(found if found is not None else new_list(self.ctx, key), side, elements)
        self.note_pushed(key, side, elements)

    def note_pushed(self, key: bytes, side: bytes, elements: list[bytes]) -> None:
        ctx = self.ctx
        ctx.notify(LIST, b"lpush" if side == LEFT else b"rpush", key)
        ctx.state.changes += len(elements) - 1
        self.note(key, encode_record(PUSH, ctx.db.number, key, side, *elements) if ctx.journaling else CHANGED)

    # Any key

    def remove(self, key: bytes) -> None:
        """If it is there."""
        if self.ctx.find(key) is not None:
            self.ctx.db.delete(key)
            self.ctx.notify(GENERIC, b"del", key)
            self.note(key, encode_record(REMOVE, self.ctx.db.number, key) if self.ctx.journaling else CHANGED)

    # Sorted sets and hashes. Each is looked up anew: the last member takes its key along.

    def set_score(self, key: bytes, member: bytes, score: int) -> None:
        self.set_scores(key, [member], score)

    def set_scores(self, key: bytes, members: list[bytes], score: int) -> None:
        """The same for all of them."""
        found = sorted_sets.get_or_create(self.ctx, key, find_sorted_set(self.ctx, key))
        text = repr(float(score)).encode()
        words: list[bytes] = []
        for member in found.put_all(members, float(score)):
            words.append(member)
            words.append(text)
        self.ctx.notify(SORTED_SET, b"zadd", key)
        if words:
            self.note(key, sorted_sets.set_record(self.ctx, key, words))

    def remove_scores(self, key: bytes, gone: list[bytes]) -> None:
        """Those that are there go."""
        members = find_sorted_set(self.ctx, key)
        if members is not None:
            found = members.remove_all(gone)
            if found:
                self.note(key, sorted_sets.note_removed(self.ctx, key, members, found, b"zrem"))

    def set_fields(self, key: bytes, words: list[bytes]) -> None:
        """Fields and values follow one another."""
        hashes.set_fields(self.ctx, key, find_hash(self.ctx, key), words)
        self.ctx.notify(HASH, b"hset", key)
        self.note(key, hashes.set_record(self.ctx, key, words))

    def remove_fields(self, key: bytes, gone: list[bytes]) -> None:
        """Those that are there go."""
        fields = find_hash(self.ctx, key)
        if fields is not None:
            found = list(dict.fromkeys([field for field in gone if field in fields]))
            if found:
                self.note(key, hashes.remove_fields(self.ctx, key, fields, found))


def check_room(ctx: Call, key: bytes) -> None:
    """Entries could be added: the key is a stream or missing, and there are IDs left for as many as a step adds."""
    stream = ctx.find_stream(key)
    if stream is not None and stream.last_ms == MAX_PART and stream.last_seq > MAX_PART - SPARE_IDS:
        raise CommandError(EXHAUSTED)


class Holding:
    """A consumer and the IDs it names. Without the group or the consumer it holds none of them."""

    __slots__ = ("stream", "group", "consumer", "names")

    def __init__(self, stream: Stream, group: Group, consumer: Consumer, names: list[bytes]) -> None:
        self.stream = stream
        self.group = group
        self.consumer = consumer
        self.names = names

    def find(self, name: bytes) -> Delivery | None:
        """The delivery of an entry that is pending with this consumer."""
        delivery = self.group.pending.get(name)
        return delivery if delivery is not None and delivery.consumer is self.consumer else None


def find_consumer(ctx: Call, argv: list[bytes]) -> tuple[Stream | None, Group | None, Consumer | None]:
    """Stream, group and consumer, the words behind the command's name. The consumer has now been seen."""
    stream = ctx.find_stream(argv[1])
    group = stream.groups.get(argv[2]) if stream is not None else None
    consumer = group.consumers.get(argv[3]) if group is not None else None
    if consumer is not None:
        consumer.seen_ms = ctx.now_ms
    return stream, group, consumer


def find_holding(ctx: Call, argv: list[bytes]) -> Holding | None:
    """For `stream group consumer id…`. None when the consumer cannot hold anything."""
    if len(argv) - 4 > MOST:
        raise CommandError(TOO_MANY)
    stream, group, consumer = find_consumer(ctx, argv)
    names = pending_names(group if group is not None else NO_GROUP, argv[4:])
    if stream is None or group is None or consumer is None:
        return None
    return Holding(stream, group, consumer, names)


NO_GROUP: Final = Group(0, 0)
NO: Final = encode_integer(0)
YES: Final = encode_integer(1)


def all_zero(count: int) -> Outcome:
    """None of so many IDs is this consumer's."""
    return Outcome(encode_array([NO] * count))
