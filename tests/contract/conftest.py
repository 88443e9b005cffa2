"""One suite for every place a client may be pointed at, in both flavours.

A test that asks for `client`, `stream` or `connect` runs once per deployment and flavour: ours in process and over TCP
and the Valkey of the wheel always, every other server that is present in `make test-long`. A server that is absent is
not a parameter, so nothing is skipped. Each test has streams of its own; nothing is flushed between them.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for `support`, whatever the import mode

from headrace import App
from support.deployments import Deployment, deployments, running_fleet
from support.flavours import LoopThread, Spy, open_client
from support.ordered import Lanes, MakeLanes

COUNTER = itertools.count(1)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "other_process: needs a server that other processes can reach")
    config.addinivalue_line("markers", "any_socket: a server behind a socket file would show nothing new")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "deployment" in metafunc.fixturenames:
        is_shared = metafunc.definition.get_closest_marker("other_process") is not None
        is_any_socket = metafunc.definition.get_closest_marker("any_socket") is not None
        chosen = [
            pytest.param(one, marks=[pytest.mark.long] if one.is_long else [], id=one.name)
            for one in deployments()
            if not (is_shared and one.is_in_process) and (not one.only or metafunc.module.__name__.endswith(one.only))
            if not (is_any_socket and one.name.endswith("-unix"))
        ]
        metafunc.parametrize("deployment", chosen, scope="session")
    if "flavour" in metafunc.fixturenames:
        metafunc.parametrize("flavour", ["sync", "async"], scope="session")


@pytest.fixture(scope="session")
def fleet() -> Iterator[Callable[[Deployment], str]]:
    """Starts each deployment at its first use and keeps it for the whole run."""
    with running_fleet() as get:
        yield get


@pytest.fixture
def url(deployment: Deployment, fleet: Callable[[Deployment], str]) -> str:
    return fleet(deployment)


@pytest.fixture(scope="session")
def loop_thread() -> Iterator[LoopThread]:
    thread = LoopThread()
    yield thread
    thread.close()


@pytest.fixture
def open_url(flavour: str, loop_thread: LoopThread) -> Iterator[Callable[..., Any]]:
    """open_url(url, timeout="2s") is a client of this flavour, closed at the end of the test."""
    with ExitStack() as stack:

        def open_one(url: str, **options: Any) -> Any:
            client = open_client(flavour, loop_thread, url, **options)
            stack.callback(client.close)
            return client

        yield open_one


@pytest.fixture
def connect(url: str, open_url: Callable[..., Any]) -> Callable[..., Any]:
    """connect() is one more client of the server at hand."""

    def connect(**options: Any) -> Any:
        return open_url(url, **options)

    return connect


@pytest.fixture(scope="session")
def kept_clients(loop_thread: LoopThread) -> Iterator[Callable[[str, str], Any]]:
    """One client per URL and flavour for the whole run: most tests need no more."""
    clients: dict[tuple[str, str], Any] = {}

    def get(url: str, flavour: str) -> Any:
        if (url, flavour) not in clients:
            clients[url, flavour] = open_client(flavour, loop_thread, url)
        return clients[url, flavour]

    yield get
    for client in clients.values():
        client.close()


@pytest.fixture
def client(url: str, flavour: str, kept_clients: Callable[[str, str], Any]) -> Any:
    return kept_clients(url, flavour)


@pytest.fixture
def name() -> str:
    """The name of a stream that nobody else uses."""
    return f"orders-{os.getpid()}-{next(COUNTER)}"


@pytest.fixture
def app(url: str) -> App:
    return App(url)


@pytest.fixture
def stream(client: Any, name: str) -> Any:
    return client.stream(name)


@pytest.fixture
def group(stream: Any) -> Any:
    """A group that begins at the beginning."""
    group = stream.group("billing")
    group.create(start="beginning")
    return group


@pytest.fixture
def make_lanes(client: Any, name: str, flavour: str) -> MakeLanes:
    """make_lanes(keyless="dead"): the stream of this test, kept in order per key.

    On other servers one flavour has a list per key and the other one sorted set for all; ours knows no layouts.
    """

    def make(**options: Any) -> Lanes:
        return Lanes(client, name, **{"layout": "list" if flavour == "sync" else "set", **options})

    return make


@pytest.fixture
def lanes(make_lanes: MakeLanes) -> Lanes:
    return make_lanes()


@pytest.fixture
def spy(client: Any) -> Iterator[Spy]:
    """What the client sends."""
    spy = Spy(client)
    yield spy
    spy.leave()
