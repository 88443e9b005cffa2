"""Who takes keys: LANE.REGISTER, LANE.EXTEND (still working on them), LANE.LEAVE.

A consumer is a field of the hash `consumers`: `session heartbeat-ms capacity health-url`. The session is a fence: of
two processes with one name the later one counts.
"""

from typing import Final

from headrace.commands.call import Call
from headrace.commands.hr_steps import MOST, NO, YES
from headrace.commands.lane_board import Board, open_board
from headrace.commands.lane_keys import LANES
from headrace.commands.lane_release import check_dead_letters, free_all
from headrace.commands.lane_settings import BAD_LEASE, LONGEST_LEASE_MS
from headrace.commands.lane_take import check_session, find_session, note_heartbeat
from headrace.commands.lane_ticket import HELD, Ticket
from headrace.commands.notifications import STREAM
from headrace.commands.numbers import parse_within
from headrace.commands.outcome import ZERO, Outcome
from headrace.commands.refusals import SYNTAX
from headrace.commands.spec import block, command, integer, key, many, optional, text, word
from headrace.errors import CommandError
from headrace.journal.record import DELETE_CONSUMER, encode_record
from headrace.wire.encoder import encode_array, encode_integer

MOST_PLACES: Final = 1_000_000
BAD_CAPACITY: Final = f"ERR CAPACITY must be from 1 to {MOST_PLACES}"
BAD_COUNT: Final = f"ERR the number of keys must be from 0 to {MOST}, with a key and its fence for each"


@command(
    "LANE.REGISTER", key("RW update", "stream"), text("group"), text("consumer"),
    optional(integer("places", "CAPACITY")), optional(text("url", "HEALTH")),
    group="headrace", flags="write", categories="stream", since="0.1.0",
    complexity="O(1), or O(N) with N entries that a consumer of this name holds",
    summary="Make a consumer known that wants to take keys.",
)  # fmt: skip
def lane_register(ctx: Call, argv: list[bytes]) -> Outcome:
    """The reply: the session, to be named in every step, and the lease of the group in milliseconds.

    Who registers again gets a new session. Keys that were held under the old one queue up before all others, and what
    is said about them with old fences does not count. CAPACITY and HEALTH are kept for those who look.
    """
    board = open_board(ctx, argv)
    capacity, health = parse_register(argv)
    if argv[3] in (b"", LANES, board.settings.reader):
        raise CommandError("ERR this name is not for consumers: choose another")
    check_dead_letters(board)
    free_all(board, argv[3], set(), counts=True)
    session = board.next_fence()
    value = b"%d %d %d %b" % (session, ctx.now_ms, capacity, health)
    board.step.set_fields(board.keys.consumers, [argv[3], value])
    return board.finish(encode_array([encode_integer(session), encode_integer(board.settings.lease_ms)]))


def parse_register(argv: list[bytes]) -> tuple[int, bytes]:
    capacity = 0
    health: bytes | None = None
    index = 4
    while index + 1 < len(argv):
        option = argv[index].upper()
        if option == b"CAPACITY" and not capacity:
            capacity = parse_within(argv[index + 1], 1, MOST_PLACES, BAD_CAPACITY, BAD_CAPACITY)
        elif option == b"HEALTH" and health is None:
            health = argv[index + 1]
        else:
            raise CommandError(SYNTAX)
        index += 2
    if index != len(argv):
        raise CommandError(SYNTAX)
    return capacity or 1, health or b""


@command(
    "LANE.EXTEND", key("RW update", "stream"), text("group"), text("consumer"), integer("session"),
    integer("milliseconds", "LEASE"), optional(word("ONLY")), integer("numkeys"),
    optional(many(block("held", text("lane"), integer("fence")))),
    group="headrace", flags="write", categories="stream", since="0.1.0",
    complexity="O(log N) for each key; with ONLY also O(M) with M entries that the consumer holds",
    summary="Let the leases of a consumer's keys begin again: it still works on them.",
)  # fmt: skip
def lane_extend(ctx: Call, argv: list[bytes]) -> Outcome:
    """Per key 1, or 0 when it is not held with that fence any more. Without keys it is a sign of life.

    Messages at the head of a key that were acknowledged by hand leave it; a key of which none is left is 0.
    With ONLY all other keys of this consumer are given back, as if they had never been taken: it does not know them.
    """
    board = open_board(ctx, argv)
    if argv[5].upper() != b"LEASE":
        raise CommandError(SYNTAX)
    lease_ms = parse_within(argv[6], 1, LONGEST_LEASE_MS, BAD_LEASE, BAD_LEASE)
    only = argv[7].upper() == b"ONLY"
    start = 9 if only else 8
    if start > len(argv):
        raise CommandError(SYNTAX)
    count = parse_within(argv[start - 1], 0, MOST, BAD_COUNT, BAD_COUNT)
    if len(argv) - start != 2 * count:
        raise CommandError(BAD_COUNT)
    check_session(board, argv[3], argv[4])
    note_heartbeat(board, argv[3])
    replies: list[bytes] = []
    kept: set[bytes] = set()
    for index in range(start, len(argv), 2):
        if extend(board, argv[3], argv[index], argv[index + 1], ctx.now_ms + lease_ms):
            kept.add(argv[index])
            replies.append(YES)
        else:
            replies.append(NO)
    if only:
        free_all(board, argv[3], kept, counts=False)
    return board.finish(encode_array(replies))


def extend(board: Board, consumer: bytes, key: bytes, fence: bytes, end_ms: int) -> bool:
    ticket = board.find_ticket(key)
    if ticket is None or ticket.state != HELD or ticket.consumer != consumer or b"%d" % ticket.fence != fence:
        return False
    lane = board.find_lane(key)
    dropped = board.drop_done_heads(key, lane, ticket.given) if lane is not None else ticket.given
    if dropped == ticket.given:
        board.go_on(key, lane)
        return False
    held = Ticket(HELD, 1 if dropped else ticket.attempts, end_ms)
    held.fence = ticket.fence
    held.given = ticket.given - dropped
    held.consumer = consumer
    board.tickets[key] = held
    return True


@command(
    "LANE.LEAVE", key("RW update", "stream"), text("group"), text("consumer"), integer("session"),
    group="headrace", flags="write", categories="stream", since="0.1.0",
    complexity="O(N) with N entries that the consumer holds",
    summary="A consumer goes: others may take its keys at once.",
)  # fmt: skip
def lane_leave(ctx: Call, argv: list[bytes]) -> Outcome:
    """The reply counts the keys that it gave back; attempts that were under way do not count.

    The consumer leaves the group too, unless something else is pending with it.
    """
    board = open_board(ctx, argv)
    if not find_session(board, argv[3]):
        return ZERO
    check_session(board, argv[3], argv[4])
    count = free_all(board, argv[3], set(), counts=False)
    board.step.remove_fields(board.keys.consumers, [argv[3]])
    outcome = board.finish(encode_integer(count))
    consumer = board.group.consumers.get(argv[3])
    if consumer is not None and not consumer.count_pending():
        board.group.delete_consumer(argv[3])
        ctx.notify(STREAM, b"xgroup-delconsumer", argv[1])
        if ctx.journaling and outcome.record is not None:
            outcome.record += encode_record(DELETE_CONSUMER, ctx.db.number, argv[1], argv[2], argv[3])
    return outcome
