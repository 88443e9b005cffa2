"""The order of a group as a whole, and its single keys: LANE.CONFIG, LANE.REBUILD, LANE.PARK, LANE.RESUME."""

from headrace.commands.call import Call
from headrace.commands.groups import find_group
from headrace.commands.hashes import find_hash
from headrace.commands.hr_endings import Story
from headrace.commands.hr_steps import MOST, Step, check_room
from headrace.commands.lane_board import Board, open_board
from headrace.commands.lane_intake import rebuild_page
from headrace.commands.lane_keys import LaneKeys
from headrace.commands.lane_release import check_dead_letters, park
from headrace.commands.lane_settings import FIRST, LaneSettings, check_maps, find_settings, parse_config
from headrace.commands.lane_ticket import HELD, PARKED, READY, WAITING
from headrace.commands.lists import drop_list, find_list
from headrace.commands.notifications import LIST
from headrace.commands.outcome import CHANGED, ZERO, Outcome
from headrace.commands.refusals import SYNTAX
from headrace.commands.sorted_sets import find_sorted_set
from headrace.commands.spec import block, command, integer, key, many, oneof, optional, text, word
from headrace.engine.lists import remove_elements
from headrace.errors import CommandError
from headrace.journal.record import LIST_REMOVE, encode_record
from headrace.wire import encoder


@command(
    "LANE.CONFIG", key("RW update", "stream"), text("group"), integer("numfields", "KEYFIELDS"), many(text("field")),
    optional(oneof("poison", word("PARK"), word("SKIP"), token="POISON")), optional(integer("count", "MAXATTEMPTS")),
    optional(oneof("keyless", word("OWN"), word("DEAD"), token="KEYLESS")), optional(integer("milliseconds", "LEASE")),
    optional(text("reader", "READER")), optional(block("maps", text("tickets"), text("consumers"), token="MAPS")),
    optional(oneof("layout", word("LIST"), token="LAYOUT")),
    group="headrace", flags="write", categories="stream", since="0.1.0", complexity="O(1)",
    summary="Say by which fields the messages of a group are kept in order.",
)  # fmt: skip
def lane_config(ctx: Call, argv: list[bytes]) -> Outcome:
    """KEYFIELDS names fields of an entry, or members of the JSON object in its field `data`; the first that is there is
    its key. A message without any gets a lane of its own, or with KEYLESS DEAD becomes a dead letter.

    POISON says what becomes of a key whose first message failed for the last of MAXATTEMPTS times (0: there is no last
    one): PARK stops the key, SKIP buries the message and goes on. LEASE is what LANE.REGISTER tells consumers. READER
    is the consumer in whose name they wait for new entries. MAPS gives the hashes `tickets` and `consumers` other
    names; what is there already goes.

    The same settings again change nothing. Other KEYFIELDS, READER or MAPS, and the first ones, make the lanes anew
    from what is pending: LANE.TAKE does it bit by bit.
    """
    find_group(ctx, argv[1], argv[2])
    keys = LaneKeys(argv[1], argv[2])
    settings = parse_config(argv, keys)
    check_maps(argv[1], argv[2], settings)
    before = find_settings(ctx, keys)
    find_hash(ctx, settings.tickets)
    find_hash(ctx, settings.consumers)
    find_hash(ctx, keys.tickets)
    find_hash(ctx, keys.consumers)
    find_list(ctx, keys.ready)
    find_sorted_set(ctx, keys.until)
    step = Step(ctx)
    if before is None or is_other_order(before, settings):
        if before is not None and before.consumers != settings.consumers:
            step.remove(before.consumers)
        begin_rebuild(step, keys)
        step.remove(settings.tickets)
    if before is None or before.encode() != settings.encode():
        step.set_fields(keys.order, settings.encode())
    return step.outcome(encoder.OK)


def is_other_order(before: LaneSettings, after: LaneSettings) -> bool:
    """Whether the lanes, or where they are, would be others."""
    return (
        before.key_fields != after.key_fields or before.reader != after.reader or before.tickets != after.tickets
        or before.consumers != after.consumers or before.layout != after.layout
    )  # fmt: skip


def begin_rebuild(step: Step, keys: LaneKeys) -> None:
    """The lanes go with their tickets: with other KEYFIELDS one of the same name would hold other messages."""
    for lane in find_hash(step.ctx, keys.tickets) or ():
        step.remove(keys.lane + lane)
    for name in (keys.tickets, keys.ready, keys.until):
        step.remove(name)
    step.set_fields(keys.order, [b"rebuild", FIRST])


@command(
    "LANE.REBUILD", key("RW update", "stream"), text("group"),
    group="headrace", flags="write", categories="stream", since="0.1.0",
    complexity="O(N) with N pending entries, at most 1000 in this call and 1000 in each LANE.TAKE behind it",
    summary="Make the lanes of a group anew from its pending entries.",
)  # fmt: skip
def lane_rebuild(ctx: Call, argv: list[bytes]) -> Outcome:
    """All keys are ready then, parked ones too, no attempt was made, and who held a key is fenced."""
    before = open_board(ctx, argv)
    check_dead_letters(before)
    step = Step(ctx)
    begin_rebuild(step, before.keys)
    board = Board(step, argv[1], argv[2], before.stream, before.group, before.keys, before.settings)
    rebuild_page(board, FIRST)
    return board.finish(encoder.OK)


@command(
    "LANE.PARK", key("RW update", "stream"), text("group"), text("lane"), optional(text("text", "ERROR")),
    group="headrace", flags="write", categories="stream", since="0.1.0",
    complexity="O(1), or O(N) with N ready keys when the key is one of them",
    summary="Stop a key: nobody gets its messages until it is resumed.",
)  # fmt: skip
def lane_park(ctx: Call, argv: list[bytes]) -> Outcome:
    """1, or 0 when there is no such key. Who holds it is fenced."""
    board = open_board(ctx, argv)
    if len(argv) not in (4, 6) or (len(argv) == 6 and argv[4].upper() != b"ERROR"):
        raise CommandError(SYNTAX)
    ticket = board.find_ticket(argv[3])
    if ticket is None:
        return ZERO
    lane = board.find_lane(argv[3])
    if ticket.state == HELD and lane is not None:
        board.give_back(lane, ticket.given, ticket.attempts)
    if ticket.state == READY:
        take_out_of_ready(board, argv[3])
    park(board, argv[3], ticket.attempts, argv[5] if len(argv) == 6 else ticket.error)
    return board.finish(encoder.encode_integer(1))


def take_out_of_ready(board: Board, key: bytes) -> None:
    ctx, name = board.ctx, board.keys.ready
    ready = board.ready
    if ready is not None and remove_elements(ready, key, 0):
        ctx.notify(LIST, b"lrem", name)
        if not ready:
            drop_list(ctx, name)
        record = encode_record(LIST_REMOVE, ctx.db.number, name, b"0", key) if ctx.journaling else CHANGED
        board.step.note(name, record)


@command(
    "LANE.RESUME", key("RW update", "stream"), text("group"), text("lane"), optional(word("SKIP")),
    group="headrace", flags="write", categories="stream", since="0.1.0", complexity="O(log N)",
    summary="Let a key go on that is parked or waits for its next attempt.",
)  # fmt: skip
def lane_resume(ctx: Call, argv: list[bytes]) -> Outcome:
    """1, or 0 when the key is neither. Attempts count from the beginning. SKIP buries the first message before."""
    board = open_board(ctx, argv)
    skips = len(argv) == 5
    if len(argv) > 5 or (skips and argv[4].upper() != b"SKIP"):
        raise CommandError(SYNTAX)
    if skips:
        check_room(ctx, board.keys.dead)
    ticket = board.find_ticket(argv[3])
    if ticket is None or ticket.state not in (PARKED, WAITING):
        return ZERO
    lane = board.find_lane(argv[3])
    if skips and lane:
        board.drop_done_heads(argv[3], lane, MOST)
        if lane:
            board.bury(lane[0], Story(ticket.attempts, ticket.error or b"skipped", b""))
            board.shorten(argv[3], lane, 1)
    board.go_on(argv[3], lane)
    return board.finish(encoder.encode_integer(1))
