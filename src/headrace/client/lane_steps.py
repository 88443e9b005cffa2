"""The steps of order per key, each in one go on the server: LANE.* on our broker, functions/lane_*.lua elsewhere.

One function per step; each gives a flow. All but `take` and `wait` may be repeated after a lost answer. After a `take`
whose answer was lost, `extend` with all keys known and only=True gives back what the answer would have named.

On other servers a lane is a list whose name holds the key, so it cannot be declared beforehand. A server that refuses
such names says "undeclared key" (as Dragonfly does); the client then has all lanes in one sorted set, the layout `set`.
What is only looked at: lane_views.py.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from headrace.client import requests
from headrace.client.flow import Flow
from headrace.client.flows import Facts, capabilities, create_group
from headrace.client.functions import run_step
from headrace.client.lane_keys import Order, order_key
from headrace.client.requests import Request, Word
from headrace.client.results import Entry, encode_text
from headrace.client.worker_keys import group_keys
from headrace.client.worker_steps import Add, effect_words, read_flags
from headrace.errors import CommandError, ConfigError, NotFound, Refused

T = TypeVar("T")

MOST: Final = 1000  # Keys, IDs and clauses in one call. functions/lane.lua has the same number.
NOTHING_KNOWN: Final = -1
UNDECLARED: Final = "undeclared key"
LONGEST_WAIT_MS: Final = 1000  # Keys come back without an entry being added: leases end, consumers leave.


# What comes back


@dataclass(frozen=True, slots=True)
class Session:
    """A registration. Another one under the same name ends it."""

    number: int
    lease_ms: int


@dataclass(frozen=True, slots=True)
class Grant:
    """A key, and its first messages in order."""

    key: str
    fence: int  # Grows with every grant of the key: hand it to whatever is written to.
    attempt: int  # Of the first message; all others are tried for the first time.
    last_error: str  # Of the attempt before; empty when that ended without a word.
    entries: list[Entry]


@dataclass(frozen=True, slots=True)
class Taken:
    grants: list[Grant]
    wait_ms: int | None  # Until something changes by itself; 0: there may be more now. None: nothing is known to.


# What is settled


@dataclass(frozen=True, slots=True)
class Done:
    """The first messages of a key are done, together with its effects and adds."""

    key: str
    fence: int
    ids: Sequence[str]
    adds: Sequence[Add] = ()
    effects: Sequence[Sequence[Word]] = ()  # ("HINCRBY", "totals", "paid", 1): a write command on one key.


@dataclass(frozen=True, slots=True)
class Fail:
    """The first message failed; the key waits."""

    key: str
    fence: int
    id: str
    delay_ms: int
    error: str


@dataclass(frozen=True, slots=True)
class Bury:
    """The first message goes to the dead letters, the key goes on."""

    key: str
    fence: int
    id: str
    error: str
    traceback: str


@dataclass(frozen=True, slots=True)
class Park:
    """The key stands still until somebody resumes it."""

    key: str
    fence: int
    error: str


@dataclass(frozen=True, slots=True)
class Back:
    """The key is given back unfinished. This attempt does not count."""

    key: str
    fence: int


Clause = Done | Fail | Bury | Park | Back


# The steps


def config(facts: Facts, order: Order) -> Flow[None]:
    """Set the group up. The same again changes nothing. NotFound when the group is missing."""
    known = yield from capabilities(facts)
    words = config_words(order)
    if known.has_lanes:
        yield from call(facts, "CONFIG", order, words, accept)
        return
    layout = "set" if facts.scripts.refuses_undeclared else order.settings.layout
    try:
        yield from call(facts, "CONFIG", order, (*words, "LAYOUT", layout), accept)
    except CommandError as error:
        if layout == "set" or UNDECLARED not in str(error):
            raise
        facts.scripts.refuses_undeclared = True
        yield from call(facts, "CONFIG", order, (*words, "LAYOUT", "set"), accept)


def set_up(facts: Facts, order: Order) -> Flow[None]:
    """As config; a group that is missing is made, from the beginning of its stream."""
    yield from refuse_undone_letters(order)
    try:
        yield from config(facts, order)
    except NotFound:
        yield from create_group(order.stream, order.group, "0")
        yield from config(facts, order)


def refuse_undone_letters(order: Order) -> Flow[None]:
    """Before order is turned on for a group: dead letters that were sent again to it alone would never be read."""
    settings, again = order_key(order.stream, order.group), group_keys(order.stream, order.group).again
    if (yield from Request(("EXISTS", settings), requests.number, settings, is_repeatable=True).run()):
        return
    count = yield from requests.length(again).run()
    if count:
        letters = "1 dead letter that was" if count == 1 else f"{count} dead letters that were"
        raise Refused(
            f"group {order.group!r} of {order.stream!r} has {letters} sent again and not done yet, which nobody reads "
            f"in order per key. Let a worker without order finish them first, or delete {again!r}."
        )


def register(facts: Facts, order: Order, consumer: str, capacity: int = 1, health: str = "") -> Flow[Session]:
    """A new session. Keys that the name held before are free at once."""
    words: tuple[Word, ...] = (consumer, "CAPACITY", capacity)
    if health:
        words += ("HEALTH", health)

    def decode(reply: Any) -> Session:
        return Session(requests.number(reply[0]), requests.number(reply[1]))

    return (yield from call(facts, "REGISTER", order, words, decode))


def take(
    facts: Facts, order: Order, consumer: str, session: int, lease_ms: int, keys: int, run: int, limit: int = 0
) -> Flow[Taken]:  # fmt: skip
    """Up to `keys` keys that nobody holds, each with up to `run` messages. Fenced when the session has ended.

    With a limit, no more than leave the consumer with so many messages.
    """
    words: tuple[Word, ...] = (consumer, session, "LEASE", lease_ms, "KEYS", min(keys, MOST), "RUN", min(run, MOST))
    if limit:
        words += ("LIMIT", min(limit, MOST))

    def decode(reply: Any) -> Taken:
        wait_ms = requests.number(reply[1])
        grants = [read_grant(row, order.stream) for row in reply[0]]
        return Taken(grants, None if wait_ms == NOTHING_KNOWN else wait_ms)

    return (yield from call(facts, "TAKE", order, words, decode, is_repeatable=False))


def wait(_: Facts, order: Order, wait_ms: int | None) -> Flow[bool]:
    """Wait for a new message, no longer than a second; whether one came. The next `take`, anybody's, puts it in place.

    One message wakes one of those who wait.
    """
    block_ms = LONGEST_WAIT_MS if wait_ms is None else max(1, min(wait_ms, LONGEST_WAIT_MS))
    argv: tuple[Word, ...] = ("XREADGROUP", "GROUP", order.group, order.settings.reader, "COUNT", 1, "BLOCK", block_ms)
    argv += ("STREAMS", order.stream, ">")
    return (yield from Request(argv, lambda reply: bool(reply), order.stream, wait_ms=block_ms).run())


def settle(facts: Facts, order: Order, clauses: Sequence[Clause], *, keep: bool = False) -> Flow[list[bool]]:
    """What became of messages. Per clause, whether it happened; if not, the key is held by somebody else by now.

    What is done is deleted once no group needs it, unless kept.
    """
    flags: list[bool] = []
    for part in clause_parts(clauses):
        words = [word for clause in part for word in clause_words(clause)]
        targets = [key for clause in part for key in clause_keys(clause)]
        argv: tuple[Word, ...] = ("KEEP", *words) if keep else tuple(words)
        flags += yield from call(facts, "SETTLE", order, argv, read_flags, targets=tuple(dict.fromkeys(targets)))
    return flags


def extend(
    facts: Facts, order: Order, consumer: str, session: int, lease_ms: int, held: Sequence[tuple[str, int]], *,
    only: bool = False,
) -> Flow[list[bool]]:  # fmt: skip
    """Hold keys (with their fences) for longer; per key, whether it is still ours. None: just a heartbeat.

    only=True gives back every other key of this consumer: there must be 1,000 keys at the most then.
    """
    if only and len(held) > MOST:
        raise ConfigError(f"{len(held)} keys are to be extended in one step; {MOST} are possible.")
    flags: list[bool] = []
    for place in range(0, max(1, len(held)), MOST):
        part = held[place : place + MOST]
        words: list[Word] = [consumer, session, "LEASE", lease_ms]
        words += ["ONLY"] if only else []
        words.append(len(part))
        for key, fence in part:
            words += [encode_text(key), fence]
        flags += yield from call(facts, "EXTEND", order, tuple(words), read_flags)
    return flags


def leave(facts: Facts, order: Order, consumer: str, session: int) -> Flow[int]:
    """End a session; how many keys were given back."""
    return (yield from call(facts, "LEAVE", order, (consumer, session), requests.number))


def park(facts: Facts, order: Order, key: str, error: str = "") -> Flow[bool]:
    """Let a key stand still, whoever holds it; False when it has nothing undone."""
    words: tuple[Word, ...] = (encode_text(key), "ERROR", encode_text(error)) if error else (encode_text(key),)
    return (yield from call(facts, "PARK", order, words, read_flag))


def resume(facts: Facts, order: Order, key: str, *, skip: bool = False) -> Flow[bool]:
    """Let a key that is parked or waits go on, without its first message if told so; False when it is neither."""
    words: tuple[Word, ...] = (encode_text(key), "SKIP") if skip else (encode_text(key),)
    return (yield from call(facts, "RESUME", order, words, read_flag))


def rebuild(facts: Facts, order: Order) -> Flow[None]:
    """Make all lanes anew from what is pending in the group. Holders are fenced, parked keys go on."""
    yield from call(facts, "REBUILD", order, (), accept)


# Calling


def call(
    facts: Facts, name: str, order: Order, words: tuple[Word, ...], decode: Callable[[Any], T], *,
    targets: tuple[str, ...] = (), is_repeatable: bool = True,
) -> Flow[T]:  # fmt: skip
    """LANE.NAME stream group word… where the server has it, else the step lane_name with all its keys."""
    known = yield from capabilities(facts)
    if known.has_lanes:
        command = (f"LANE.{name}", order.stream, order.group, *words)
        return (yield from Request(command, decode, order.stream, is_repeatable=is_repeatable).run())
    step, keys = f"lane_{name.lower()}", (*order.keys, *targets)
    argv = (order.group, *words)
    return (yield from run_step(facts.scripts, step, keys, argv, decode, is_repeatable=is_repeatable))


def config_words(order: Order) -> tuple[Word, ...]:
    settings = order.settings
    words: tuple[Word, ...] = ("KEYFIELDS", len(settings.keyfields), *map(encode_text, settings.keyfields))
    words += ("POISON", settings.poison, "MAXATTEMPTS", settings.max_attempts, "KEYLESS", settings.keyless)
    words += ("LEASE", settings.lease_ms, "READER", encode_text(settings.reader))
    return (*words, "MAPS", encode_text(order.tickets), encode_text(order.consumers))


def clause_parts(clauses: Sequence[Clause]) -> Iterator[list[Clause]]:
    """What goes into one call each: MOST IDs at the most, and each key once."""
    part: list[Clause] = []
    size, keys = 0, set[str]()
    for clause in clauses:
        ids = len(clause.ids) if isinstance(clause, Done) else 1
        if ids > MOST:
            raise ConfigError(f"{ids} entries are to be settled in one step; {MOST} are possible.")
        if part and (size + ids > MOST or clause.key in keys):
            yield part
            part, size, keys = [], 0, set()
        part.append(clause)
        keys.add(clause.key)
        size += ids
    if part:
        yield part


def clause_words(clause: Clause) -> list[Word]:
    start: list[Word] = [type(clause).__name__.upper(), encode_text(clause.key), clause.fence]
    if isinstance(clause, Done):
        return [*start, len(clause.ids), *clause.ids, *effect_words(clause.effects, clause.adds)]
    if isinstance(clause, Fail):
        return [*start, clause.id, clause.delay_ms, encode_text(clause.error)]
    if isinstance(clause, Bury):
        return [*start, clause.id, encode_text(clause.error), encode_text(clause.traceback)]
    return [*start, encode_text(clause.error)] if isinstance(clause, Park) else start


def clause_keys(clause: Clause) -> list[str]:
    """The keys of others that a clause writes to."""
    if not isinstance(clause, Done):
        return []
    return [add.stream for add in clause.adds] + [requests.text(effect[1]) for effect in clause.effects]


def read_grant(row: Any, stream: str) -> Grant:
    key, fence, attempt, error, entries = row
    return Grant(
        requests.text(key), requests.number(fence), requests.number(attempt), requests.text(error),
        requests.read_entries(entries, stream),
    )  # fmt: skip


def read_flag(reply: Any) -> bool:
    return requests.number(reply) == 1


def accept(reply: Any) -> None:
    """OK says no more than that."""
