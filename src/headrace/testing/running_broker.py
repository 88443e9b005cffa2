"""A real broker in a process of its own, for the length of a with block.

It listens on a free port, answers PING before the block begins, and is stopped whatever happens in the block. What it
said on stderr is part of every error raised here.
"""

import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

HOST = "127.0.0.1"
# Another program may take the free port between our look and the broker's bind; then we look again.
PORT_ATTEMPTS = 5
POLL_S = 0.02
STOP_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class RunningBroker:
    host: str
    port: int
    process: "subprocess.Popen[bytes]"

    @property
    def url(self) -> str:
        return f"redis://{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        return self.process.pid


@contextmanager
def running_broker(
    *, python: str = sys.executable, options: Sequence[str] = (), start_timeout_s: float = 20.0
) -> Iterator[RunningBroker]:
    """Starts `headrace serve --memory` with these further options and stops it at the end.

    >>> with running_broker() as broker:
    ...     redis.Redis.from_url(broker.url).ping()
    True
    """
    with tempfile.TemporaryFile() as log:
        broker = start_broker(python, options, start_timeout_s, log)
        try:
            yield broker
        finally:
            stop_broker(broker.process)


def start_broker(python: str, options: Sequence[str], start_timeout_s: float, log: IO[bytes]) -> RunningBroker:
    for _ in range(PORT_ATTEMPTS):
        port = free_port()
        command = [python, "-m", "headrace", "serve", "--memory", "--host", HOST, "--port", str(port), *options]
        # A group of its own: Ctrl-C reaches the owner of the block, which then stops the broker in order.
        process = subprocess.Popen(  # noqa: S603 - the command is ours, the interpreter is the caller's choice.
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, start_new_session=True
        )
        try:
            if wait_until_it_answers(process, port, start_timeout_s):
                return RunningBroker(HOST, port, process)
        except BaseException:
            stop_broker(process)
            raise
        if is_free(port):
            raise RuntimeError(f"the broker ended with code {process.returncode} before it answered: {said(log)}")
    raise RuntimeError(f"no port stayed free in {PORT_ATTEMPTS} attempts: {said(log)}")


def wait_until_it_answers(process: "subprocess.Popen[bytes]", port: int, timeout_s: float) -> bool:
    """True once it answers PING, False when the process ended first."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if process.poll() is not None:
            return False
        if answers_ping(port):
            return True
        time.sleep(POLL_S)
    raise TimeoutError(f"the broker did not answer PING on port {port} within {timeout_s:g} s")


def answers_ping(port: int) -> bool:
    try:
        with socket.create_connection((HOST, port), timeout=1.0) as connection:
            connection.sendall(b"*1\r\n$4\r\nPING\r\n")
            return connection.recv(16).startswith(b"+PONG")
    except OSError:
        return False


def stop_broker(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def said(log: IO[bytes]) -> str:
    log.seek(0)
    return log.read().decode("utf-8", "replace").strip() or "it said nothing"
