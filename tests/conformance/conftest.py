"""Every test here runs once per server that is present: ours, Valkey, and each Redis.

`@pytest.mark.since("8.4")` keeps a test to the servers that know what came with that Redis version. A server that is
absent, or too old for a test, is not a parameter, so nothing is skipped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for `support`, whatever the import mode

from support.servers import Kind, Server, present_kinds
from support.session import Session
from support.wire import Wire


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "since(version): only servers that know what this Redis version brought")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "kind" not in metafunc.fixturenames:
        return
    marks = list(metafunc.definition.iter_markers("since"))
    oldest = max((tuple(int(part) for part in mark.args[0].split(".")) for mark in marks), default=(0,))
    kinds = [kind for kind in present_kinds() if kind.knows(oldest)]
    metafunc.parametrize("kind", kinds, ids=[kind.name for kind in kinds], scope="session")


@pytest.fixture(scope="session")
def fleet() -> Iterator[Callable[[Kind], Server]]:
    """Starts each kind of server at its first use and keeps it for the whole run."""
    running: dict[Kind, Server] = {}
    with ExitStack() as stack:

        def get(kind: Kind) -> Server:
            if kind not in running:
                running[kind] = stack.enter_context(kind.start())
            return running[kind]

        yield get


@pytest.fixture
def server(kind: Kind, fleet: Callable[[Kind], Server]) -> Server:
    """A running server without data."""
    server = fleet(kind)
    server.clean()
    return server


@pytest.fixture
def talk(server: Server) -> Iterator[Session]:
    """A session with the server; `talk.play` plays a written one."""
    with Session(server) as session:
        yield session


@pytest.fixture
def talk3(server: Server) -> Iterator[Session]:
    """The same in RESP3."""
    with Session(server, protocol=3) as session:
        yield session


@pytest.fixture
def client(talk: Session) -> Wire:
    """One raw connection."""
    return talk.wire()


@pytest.fixture
def settings(server: Server) -> Iterator[Callable[[str, object], None]]:
    """Changes a server setting until the end of the test."""
    before: dict[str, object] = {}

    def change(name: str, value: object) -> None:
        reply = server.control("CONFIG", "GET", name)
        assert isinstance(reply, list) and len(reply) == 2, reply
        before.setdefault(name, reply[1])
        assert server.control("CONFIG", "SET", name, str(value)) == "OK"

    yield change
    for name, value in before.items():
        assert server.control("CONFIG", "SET", name, value) == "OK"  # type: ignore[arg-type]
