"""headrace serve as an operator meets it: how it starts, refuses to start, and stops."""

import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

from headrace.cli.version import loaded_build
from headrace.testing import running_broker
from headrace.testing.processes import child_process
from headrace.testing.running_broker import free_port, is_free

TIMEOUT_S = 60


@contextmanager
def serving(*options: str) -> Iterator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-m", "headrace", "serve", "--memory", *options]
    with child_process(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        with process.stdout, process.stderr:
            yield process


def first_line(process: "subprocess.Popen[bytes]") -> str:
    assert process.stderr is not None
    return process.stderr.readline().decode()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_cleanly_after_exactly_one_line(number: signal.Signals) -> None:
    port = free_port()
    with serving("--port", str(port)) as process:
        ready = first_line(process)
        process.send_signal(number)
        out, rest = process.communicate(timeout=TIMEOUT_S)

    expected = (
        rf"headrace: ready at redis://127\.0\.0\.1:{port} · pid {process.pid} · {loaded_build()} build · in memory.*\n"
    )
    assert re.fullmatch(expected, ready)
    assert (out, rest, process.returncode) == (b"", b"", 0)


def test_clients_may_connect_once_it_says_ready() -> None:
    port = free_port()
    with serving("--port", str(port)) as process:
        first_line(process)

        with redis.Redis(port=port) as client:
            assert client.ping()


def test_it_stops_cleanly_while_a_client_waits_for_entries() -> None:
    port = free_port()
    with serving("--port", str(port)) as process:
        first_line(process)
        with socket.create_connection(("127.0.0.1", port)) as waiting:
            waiting.sendall(b"XREAD BLOCK 0 STREAMS orders $\r\nPING\r\n")
            with redis.Redis(port=port) as client:
                while client.info("clients")["blocked_clients"] != 1:
                    pass
            process.terminate()
            _, rest = process.communicate(timeout=TIMEOUT_S)

    assert (rest, process.returncode) == (b"", 0)


def test_a_taken_port_is_one_clear_sentence_and_exit_code_1() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with serving("--port", str(port)) as process:
            _, said = process.communicate(timeout=TIMEOUT_S)

    assert process.returncode == 1
    assert re.fullmatch(rf"headrace: [^\n]*{port}[^\n]*\n", said.decode())


def test_a_socket_path_that_cannot_be_used_is_one_clear_sentence(tmp_path: Path) -> None:
    path = tmp_path / "no such folder" / "broker.sock"
    with serving("--port", str(free_port()), "--unixsocket", str(path)) as process:
        _, said = process.communicate(timeout=TIMEOUT_S)

    assert process.returncode == 1
    assert said.decode().startswith("headrace: ")
    assert said.count(b"\n") == 1


def test_a_second_broker_on_the_same_addresses_leaves_the_first_one_its_socket_file(tmp_path: Path) -> None:
    port = free_port()
    path = tmp_path / "broker.sock"
    with serving("--port", str(port), "--unixsocket", str(path)) as first:
        first_line(first)
        for other_port in (port, free_port()):  # Stumbles over the port, then over the file.
            with serving("--port", str(other_port), "--unixsocket", str(path)) as second:
                second.communicate(timeout=TIMEOUT_S)
            assert second.returncode == 1

        with redis.Redis(unix_socket_path=str(path)) as client:
            assert client.ping()


def test_a_file_that_is_no_socket_is_never_touched(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    with serving("--port", str(free_port()), "--unixsocket", str(path)) as process:
        process.communicate(timeout=TIMEOUT_S)

    assert process.returncode == 1
    assert path.read_text() == "mine"


def test_an_empty_socket_path_is_one_clear_sentence() -> None:
    with serving("--port", str(free_port()), "--unixsocket", "") as process:
        _, said = process.communicate(timeout=TIMEOUT_S)

    assert process.returncode == 1
    assert re.fullmatch(r"headrace: [^\n]*--unixsocket[^\n]*\n", said.decode())


def test_it_runs_and_stops_cleanly_without_a_standard_error() -> None:
    port = free_port()
    command = f"exec {shlex.quote(sys.executable)} -m headrace serve --memory --port {port} 2>&-"
    with child_process(["sh", "-c", command], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        with process.stdout, redis.Redis(port=port, retry=Retry(ConstantBackoff(0.05), 200)) as client:
            assert client.ping()
            process.terminate()
            process.wait(timeout=TIMEOUT_S)

    assert process.returncode == 0


def test_a_unix_socket_answers_beside_the_port_and_is_gone_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "broker.sock"
    with serving("--port", str(free_port()), "--unixsocket", str(path)) as process:
        first_line(process)
        with redis.Redis(unix_socket_path=str(path)) as client:
            assert client.ping()

    assert not path.exists()


def test_running_broker_gives_a_broker_and_takes_it_away() -> None:
    with running_broker() as broker, redis.Redis.from_url(broker.url) as client:
        client.xadd("orders", {"item": "tea"})
        assert client.xlen("orders") == 1

    assert broker.process.returncode == 0


def test_running_broker_ends_its_broker_when_the_block_fails() -> None:
    with pytest.raises(ZeroDivisionError), running_broker() as broker:
        1 / 0  # noqa: B018 - it is here to fail.

    assert broker.process.returncode == 0


def test_running_broker_says_why_a_broker_did_not_start() -> None:
    with pytest.raises(RuntimeError, match="No such option"), running_broker(options=["--no-such-option"]):
        pass


def test_the_broker_of_a_killed_program_stops_by_itself() -> None:
    program = (
        "import os, signal, sys\n"
        "from headrace.testing import running_broker\n"
        "with running_broker() as broker:\n"
        "    print(broker.port, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    port = int(killed.stdout)

    deadline = time.monotonic() + TIMEOUT_S
    while not is_free(port) and time.monotonic() < deadline:
        time.sleep(0.02)

    assert killed.returncode == -signal.SIGKILL
    assert is_free(port)


def test_a_client_that_has_said_all_still_gets_every_reply() -> None:
    with running_broker() as broker, socket.create_connection(("127.0.0.1", broker.port)) as client:
        sender = threading.Thread(
            target=lambda: (client.sendall(b"PING\r\n" * 20_000), client.shutdown(socket.SHUT_WR))
        )
        sender.start()
        received = 0
        while data := client.recv(65536):
            received += len(data)
        sender.join()

    assert received == 20_000 * len(b"+PONG\r\n")


def test_a_client_that_reads_nothing_can_be_killed() -> None:
    def listed(client: redis.Redis) -> list[dict[str, str]]:
        return [each for each in client.client_list() if each["name"] == "deaf"]

    with running_broker() as broker, redis.Redis.from_url(broker.url) as client:
        client.set("large", b"x" * 10_000_000)
        with socket.create_connection(("127.0.0.1", broker.port)) as deaf:
            deaf.sendall(b"CLIENT SETNAME deaf\r\n" + b"GET large\r\n" * 20)
            while not listed(client) or int(listed(client)[0]["tot-net-out"]) < 10_000_000:
                pass
            assert client.client_kill_filter(_id=listed(client)[0]["id"]) == 1

            deadline = time.monotonic() + TIMEOUT_S
            while listed(client) and time.monotonic() < deadline:
                time.sleep(0.01)
            assert not listed(client)
