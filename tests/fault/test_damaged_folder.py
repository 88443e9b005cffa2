"""Damage of any kind, anywhere: the data is there as it was, or the start is refused, or the cut is told.

Never a value that was not written, never a hole, never less than was promised without a word. What no check can tell is
a log that was cut exactly between two frames: that is what the disk looked like a moment earlier.
"""

from collections.abc import Iterator
from random import Random

import pytest

from headrace.errors import JournalError
from headrace.journal.frames import FrameReader, seed_of
from headrace.server.durability import Durability
from support.fake_disk import Content, FakeDisk, FakeFile
from support.memory import MemoryBroker
from support.simulation import Contents, contents_of

Files = dict[str, bytes]

HISTORY = [
    ["XADD s 1-1 f v", "XGROUP CREATE s g 0", "RPUSH l a b c"],
    ["XADD s 2-1 f v", "XADD s 3-1 f w", "XADD s 4-1 f x", "XADD s 5-1 f y", "XADD s 6-1 f z"],
    ["XREADGROUP GROUP g ann COUNT 2 STREAMS s >", "SET k value"],
    ["SAVE"],
    ["XADD s 7-1 f a", "XADD s 8-1 f b", "XACK s g 1-1"],
    ["XADD s 9-1 f c", "XDEL s 2-1", "LPOP l"],
    ["SAVE"],
    ["SET k other", "RPUSH l d"],
    ["XADD s 10-1 f d", "XADD s 11-1 f e"],
    ["ZADD z 1 a 2 b", "HSET h f v"],
    ["SADD m a b c"],
]


class Folder:
    """What the history left behind, and every state it went through."""

    def __init__(self) -> None:
        self.states: list[Contents] = [{}]
        self.older: list[Files] = []
        disk = FakeDisk(Random(0))
        broker, durability = load(disk)
        for turn in HISTORY:
            for command in turn:
                if command == "SAVE":
                    assert durability.save()
                else:
                    broker(command)
            if broker.state.records:
                records, broker.state.records = broker.state.records, []
                assert durability.commit(records)
            self.states.append(contents_of(broker))
            self.older.append(files_of(disk))
        self.files = self.older[-1]
        self.log = max(name for name in self.files if name.startswith("log-"))

    def boundaries(self) -> set[int]:
        """Where frames of the last log end."""
        disk = disk_of(self.files)
        reader = FrameReader(FakeFile(disk, disk.files[self.log]), seed_of(self.log))
        found = set()
        while reader.next() is not None:
            found.add(reader.offset)
        return found


def load(disk: FakeDisk) -> tuple[MemoryBroker, Durability]:
    broker = MemoryBroker()
    assert broker("CONFIG SET stream-node-max-entries 2 appendfsync always") == b"OK"
    durability = Durability(broker.state, disk, segment_bytes=400)
    broker.first = broker.client()
    return broker, durability


def files_of(disk: FakeDisk) -> Files:
    return {name: bytes(content.data) for name, content in disk.files.items()}


def disk_of(files: Files) -> FakeDisk:
    return FakeDisk(Random(0), {name: Content(data) for name, data in files.items()})


def changed(folder: Folder, step: int) -> Iterator[tuple[str, Files]]:
    """Each file harmed in each way, at every so many bytes."""
    boundaries = folder.boundaries()
    for name, data in folder.files.items():
        for place in range(0, len(data), step):
            for bit in (1, 64):
                yield f"{name}: bit {bit} of byte {place}", harmed(folder, name, place, bytes([data[place] ^ bit]))
            if place > 0 and not (name == folder.log and place in boundaries):
                yield f"{name}: cut at {place}", {**folder.files, name: data[:place]}
            yield f"{name}: zeros from {place}", harmed(folder, name, place, bytes(min(16, len(data) - place)))
            yield f"{name}: a byte more at {place}", {**folder.files, name: data[:place] + b"x" + data[place:]}
            yield f"{name}: a byte less at {place}", {**folder.files, name: data[:place] + data[place + 1 :]}
        for tail in (b"\0", bytes(5000), b"HRF1", b"x" * 100, data[-60:], data):
            yield f"{name}: followed by {tail[:8]!r}", {**folder.files, name: data + tail}
        for other in folder.files:
            if other != name:
                yield f"{name}: replaced by {other}", {**folder.files, name: folder.files[other]}
        yield f"{name}: empty", {**folder.files, name: b""}
        yield f"{name}: gone", {other: data for other, data in folder.files.items() if other != name}
        for moment, files in enumerate(folder.older):
            if name in files and files[name] != data and name != folder.log:
                yield f"{name}: as it was at {moment}", {**folder.files, name: files[name]}


def harmed(folder: Folder, name: str, place: int, data: bytes) -> Files:
    whole = folder.files[name]
    return {**folder.files, name: whole[:place] + data + whole[place + len(data) :]}


def check(folder: Folder, step: int) -> dict[str, int]:
    """Try them all; how they ended."""
    ends = {"refused": 0, "told": 0, "whole": 0}
    for harm, files in changed(folder, step):
        try:
            broker, durability = load(disk_of(files))
        except JournalError:
            ends["refused"] += 1
            continue
        found = contents_of(broker)
        if found == folder.states[-1]:
            ends["whole"] += 1
        else:
            assert found in folder.states, f"{harm}: something else came back"
            assert durability.loaded.notes, f"{harm}: less came back, without a word"
            ends["told"] += 1
    return ends


def test_the_folder_is_whole_before_it_is_harmed() -> None:
    folder = Folder()
    broker, durability = load(disk_of(folder.files))

    assert contents_of(broker) == folder.states[-1]
    assert durability.loaded.notes == []
    assert {name.split("-")[0] for name in folder.files} == {"manifest", "checkpoint", "segment", "log"}


def test_damage_never_goes_unnoticed() -> None:
    ends = check(Folder(), 13)

    assert min(ends.values()) > 10, ends


@pytest.mark.long
def test_damage_of_any_byte_never_goes_unnoticed() -> None:
    ends = check(Folder(), 1)

    assert sum(ends.values()) > 10_000
