"""One group's lanes during one step: found once, changed in memory, written once.

Tickets, times and owners of many keys change in a step. They gather here, and `finish` writes each map once, with one
record for all. The lanes themselves change at once: each is a key of its own, and so are its records.

Everything that could refuse a step is looked up by `open_board`; nothing here can fail afterwards.
"""

from collections import deque
from itertools import islice
from typing import Final

from headrace.commands.call import Call
from headrace.commands.groups import assign_record, consumer_record, find_group
from headrace.commands.hashes import find_hash
from headrace.commands.hr_endings import Story, acknowledge, dead_letter
from headrace.commands.hr_steps import Step
from headrace.commands.lane_keys import LANES, LaneKeys
from headrace.commands.lane_settings import LaneSettings, find_settings
from headrace.commands.lane_ticket import GONE, HELD, READY, WAITING, Ticket, read_number, read_ticket
from headrace.commands.lists import drop_list, encode_pop, find_list
from headrace.commands.notifications import LIST
from headrace.commands.outcome import CHANGED, Outcome
from headrace.commands.sorted_sets import find_sorted_set
from headrace.engine.delivery import Consumer
from headrace.engine.group import Group
from headrace.engine.lists import LEFT, RIGHT
from headrace.engine.stream import Stream
from headrace.errors import CommandError
from headrace.journal.record import ACK, POP, PUSH, encode_head, encode_record
from headrace.wire.encoder import encode_bulk

NO_LANES: Final = "NOLANES no order per key is set up for this group: LANE.CONFIG first"


class Board:
    __slots__ = (
        "ctx", "step", "stream_name", "group_name", "stream", "group", "keys", "settings", "stored", "tickets",
        "timeless", "ready", "ready_taken", "front", "back", "to_lanes", "returned", "claimed", "claimer", "gone",
        "settled", "keeps", "fence", "last_fence", "push_head", "pop_head",
    )  # fmt: skip

    def __init__(
        self, step: Step, stream_name: bytes, group_name: bytes, stream: Stream, group: Group, keys: LaneKeys,
        settings: LaneSettings,
    ) -> None:  # fmt: skip
        ctx = step.ctx
        self.ctx = ctx
        self.step = step
        self.stream_name = stream_name
        self.group_name = group_name
        self.stream = stream
        self.group = group
        self.keys = keys
        self.settings = settings
        self.stored = find_hash(ctx, keys.tickets)
        self.tickets: dict[bytes, Ticket] = {}  # Those that changed.
        self.timeless: list[bytes] = []  # Keys that wait for no time, though `until` has one.
        self.ready = find_list(ctx, keys.ready)
        self.ready_taken = 0
        self.front: list[bytes] = []  # Keys that go before those of `ready`, the last one first.
        self.back: deque[bytes] = deque()  # Keys that go behind them.
        self.to_lanes: dict[int, list[bytes]] = {}  # Names that nobody holds any more, by deliveries.
        self.returned: list[tuple[Ticket, bytes, int]] = []  # Read once more while somebody holds them; deliveries.
        self.claimed: dict[int, list[bytes]] = {}  # Names for the claimer, by deliveries.
        self.claimer: Consumer | None = None
        self.gone: list[bytes] = []  # Names whose entries are not in the stream any more.
        self.settled: list[bytes] = []  # Names that are done, or buried.
        self.keeps = False  # Whether their entries stay in the stream.
        order = find_hash(ctx, keys.order)
        self.last_fence = read_number(order.get(b"fence", b"")) if order is not None else 0
        self.fence = self.last_fence
        self.push_head = encode_head(PUSH, ctx.db.number, 3)
        self.pop_head = encode_head(POP, ctx.db.number, 3)

    def next_fence(self) -> int:
        """It grows with the clock too: a broker that lost its last second gives none twice."""
        self.fence = max(self.fence + 1, self.ctx.now_ms * 1000)
        return self.fence

    # Tickets

    def find_ticket(self, key: bytes) -> Ticket | None:
        changed = self.tickets.get(key)
        if changed is not None:
            return changed if changed.state != GONE else None
        text = self.stored.get(key) if self.stored is not None else None
        return read_ticket(text) if text is not None else None

    def make_ready(self, key: bytes, attempts: int = 0, error: bytes = b"") -> None:
        """The caller puts it into the queue."""
        self.tickets[key] = Ticket(READY, attempts, 0, error)

    def go_on(self, key: bytes, lane: "deque[bytes] | None") -> None:
        """The message at the head is done with, and nobody holds the key: it queues up again, or is forgotten."""
        if lane:
            self.make_ready(key)
            self.back.append(key)
        else:
            self.tickets[key] = NO_TICKET

    # The queue of keys that are ready

    def take_ready(self) -> bytes | None:
        if self.front:
            return self.front.pop()
        if self.ready:
            self.ready_taken += 1
            return self.ready.popleft()
        return self.back.popleft() if self.back else None

    def has_ready(self) -> bool:
        return bool(self.front or self.ready or self.back)

    def queue_first(self, keys: list[bytes]) -> None:
        """Before all others, in this order."""
        keys.reverse()
        self.front += keys

    # Lanes

    def find_lane(self, key: bytes) -> "deque[bytes] | None":
        """None also when something else has its name."""
        name = self.keys.lane + key
        db = self.ctx.db
        value = db.values.get(name) if not db.expires_ms else self.ctx.find(name)
        return value if isinstance(value, deque) else None

    def start_lane(self, key: bytes, name: bytes) -> None:
        """A lane of one message. What has its name already was left behind by a rebuild, or is none of ours."""
        lane = self.keys.lane + key
        db = self.ctx.db
        if lane in db.values:  # If not expired.
            self.step.remove(lane)
        db.put(lane, deque((name,)))
        self.note_appended(lane, name)

    def append(self, key: bytes, lane: "deque[bytes]", name: bytes) -> None:
        lane.append(name)
        self.note_appended(self.keys.lane + key, name)

    def note_appended(self, lane: bytes, name: bytes) -> None:
        ctx = self.ctx
        ctx.notify(LIST, b"rpush", lane)
        record = CHANGED
        if ctx.journaling:  # Put together by hand: there is one for every message.
            record = b"%b%b$5\r\nright\r\n%b" % (self.push_head, encode_bulk(lane), encode_bulk(name))
        self.step.note(lane, record)

    def shorten(self, key: bytes, lane: "deque[bytes]", count: int) -> None:
        """The first messages leave their lane, and with the last one it is gone."""
        for _ in range(count):
            lane.popleft()
        self.note_popped(key, lane, count)

    def note_popped(self, key: bytes, lane: "deque[bytes]", count: int) -> None:
        name = self.keys.lane + key
        self.ctx.notify(LIST, b"lpop", name)
        if not lane:
            drop_list(self.ctx, name)
        record = CHANGED
        if self.ctx.journaling:  # As in note_appended.
            record = b"%b%b$4\r\nleft\r\n%b" % (self.pop_head, encode_bulk(name), encode_bulk(b"%d" % count))
        self.step.note(name, record)

    def drop_done_heads(self, key: bytes, lane: "deque[bytes]", most: int) -> int:
        """Heads that somebody acknowledged by hand leave the lane. How many."""
        pending = self.group.pending
        count = 0
        while count < len(lane) and count < most and lane[count] not in pending:
            count += 1
        if count:
            self.shorten(key, lane, count)
        return count

    # Owners

    def get_consumer(self, name: bytes) -> Consumer:
        if name not in self.group.consumers:
            self.step.is_changed = True
            self.step.records.append(consumer_record(self.ctx, self.stream_name, self.group_name, name))
        return self.group.get_consumer(name, self.ctx.now_ms)

    def give_back(self, lane: "deque[bytes]", given: int, attempts: int) -> None:
        """Nobody holds the first messages of a lane any more. The first one was tried so often."""
        pending = self.group.pending
        count = max(1, attempts)
        for name in islice(lane, given):
            if name in pending:
                self.to_lanes.setdefault(count, []).append(name)
            count = 1

    def bury(self, name: bytes, story: Story) -> None:
        now_ms = self.ctx.now_ms
        letter = dead_letter(now_ms, self.stream_name, self.group_name, self.stream, name, story)
        self.step.add(self.keys.dead, letter, 0)
        self.settled.append(name)

    # Writing

    def finish(self, reply: bytes) -> Outcome:
        self.write()
        return self.step.outcome(reply)

    def write(self) -> None:
        self.write_owners()
        self.write_tickets()
        self.write_ready()
        if self.fence != self.last_fence:
            self.step.set_fields(self.keys.order, [b"fence", b"%d" % self.fence])
            self.last_fence = self.fence

    def write_owners(self) -> None:
        """Acknowledging comes last: an entry that was given back and buried is gone."""
        step, group = self.step, self.group
        for count, names in self.to_lanes.items():
            self.assign(self.get_consumer(LANES), names, count)
        for ticket, name, count in self.returned:
            self.assign(self.get_consumer(ticket.consumer), [name], count)
        if self.claimer is not None:
            for count, names in self.claimed.items():
                self.assign(self.claimer, names, count)
        if self.gone:
            group.ack(self.gone)
            step.is_changed = True
            if self.ctx.journaling:
                record = encode_record(ACK, self.ctx.db.number, self.stream_name, self.group_name, *self.gone)
                step.records.append(record)
        if self.settled:
            stream_name, group_name = self.stream_name, self.group_name
            acknowledge(step, stream_name, group_name, self.stream, group, self.settled, keeps=self.keeps)

    def assign(self, consumer: Consumer, names: list[bytes], count: int) -> None:
        ctx = self.ctx
        self.group.assign(consumer, names, ctx.now_ms, count)
        consumer.active_ms = ctx.now_ms
        self.step.is_changed = True
        if ctx.journaling:
            record = assign_record(ctx, self.stream_name, self.group_name, consumer.name, ctx.now_ms, count, names)
            self.step.records.append(record)

    def write_tickets(self) -> None:
        stored = self.stored if self.stored is not None else NO_TICKETS
        gone: list[bytes] = []
        words: list[bytes] = []
        over = self.timeless
        ends: dict[int, list[bytes]] = {}
        for key, ticket in self.tickets.items():
            state = ticket.state
            if state == GONE:
                over.append(key)
                if key in stored:
                    gone.append(key)
                continue
            words.append(key)
            words.append(ticket.encode())
            if ticket.keeps_time:
                continue
            if state in (HELD, WAITING):
                ends.setdefault(ticket.time_ms, []).append(key)
            else:
                over.append(key)
        if gone:
            self.step.remove_fields(self.keys.tickets, gone)
        if words:
            self.step.set_fields(self.keys.tickets, words)
        if over:
            self.step.remove_scores(self.keys.until, over)
        for end_ms, keys in ends.items():
            self.step.set_scores(self.keys.until, keys, end_ms)

    def write_ready(self) -> None:
        name = self.keys.ready
        if self.ready_taken and self.ready is not None:
            self.ctx.notify(LIST, b"lpop", name)
            if not self.ready:
                drop_list(self.ctx, name)
            self.step.note(name, encode_pop(self.ctx, name, LEFT, self.ready_taken))
        if self.front:
            self.step.push(name, LEFT, self.front)
        if self.back:
            self.step.push(name, RIGHT, list(self.back))


NO_TICKET: Final = Ticket(GONE, 0)
NO_TICKETS: Final[dict[bytes, bytes]] = {}


def open_board(ctx: Call, argv: list[bytes]) -> Board:
    """For `stream group …` behind the command's name. Refuses what is missing, and keys of other types."""
    stream, group = find_group(ctx, argv[1], argv[2])
    keys = LaneKeys(argv[1], argv[2])
    settings = find_settings(ctx, keys)
    if settings is None:
        raise CommandError(NO_LANES)
    find_hash(ctx, keys.consumers)
    find_sorted_set(ctx, keys.until)
    return Board(Step(ctx), argv[1], argv[2], stream, group, keys, settings)
