"""LANE.TAKE: a consumer takes keys, with the first messages of each."""

from collections import deque
from itertools import islice
from math import ceil
from typing import Final

from headrace.commands.call import Call
from headrace.commands.hashes import find_hash
from headrace.commands.hr_steps import LAST_MS, MOST
from headrace.commands.lane_board import Board, open_board
from headrace.commands.lane_intake import read_known, read_new, read_strays, rebuild_page
from headrace.commands.lane_mending import mend
from headrace.commands.lane_release import check_dead_letters, expire
from headrace.commands.lane_settings import BAD_LEASE, LONGEST_LEASE_MS
from headrace.commands.lane_ticket import HELD, READY, Ticket
from headrace.commands.numbers import parse_within
from headrace.commands.outcome import Outcome
from headrace.commands.refusals import SYNTAX
from headrace.commands.sorted_sets import find_sorted_set
from headrace.commands.spec import command, integer, key, optional, text
from headrace.engine.ids import id_of
from headrace.engine.lists import LEFT
from headrace.errors import CommandError
from headrace.wire.encoder import EMPTY_ARRAY, encode_array, encode_bulk, encode_integer

FENCED: Final = "FENCED this consumer has another session, or none: register again"
BAD_KEYS: Final = f"ERR KEYS must be from 1 to {MOST}"
BAD_RUN: Final = f"ERR RUN must be from 1 to {MOST}"
BAD_LIMIT: Final = f"ERR LIMIT must be from 1 to {MOST}"
EMPTY: Final = encode_bulk(b"")
NOTHING: Final = -1  # Milliseconds until something happens, when nothing is known.


class Taking:
    """One LANE.TAKE as it goes."""

    __slots__ = (
        "board", "consumer", "end_ms", "keys", "run", "grants", "total", "fresh", "read", "may_read", "is_read_out",
        "left", "held_tail", "held_given",
    )  # fmt: skip

    def __init__(self, board: Board, consumer: bytes, end_ms: int, keys: int, run: int) -> None:
        self.board = board
        self.consumer = consumer
        self.end_ms = end_ms
        self.keys = keys
        self.run = run
        self.grants: list[bytes] = []  # Encoded.
        self.total = 0  # Entries in them.
        self.fresh: dict[bytes, bytes] = {}  # Entries that were just read, by name.
        self.read = 0
        self.may_read = True
        self.is_read_out = False  # There are no more new entries.
        self.left: list[bytes] = []  # Keys that were ready, when the reply was full.
        self.held_given = 0  # How many messages the last key had, and how its ticket ends.
        self.held_tail = b""

    def hold(self, attempt: int, fence: int, given: int) -> Ticket:
        """The ticket of a key that is handed out."""
        if given != self.held_given:
            self.held_given = given
            self.held_tail = b" %d %d %b" % (self.end_ms, given, self.consumer)
        held = Ticket(HELD, attempt, self.end_ms)
        held.fence = fence
        held.given = given
        held.consumer = self.consumer
        held.text = b"held %d %d%b" % (attempt, fence, self.held_tail)
        return held


class Choice:
    """A key that is to be handed out, with its first messages."""

    __slots__ = ("ticket", "lane", "names")

    def __init__(self, ticket: Ticket, lane: "deque[bytes] | None") -> None:
        self.ticket = ticket
        self.lane = lane
        self.names: list[bytes] = []


@command(
    "LANE.TAKE", key("RW update", "stream"), text("group"), text("consumer"), integer("session"),
    integer("milliseconds", "LEASE"), integer("keys", "KEYS"), integer("messages", "RUN"),
    optional(integer("held", "LIMIT")),
    group="headrace", flags="write", categories="stream", since="0.1.0",
    complexity="O(log N) for each key taken, each key whose lease ended and each entry read, at most 1000 of each",
    summary="Take keys with the first messages of each: no other consumer gets them before the lease ends.",
)  # fmt: skip
def lane_take(ctx: Call, argv: list[bytes]) -> Outcome:
    """The reply: the keys, and in how many milliseconds it is worth asking again: 0 at once, -1 nobody knows.

    A key is an array: the key; its fence, a number that grows with every holder; which attempt this is at its first
    message; the error of the last one or an empty text; and up to RUN entries, in the order of the stream. They are
    pending with this consumer from now on. There are at most 1000 entries in one reply.

    Keys whose lease or pause is over come first. Then those that are ready, first come first served. When they are not
    enough, new entries are read. While a rebuild is under way, each call does a part of it and gives nothing.

    With LIMIT no more keys are given than leave the consumer with so many entries pending, for those who take on
    behalf of others and may be several: with RUN 1 it is the number of keys that one holds.
    """
    board = open_board(ctx, argv)
    for index, option in ((5, b"LEASE"), (7, b"KEYS"), (9, b"RUN")):
        if argv[index].upper() != option:
            raise CommandError(SYNTAX)
    lease_ms = parse_within(argv[6], 1, LONGEST_LEASE_MS, BAD_LEASE, BAD_LEASE)
    keys = parse_within(argv[8], 1, MOST, BAD_KEYS, BAD_KEYS)
    run = parse_within(argv[10], 1, MOST, BAD_RUN, BAD_RUN)
    limit = parse_limit(argv)
    check_session(board, argv[3], argv[4])
    check_dead_letters(board)
    note_heartbeat(board, argv[3])
    order = find_hash(ctx, board.keys.order)
    cursor = order.get(b"rebuild") if order is not None else None
    if cursor is not None:
        rebuild_page(board, cursor)
        return board.finish(encode_array([EMPTY_ARRAY, encode_integer(0)]))
    taking = Taking(board, argv[3], ctx.now_ms + lease_ms, keys, run)
    expire(board)
    if limit:
        taking.keys = min(keys, max(0, limit - count_held(board, argv[3])))
    taking.may_read = not read_strays(board)
    take_keys(taking)
    board.write()
    is_all = taking.is_read_out and not board.has_ready() and not mend(board)
    wait_ms = until_first(board) if is_all else 0
    return board.step.outcome(encode_array([encode_array(taking.grants), encode_integer(wait_ms)]))


def parse_limit(argv: list[bytes]) -> int:
    """0: there is none."""
    if len(argv) == 11:
        return 0
    if len(argv) != 13 or argv[11].upper() != b"LIMIT":
        raise CommandError(SYNTAX)
    return parse_within(argv[12], 1, MOST, BAD_LIMIT, BAD_LIMIT)


def count_held(board: Board, name: bytes) -> int:
    """Entries that are pending with a consumer, but for those that it has just lost."""
    consumer = board.group.consumers.get(name)
    if consumer is None:
        return 0
    count = consumer.count_pending()
    for names in board.to_lanes.values():
        count -= sum([board.group.pending[one].consumer is consumer for one in names])
    return count


def check_session(board: Board, consumer: bytes, session: bytes) -> None:
    if find_session(board, consumer) != session:
        raise CommandError(FENCED)


def find_session(board: Board, consumer: bytes) -> bytes:
    """Empty when the consumer is not registered."""
    consumers = find_hash(board.ctx, board.keys.consumers)
    return consumers.get(consumer, b"").partition(b" ")[0] if consumers is not None else b""


def note_heartbeat(board: Board, consumer: bytes) -> None:
    consumers = find_hash(board.ctx, board.keys.consumers)
    if consumers is not None:
        words = consumers[consumer].split(b" ", 2)
        rest = words[2] if len(words) == 3 else b"1 "
        board.step.set_fields(board.keys.consumers, [consumer, b"%b %d %b" % (words[0], board.ctx.now_ms, rest)])


def take_keys(taking: Taking) -> None:
    """Choose keys, fill their runs, hand them out; again while some of them turned out to be done."""
    board = taking.board
    while True:
        chosen = choose_keys(taking)
        if not chosen:
            break
        if taking.run > 1 and taking.may_read and not taking.is_read_out:
            fill_runs(taking, chosen)
        fetch_entries(taking, chosen)
        for one, choice in chosen.items():
            if taking.total < MOST:
                grant(taking, one, choice)
            else:
                taking.left.append(one)
    board.queue_first(taking.left)


def choose_keys(taking: Taking) -> dict[bytes, Choice]:
    """As many keys as are still wanted, or as there are."""
    board = taking.board
    chosen: dict[bytes, Choice] = {}
    wanted = taking.keys - len(taking.grants)
    page = 1
    while len(chosen) < wanted and taking.total < MOST:
        key = board.take_ready()
        if key is not None:
            ticket = board.find_ticket(key)
            if ticket is not None and ticket.state == READY:
                chosen[key] = Choice(ticket, board.find_lane(key))
        elif not taking.may_read or taking.is_read_out or taking.read >= MOST:
            break
        else:
            # No more keys than are wanted come to lie in `ready`, where waiting consumers do not see them.
            missing = wanted - len(chosen)
            count = min(max(missing, page), MOST - taking.read)
            found, taking.is_read_out = read_new(board, count, missing)
            taking.fresh.update(found)
            taking.read += len(found)
            page = 2 * count  # The keys that are still missing are rare.
    return chosen


def fill_runs(taking: Taking, chosen: dict[bytes, Choice]) -> None:
    """More entries for keys that have fewer than RUN, as long as the stream has none of a new key next."""
    board = taking.board
    room: dict[bytes, int] = {}
    for one, choice in chosen.items():
        if choice.lane is not None and len(choice.lane) < taking.run:
            room[one] = taking.run - len(choice.lane)
    size = 1
    while room and not taking.is_read_out and taking.read < MOST:
        count = min(size, MOST - taking.read)
        found, is_full = read_known(board, count, room)
        taking.fresh.update(found)
        taking.read += len(found)
        if not is_full:
            taking.is_read_out = board.group.last_id >= board.stream.last_entry_id()
            return
        size *= 2


def fetch_entries(taking: Taking, chosen: dict[bytes, Choice]) -> None:
    """Find the entries of all these keys together: neighbours of one another are cheaper so."""
    fresh, pending = taking.fresh, taking.board.group.pending
    missing: list[bytes] = []
    room = MOST - taking.total
    for one, choice in chosen.items():
        if choice.lane is None:
            choice.lane = taking.board.find_lane(one)  # Filling runs may have made one.
        if choice.lane is not None and room > 0:
            choice.names = list(islice(choice.lane, min(taking.run, room)))
            room -= len(choice.names)
            for name in choice.names:
                if name not in fresh and name in pending:
                    missing.append(name)
    if missing:
        fresh.update(taking.board.stream.entries_by_name(missing))


def grant(taking: Taking, key: bytes, choice: Choice) -> None:
    board = taking.board
    lane, names = choice.lane, choice.names
    if lane is None:
        board.go_on(key, None)
        return
    attempts, error = choice.ticket.attempts, choice.ticket.error
    head = lane[0]
    entries = find_entries(taking, names)
    if len(entries) < len(names) or not names:
        names, entries = clear_head(taking, key, lane, min(taking.run, MOST - taking.total))
        if not names:
            board.go_on(key, None)
            return
        if names[0] != head:
            attempts, error = 0, b""
    fence = board.next_fence()
    board.tickets[key] = taking.hold(attempts + 1, fence, len(names))
    claim(taking, names, attempts + 1)
    taking.grants.append(
        b"*5\r\n%b:%d\r\n%b%b%b" % (
            encode_bulk(key), fence, encode_integer(attempts + 1), encode_bulk(error) if error else EMPTY,
            encode_array(entries) if len(entries) > 1 else b"*1\r\n" + entries[0],
        )
    )  # fmt: skip
    taking.total += len(names)


def find_entries(taking: Taking, names: list[bytes]) -> list[bytes]:
    """Of names that are pending and whose entries are there; fewer when one is not."""
    board = taking.board
    pending = board.group.pending
    entries: list[bytes] = []
    for name in names:
        entry = taking.fresh.get(name)  # Only those are there that are pending.
        if entry is None:
            if name not in pending:
                break
            entry = board.stream.find(id_of(name))
            if entry is None:
                break
        entries.append(entry)
    return entries


def clear_head(taking: Taking, key: bytes, lane: "deque[bytes]", run: int) -> tuple[list[bytes], list[bytes]]:
    """Take out of a lane what is done, and what is gone from the stream, up to so many messages that are neither."""
    board = taking.board
    names: list[bytes] = []
    entries: list[bytes] = []
    looked_at = 0
    while lane and len(names) < run:
        name = lane.popleft()
        looked_at += 1
        found = find_entries(taking, [name])
        if found:
            names.append(name)
            entries += found
        elif name in board.group.pending:
            board.gone.append(name)
    board.note_popped(key, lane, looked_at)  # The list may be gone with this, and is made anew.
    if names:
        board.step.push(board.keys.lane + key, LEFT, names[::-1])
    return names, entries


def claim(taking: Taking, names: list[bytes], attempt: int) -> None:
    """The entries are this consumer's: the first was tried so often, the others were not."""
    board = taking.board
    if board.claimer is None:
        board.claimer = board.get_consumer(taking.consumer)
    board.claimed.setdefault(attempt, []).append(names[0])
    if len(names) > 1:
        board.claimed.setdefault(1, []).extend(names[1:])


def until_first(board: Board) -> int:
    until = find_sorted_set(board.ctx, board.keys.until)
    if until is None:
        return NOTHING
    [(end_ms, _)] = until.pairs(0, 1)
    return max(0, ceil(min(end_ms, LAST_MS)) - board.ctx.now_ms)
