"""Listening without a socket: from threads and from event loops."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

from headrace.errors import ClientClosed, CommandError, ConnectionLost
from headrace.server.inprocess import AsyncTransport, Transport
from headrace.server.inprocess_broker import InProcessBroker
from support.memory import ManualClock
from support.servers import wait_until

LONG_S = 60.0  # No test waits so long.


@dataclass
class Request:
    argv: tuple[Any, ...]


class Desk:
    def __init__(self, clock: ManualClock) -> None:
        self.broker = InProcessBroker(clock)
        self.transport = Transport("embedded:", self.broker)

    def __call__(self, *argv: Any) -> Any:
        return self.transport.call(Request(argv), LONG_S)

    def until_waiting(self, count: int) -> None:
        wait_until(lambda: len(self.broker.waiting) == count, f"{count} who wait")


@pytest.fixture
def desk(clock: ManualClock) -> Iterator[Desk]:
    made = Desk(clock)
    yield made
    made.transport.close()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(max_workers=16) as made:
        yield made


def test_messages_come_in_order_with_their_channel_and_pattern(desk: Desk) -> None:
    listening = desk.transport.subscription()
    listening.subscribe([b"news"], [b"orders.*"])

    assert desk("PUBLISH", "news", "one") == 1
    assert desk("PUBLISH", "orders.7", "two") == 1

    assert listening.next(LONG_S) == (b"news", b"one", None)
    assert listening.next(LONG_S) == (b"orders.7", b"two", b"orders.*")
    assert listening.next(0) is None


def test_one_who_waits_is_woken_by_a_message(desk: Desk, pool: ThreadPoolExecutor) -> None:
    listening = desk.transport.subscription()
    listening.subscribe([b"news"])
    answer = pool.submit(listening.next, LONG_S)
    desk.until_waiting(1)

    desk("PUBLISH", "news", "hi")

    assert answer.result(LONG_S) == (b"news", b"hi", None)
    assert desk.broker.waiting == {}


def test_each_message_goes_to_one_of_several_threads(desk: Desk, pool: ThreadPoolExecutor) -> None:
    listening = desk.transport.subscription()
    listening.subscribe([b"news"])
    answers = [pool.submit(listening.next, LONG_S) for _ in range(8)]
    wait_until(lambda: len(listening.wakers) == 8, "8 threads that wait")

    for number in range(8):
        desk("PUBLISH", "news", number)

    assert sorted(answer.result(LONG_S)[1] for answer in answers) == [b"%d" % number for number in range(8)]


def test_a_subscription_grows_and_shrinks_without_losing_what_waits(desk: Desk) -> None:
    listening = desk.transport.subscription()
    listening.subscribe([b"a"])
    desk("PUBLISH", "a", "1")
    listening.subscribe([b"b"], [b"c*"])
    desk("PUBLISH", "b", "2")
    listening.unsubscribe([b"a"], [b"c*"])

    assert desk("PUBLISH", "a", "3") == 0
    assert desk("PUBLISH", "c", "3") == 0
    assert [listening.next(0), listening.next(0), listening.next(0)] == [(b"a", b"1", None), (b"b", b"2", None), None]


def test_a_listener_that_falls_behind_is_dropped_at_the_limit_and_told(desk: Desk) -> None:
    desk("CONFIG", "SET", "client-output-buffer-limit", "pubsub 10000 0 0")
    listening = desk.transport.subscription()
    listening.subscribe([b"news"])
    quick = desk.transport.subscription()
    quick.subscribe([b"news"])

    for _ in range(100):
        desk("PUBLISH", "news", b"x" * 1000)
        assert quick.next(0) is not None

    with pytest.raises(ConnectionLost, match="was dropped: messages came faster than they were taken"):
        listening.next(0)
    with pytest.raises(ConnectionLost, match="was dropped"):
        listening.subscribe([b"more"])
    assert desk("PUBSUB", "NUMSUB", "news") == [b"news", 1]
    assert quick.line.call.pushed_bytes == 0


def test_a_thread_that_waits_is_told_when_it_is_dropped(desk: Desk, pool: ThreadPoolExecutor) -> None:
    listening = desk.transport.subscription()
    listening.subscribe([b"news"])
    answer = pool.submit(listening.next, LONG_S)
    desk.until_waiting(1)

    assert desk("CLIENT", "KILL", "ID", listening.line.call.id) == 1

    with pytest.raises(ConnectionLost, match="was closed; messages since then are lost"):
        answer.result(LONG_S)


def test_much_may_wait_only_so_long(desk: Desk, clock: ManualClock) -> None:
    desk("CONFIG", "SET", "client-output-buffer-limit", "pubsub 0 1000 5")
    listening = desk.transport.subscription()
    listening.subscribe([b"news"])
    desk("PUBLISH", "news", b"x" * 2000)
    for _ in range(5):
        clock.advance(s=1)
        desk("PING")
    assert listening.next(0) is not None  # Just in time: from here on nothing waits.
    desk("PUBLISH", "news", b"x" * 2000)
    for _ in range(7):
        clock.advance(s=1)
        desk("PING")

    with pytest.raises(ConnectionLost, match="was dropped"):
        listening.next(0)


def test_closing_ends_the_waiting(desk: Desk, pool: ThreadPoolExecutor) -> None:
    listening = desk.transport.subscription()
    listening.subscribe([b"news"])
    answer = pool.submit(listening.next, LONG_S)
    desk.until_waiting(1)

    listening.close()

    with pytest.raises(ClientClosed):
        answer.result(LONG_S)
    assert desk("PUBLISH", "news", "hi") == 0
    assert desk.broker.inboxes == {}


def test_closing_the_client_closes_its_subscriptions(desk: Desk) -> None:
    other = Transport("embedded:", desk.broker)
    listening = other.subscription()
    listening.subscribe([b"news"])

    other.close()

    assert desk("PUBLISH", "news", "hi") == 0
    with pytest.raises(ClientClosed):
        listening.next(0)
    with pytest.raises(ClientClosed):
        other.subscription()


def test_events_of_expired_keys_come_without_anybody_s_command(
    desk: Desk, clock: ManualClock, pool: ThreadPoolExecutor
) -> None:
    desk("CONFIG", "SET", "notify-keyspace-events", "Ex")
    listening = desk.transport.subscription()
    listening.subscribe([b"__keyevent@0__:expired"])
    desk("SET", "k", "v", "PX", "1000")
    answer = pool.submit(listening.next, LONG_S)
    desk.until_waiting(1)

    clock.advance(s=2)

    assert answer.result(LONG_S) == (b"__keyevent@0__:expired", b"k", None)


def test_a_paused_broker_refuses_and_changes_nothing(desk: Desk, clock: ManualClock) -> None:
    listening = desk.transport.subscription()
    desk("CLIENT", "PAUSE", 1000)

    with pytest.raises(ConnectionLost, match="is paused"):
        listening.subscribe([b"news"])
    clock.advance(s=2)
    assert desk("PUBLISH", "news", "hi") == 0
    listening.subscribe([b"news"])
    assert desk("PUBLISH", "news", "hi") == 1
    assert listening.next(0) == (b"news", b"hi", None)


def test_a_refused_subscription_is_an_error(desk: Desk) -> None:
    listening = desk.transport.subscription()
    listening.subscribe([b"news"])

    with pytest.raises(CommandError, match="only"):
        listening.run(b"GET", [b"k"])


def test_tasks_listen_too() -> None:
    async def talk() -> None:
        broker = InProcessBroker(ManualClock())
        transport = AsyncTransport("embedded:", broker)
        listening = transport.subscription()
        await listening.subscribe([b"news"], [b"n*"])
        waiting = asyncio.create_task(listening.next(LONG_S))
        await asyncio.sleep(0)
        assert await transport.call(Request(("PUBLISH", "news", "hi")), LONG_S) == 2
        assert await waiting == (b"news", b"hi", None)
        assert await listening.next(0) == (b"news", b"hi", b"n*")
        assert await listening.next(0) is None
        cancelled = asyncio.create_task(listening.next(LONG_S))
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.gather(cancelled, return_exceptions=True)
        assert listening.wakers == []
        await listening.unsubscribe([], [b"n*"])
        await transport.call(Request(("PUBLISH", "news", "again")), LONG_S)
        assert await listening.next(0) == (b"news", b"again", None)
        await listening.close()
        with pytest.raises(ClientClosed):
            await listening.next(0)

    asyncio.run(talk())


def test_a_task_that_is_cancelled_takes_no_message() -> None:
    async def listen() -> list[bytes]:
        transport = AsyncTransport("embedded:", InProcessBroker())
        listening = transport.subscription()
        await listening.subscribe([b"news"])
        for number in range(100):
            await transport.call(Request(("PUBLISH", "news", number)), LONG_S)
        taken: list[bytes] = []
        while len(taken) < 100 and listening.line.call.pushed_bytes:
            task = asyncio.create_task(listening.next(LONG_S))
            await asyncio.sleep(0)
            task.cancel()  # Too late for most: they have their message.
            for message in await asyncio.gather(task, return_exceptions=True):
                if isinstance(message, tuple):
                    taken.append(message[1])
        await transport.close()
        return taken

    assert asyncio.run(listen()) == [b"%d" % number for number in range(100)]
