"""Servers that restart, fail over, never answer or were never there."""

import asyncio
import itertools
import signal
import socket
import threading

import pytest

from headrace import AsyncClient, ConnectionLost, HeadraceError, Unreachable
from headrace.client import redis_transport
from support.deployments import KEEPS_EVERYTHING, Process, SentinelTrio, is_from_wheel, real_kinds
from support.flavours import take
from support.servers import wait_until


def kinds():
    """Valkey always, every Redis in the long run."""
    return [
        pytest.param(kind, marks=[] if is_from_wheel(kind) else [pytest.mark.long], id=kind.name)
        for kind in real_kinds()
    ]


@pytest.fixture
def durable(kind):
    """A server that has written down whatever it answered."""
    with Process(kind, *KEEPS_EVERYTHING) as server:
        yield server


def publish_all(stream, count, published, problems):
    """Publish 0, 1, … each with an id, so that repeating one whose answer was lost is harmless."""
    try:
        for number in range(count):
            while True:
                try:
                    stream.publish(number, id=f"n-{number}")
                    break
                except ConnectionLost:
                    continue
            published.append(number)
    except BaseException as error:
        problems.append(error)
        raise


def follow_through_restarts(server, open_url, name, count, restarts):
    producer_stream = open_url(server.url).stream(name)
    entries = open_url(server.url).stream(name).follow(start="beginning", wait="60s")
    published: list[int] = []
    problems: list[BaseException] = []
    producer = threading.Thread(target=publish_all, args=(producer_stream, count, published, problems))
    seen: list[int] = []
    follower = threading.Thread(target=lambda: seen.extend(e.payload for e in take(entries, count)))
    producer.start()
    follower.start()
    for restart in range(1, restarts + 1):
        due = count * restart // (restarts + 1)
        wait_until(lambda due=due: len(published) >= due or bool(problems), f"{due} entries", timeout_s=600)
        server.restart(signal.SIGKILL if restart % 2 else signal.SIGTERM)
    producer.join()
    follower.join()
    assert problems == []
    assert seen == list(range(count))
    assert producer_stream.length() == count


@pytest.mark.parametrize("kind", kinds())
def test_a_follower_is_given_each_entry_once_while_the_server_restarts(durable, open_url, name):
    follow_through_restarts(durable, open_url, name, count=2_000, restarts=2)


@pytest.mark.long
@pytest.mark.parametrize("kind", kinds())
def test_each_of_100_000_entries_comes_once_through_ten_restarts(durable, open_url, name):
    follow_through_restarts(durable, open_url, name, count=100_000, restarts=10)


@pytest.mark.parametrize("kind", kinds())
def test_a_consumer_goes_on_after_a_restart(durable, open_url, name):
    client = open_url(durable.url)
    stream, group = client.stream(name), client.stream(name).group("billing")
    group.create(start="beginning")
    stream.add_many({"n": number} for number in range(10))
    entries = group.consume("ann", count=2, wait="60s")
    handled = []
    for entry in itertools.islice(entries, 5):
        group.ack(entry.id)
        handled.append(entry.fields["n"])
    durable.restart(signal.SIGKILL)
    while len(handled) < 10:
        entry = next(entries)
        group.ack(entry.id)
        handled.append(entry.fields["n"])
    entries.close()

    assert handled == [str(number) for number in range(10)]
    assert group.pending() == []


@pytest.mark.parametrize("kind", kinds())
def test_what_is_harmless_to_repeat_is_repeated(durable, open_url, name):
    stream = open_url(durable.url, timeout="30s").stream(name)
    entry_id = stream.publish("x", id="once")
    durable.restart(signal.SIGTERM)

    assert stream.length() == 1
    durable.restart(signal.SIGTERM)
    assert stream.publish("x", id="once") == entry_id


@pytest.mark.parametrize("kind", kinds())
def test_a_bookmark_outlives_the_server(durable, open_url, name):
    stream = open_url(durable.url).stream(name)
    stream.add_many({"n": number} for number in range(5))
    assert len(list(stream.follow(start="beginning", bookmark="audit", wait=0))) == 5
    durable.restart(signal.SIGKILL)
    last = stream.publish({"n": 5}, id="five")

    assert [entry.id for entry in stream.follow(start="beginning", bookmark="audit", wait=0)] == [last]


@pytest.mark.long
@pytest.mark.parametrize("kind", kinds())
def test_work_goes_on_through_a_failover(kind, open_url, name):
    with SentinelTrio(kind) as trio:
        client = open_url(trio.url, timeout="60s")
        stream, group = client.stream(name), client.stream(name).group("billing")
        group.create(start="beginning")
        stream.publish_many(range(100))
        client.command("WAIT", 1, 20_000)
        old_port = trio.primary_port()
        trio.primary.end(signal.SIGKILL)

        entry_id = stream.publish("after", id="after")

        assert trio.primary_port() != old_port
        assert stream.publish("after", id="after") == entry_id
        assert [entry.payload for entry in group.read("ann")] == [*range(100), "after"]
        assert stream.trim(keep=10, partly=True).held_by == "billing"


@pytest.mark.long
@pytest.mark.parametrize("kind", kinds())
def test_a_follower_goes_on_through_a_failover(kind, open_url, name):
    with SentinelTrio(kind) as trio:
        stream = open_url(trio.url, timeout="60s").stream(name)
        stream.publish_many(range(100))
        entries = open_url(trio.url).stream(name).follow(start="beginning", wait="120s")
        seen = [entry.payload for entry in itertools.islice(entries, 100)]
        stream.client.command("WAIT", 1, 20_000)
        trio.primary.end(signal.SIGKILL)
        stream.publish(100, id="a")
        seen.append(next(entries).payload)
        entries.close()

        assert seen == list(range(101))


# Servers that do not answer


@pytest.fixture
def little_grace(monkeypatch):
    """Calls are given up soon after their time."""
    monkeypatch.setattr(redis_transport, "GRACE_S", 0.1)


@pytest.fixture
def black_hole(little_grace, monkeypatch):
    """Accepts connections and never says anything."""
    monkeypatch.setattr(redis_transport, "BLOCK_MS", 100)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"redis://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize(
    "call",
    [
        lambda stream: stream.client.ping(),
        lambda stream: stream.add({"n": 1}),
        lambda stream: stream.add_many([{"n": 1}, {"n": 2}]),
        lambda stream: stream.group("g").read("ann", wait="50ms"),
    ],
    ids=["ping", "add", "add_many", "read"],
)
def test_a_server_that_never_answers_is_given_up(black_hole, open_url, call):
    stream = open_url(black_hole, timeout="200ms").stream("orders")

    with pytest.raises(ConnectionLost) as caught:
        call(stream)

    assert black_hole in str(caught.value)


@pytest.mark.parametrize("kind", kinds())
def test_a_wait_longer_than_the_timeout_is_not_given_up(durable, little_grace, open_url, name):
    group = open_url(durable.url, timeout="1s").stream(name).group("billing")
    group.create()

    assert group.read("ann", wait="2500ms") == []


def test_a_server_that_is_not_there_is_unreachable_and_says_what_to_do(open_url):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    for url in (f"redis://127.0.0.1:{port}", f"redis+cluster://127.0.0.1:{port}", "unix:///nowhere/socket"):
        client = open_url(url, timeout="100ms")
        with pytest.raises(Unreachable, match=r"Cannot reach.*headrace serve") as caught:
            client.stream("orders").add({"n": 1})
        assert url in str(caught.value)


def test_sentinels_that_are_not_there_are_unreachable(open_url):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    client = open_url(f"redis+sentinel://127.0.0.1:{port}/main", timeout="100ms")

    with pytest.raises(Unreachable, match="Cannot reach"):
        client.stream("orders").add({"n": 1})


def test_a_host_nobody_knows_is_unreachable(open_url):
    with pytest.raises(Unreachable, match="unknown host"):
        open_url("redis://no-such-host.invalid", timeout="100ms").ping()


def test_something_that_is_no_redis_is_told_as_an_error_of_ours(open_url):
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(1000)
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        client = open_url(f"redis://127.0.0.1:{listener.getsockname()[1]}", timeout="100ms")
        with pytest.raises(HeadraceError):
            client.ping()
        listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("kind", kinds())
def test_a_connection_that_was_closed_between_two_calls_costs_none_of_them(durable):
    """Publishing is not repeated, so it would fail on a dead connection."""

    async def program():
        async with AsyncClient(durable.url) as client, AsyncClient(durable.url) as other:
            for number in range(5):
                own_id = await client.command("CLIENT", "ID")
                assert await other.command("CLIENT", "KILL", "ID", own_id) == 1
                await other.ping()  # The server closes the connection behind its answer.
                await client.stream("orders").publish(number)
            return await client.stream("orders").length()

    assert asyncio.run(program()) == 5


@pytest.mark.parametrize("kind", kinds())
def test_more_calls_at_once_than_connections_all_get_their_own_answers(durable):
    async def program():
        async with AsyncClient(durable.url) as client:
            numbers = range(4 * redis_transport.MAX_CONNECTIONS)
            answers = await asyncio.gather(*[client.command("ECHO", str(number)) for number in numbers])
            assert answers == [str(number).encode() for number in numbers]

    asyncio.run(program())
