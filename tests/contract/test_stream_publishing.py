"""What the stream sink and a replay do to a broker, without Spark: stopped at any point, each entry is there once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from headrace import Client
from headrace.client.raw_connection import RawConnection
from headrace.errors import AccessDenied, CommandError, ConnectionLost, HeadraceError, Refused
from headrace.pipeline.entry_ids import id_of
from headrace.pipeline.publishing import Publisher, Run
from headrace.pipeline.replaying import Replayer, ReplayPlan
from headrace.pipeline.staging import Taken, stage, take_rows
from support.deployments import KEEPS_NOTHING, Process, is_from_wheel, real_kinds

pytestmark = pytest.mark.other_process

NAMES = count()
PAIRS = pa.list_(pa.struct([("name", pa.binary()), ("value", pa.binary())]))


@pytest.fixture
def name() -> str:
    return f"published-{os.getpid()}-{next(NAMES)}"


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with Client(url) as client:
        yield client


class Stopped(Exception):
    """As if the process had been killed here."""


class Fault:
    """Makes the n-th write to the broker fail, before it is sent or when its reply is due."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = -1
        self.after = False
        self.error: type[Exception] = Stopped
        original = RawConnection.call_many

        def call_many(connection: RawConnection, argvs: Any) -> list[Any]:
            self.left -= 1
            if self.left != 0:
                return original(connection, argvs)
            if self.after:
                original(connection, argvs)
            connection.disconnect()
            raise self.error("here")

        monkeypatch.setattr(RawConnection, "call_many", call_many)

    def at(self, place: int, *, after: bool, error: type[Exception] = Stopped) -> None:
        self.left, self.after, self.error = place, after, error

    def disarm(self) -> bool:
        """Whether it has happened."""
        left, self.left = self.left, -1
        return left <= 0


@pytest.fixture
def fault(monkeypatch: pytest.MonkeyPatch) -> Fault:
    return Fault(monkeypatch)


def rows(first: int, last: int) -> Iterator[list[bytes]]:
    return ([b"n", str(number).encode()] for number in range(first, last))


def numbers(client: Client, name: str) -> list[int]:
    return [int(entry.fields["n"]) for entry in client.stream(name).iterate()]


def take(url: str, name: str, first: int, last: int) -> Taken:
    return take_rows(rows(first, last), url, name, f"q:{first}:{next(NAMES)}")


def publish(url: str, run: Run, batch: int, taken: list[Taken]) -> None:
    with Publisher(url, run) as publisher:
        publisher.publish(batch, taken, f"q:driver:{next(NAMES)}")


# The sink


def test_batches_of_any_size_are_published_in_order_and_once(url: str, client: Client, name: str) -> None:
    run = Run(name, "q")
    many, few = take(url, name, 0, 1600), take(url, name, 1600, 1700)
    assert many.part is not None and few.part is None

    publish(url, run, 0, [many, few])
    publish(url, run, 0, [take(url, name, 0, 1600), few])
    publish(url, run, 1, [take(url, name, 1700, 1710), Taken(None, ())])
    publish(url, run, 2, [])

    assert numbers(client, name) == list(range(1710))
    assert client.command("GET", f"hr:{{{name}}}:sink:q") == b'{"batch":1}'
    assert client.command("TTL", f"hr:{{{name}}}:sink:q") == -1


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("error", [Stopped, ConnectionLost])
@pytest.mark.parametrize("last", [1600, 5])
def test_a_batch_stopped_at_any_point_is_completed_whatever_the_repeated_tasks_bring(
    url: str, client: Client, name: str, fault: Fault, after: bool, error: type[Exception], last: int
) -> None:
    for place in count(1):
        stream, run = f"{name}-{place}", Run(f"{name}-{place}", "q")
        taken = [take(url, stream, 0, last), take(url, stream, last, last + 3)]
        fault.at(place, after=after, error=error)
        try:
            publish(url, run, 7, taken)
        except Stopped:
            again = [take(url, stream, last // 2, last + 3), take(url, stream, 0, last // 2)]  # Another cut and order.
            publish(url, run, 7, again)
        has_happened = fault.disarm()
        publish(url, run, 7, [take(url, stream, 0, last + 3)])
        assert sorted(numbers(client, stream)) == list(range(last + 3)), place
        if not has_happened:
            break
    assert place > 3


@pytest.mark.parametrize("last", [1600, 5])
def test_a_write_that_nobody_repeats_survives_a_lost_reply_and_leaves_nothing(
    url: str, client: Client, name: str, fault: Fault, last: int
) -> None:
    for place in count(1):
        stream = f"{name}-{place}"
        taken = [take(url, stream, 0, last)]
        fault.at(place, after=True, error=ConnectionLost)
        publish(url, Run(stream, "write:x", fence_s=60, is_single=True), 0, taken)
        assert numbers(client, stream) == list(range(last)), place
        if not fault.disarm():
            break
    assert client.command("EXISTS", f"hr:{{{stream}}}:sink:write:x") == 0


def test_a_task_stages_each_row_once_over_lost_connections(url: str, name: str, fault: Fault) -> None:
    for place in count(1):
        fault.at(place, after=True, error=ConnectionLost)
        taken = take(url, f"{name}-{place}", 0, 1600)
        assert taken.part is not None and taken.part.chunks == 4, place
        if not fault.disarm():
            break
    with Client(url) as client:
        assert client.command("LLEN", f"hr:{{{name}-{place}}}:staged:{taken.part.name}") == 4


def test_parts_in_the_fence_are_not_dropped_by_an_abort(url: str, client: Client, name: str, fault: Fault) -> None:
    run, taken = Run(name, "q"), take(url, name, 0, 1600)
    unused = take(url, name, 0, 1600)
    assert taken.part is not None and unused.part is not None
    fault.at(8, after=False)  # One chunk is published by then.
    with pytest.raises(Stopped):
        publish(url, run, 0, [taken])
    assert 0 < client.stream(name).length() < 1600

    with Publisher(url, run) as publisher:
        publisher.drop([taken.part, unused.part])
    publish(url, run, 0, [])

    assert numbers(client, name) == list(range(1600))
    for part in (taken.part, unused.part):
        assert client.command("EXISTS", f"hr:{{{name}}}:staged:{part.name}") == 0


def test_rows_that_vanished_from_the_broker_are_told(url: str, client: Client, name: str) -> None:
    taken = take(url, name, 0, 1600)
    assert taken.part is not None
    client.command("DEL", f"hr:{{{name}}}:staged:{taken.part.name}")

    with pytest.raises(HeadraceError, match="are gone before they were written"):
        publish(url, Run(name, "q"), 0, [taken])
    assert client.stream(name).length() == 0


def test_an_older_batch_is_refused(url: str, name: str) -> None:
    publish(url, Run(name, "q"), 5, [take(url, name, 0, 5)])

    with pytest.raises(Refused, match="batch 4 comes after batch 5"):
        publish(url, Run(name, "q"), 4, [take(url, name, 5, 9)])


# Replay


def replay(url: str, name: str, first: int, last: int, *, until: int | None = None) -> None:
    """Entries 1-0 to 999-0, as far as they lie between first and last."""
    plan = ReplayPlan(url, "orders", name, "again", "all", id_of(f"{first}-0"), id_of(f"{last}-0"))
    ids = list(range(first, (until or last) + 1))
    pairs = pa.array([[{"name": b"n", "value": str(number).encode()}] for number in ids], PAIRS)
    batch = pa.record_batch({"id": pa.array([f"{number}-0" for number in ids]), "pairs": pairs})
    with Replayer(plan) as replayer:
        for start in range(0, len(ids), 300):
            replayer.take(batch.slice(start, 300))
        replayer.finish()


def test_ranges_are_replayed_once_however_they_overlap(url: str, client: Client, name: str) -> None:
    replay(url, name, 200, 300)
    replay(url, name, 250, 400)
    replay(url, name, 1, 999)

    assert sorted(numbers(client, name)) == list(range(1, 1000))
    assert b'"done":[["1-0","999-0"]]' in client.command("GET", f"hr:{{{name}}}:replay:again")


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("error", [Stopped, ConnectionLost])
def test_a_replay_stopped_at_any_point_goes_on_there(
    url: str, client: Client, name: str, fault: Fault, after: bool, error: type[Exception]
) -> None:
    for place in count(1):
        target = f"{name}-{place}"
        fault.at(place, after=after, error=error)
        try:
            replay(url, target, 1, 999)
        except Stopped:
            replay(url, target, 1, 999)
        assert numbers(client, target) == list(range(1, 1000)), place
        if not fault.disarm():
            break
    assert place > 3


# Refusals


@pytest.fixture(scope="module")
def own_server() -> Iterator[Process]:
    [kind] = [one for one in real_kinds() if is_from_wheel(one)]
    with Process(kind, *KEEPS_NOTHING) as server:
        yield server


@pytest.fixture
def setting(own_server: Process) -> Iterator[Callable[..., None]]:
    """setting("maxmemory", "1") changes the server for the length of a test."""
    undo: list[tuple[str, ...]] = []

    def change(name: str, value: str, back: str) -> None:
        undo.append(("CONFIG", "SET", name, back))
        own_server.command_reply("CONFIG", "SET", name, value)

    yield change
    for words in undo:
        own_server.command_reply(*words)


@pytest.mark.parametrize("last", [1600, 5])
def test_a_full_broker_is_told_and_the_batch_is_complete_once_there_is_room(
    own_server: Process, setting: Callable[..., None], name: str, last: int
) -> None:
    taken = take(own_server.url, name, 0, last)
    setting("maxmemory", "1", "0")

    with pytest.raises(CommandError, match="out of memory") as caught:
        publish(own_server.url, Run(name, "q"), 0, [taken])
    assert caught.value.prefix == "OOM"

    own_server.command_reply("CONFIG", "SET", "maxmemory", "0")
    publish(own_server.url, Run(name, "q"), 0, [taken])
    with Client(own_server.url) as client:
        assert numbers(client, name) == list(range(last))


def test_a_replica_is_told(own_server: Process, name: str) -> None:
    own_server.command_reply("REPLICAOF", "127.0.0.1", "1")
    try:
        with pytest.raises(CommandError, match="is a replica and takes no writes"):
            publish(own_server.url, Run(name, "q"), 0, [take(own_server.url, name, 0, 5)])
    finally:
        own_server.command_reply("REPLICAOF", "NO", "ONE")


def test_a_user_without_transactions_is_told_before_anything_is_written(own_server: Process, name: str) -> None:
    own_server.command_reply("ACL", "SETUSER", "half", "on", ">word", "~*", "+@all", "-multi")
    url = own_server.url.replace("://", "://half:word@")

    with pytest.raises(AccessDenied, match="multi") as caught:
        publish(url, Run(name, "q"), 0, [take(url, name, 0, 5)])

    assert "word" not in str(caught.value)
    with Client(own_server.url) as client:
        assert client.stream(name).length() == 0


def test_a_wrong_password_is_told(own_server: Process, name: str) -> None:
    with pytest.raises(AccessDenied, match="refuses the user or password"):
        publish(own_server.url.replace("://", "://half:wrong@"), Run(name, "q"), 0, [take(own_server.url, name, 0, 5)])


def test_staging_goes_by_itself_within_a_day(own_server: Process, name: str) -> None:
    part = take(own_server.url, name, 0, 1600).part
    assert part is not None

    with Client(own_server.url) as client:
        assert 0 < client.command("TTL", f"hr:{{{name}}}:staged:{part.name}") <= 24 * 3600


def test_a_staging_name_that_is_taken_is_refused(own_server: Process, name: str) -> None:
    chunks = list(take(own_server.url, name, 0, 5).carried)
    stage(chunks * 2, own_server.url, name, "same")

    with pytest.raises(HeadraceError, match="are gone before the batch was written"):
        stage(chunks * 2, own_server.url, name, "same")
