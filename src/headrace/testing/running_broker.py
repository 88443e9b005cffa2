"""A real broker in a process of its own, for the length of a with block.

It listens on a free port, answers PING before the block begins, and is stopped whatever happens in the block. What it
said on stderr is part of every error raised here.
"""

import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import IO

from headrace.testing.processes import child_process

HOST = "127.0.0.1"
# Another program may take the free port between our look and the broker's bind; then we look again.
PORT_ATTEMPTS = 5
POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class RunningBroker:
    """Where the broker listens, and its process."""

    host: str
    port: int
    process: "subprocess.Popen[bytes]"

    @property
    def url(self) -> str:
        return f"redis://{self.host}:{self.port}"


@contextmanager
def running_broker(
    *, python: str = sys.executable, options: Sequence[str] = (), start_timeout_s: float = 20.0
) -> Iterator[RunningBroker]:
    """Starts `headrace serve --memory` with these further options and stops it at the end.

    >>> with running_broker() as broker:
    ...     redis.Redis.from_url(broker.url).ping()
    True
    """
    with tempfile.TemporaryFile() as log, ExitStack() as stack:
        for _ in range(PORT_ATTEMPTS):
            port = free_port()
            command = [python, "-m", "headrace", "serve", "--memory", "--host", HOST, "--port", str(port), *options]
            process = stack.enter_context(child_process(command, stderr=log))
            if answers_in_time(process, port, start_timeout_s):
                yield RunningBroker(HOST, port, process)
                return
            if process.poll() is None:
                raise TimeoutError(f"the broker did not answer PING within {start_timeout_s:g} s: {said(log)}")
            if is_free(port):
                raise RuntimeError(f"the broker ended with code {process.returncode} before it answered: {said(log)}")
        raise RuntimeError(f"no port stayed free in {PORT_ATTEMPTS} attempts: {said(log)}")


def answers_in_time(process: "subprocess.Popen[bytes]", port: int, timeout_s: float) -> bool:
    """True once it answers PING; False when the process ends or the time is over first."""
    deadline = time.monotonic() + timeout_s
    while process.poll() is None and time.monotonic() < deadline:
        if answers_ping(port):
            # A stranger may have taken the port and answer in its place: ours would have ended by then.
            return process.poll() is None
        time.sleep(POLL_S)
    return False


def answers_ping(port: int) -> bool:
    try:
        with socket.create_connection((HOST, port), timeout=1.0) as connection:
            connection.sendall(b"*1\r\n$4\r\nPING\r\n")
            return connection.recv(16).startswith(b"+PONG")
    except OSError:
        return False


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
