"""Our steps on every real server that is present, as functions and as scripts.

Also on a server that has the commands natively: its clients are told that it has not. So the step and the native
command can be compared on one server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from support.deployments import real_kinds
from support.servers import Kind, Server, our_kind
from support.steps import WAYS, Steps, use_steps
from support.wire import Wire


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "kind" in metafunc.fixturenames:
        metafunc.parametrize("kind", real_kinds(), ids=lambda kind: kind.name, scope="session")
    if "way" in metafunc.fixturenames:
        metafunc.parametrize("way", WAYS)


@pytest.fixture(scope="session")
def real_servers() -> Iterator[Callable[[Kind], Server]]:
    """Starts each kind of server at its first use and keeps it for the whole run."""
    running: dict[str, Server] = {}
    with ExitStack() as stack:

        def get(kind: Kind) -> Server:
            if kind.name not in running:
                running[kind.name] = stack.enter_context(kind.start())
            return running[kind.name]

        yield get


@pytest.fixture
def server(kind: Kind, real_servers: Callable[[Kind], Server]) -> Server:
    """A running server without data, functions, scripts or counters."""
    server = real_servers(kind)
    server.clean()
    for command in ("FUNCTION FLUSH", "SCRIPT FLUSH", "CONFIG RESETSTAT"):
        assert server.control(command) == "OK"
    return server


@pytest.fixture
def wire(server: Server) -> Iterator[Wire]:
    """One raw connection."""
    with server.connect() as wire:
        yield wire


@pytest.fixture
def native(server: Server, real_servers: Callable[[Kind], Server]) -> Iterator[Wire]:
    """A connection to a server that has XACKDEL and CLAIM: this one, or else our broker. In database 1 or its like."""
    known = server if server.kind.knows((8, 4)) else real_servers(our_kind())
    with known.connect() as wire:
        wire("SELECT 1")
        wire("FLUSHDB")
        yield wire


@pytest.fixture
def steps(wire: Wire, way: str) -> Steps:
    return Steps(wire, way)


@pytest.fixture
def connect(server: Server, open_url: Callable[..., Any]) -> Callable[..., Any]:
    """connect() is a client of this server that uses the steps; connect(user="ann:secret") as that user."""

    def connect(way: str = "functions", user: str = "") -> Any:
        client = open_url(f"redis://{user}{'@' if user else ''}127.0.0.1:{server.port}")
        use_steps(client, way)
        return client

    return connect


@pytest.fixture
def client(connect: Callable[..., Any]) -> Any:
    return connect()


@pytest.fixture
def stream(client: Any) -> Any:
    return client.stream("s")


@pytest.fixture
def group(stream: Any) -> Any:
    return stream.group("g")
