"""How entries come into their lanes: by their key, in the order of the stream.

The key of an entry is, by the names of KEYFIELDS in order, its field of that name or the member of that name of the
JSON object in its field `data`. In an entry with `data` the other fields of the layout that
headrace writes are no keys.
"""

import json
from collections import deque
from itertools import islice
from typing import Final

from headrace.commands.hr_endings import Story
from headrace.commands.hr_steps import MOST
from headrace.commands.lane_board import Board
from headrace.commands.lane_keys import LANES
from headrace.commands.lane_ticket import HELD, READY, Ticket
from headrace.commands.notifications import LIST
from headrace.commands.outcome import CHANGED
from headrace.engine.ids import MAX_ID, MAX_NAME, MIN_ID, id_of
from headrace.engine.node import NAME_START
from headrace.journal.record import DELIVER, LIST_INSERT, encode_record
from headrace.wire.encoder import encode_bulk

DATA: Final = b"data"
LAYOUT_FIELDS: Final = frozenset((DATA, b"id", b"type", b"traceparent", b"tracestate"))
EXACT: Final = 2**53  # Whole numbers below this are the same on every server.


# The key of an entry


def key_of(board: Board, name: bytes, entry: bytes) -> bytes:
    """Empty when it has none and may not have a lane of its own."""
    key = find_key(entry, board.settings.key_fields)
    if key or board.settings.keyless == b"dead":
        return key
    return b"id:" + name


def find_key(entry: bytes, names: list[bytes]) -> bytes:
    data: bytes | None = None
    members: dict[str, object] = {}
    has_looked = False
    for name in names:
        if name not in LAYOUT_FIELDS:
            value = find_field(entry, name)
            if value:
                return value
        if not has_looked:
            has_looked = True
            data = find_field(entry, DATA)
            members = read_members(data) if data is not None else {}
        if data is not None:
            value = text_of(members.get(name.decode("utf-8", "surrogateescape")))
        elif name in LAYOUT_FIELDS:
            value = find_field(entry, name)
        if value:
            return value
    return b""


def find_field(entry: bytes, name: bytes) -> bytes | None:
    """The value of the first field of that name of a stored entry."""
    place = entry.index(b"\n", entry.index(b"*", NAME_START)) + 1
    bulk = encode_bulk(name)
    if entry.startswith(bulk, place):  # The first one, as it mostly is.
        place += len(bulk)
        start = entry.index(b"\n", place) + 1
        return entry[start : start + int(entry[place + 1 : start - 2])]
    size = len(name)
    while place < len(entry):
        start = entry.index(b"\n", place) + 1
        length = int(entry[place + 1 : start - 2])
        place = start + length + 2
        is_it = length == size and entry.startswith(name, start)
        start = entry.index(b"\n", place) + 1
        length = int(entry[place + 1 : start - 2])
        if is_it:
            return entry[start : start + length]
        place = start + length + 2
    return None


def read_members(data: bytes) -> dict[str, object]:
    """Of a JSON object; none of anything else."""
    if data[:1] != b"{" and data.lstrip()[:1] != b"{":
        return {}
    try:
        found: object = json.loads(data.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def text_of(member: object) -> bytes:
    """Text as it is, whole numbers, true and false; empty for anything else."""
    if isinstance(member, str):
        try:
            return member.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            return b""
    if isinstance(member, bool):
        return b"true" if member else b"false"
    if isinstance(member, float) and abs(member) < EXACT and member.is_integer():
        member = int(member)
    return b"%d" % member if isinstance(member, int) and abs(member) < EXACT else b""


# Into a lane


def ingest(board: Board, name: bytes, key: bytes, *, replaces: bool = False) -> None:
    """Put an entry that is pending into the lane of its key, at the tail or, when it comes late, at its place.

    `replaces`: a lane without a ticket is one from before the rebuild.
    """
    if not key:
        fields = b", ".join(board.settings.key_fields)
        board.bury(name, Story(0, b"no key: the message has none of " + fields, b""))
        return
    ticket = board.find_ticket(key)
    lane = board.find_lane(key)
    if ticket is None or ticket.is_damaged:
        replaces = replaces and ticket is None
        ticket = Ticket(READY, 0)
        board.tickets[key] = ticket
        board.back.append(key)
        if replaces:
            lane = None
    if lane is None:
        board.start_lane(key, name)
    elif place_of(lane[-1]) < id_of(name):
        board.append(key, lane, name)
    else:
        insert_late(board, key, ticket, lane, name)


def place_of(name: bytes) -> int:
    """The ID of a name in a lane. What somebody else put there is no name: lower than all, and never given out."""
    try:
        return id_of(name)
    except ValueError:
        return MIN_ID


def insert_late(board: Board, key: bytes, ticket: Ticket, lane: "deque[bytes]", name: bytes) -> None:
    """The group was set back, or a reader was slow. Never before what somebody holds, and never twice.

    Only among the first ones, where late entries had to queue behind held ones, may the lane be out of order.
    """
    given = ticket.given if ticket.state == HELD else 0
    first = list(islice(lane, MOST))
    if name in first:
        place = first.index(name)
        if place < given:
            board.returned.append((ticket, name, max(1, ticket.attempts) if place == 0 else 1))
        return
    entry_id = id_of(name)
    low, high = min(given, len(lane)), len(lane)
    while low < high:
        middle = (low + high) >> 1
        if place_of(lane[middle]) < entry_id:
            low = middle + 1
        else:
            high = middle
    if low < len(lane) and lane[low] == name:
        return
    lane.insert(low, name)
    ctx = board.ctx
    lane_name = board.keys.lane + key
    ctx.notify(LIST, b"linsert", lane_name)
    record = CHANGED
    if ctx.journaling:
        record = encode_record(LIST_INSERT, ctx.db.number, lane_name, b"%d" % low, name)
    board.step.note(lane_name, record)


# Where entries come from


def read_new(board: Board, count: int, wanted: int) -> tuple[dict[bytes, bytes], bool]:
    """Entries that nobody of the group was given so far: into their lanes, while they bring no more keys than wanted.

    At most `count`. By name; and whether these were the last ones.
    """
    names, entries = board.stream.read_new(board.group, count)
    keys: list[bytes] = []
    fresh: set[bytes] = set()
    for index, name in enumerate(names):
        key = key_of(board, name, entries[index])
        if key and key not in fresh and board.find_ticket(key) is None:
            if len(fresh) == wanted:
                break
            fresh.add(key)
        keys.append(key)
    taken = take_first(board, names, keys)
    return dict(zip(taken, entries, strict=False)), len(taken) < count and len(taken) == len(names)


def read_known(board: Board, count: int, room: dict[bytes, int]) -> tuple[dict[bytes, bytes], bool]:
    """As read_new, but up to the first entry whose key is new, or until no key has room. Whether all `count` came."""
    names, entries = board.stream.read_new(board.group, count)
    keys: list[bytes] = []
    for index, name in enumerate(names):
        key = key_of(board, name, entries[index])
        if not room or (key and board.find_ticket(key) is None):
            break
        keys.append(key)
        if key in room:
            room[key] -= 1
            if not room[key]:
                del room[key]
    taken = take_first(board, names, keys)
    return dict(zip(taken, entries, strict=False)), len(taken) == count


def take_first(board: Board, names: list[bytes], keys: list[bytes]) -> list[bytes]:
    """As many of the entries that were read as there are keys: into their lanes. The others stay unread."""
    taken = names[: len(keys)]
    board.stream.leave_unread(board.group, len(names) - len(taken))
    if taken:
        deliver(board, taken)
        for index, name in enumerate(taken):
            ingest(board, name, keys[index])
    return taken


def deliver(board: Board, names: list[bytes]) -> None:
    """The next entries of the stream are pending with `lanes` from now on."""
    ctx, group = board.ctx, board.group
    board.stream.count_read(group, names)
    consumer = board.get_consumer(LANES)
    group.deliver(consumer, names, ctx.now_ms)
    consumer.active_ms = ctx.now_ms
    board.step.is_changed = True
    if ctx.journaling:
        parts = (board.stream_name, board.group_name, LANES, b"%d" % ctx.now_ms, b"%d" % len(names), b"1")
        board.step.records.append(encode_record(DELIVER, ctx.db.number, *parts))


def read_strays(board: Board) -> bool:
    """Entries that waiting consumers have read: into their lanes. Whether there are more than one call takes."""
    reader = board.group.consumers.get(board.settings.reader)
    if reader is None or not reader.count_pending():
        return False
    names = board.group.pending_between(0, MAX_ID, MOST, reader)
    put_in_lanes(board, names, replaces=False)
    return len(names) == MOST


def put_in_lanes(board: Board, names: list[bytes], *, replaces: bool) -> None:
    """Pending entries, in the order of their IDs."""
    present: list[bytes] = []
    for name, entry in zip(names, board.stream.entries_at(names), strict=True):
        if entry is None:
            board.gone.append(name)
        else:
            present.append(name)
            ingest(board, name, key_of(board, name, entry), replaces=replaces)
    if present:
        board.to_lanes.setdefault(1, []).extend(present)


def rebuild_page(board: Board, cursor: bytes) -> None:
    """The next pending entries of all consumers, in the order of their IDs."""
    start = id_of(cursor) + 1 if is_name(cursor) else 0
    names = board.group.pending_between(start, MAX_ID, MOST, None)
    put_in_lanes(board, names, replaces=True)
    if len(names) < MOST:
        board.step.remove_fields(board.keys.order, [b"rebuild"])
    else:
        board.step.set_fields(board.keys.order, [b"rebuild", names[-1]])


def is_name(text: bytes) -> bool:
    milliseconds, _, sequence = text.partition(b"-")
    return milliseconds.isdigit() and sequence.isdigit() and len(text) <= len(MAX_NAME)
