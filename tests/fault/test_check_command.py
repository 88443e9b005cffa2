"""headrace check as an operator meets it: a folder of a broker that was killed, damage, and what is said and done."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from headrace.journal.disk import RealDisk
from headrace.journal.frames import FRAME_BYTES, HEADER_BYTES, encode_frame, seed_of
from headrace.server.durability import Durability
from headrace.testing.running_broker import free_port
from support.command_line import COMMAND, headrace, on_terminal
from support.durable_broker import DurableBroker
from support.memory import MemoryBroker

SOUND, DAMAGED, FAILURE, USAGE, NOT_FOUND = 0, 5, 1, 2, 3


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a broker that was killed: a checkpoint, a segment, and a log behind them."""
    folder = tmp_path_factory.mktemp("killed") / "data"
    with DurableBroker(folder) as broker:
        broker.start()
        with broker.client() as client:
            for number in range(250):
                client.xadd("orders", {"number": number}, id=f"{number + 1}-0")
            client.rpush("list", "a", "b")
            client.save()
            for number in range(20):
                client.rpush("list", number)
                client.set("last", number)
        broker.kill()
    return folder


@pytest.fixture
def folder(killed: Path, tmp_path: Path) -> Path:
    """A copy of it, to be harmed."""
    copy = tmp_path / "data"
    copy.mkdir(mode=0o700)
    for path in killed.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    return copy


def run(*words: str | Path) -> tuple[int, list[dict[str, Any]], str]:
    """Exit code, findings, and what was said beside them."""
    done = headrace("check", *map(str, words))
    return done.code, [json.loads(line) for line in done.out.splitlines()], done.err


@contextmanager
def opened(folder: Path) -> Iterator[MemoryBroker]:
    """A broker on the folder, without its sockets."""
    disk = RealDisk(folder)
    broker = MemoryBroker()
    durability = Durability(broker.state, disk)
    assert durability.loaded.notes == []
    yield broker
    durability.close()
    disk.close()


def flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def contents_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.name != "lock"}


def texts(findings: list[dict[str, Any]], what: str) -> str:
    return "\n".join(finding["text"] for finding in findings if finding["what"] == what)


def test_a_sound_folder_is_described_in_a_few_lines_and_left_alone(folder: Path) -> None:
    before = contents_of(folder)
    code, findings, said = run(folder)

    assert (code, said) == (SOUND, "")
    assert [finding["what"] for finding in findings] == ["summary", "summary", "sound"]
    assert re.search(r"format 1, [\d,]+ bytes: 1 log of .*, 1 checkpoint of .*, 1 segment of", findings[0]["text"])
    assert findings[1]["text"] == "3 keys: 2 parts of a checkpoint, 40 frames of the journal behind it"
    assert contents_of(folder) == before
    assert run(folder, "--repair")[0] == SOUND
    assert contents_of(folder) == before


def test_damage_is_told_with_file_and_byte_and_nothing_is_changed(folder: Path) -> None:
    log = folder / "log-00000002"
    flip(log, 200)
    flip(log, 1500)
    flip(folder / "segment-00000001", 300)
    before = contents_of(folder)
    code, findings, said = run(folder)

    assert code == DAMAGED
    places = [(finding["file"], finding["offset"]) for finding in findings if finding["what"] == "damage"]
    assert [file for file, _ in places] == ["segment-00000001", "log-00000002", "log-00000002"]
    assert 0 < places[1][1] <= 200 < places[2][1] <= 1500
    assert said.endswith(f"headrace check {folder} --repair\n")
    assert contents_of(folder) == before


def test_a_repair_keeps_a_copy_tells_what_it_drops_and_the_broker_starts(folder: Path) -> None:
    flip(folder / "log-00000002", 1500)
    before = contents_of(folder)
    code, findings, _ = run(folder, "--repair")

    assert code == SOUND
    assert "before-repair-1 has what this changes" in texts(findings, "kept")
    dropped = texts(findings, "dropped")
    assert re.search(r"frame \d+ and all behind it \(.*wrong checksum\); among them \d+ good frames", dropped)
    assert "of 2 keys: 'last', 'list'" in dropped
    copy = folder / "before-repair-1"
    after = contents_of(folder)
    kept = contents_of(copy)
    assert all(after.get(name) == data or kept.get(name) == data for name, data in before.items())
    commands = (copy / "dropped-commands").read_text()
    assert re.search(r"RPUSH list 19\n# frame \d+\nSET last 19\n$", commands)
    with DurableBroker(folder) as broker:
        broker.start()
        with broker.client() as client:
            numbers = [int(item) for item in client.lrange("list", 2, -1)]
            assert numbers == list(range(len(numbers)))
            assert 5 < len(numbers) < 20
            assert len(client.xrange("orders")) == 250
            for line in commands.splitlines():  # What was dropped can be given back.
                if not line.startswith("#"):
                    client.execute_command(*line.split())
            assert client.get("last") == b"19"
    assert run(folder)[0] == SOUND


def test_a_repair_without_links_copies(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some drives have no links; a module that is loaded at the start of Python takes them away here."""
    lines = ["import os", "def link(*_, **__): raise OSError(1, 'no links')", "os.link = link"]
    (tmp_path / "sitecustomize.py").write_text("\n".join(lines))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    flip(folder / "log-00000002", 1500)
    before = contents_of(folder)

    assert run(folder, "--repair")[0] == SOUND
    kept = contents_of(folder / "before-repair-1")
    assert kept["log-00000002"] == before["log-00000002"]
    assert (folder / "before-repair-1" / "log-00000002").stat().st_nlink == 1


def test_a_damaged_node_is_lost_entries_and_the_rest_of_the_stream_stays(folder: Path) -> None:
    flip(folder / "segment-00000001", 300)
    code, findings, _ = run(folder, "--repair")

    assert code == SOUND
    assert "100 entries of stream 'orders', with IDs from 1-0 to below 101-0" in texts(findings, "dropped")
    with opened(folder) as broker:
        assert [name for name, _ in broker("XRANGE orders - +")] == [b"%d-0" % number for number in range(101, 251)]
        assert broker("LLEN list") == 22


def test_a_damaged_part_is_a_lost_key_and_its_later_records_do_not_make_another(folder: Path) -> None:
    checkpoint = folder / "checkpoint-00000001"
    flip(checkpoint, checkpoint.read_bytes().index(b"4:list1:2") + 2)
    code, findings, _ = run(folder, "--repair")

    assert code == SOUND
    assert "key 'list' is lost" in texts(findings, "dropped")
    assert "key 'list' is lost: 20 records of the log about it do not count" in texts(findings, "dropped")
    with opened(folder) as broker:
        assert [broker("EXISTS list"), broker("GET last"), broker("XLEN orders")] == [0, b"19", 250]


def test_without_its_manifest_nothing_is_lost(folder: Path) -> None:
    (folder / "manifest").unlink()
    code, findings, _ = run(folder, "--repair")

    assert code == SOUND
    assert texts(findings, "dropped") == ""
    with opened(folder) as broker:
        assert [broker("LLEN list"), broker("GET last"), broker("XLEN orders")] == [22, b"19", 250]


def test_the_journal_can_be_read_as_commands_also_by_head(folder: Path) -> None:
    lines = headrace("check", str(folder), "--dump").out.splitlines()
    command = f"'{sys.executable}' -m headrace check '{folder}' --dump | head -3"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)

    assert lines[2:5] == ["SELECT 0", "RPUSH list 0", lines[4]]
    assert re.fullmatch(r"# log-00000002, byte \d+: frame \d+, 1 record", lines[4])
    assert lines.count("SET last 19") == 1
    assert (done.stdout.splitlines(), done.stderr) == (lines[:3], "")


def test_a_folder_in_use_is_one_sentence_with_the_process(folder: Path) -> None:
    with DurableBroker(folder) as broker:
        broker.start()
        assert broker.process is not None
        code, findings, said = run(folder, "--repair")
        number = broker.process.pid

    assert (code, findings) == (FAILURE, [])
    advice = "Stop it first: only a folder that rests can be checked."
    assert said == f"headrace: The folder {folder} is in use by process {number}. {advice}\n"


def test_what_is_no_folder_of_a_broker_is_said_and_nothing_is_made_there(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    advice = "Give the folder of headrace serve --dir."

    assert run(tmp_path / "no") == (NOT_FOUND, [], f"headrace: there is no folder '{tmp_path}/no'. {advice}\n")
    assert run(file) == (NOT_FOUND, [], f"headrace: '{file}' is not a folder. {advice}\n")
    assert run(tmp_path) == (NOT_FOUND, [], f"headrace: there is no data of headrace in '{tmp_path}'. {advice}\n")
    assert run(tmp_path, "--dump", "--repair")[0] == USAGE
    assert list(tmp_path.iterdir()) == [file]


def test_on_a_terminal_findings_are_sentences(folder: Path) -> None:
    flip(folder / "log-00000002", 1500)
    shown = on_terminal("check", str(folder), url="redis://unused")

    assert shown.code == DAMAGED
    assert re.search(
        r"damage: log-00000002 at byte [\d,]+: a (frame|header) with a wrong checksum, [\d,]+ bytes", shown.out
    )
    assert "damaged" in shown.out.splitlines()


def test_a_newer_folder_is_refused_in_one_sentence_by_all(folder: Path) -> None:
    manifest = folder / "manifest"
    payload = manifest.read_bytes()[HEADER_BYTES : HEADER_BYTES - FRAME_BYTES]
    newer = payload.replace(b'"format": 1', b'"format": 2, "more": []')
    manifest.write_bytes(b"".join(encode_frame(seed_of("manifest"), 1, newer)))
    before = contents_of(folder)
    sentence = (
        f"headrace: The data in {folder} is from a newer headrace: it is written in format 2, and this version of "
        "headrace knows format 1. Use that version. Nothing was changed.\n"
    )
    started = headrace("serve", "--dir", str(folder), "--port", str(free_port()))

    assert (started.code, started.err) == (FAILURE, sentence)
    assert run(folder, "--repair") == (FAILURE, [], sentence)
    assert contents_of(folder) == before


def test_a_repair_without_room_leaves_the_folder_as_it_was(folder: Path) -> None:
    flip(folder / "log-00000002", 1500)
    before = contents_of(folder)
    command = f'ulimit -f 2; exec "$@" check "{folder}" --repair'  # No file may have more than 2 KB.
    done = subprocess.run(["bash", "-c", command, "bash", *COMMAND], capture_output=True, text=True, check=False)

    assert done.returncode == FAILURE
    assert re.fullmatch(r"headrace: .*cannot write checkpoint-00000002: File too large.*\n", done.stderr)
    assert contents_of(folder) == {name: data for name, data in before.items() if name != "confirmed"}
    assert run(folder, "--repair")[0] == SOUND
