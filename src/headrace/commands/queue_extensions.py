"""Reliable queues beyond the original module: delays, times to live, retries, dead letters, giving back, pausing."""

from typing import Final

from headrace.commands.call import Call
from headrace.commands.notifications import MODULE
from headrace.commands.numbers import parse_integer, parse_within
from headrace.commands.outcome import CHANGED, OK, Outcome
from headrace.commands.queue_steps import (
    bring_forward,
    check_names,
    encode_names,
    find_queue,
    get_open_queue,
    get_or_create,
    settled,
)
from headrace.commands.refusals import SYNTAX
from headrace.commands.spec import block, command, integer, key, many, oneof, optional, text, word
from headrace.engine.queue_element import NEVER_MS, Options
from headrace.engine.reliable_queue import ReliableQueue
from headrace.errors import CommandError
from headrace.journal.record import (
    QUEUE_GIVE_BACK,
    QUEUE_PAUSE,
    QUEUE_PUSH_WITH,
    QUEUE_RESTART,
    encode_record,
)
from headrace.wire.encoder import encode_null

LONGEST_MS: Final = 2**53  # Exact in every language, and added to any clock still a time.
MOST_DELIVERIES: Final = 2**31 - 1
ELEMENTS: Final = "ERR ELEMENTS must be followed by a number, 1 or more, and by exactly so many elements"


class PushOptions:
    __slots__ = ("delay_ms", "ttl_ms", "retry_ms", "max_deliveries", "dead_letter", "bodies_at")

    def __init__(self) -> None:
        self.delay_ms = 0
        self.ttl_ms = 0
        self.retry_ms = 0
        self.max_deliveries = 0
        self.dead_letter = b""
        self.bodies_at = 0


@command(
    "RQ.PUSHX", key("RW insert"), optional(integer("milliseconds", "DELAY")), optional(integer("milliseconds", "TTL")),
    optional(integer("milliseconds", "RETRY")),
    optional(block("limit", integer("deliveries", "MAXDELIVERIES"), optional(text("queue", "DEADLETTER")))),
    integer("numelements", "ELEMENTS"), many(text("element")),
    group="queue", flags="write denyoom fast", since="0.1.0",
    complexity="O(1) for each element; O(log(N)) with DELAY or TTL and N elements that wait for their time",
    summary="Append elements to a reliable queue and say how they are to be treated.", tips="nondeterministic_output",
)  # fmt: skip
def rq_pushx(ctx: Call, argv: list[bytes]) -> Outcome:
    """The reply is that of RQ.PUSH. The options come before ELEMENTS, in any order.

    DELAY: they join the end of the queue so much later. TTL: those not delivered for the first time by then are
    dropped and counted as expired. RETRY: a delivered element that is not acknowledged for so long is undelivered
    again by itself.

    MAXDELIVERIES: an element that has been delivered so often is not delivered again; when its next turn comes it is
    counted as dead and moved to the DEADLETTER queue, as a new element without options, or dropped when none is
    named. When that key holds another type by then, the element is delivered all the same.
    """
    options = parse_push(argv)
    name = argv[1]
    queue = get_open_queue(ctx, name)
    bodies = argv[options.bodies_at :]
    now_ms = ctx.now_ms
    ready_ms = now_ms + options.delay_ms if options.delay_ms else NEVER_MS
    expires_ms = now_ms + options.ttl_ms if options.ttl_ms else NEVER_MS
    treatment = None
    if options.retry_ms or options.max_deliveries:
        treatment = Options(options.retry_ms, options.max_deliveries, options.dead_letter)
    names = queue.push_with(now_ms, bodies, treatment, ready_ms, expires_ms)
    ctx.state.changes += len(bodies) - 1
    ctx.notify(MODULE, b"rq.push", name)
    record = CHANGED
    if ctx.journaling:
        numbers = [b"%d" % n for n in (ready_ms, expires_ms, options.retry_ms, options.max_deliveries)]
        record = encode_record(QUEUE_PUSH_WITH, ctx.db.number, name, names[0], *numbers, options.dead_letter, *bodies)
    if ready_ms:
        bring_forward(ctx, name, queue)
        return Outcome(encode_names(names), record)
    return Outcome(encode_names(names), record, name)


def parse_push(argv: list[bytes]) -> PushOptions:
    options = PushOptions()
    given: set[bytes] = set()
    index = 2
    while not options.bodies_at:
        if index + 1 >= len(argv) or argv[index].upper() in given:
            raise CommandError(SYNTAX)
        option = argv[index].upper()
        value = argv[index + 1]
        given.add(option)
        if option == b"DELAY":
            options.delay_ms = parse_span(value, 0, "DELAY")
        elif option == b"TTL":
            options.ttl_ms = parse_span(value, 1, "TTL")
        elif option == b"RETRY":
            options.retry_ms = parse_span(value, 1, "RETRY")
        elif option == b"MAXDELIVERIES":
            out_of_range = f"ERR MAXDELIVERIES must be from 1 to {MOST_DELIVERIES}"
            options.max_deliveries = parse_within(value, 1, MOST_DELIVERIES, out_of_range)
        elif option == b"DEADLETTER":
            options.dead_letter = value
        elif option == b"ELEMENTS":
            if parse_integer(value, ELEMENTS) != len(argv) - index - 2 or index + 2 == len(argv):
                raise CommandError(ELEMENTS)
            options.bodies_at = index + 2
        else:
            raise CommandError(SYNTAX)
        index += 2
    if b"DEADLETTER" in given and (not options.max_deliveries or options.dead_letter in (b"", argv[1])):
        raise CommandError("ERR DEADLETTER must name another key, and needs MAXDELIVERIES")
    return options


def parse_span(value: bytes, least: int, option: str) -> int:
    return parse_within(value, least, LONGEST_MS, f"ERR {option} must be from {least} to {LONGEST_MS} milliseconds")


@command(
    "RQ.NACK", key("RW update"), optional(integer("milliseconds", "DELAY")), many(text("id")),
    group="queue", flags="write fast", since="0.1.0",
    complexity="O(log(N)) for each ID, with N elements given back or waiting for their time",
    summary="Give delivered elements back: they could not be processed.",
)  # fmt: skip
def rq_nack(ctx: Call, argv: list[bytes]) -> Outcome:
    """They are undelivered again, before all that were never delivered, lowest ID first; with DELAY so much later.

    The reply is the array of the IDs that were really given back, null when there is no such queue.
    """
    start = 2
    delay_ms = 0
    if argv[2].upper() == b"DELAY":
        if len(argv) < 5:
            raise CommandError(SYNTAX)
        delay_ms = parse_span(argv[3], 0, "DELAY")
        start = 4
    name = argv[1]
    queue = find_queue(ctx, name)
    names = check_names(queue, argv, start)
    if queue is None:
        return Outcome(encode_null(resp3=ctx.resp3))
    ready_ms = ctx.now_ms + delay_ms if delay_ms else NEVER_MS
    done = [one for one in names if queue.give_back(one, ready_ms)]
    outcome = settled(ctx, b"rq.nack", QUEUE_GIVE_BACK, name, [b"%d" % ready_ms], done)
    if ready_ms:
        bring_forward(ctx, name, queue)
    elif done:
        outcome.wake = name
    return outcome


@command(
    "RQ.EXTEND", key("RW update"), many(text("id")),
    group="queue", flags="write fast", since="0.1.0", complexity="O(1) for each ID, O(log(N)) for those with RETRY",
    summary="Go on working on delivered elements: their time starts again.",
)  # fmt: skip
def rq_extend(ctx: Call, argv: list[bytes]) -> Outcome:
    """RECOVER and RETRY count from now on. The number of deliveries stays.

    The reply is the array of the IDs whose time was restarted, null when there is no such queue. An ID that is missing
    there is not this consumer's any more.
    """
    queue = find_queue(ctx, argv[1])
    names = check_names(queue, argv, 2)
    if queue is None:
        return Outcome(encode_null(resp3=ctx.resp3))
    done = [name for name in dict.fromkeys(names) if restart(ctx, queue, name)]
    return settled(ctx, b"rq.extend", QUEUE_RESTART, argv[1], [b"%d" % ctx.now_ms], done)


def restart(ctx: Call, queue: ReliableQueue, name: bytes) -> bool:
    element = queue.delivered.get(name)
    if element is None:
        return False
    queue.restart(element, ctx.now_ms)
    return True


@command(
    "RQ.PAUSE", key("RW update"), oneof("direction", word("IN"), word("OUT"), word("ALL"), word("NONE")),
    group="queue", flags="write fast", since="0.1.0", complexity="O(1)",
    summary="Stop a queue from taking elements in, from giving them out, both or neither.",
)  # fmt: skip
def rq_pause(ctx: Call, argv: list[bytes]) -> Outcome:
    """IN: pushing is refused with -PAUSED. OUT: RQ.POP and RQ.RECOVER find nothing, and RQ.POP BLOCK waits.

    What is given back, comes due or is a dead letter still gets in, and time goes on. A missing queue is created, so
    that it can be paused before it is used.
    """
    name = argv[1]
    direction = argv[2].upper()
    if direction not in (b"IN", b"OUT", b"ALL", b"NONE"):
        raise CommandError(SYNTAX)
    takes_in = direction in (b"OUT", b"NONE")
    gives_out = direction in (b"IN", b"NONE")
    queue = find_queue(ctx, name)
    if (queue is None and direction == b"NONE") or (
        queue is not None and queue.takes_in == takes_in and queue.gives_out == gives_out
    ):
        return OK
    queue = get_or_create(ctx, name)
    queue.takes_in = takes_in
    queue.gives_out = gives_out
    ctx.notify(MODULE, b"rq.pause", name)
    record = CHANGED
    if ctx.journaling:
        record = encode_record(QUEUE_PAUSE, ctx.db.number, name, b"%d" % takes_in, b"%d" % gives_out)
    return Outcome(OK.reply, record, name)
