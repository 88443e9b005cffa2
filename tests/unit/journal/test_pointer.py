"""The file that says where a folder's host listens, and the directory of its socket."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.errors import ConfigError
from headrace.journal.pointer import answers, make_socket_path, new_pointer, read_pointer, remove_pointer, write_pointer


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A short path, as sockets need it."""
    place = Path("/tmp") / f"hr-{os.getpid()}"
    place.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place))
    yield place
    for path in sorted(place.rglob("*"), reverse=True):
        path.unlink() if not path.is_dir() or path.is_symlink() else path.rmdir()
    place.rmdir()


def test_what_is_written_is_read(tmp_path: Path) -> None:
    written = new_pointer("/run/some.sock")
    write_pointer(tmp_path, written)

    assert read_pointer(tmp_path) == written
    assert written.pid == os.getpid() and written.is_here
    assert (tmp_path / "host").stat().st_mode & 0o777 == 0o600

    remove_pointer(tmp_path)
    assert read_pointer(tmp_path) is None
    remove_pointer(tmp_path)


@pytest.mark.parametrize(
    "text",
    ["", "nonsense", "[]", "{}", '{"pid": 1}', '{"pid": "1", "socket": "s", "machine": "m", "started_ms": 1}', "\x00"],
)
def test_a_file_that_is_no_pointer_counts_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "host").write_text(text)

    assert read_pointer(tmp_path) is None


def test_a_pointer_of_another_machine_is_known_as_such(tmp_path: Path) -> None:
    write_pointer(tmp_path, replace(new_pointer("/run/some.sock"), machine="elsewhere"))

    found = read_pointer(tmp_path)
    assert found is not None and not found.is_here


def test_a_folder_that_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Cannot write to the folder"):
        write_pointer(tmp_path / "missing", new_pointer("/run/some.sock"))


def test_whether_somebody_listens_is_asked_at_the_socket(runtime: Path) -> None:
    path = make_socket_path()
    found = new_pointer(path)
    assert not answers(found)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        assert not answers(found)
        server.listen()
        assert answers(found)
    assert not answers(found)
    assert not answers(replace(found, socket="/a\x00b"))


def test_each_host_has_a_socket_of_its_own_in_a_directory_of_this_user_alone(runtime: Path) -> None:
    first, second = make_socket_path(), make_socket_path()

    assert first != second
    assert Path(first).parent == Path(second).parent == runtime / "headrace"
    assert (runtime / "headrace").stat().st_mode & 0o777 == 0o700


def test_without_a_runtime_directory_the_one_for_temporary_files_is_used(
    runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setenv("TMPDIR", str(runtime))
    assert Path(make_socket_path()).parent == runtime / f"headrace-{os.getuid()}"

    too_long = tmp_path / ("x" * 100)
    too_long.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(too_long))
    assert Path(make_socket_path()).parent == runtime / f"headrace-{os.getuid()}"


def test_a_directory_that_others_may_enter_or_that_leads_elsewhere_is_refused(runtime: Path, tmp_path: Path) -> None:
    (runtime / "headrace").mkdir()
    (runtime / "headrace").chmod(0o755)
    with pytest.raises(ConfigError, match="not a directory of this user alone"):
        make_socket_path()

    (runtime / "headrace").rmdir()
    (runtime / "headrace").symlink_to(tmp_path)
    with pytest.raises(ConfigError, match="not a directory of this user alone"):
        make_socket_path()

    (runtime / "headrace").unlink()
    (runtime / "headrace").write_text("")
    with pytest.raises(ConfigError, match="File exists"):
        make_socket_path()


def test_old_sockets_of_killed_hosts_are_removed_and_no_others(runtime: Path) -> None:
    old, young, used = make_socket_path(), make_socket_path(), make_socket_path()
    with socket.socket(socket.AF_UNIX) as server:
        for path in (old, young):
            with socket.socket(socket.AF_UNIX) as gone:
                gone.bind(path)
        server.bind(used)
        server.listen()
        for path in (old, used):
            os.utime(path, (1, 1))

        make_socket_path()

        assert [Path(path).exists() for path in (old, young, used)] == [False, True, True]
