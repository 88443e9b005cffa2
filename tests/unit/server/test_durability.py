"""What is written, and what is not written again: the folder grows with what is new, and space comes back."""

from itertools import pairwise
from random import Random

import pytest

from headrace.server.durability import Durability
from support.fake_disk import FakeDisk
from support.memory import MemoryBroker
from support.simulation import contents_of


class Kept:
    """A broker on a fake disk."""

    def __init__(self, disk: FakeDisk | None = None) -> None:
        self.disk = disk or FakeDisk(Random(0))
        self.broker = MemoryBroker()
        assert self.broker("CONFIG SET stream-node-max-entries 10 appendfsync always") == b"OK"
        self.durability = Durability(self.broker.state, self.disk, segment_bytes=4000)
        self.client = self.broker.client()

    def __call__(self, command: str) -> object:
        reply = self.client(command)
        self.commit()
        return reply

    def commit(self) -> bool:
        records, self.broker.state.records = self.broker.state.records, []
        return not records or self.durability.commit(records)

    def add(self, count: int) -> None:
        for _ in range(count):
            self.client("XADD s * text some-words-that-are-said-once-and-once-more")
        self.commit()

    def size(self, kind: str) -> int:
        return sum(len(content.data) for name, content in self.disk.files.items() if name.startswith(kind))

    def save(self) -> None:
        assert self.durability.save()


@pytest.fixture
def kept() -> Kept:
    return Kept()


def test_a_stream_that_grew_is_not_written_again(kept: Kept) -> None:
    kept.add(2000)
    kept.save()
    segments = kept.size("segment")
    kept.add(20)
    kept.save()

    assert segments > 10_000
    assert 0 < kept.size("segment") - segments < segments / 50


def test_the_journal_begins_anew_after_a_checkpoint(kept: Kept) -> None:
    kept.add(500)
    assert kept.size("log") > 20_000
    kept.save()

    assert kept.size("log") < 100
    assert len(kept.disk.names()) == len({"manifest", "log", "confirmed", "checkpoint"}) + len(
        kept.durability.segments.files
    )


def test_the_space_of_trimmed_entries_comes_back(kept: Kept) -> None:
    kept.add(2000)
    kept.save()
    before = kept.size("segment")
    kept("XTRIM s MAXLEN 100")
    kept.save()

    assert kept.size("segment") < before / 5


def test_the_space_of_entries_deleted_here_and_there_comes_back(kept: Kept) -> None:
    kept.add(2000)
    kept.save()
    before = kept.size("segment")
    names = [name.decode() for name, _ in kept("XRANGE s - +")]  # type: ignore[attr-defined]
    for start in range(0, 2000, 40):  # Three of four nodes go.
        kept(f"XDEL s {' '.join(names[start : start + 30])}")
    kept.save()  # Now it is known how little of each segment is needed,
    kept.save()  # and what is left of them is written together.

    assert kept.size("segment") < before / 2
    assert contents_of(Kept(kept.disk.after_crash()).broker) == contents_of(kept.broker)


def test_old_entries_of_a_long_stream_are_not_kept_in_memory(kept: Kept) -> None:
    random = Random(0)
    for _ in range(2000):
        kept(f"XADD s * text {random.randbytes(100).hex()}")  # Cannot be compressed to nothing.
    before = int(kept("MEMORY USAGE s SAMPLES 0"))  # type: ignore[call-overload]
    kept.save()

    assert int(kept("MEMORY USAGE s SAMPLES 0")) < before / 2  # type: ignore[call-overload]
    assert len(kept("XRANGE s - +")) == 2000  # type: ignore[arg-type]


def test_without_room_nothing_is_promised_until_it_is_there(kept: Kept) -> None:
    kept("SET a 1")
    kept.disk.full_from, kept.disk.full_until = 0, kept.disk.steps + 1000

    kept.client("SET a 2")
    assert not kept.commit()
    assert str(kept.client("SET a 3")).startswith("MISCONF there is no room for the journal (No space left on device)")
    assert not kept.durability.try_again()
    assert contents_of(Kept(kept.disk.after_crash()).broker).keys() == {(0, b"a")}

    kept.disk.full_until = -1
    assert kept.durability.try_again()
    assert kept("SET b 1") == b"OK"
    assert contents_of(Kept(kept.disk.after_crash()).broker) == contents_of(kept.broker)


def test_a_key_that_expires_while_there_is_no_room_holds_nobody_up(kept: Kept) -> None:
    kept("SET a 1 PX 1000")
    kept.disk.full_from, kept.disk.full_until = 0, kept.disk.steps + 1000
    kept.client("SET b 2")
    assert not kept.commit()

    kept.broker.clock.advance(ms=2000)

    assert kept.client("GET a") is None
    assert kept.commit()


def test_a_checkpoint_gives_way_when_the_journal_needs_its_room(kept: Kept) -> None:
    kept.add(100)
    assert kept.durability.begin_checkpoint()
    kept.disk.full_from, kept.disk.full_until = 0, kept.disk.steps + 1000

    kept.client("SET a 1")
    assert not kept.commit()

    assert kept.durability.checkpoint is None
    assert not [name for name in kept.disk.names() if name.startswith("checkpoint")]


@pytest.mark.parametrize("saves", [True, False])
def test_everything_comes_back_when_it_is_loaded_again(kept: Kept, saves: bool) -> None:
    kept.add(200)
    kept.save()
    kept("CONFIG SET notify-keyspace-events KEA")
    for line in (
        "XGROUP CREATE s workers 0", "XREADGROUP GROUP workers ann COUNT 30 STREAMS s >", "XDEL s 1-1",
        "RPUSH list a b c", "LPOP list", "HSET hash a 1", "SADD set a b", "ZADD scores 1.5 a", "RQ.PUSH queue a b",
        "RQ.POP queue", "SET text tea PX 100000", "SELECT 3", "SET other 1", "RENAME other another",
    ):  # fmt: skip
        kept(line)
    kept.add(30)
    before = contents_of(kept.broker)
    listener = kept.broker.client()
    listener("PSUBSCRIBE __key*")

    assert kept.durability.reload(saves=saves)

    assert contents_of(kept.broker) == before
    assert (kept.durability.loaded.frames == 0) == saves
    assert listener.replies() == []
    kept("SET text coffee")  # In database 3; events go on, and so does the journal.
    assert len(listener.replies()) == 2
    after = contents_of(kept.broker)
    assert kept.durability.reload(saves=False)
    assert contents_of(kept.broker) == after


def test_nothing_is_forgotten_when_there_is_no_room_for_the_checkpoint_before_it(kept: Kept) -> None:
    kept.add(200)
    before = contents_of(kept.broker)
    kept.disk.full_from, kept.disk.full_until = kept.disk.steps, kept.disk.steps + 10_000

    assert not kept.durability.reload(saves=True)
    assert contents_of(kept.broker) == before


@pytest.mark.parametrize("add", ["RPUSH {} {}", "SADD {} {}", "HSET {} {} value", "ZADD {} 1 {}"])
def test_a_large_value_is_saved_in_small_pieces_while_it_changes(kept: Kept, add: str) -> None:
    kept.durability.step_bytes = 6400  # A hundred elements.
    for number in range(2000):
        kept.client(add.format("large", number))
    kept.commit()
    assert kept.durability.begin_checkpoint()
    steps = 0
    sizes = [kept.size("checkpoint")]
    while not kept.durability.write_checkpoint():
        sizes.append(kept.size("checkpoint"))
        kept(add.format("large", 2000 + steps))
        steps += 1
    checkpoint = kept.durability.checkpoint
    assert checkpoint is not None
    checkpoint.sync()
    kept.durability.finish_checkpoint()
    before = contents_of(kept.broker)

    assert kept.durability.reload(saves=False)

    assert contents_of(kept.broker) == before
    assert steps > 40
    assert max(second - first for first, second in pairwise(sizes)) < 6400


def test_a_checkpoint_begins_again_also_in_the_middle_of_a_large_value(kept: Kept) -> None:
    kept.durability.step_bytes = 640
    for number in range(500):
        kept.client(f"RPUSH large {number}")
    kept("SET a 1")
    assert kept.durability.begin_checkpoint()
    for step in range(80):
        kept.durability.write_checkpoint()
        if step == 70:
            kept("RENAME a b")
    assert kept.durability.save()
    before = contents_of(kept.broker)

    assert kept.durability.reload(saves=False)
    assert contents_of(kept.broker) == before
