"""How a key loses its holder: the lease ended, the holder gave it back or went, or the key is poison."""

from collections import deque
from typing import Final

from headrace.commands.hr_endings import Story
from headrace.commands.hr_steps import MOST, check_room
from headrace.commands.lane_board import Board
from headrace.commands.lane_intake import key_of
from headrace.commands.lane_ticket import HELD, PARKED, WAITING, Ticket
from headrace.commands.sorted_sets import find_sorted_set
from headrace.engine.ids import MAX_ID

ENDED: Final = b"its consumers ended while they ran it"
MOST_PENDING: Final = 10_000  # Of one consumer that are looked at together; the others come back with their leases.


def check_dead_letters(board: Board) -> None:
    """The step may bury something: that must be possible before anything changes."""
    settings = board.settings
    if settings.keyless == b"dead" or (settings.max_attempts and settings.poison == b"skip"):
        check_room(board.ctx, board.keys.dead)


def free(board: Board, key: bytes, ticket: Ticket, *, counts: bool) -> bool:
    """Nobody holds the key any more. Whether it is to queue up before all others.

    An attempt that counts was begun and came to no end; one too many is poison.
    """
    lane = board.find_lane(key)
    attempts = ticket.attempts if counts else max(0, ticket.attempts - 1)
    if lane:
        dropped = board.drop_done_heads(key, lane, MOST)
        if dropped:
            attempts = 0
        board.give_back(lane, max(0, ticket.given - dropped), attempts)
    if not lane:
        board.go_on(key, None)
        return False
    if counts and is_exhausted(board, attempts):
        poison(board, key, lane, attempts, ENDED)
        return False
    board.make_ready(key, attempts)
    return True


def is_exhausted(board: Board, attempts: int) -> bool:
    return 0 < board.settings.max_attempts <= attempts


def poison(board: Board, key: bytes, lane: "deque[bytes]", attempts: int, error: bytes) -> None:
    """The message at the head failed for the last time: its key stops, or goes on without it."""
    if board.settings.poison == b"skip":
        if lane[0] in board.group.pending:
            board.bury(lane[0], Story(attempts, error, b""))
        board.shorten(key, lane, 1)
        board.go_on(key, lane)
    else:
        park(board, key, attempts, error)


def park(board: Board, key: bytes, attempts: int, error: bytes) -> None:
    board.tickets[key] = Ticket(PARKED, attempts, board.ctx.now_ms, error)


def expire(board: Board) -> None:
    """Leases and pauses that are over: these keys queue up before all others, the one that ended first in front."""
    until = find_sorted_set(board.ctx, board.keys.until)
    if until is None:
        return
    first: list[bytes] = []
    for end_ms, key in until.pairs(0, MOST):
        if end_ms > board.ctx.now_ms:
            break
        ticket = board.find_ticket(key)
        if ticket is None or ticket.state == PARKED:
            board.timeless.append(key)
        elif ticket.state == HELD:
            if free(board, key, ticket, counts=True):
                first.append(key)
        elif ticket.state == WAITING and is_exhausted(board, ticket.attempts):
            lane = board.find_lane(key)
            if lane:
                poison(board, key, lane, ticket.attempts, ticket.error)
            else:
                board.go_on(key, None)
        else:
            board.make_ready(key, ticket.attempts, ticket.error)
            first.append(key)
    board.queue_first(first)


def free_all(board: Board, name: bytes, kept: set[bytes], *, counts: bool) -> int:
    """The keys that a consumer holds, but for some, queue up before all others. How many it loses."""
    consumer = board.group.consumers.get(name)
    if consumer is None:
        return 0
    names = board.group.pending_between(0, MAX_ID, MOST_PENDING, consumer)
    first: list[bytes] = []
    count = 0
    seen = set(kept)
    for entry_name, entry in zip(names, board.stream.entries_at(names), strict=True):
        key = key_of(board, entry_name, entry) if entry is not None else b""
        if not key or key in seen:
            continue
        seen.add(key)
        ticket = board.find_ticket(key)
        if ticket is not None and ticket.state == HELD and ticket.consumer == name:
            count += 1
            if free(board, key, ticket, counts=counts):
                first.append(key)
    board.queue_first(first)
    return count
