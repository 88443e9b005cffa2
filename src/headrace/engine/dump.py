"""Any stored value as bytes that stand for themselves: DUMP, RESTORE, COPY and the journal's `put` records.

Layout. A payload is `HRD1`, then fields, then the CRC-32 (4 bytes, big-endian) of everything before it. A field is its
length in decimal, a colon, and that many bytes; numbers are fields in decimal. The first field names the type:

    string   text
    list     how many, then each from the left
    hash     how many fields, then each with its value
    set      how many, then each in byte order
    zset     how many, then each with its score, in their order; a score as Python writes it
    stream   last ID, entries ever added, highest deleted ID,
             nodes: how many, entries and bytes that still fit into the last one;
                 each: lowest ID, highest ID deleted from its end, sizes of its entries, the entries joined
             idempotence: 0, or 1, duration, size, added, duplicates, producers: name, records: message, entry ID
             publish ids: how many, each: id, entry ID, time; oldest first
             groups: name, last ID, entries read, whether entries may repeat,
                 consumers: name, last seen, last active
                 deliveries by time: the consumer's place (-1: released), time, count, pending IDs
    reliableq  queue_dump.py says

    e.g. the list (a, bc):   HRD1 4:list 1:2 1:a 2:bc, without the blanks, and four bytes of checksum

Lists of IDs and of sizes are one field each, joined by commas. A payload is valid when its checksum is right and every
field is what stands here; entries are checked byte by byte, because they will be sent to clients as they are. Dumping
what was loaded gives the same bytes again. A payload is as long as its value: the limit is that of a bulk string.
"""

import re
import zlib
from collections import deque
from math import inf, isnan, nan
from typing import Final

from headrace.engine.delivery import MAX_DELIVERIES, NEVER, Consumer, Delivery
from headrace.engine.group import Group
from headrace.engine.idempotence import Idempotence
from headrace.engine.ids import MAX_PART, id_of, name_of
from headrace.engine.keyspace import Stored
from headrace.engine.node import Node
from headrace.engine.payload import (
    LONGEST_NUMBER,
    MAX_NUMBER,
    MIN_NUMBER,
    Reader,
    checked_id,
    put_fields,
    put_numbers,
)
from headrace.engine.publish_ids import ID_BITS, ID_MASK, PublishIds
from headrace.engine.queue_dump import load_queue, put_queue
from headrace.engine.reliable_queue import ReliableQueue
from headrace.engine.shelf import NodeLimits
from headrace.engine.sorted_set import SortedSet
from headrace.engine.stream import UNKNOWN, UNPACKED_NODES, Stream

MAGIC: Final = b"HRD1"
CHECKSUM_BYTES: Final = 4
PLAIN_NAME: Final = rb"(?:0|[1-9]\d{0,18})-(?:0|[1-9]\d{0,18})"  # Of an ID whose halves are surely below 2**64.
PLAIN_NAMES: Final = re.compile(PLAIN_NAME + b"(?:," + PLAIN_NAME + b")*+")
LONGEST_SCORE: Final = 24  # -1.7976931348623157e+308
PIECES: Final = 10_000  # So many small pieces of a dump are joined: each takes 40 bytes besides its own.


def dump_value(value: Stored) -> bytes:
    """The value as a payload."""
    parts: list[bytes] = [MAGIC]
    put_value(parts, value)
    body = b"".join(parts)
    return body + zlib.crc32(body).to_bytes(CHECKSUM_BYTES, "big")


def put_value(parts: list[bytes], value: Stored) -> None:
    """Its type and what it holds."""
    if isinstance(value, bytes):
        put_fields(parts, [b"string", value])
    elif isinstance(value, deque):
        put_fields(parts, [b"list", b"%d" % len(value), *value])
    elif isinstance(value, dict):
        put_fields(parts, [b"hash", b"%d" % len(value)])
        for field, text in value.items():
            put_fields(parts, [field, text])
    elif isinstance(value, set):
        put_fields(parts, [b"set", b"%d" % len(value), *sorted(value)])
    elif isinstance(value, SortedSet):
        put_fields(parts, [b"zset", b"%d" % len(value)])
        for score, member in value.pairs(0, len(value)):
            put_fields(parts, [member, repr(score).encode()])
    elif isinstance(value, Stream):
        put_fields(parts, [b"stream"])
        put_stream(parts, value)
    elif isinstance(value, ReliableQueue):
        put_fields(parts, [b"reliableq"])
        put_queue(parts, value)
    else:
        raise TypeError(f"no payload for {type(value).__name__}")


def is_intact(payload: bytes) -> bool:
    """Whether it is one of our payloads and its checksum is right."""
    body = payload[:-CHECKSUM_BYTES]
    return payload.startswith(MAGIC) and payload[-CHECKSUM_BYTES:] == zlib.crc32(body).to_bytes(CHECKSUM_BYTES, "big")


def load_value(payload: bytes, limits: NodeLimits) -> Stored:
    """The value of a payload. ValueError when it is damaged or not what the layout says."""
    if not is_intact(payload):
        raise ValueError("not a headrace payload, or its checksum is wrong")
    reader = Reader(payload, len(MAGIC), len(payload) - CHECKSUM_BYTES)
    value = load_kind(reader.text(), reader, limits)
    reader.finish()
    return value


def load_kind(kind: bytes, reader: Reader, limits: NodeLimits) -> Stored:
    """What a value of this type holds."""
    if kind == b"string":
        return reader.text()
    if kind == b"list":
        return deque(reader.texts())
    if kind == b"hash":
        return load_hash(reader)
    if kind == b"set":
        members = reader.texts()
        if members != sorted(set(members)):
            raise ValueError("a set with repeated or unsorted members")
        return set(members)
    if kind == b"zset":
        return load_sorted_set(reader)
    if kind == b"stream":
        return load_stream(reader, limits)
    if kind == b"reliableq":
        return load_queue(reader)
    raise ValueError(f"unknown type {kind!r}")


# Writing


def put_stream(parts: list[bytes], stream: Stream) -> None:
    added = min(stream.entries_added, MAX_NUMBER)
    put_fields(parts, [name_of(stream.last_id), b"%d" % added, name_of(stream.max_deleted)])
    nodes = stream.nodes
    put_numbers(parts, [len(nodes), stream.room, stream.room_bytes])
    for node in nodes:
        put_node(parts, node)
    put_beside(parts, stream)


def put_node(parts: list[bytes], node: Node) -> None:
    put_fields(parts, [name_of(node.first), name_of(node.deleted_tail), sizes_of(node), node.joined()])


def sizes_of(node: Node) -> bytes:
    if node.entries is not None:
        return b",".join([b"%d" % len(entry) for entry in node.entries])
    _, offsets = node.plain()
    return b",".join([b"%d" % (offsets[index + 1] - offsets[index]) for index in range(node.count)])


def put_beside(parts: list[bytes], stream: Stream) -> None:
    """What a stream has beside its entries."""
    put_idempotence(parts, stream.idempotence)
    put_publish_ids(parts, stream.publish_ids)
    put_numbers(parts, [len(stream.groups)])
    for name, group in stream.groups.items():
        put_group(parts, name, group)


def put_idempotence(parts: list[bytes], known: Idempotence | None) -> None:
    if known is None:
        put_numbers(parts, [0])
        return
    put_numbers(parts, [1, known.duration_s, known.max_size, known.added, known.duplicates, len(known.producers)])
    for producer, records in known.producers.items():
        put_fields(parts, [producer, b"%d" % len(records)])
        for message, entry_id in records.items():
            put_fields(parts, [message, name_of(entry_id)])


def put_publish_ids(parts: list[bytes], known: PublishIds | None) -> None:
    if known is None:
        put_numbers(parts, [0])
        return
    put_numbers(parts, [len(known.records)])
    for publish_id, record in known.records.items():
        put_fields(parts, [publish_id, name_of(record & ID_MASK), b"%d" % (record >> ID_BITS)])


def put_group(parts: list[bytes], name: bytes, group: Group) -> None:
    put_fields(parts, [name, name_of(group.last_id)])
    put_numbers(parts, [min(group.entries_read, MAX_NUMBER), int(group.may_repeat), len(group.consumers)])
    places: dict[bytes, int] = {}
    for consumer in group.consumers.values():
        places[consumer.name] = len(places)
        put_fields(parts, [consumer.name, b"%d" % consumer.seen_ms, b"%d" % consumer.active_ms])
    joined: list[bytes] = []
    deliveries: list[bytes] = []
    count = 0
    names: list[bytes] = []
    last: Delivery | None = None
    group.part_mixed()
    for filed in group.deliveries:
        for delivery in group.pending.parts_of(filed) if filed.left else ():
            if last is not None and not is_alike(last, delivery):
                put_delivery(deliveries, places, last, names)
                count += 1
                names = []
                if len(deliveries) > PIECES:
                    joined.append(b"".join(deliveries))
                    deliveries = []
            last = delivery
            names += group.pending.names_of(delivery)
    if last is not None:
        put_delivery(deliveries, places, last, names)
        count += 1
    put_numbers(parts, [count])
    parts += joined
    parts += deliveries


def is_alike(one: Delivery, other: Delivery) -> bool:
    """Neighbours that differ in nothing but their names are one, however they were made: so equal groups dump alike."""
    return one.consumer is other.consumer and one.time_ms == other.time_ms and one.count == other.count


def put_delivery(parts: list[bytes], places: dict[bytes, int], delivery: Delivery, names: list[bytes]) -> None:
    owner = delivery.consumer
    put_numbers(parts, [-1 if owner is None else places[owner.name], delivery.time_ms, delivery.count])
    put_fields(parts, [b",".join(names)])


# Reading


def load_hash(reader: Reader) -> dict[bytes, bytes]:
    fields: dict[bytes, bytes] = {}
    count = reader.number(1)
    for _ in range(count):
        field = reader.text()
        fields[field] = reader.text()
    if len(fields) != count:
        raise ValueError("a hash with repeated fields")
    return fields


def load_sorted_set(reader: Reader) -> SortedSet:
    scores: dict[bytes, float] = {}
    highest = (-inf, b"")
    for _ in range(reader.number(1)):
        member = reader.text()
        text = reader.text()
        score = float(text) if len(text) <= LONGEST_SCORE else nan
        if isnan(score) or repr(score).encode() != text:
            raise ValueError(f"{text[:LONGEST_SCORE]!r} is not a score")
        if member in scores or (score, member) < highest:
            raise ValueError("a sorted set with repeated or unsorted members")
        highest = (score, member)
        scores[member] = score
    return SortedSet(scores)


def load_stream(reader: Reader, limits: NodeLimits) -> Stream:
    stream = Stream(limits)
    last_id = reader.entry_id()
    stream.last_ms = last_id >> 64
    stream.last_seq = last_id & MAX_PART
    stream.entries_added = reader.number(0, MAX_NUMBER)
    stream.max_deleted = reader.entry_id()
    nodes = reader.number()
    stream.room = reader.number(MIN_NUMBER) if nodes else reader.number(0, 0)
    stream.room_bytes = reader.number(MIN_NUMBER)
    highest = -1
    for left in range(nodes - 1, -1, -1):
        highest = load_node(reader, stream, highest, seals=left > 0)
    if highest > last_id:
        raise ValueError("an entry behind the stream's last ID")
    if stream.length > stream.entries_added:
        raise ValueError("more entries than were ever added")
    if stream.nodes:
        stream.hold_tail()
    for node in stream.nodes[: -UNPACKED_NODES - 1]:
        node.pack()
    stream.refresh_first_id()
    load_beside(reader, stream)
    return stream


def load_beside(reader: Reader, stream: Stream) -> None:
    """What put_beside wrote."""
    stream.idempotence = load_idempotence(reader)
    stream.publish_ids = load_publish_ids(reader)
    for _ in range(reader.number()):
        name = reader.text()
        if name in stream.groups:
            raise ValueError("two groups of one name")
        stream.groups[name] = load_group(reader)


def load_node(reader: Reader, stream: Stream, highest: int, *, seals: bool) -> int:
    """One node behind those that are there, with all IDs above `highest`. Its own highest ID."""
    node = Node(reader.entry_id())
    if node.first <= highest and highest >= 0:
        raise ValueError("nodes out of order")
    node.deleted_tail = reader.entry_id()
    sizes = [int(size) for size in reader.text().split(b",")]
    blob = reader.text()
    highest = max(highest, node.first - 1, 0)  # No entry has the ID 0-0.
    names: list[bytes] = []
    entries: list[bytes] = []
    start = 0
    for size in sizes:
        entry = blob[start : start + size]
        name = check_entry(entry)
        entry_id = checked_id(name)
        if entry_id <= highest:
            raise ValueError(f"entry {name!r} is out of order")
        names.append(name)
        entries.append(entry)
        highest = entry_id
        start += size
    if start != len(blob):
        raise ValueError("the sizes of a node's entries do not add up")
    node.names = names
    node.entries = entries
    if seals:
        node.seal()
    stream.nodes.append(node)
    stream.length += node.count
    return highest


def check_entry(entry: bytes) -> bytes:
    """The name in a stored entry, after making sure that it is one: an ID and a flat array of bulk strings."""
    if not entry.startswith(b"*2\r\n$"):
        raise ValueError("an entry that does not begin as one")
    name, position = read_bulk(entry, 4)
    count, position = read_length(entry, position, 42)  # *
    if count % 2 or count < 2:
        raise ValueError("an entry whose fields and values are not pairs")
    for _ in range(count):
        _, position = read_bulk(entry, position)
    if position != len(entry):
        raise ValueError("bytes left over behind an entry")
    return name


def read_bulk(entry: bytes, position: int) -> tuple[bytes, int]:
    size, start = read_length(entry, position, 36)  # $
    end = start + size
    if entry[end : end + 2] != b"\r\n":
        raise ValueError("a word of an entry does not end where it should")
    return entry[start:end], end + 2


def read_length(entry: bytes, position: int, mark: int) -> tuple[int, int]:
    line_end = entry.find(b"\r\n", position, position + LONGEST_NUMBER)
    if line_end < 0 or entry[position] != mark:
        raise ValueError("an entry is not in the protocol's form")
    digits = entry[position + 1 : line_end]
    if not digits.isdigit() or (len(digits) > 1 and digits[:1] == b"0"):
        raise ValueError("an entry is not in the protocol's form")
    return int(digits), line_end + 2


def load_idempotence(reader: Reader) -> Idempotence | None:
    if not reader.flag():
        return None
    known = Idempotence(reader.number(1, MAX_NUMBER), reader.number(1, MAX_NUMBER))
    known.added = reader.number(0, MAX_NUMBER)
    known.duplicates = reader.number(0, MAX_NUMBER)
    for _ in range(reader.number()):
        producer = reader.text()
        records: dict[bytes, int] = {}
        for _ in range(reader.number()):
            message = reader.text()
            records[message] = reader.entry_id()
        known.producers[producer] = records
    return known


def load_publish_ids(reader: Reader) -> PublishIds | None:
    count = reader.number()
    if count == 0:
        return None
    known = PublishIds()
    for _ in range(count):
        publish_id = reader.text()
        if publish_id in known.records:
            raise ValueError("two records of one publish id")
        entry_id = reader.entry_id()
        known.add(publish_id, entry_id, reader.number(), 0)
    return known


def load_group(reader: Reader) -> Group:
    group = Group(reader.entry_id(), reader.number(UNKNOWN, MAX_NUMBER))
    group.may_repeat = reader.flag()
    consumers: list[Consumer] = []
    for _ in range(reader.number()):
        consumer = Consumer(reader.text(), reader.number(0, MAX_NUMBER))
        consumer.active_ms = reader.number(NEVER, MAX_NUMBER)
        if consumer.name in group.consumers:
            raise ValueError("two consumers of one name")
        group.consumers[consumer.name] = consumer
        consumers.append(consumer)
    earliest_ms = 0
    for _ in range(reader.number()):
        place = reader.number(-1)
        if place >= len(consumers):
            raise ValueError("a delivery to a consumer that is not there")
        time_ms = reader.number(0, MAX_NUMBER)
        if time_ms < earliest_ms:
            raise ValueError("deliveries out of order")
        earliest_ms = time_ms
        owner = consumers[place] if place >= 0 else None
        load_delivery(group, owner, time_ms, reader.number(0, MAX_DELIVERIES), reader.text())
    return group


def load_delivery(group: Group, owner: Consumer | None, time_ms: int, count: int, joined: bytes) -> None:
    """Pending names. There may be a million of them, so they are looked at together where that is possible."""
    names = joined.split(b",")
    if not PLAIN_NAMES.fullmatch(joined):
        for name in names:
            checked_id(name)
    if not group.may_repeat and max([id_of(name) for name in names]) > group.last_id:
        raise ValueError("an entry is pending and not delivered yet")
    delivery = Delivery(owner, time_ms, count, names)
    before = len(group.pending)
    is_known = len(group.pending.folds) > 0 and any([name in group.pending for name in names])
    group.pending.give(delivery)
    if is_known or len(group.pending) != before + len(names):
        raise ValueError("an entry is pending twice")
    group.deliveries.append(delivery)
    if owner is None:
        group.released += len(names)
    else:
        owner.deliveries.append(delivery)
    if len(group.pending.unfolded) > group.pending.most:
        group.fold_old()
