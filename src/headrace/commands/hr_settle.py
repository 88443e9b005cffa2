"""HR.SETTLE: what became of entries, in one step: acknowledged, to be tried again, or buried.

Three passes over the clauses: read them, check everything, then do it. So a refused step has changed nothing, and what
belongs together (an acknowledgement, its effects and the entries it adds) happens together.
"""

from typing import Final

from headrace.commands.call import Call
from headrace.commands.groups import pending_names
from headrace.commands.hashes import find_hash
from headrace.commands.hr_attempts import Attempts
from headrace.commands.hr_clauses import Clause, check_effects, parse_rider
from headrace.commands.hr_effects import do
from headrace.commands.hr_endings import Story, acknowledge, dead_letter
from headrace.commands.hr_keys import GroupKeys
from headrace.commands.hr_steps import MOST, NO, NO_GROUP, TOO_MANY, YES, Holding, Step, check_room, find_consumer
from headrace.commands.numbers import parse_integer, parse_within
from headrace.commands.outcome import Outcome
from headrace.commands.refusals import SYNTAX
from headrace.commands.sorted_sets import find_sorted_set
from headrace.commands.spec import block, command, integer, key, many, oneof, optional, text, word
from headrace.errors import CommandError
from headrace.wire.encoder import encode_array

BAD_COUNT: Final = "ERR ACK must be followed by the number of its IDs, 1 or more, and by as many IDs"
BAD_DELAY: Final = "ERR the delay of RETRY is not a number of milliseconds"
BAD_ATTEMPT: Final = "ERR the attempt is not a positive number"
LONGEST_DELAY_MS: Final = 2**52


@command(
    "HR.SETTLE", key("RW update", "stream"), text("group"), text("consumer"), optional(word("KEEP")),
    many(
        oneof(
            "clause",
            block(
                "done", integer("numids", "ACK"), many(text("id")),
                optional(many(block("effect", integer("words"), many(text("argument")), token="EFFECT"))),
                optional(many(block("add", text("key"), integer("size", "FIELDS"), many(text("word")), token="ADD"))),
            ),
            block("retry", text("id"), integer("delay-ms"), integer("attempt"), text("error"), token="RETRY"),
            block("bury", text("id"), text("error"), text("traceback"), integer("attempt"), token="BURY"),
        )
    ),
    group="headrace", flags="write", categories="stream", since="0.1.0", arity=-7,
    complexity="O(1) for each acknowledged ID, times the groups; O(log N) for each other one",
    summary="Settle entries a consumer has worked on: acknowledge them, try them again later, or bury them.",
)  # fmt: skip
def hr_settle(ctx: Call, argv: list[bytes]) -> Outcome:
    """Per ID, in the order given, 1, or 0 when it is no longer this consumer's: then nothing is done with it.

    ACK acknowledges. An entry is deleted once no group needs it, as XACKDEL with ACKED does it, unless KEEP is given.
    An ADD adds an entry to another stream, or to the same, with the acknowledgement; an EFFECT is a write command on
    one key that runs with it. If one of the IDs before it is not this consumer's, none of the clause's IDs is
    acknowledged and nothing else happens: all of them answer 0.

    Effects are SET, SETNX, INCR, DECR, INCRBY, DECRBY, HSET, HSETNX, HDEL, HINCRBY, SADD, SREM, ZADD, ZINCRBY, ZREM,
    LPUSH, RPUSH, DEL, PERSIST and PEXPIRE, without options. That they will succeed is checked first; therefore the
    effects on one key must be of one type, DEL stands alone, and numbers are below 2^53.

    RETRY leaves the entry pending; HR.DUE gives it out when the delay is over. BURY copies it to the group's dead
    letters, with stream, ID, group, attempt, error, traceback and time, and acknowledges it. An entry that is gone from
    the stream is buried as far as it is known.

    Repeating the step does no harm: entries that were settled are not this consumer's any more.
    """
    keeps, clauses = parse_settle(argv)
    stream, group, consumer = find_consumer(ctx, argv)
    keys = GroupKeys(argv[1], argv[2])
    check_keys(ctx, keys, clauses)
    for clause in clauses:
        clause.ids = pending_names(group if group is not None else NO_GROUP, clause.ids)
    if stream is None or group is None or consumer is None:
        return Outcome(encode_array([NO] * sum([len(clause.ids) for clause in clauses])))
    held = Holding(stream, group, consumer, [])
    replies = find_ours(held, clauses)
    check_effects(ctx, {argv[1], keys.due, keys.attempts, keys.dead}, b"", clauses)
    step = Step(ctx)
    settled: list[bytes] = []
    for clause in clauses:
        if clause.names:
            settle(step, argv, held, keys, clause, settled)
    if settled:
        acknowledge(step, argv[1], argv[2], stream, group, settled, keeps=keeps)
        step.remove_scores(keys.due, settled)
        step.remove_fields(keys.attempts, settled)
    return step.outcome(encode_array(replies))


# Reading


def parse_settle(argv: list[bytes]) -> tuple[bool, list[Clause]]:
    keeps = argv[4].upper() == b"KEEP"
    clauses: list[Clause] = []
    ids = 0
    index = 5 if keeps else 4
    while index < len(argv):
        index = parse_clause(argv, index, clauses)
    for clause in clauses:
        ids += len(clause.ids)
    if not clauses:
        raise CommandError(SYNTAX)
    if ids > MOST:
        raise CommandError(TOO_MANY)
    return keeps, clauses


def parse_clause(argv: list[bytes], index: int, clauses: list[Clause]) -> int:
    """Read one word and what belongs to it; the index behind it."""
    verb = argv[index].upper()
    left = len(argv) - index - 1
    if verb == b"ACK" and left >= 1:
        count = parse_integer(argv[index + 1], BAD_COUNT)
        if not 1 <= count <= left - 1:
            raise CommandError(BAD_COUNT)
        clauses.append(Clause(verb, argv[index + 2 : index + 2 + count]))
        return index + 2 + count
    if verb == b"RETRY" and left >= 4:
        clause = Clause(verb, [argv[index + 1]])
        clause.delay_ms = parse_within(argv[index + 2], 0, LONGEST_DELAY_MS, BAD_DELAY, BAD_DELAY)
        clause.attempt = parse_within(argv[index + 3], 1, 2**31, BAD_ATTEMPT, BAD_ATTEMPT)
        clause.error = argv[index + 4]
        clauses.append(clause)
        return index + 5
    if verb == b"BURY" and left >= 4:
        clause = Clause(verb, [argv[index + 1]])
        clause.error = argv[index + 2]
        clause.traceback = argv[index + 3]
        clause.attempt = parse_within(argv[index + 4], 1, 2**31, BAD_ATTEMPT, BAD_ATTEMPT)
        clauses.append(clause)
        return index + 5
    if clauses and clauses[-1].verb == b"ACK":
        return parse_rider(argv, index, clauses[-1])
    raise CommandError(SYNTAX)


# Checking


def check_keys(ctx: Call, keys: GroupKeys, clauses: list[Clause]) -> None:
    """Keys of other types refuse the step before anything changes."""
    find_sorted_set(ctx, keys.due)
    find_hash(ctx, keys.attempts)
    for clause in clauses:
        if clause.verb == b"BURY":
            check_room(ctx, keys.dead)
        for add in clause.adds:
            check_room(ctx, add[0])


def find_ours(held: Holding, clauses: list[Clause]) -> list[bytes]:
    """Which IDs are this consumer's, each once; the replies."""
    replies: list[bytes] = []
    seen: set[bytes] = set()
    pending = held.group.pending
    consumer = held.consumer
    for clause in clauses:
        names: list[bytes] = []
        for name in clause.ids:
            delivery = pending.get(name)
            if delivery is not None and delivery.consumer is consumer and name not in seen:
                seen.add(name)
                names.append(name)
                replies.append(YES)
            else:
                replies.append(NO)
        if len(names) < len(clause.ids) and (clause.adds or clause.effects):
            replies[len(replies) - len(clause.ids) :] = [NO] * len(clause.ids)
            seen.difference_update(names)
            names = []
        clause.names = names
    return replies


# Doing


def settle(step: Step, argv: list[bytes], held: Holding, keys: GroupKeys, clause: Clause, settled: list[bytes]) -> None:
    """All of a clause but the acknowledgement, which is one for all of them."""
    if clause.verb == b"RETRY":
        [name] = clause.names
        record = Attempts(b"%d" % clause.attempt)
        record.error = clause.error
        step.set_score(keys.due, name, step.ctx.now_ms + clause.delay_ms)
        step.set_fields(keys.attempts, [name, record.encode()])
        return
    if clause.verb == b"BURY":
        [name] = clause.names
        story = Story(clause.attempt, clause.error, clause.traceback)
        step.add(keys.dead, dead_letter(step.ctx.now_ms, argv[1], argv[2], held.stream, name, story), 0)
    for effect in clause.effects:
        do(step, effect)
    for add in clause.adds:
        step.add(add[0], add, 1)
    settled += clause.names
