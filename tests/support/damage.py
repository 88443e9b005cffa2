"""A data folder, everything it went through, and harm done to it. All of it follows from seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from headrace.commands.call import State
from headrace.engine.stream import Stream
from headrace.journal.frame_file import number_of
from headrace.journal.frames import FrameReader, seed_of
from headrace.server.durability import Durability
from headrace.server.findings import Finding

from .fake_disk import Content, FakeDisk, FakeFile
from .memory import START_MS, MemoryBroker
from .random_commands import Command, Symbols
from .random_list_commands import may_wait
from .random_sessions import any_command_of
from .simulation import ADD, OTHERS, Contents, contents_of

Files = dict[str, bytes]
Entries = dict[tuple[int, bytes], dict[bytes, Any]]

NODE_ENTRIES = 2
SEGMENT_BYTES = 400

# Turns of the loop. SAVE is a checkpoint, BEGIN and STEP one that is written while the others go on.
HISTORY = [
    ["XADD s 1-1 f v", "XGROUP CREATE s g 0", "RPUSH l a b c"],
    ["XADD s 2-1 f v", "XADD s 3-1 f w", "XADD s 4-1 f x", "XADD s 5-1 f y", "XADD s 6-1 f z"],
    ["XREADGROUP GROUP g ann COUNT 2 STREAMS s >", "SET k value", "RQ.PUSH q a b c", "RQ.POP q"],
    ["SAVE"],
    ["XADD s 7-1 f a", "XADD s 8-1 f b", "XACK s g 1-1"],
    ["XADD s 9-1 f c", "XDEL s 2-1", "LPOP l"],
    ["SADD m x", "HSET h g w", "SET e text PX 9000000", "XADD other 5-5 name value"],
    ["RENAME other t", "SELECT 1", "XADD s 1-1 in another", "SELECT 0"],
    ["BEGIN"],
    ["XADD t 6-6 name value", "RPUSH l x"],
    ["STEP"],
    ["HSET h i j", "SADD m y", "XADD s 9-2 f c"],
    ["STEP"],
    ["RQ.PUSH q d", "SET k during"],
    ["SAVE"],
    ["SET k other", "RPUSH l d", "XREADGROUP GROUP g bob COUNT 2 STREAMS s >"],
    ["XADD s 10-1 f d", "XADD s 11-1 f e", "XTRIM s MINID 4-1"],
    ["ZADD z 1 a 2 b", "HSET h f v", "RQ.POP q"],
    ["RENAME l list", "RPUSH list last"],
    ["SADD m a b c", "XADD n 1-1 f v"],
    ["XREADGROUP GROUP g bob COUNT 3 STREAMS s >"],
]
IN_A_CHECKPOINT = [*HISTORY, ["BEGIN"], ["SET k again", "XADD s 12-1 f g"], ["STEP"], ["RPUSH list more"], ["SET v w"]]
STOPPED = [*HISTORY, ["SAVE"]]


class Folder:
    """What a history left behind, and every state it went through."""

    def __init__(self, history: Sequence[Sequence[str | Command]] = HISTORY, policy: str = "always") -> None:
        self.policy = policy
        self.states: list[Contents] = [{}]
        self.older: list[Files] = []
        self.entries: Entries = {}  # Every entry of a stream that ever was.
        self.groups: dict[tuple[int, bytes], list[Any]] = {}  # All groups of a stream, at every moment.
        disk = FakeDisk(Random(0))
        self.broker, self.durability = load(disk, policy)
        for turn in history:
            for command in turn:
                self.do([command] if isinstance(command, str) else command)
            if self.broker.first.call.queue is not None:
                self.broker("EXEC")
            if self.broker.state.records:
                records, self.broker.state.records = self.broker.state.records, []
                assert self.durability.commit(records)
            self.states.append(contents_of(self.broker))
            note_entries(self.broker, self.entries)
            for place, groups in groups_of(self.broker).items():
                self.groups.setdefault(place, []).append(groups)
            self.older.append(files_of(disk))
        self.files = self.older[-1]
        self.log = max(name for name in self.files if number_of("log", name))
        self.values: dict[tuple[int, bytes], list[Any]] = {}  # Every value a key ever had.
        for state in self.states:
            for place, value in state.items():
                self.values.setdefault(place, []).append(value)

    def do(self, words: Sequence[str | bytes]) -> None:
        durability = self.durability
        if words[0] in ("SAVE", b"SAVE"):
            assert durability.save()
        elif words[0] in ("BEGIN", b"BEGIN"):
            assert durability.checkpoint is not None or durability.begin_checkpoint()
        elif words[0] in ("STEP", b"STEP"):
            for _ in range(3 if durability.checkpoint is not None else 0):
                durability.write_checkpoint()
        else:
            self.broker(*words)

    def boundaries(self, name: str) -> list[int]:
        """Where frames of a file end."""
        if name not in self.files:
            return []
        disk = disk_of(self.files)
        reader = FrameReader(FakeFile(disk, disk.files[name]), seed_of(name))
        found = []
        while reader.next() is not None:
            found.append(reader.offset)
        return found


def all_folders() -> list[Folder]:
    """Killed; killed while a checkpoint is written; stopped; killed with a log that is not synced to its end."""
    return [Folder(), Folder(IN_A_CHECKPOINT), Folder(STOPPED), Folder(policy="everysec")]


def random_folder(seed: int) -> Folder:
    """What random commands of every kind left behind, with checkpoints at any moment."""
    random = Random(seed)
    symbols = Symbols(START_MS)
    history: list[list[Command]] = []
    for _ in range(random.randint(10, 50)):
        way = random.randrange(12)
        if way < 3:
            history.append([[[b"SAVE"], [b"BEGIN"], [b"STEP"]][way]])
        else:
            commands = [symbols.resolve(any_command(random)) for _ in range(random.randint(1, 6))]
            history.append([command for command in commands if not may_wait(command)])
    return Folder(history, random.choice(["always", "always", "everysec"]))


def any_command(random: Random) -> Command:
    way = random.randrange(10)
    if way < 3:
        return ADD
    return random.choice(OTHERS) if way < 5 else any_command_of(random.getrandbits(32))


def new_state() -> State:
    return new_broker("always").state


def new_broker(policy: str) -> MemoryBroker:
    broker = MemoryBroker()
    assert broker(f"CONFIG SET stream-node-max-entries {NODE_ENTRIES} appendfsync {policy}") == b"OK"
    return broker


def load(disk: FakeDisk, policy: str = "always") -> tuple[MemoryBroker, Durability]:
    broker = new_broker(policy)
    durability = Durability(broker.state, disk, segment_bytes=SEGMENT_BYTES, step_bytes=50)
    broker.first = broker.client()
    return broker, durability


def note_entries(broker: MemoryBroker, entries: Entries) -> None:
    client = broker.client()
    for database in broker.state.databases:
        client("SELECT", database.number)
        for key in list(database.values):
            if client("TYPE", key) == b"stream":
                known = entries.setdefault((database.number, key), {})
                for name, words in client("XRANGE", key, "-", "+"):
                    known[name] = words
    client.close()


def groups_of(broker: MemoryBroker) -> dict[tuple[int, bytes], Any]:
    """Of every stream its groups: where they are, and what is pending with whom."""
    found = {}
    client = broker.client()
    for database in broker.state.databases:
        client("SELECT", database.number)
        for key, value in list(database.values.items()):
            if isinstance(value, Stream):
                found[database.number, key] = {
                    name: (group.last_id, pending_of(client("XPENDING", key, name, "-", "+", 1000)))
                    for name, group in value.groups.items()
                }
    client.close()
    return found


def pending_of(rows: list[Any]) -> list[tuple[bytes, bytes, int]]:
    """Without the time they have been idle."""
    return [(name, consumer, count) for name, consumer, _, count in rows]


def files_of(disk: FakeDisk) -> Files:
    return {name: bytes(content.data) for name, content in disk.files.items()}


def disk_of(files: Files) -> FakeDisk:
    return FakeDisk(Random(0), {name: Content(data) for name, data in files.items()})


class MemoryKeep:
    """Keeps what a repair changes, and what it drops."""

    def __init__(self, disk: FakeDisk) -> None:
        self.disk = disk
        self.files: Files = {}
        self.records: list[Any] = []

    def begin_records(self) -> Callable[[int, list[Any]], None]:
        self.records = []
        return self.keep_record

    def keep_record(self, sequence: int, record: list[Any]) -> None:
        self.records.append((sequence, record))

    def take(self, names: list[str]) -> Finding:
        self.files = {name: bytes(self.disk.files[name].data) for name in names}
        return Finding("kept", ", ".join(names))


# Harm


def harm(folder: Folder, random: Random) -> tuple[str, Files]:
    """What was done, and the files afterwards: mostly one thing, now and then up to three."""
    files = dict(folder.files)
    done = []
    for _ in range(random.choice([1, 1, 1, 1, 2, 3])):
        name = random.choice(sorted(files)) if files else ""
        if name:
            done.append(random.choice(WAYS)(folder, files, name, random))
    return ", then ".join(done), files


def stretch(folder: Folder, files: Files, name: str, random: Random) -> tuple[int, int]:
    """Where it begins and ends: whole frames, a few bytes, a sector, or any."""
    data = files[name]
    if random.randrange(3) == 0:
        ends = [0, *[end for end in folder.boundaries(name) if end <= len(data)]]
        low, high = sorted([random.choice(ends), random.choice(ends)])
        return low, high
    start = random.randrange(len(data) + 1)
    size = random.choice([1, random.randint(1, 20), 64, 512, random.randint(0, len(data))])
    return start, min(len(data), start + size)


def flip_bits(_: Folder, files: Files, name: str, random: Random) -> str:
    data = bytearray(files[name])
    places = [random.randrange(len(data)) for _ in range(random.choice([1, 1, 1, 2, 8]))] if data else []
    for place in places:
        data[place] ^= 1 << random.randrange(8)
    files[name] = bytes(data)
    return f"{name}: flipped a bit of bytes {places}"


def zero(folder: Folder, files: Files, name: str, random: Random) -> str:
    low, high = stretch(folder, files, name, random)
    files[name] = files[name][:low] + bytes(high - low) + files[name][high:]
    return f"{name}: zeros from {low} to {high}"


def scribble(folder: Folder, files: Files, name: str, random: Random) -> str:
    low, high = stretch(folder, files, name, random)
    files[name] = files[name][:low] + random.randbytes(high - low) + files[name][high:]
    return f"{name}: noise from {low} to {high}"


def cut(folder: Folder, files: Files, name: str, random: Random) -> str:
    place, _ = stretch(folder, files, name, random)
    files[name] = files[name][:place]
    return f"{name}: cut at {place}"


def take_out(folder: Folder, files: Files, name: str, random: Random) -> str:
    low, high = stretch(folder, files, name, random)
    files[name] = files[name][:low] + files[name][high:]
    return f"{name}: bytes {low} to {high} are gone"


def double(folder: Folder, files: Files, name: str, random: Random) -> str:
    low, high = stretch(folder, files, name, random)
    files[name] = files[name][:high] + files[name][low:]
    return f"{name}: bytes {low} to {high} twice"


def swap_blocks(_: Folder, files: Files, name: str, random: Random) -> str:
    data = files[name]
    size = random.choice([1, 16, 64])
    first, second = sorted([random.randrange(len(data) + 1), random.randrange(len(data) + 1)])
    if first + size <= second:
        a, b = data[first : first + size], data[second : second + size]
        data = data[:first] + b + data[first + size : second] + a + data[second + size :]
    files[name] = data
    return f"{name}: {size} bytes at {first} and {second} swapped"


def append(folder: Folder, files: Files, name: str, random: Random) -> str:
    data = files[name]
    low, high = stretch(folder, files, name, random)
    tail = random.choice([b"\0" * random.randint(1, 5000), b"HRF1", random.randbytes(100), data[low:high], data])
    files[name] = data + tail
    return f"{name}: followed by {len(tail)} bytes {tail[:8]!r}"


def insert(_: Folder, files: Files, name: str, random: Random) -> str:
    place = random.randrange(len(files[name]) + 1)
    more = random.randbytes(random.randint(1, 20))
    files[name] = files[name][:place] + more + files[name][place:]
    return f"{name}: {len(more)} bytes more at {place}"


def remove(_: Folder, files: Files, name: str, random: Random) -> str:
    del files[name]
    return f"{name}: gone"


def replace(_: Folder, files: Files, name: str, random: Random) -> str:
    other = random.choice(sorted(files))
    files[name], files[other] = files[other], files[random.choice([name, other])]
    return f"{name}: exchanged with {other}"


def set_back(folder: Folder, files: Files, name: str, random: Random) -> str:
    """As it was before: a file that was restored from somewhere. The last log is not: that is a crash."""
    moments = [moment for moment, older in enumerate(folder.older) if name in older]
    if not moments or name == folder.log:
        return flip_bits(folder, files, name, random)
    moment = random.choice(moments)
    files[name] = folder.older[moment][name]
    return f"{name}: as it was at {moment}"


WAYS: list[Callable[[Folder, Files, str, Random], str]] = [
    flip_bits, flip_bits, zero, scribble, cut, take_out, double, swap_blocks, append, insert, remove, replace, set_back,
]  # fmt: skip
