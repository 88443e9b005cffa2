"""What comes later: HR.DUE moves delayed messages into their stream and gives out retries whose time has come.

A delayed message is a member of the sorted set `delayed` with its time in ms, and a field of the hash beside it with
its body: the publish id or nothing, then fields and values, each as `length:bytes`. Members count up (the field without
a name has the last number), so that messages of the same millisecond keep their order.
"""

from math import ceil
from typing import Final

from headrace.commands.call import Call
from headrace.commands.groups import find_group
from headrace.commands.hashes import find_hash
from headrace.commands.hr_keys import GroupKeys, bodies_key, delayed_key, is_again
from headrace.commands.hr_steps import LAST_MS, MOST, Step
from headrace.commands.numbers import parse_within
from headrace.commands.outcome import Outcome
from headrace.commands.pending import Claim, claim_one
from headrace.commands.refusals import SYNTAX
from headrace.commands.sorted_sets import find_sorted_set
from headrace.commands.spec import command, integer, key, text
from headrace.commands.streams import append
from headrace.engine.group import Group
from headrace.engine.ids import id_of
from headrace.engine.sorted_set import SortedSet
from headrace.engine.stream import Stream
from headrace.errors import CommandError
from headrace.journal.record import PUBLISHED, encode_record
from headrace.wire.encoder import encode_array, encode_integer

LAST_MEMBER: Final = b""  # The field of the hash that has the highest member so far.
LONGEST_NUMBER: Final = 16  # Digits. The keys are ordinary ones: anybody may have written to them.
NOTHING: Final = -1  # Milliseconds until something is due, when nothing is.


# Bodies


def encode_body(publish_id: bytes, words: list[bytes], start: int) -> bytes:
    parts = [b"%d:%b" % (len(publish_id), publish_id)]
    for index in range(start, len(words)):
        parts.append(b"%d:%b" % (len(words[index]), words[index]))
    return b"".join(parts)


def decode_body(body: bytes) -> list[bytes]:
    """The publish id, then fields and values. Empty when it is none of ours."""
    words: list[bytes] = []
    place = 0
    while place < len(body):
        colon = body.find(b":", place)
        if colon < 0 or colon - place > LONGEST_NUMBER or not body[place:colon].isdigit():
            return []
        end = colon + 1 + int(body[place:colon])
        if end > len(body):
            return []
        words.append(body[colon + 1 : end])
        place = end
    return words if len(words) >= 3 and len(words) % 2 else []


def delay(step: Step, stream: bytes, due_ms: int, body: bytes) -> None:
    """Put a message aside until its time comes."""
    bodies = find_hash(step.ctx, bodies_key(stream))
    last = bodies.get(LAST_MEMBER, b"") if bodies is not None else b""
    member = b"%016d" % (int(last) + 1 if last.isdigit() and len(last) <= LONGEST_NUMBER else 1)
    step.set_score(delayed_key(stream), member, due_ms)
    step.set_fields(bodies_key(stream), [LAST_MEMBER, member, member, body])


# HR.DUE


@command(
    "HR.DUE", key("RW update", "stream"), text("group"), text("consumer"), integer("count", "COUNT"),
    group="headrace", flags="write", categories="stream", since="0.1.0",
    complexity="O(log N) for each message and entry whose time has come",
    summary="Move delayed messages whose time has come into the stream, and take over retries whose time has come.",
)  # fmt: skip
def hr_due(ctx: Call, argv: list[bytes]) -> Outcome:
    """At most COUNT of each. The reply: the entries that are this consumer's now, as XCLAIM gives them; milliseconds
    until the next is due, 0 when there are more already, -1 when nothing waits; and how many entries the group's own
    stream of dead letters to be tried again holds.
    """
    if argv[4].upper() != b"COUNT":
        raise CommandError(SYNTAX)
    count = parse_within(argv[5], 1, MOST, f"ERR COUNT must be from 1 to {MOST}")
    name = argv[1]
    stream, group = find_group(ctx, name, argv[2])
    keys = GroupKeys(name, argv[2])
    find_sorted_set(ctx, delayed_key(name))  # These refuse other types before anything changes.
    find_hash(ctx, bodies_key(name))
    find_sorted_set(ctx, keys.due)
    find_hash(ctx, keys.attempts)
    again = None if is_again(name, argv[2]) else ctx.find_stream(keys.again)
    step = Step(ctx)
    has_moved = move_delayed(step, name, stream, count)
    entries = take_due(step, argv, stream, group, keys, count)
    waits = [until_first(ctx, delayed_key(name)), until_first(ctx, keys.due)]
    waits = [wait_ms for wait_ms in waits if wait_ms != NOTHING]
    reply = [encode_array(entries), encode_integer(min(waits) if waits else NOTHING)]
    reply.append(encode_integer(again.length if again is not None else 0))
    return step.outcome(encode_array(reply), name if has_moved else None)


def first_due(members: SortedSet | None, now_ms: int, count: int) -> list[bytes]:
    """Members whose time has come, earliest first, at most count."""
    if members is None:
        return []
    return [member for score, member in members.pairs(0, count) if score <= now_ms]


def until_first(ctx: Call, name: bytes) -> int:
    members = find_sorted_set(ctx, name)
    if members is None:
        return NOTHING
    [(score, _)] = members.pairs(0, 1)
    return ceil(min(score, LAST_MS)) - ctx.now_ms if score > ctx.now_ms else 0


def move_delayed(step: Step, name: bytes, stream: Stream, count: int) -> bool:
    """Whether there were any."""
    ctx = step.ctx
    gone: list[bytes] = []
    for member in first_due(find_sorted_set(ctx, delayed_key(name)), ctx.now_ms, count):
        bodies = find_hash(ctx, bodies_key(name))
        words = decode_body(bodies.get(member, b"")) if bodies is not None else []
        ms, seq = stream.next_id(ctx.now_ms)
        if ms == 0 and seq == 0:
            break  # No ID is left: the message waits for somebody to mend the stream.
        gone.append(member)
        if words:
            step.note(name, append(ctx, name, stream, ms, seq, words, 1).record)
            tell_publish_id(step, name, stream, words[0], ms << 64 | seq)
    if not gone:
        return False
    step.remove_scores(delayed_key(name), gone)
    if find_sorted_set(ctx, delayed_key(name)) is None:
        gone.append(LAST_MEMBER)  # Nothing is left, and counting may begin again.
    step.remove_fields(bodies_key(name), gone)
    return True


def tell_publish_id(step: Step, name: bytes, stream: Stream, publish_id: bytes, entry_id: int) -> None:
    """A message with a publish id was delayed: the id stands for its entry from now on."""
    known = stream.publish_ids
    if publish_id and known is not None and known.settle(publish_id, entry_id) and step.ctx.journaling:
        entry_name = b"%d-%d" % (entry_id >> 64, entry_id & (2**64 - 1))
        step.records.append(encode_record(PUBLISHED, step.ctx.db.number, name, publish_id, entry_name))


def take_due(step: Step, argv: list[bytes], stream: Stream, group: Group, keys: GroupKeys, count: int) -> list[bytes]:
    """Claim the pending entries whose time has come. What is not pending any more, or gone, is forgotten."""
    ctx = step.ctx
    members = first_due(find_sorted_set(ctx, keys.due), ctx.now_ms, count)
    if not members:
        return []
    claim = Claim(ctx, argv[1], argv[2], stream, group)
    claim.start(ctx, argv[3])
    for member in members:
        if member in group.pending:
            claim_one(ctx, claim, id_of(member), is_forced=False)
    claim.assign_run(ctx)
    step.records.append(claim.record)
    step.is_changed = True
    step.remove_scores(keys.due, members)
    step.remove_fields(keys.attempts, [member for member in members if member not in group.pending])
    return claim.replies
