"""Records of reliable queues -> engine verbs. The part of apply.py that knows queues; times are in the records."""

from collections.abc import Callable
from typing import Any, Final

from headrace.commands.call import State
from headrace.engine.ids import id_of
from headrace.engine.keyspace import Keyspace
from headrace.engine.queue_element import Options
from headrace.engine.reliable_queue import ReliableQueue
from headrace.journal import record as kinds

Record = list[Any]


def get_queue(db: Keyspace, key: bytes) -> ReliableQueue:
    value = db.values.get(key)
    if value is None:
        value = ReliableQueue()
        db.put(key, value)
    assert isinstance(value, ReliableQueue)
    return value


def push(state: State, db: Keyspace, record: Record) -> None:
    queue = get_queue(db, record[2])
    queue.begin_at(id_of(record[3]))
    queue.push(queue.last_ms, record[4:])


def push_with(state: State, db: Keyspace, record: Record) -> None:
    ready_ms, expires_ms, retry_ms, max_deliveries = [int(number) for number in record[4:8]]
    options = None
    if retry_ms or max_deliveries:
        options = Options(retry_ms, max_deliveries, record[8])
    queue = get_queue(db, record[2])
    queue.begin_at(id_of(record[3]))
    queue.push_with(queue.last_ms, record[9:], options, ready_ms, expires_ms)


def deliver(state: State, db: Keyspace, record: Record) -> None:
    queue = get_queue(db, record[2])
    dead = set(record[5:])
    for _ in range(int(record[4])):
        element = queue.take()
        assert element is not None
        if element.name in dead:
            queue.bury(element)
        else:
            queue.deliver(element, int(record[3]))


def redeliver(state: State, db: Keyspace, record: Record) -> None:
    queue = get_queue(db, record[2])
    for element in queue.delivered_from(0, int(record[4])):
        queue.redeliver(element, int(record[3]))


def bury(state: State, db: Keyspace, record: Record) -> None:
    queue = get_queue(db, record[2])
    for name in record[3:]:
        element = queue.delivered[name]
        queue.take_delivered(element)
        queue.bury(element)


def ack(state: State, db: Keyspace, record: Record) -> None:
    queue = get_queue(db, record[2])
    for name in record[3:]:
        queue.ack(name)


def give_back(state: State, db: Keyspace, record: Record) -> None:
    queue = get_queue(db, record[2])
    for name in record[4:]:
        queue.give_back(name, int(record[3]))


def restart(state: State, db: Keyspace, record: Record) -> None:
    queue = get_queue(db, record[2])
    for name in record[4:]:
        queue.restart(queue.delivered[name], int(record[3]))


def pause(state: State, db: Keyspace, record: Record) -> None:
    queue = get_queue(db, record[2])
    queue.takes_in = record[3] == b"1"
    queue.gives_out = record[4] == b"1"


def advance(state: State, db: Keyspace, record: Record) -> None:
    get_queue(db, record[2]).advance(int(record[3]))


VERBS: Final[dict[bytes, Callable[[State, Keyspace, Record], None]]] = {
    kinds.QUEUE_PUSH: push,
    kinds.QUEUE_PUSH_WITH: push_with,
    kinds.QUEUE_DELIVER: deliver,
    kinds.QUEUE_REDELIVER: redeliver,
    kinds.QUEUE_BURY: bury,
    kinds.QUEUE_ACK: ack,
    kinds.QUEUE_GIVE_BACK: give_back,
    kinds.QUEUE_RESTART: restart,
    kinds.QUEUE_PAUSE: pause,
    kinds.QUEUE_ADVANCE: advance,
}
