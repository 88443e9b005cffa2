"""Record -> engine verbs: how a journal becomes memory again. No clock, no reply; the times are in the records."""

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from headrace.commands import apply_queues
from headrace.commands.call import State
from headrace.commands.stream_settings import set_stream_id
from headrace.engine.dump import load_value
from headrace.engine.group import RELEASED_MS, Group
from headrace.engine.idempotence import Idempotence
from headrace.engine.ids import MAX_PART, id_of
from headrace.engine.keyspace import Keyspace
from headrace.engine.lists import move_element, put_elements, remove_elements, take_elements
from headrace.engine.publish_ids import PublishIds
from headrace.engine.sorted_set import SortedSet
from headrace.engine.stream import Stream
from headrace.errors import HeadraceError
from headrace.journal import record as kinds
from headrace.wire.encoder import encode_bulk, encode_entry

Record = list[Any]  # As read back: kind, database, then what the kind says.


def apply(state: State, record: Record) -> None:
    """Do again what the record says was done."""
    verb = VERBS.get(record[0])
    if verb is None:
        raise HeadraceError(f"unknown journal record {record[0]!r}: it was written by a newer headrace")
    verb(state, state.databases[int(record[1])], record)


def get_stream(state: State, db: Keyspace, key: bytes) -> Stream:
    value = db.values.get(key)
    if value is None:
        value = Stream(state.settings.limits)
        db.values[key] = value
    assert isinstance(value, Stream)
    return value


def get_group(state: State, db: Keyspace, record: Record) -> Group:
    return get_stream(state, db, record[2]).groups[record[3]]


def append(state: State, db: Keyspace, record: Record) -> None:
    name, words = record[3]
    append_entry(get_stream(state, db, record[2]), name, encode_entry(encode_bulk(name), words, 0))


def append_entry(stream: Stream, name: bytes, entry: bytes) -> None:
    """Add an entry as it was stored."""
    prefix = stream.prefix
    if prefix and name[: len(prefix)] == prefix:  # Of the same millisecond as the one before.
        ms, seq = stream.prefix_ms, int(name[len(prefix) :])
    else:
        entry_id = id_of(name)
        ms, seq = entry_id >> 64, entry_id & MAX_PART
        stream.name_next(ms, seq)
    stream.append(ms, seq, name, entry)


def trim(state: State, db: Keyspace, record: Record) -> None:
    get_stream(state, db, record[2]).trim_below(id_of(record[3]))


def delete(state: State, db: Keyspace, record: Record) -> None:
    get_stream(state, db, record[2]).delete([id_of(name) for name in record[3:]])


def cut(state: State, db: Keyspace, record: Record) -> None:
    get_stream(state, db, record[2]).cut([id_of(name) for name in record[4:]], id_of(record[3]))


def forget(state: State, db: Keyspace, record: Record) -> None:
    get_stream(state, db, record[2]).forget(record[3:])


def set_id(state: State, db: Keyspace, record: Record) -> None:
    set_stream_id(get_stream(state, db, record[2]), id_of(record[3]), int(record[4]), id_of(record[5]))


def create_stream(state: State, db: Keyspace, record: Record) -> None:
    get_stream(state, db, record[2])


def create_group(state: State, db: Keyspace, record: Record) -> None:
    get_stream(state, db, record[2]).groups[record[3]] = Group(id_of(record[4]), int(record[5]))


def set_group(state: State, db: Keyspace, record: Record) -> None:
    group = get_group(state, db, record)
    group.set_last_id(id_of(record[4]))
    group.entries_read = int(record[5])


def destroy_group(state: State, db: Keyspace, record: Record) -> None:
    get_stream(state, db, record[2]).groups.pop(record[3], None)


def create_consumer(state: State, db: Keyspace, record: Record) -> None:
    get_group(state, db, record).get_consumer(record[4], int(record[5]))


def delete_consumer(state: State, db: Keyspace, record: Record) -> None:
    get_group(state, db, record).delete_consumer(record[4])


def deliver(state: State, db: Keyspace, record: Record) -> None:
    stream = get_stream(state, db, record[2])
    group = get_group(state, db, record)
    time_ms = int(record[5])
    names, _ = stream.read_new(group, int(record[6]))
    stream.count_read(group, names)
    consumer = group.get_consumer(record[4], time_ms)
    if record[7] == b"1":
        consumer.active_ms = time_ms
        group.deliver(consumer, names, time_ms)


def assign(state: State, db: Keyspace, record: Record) -> None:
    group = get_group(state, db, record)
    time_ms = int(record[5])
    consumer = group.consumers[record[4]]
    group.assign(consumer, record[7:], time_ms, int(record[6]))


def release(state: State, db: Keyspace, record: Record) -> None:
    get_group(state, db, record).assign(None, record[5:], RELEASED_MS, int(record[4]))


def ack(state: State, db: Keyspace, record: Record) -> None:
    get_group(state, db, record).ack(record[4:])


def configure_idempotence(state: State, db: Keyspace, record: Record) -> None:
    get_idempotence(state, db, record).configure(int(record[3]), int(record[4]))


def note_seen(state: State, db: Keyspace, record: Record) -> None:
    get_idempotence(state, db, record).record(record[3], record[4], id_of(record[5]))


def get_idempotence(state: State, db: Keyspace, record: Record) -> Idempotence:
    stream = get_stream(state, db, record[2])
    if stream.idempotence is None:
        stream.idempotence = Idempotence(state.settings.idmp_duration_s, state.settings.idmp_max_size)
    return stream.idempotence


def note_publish_id(state: State, db: Keyspace, record: Record) -> None:
    stream = get_stream(state, db, record[2])
    known = stream.publish_ids
    if known is None:
        known = PublishIds()
        stream.publish_ids = known
    known.add(record[3], id_of(record[4]), int(record[5]), int(record[6]))


def settle_publish_id(state: State, db: Keyspace, record: Record) -> None:
    known = get_stream(state, db, record[2]).publish_ids
    assert known is not None
    known.settle(record[3], id_of(record[4]))


def put(state: State, db: Keyspace, record: Record) -> None:
    db.put(record[2], load_value(record[3], state.settings.limits), int(record[4]))


def push(state: State, db: Keyspace, record: Record) -> None:
    put_elements(get_list(db, record[2]), record[3], record[4:])


def pop(state: State, db: Keyspace, record: Record) -> None:
    take_elements(db.values[record[2]], record[3], int(record[4]))
    drop_if_empty(db, record[2])


def set_element(state: State, db: Keyspace, record: Record) -> None:
    db.values[record[2]][int(record[3])] = record[4]


def insert(state: State, db: Keyspace, record: Record) -> None:
    db.values[record[2]].insert(int(record[3]), record[4])


def remove_equal(state: State, db: Keyspace, record: Record) -> None:
    remove_elements(db.values[record[2]], record[4], int(record[3]))
    drop_if_empty(db, record[2])


def turn(state: State, db: Keyspace, record: Record) -> None:
    move_element(db.values[record[2]], db.values[record[2]], record[3], record[4])


def get_list(db: Keyspace, key: bytes) -> "deque[bytes]":
    elements = db.values.get(key)
    if elements is None:
        elements = deque()
        db.put(key, elements)
    assert isinstance(elements, deque)
    return elements


def drop_if_empty(db: Keyspace, key: bytes) -> None:
    if not db.values[key]:
        db.delete(key)


def add_members(state: State, db: Keyspace, record: Record) -> None:
    members = db.values.get(record[2])
    if members is None:
        members = set()
        db.put(record[2], members)
    members.update(record[3:])


def remove_members(state: State, db: Keyspace, record: Record) -> None:
    members = db.values[record[2]]
    members.difference_update(record[3:])
    if not members:
        db.delete(record[2])


def set_scores(state: State, db: Keyspace, record: Record) -> None:
    members = db.values.get(record[2])
    if members is None:
        members = SortedSet()
        db.put(record[2], members)
    for index in range(3, len(record), 2):
        members.put(record[index], float(record[index + 1]))


def remove_scores(state: State, db: Keyspace, record: Record) -> None:
    members = db.values[record[2]]
    for member in record[3:]:
        members.remove(member)
    if not members:
        db.delete(record[2])


def set_fields(state: State, db: Keyspace, record: Record) -> None:
    fields = db.values.get(record[2])
    if fields is None:
        fields = {}
        db.put(record[2], fields)
    for index in range(3, len(record), 2):
        fields[record[index]] = record[index + 1]


def remove_fields(state: State, db: Keyspace, record: Record) -> None:
    fields = db.values[record[2]]
    for field in record[3:]:
        del fields[field]
    if not fields:
        db.delete(record[2])


def remove(state: State, db: Keyspace, record: Record) -> None:
    db.delete(record[2])


def rename(state: State, db: Keyspace, record: Record) -> None:
    expires_ms = db.expires_ms.get(record[2], 0)
    value = db.values[record[2]]
    db.delete(record[2])
    db.put(record[3], value, expires_ms)


def expire(state: State, db: Keyspace, record: Record) -> None:
    db.put(record[2], db.values[record[2]], int(record[3]))


def clear(state: State, db: Keyspace, record: Record) -> None:
    db.clear()


def swap(state: State, db: Keyspace, record: Record) -> None:
    other = state.databases[int(record[2])]
    db.values, other.values = other.values, db.values
    db.expires_ms, other.expires_ms = other.expires_ms, db.expires_ms


def move(state: State, db: Keyspace, record: Record) -> None:
    expires_ms = db.expires_ms.get(record[2], 0)
    value = db.values[record[2]]
    db.delete(record[2])
    state.databases[int(record[3])].put(record[2], value, expires_ms)


VERBS: Final[dict[bytes, Callable[[State, Keyspace, Record], None]]] = {
    kinds.APPEND: append,
    kinds.TRIM: trim,
    kinds.DELETE: delete,
    kinds.CUT: cut,
    kinds.FORGET: forget,
    kinds.SET_ID: set_id,
    kinds.CREATE_STREAM: create_stream,
    kinds.CREATE_GROUP: create_group,
    kinds.SET_GROUP: set_group,
    kinds.DESTROY_GROUP: destroy_group,
    kinds.CREATE_CONSUMER: create_consumer,
    kinds.DELETE_CONSUMER: delete_consumer,
    kinds.DELIVER: deliver,
    kinds.ASSIGN: assign,
    kinds.RELEASE: release,
    kinds.ACK: ack,
    kinds.IDEMPOTENCE: configure_idempotence,
    kinds.SEEN_BEFORE: note_seen,
    kinds.PUBLISH_ID: note_publish_id,
    kinds.PUBLISHED: settle_publish_id,
    kinds.PUT: put,
    kinds.PUSH: push,
    kinds.POP: pop,
    kinds.LIST_SET: set_element,
    kinds.LIST_INSERT: insert,
    kinds.LIST_REMOVE: remove_equal,
    kinds.LIST_TURN: turn,
    kinds.SET_ADD: add_members,
    kinds.SET_REMOVE: remove_members,
    kinds.SCORE_SET: set_scores,
    kinds.SCORE_REMOVE: remove_scores,
    kinds.HASH_SET: set_fields,
    kinds.HASH_REMOVE: remove_fields,
    kinds.REMOVE: remove,
    kinds.RENAME: rename,
    kinds.EXPIRE: expire,
    kinds.CLEAR: clear,
    kinds.SWAP: swap,
    kinds.MOVE: move,
    **apply_queues.VERBS,
}
