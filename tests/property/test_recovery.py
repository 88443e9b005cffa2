"""A broker that stops at any moment comes back with everything, from a checkpoint that was written while it worked.

The fuzzy checkpoint, without a disk: after each turn of random commands its records become a frame, and now and then
some keys are saved. A structural record makes the checkpoint start over. At the end the newest whole checkpoint and the
frames behind its beginning must make the same memory.
"""

from __future__ import annotations

from random import Random

import pytest

from headrace.commands.call import State
from headrace.commands.recovery import Recovery
from headrace.engine.snapshot import absent_part, dump_part, place_nodes
from headrace.engine.stream import Stream
from headrace.journal.record import is_structural, read_records
from support.memory import MemoryBroker
from support.random_sessions import RandomSession, any_command_of
from support.replay import NODE_ENTRIES, contents_of
from support.shelf import Shelf

TURNS = 60
RESTARTS = 2  # The next time it is finished at once.


class Checkpoint:
    """One that is being written, or the whole one."""

    def __init__(self, state: State, sequence: int) -> None:
        self.start = sequence
        self.parts: list[bytes] = []
        self.missing = [(database.number, key) for database in state.databases for key in database.values]


class Journal:
    """What the server does about the state of a broker, in memory."""

    def __init__(self, broker: MemoryBroker, random: Random) -> None:
        self.state = broker.state
        self.random = random
        self.shelf = Shelf(self.state.settings.limits)
        self.sequence = 0
        self.frames: list[tuple[int, bytes]] = []
        self.whole = Checkpoint(State(0), 0)
        self.running: Checkpoint | None = None
        self.restarts = 0
        self.finished = 0

    def end_turn(self) -> None:
        """Make a frame of what was done, and go on with the checkpoint."""
        records = self.state.records
        self.state.records = []
        if records:
            self.sequence += 1
            self.frames.append((self.sequence, b"".join(records)))
        if self.running is not None and any(is_structural(record) for record in records):
            self.restarts += 1
            self.begin()
        elif self.running is None and self.random.randrange(8) == 0:
            self.restarts = 0
            self.begin()
        if self.running is not None and self.random.randrange(2):
            self.save_some(self.running)

    def begin(self) -> None:
        self.running = Checkpoint(self.state, self.sequence)
        self.random.shuffle(self.running.missing)

    def save_some(self, checkpoint: Checkpoint) -> None:
        is_last_try = self.restarts > RESTARTS
        for _ in range(len(checkpoint.missing) if is_last_try else min(2, len(checkpoint.missing))):
            number, key = checkpoint.missing[-1]
            database = self.state.databases[number]
            value = database.values.get(key)
            if value is None:
                checkpoint.parts.append(absent_part(number, key, self.sequence))
            elif not is_last_try and self.random.randrange(2) and not place_nodes(value, self.shelf, most_bytes=1):
                return  # More of it in the next turn.
            else:
                expires_ms = database.expires_ms.get(key, 0)
                leaving = frozenset({self.random.randint(1, 9)})
                checkpoint.parts.append(dump_part(number, key, value, expires_ms, self.sequence, self.shelf, leaving))
            checkpoint.missing.pop()
        if not checkpoint.missing:
            self.finish(checkpoint)

    def finish(self, checkpoint: Checkpoint) -> None:
        self.whole = checkpoint
        self.running = None
        self.finished += 1
        for database in self.state.databases:
            for value in database.values.values():
                if isinstance(value, Stream):
                    value.release()

    def recover(self) -> State:
        state = State(0)
        state.settings.limits.max_entries = NODE_ENTRIES
        state.settings.limits.fetch_from(self.shelf.fetch)
        recovery = Recovery(state, self.whole.start)
        for part in self.whole.parts:
            recovery.part(part)
        for sequence, payload in self.frames:
            recovery.frame(sequence, payload)
        return state


def check(seed: int) -> int:
    """How many checkpoints there were."""
    random = Random(seed)
    session = RandomSession()
    journal = Journal(session.broker, random)
    for _ in range(TURNS):
        session.wait(random.choice([0, 0, 0, 1, 2500, -2500]))
        for _ in range(random.randrange(5)):
            session.send(any_command_of(random.getrandbits(32)))
        if session.broker.first.call.queue is None:
            journal.end_turn()
    session.finish()
    journal.state.note_expired()  # Also what a refused command met.
    journal.end_turn()
    assert contents_of(journal.recover()) == contents_of(journal.state), (seed, session.sent)
    return journal.finished


def test_a_checkpoint_written_between_commands_and_the_frames_behind_it_make_the_same_memory() -> None:
    assert sum([check(seed) for seed in range(80)]) > 160


@pytest.mark.long
def test_a_checkpoint_and_its_frames_make_the_same_memory_in_many_sessions() -> None:
    for seed in range(10_000):
        check(seed)


# The rule that this stands on


def check_records(seed: int) -> int:
    """Apply every record to all keys together and to its own key alone. How many of them there were."""
    random = Random(seed)
    session = RandomSession()
    together = Recovery(new_state())
    alone: dict[tuple[int, bytes], Recovery] = {}
    sequence = 0
    for _ in range(TURNS * 3):
        session.wait(random.choice([0, 0, 0, 1, 2500, -2500]))
        session.send(any_command_of(random.getrandbits(32)))
        joined, session.broker.state.records = session.broker.state.records, []
        for group in joined:
            sequence += 1
            together.frame(sequence, group)
            if is_structural(group):
                alone = split(together.state, sequence)
                continue
            for record in read_records(group):
                place = (int(record[1]), record[2])
                own = alone.setdefault(place, Recovery(new_state()))
                sequence += 1
                own.frame(sequence, encode(record))
    assert merged(alone) == contents_of(together.state), (seed, session.sent)
    return sequence


def encode(value: object) -> bytes:
    """A record as it was."""
    if isinstance(value, list):
        return b"*%d\r\n" % len(value) + b"".join([encode(item) for item in value])
    assert isinstance(value, bytes)
    return b"$%d\r\n%b\r\n" % (len(value), value)


def new_state() -> State:
    state = State(0)
    state.settings.limits.max_entries = NODE_ENTRIES
    return state


def split(state: State, sequence: int) -> dict[tuple[int, bytes], Recovery]:
    """Each key in a state of its own."""
    alone = {}
    for database in state.databases:
        for key, value in database.values.items():
            own = Recovery(new_state())
            shelf = Shelf(own.state.settings.limits)
            own.part(dump_part(database.number, key, value, database.expires_ms.get(key, 0), sequence, shelf))
            for node in value.nodes if isinstance(value, Stream) else ():
                node.place = 0  # The next shelf does not know it.
            alone[database.number, key] = own
    return alone


def merged(alone: dict[tuple[int, bytes], Recovery]) -> dict[tuple[int, bytes], tuple[bytes, int]]:
    contents: dict[tuple[int, bytes], tuple[bytes, int]] = {}
    for place, recovery in alone.items():
        own = contents_of(recovery.state)
        assert set(own) <= {place}
        contents.update(own)
    return contents


def test_a_record_looks_at_no_other_key_than_the_one_it_names_and_changes_no_other() -> None:
    assert sum([check_records(seed) for seed in range(60)]) > 3000
