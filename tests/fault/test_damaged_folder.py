"""Damage of any kind, anywhere: the data is there as it was, or the start is refused, or the cut is told.

Never a value that was not written, never a hole, never less than was promised without a word.

What was refused is repaired: it starts, every value is one that was there before, and what is gone is told and kept.
"""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from random import Random

import pytest

from headrace.errors import JournalError
from headrace.server.check import check_folder
from headrace.server.durability import Durability
from headrace.server.findings import Finding
from headrace.server.repair import repair_folder
from support.damage import (
    HISTORY,
    Files,
    Folder,
    MemoryKeep,
    all_folders,
    disk_of,
    files_of,
    groups_of,
    harm,
    load,
    new_state,
    note_entries,
    random_folder,
)
from support.fake_disk import FakeDisk
from support.memory import MemoryBroker
from support.simulation import contents_of

# A file, and a place in it unless it is missing or another one.
REFUSAL = re.compile(
    r"(manifest|(log|checkpoint|segment)-\d{8,}) (.* byte \d+|has \d+ bytes|is missing|is in truth \S+-\d|begins with)"
)

KINDS = {"manifest", "checkpoint", "segment", "log", "confirmed"}
ENDS = {"refused", "repaired", "told", "whole", "as after a power failure"}


def changed(folder: Folder, step: int) -> Iterator[tuple[str, Files]]:
    """Each file harmed in each way, at every so many bytes."""
    for name, data in folder.files.items():
        for place in range(0, len(data), step):
            for bit in (1, 64):
                yield f"{name}: bit {bit} of byte {place}", harmed(folder, name, place, bytes([data[place] ^ bit]))
            if place > 0:
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


def start(folder: Folder, done: str, files: Files) -> str:
    """Try a start; how it ended."""
    try:
        broker, durability = load(disk_of(files))
    except JournalError as error:
        return "refused" if REFUSAL.match(str(error)) else f"refused without a place: {error}"
    found = contents_of(broker)
    if found == folder.states[-1]:
        return "whole"
    assert found in folder.states, f"{done}: something else came back"
    if durability.loaded.notes:
        return "told"
    is_cut_log = files[folder.log] in [folder.files[folder.log][:place] for place in folder.boundaries(folder.log)]
    is_unconfirmed = folder.policy != "always" or "confirmed" not in files
    assert is_cut_log and is_unconfirmed, f"{done}: less came back, without a word"
    return "as after a power failure"


def test_the_folder_is_whole_before_it_is_harmed() -> None:
    for folder in all_folders():
        assert start(folder, "nothing", folder.files) == "whole"
        assert {name.split("-")[0] for name in folder.files} == KINDS


def test_damage_never_goes_unnoticed() -> None:
    ends = Counter(start(folder, done, files) for folder in all_folders() for done, files in changed(folder, 61))

    assert min(ends["refused"], ends["told"], ends["whole"]) > 10
    assert set(ends) <= ENDS


def test_a_log_that_ends_between_two_frames_has_lost_its_end() -> None:
    """It looks as it did a moment before. That it was longer is known from what was confirmed."""
    folder = Folder()
    data = folder.files[folder.log]
    for place in folder.boundaries(folder.log)[:-1]:
        files = {**folder.files, folder.log: data[:place]}
        assert start(folder, f"cut at {place}", files) == "refused"


def test_whole_frames_that_are_missing_doubled_or_exchanged_are_noticed() -> None:
    folder = Folder()
    for name in [name for name in folder.files if "-" in name]:
        data = folder.files[name]
        ends = [0, *folder.boundaries(name)]
        frames = [data[low:high] for low, high in pairwise(ends)]
        for at in range(len(frames)):
            others = [frames[:at] + frames[at + 1 :], frames[:at] + frames[at : at + 1] + frames[at:]]
            others += [[*frames[:at], frames[at + 1], frames[at], *frames[at + 2 :]]] if at + 1 < len(frames) else []
            for order in others:
                files = {**folder.files, name: b"".join(order)}
                words = f"{name}: frame {at} of {len(order)}"
                if start(folder, words, files) == "whole":
                    assert files[name].startswith(data), words  # More than counts of a segment.
                else:
                    disk = disk_of(files)
                    findings = repair_folder(disk, MemoryKeep(disk), new_state)
                    assert check_repaired(folder, words, files_of(disk), findings) == "repaired"


@pytest.mark.long
def test_damage_of_any_byte_never_goes_unnoticed() -> None:
    ends = Counter(start(folder, done, files) for folder in all_folders() for done, files in changed(folder, 1))

    assert sum(ends.values()) > 10_000
    assert set(ends) <= ENDS


# Damage by chance, and its repair


def harm_and_repair(folders: list[Folder], seed: int) -> str:
    """How the start ended, and how the repair did where it was refused."""
    random = Random(seed)
    folder = random_folder(seed) if random.randrange(4) == 0 else random.choice(folders)
    done, files = harm(folder, random)
    words = f"seed {seed}: {done}"
    end = start(folder, words, files)
    disk = disk_of(files)
    checked = check_folder(disk, new_state)
    assert files_of(disk) == files, f"{words}: a check changed something"
    assert checked.is_sound == (end != "refused"), f"{words}: {end}, and yet {checked}"
    if end != "refused":
        return end
    assert any(finding.what == "damage" and finding.file for finding in checked.findings), f"{words}: {checked}"
    keep = MemoryKeep(disk)
    findings = repair_folder(disk, keep, new_state)
    after = files_of(disk)
    for name, data in files.items():
        assert after.get(name) == data or keep.files.get(name) == data, f"{words}: {name} was not kept"
    return check_repaired(folder, words, after, findings)


def check_repaired(folder: Folder, words: str, files: Files, findings: list[Finding]) -> str:
    disk = disk_of(files)
    try:
        broker, durability = load(disk)
    except JournalError as error:
        return f"{words}: no start after the repair: {error}"
    found = contents_of(broker)
    assert durability.loaded.notes == []
    drops = [finding.text for finding in findings if finding.what == "dropped"]
    entries: dict[tuple[int, bytes], dict[bytes, object]] = {}
    note_entries(broker, entries)
    for place, value in found.items():
        if value not in folder.values.get(place, []) and not is_renamed(folder, value, drops):
            assert any(" of stream " in text for text in drops), f"{words}: {place} was never like that"
            assert entries[place].items() <= folder.entries[place].items(), f"{words}: {place} has strange entries"
            groups = groups_of(broker)[place]
            is_old = any("older" in text for text in drops) and any(groups in each for each in folder.groups.values())
            assert groups in folder.groups[place] or is_old, f"{words}: {place} has strange groups"
    if found != folder.states[-1]:
        is_unconfirmed = folder.policy != "always" or "confirmed: gone" in words
        is_doubt_told = any("cannot be told" in finding.text for finding in findings)
        is_earlier = found in folder.states and (is_unconfirmed or is_doubt_told)
        assert drops or is_earlier, f"{words}: something is gone, and nobody said so"
    go_on(disk, broker, durability, words)
    return "repaired"


def is_renamed(folder: Folder, value: tuple[bytes, int], drops: list[str]) -> bool:
    """A value that another key had, and that was told to be older than it was."""
    return any("older" in text for text in drops) and any(value in values for values in folder.values.values())


def go_on(disk: FakeDisk, broker: MemoryBroker, durability: Durability, words: str) -> None:
    """The folder can be written, saved and read again."""
    for _ in range(2):
        broker("XADD", "a new stream", "*", "f", "v")
        records, broker.state.records = broker.state.records, []
        assert durability.commit(records)
        before = contents_of(broker)
        broker, durability = load(disk)
        assert contents_of(broker) == before, words
        assert durability.save()


def repaired(files: Files) -> tuple[MemoryBroker, list[Finding]]:
    disk = disk_of(files)
    findings = repair_folder(disk, MemoryKeep(disk), new_state)
    return load(disk)[0], findings


def test_a_damaged_log_is_cut_before_the_damage_and_everything_before_is_there() -> None:
    folder = Folder([turn for turn in HISTORY if turn not in (["BEGIN"], ["STEP"])])
    data = folder.files[folder.log]
    ends = folder.boundaries(folder.log)
    states = folder.states[-len(ends) :]  # Before the first frame behind the opening, and after each.
    for state, place in zip(states, ends, strict=True):
        if place == len(data):
            break
        files = harmed(folder, folder.log, place + 45, bytes([data[place + 45] ^ 1]))
        broker, findings = repaired(files)
        assert contents_of(broker) == state
        assert [finding.offset for finding in findings if finding.what == "dropped"] == [place]


def test_without_a_manifest_nothing_is_lost() -> None:
    for folder in [*all_folders(), *[random_folder(seed) for seed in range(20)]]:
        broker, findings = repaired({name: data for name, data in folder.files.items() if name != "manifest"})
        assert contents_of(broker) == folder.states[-1]
        assert [finding for finding in findings if finding.what == "dropped"] == []


def many(seeds: range) -> Counter[str]:
    folders = all_folders()
    ends = Counter(harm_and_repair(folders, seed) for seed in seeds)
    others = [end for end in ends if end not in ENDS]
    assert len(others) * 100 <= sum(ends.values()), others
    return ends


def test_damage_by_chance_is_noticed_and_repaired() -> None:
    ends = many(range(300))

    assert min(ends["repaired"], ends["whole"]) > 20, ends


@pytest.mark.long
def test_ten_thousand_damaged_folders_are_noticed_and_repaired() -> None:
    """A failure names its seed: harm_and_repair(folders, seed) does the same again."""
    many(range(10_000))
