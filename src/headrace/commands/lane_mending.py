"""What LANE.TAKE does about maps that somebody deleted, once it has nothing more to give.

The maps are ordinary keys. Without `tickets` all lanes are made anew. Without `ready` or `until` some keys stand still:
their tickets say that they are ready or have a time, and no queue has them. There are more tickets then than times; but
parked keys have no time either, so the tickets are looked through, a page of them a second at most.
"""

from typing import Final

from headrace.commands.hashes import find_hash
from headrace.commands.hr_steps import MOST
from headrace.commands.lane_board import Board
from headrace.commands.lane_keys import LANES
from headrace.commands.lane_settings import FIRST
from headrace.commands.lane_ticket import HELD, READY, WAITING, read_number, read_ticket
from headrace.commands.sorted_sets import find_sorted_set
from headrace.engine.lists import RIGHT

LOOK_EVERY_MS: Final = 1000
LOOKED: Final = b"looked"  # Field of `order`: when a page was looked through, and where the next one begins.


def mend(board: Board) -> bool:
    """No key is ready, and everything was written. Whether something was wrong, so that it is worth asking again."""
    tickets = find_hash(board.ctx, board.keys.tickets)
    if tickets is None:
        return make_lanes_anew(board)
    until = find_sorted_set(board.ctx, board.keys.until)
    scores = until.scores if until is not None else NO_SCORES
    if len(tickets) <= len(scores):
        return False
    order = find_hash(board.ctx, board.keys.order)
    looked, _, cursor = (order.get(LOOKED, b"") if order is not None else b"").partition(b" ")
    now_ms = board.ctx.now_ms
    if abs(now_ms - read_number(looked)) < LOOK_EVERY_MS:
        return False
    following, keys = board.ctx.db.orders.page(board.keys.tickets, tickets, read_number(cursor), MOST)
    is_wrong = queue_lost(board, tickets, scores, keys)
    when_ms = 0 if is_wrong else now_ms  # Where one key stands still, others do: the next page at once.
    board.step.set_fields(board.keys.order, [LOOKED, b"%d %d" % (when_ms, following)])
    return is_wrong


def make_lanes_anew(board: Board) -> bool:
    lanes = board.group.consumers.get(LANES)
    if lanes is None or not lanes.count_pending():
        return False
    board.step.set_fields(board.keys.order, [b"rebuild", FIRST])
    return True


def queue_lost(board: Board, tickets: dict[bytes, bytes], scores: dict[bytes, float], keys: list[bytes]) -> bool:
    """Of these keys those that no queue has get their places back. Whether there are such keys."""
    ready: list[bytes] = []
    ends: dict[int, list[bytes]] = {}
    for key in keys:
        if key in tickets and key not in scores:
            ticket = read_ticket(tickets[key])
            if ticket.state == READY:
                ready.append(key)
            elif ticket.state in (HELD, WAITING):
                ends.setdefault(ticket.time_ms, []).append(key)
    if ready:
        board.step.push(board.keys.ready, RIGHT, ready)
    for end_ms, waiting in ends.items():
        board.step.set_scores(board.keys.until, waiting, end_ms)
    return bool(ready or ends)


NO_SCORES: Final[dict[bytes, float]] = {}
