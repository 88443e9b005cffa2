"""`embedded:FOLDER`: one broker per folder for any number of processes, kept on disk, handed on when its host ends."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import redis

from headrace import AsyncClient, Broker, Client, ClientClosed, ConfigError, HeadraceError, Unreachable
from headrace.cli import exit_codes
from headrace.errors import JournalError
from headrace.journal.lock import try_lock
from headrace.journal.pointer import new_pointer, read_pointer, write_pointer
from headrace.server.hosting import HOSTS
from headrace.testing.running_broker import free_port
from support.command_line import headrace
from support.other_process import Failed, Other
from support.servers import wait_until

LONG_S = 60


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "some 'data' of mine" / ("long " * 20)


@pytest.fixture
def url(folder: Path) -> Iterator[str]:
    yield f"embedded:{folder}"
    assert folder not in HOSTS, "a client was left open"


def host_pid(folder: Path) -> int | None:
    pointer = read_pointer(folder)
    return None if pointer is None else pointer.pid


def is_free(folder: Path) -> bool:
    lock = try_lock(folder)
    if lock is not None:
        os.close(lock)
    return lock is not None


# One process


def test_data_survives_the_last_client(url: str, folder: Path) -> None:
    with Client(url) as client:
        added = client.stream("orders").add({"item": "tea"})
        client.queue("jobs").push("print")

    assert is_free(folder) and host_pid(folder) is None
    with Client(url) as client:
        assert [entry.id for entry in client.stream("orders").range()] == [added]
        assert client.queue("jobs").info().undelivered == 1
        assert client.url == url


def test_clients_of_one_process_share_the_folder_until_the_last_one_closes(url: str, folder: Path) -> None:
    async def use() -> None:
        async with AsyncClient(url) as third:
            assert await third.stream("orders").length() == 1

    first, second = Client(url), Client(f"embedded:{folder.parent}/./{folder.name}?fsync=no")
    first.stream("orders").add({"item": "tea"})
    assert host_pid(folder) == os.getpid()
    first.close()
    first.close()
    asyncio.run(use())

    assert second.stream("orders").length() == 1
    assert not is_free(folder)
    second.close()
    assert is_free(folder)
    with pytest.raises(ClientClosed):
        second.ping()


def test_many_threads_that_open_the_folder_at_once_share_it(url: str) -> None:
    def use(number: int) -> None:
        with Client(url) as client:
            client.stream("orders").add({"number": number})

    with ThreadPoolExecutor(max_workers=8) as pool:
        list(pool.map(use, range(24)))

    with Client(url) as client:
        assert client.stream("orders").length() == 24


def test_calls_of_one_turn_of_an_event_loop_share_one_write(url: str, folder: Path) -> None:
    async def add_all() -> int:
        async with AsyncClient(url) as client:
            await client.ping()
            host = HOSTS[folder]
            before = host.broker.durability.folder.sequence
            await asyncio.gather(*[client.stream("orders").add({"a": "b"}) for _ in range(100)])
            return host.broker.durability.folder.sequence - before

    assert asyncio.run(add_all()) < 50


def test_an_interrupted_write_is_undone_or_done_and_the_folder_is_used_again(
    url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Client(url) as client, Client(url) as other:
        client.stream("orders").add({"item": "tea"})
        host = HOSTS[folder]

        def interrupt(_: list[bytes]) -> bool:
            raise KeyboardInterrupt

        monkeypatch.setattr(host.broker.durability, "commit", interrupt)
        with pytest.raises(KeyboardInterrupt):
            client.stream("orders").add({"item": "coffee"})
        client.stream("orders").add({"item": "sugar"})

        assert [entry.fields["item"] for entry in other.stream("orders").range()] == ["tea", "sugar"]
        assert HOSTS[folder] is not host


def test_a_program_that_never_closes_leaves_nothing_behind(url: str, folder: Path) -> None:
    source = """
        import sys, threading
        from headrace import Client

        client = Client(sys.argv[1])
        client.stream("orders").add({"from": "main"})

        def go_on():
            threading.main_thread().join()
            client.stream("orders").add({"from": "thread"})
            client.command("SAVE")

        threading.Thread(target=go_on).start()
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source), url], capture_output=True, text=True, timeout=LONG_S
    )

    assert (ended.returncode, ended.stderr) == (0, "")
    assert host_pid(folder) is None
    with Client(url) as client:
        assert client.stream("orders").length() == 2


# Several processes


def test_another_process_is_attached_and_each_wakes_the_others_readers(url: str, folder: Path) -> None:
    with Client(url) as client, Other(url) as other, ThreadPoolExecutor() as pool:
        assert host_pid(folder) == os.getpid()

        mine = pool.submit(client.queue("to host").pop, wait="60s")
        wait_until(lambda: b"blocked_clients:1" in client.command("INFO", "clients"), "a waiting caller")
        other("client.queue('to host').push('a')")
        assert [job.body for job in mine.result(LONG_S)] == [b"a"]

        other.start("client.queue('to other').pop(wait='60s')[0].body")
        wait_until(lambda: b"blocked_clients:1" in client.command("INFO", "clients"), "a waiting caller")
        client.queue("to other").push("b")
        assert other.result() == "b'b'"

        other.start("client.queue('later').pop(wait='60s')[0].body")
        wait_until(lambda: b"blocked_clients:1" in client.command("INFO", "clients"), "a waiting caller")
        client.queue("later").push("c", delay="50ms")
        assert other.result() == "b'c'"


def test_messages_of_channels_cross_the_processes(url: str) -> None:
    with Client(url) as client, Other(url) as other, client.channel("news").listen(wait="60s") as messages:
        assert other("client.channel('news').publish('hello')") == "1"
        assert next(messages).body == b"hello"


def test_when_its_host_closes_the_folder_is_handed_on_without_an_error(url: str, folder: Path) -> None:
    with Other(url) as other, Client(url) as client:
        other("client.stream('orders').add({'item': 'tea'})")
        assert host_pid(folder) == other.pid
        client.ping()

        assert other.leave() == 0
        client.stream("orders").add({"item": "coffee"})

        assert host_pid(folder) == os.getpid()
        assert client.stream("orders").length() == 2


def test_an_async_client_takes_over_too(url: str, folder: Path) -> None:
    async def use(other: Other) -> int:
        async with AsyncClient(url) as client:
            assert await client.stream("orders").length() == 1
            other.kill()
            await client.ping()
            await client.stream("orders").add({"item": "coffee"})
            assert host_pid(folder) == os.getpid()
            return await client.stream("orders").length()

    with Other(url) as other:
        other("client.stream('orders').add({'item': 'tea'})")
        assert asyncio.run(use(other)) == 2


def test_a_host_and_those_attached_to_it_let_each_other_go_on(url: str) -> None:
    program = """
        import sys
        from headrace import Client

        client = Client(sys.argv[1])
        print("ready", flush=True)
        while True:
            client.stream("flood").add_many([{"a": "b"}] * 100)
    """
    flood = textwrap.dedent(program)
    with Client(f"{url}?fsync=no") as client, Other(url, program=flood), Other(url, program=flood):
        for _ in range(200):
            client.stream("orders").add({"item": "tea"})
        before = client.stream("flood").length()
        is_done = threading.Event()
        calls = threading.Thread(target=lambda: [client.ping() for _ in iter(is_done.is_set, True)])
        calls.start()
        wait_until(lambda: client.stream("flood").length() > before + 5000, "the others", timeout_s=LONG_S)
        is_done.set()
        calls.join()


def test_the_command_line_hosts_the_folder_for_a_moment_or_attaches(url: str, folder: Path) -> None:
    made = headrace("publish", "orders", "item=tea", url=url)
    assert (made.code, made.err) == (0, f"headrace: there was no folder {str(folder)!r}; it was made.\n")
    assert is_free(folder) and host_pid(folder) is None
    with Client(url) as client:
        assert headrace("publish", "orders", "item=coffee", url=url).code == 0
        assert client.stream("orders").length() == 2

    shown = headrace("tail", "orders", "--from", "beginning", "-e", url=url)
    assert [line.count("item") for line in shown.out.splitlines()] == [1, 1]
    assert headrace("streams", "ls", url="embedded:").code == exit_codes.USAGE


# Roles


def test_a_client_that_may_not_host_waits_for_somebody_who_does(url: str, folder: Path) -> None:
    with pytest.raises(Unreachable, match=f'no process hosts the folder.*headrace serve --dir {folder}"'):
        Client(url, may_host=False, timeout="100ms")
    assert not folder.exists()

    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(Client, url, may_host=False, timeout="60s")
        with Other(url) as other, waiting.result(LONG_S) as client:
            assert host_pid(folder) == other.pid
            client.ping()


def test_a_client_that_may_not_host_uses_the_one_of_its_own_process(url: str, folder: Path) -> None:
    with Client(url) as host, Client(url, may_host=False) as client:
        host.stream("orders").add({"item": "tea"})
        assert client.stream("orders").length() == 1
        host.close()
        client.ping()
        assert host_pid(folder) == os.getpid()


def test_a_worker_of_spark_never_hosts(url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Spec:
        name = "pyspark.daemon"

    monkeypatch.setattr(sys.modules["__main__"], "__spec__", Spec())
    with pytest.raises(Unreachable, match="this one may not"):
        Client(url, timeout="100ms")
    assert not folder.exists()


# Fork


FORKING = """
    import os, sys, time
    from headrace import Client

    client = Client(sys.argv[1])
    client.stream("orders").add({"from": "parent"})
    child = os.fork()
    if child == 0:
        client.stream("orders").add({"from": "child"})
        print("attached", flush=True)
        print(sys.stdin.readline().strip(), flush=True)
        client.stream("orders").add({"from": "heir"})
        print(client.stream("orders").length(), flush=True)
        client.close()
        os._exit(0)
    time.sleep(600)
"""


def test_a_forked_child_attaches_to_its_parent_and_takes_over_when_that_one_is_killed(url: str, folder: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(FORKING), url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        assert process.stdout.readline() == "attached\n"
        assert host_pid(folder) == process.pid
        process.kill()
        process.wait()
        process.stdin.write("go on\n")
        process.stdin.flush()

        assert [process.stdout.readline() for _ in range(2)] == ["go on\n", "3\n"]
    finally:
        process.kill()
        process.stdout.close()
        process.stdin.close()
        process.wait()
    wait_until(lambda: is_free(folder), "the child's end")
    with Client(url) as client:
        assert [entry.fields["from"] for entry in client.stream("orders").range()] == ["parent", "child", "heir"]


# What can be wrong


def test_a_pointer_that_was_left_behind_misleads_nobody(url: str, folder: Path) -> None:
    with Other(url) as other:
        other("client.stream('orders').add({'item': 'tea'})")
        other.kill()
    assert host_pid(folder) == other.pid

    with Client(url, timeout="60s") as client:
        assert client.stream("orders").length() == 1
        assert host_pid(folder) == os.getpid()
    write_pointer(folder, replace(new_pointer("/nowhere/some.sock"), pid=os.getppid()))
    with Client(url) as client:
        assert client.stream("orders").length() == 1
    (folder / "host").write_text("nonsense")
    with Client(url) as client:
        assert client.stream("orders").length() == 1


def test_a_stopped_host_is_named(url: str) -> None:
    with Other(url) as other, Client(url, timeout="2s") as client:
        client.ping()
        other.stop()
        try:
            with pytest.raises(HeadraceError, match=f"hosted by process {other.pid}.* did not answer in time"):
                client.stream("orders").add({"item": "tea"})
        finally:
            other.go_on()
        wait_until(lambda: client.stream("orders").length() == 1, "the host to go on")


def test_a_process_that_has_the_folder_and_does_not_serve_it_is_named(url: str, folder: Path) -> None:
    folder.mkdir(parents=True)
    program = f"""
        import sys
        from pathlib import Path
        from headrace.journal.lock import try_lock

        lock = try_lock(Path({str(folder)!r}))
        print("ready", flush=True)
        sys.stdin.read()
    """
    with Other(url, program=textwrap.dedent(program)) as other:
        with pytest.raises(Unreachable, match=f"process {other.pid} has the folder and did not say within 0.1 s"):
            Client(url, timeout="100ms")

        write_pointer(folder, replace(new_pointer("/run/some.sock"), pid=4711, machine="elsewhere"))
        with pytest.raises(Unreachable, match="process 4711 on elsewhere hosts the folder"):
            Client(url, timeout="100ms")


def test_a_folder_that_cannot_be_used_is_told_in_one_sentence(url: str, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"Cannot use the folder .*: Not a directory\. Give the name of a folder\.$"):
        Client(f"embedded:{tmp_path}/file")
    with pytest.raises(ConfigError, match="Cannot use the folder"):
        Client(f"embedded:{tmp_path}/file/data")

    with Client(url) as client:
        client.stream("orders").add({"item": "tea"})
    manifest = (folder / "manifest").read_bytes()
    (folder / "manifest").write_bytes(b"x" + manifest[1:])
    with pytest.raises(JournalError, match=r"The data in .* cannot be used: .*Nothing was changed"):
        Client(url)
    (folder / "manifest").write_bytes(manifest)
    with Client(url) as client:
        assert client.stream("orders").length() == 1


def test_a_directory_for_sockets_that_is_not_ours_is_refused(
    url: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = Path(f"/tmp/hr-{os.getpid()}")
    (runtime / "headrace").mkdir(parents=True)
    (runtime / "headrace").chmod(0o777)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    try:
        with pytest.raises(ConfigError, match="not a directory of this user alone"):
            Client(url)
        assert is_free(folder)
    finally:
        (runtime / "headrace").rmdir()
        runtime.rmdir()


# Brokers that others can reach by a port


def test_a_broker_of_this_program_serves_others_by_its_port(url: str, folder: Path) -> None:
    with Broker(folder, port=0) as broker, Client(url) as client:
        with Client(broker.url) as other, redis.Redis(port=broker.port) as foreign:
            other.stream("orders").add({"item": "tea"})
            assert client.stream("orders").length() == foreign.xlen("orders") == 1
            with pytest.raises(ConfigError, match="already in use"):
                Broker(folder, port=broker.port)
            broker.close()
            with pytest.raises(redis.ConnectionError):
                foreign.ping()
        client.ping()


def test_a_broker_is_refused_the_folder_of_another_process(url: str, folder: Path) -> None:
    with Other(url) as other, pytest.raises(ConfigError, match=f"in use by process {other.pid}.*embedded:"):
        Broker(folder, port=0)
    with pytest.raises(ConfigError, match="none of always, everysec, no"):
        Broker(folder, port=0, fsync="sometimes")


@pytest.mark.parametrize(
    ("name", "port", "told"),
    [
        ("", 0, "needs the name of a folder"),
        ("data", -1, "port -1 is none of 0"),
        ("data", 65536, "port 65536 is none of 0"),
        ("~nobody-of-this-name/data", 0, "cannot be used as a folder"),
        ("zero\0byte", 0, "cannot be used as a folder"),
    ],
)
def test_a_broker_of_this_program_says_what_is_wrong_with_its_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, port: int, told: str
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ConfigError, match=told):
        Broker(name, port=port)

    assert list(tmp_path.iterdir()) == []


def test_programs_attach_to_a_running_broker(url: str, folder: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "headrace", "serve", "--dir", str(folder), "--unixsocket", str(tmp_path / "s")]
    process = subprocess.Popen(
        [*command, "--port", str(free_port())], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stderr is not None
        said = process.stderr.readline()
        while "ready at" not in said:
            line = process.stderr.readline()
            assert line, said
            said += line
        with Client(url) as client:
            client.stream("orders").add({"item": "tea"})
            assert host_pid(folder) == process.pid
            process.terminate()
            process.wait(LONG_S)
            assert client.stream("orders").length() == 1
            assert host_pid(folder) == os.getpid()
    finally:
        process.kill()
        process.communicate()


def test_what_another_process_is_told_names_its_kind(url: str) -> None:
    with Client(url), Other(url) as other:
        other("client.command('SET', 'text', 'a')")
        with pytest.raises(Failed, match="WrongType"):
            other("client.stream('text').length()")
