"""What a worker says about entries it holds: HR.START (this runs now), HR.EXTEND (still running), HR.RELEASE (back).

How often an entry was tried stands in a hash beside the group, as `count`, a blank and the deliveries it had then, a
line break and the last error; all but the count may be missing. The deliveries tell a step that is repeated after a
lost answer from one that follows another delivery.
"""

from math import ceil
from typing import Final

from headrace.commands.call import Call
from headrace.commands.groups import assign_record
from headrace.commands.hashes import find_hash
from headrace.commands.hr_keys import GroupKeys
from headrace.commands.hr_steps import LAST_MS, NO, YES, Holding, Step, all_zero, find_holding
from headrace.commands.outcome import Outcome
from headrace.commands.sorted_sets import find_sorted_set
from headrace.commands.spec import command, key, many, optional, text, word
from headrace.engine.group import RELEASED_MS
from headrace.engine.ids import id_of
from headrace.journal.record import ACK, encode_record
from headrace.wire.encoder import encode_array, encode_bulk, encode_integer

NOT_OURS: Final = encode_array([NO, encode_bulk(b"")])
LONGEST_NUMBER: Final = 15  # Digits, which Lua's doubles hold exactly.
NOT_TRIED: Final = b"0"  # The record of an entry that was given back before it ever ran.
RECORDED: Final = b"RECORDED"


class Attempts:
    """One record of the hash."""

    __slots__ = ("count", "deliveries", "error")

    def __init__(self, record: bytes) -> None:
        numbers, _, self.error = record.partition(b"\n")
        count, _, deliveries = numbers.partition(b" ")
        self.count = read_number(count)
        self.deliveries = read_number(deliveries)

    def encode(self) -> bytes:
        numbers = b"%d %d" % (self.count, self.deliveries) if self.deliveries else b"%d" % self.count
        return numbers + b"\n" + self.error if self.error else numbers


def read_number(digits: bytes) -> int:
    """0 for what is none: the hash is an ordinary one, and anybody may have written to it."""
    return int(digits) if digits.isdigit() and len(digits) <= LONGEST_NUMBER else 0


@command(
    "HR.START", key("RW update", "stream"), text("group"), text("consumer"),
    optional(word("RECORDED")), many(text("id")),
    group="headrace", flags="write fast", categories="stream", since="0.1.0", complexity="O(1) for each ID",
    summary="Tell which attempt this is, before entries are tried.",
)  # fmt: skip
def hr_start(ctx: Call, argv: list[bytes]) -> Outcome:
    """Per ID the attempt, counted from 1, and the error of the one before or an empty text.

    0 when it is no longer this consumer's. A negative number when it is to wait: not before so many milliseconds.

    The attempt is on record from now on: if the consumer dies, the next one is told a higher number. An entry that was
    delivered before and has no record counts as tried once, unless it was given back by HR.RELEASE before it ran. With
    RECORDED it counts as never tried: for a group whose consumers tell the first try of every entry too.
    Repeating the step before the next delivery changes nothing.
    """
    keys = GroupKeys(argv[1], argv[2])
    due = find_sorted_set(ctx, keys.due)
    find_hash(ctx, keys.attempts)  # Refuses another type before anything changes.
    is_recorded = len(argv) > 5 and argv[4].upper() == RECORDED
    if is_recorded:
        argv = argv[:4] + argv[5:]
    held = find_holding(ctx, argv)
    if held is None:
        return Outcome(encode_array([NOT_OURS] * (len(argv) - 4)))
    step = Step(ctx)
    replies: list[bytes] = []
    started: list[bytes] = []
    for name in held.names:
        delivery = held.find(name)
        if delivery is None:
            replies.append(NOT_OURS)
            continue
        due_ms = due.scores.get(name) if due is not None else None
        if due_ms is not None and due_ms > ctx.now_ms:
            wait_ms = ceil(min(due_ms, LAST_MS)) - ctx.now_ms
            replies.append(encode_array([encode_integer(-wait_ms), encode_bulk(b"")]))
            continue
        started.append(name)
        before = find_record(ctx, keys.attempts, name)
        record = count_attempt(before, delivery.count, is_recorded)
        if record.encode() != before:
            step.set_fields(keys.attempts, [name, record.encode()])
        replies.append(encode_array([encode_integer(record.count), encode_bulk(record.error)]))
    step.remove_scores(keys.due, started)
    return step.outcome(encode_array(replies))


def count_attempt(before: bytes | None, deliveries: int, is_recorded: bool) -> Attempts:
    if before is None:
        record = Attempts(b"1" if deliveries <= 1 or is_recorded else b"2")
    else:
        record = Attempts(before)
        if record.deliveries != deliveries:
            record.count += 1
    record.deliveries = deliveries
    return record


@command(
    "HR.EXTEND", key("RW update", "stream"), text("group"), text("consumer"), many(text("id")),
    group="headrace", flags="write fast", categories="stream", since="0.1.0", complexity="O(1) for each ID",
    summary="Let the idle time of a consumer's entries begin again: it still works on them.",
)  # fmt: skip
def hr_extend(ctx: Call, argv: list[bytes]) -> Outcome:
    """Per ID 1, or 0 when it is no longer this consumer's. Deliveries are not counted."""
    held = find_holding(ctx, argv)
    if held is None:
        return all_zero(len(argv) - 4)
    step = Step(ctx)
    replies: list[bytes] = []
    run: list[bytes] = []  # Neighbours that share a number of deliveries become one delivery.
    run_count = 0
    for name in dict.fromkeys(held.names):
        delivery = held.find(name)
        if delivery is None:
            continue
        if run and delivery.count != run_count:
            give(step, argv, held, run, ctx.now_ms, run_count)
            run = []
        run.append(name)
        run_count = delivery.count
    if run:
        give(step, argv, held, run, ctx.now_ms, run_count)
        held.consumer.active_ms = ctx.now_ms
    for name in held.names:
        replies.append(NO if held.find(name) is None else YES)
    return step.outcome(encode_array(replies))


def give(step: Step, argv: list[bytes], held: Holding, names: list[bytes], time_ms: int, count: int) -> None:
    """To the consumer that has them already, with another time. No entry changes: transactions do not mind."""
    held.group.assign(held.consumer, names, time_ms, count)
    step.is_changed = True
    if step.ctx.journaling:
        step.records.append(assign_record(step.ctx, argv[1], argv[2], held.consumer.name, time_ms, count, names))


@command(
    "HR.RELEASE", key("RW update", "stream"), text("group"), text("consumer"), many(text("id")),
    group="headrace", flags="write fast", categories="stream", since="0.1.0", complexity="O(log N) for each ID",
    summary="Give entries back that a consumer will not finish: the next one may have them at once.",
)  # fmt: skip
def hr_release(ctx: Call, argv: list[bytes]) -> Outcome:
    """Per ID 1, or 0 when it is no longer this consumer's.

    HR.DUE and every claim may take them at once. The delivery is taken off their count, down to 1, and an attempt that
    was begun with it does not count. Those that are gone from the stream are pending no more.
    """
    keys = GroupKeys(argv[1], argv[2])
    find_sorted_set(ctx, keys.due)  # Both refuse another type before anything changes.
    find_hash(ctx, keys.attempts)
    held = find_holding(ctx, argv)
    if held is None:
        return all_zero(len(argv) - 4)
    step = Step(ctx)
    replies: list[bytes] = []
    for name in held.names:
        delivery = held.find(name)
        replies.append(NO if delivery is None else YES)
        if delivery is not None and not is_waiting(ctx, keys.due, name):
            release(step, argv, held, keys, name, delivery.count)
    return step.outcome(encode_array(replies), argv[1] if step.is_changed else None)


def is_waiting(ctx: Call, due_key: bytes, name: bytes) -> bool:
    """Whether the entry has its time already: somebody may take it then."""
    due = find_sorted_set(ctx, due_key)
    return due is not None and name in due.scores


def release(step: Step, argv: list[bytes], held: Holding, keys: GroupKeys, name: bytes, deliveries: int) -> None:
    if held.stream.find(id_of(name)) is None:
        held.group.ack([name])
        step.is_changed = True
        if step.ctx.journaling:
            step.records.append(encode_record(ACK, step.ctx.db.number, argv[1], argv[2], name))
        step.remove_fields(keys.attempts, [name])
        return
    before = find_record(step.ctx, keys.attempts, name)
    after = released_record(before, deliveries)
    if after is not None and after != before:
        step.set_fields(keys.attempts, [name, after])
    give(step, argv, held, [name], RELEASED_MS, max(1, deliveries - 1))
    step.set_score(keys.due, name, step.ctx.now_ms)


def released_record(before: bytes | None, deliveries: int) -> bytes | None:
    """An attempt that was begun with this delivery does not count. None: no record, it counts as tried once."""
    if before is None:
        return NOT_TRIED if deliveries <= 1 else None
    record = Attempts(before)
    if record.deliveries == deliveries:
        record.count -= 1
    record.deliveries = 0  # The next delivery may have the same number.
    return record.encode()


def find_record(ctx: Call, attempts_key: bytes, name: bytes) -> bytes | None:
    attempts = find_hash(ctx, attempts_key)
    return attempts.get(name) if attempts is not None else None
