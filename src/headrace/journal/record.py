"""The layout of a journal record.

A record is one effect, with IDs and times filled in, as an array of the Redis protocol:

    [kind, database, key, …]        e.g.  [append, 0, orders, [1690275391705-0, [item, tea]]]

Its parts are bytes that exist already: `append` ends with the stored entry itself, so writing it copies and encodes
nothing, and reading it back need not take it apart. Records are simply joined; hiredis reads the others. A record is
valid when it is such an array whose kind `commands/apply.py` knows. Frames, checksums and files are the writer's
business.

**A record is about one key**, the one it names: applying it looks at no other and changes no other. So a key can be
saved at any moment, and the records of others do not matter to it. The structural ones are the exception.
"""

from typing import Any, Final

from headrace.wire.encoder import encode_array_header, encode_bulk
from headrace.wire.replies import ValueReader

APPEND = b"append"  # key, entry
TRIM = b"trim"  # key, ID below which everything goes
DELETE = b"delete"  # key, IDs: entries deleted one by one
CUT = b"cut"  # key, MINID or 0-0, IDs: entries trimmed one by one
FORGET = b"forget"  # key, IDs: no group has them pending any more
SET_ID = b"setid"  # key, last ID, entries added, highest deleted ID
CREATE_STREAM = b"stream"  # key
CREATE_GROUP = b"group"  # key, group, last ID, entries read
SET_GROUP = b"group-setid"  # key, group, last ID, entries read
DESTROY_GROUP = b"group-destroy"  # key, group
CREATE_CONSUMER = b"consumer"  # key, group, consumer, time
DELETE_CONSUMER = b"consumer-delete"  # key, group, consumer
DELIVER = b"deliver"  # key, group, consumer, time, how many, 1 when they become pending
ASSIGN = b"assign"  # key, group, consumer, time, deliveries, IDs
RELEASE = b"release"  # key, group, deliveries, IDs
ACK = b"ack"  # key, group, IDs
SEEN_BEFORE = b"idmp"  # key, producer, message, entry ID
PUBLISH_ID = b"publish-id"  # key, publish id, entry ID, time, how many of the oldest go
PUBLISHED = b"published"  # key, publish id, entry ID: what a delayed message has become
IDEMPOTENCE = b"idmp-config"  # key, duration, size
PUT = b"put"  # key, dumped value, expiry: any value as a whole
REMOVE = b"remove"  # key
PUSH = b"push"  # key, left or right, values in the order they were pushed
POP = b"pop"  # key, left or right, how many; an emptied list goes
LIST_SET = b"list-set"  # key, place, element
LIST_INSERT = b"list-insert"  # key, the place where it went, element
LIST_REMOVE = b"list-remove"  # key, count as LREM takes it, element; an emptied list goes
LIST_TURN = b"list-turn"  # key, the end that gives an element, the end that gets it
SET_ADD = b"set-add"  # key, members
SET_REMOVE = b"set-remove"  # key, members; an emptied set goes
SCORE_SET = b"zset-set"  # key, members and scores in turn; a score as Python writes it
SCORE_REMOVE = b"zset-remove"  # key, members; an emptied sorted set goes
HASH_SET = b"hash-set"  # key, fields and values in turn
HASH_REMOVE = b"hash-remove"  # key, fields; an emptied hash goes
QUEUE_PUSH = b"rq-push"  # key, first ID, bodies
QUEUE_PUSH_WITH = b"rq-pushx"  # key, first ID, ready at, expires at, retry, most deliveries, dead letter key, bodies
QUEUE_DELIVER = b"rq-deliver"  # key, time, how many were taken, IDs of those that were buried instead
QUEUE_REDELIVER = b"rq-redeliver"  # key, time, how many of those delivered longest ago
QUEUE_BURY = b"rq-bury"  # key, IDs: delivered elements that go
QUEUE_ACK = b"rq-ack"  # key, IDs
QUEUE_GIVE_BACK = b"rq-nack"  # key, ready at (0: at once), IDs
QUEUE_RESTART = b"rq-extend"  # key, time, IDs
QUEUE_PAUSE = b"rq-pause"  # key, whether it takes in, whether it gives out; created when missing
QUEUE_ADVANCE = b"rq-advance"  # key, time up to which everything came due
RENAME = b"rename"  # key, new key
EXPIRE = b"expire"  # key, time (0: never)
CLEAR = b"clear"  # the whole database
SWAP = b"swap"  # other database
MOVE = b"move"  # key, other database


# About more than one key: how many parts each has.
STRUCTURAL = {RENAME: 4, CLEAR: 2, SWAP: 3, MOVE: 4}
STRUCTURAL_HEADS = tuple([encode_array_header(size) + encode_bulk(kind) for kind, size in STRUCTURAL.items()])


def encode_record(kind: bytes, database: int, *parts: bytes) -> bytes:
    """A record of bulk strings."""
    words = [encode_bulk(part) for part in parts]
    return encode_array_header(2 + len(words)) + encode_bulk(kind) + encode_bulk(b"%d" % database) + b"".join(words)


def encode_head(kind: bytes, database: int, parts: int) -> bytes:
    """How a record with so many parts begins: for those who write many alike."""
    return encode_array_header(2 + parts) + encode_bulk(kind) + encode_bulk(b"%d" % database)


APPEND_START: Final = b"*4\r\n$6\r\nappend\r\n"
APPEND_HEADS = [APPEND_START + encode_bulk(b"%d" % number) for number in range(16)]


def encode_append(database: int, key: bytes, entry: bytes) -> bytes:
    """The record of an added entry, from the entry as it is stored."""
    return APPEND_HEADS[database] + encode_bulk(key) + entry


def is_structural(record: bytes) -> bool:
    """Whether a record, or the first of several joined, is about more than one key."""
    return record.startswith(STRUCTURAL_HEADS)


def read_records(joined: bytes) -> list[list[Any]]:
    """Records that were joined. ValueError when they are not whole records."""
    return RecordReader().read(joined)


class RecordReader:
    """Reads one frame after the other; a new one for each would double the price of a short frame.

    After an error it is of no use.
    """

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values = ValueReader()

    def read(self, joined: bytes) -> list[list[Any]]:
        records = self.values.decode(joined)
        for record in records:
            if not isinstance(record, list) or len(record) < 2 or not isinstance(record[0], bytes):
                raise ValueError("something among the records is none")
        return records


# Append records, of which a log is full: found by their lengths, in half the time of reading them as values and
# encoding the entries again (bench/durability.py). Whatever does not look like one is left to RecordReader.

NOWHERE: Final = -1
ENTRY_START: Final = b"*2\r\n$"
ENTRY_HEADER_BYTES: Final = 4
ARRAY: Final = 42  # *
BULK: Final = 36  # $
NEWLINE: Final = 10
RETURN: Final = 13
ZERO: Final = 48
NINE: Final = 57


def end_of_append_head(joined: bytes, start: int) -> int:
    """Where an append record's entry begins, behind its kind, database and key; NOWHERE: this is no such record."""
    if not joined.startswith(APPEND_START, start):
        return NOWHERE
    position = end_of_bulk(joined, end_of_bulk(joined, start + len(APPEND_START)))
    return position if position != NOWHERE and joined.startswith(ENTRY_START, position) else NOWHERE


def end_of_entry(joined: bytes, position: int) -> int:
    """Where the entry ends whose ID ends there; NOWHERE: it is none, or not whole."""
    if position == NOWHERE or position >= len(joined) or joined[position] != ARRAY:
        return NOWHERE
    position += 1
    count = 0
    while position < len(joined) and ZERO <= joined[position] <= NINE:
        count = count * 10 + joined[position] - ZERO
        position += 1
    if count == 0:
        return NOWHERE
    position += 2
    while count > 0 and position != NOWHERE:
        position = end_of_bulk(joined, position)
        count -= 1
    return position


def end_of_bulk(joined: bytes, start: int) -> int:
    """Where the bulk string that begins there ends; NOWHERE: it is none, or not whole."""
    total = len(joined)
    if start < 0 or start >= total or joined[start] != BULK:
        return NOWHERE
    size = 0
    position = start + 1
    while position < total:
        byte = joined[position]
        if byte == RETURN:
            end = position + size + 4
            return end if end <= total else NOWHERE
        if byte < ZERO or byte > NINE:
            return NOWHERE
        size = size * 10 + byte - ZERO
        position += 1
    return NOWHERE


def entry_name(joined: bytes, start: int, end_of_name: int) -> bytes:
    """The ID of the stored entry that begins there, as it is written; its bulk string is known to end there."""
    position = start + ENTRY_HEADER_BYTES + 2  # At least one digit.
    while joined[position] != NEWLINE:
        position += 1
    return joined[position + 1 : end_of_name - 2]
