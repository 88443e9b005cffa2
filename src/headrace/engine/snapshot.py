"""A key as it is at one moment, as bytes for a checkpoint: a *part*. Large streams are only referred to.

Layout. A part is fields as in payload.py: numbers in decimal, IDs as they are written:

    part1, database, key, sequence of the last journal frame whose effects it holds, CRC-32 of the fields so far,
    expiry (0: never), then one of
    absent    the key did not exist
    a type    and what dump.py says, but of streams; members of sets in any order
    stream    last ID, entries ever added, highest deleted ID, ID of the first entry (0-0: none),
              placed nodes: one field, a row of 52 bytes each, numbers little-endian:
                  lowest ID (8 + 8), highest ID deleted from its end (8 + 8), how many entries (4),
                  its place: segment (4), offset (8), size (4)
              whether there is an open last node, and if so that node as in dump.py
              entries and bytes that still fit into the last node, entries that fit into the next one (0: as usual)
              idempotence, publish ids and groups as in dump.py

    e.g. the string `tea` in database 0 under `a`, without the blanks:

        5:part1 1:0 1:a 2:17 10:3119303716 1:0 6:string 3:tea

A part is valid when every field is what stands here. The frame around it has a checksum; that of the first fields is
there so that a damaged part can still say whose it was (`find_head`). What a place holds is looked at when its node is
fetched for the first time (shelf.py), so loading a stream costs nothing for the entries on disk.

Saving a stream places every node that has no place yet and is not the open last one. That is the long part of it for a
large stream: `place_nodes` does it beforehand, some at a time.
"""

import struct
import zlib
from collections.abc import Callable
from typing import Final

from headrace.engine.dump import load_beside, load_kind, load_node, put_beside, put_node, put_value
from headrace.engine.ids import MAX_PART, name_of
from headrace.engine.keyspace import Stored
from headrace.engine.node import Node
from headrace.engine.payload import MAX_NUMBER, MIN_NUMBER, Reader, put_fields, put_numbers
from headrace.engine.shelf import NOWHERE, NodeLimits, Place, encode_node, join_place, segment_of, split_place
from headrace.engine.stream import Stream

VERSION: Final = b"part1"
ROW: Final = struct.Struct("<QQQQIIQI")
DATABASES: Final = 16
NONE: Final[frozenset[int]] = frozenset()
ALL: Final = 2**62

PlaceNode = Callable[[bytes], Place]


class Part:
    """A key as it was."""

    __slots__ = ("database", "key", "value", "expires_ms", "sequence", "places")

    def __init__(self, database: int, key: bytes, sequence: int) -> None:
        self.database = database
        self.key = key
        self.value: Stored | None = None  # None: it did not exist.
        self.expires_ms = 0
        self.sequence = sequence  # Of the last journal frame whose effects it holds.
        self.places: list[Place] = []  # Of its stored nodes.


# Writing


def dump_part(
    database: int,
    key: bytes,
    value: Stored,
    expires_ms: int,
    sequence: int,
    place: PlaceNode,
    leaving: frozenset[int] = NONE,
) -> bytes:
    """A key and its value. Nodes without a place get one, and so do those in the segments that are to be left."""
    parts: list[bytes] = []
    put_head(parts, database, key, sequence)
    put_numbers(parts, [expires_ms])
    if isinstance(value, Stream):
        place_nodes(value, place, leaving)
        put_fields(parts, [b"stream"])
        put_stream(parts, value)
    else:
        put_value(parts, value)
    return b"".join(parts)


def absent_part(database: int, key: bytes, sequence: int) -> bytes:
    """A key that does not exist any more."""
    parts: list[bytes] = []
    put_head(parts, database, key, sequence)
    put_fields(parts, [b"0", b"absent"])
    return b"".join(parts)


def put_head(parts: list[bytes], database: int, key: bytes, sequence: int) -> None:
    put_fields(parts, [VERSION, b"%d" % database, key, b"%d" % sequence])
    put_numbers(parts, [zlib.crc32(b"".join(parts))])


def place_nodes(value: Stored, place: PlaceNode, leaving: frozenset[int] = NONE, most_bytes: int = ALL) -> bool:
    """Give nodes of a stream a place, until most_bytes of entries have one. Whether all have. True for other types."""
    if not isinstance(value, Stream):
        return True
    placed = 0
    nodes = value.nodes
    for index, node in enumerate(nodes):
        if node.place != NOWHERE and (not leaving or segment_of(node.place) not in leaving):
            continue
        if node.names is not None:
            if index == len(nodes) - 1:
                break
            node.seal()  # Opened by deletion.
            if node in value.opened:
                value.opened.remove(node)
        if placed >= most_bytes:
            return False
        entries = node.plain()
        segment, offset, size = place(encode_node(entries))
        node.place = join_place(segment, offset, size)
        placed += len(entries[0])
    return True


def places_of(value: Stored) -> list[Place]:
    """Where the placed nodes of a stream lie. Nothing for other types."""
    if not isinstance(value, Stream):
        return []
    return [split_place(node.place) for node in value.nodes if node.place != NOWHERE]


def put_stream(parts: list[bytes], stream: Stream) -> None:
    added = min(stream.entries_added, MAX_NUMBER)
    put_fields(parts, [name_of(stream.last_id), b"%d" % added, name_of(stream.max_deleted), name_of(stream.first_id)])
    nodes = stream.nodes
    has_tail = bool(nodes) and nodes[-1].names is not None
    placed = nodes[:-1] if has_tail else nodes
    put_fields(parts, [b"".join([encode_row(node) for node in placed]), b"%d" % has_tail])
    if has_tail:
        put_node(parts, nodes[-1])
    put_numbers(parts, [stream.room, stream.room_bytes, stream.spared_room])
    put_beside(parts, stream)


def encode_row(node: Node) -> bytes:
    segment, offset, size = split_place(node.place)
    first = node.first
    deleted = node.deleted_tail
    return ROW.pack(
        first >> 64, first & MAX_PART, deleted >> 64, deleted & MAX_PART, node.sealed_count, segment, offset, size
    )


# Reading


def load_part(payload: bytes, limits: NodeLimits) -> Part:
    """The key and value of a part; stored nodes will be fetched by `limits`. ValueError when it is not one."""
    reader = Reader(payload, 0, len(payload))
    part = load_head(reader)
    part.expires_ms = reader.number(0, MAX_NUMBER)
    kind = reader.text()
    if kind == b"stream":
        part.value = load_stream(reader, limits, part.places)
    elif kind == b"set":
        part.value = load_set(reader)
    elif kind != b"absent":
        part.value = load_kind(kind, reader, limits)
    elif part.expires_ms:
        raise ValueError("a key that is absent and expires")
    reader.finish()
    return part


def load_head(reader: Reader) -> Part:
    version = reader.text()
    if version != VERSION:
        raise ValueError(f"not a part of a checkpoint: {version[:16]!r}")
    database = reader.number(0, DATABASES - 1)
    key = reader.text()
    part = Part(database, key, reader.number(0, MAX_NUMBER))
    head = reader.data[: reader.position]
    if reader.number() != zlib.crc32(head):
        raise ValueError("the checksum of its first fields is wrong")
    return part


def find_head(payload: bytes) -> tuple[int, bytes] | None:
    """Database and key of a damaged part; None when they are damaged too."""
    try:
        part = load_head(Reader(payload, 0, len(payload)))
    except ValueError:
        return None
    return part.database, part.key


def load_set(reader: Reader) -> set[bytes]:
    members = reader.texts()
    found = set(members)
    if len(found) != len(members):
        raise ValueError("a set with repeated members")
    return found


def load_stream(reader: Reader, limits: NodeLimits, places: list[Place]) -> Stream:
    stream = Stream(limits)
    last_id = reader.entry_id()
    stream.last_ms = last_id >> 64
    stream.last_seq = last_id & MAX_PART
    stream.entries_added = reader.number(0, MAX_NUMBER)
    stream.max_deleted = reader.entry_id()
    first_id = reader.entry_id()
    highest = load_rows(stream, reader.text(), places)
    has_tail = reader.flag()
    if has_tail:
        highest = load_node(reader, stream, highest, seals=False)
        stream.hold_tail()
    stream.room = reader.number(MIN_NUMBER, MAX_NUMBER if has_tail else 0)
    stream.room_bytes = reader.number(MIN_NUMBER)
    stream.spared_room = reader.number(0, 0 if stream.nodes else MAX_NUMBER)
    if highest > last_id:
        raise ValueError("an entry behind the stream's last ID")
    if stream.length > stream.entries_added:
        raise ValueError("more entries than were ever added")
    stream.first_id = first_id
    check_first_id(stream)
    load_beside(reader, stream)
    return stream


def load_rows(stream: Stream, rows: bytes, places: list[Place]) -> int:
    """The placed nodes. An ID that all behind them are above; -1 without nodes."""
    if len(rows) % ROW.size:
        raise ValueError("the rows of a stream's nodes are not whole")
    highest = -1
    for ms, seq, deleted_ms, deleted_seq, count, segment, offset, size in ROW.iter_unpack(rows):
        node = Node(ms << 64 | seq)
        if node.first <= highest:
            raise ValueError("nodes out of order")
        if count == 0:
            raise ValueError("a node without entries")
        highest = node.first
        node.deleted_tail = deleted_ms << 64 | deleted_seq
        node.sealed_count = count
        node.names = None
        node.entries = None
        node.place = join_place(segment, offset, size)
        node.shelf = stream.limits
        stream.nodes.append(node)
        stream.length += count
        places.append((segment, offset, size))
    return highest


def check_first_id(stream: Stream) -> None:
    """The first entry's ID must lie in the first node."""
    nodes = stream.nodes
    first_id = stream.first_id
    if not nodes:
        fits = first_id == 0
    elif nodes[0].shelf is None:
        fits = first_id == nodes[0].first_id()
    else:
        following = nodes[1].first if len(nodes) > 1 else stream.last_id + 1
        fits = nodes[0].first <= first_id < following
    if not fits:
        raise ValueError(f"{name_of(first_id)!r} is not the ID of the first entry")
