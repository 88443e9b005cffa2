"""The steps of a worker, each in one go on the server: HR.* on our broker, functions/worker_*.lua elsewhere.

One function per step; each gives a flow. What names more than 1,000 IDs is several calls. All of them may be repeated
after a lost answer: what was done is not done twice.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from headrace.client import requests
from headrace.client.flow import Flow
from headrace.client.flows import Facts, beside, capabilities
from headrace.client.functions import run_step
from headrace.client.requests import Request, Word
from headrace.client.results import Entry, encode_text
from headrace.client.worker_keys import group_keys, is_again, stream_keys
from headrace.errors import ConfigError

T = TypeVar("T")
Pairs = Sequence[tuple[bytes, bytes]]

MOST: Final = 1000  # IDs in one call. functions/worker.lua has the same number.
NOTHING_DUE: Final = -1


# What comes back


@dataclass(frozen=True, slots=True)
class Due:
    """What a consumer was given because its time has come, and when to ask again."""

    entries: list[Entry]
    wait_ms: int | None  # Until the next one; 0: there is more now. None: nothing waits.
    again: int  # Entries in the group's stream `again` that are not settled yet.


@dataclass(frozen=True, slots=True)
class Started:
    """Whether a redelivered entry may run now. One of three: it may (attempt > 0), not yet (wait_ms > 0), not ours."""

    attempt: int
    last_error: str = ""  # Of the attempt before; empty when that ended without a word.
    wait_ms: int = 0

    @property
    def is_ours(self) -> bool:
        return self.attempt > 0 or self.wait_ms > 0


# What is settled


@dataclass(frozen=True, slots=True)
class Add:
    """An entry that is added with an acknowledgement."""

    stream: str
    pairs: Pairs


@dataclass(frozen=True, slots=True)
class Ack:
    """Entries that are done. With adds or effects, all of it happens, or nothing when one of the IDs is not ours."""

    ids: Sequence[str]
    adds: Sequence[Add] = ()
    effects: Sequence[Sequence[Word]] = ()  # ("HINCRBY", "totals", "paid", 1): a write command on one key.


@dataclass(frozen=True, slots=True)
class Retry:
    """An entry that is tried again when the time has passed; it stays pending."""

    id: str
    delay_ms: int
    attempt: int  # The one that failed.
    error: str


@dataclass(frozen=True, slots=True)
class Bury:
    """An entry that goes to the dead letters."""

    id: str
    error: str
    traceback: str
    attempt: int


Clause = Ack | Retry | Bury


# The steps


def due(facts: Facts, stream: str, group: str, consumer: str, count: int) -> Flow[Due]:
    """Move delayed messages whose time has come into the stream, and take over retries whose time has come.

    At most `count` of each. NotFound when the group is missing.
    """
    streams, groups = stream_keys(stream), group_keys(stream, group)
    keys = (streams.delayed, streams.bodies, groups.due, groups.attempts, groups.again, beside(stream, "ids"))

    def decode(reply: Any) -> Due:
        wait_ms = requests.number(reply[1])
        entries = requests.read_entries(reply[0], stream)
        return Due(entries, None if wait_ms == NOTHING_DUE else wait_ms, requests.number(reply[2]))

    return (yield from call(facts, "DUE", stream, keys, (group, consumer, "COUNT", min(count, MOST)), decode))


def start(
    facts: Facts, stream: str, group: str, consumer: str, ids: Sequence[str], *, is_recorded: bool = False
) -> Flow[list[Started]]:
    """Which attempt this is. It is on record before the handler runs.

    A redelivered entry without a record counts as tried once; when every first try is told too, as never tried.
    """
    groups = group_keys(stream, group)

    def decode(reply: Any) -> list[Started]:
        return [read_started(requests.number(attempt), requests.text(error)) for attempt, error in reply]

    started: list[Started] = []
    for part in parts_of(ids):
        words = (group, consumer, *(("RECORDED",) if is_recorded else ()), *part)
        started += yield from call(facts, "START", stream, (groups.due, groups.attempts), words, decode)
    return started


def extend(facts: Facts, stream: str, group: str, consumer: str, ids: Sequence[str]) -> Flow[list[bool]]:
    """Their idle time begins again. Per ID, whether it is still this consumer's."""
    flags: list[bool] = []
    for part in parts_of(ids):
        flags += yield from call(facts, "EXTEND", stream, (), (group, consumer, *part), read_flags)
    return flags


def release(facts: Facts, stream: str, group: str, consumer: str, ids: Sequence[str]) -> Flow[list[bool]]:
    """Give entries back: free for everybody at once. Per ID, whether it was still this consumer's."""
    groups = group_keys(stream, group)
    flags: list[bool] = []
    for part in parts_of(ids):
        words = (group, consumer, *part)
        flags += yield from call(facts, "RELEASE", stream, (groups.due, groups.attempts), words, read_flags)
    return flags


def settle(
    facts: Facts, stream: str, group: str, consumer: str, clauses: Sequence[Clause], *, keep: bool = False
) -> Flow[list[bool]]:
    """Acknowledge, retry and bury. Per ID in the order given, whether it was settled; if not, it is not ours any more.

    An acknowledged entry is deleted once no group needs it, unless kept; those of the stream `again` always.
    """
    groups = group_keys(stream, group)
    flags: list[bool] = []
    for part in clause_parts(clauses):
        words = [word for clause in part for word in clause_words(clause)]
        targets = [key for clause in part for key in clause_keys(clause)]
        keys = (groups.due, groups.attempts, groups.dead, *dict.fromkeys(targets))
        keep_word = ("KEEP",) if keep and not is_again(stream, group) else ()
        argv: tuple[Word, ...] = (group, consumer, *keep_word, *words)
        flags += yield from call(facts, "SETTLE", stream, keys, argv, read_flags)
    return flags


def sweep(facts: Facts, stream: str, group: str, idle_ms: int, consumer: str | None = None) -> Flow[list[str]]:
    """Remove consumers that did nothing for so long and hold nothing, or only the one named; those removed."""
    words: tuple[Word, ...] = () if consumer is None else ("CONSUMER", consumer)

    def decode(reply: Any) -> list[str]:
        return [requests.text(name) for name in reply]

    groups = group_keys(stream, group)
    argv = (group, "IDLE", idle_ms, *words)
    return (yield from call(facts, "SWEEP", stream, (groups.due, groups.attempts), argv, decode))


# Calling


def call(
    facts: Facts, name: str, stream: str, keys: tuple[str, ...], words: tuple[Word, ...], decode: Callable[[Any], T]
) -> Flow[T]:
    """HR.NAME stream word… where the server has it, else the step worker_name with all its keys."""
    known = yield from capabilities(facts)
    if known.has_native_steps:
        return (yield from Request((f"HR.{name}", stream, *words), decode, stream, is_repeatable=True).run())
    step = f"worker_{name.lower()}"
    return (yield from run_step(facts.scripts, step, (stream, *keys), words, decode, is_repeatable=True))


def parts_of(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for place in range(0, len(ids), MOST):
        yield ids[place : place + MOST]


def clause_parts(clauses: Sequence[Clause]) -> Iterator[list[Clause]]:
    """What goes into one call each: MOST IDs at the most."""
    part: list[Clause] = []
    size = 0
    for clause in clauses:
        for piece in pieces_of(clause):
            ids = len(piece.ids) if isinstance(piece, Ack) else 1
            if part and size + ids > MOST:
                yield part
                part, size = [], 0
            part.append(piece)
            size += ids
    if part:
        yield part


def pieces_of(clause: Clause) -> list[Clause]:
    if not isinstance(clause, Ack) or len(clause.ids) <= MOST:
        return [clause] if not isinstance(clause, Ack) or clause.ids else []
    if clause.adds or clause.effects:
        raise ConfigError(f"{len(clause.ids)} entries are to be settled in one step; {MOST} are possible.")
    return [Ack(part) for part in parts_of(clause.ids)]


def clause_words(clause: Clause) -> list[Word]:
    if isinstance(clause, Retry):
        return ["RETRY", clause.id, clause.delay_ms, clause.attempt, encode_text(clause.error)]
    if isinstance(clause, Bury):
        return ["BURY", clause.id, encode_text(clause.error), encode_text(clause.traceback), clause.attempt]
    return ["ACK", len(clause.ids), *clause.ids, *effect_words(clause.effects, clause.adds)]


def effect_words(effects: Sequence[Sequence[Word]], adds: Sequence[Add]) -> list[Word]:
    words: list[Word] = []
    for effect in effects:
        words += ["EFFECT", len(effect), *effect]
    for add in adds:
        words += ["ADD", add.stream, "FIELDS", 2 * len(add.pairs)]
        for pair in add.pairs:
            words += pair
    return words


def clause_keys(clause: Clause) -> list[str]:
    """The keys of others that a clause writes to."""
    if not isinstance(clause, Ack):
        return []
    return [add.stream for add in clause.adds] + [requests.text(effect[1]) for effect in clause.effects]


def read_flags(reply: Any) -> list[bool]:
    return [item == 1 for item in reply]


def read_started(attempt: int, error: str) -> Started:
    return Started(attempt, error) if attempt >= 0 else Started(0, error, wait_ms=-attempt)
