"""LANE.INFO: the order of a group as it stands."""

from collections import deque
from itertools import islice

from headrace.commands.call import Call
from headrace.commands.hashes import find_hash
from headrace.commands.hr_steps import MOST
from headrace.commands.lane_board import Board, open_board
from headrace.commands.lane_ticket import HELD, PARKED, WAITING
from headrace.commands.outcome import Outcome
from headrace.commands.refusals import SYNTAX
from headrace.commands.sorted_sets import find_sorted_set
from headrace.commands.spec import command, key, optional, text
from headrace.errors import CommandError
from headrace.wire.encoder import encode, encode_null
from headrace.wire.values import Value


@command(
    "LANE.INFO", key("RO access", "stream"), text("group"), optional(text("lane", "KEY")),
    group="headrace", flags="readonly", categories="stream", since="0.1.0",
    complexity="O(1), or O(N) with N messages of the key, at most 1000",
    summary="The settings of a group's order and how many keys there are, or everything about one key.",
)  # fmt: skip
def lane_info(ctx: Call, argv: list[bytes]) -> Outcome:
    """Names and values in turn. Of a key that has no messages: nil."""
    board = open_board(ctx, argv)
    if len(argv) == 3:
        return Outcome(encode(describe_order(board), resp3=ctx.resp3))
    if len(argv) != 5 or argv[3].upper() != b"KEY":
        raise CommandError(SYNTAX)
    facts = describe_key(board, argv[4])
    return Outcome(encode(facts, resp3=ctx.resp3) if facts else encode_null(resp3=ctx.resp3))


def describe_order(board: Board) -> list[Value]:
    ctx, keys, settings = board.ctx, board.keys, board.settings
    until = find_sorted_set(ctx, keys.until)
    consumers = find_hash(ctx, keys.consumers)
    reader = board.group.consumers.get(settings.reader)
    order = find_hash(ctx, keys.order)
    return [
        b"keyfields", list(settings.key_fields), b"poison", settings.poison, b"maxattempts", settings.max_attempts,
        b"keyless", settings.keyless, b"lease", settings.lease_ms, b"reader", settings.reader,
        b"tickets", settings.tickets, b"consumers", settings.consumers, b"layout", settings.layout,
        b"keys", len(board.stored) if board.stored is not None else 0,
        b"ready", len(board.ready) if board.ready is not None else 0,
        b"timed", len(until.scores) if until is not None else 0,
        b"registered", len(consumers) if consumers is not None else 0,
        b"pending-reader", reader.count_pending() if reader is not None else 0,
        b"fence", board.fence, b"rebuilding", int(order is not None and b"rebuild" in order),
    ]  # fmt: skip


def describe_key(board: Board, key: bytes) -> list[Value]:
    """Empty when there is no such key."""
    ticket = board.find_ticket(key)
    if ticket is None:
        return []
    value = board.ctx.find(board.keys.lane + key)
    lane = value if isinstance(value, deque) else board.back
    ids: list[Value] = list(islice(lane, MOST))
    return [
        b"state", ticket.state, b"attempts", ticket.attempts, b"fence", ticket.fence,
        b"until", ticket.time_ms if ticket.state in (HELD, WAITING) else 0,
        b"since", ticket.time_ms if ticket.state == PARKED else 0, b"consumer", ticket.consumer,
        b"given", ticket.given, b"error", ticket.error, b"length", len(lane), b"ids", ids,
    ]  # fmt: skip
