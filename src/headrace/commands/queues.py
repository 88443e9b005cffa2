"""Reliable queues: RQ.PUSH, RQ.POP, RQ.ACK, RQ.RECOVER.

An element that was popped stays in its queue until it is acknowledged; one that nobody acknowledges is recovered.
`queue_extensions.py` has what goes beyond the original RedisRQ module, `queue_views.py` what only looks, and
`queue_steps.py` what all of them share.
"""

from typing import Final

from headrace.commands.call import Call
from headrace.commands.notifications import MODULE
from headrace.commands.numbers import MAX_INTEGER, parse_integer, parse_within
from headrace.commands.outcome import CHANGED, Outcome
from headrace.commands.outcome import EMPTY_ARRAY as NOTHING_FOUND
from headrace.commands.queue_steps import (
    bring_forward,
    bury,
    check_names,
    encode_element,
    find_queue,
    get_open_queue,
    may_bury,
    push,
    settled,
)
from headrace.commands.read_options import parse_timeout_ms
from headrace.commands.spec import command, integer, key, many, optional, text
from headrace.engine.keyspace import QUEUE_TYPE
from headrace.engine.queue_element import NEVER_MS, Element
from headrace.engine.reliable_queue import ReliableQueue
from headrace.engine.waiters import NO_TIME, Waiter
from headrace.errors import CommandError
from headrace.journal.record import (
    QUEUE_ACK,
    QUEUE_BURY,
    QUEUE_DELIVER,
    QUEUE_REDELIVER,
    encode_record,
)
from headrace.wire.encoder import encode_array, encode_bulk, encode_null, encode_null_array

POP_USAGE: Final = "ERR usage: RQ.POP [COUNT count] [BLOCK milliseconds] key [key ...], with a count of 0 or more"
RECOVER_USAGE: Final = "ERR usage: RQ.RECOVER key count elapsed, both 0 or more"
NO_WAIT: Final = -1


@command(
    "RQ.PUSH", key("RW insert"), many(text("element")),
    group="queue", flags="write denyoom fast", since="0.1.0", complexity="O(1) for each element",
    summary="Append elements to a reliable queue, which is created when missing.", tips="nondeterministic_output",
)  # fmt: skip
def rq_push(ctx: Call, argv: list[bytes]) -> Outcome:
    """The reply is the array of their IDs, in the order of the elements. A queue paused with IN answers -PAUSED."""
    name = argv[1]
    return push(ctx, name, get_open_queue(ctx, name), argv[2:])


# Pop


class PopOptions:
    __slots__ = ("count", "block_ms", "keys_at")

    def __init__(self) -> None:
        self.count = 1
        self.block_ms = NO_WAIT
        self.keys_at = 1


@command(
    "RQ.POP", optional(integer("count", "COUNT")), optional(integer("milliseconds", "BLOCK")),
    many(key("RW access", behind="COUNT BLOCK")),
    group="queue", flags="write fast blocking", since="0.1.0",
    complexity="O(N + M) with N keys and M elements delivered; O(log(M)) for each that was given back before",
    summary="Deliver the next elements of the first queues that have some, or wait for one.",
    tips="nondeterministic_output",
)  # fmt: skip
def rq_pop(ctx: Call, argv: list[bytes]) -> Outcome:
    """Each element comes as queue, ID and body, and stays in its queue as delivered until RQ.ACK.

    Up to COUNT elements in all, 1 by default: as many as there are from the first queue, then from the second, and so
    on. Options come before the keys, in either order. Without BLOCK an empty array says that there is nothing. BLOCK
    0 waits for ever; at the end of the time the reply is null. Clients are served in the order they began to wait.
    A queue paused with OUT gives nothing.
    """
    options = parse_pop(argv)
    names = argv[options.keys_at :]
    if len(names) > 1 and not ctx.is_retrying:
        for name in names:
            find_queue(ctx, name)  # All are of the right type before anything changes.
    if options.count == 0:
        return NOTHING_FOUND
    rows: list[bytes] = []
    records: list[bytes] = []
    due_ms = gather(ctx, names, options.count, rows, records)
    record = None
    if records:
        record = b"".join(records)
        ctx.state.changes -= 1  # One change is counted with the record.
    if rows:
        return Outcome(encode_array(rows), record)
    if options.block_ms == NO_WAIT:
        return Outcome(NOTHING_FOUND.reply, record)
    if not ctx.may_block:
        return Outcome(encode_null_array(resp3=ctx.resp3), record)
    deadline_ms = ctx.now_ms + options.block_ms if options.block_ms else NO_TIME
    ctx.blocked_on = Waiter(ctx.id, ctx.db.number, names, argv, deadline_ms, due_ms, QUEUE_TYPE)
    return Outcome(b"", record)


def gather(ctx: Call, names: list[bytes], count: int, rows: list[bytes], records: list[bytes]) -> int:
    """Pop from one queue after the other. When the next element comes by itself, or NO_TIME."""
    due_ms = NO_TIME
    for name in names:
        if ctx.is_retrying and not isinstance(ctx.find(name), ReliableQueue):
            continue  # As with lists: what the key holds meanwhile does not disturb who waits already.
        queue = find_queue(ctx, name)
        if queue is None or not queue.gives_out:
            continue
        pop_from(ctx, name, queue, count, rows, records)
        if len(rows) >= count:
            break
        next_ms = queue.alarms.next_ms()
        if next_ms != NEVER_MS and (due_ms == NO_TIME or next_ms < due_ms):
            due_ms = next_ms
    return due_ms


def parse_pop(argv: list[bytes]) -> PopOptions:
    """Each option once; the first word that is none begins the keys."""
    options = PopOptions()
    index = 1
    has_count = False
    while index < len(argv):
        word = argv[index].upper()
        is_count = word == b"COUNT" and not has_count
        if not is_count and not (word == b"BLOCK" and options.block_ms == NO_WAIT):
            break
        if index + 2 >= len(argv):  # No value, or no key behind it.
            raise CommandError(POP_USAGE)
        if is_count:
            options.count = parse_integer(argv[index + 1])
            if options.count < 0:
                raise CommandError(POP_USAGE)
            has_count = True
        else:
            options.block_ms = parse_timeout_ms(argv[index + 1])
        index += 2
    options.keys_at = index
    return options


def pop_from(ctx: Call, name: bytes, queue: ReliableQueue, count: int, rows: list[bytes], records: list[bytes]) -> None:
    """Deliver elements of one queue until there are `count` rows."""
    head = b"*3\r\n" + encode_bulk(name)
    now_ms = ctx.now_ms
    delivered = 0
    dead: list[Element] = []
    while len(rows) < count:
        element = queue.take()
        if element is None:
            break
        if element.options is not None and element.is_exhausted() and may_bury(ctx, element):
            dead.append(element)
            continue
        queue.deliver(element, now_ms)
        rows.append(head + encode_element(element))
        delivered += 1
    taken = delivered + len(dead)
    if not taken:
        return
    ctx.state.changes += taken
    if ctx.state.watched:
        ctx.state.touch(ctx.db.number, name)
    if delivered:
        ctx.notify(MODULE, b"rq.pop", name)
    if queue.alarms.heap:
        bring_forward(ctx, name, queue)
    if ctx.journaling:
        dead_names = [element.name for element in dead]
        numbers = (b"%d" % now_ms, b"%d" % taken)
        records.append(encode_record(QUEUE_DELIVER, ctx.db.number, name, *numbers, *dead_names))
    else:
        records.append(CHANGED)
    for element in dead:
        bury(ctx, name, queue, element, records)


# Acknowledge and recover


@command(
    "RQ.ACK", key("RW delete"), many(text("id")),
    group="queue", flags="write fast", since="0.1.0", complexity="O(1) for each ID",
    summary="Forget delivered elements: they have been processed.",
)  # fmt: skip
def rq_ack(ctx: Call, argv: list[bytes]) -> Outcome:
    """The reply is the array of the IDs that were really acknowledged, null when there is no such queue.

    An ID that is missing there was acknowledged before, or has been given to somebody else and acknowledged by them,
    or is not delivered: what nobody has taken cannot be acknowledged.
    """
    queue = find_queue(ctx, argv[1])
    names = check_names(queue, argv, 2)
    if queue is None:
        return Outcome(encode_null(resp3=ctx.resp3))
    acked = [name for name in names if queue.ack(name)]
    return settled(ctx, b"rq.ack", QUEUE_ACK, argv[1], [], acked)


@command(
    "RQ.RECOVER", key("RW access"), integer("count"), integer("elapsed"),
    group="queue", flags="write fast", since="0.1.0", complexity="O(N) with N elements delivered",
    summary="Deliver elements again that nobody has acknowledged for a while.", tips="nondeterministic_output",
)  # fmt: skip
def rq_recover(ctx: Call, argv: list[bytes]) -> Outcome:
    """Up to `count` elements whose last delivery is `elapsed` milliseconds ago or more, longest ago first.

    Each comes as ID and body, at most once per call. Its delivery counts anew: the time starts again, the number of
    deliveries grows by one, and it moves to the end of the delivered elements. The reply is null when there is no
    such queue. A queue paused with OUT gives nothing.
    """
    count = parse_within(argv[2], 0, MAX_INTEGER, RECOVER_USAGE, RECOVER_USAGE)
    elapsed_ms = parse_within(argv[3], 0, MAX_INTEGER, RECOVER_USAGE, RECOVER_USAGE)
    name = argv[1]
    queue = find_queue(ctx, name)
    if queue is None:
        return Outcome(encode_null(resp3=ctx.resp3))
    if not queue.gives_out:
        return NOTHING_FOUND
    rows, dead = recover(ctx, queue, count, elapsed_ms)
    if not rows and not dead:
        return NOTHING_FOUND
    ctx.state.changes += len(rows) + len(dead) - 1
    if rows:
        ctx.notify(MODULE, b"rq.recover", name)
    bring_forward(ctx, name, queue)
    records: list[bytes] = []
    if ctx.journaling:
        if dead:
            records.append(encode_record(QUEUE_BURY, ctx.db.number, name, *[element.name for element in dead]))
        numbers = (b"%d" % ctx.now_ms, b"%d" % len(rows))
        records.append(encode_record(QUEUE_REDELIVER, ctx.db.number, name, *numbers))
    for element in dead:
        bury(ctx, name, queue, element, records)
    return Outcome(encode_array(rows), b"".join(records))


def recover(ctx: Call, queue: ReliableQueue, count: int, elapsed_ms: int) -> tuple[list[bytes], list[Element]]:
    """The rows of what was delivered again, and what has been delivered too often for that."""
    found: list[Element] = []
    dead: list[Element] = []
    queue.put_in_order()
    for element in queue.delivered.values():
        if len(found) >= count or (elapsed_ms and ctx.now_ms - element.time_ms < elapsed_ms):
            break
        if element.options is not None and element.is_exhausted() and may_bury(ctx, element):
            dead.append(element)
        else:
            found.append(element)
    for element in dead:
        queue.take_delivered(element)
    for element in found:
        queue.redeliver(element, ctx.now_ms)
    return [b"*2\r\n" + encode_element(element) for element in found], dead
