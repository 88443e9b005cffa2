"""One Spark for all tests of this folder, and every server they read from.

A test that asks for `url`, `client` or `stream` runs once per server: ours over TCP and the Valkey of the wheel always,
every other server that is present in `make test-long`. Each test has streams of its own; nothing is flushed between
them. Starting Spark takes seconds, so there is one session, and tests share queries where they can.
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

from headrace import Client
from headrace.pipeline.session import session
from support.deployments import Deployment, deployments, running_fleet
from support.small_spark import SMALL

COUNTER = itertools.count(1)
DRAIN_TIMEOUT_S = 120
SHARED = SMALL | {
    "spark.driver.memory": "1g",
    "spark.default.parallelism": "2",
    "spark.sql.streaming.metricsEnabled": "false",
}


def spark_deployments() -> list[Deployment]:
    """Single servers over TCP; sockets, clusters and sentinels are the concern of raw connections."""
    shapes = ("-unix", "-sentinel", "-cluster")
    return [one for one in deployments() if not (one.is_in_process or one.only or one.name.endswith(shapes))]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "costly(server): on the other servers in make test-long only")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "server" in metafunc.fixturenames:
        costly = metafunc.definition.get_closest_marker("costly")
        kind = "" if costly is None else costly.args[0]
        chosen = [
            pytest.param(
                one, marks=[pytest.mark.long] if one.is_long or not one.name.startswith(kind) else [], id=one.name
            )
            for one in spark_deployments()
        ]
        metafunc.parametrize("server", chosen, scope="session")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("spark")
    places = {"spark.local.dir": str(folder), "spark.sql.warehouse.dir": str(folder / "warehouse")}
    made = session("headrace-tests", master="local[2]", config=SHARED | places)
    yield made
    made.stop()


@pytest.fixture(scope="session")
def fleet() -> Iterator[Callable[[Deployment], str]]:
    """Starts each server at its first use and keeps it for the whole run."""
    with running_fleet() as get:
        yield get


@pytest.fixture
def url(server: Deployment, fleet: Callable[[Deployment], str]) -> str:
    return fleet(server)


@pytest.fixture
def our_url(fleet: Callable[[Deployment], str]) -> str:
    """Our broker only, for what does not depend on the server."""
    [ours] = [one for one in spark_deployments() if one.name == "headrace"]
    return fleet(ours)


@pytest.fixture(scope="session")
def kept_clients() -> Iterator[Callable[[str], Client]]:
    with ExitStack() as stack:
        clients: dict[str, Client] = {}

        def get(url: str) -> Client:
            if url not in clients:
                clients[url] = stack.enter_context(Client(url))
            return clients[url]

        yield get


@pytest.fixture
def client(url: str, kept_clients: Callable[[str], Client]) -> Client:
    return kept_clients(url)


@pytest.fixture
def our_client(our_url: str, kept_clients: Callable[[str], Client]) -> Client:
    return kept_clients(our_url)


@pytest.fixture
def new_name() -> Callable[[], str]:
    """new_name() is the name of a stream that nobody else uses."""
    return lambda: f"orders-{os.getpid()}-{next(COUNTER)}"


@pytest.fixture
def name(new_name: Callable[[], str]) -> str:
    return new_name()


@pytest.fixture
def stream(client: Client, name: str) -> Any:
    return client.stream(name)


@pytest.fixture
def drain() -> Callable[[Any], Any]:
    """drain(writer) runs a DataStreamWriter over all that is there now and returns the ended query, or raises."""

    def run(writer: Any) -> Any:
        query = writer.trigger(availableNow=True).start()
        try:
            assert query.awaitTermination(DRAIN_TIMEOUT_S), f"the query did not end within {DRAIN_TIMEOUT_S} s"
        finally:
            query.stop()
        return query

    return run
