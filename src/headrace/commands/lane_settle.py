"""LANE.SETTLE: what became of the keys a consumer holds, in one step.

As in HR.SETTLE there are three passes over the clauses: read them, check everything, then do it.
"""

from collections import deque
from itertools import islice
from typing import Final

from headrace.commands.call import Call
from headrace.commands.groups import pending_names
from headrace.commands.hr_clauses import Clause, check_effects, parse_rider
from headrace.commands.hr_effects import OWN_KEY, do
from headrace.commands.hr_endings import Story
from headrace.commands.hr_settle import LONGEST_DELAY_MS
from headrace.commands.hr_steps import MOST, NO, TOO_MANY, YES, check_room
from headrace.commands.lane_board import Board, open_board
from headrace.commands.lane_release import free, is_exhausted, park, poison
from headrace.commands.lane_ticket import HELD, WAITING, Ticket, read_number, read_ticket
from headrace.commands.numbers import parse_integer, parse_within
from headrace.commands.outcome import Outcome
from headrace.commands.refusals import SYNTAX
from headrace.commands.spec import block, command, integer, key, many, oneof, optional, text, word
from headrace.errors import CommandError
from headrace.wire.encoder import encode_array

BAD_COUNT: Final = "ERR DONE must be followed by a key, its fence, the number of IDs, 1 or more, and as many IDs"
BAD_DELAY: Final = "ERR the delay of FAIL is not a number of milliseconds"
ONE_GIVEN: Final = Ticket(HELD, 1)
ONE_GIVEN.given = 1
TWICE: Final = "ERR one clause per key is possible in one call"


class LaneClause(Clause):
    """A clause about a key."""

    __slots__ = ("key", "fence", "is_ours", "ticket", "lane")

    def __init__(self, verb: bytes, key: bytes, fence: bytes, ids: list[bytes]) -> None:
        super().__init__(verb, ids)
        self.key = key
        self.fence = fence
        self.is_ours = False
        self.ticket: Ticket | None = None
        self.lane: deque[bytes] | None = None


@command(
    "LANE.SETTLE", key("RW update", "stream"), text("group"), optional(word("KEEP")),
    many(
        oneof(
            "clause",
            block(
                "done", text("lane", "DONE"), integer("fence"), integer("numids"), many(text("id")),
                optional(many(block("effect", integer("words"), many(text("argument")), token="EFFECT"))),
                optional(many(block("add", text("key"), integer("size", "FIELDS"), many(text("word")), token="ADD"))),
            ),
            block("fail", text("lane", "FAIL"), integer("fence"), text("id"), integer("delay-ms"), text("error")),
            block("bury", text("lane", "BURY"), integer("fence"), text("id"), text("error"), text("traceback")),
            block("park", text("lane", "PARK"), integer("fence"), text("error")),
            block("back", text("lane", "BACK"), integer("fence")),
        )
    ),
    group="headrace", flags="write", categories="stream", since="0.1.0", arity=-6,
    complexity="O(log N) for each key, and O(1) for each ID, times the groups",
    summary="Settle keys a consumer holds: messages are done, failed or buried, keys are parked or given back.",
)  # fmt: skip
def lane_settle(ctx: Call, argv: list[bytes]) -> Outcome:
    """Per clause 1, or 0 when it is fenced: the key is not held with that fence any more, or the IDs are not the first
    of those that were given with it. Then nothing of the clause happens. There is one clause for each key.

    DONE acknowledges messages; KEEP, EFFECT and ADD are those of HR.SETTLE. When all that was given is done, the key
    is free: others may take it when there are more messages. FAIL says that the first message failed: nobody gets
    the key before the delay is over, and after the last of MAXATTEMPTS the group's POISON decides. BURY copies the
    first message to the dead letters and goes on as DONE does. PARK stops the key until LANE.RESUME. BACK gives it back
    unfinished, and this attempt does not count.

    Repeating the step does no harm.
    """
    board = open_board(ctx, argv)
    clauses = parse_settle(board, argv)
    find_ours(board, clauses)
    check_keys(board, clauses)
    replies: list[bytes] = []
    for clause in clauses:
        replies.append(YES if clause.is_ours else NO)
        ticket, lane = clause.ticket, clause.lane
        if clause.is_ours and ticket is not None and lane is not None:
            settle(board, clause, ticket, lane)
    return board.finish(encode_array(replies))


# Reading


def parse_settle(board: Board, argv: list[bytes]) -> list[LaneClause]:
    board.keeps = argv[3].upper() == b"KEEP"
    clauses: list[LaneClause] = []
    index = 4 if board.keeps else 3
    while index < len(argv):
        index = parse_clause(argv, index, clauses)
    if not clauses:
        raise CommandError(SYNTAX)
    if sum([max(1, len(clause.ids)) for clause in clauses]) > MOST:
        raise CommandError(TOO_MANY)
    if len({clause.key for clause in clauses}) < len(clauses):
        raise CommandError(TWICE)
    pending = board.group.pending.unfolded
    for clause in clauses:
        if len(clause.ids) != 1 or clause.ids[0] not in pending:
            clause.ids = pending_names(board.group, clause.ids)
    return clauses


def parse_clause(argv: list[bytes], index: int, clauses: list[LaneClause]) -> int:
    """Read one word and what belongs to it; the index behind it."""
    verb = argv[index].upper()
    left = len(argv) - index - 1
    if verb == b"DONE" and left >= 3:
        count = parse_integer(argv[index + 3], BAD_COUNT)
        if not 1 <= count <= left - 3:
            raise CommandError(BAD_COUNT)
        ids = argv[index + 4 : index + 4 + count]
        clauses.append(LaneClause(verb, argv[index + 1], argv[index + 2], ids))
        return index + 4 + count
    if verb in (b"FAIL", b"BURY") and left >= 5:
        clause = LaneClause(verb, argv[index + 1], argv[index + 2], [argv[index + 3]])
        if verb == b"FAIL":
            clause.delay_ms = parse_within(argv[index + 4], 0, LONGEST_DELAY_MS, BAD_DELAY, BAD_DELAY)
            clause.error = argv[index + 5]
        else:
            clause.error = argv[index + 4]
            clause.traceback = argv[index + 5]
        clauses.append(clause)
        return index + 6
    if verb == b"PARK" and left >= 3:
        clause = LaneClause(verb, argv[index + 1], argv[index + 2], [])
        clause.error = argv[index + 3]
        clauses.append(clause)
        return index + 4
    if verb == b"BACK" and left >= 2:
        clauses.append(LaneClause(verb, argv[index + 1], argv[index + 2], []))
        return index + 3
    if clauses and clauses[-1].verb == b"DONE":
        return parse_rider(argv, index, clauses[-1])
    raise CommandError(SYNTAX)


# Checking


def find_ours(board: Board, clauses: list[LaneClause]) -> None:
    stored = board.stored if board.stored is not None else {}
    for clause in clauses:
        text = stored.get(clause.key)
        ticket = match_ticket(text, clause) if text is not None else None
        if ticket is None:
            continue
        lane = board.find_lane(clause.key)
        if lane is not None and is_head(lane, ticket.given, clause.ids):
            clause.is_ours = True
            clause.names = clause.ids
            clause.ticket = ticket
            clause.lane = lane


def match_ticket(text: bytes, clause: LaneClause) -> Ticket | None:
    """The ticket, if the key is held with the clause's fence."""
    words = text.split(b" ", 5)
    is_held = len(words) == 6 and words[0] == HELD
    if is_held and words[2] == clause.fence and words[4] == b"1" and clause.verb == b"DONE":
        return ONE_GIVEN  # Nearly all are like this, and nothing else of the ticket matters then.
    ticket = read_ticket(text)
    return ticket if ticket.state == HELD and ticket.fence == read_number(clause.fence) else None


def is_head(lane: "deque[bytes]", given: int, ids: list[bytes]) -> bool:
    """Whether these are the first of those that were given."""
    count = len(ids)
    if count == 1:
        return lane[0] == ids[0]
    return count <= given and list(islice(lane, count)) == ids


def check_keys(board: Board, clauses: list[LaneClause]) -> None:
    """Behind this nothing can fail."""
    ctx, keys = board.ctx, board.keys
    own = keys.all()
    for clause in clauses:
        if clause.verb in (b"BURY", b"FAIL"):
            check_room(ctx, keys.dead)
        for add in clause.adds:
            check_room(ctx, add[0])
            if add[0] in own or add[0].startswith(keys.lane):
                raise CommandError(OWN_KEY)
    check_effects(ctx, own | {board.stream_name}, keys.lane, clauses)


# Doing


def settle(board: Board, clause: LaneClause, ticket: Ticket, lane: "deque[bytes]") -> None:
    key, verb = clause.key, clause.verb
    if verb == b"DONE":
        for effect in clause.effects:
            do(board.step, effect)
        for add in clause.adds:
            board.step.add(add[0], add, 1)
        board.settled += clause.names
        finish_heads(board, key, ticket, lane, len(clause.names))
    elif verb == b"BURY":
        board.bury(lane[0], Story(ticket.attempts, clause.error, clause.traceback))
        finish_heads(board, key, ticket, lane, 1)
    elif verb == b"BACK":
        if free(board, key, ticket, counts=False):
            board.queue_first([key])
    else:
        board.give_back(lane, ticket.given, ticket.attempts)
        if verb == b"PARK":
            park(board, key, ticket.attempts, clause.error)
        elif is_exhausted(board, ticket.attempts):
            poison(board, key, lane, ticket.attempts, clause.error)
        else:
            end_ms = board.ctx.now_ms + clause.delay_ms
            board.tickets[key] = Ticket(WAITING, ticket.attempts, end_ms, clause.error)


def finish_heads(board: Board, key: bytes, ticket: Ticket, lane: "deque[bytes]", count: int) -> None:
    """The first messages are done with: the holder goes on with the next one, or the key is free."""
    board.shorten(key, lane, count)
    if count == ticket.given:
        board.go_on(key, lane)
        return
    held = Ticket(HELD, 1, ticket.time_ms)
    held.fence = ticket.fence
    held.given = ticket.given - count
    held.consumer = ticket.consumer
    held.keeps_time = True
    board.tickets[key] = held
