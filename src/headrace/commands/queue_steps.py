"""What the RQ commands share: a queue as it is now, pushing, burying, and what they answer with.

What comes due by itself (delays, retry times, times to live) is applied by `find_queue`, at the time of the call: every
RQ command looks its queue up there, so all of them see the same.
"""

from typing import Final

from headrace.commands.call import Call
from headrace.commands.notifications import MODULE
from headrace.commands.outcome import CHANGED, Outcome
from headrace.commands.outcome import EMPTY_ARRAY as NOTHING_FOUND
from headrace.engine.ids import name_of, parse_strict_id
from headrace.engine.keyspace import QUEUE_TYPE, WRONG_TYPE
from headrace.engine.queue_element import NEVER_MS, Element
from headrace.engine.reliable_queue import ReliableQueue
from headrace.errors import CommandError
from headrace.journal.record import QUEUE_ADVANCE, QUEUE_PUSH, encode_record
from headrace.wire.encoder import encode_array, encode_bulk

PAUSED: Final = "PAUSED The queue takes no new elements until RQ.PAUSE lets them in again."


def find_queue(ctx: Call, name: bytes) -> ReliableQueue | None:
    """The queue as it is now, or None when the key is missing. Raises WRONGTYPE for other types."""
    queue = ctx.find(name)
    if queue is None:
        return None
    if not isinstance(queue, ReliableQueue):
        raise CommandError(WRONG_TYPE)
    if queue.alarms.heap and queue.alarms.heap[0][0] <= ctx.now_ms:
        advance(ctx, name, queue)
    return queue


def advance(ctx: Call, name: bytes, queue: ReliableQueue) -> None:
    """Apply what has come due. Like the end of a key's life this is no command's own effect: it notes itself."""
    changed = queue.advance(ctx.now_ms)
    if changed:
        state = ctx.state
        state.changes += changed
        if ctx.journaling:
            state.records.append(encode_record(QUEUE_ADVANCE, ctx.db.number, name, b"%d" % ctx.now_ms))
        state.touch(ctx.db.number, name)
        ctx.wake(ctx.db.number, name)
        ctx.notify(MODULE, b"rq.due", name)


def get_or_create(ctx: Call, name: bytes) -> ReliableQueue:
    queue = find_queue(ctx, name)
    if queue is None:
        queue = ReliableQueue()
        ctx.db.put(name, queue)
    return queue


def get_open_queue(ctx: Call, name: bytes) -> ReliableQueue:
    """The queue to push to, created when missing."""
    queue = get_or_create(ctx, name)
    if not queue.takes_in:
        raise CommandError(PAUSED)
    return queue


def push(ctx: Call, name: bytes, queue: ReliableQueue, bodies: list[bytes]) -> Outcome:
    names = queue.push(ctx.now_ms, bodies)
    ctx.state.changes += len(bodies) - 1
    ctx.notify(MODULE, b"rq.push", name)
    record = encode_record(QUEUE_PUSH, ctx.db.number, name, names[0], *bodies) if ctx.journaling else CHANGED
    return Outcome(encode_names(names), record, name)


def encode_names(names: list[bytes]) -> bytes:
    return encode_array([encode_bulk(name) for name in names])


def encode_element(element: Element) -> bytes:
    """ID and body, without the header of the array around them."""
    return b"$%d\r\n%b\r\n$%d\r\n%b\r\n" % (len(element.name), element.name, len(element.body), element.body)


def bring_forward(ctx: Call, name: bytes, queue: ReliableQueue) -> None:
    """Those who wait on the queue look again when something comes due, at the latest."""
    if queue.alarms.heap and ctx.state.waiting_keys:
        due_ms = queue.alarms.next_ms()
        if due_ms != NEVER_MS and queue.gives_out:
            waiters = ctx.state.waiters
            for waiter in waiters.on_key(ctx.db.number, name):
                if waiter.wants == QUEUE_TYPE:
                    waiters.bring_forward(waiter, due_ms)


def may_bury(ctx: Call, element: Element) -> bool:
    """Whether there is a place for the element. Without one it is delivered once more: nothing is lost."""
    options = element.options
    assert options is not None
    if not options.dead_letter:
        return True
    value = ctx.find(options.dead_letter)
    return value is None or isinstance(value, ReliableQueue)


def bury(ctx: Call, name: bytes, queue: ReliableQueue, element: Element, records: list[bytes]) -> None:
    """Move an element to its dead letter queue, where it is new, or drop it. Pausing does not keep it out."""
    options = element.options
    assert options is not None
    body = element.body
    queue.bury(element)
    ctx.notify(MODULE, b"rq.bury", name)
    if options.dead_letter:
        target = options.dead_letter
        pushed = push(ctx, target, get_or_create(ctx, target), [body])
        assert pushed.record is not None
        records.append(pushed.record)
        ctx.state.touch(ctx.db.number, target)
        ctx.wake(ctx.db.number, target)


def check_names(queue: ReliableQueue | None, argv: list[bytes], start: int) -> list[bytes]:
    """The IDs as we write them. A malformed one is refused before anything changes."""
    names = argv[start:]
    for index, name in enumerate(names):
        if queue is None or name not in queue.delivered:
            names[index] = name_of(parse_strict_id(name))
    return names


def settled(ctx: Call, event: bytes, kind: bytes, name: bytes, facts: list[bytes], done: list[bytes]) -> Outcome:
    """The outcome of a command that has done something with these delivered elements."""
    if not done:
        return NOTHING_FOUND
    ctx.state.changes += len(done) - 1
    ctx.notify(MODULE, event, name)
    record = encode_record(kind, ctx.db.number, name, *facts, *done) if ctx.journaling else CHANGED
    return Outcome(encode_names(done), record)
