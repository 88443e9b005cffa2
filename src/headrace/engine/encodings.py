"""The names by which Redis would call a value's inner form (OBJECT ENCODING), from the value alone.

Ours has one form per type; the names follow Redis's default thresholds so that clients which look at them see what they
expect. Roughly true sizes of values are here too: MEMORY USAGE and INFO's used_memory.
"""

from collections import deque
from itertools import islice
from typing import Final

from headrace.engine.group import Group
from headrace.engine.keyspace import Keyspace, Stored
from headrace.engine.reliable_queue import ReliableQueue
from headrace.engine.sorted_set import SortedSet
from headrace.engine.stream import Stream

LONGEST_EMBEDDED: Final = 44  # Redis's limit for a string stored inside its object.
LONGEST_INTEGER: Final = 20
LISTPACK_BYTES: Final = 8192  # list-max-listpack-size -2.
INTSET_MEMBERS: Final = 512
LISTPACK_MEMBERS: Final = 128
LISTPACK_FIELDS: Final = 512
LISTPACK_MEMBER_BYTES: Final = 64
SAMPLED_KEYS: Final = 1000  # Keys looked at for the size of a database: INFO must not take long.
SAMPLE: Final = 100  # Elements looked at for a size; the rest are taken to be like them.

# What CPython takes, on 64 bits: measured with sys.getsizeof, rounded.
BYTES_OBJECT: Final = 33
SLOT: Final = 8
SET_SLOT: Final = 32  # Sets and dicts keep a third of their slots free or more.
DICT_SLOT: Final = 104
NODE_OBJECT: Final = 400
SCORED_PAIR: Final = 24 + 24 + 2 * SLOT  # Besides a slot of a set: a score, a larger slot, and the order.
STREAM_OBJECT: Final = 700
GROUP_OBJECT: Final = 900
CONSUMER_OBJECT: Final = 800
DELIVERY_OBJECT: Final = 150
ENTRY_NAME: Final = BYTES_OBJECT + 15
FOLDED_NAME: Final = 8
QUEUE_OBJECT: Final = 1200
QUEUE_ELEMENT: Final = 140  # Its object, and its place in the queue.
DELIVERED_ELEMENT: Final = 60  # More, for a place that is found by its ID.
ALARM: Final = 130
PUBLISH_ID: Final = 300  # A short id, its place in two orders, a number of 176 bits.


def encoding_name(value: Stored) -> str:
    if isinstance(value, Stream):
        return "stream"
    if isinstance(value, bytes):
        if is_integer(value):
            return "int"
        return "embstr" if len(value) <= LONGEST_EMBEDDED else "raw"
    if isinstance(value, deque):
        if len(value) > LISTPACK_BYTES or sum([len(element) + 3 for element in value]) > LISTPACK_BYTES:
            return "quicklist"
        return "listpack"
    if isinstance(value, dict):
        return hash_encoding(value)
    if isinstance(value, ReliableQueue):
        return "raw"  # As Redis says of every type that a module brings.
    if isinstance(value, SortedSet):
        return sorted_set_encoding(value)
    if len(value) <= INTSET_MEMBERS and all(is_integer(member) for member in value):
        return "intset"
    if len(value) <= LISTPACK_MEMBERS and all(len(member) <= LISTPACK_MEMBER_BYTES for member in value):
        return "listpack"
    return "hashtable"


def hash_encoding(fields: dict[bytes, bytes]) -> str:
    if len(fields) > LISTPACK_FIELDS:
        return "hashtable"
    longest = max([max(len(field), len(value)) for field, value in fields.items()])
    return "listpack" if longest <= LISTPACK_MEMBER_BYTES else "hashtable"


def sorted_set_encoding(value: SortedSet) -> str:
    if len(value) > LISTPACK_MEMBERS:
        return "skiplist"
    return "listpack" if max([len(member) for member in value.scores]) <= LISTPACK_MEMBER_BYTES else "skiplist"


def is_integer(text: bytes) -> bool:
    """Whether the text is how a 64-bit integer is written."""
    if len(text) > LONGEST_INTEGER or not text.removeprefix(b"-").isdigit():
        return False
    number = int(text)
    return b"%d" % number == text and -(2**63) <= number < 2**63


def estimate_bytes(value: Stored, samples: int = SAMPLE) -> int:
    """About how much memory a value takes. samples: how many elements to look at, 0 for all."""
    if isinstance(value, bytes):
        return BYTES_OBJECT + len(value)
    if isinstance(value, Stream):
        return estimate_stream(value)
    if isinstance(value, ReliableQueue):
        return estimate_queue(value, samples)
    if isinstance(value, SortedSet):
        return estimate_bytes(value.scores.keys(), samples) + len(value) * SCORED_PAIR
    count = len(value)
    if count == 0:
        return SET_SLOT
    looked_at = count if samples <= 0 or samples > count else samples
    total = sum([BYTES_OBJECT + len(element) for element in islice(value, looked_at)])
    slot = SLOT if isinstance(value, deque) else SET_SLOT
    if isinstance(value, dict):
        total += sum([BYTES_OBJECT + len(element) for element in islice(value.values(), looked_at)])
        slot = DICT_SLOT
    return 64 + total * count // looked_at + slot * count


def estimate_stream(stream: Stream) -> int:
    total = STREAM_OBJECT
    for node in stream.nodes:
        total += NODE_OBJECT
        if node.names is not None:
            total += node.size_bytes() + node.count * (BYTES_OBJECT + ENTRY_NAME + 2 * SLOT)
        elif node.shelf is None:
            total += len(node.blob) + (0 if node.is_packed else 4 * node.count)
    for group in stream.groups.values():
        total += estimate_group(group)
    if stream.idempotence is not None:
        total += stream.idempotence.count_records() * (DICT_SLOT + 2 * BYTES_OBJECT)
    if stream.publish_ids is not None:
        total += len(stream.publish_ids.records) * PUBLISH_ID
    return total


def estimate_queue(queue: ReliableQueue, samples: int) -> int:
    undelivered = len(queue.fresh) + len(queue.returned)
    count = undelivered + len(queue.delivered) + len(queue.delayed)
    looked_at = samples if samples > 0 else count
    sampled = list(islice(queue.fresh, looked_at)) + list(islice(queue.delivered.values(), looked_at))
    sampled += list(islice(queue.delayed.values(), looked_at))
    sampled += [element for _, element in islice(queue.returned, looked_at)]
    bodies = sum([len(element.body) for element in sampled]) * count // max(1, len(sampled))
    elements = count * (QUEUE_ELEMENT + ENTRY_NAME + BYTES_OBJECT) + bodies
    room = max(queue.room, len(queue.delivered)) * (DICT_SLOT + DELIVERED_ELEMENT)
    return QUEUE_OBJECT + elements + room + len(queue.alarms.heap) * ALARM


def estimate_group(group: Group) -> int:
    owned = len(group.consumers) * CONSUMER_OBJECT + len(group.deliveries) * DELIVERY_OBJECT
    pending = group.pending
    return GROUP_OBJECT + owned + len(pending.unfolded) * (DICT_SLOT + ENTRY_NAME) + pending.folded * FOLDED_NAME


def estimate_database(database: Keyspace) -> int:
    """About how much memory a database takes. With many keys, most are taken to be like the oldest ones."""
    count = len(database.values)
    if count == 0:
        return 0
    total = 0
    for name, value in islice(database.values.items(), SAMPLED_KEYS):
        total += len(name) + estimate_bytes(value)
    slots = count * (DICT_SLOT + BYTES_OBJECT) + len(database.expires_ms) * DICT_SLOT
    return total * count // min(count, SAMPLED_KEYS) + slots
