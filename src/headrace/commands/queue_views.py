"""Looking at reliable queues: RQ.INSPECT, RQ.INFO, RQ.STATS. Nothing changes but what comes due by itself."""

from typing import Final

from headrace.commands.call import Call
from headrace.commands.numbers import MAX_INTEGER, NOT_AN_INTEGER, parse_integer, parse_within
from headrace.commands.outcome import EMPTY_ARRAY, Outcome
from headrace.commands.queue_steps import encode_element, find_queue
from headrace.commands.refusals import SYNTAX
from headrace.commands.spec import command, integer, key, oneof, optional, word
from headrace.engine.queue_element import Element
from headrace.engine.reliable_queue import ReliableQueue
from headrace.errors import CommandError
from headrace.wire.encoder import encode, encode_array, encode_integer

NO_QUEUE: Final = "EMPTYKEY There is no queue at this key"
COUNT: Final = "ERR count must be 1 or more"


def get_queue(ctx: Call, name: bytes) -> ReliableQueue:
    queue = find_queue(ctx, name)
    if queue is None:
        raise CommandError(NO_QUEUE)
    return queue


@command(
    "RQ.INSPECT", key("RO access"), optional(oneof("view", word("PENDING"), word("DELAYED"))), integer("start"),
    integer("count"),
    group="queue", flags="readonly", since="0.1.0",
    complexity="O(S + N) with S elements to the nearer end and N shown; O(M log(M)) with M given back or delayed",
    summary="Look at elements of a queue without taking them.", tips="nondeterministic_output",
)  # fmt: skip
def rq_inspect(ctx: Call, argv: list[bytes]) -> Outcome:
    """From place `start` on, which begins at 0; a negative one counts from the end, -1 being the last element.

    Undelivered elements come as ID and body, in the order they will be delivered. PENDING shows those delivered and
    not acknowledged, longest ago first: ID, body, time of the last delivery, milliseconds since, number of
    deliveries. DELAYED shows those that wait for their time, soonest first: ID, body, that time, milliseconds until
    then, number of deliveries.
    """
    if len(argv) > 5:
        raise CommandError(SYNTAX)
    view = argv[2].upper() if len(argv) == 5 else b""
    if view not in (b"", b"PENDING", b"DELAYED"):
        raise CommandError(SYNTAX)
    start = parse_integer(argv[-2])
    count = parse_within(argv[-1], 1, MAX_INTEGER, COUNT, NOT_AN_INTEGER)
    queue = get_queue(ctx, argv[1])
    size = size_of(queue, view)
    if start < 0:
        start += size
    if start < 0 or start >= size:
        return EMPTY_ARRAY
    count = min(count, size - start)
    if view == b"PENDING":
        found = [timed_row(element, ctx.now_ms - element.time_ms) for element in queue.delivered_from(start, count)]
    elif view == b"DELAYED":
        found = [timed_row(element, element.time_ms - ctx.now_ms) for element in queue.delayed_from(start, count)]
    else:
        found = [b"*2\r\n" + encode_element(element) for element in queue.undelivered_from(start, count)]
    return Outcome(encode_array(found))


def size_of(queue: ReliableQueue, view: bytes) -> int:
    if view == b"PENDING":
        return len(queue.delivered)
    return len(queue.delayed) if view == b"DELAYED" else queue.count_undelivered()


def timed_row(element: Element, distance_ms: int) -> bytes:
    """A clock that went back shows no time below zero."""
    numbers = encode_integer(element.time_ms) + encode_integer(max(0, distance_ms)) + encode_integer(element.deliveries)
    return b"*5\r\n" + encode_element(element) + numbers


@command(
    "RQ.INFO", key("RO"),
    group="queue", flags="readonly fast", since="0.1.0", complexity="O(1)",
    summary="How many elements of a queue are undelivered, and how many delivered.",
)  # fmt: skip
def rq_info(ctx: Call, argv: list[bytes]) -> Outcome:
    queue = get_queue(ctx, argv[1])
    return Outcome(
        encode(["undelivered", queue.count_undelivered(), "delivered", len(queue.delivered)], resp3=ctx.resp3)
    )


@command(
    "RQ.STATS", key("RO"),
    group="queue", flags="readonly fast", since="0.1.0", complexity="O(1)",
    summary="What is in a queue, and what has happened to it.",
)  # fmt: skip
def rq_stats(ctx: Call, argv: list[bytes]) -> Outcome:
    """Names and values in turn: how many elements are undelivered, delivered and delayed now; how many were given
    back (nacks), delivered more than once (redeliveries), delivered too often (dead) and not delivered in time
    (expired) since the queue was made; whether it is paused (none, in, out or all); its last ID.
    """
    queue = get_queue(ctx, argv[1])
    facts = [
        "undelivered", queue.count_undelivered(), "delivered", len(queue.delivered), "delayed", len(queue.delayed),
        "nacks", queue.nacks, "redeliveries", queue.redeliveries, "dead", queue.dead, "expired", queue.expired,
        "paused", direction_of(queue), "last-id", queue.last_name(),
    ]  # fmt: skip
    return Outcome(encode(facts, resp3=ctx.resp3))


def direction_of(queue: ReliableQueue) -> str:
    if queue.takes_in:
        return "none" if queue.gives_out else "out"
    return "in" if queue.gives_out else "all"
