"""The broker without a socket: calls from threads and from event loops, on a clock moved by hand."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

from headrace.errors import (
    AccessDenied,
    ClientClosed,
    CommandError,
    ConfigError,
    ConnectionLost,
    HeadraceError,
    NotFound,
    WrongType,
)
from headrace.server.inprocess import AsyncTransport, Transport
from headrace.server.inprocess_broker import InProcessBroker
from support.memory import ManualClock
from support.servers import wait_until

URL = "embedded:"
LONG_S = 60.0  # No test waits so long.


@dataclass
class Request:
    argv: tuple[Any, ...]
    wait_ms: int = 0


class Desk:
    """A broker, one client of it, and threads to wait in."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.broker = InProcessBroker(clock)
        self.transport = Transport(URL, self.broker)
        self.pool = ThreadPoolExecutor(max_workers=64)

    def __call__(self, *argv: Any) -> Any:
        return self.transport.call(Request(argv), LONG_S)

    def aside(self, *argv: Any, timeout_s: float = LONG_S, transport: Transport | None = None) -> Future[Any]:
        """Call in a thread of its own, and go on once it waits."""
        before = len(self.broker.waiting)
        answer = self.pool.submit((transport or self.transport).call, Request(argv), timeout_s)
        self.until_waiting(before + 1)
        return answer

    def until_waiting(self, count: int) -> None:
        wait_until(lambda: len(self.broker.waiting) == count, f"{count} waiting calls")

    def advance(self, *, ms: int) -> None:
        """Move the clock, and let the calls look at it now."""
        self.clock.advance(ms=ms)
        with self.broker.lock:
            self.broker.ring()


@pytest.fixture
def desk(clock: ManualClock) -> Iterator[Desk]:
    made = Desk(clock)
    yield made
    made.transport.close()
    made.pool.shutdown()


def run(main: Callable[[], Any]) -> Any:
    return asyncio.run(asyncio.wait_for(main(), LONG_S))


async def until_it_waits(desk: Desk) -> None:
    """A new task gets as far as it can in a turn or two."""
    for _ in range(3):
        await asyncio.sleep(0)
    assert desk.broker.waiting


# Replies


def test_replies_have_the_shapes_of_the_protocol(desk: Desk) -> None:
    assert desk("PING") == b"PONG"
    assert desk("XADD", "orders", "1-0", "item", b"\xff") == b"1-0"
    assert desk("XLEN", "orders") == 1
    assert desk("XRANGE", "orders", "-", "+") == [[b"1-0", [b"item", b"\xff"]]]
    assert desk("GET", "nothing") is None
    assert desk("XREAD", "STREAMS", "orders", "$") is None
    assert desk("SET", "number", 17) == b"OK"
    assert desk("GET", "number") == b"17"


def test_text_that_was_not_utf_8_goes_back_as_the_bytes_it_came_as(desk: Desk) -> None:
    desk("SET", b"\xff", "1")

    assert desk("GET", b"\xff".decode("utf-8", "surrogateescape")) == b"1"


@pytest.mark.parametrize("word", [None, True, ["list"]])
def test_a_word_that_is_no_text_is_refused_before_anything_runs(desk: Desk, word: Any) -> None:
    with pytest.raises(ConfigError):
        desk("SET", "key", word)


def test_a_refusal_is_the_exception_of_its_kind(desk: Desk) -> None:
    desk("SET", "text", "1")

    with pytest.raises(WrongType):
        desk("XLEN", "text")
    with pytest.raises(NotFound):
        desk("XREADGROUP", "GROUP", "billing", "ann", "STREAMS", "orders", ">")
    with pytest.raises(NotFound):
        desk("XINFO", "STREAM", "orders")
    with pytest.raises(CommandError, match=r"^ERR unknown command 'NONSENSE'"):
        desk("NONSENSE")
    with pytest.raises(CommandError, match=r"^ERR DB index is out of range"):
        desk("SELECT", "99")
    with pytest.raises(AccessDenied, match=r"^embedded: refuses"):
        desk("AUTH", "secret")
    with pytest.raises(CommandError, match=r"^ERR no command"):
        desk()


def test_many_calls_run_in_order_with_their_errors_in_place(desk: Desk) -> None:
    argvs = [("SET", "a", "1"), ("XLEN", "a"), ("INCR", "a")]

    replies = desk.transport.call_many([Request(argv) for argv in argvs], LONG_S)

    assert replies[0] == b"OK" and replies[2] == 2
    assert isinstance(replies[1], WrongType)
    assert desk.transport.call_many([], LONG_S) == []


def test_many_calls_may_be_a_transaction(desk: Desk) -> None:
    argvs = [("MULTI",), ("SET", "a", "1"), ("LPUSH", "a", "1"), ("EXEC",)]

    replies = desk.transport.call_many([Request(argv) for argv in argvs], LONG_S)

    assert replies[:3] == [b"OK", b"QUEUED", b"QUEUED"]
    assert replies[3][0] == b"OK" and isinstance(replies[3][1], WrongType)


@pytest.mark.parametrize("argv", [("SELECT", "1"), ("MULTI",), ("HELLO", "3"), ("CLIENT", "REPLY", "OFF"), ("QUIT",)])
def test_what_a_call_sets_for_its_connection_ends_with_it(desk: Desk, argv: tuple[str, ...]) -> None:
    desk("SET", "a", "1")

    desk(*argv)

    assert desk("GET", "a") == b"1"
    assert desk("CONFIG", "GET", "maxclients") == [b"maxclients", b"10000"]


def test_a_large_reply_is_followed_by_the_next_one(desk: Desk) -> None:
    desk("SET", "large", b"x" * 1_000_000)

    assert len(desk("GET", "large")) == 1_000_000
    assert desk.transport.call_many([Request(("GET", "large")), Request(("PING",))], LONG_S)[1] == b"PONG"


def test_clients_share_the_data(desk: Desk) -> None:
    other = Transport(URL, desk.broker)
    desk("SET", "a", "1")

    assert other.call(Request(("GET", "a")), LONG_S) == b"1"
    assert run(lambda: AsyncTransport(URL, desk.broker).call(Request(("GET", "a")), LONG_S)) == b"1"


# Waiting threads


def test_a_waiting_thread_is_given_what_another_one_adds(desk: Desk) -> None:
    answer = desk.aside("XREAD", "BLOCK", "0", "STREAMS", "orders", "$")

    desk("XADD", "orders", "1-0", "item", "tea")

    assert answer.result(LONG_S) == [[b"orders", [[b"1-0", [b"item", b"tea"]]]]]
    assert not desk.broker.waiting


def test_waiting_threads_are_served_in_the_order_they_came(desk: Desk) -> None:
    answers = [desk.aside("BLPOP", "jobs", "0") for _ in range(3)]

    for job in (b"a", b"b", b"c"):
        desk("RPUSH", "jobs", job)

    assert [answer.result(LONG_S) for answer in answers] == [[b"jobs", b"a"], [b"jobs", b"b"], [b"jobs", b"c"]]


def test_waiting_ends_at_its_deadline(desk: Desk) -> None:
    answer = desk.aside("XREAD", "BLOCK", "3600000", "STREAMS", "orders", "$")

    desk.advance(ms=3_599_999)
    assert not answer.done()
    desk.advance(ms=1)

    assert answer.result(LONG_S) is None


def test_a_deadline_is_kept_without_anybody_else(desk: Desk) -> None:
    transport = Transport(URL, InProcessBroker())

    assert transport.call(Request(("XREAD", "BLOCK", "1", "STREAMS", "orders", "$")), LONG_S) is None
    assert transport.call(Request(("BLPOP", "jobs", "0.001")), LONG_S) is None


def test_an_entry_is_claimed_as_soon_as_it_is_idle_enough(desk: Desk) -> None:
    desk("XADD", "orders", "1-0", "item", "tea")
    desk("XGROUP", "CREATE", "orders", "billing", "0")
    desk("XREADGROUP", "GROUP", "billing", "ann", "STREAMS", "orders", ">")
    claim = ("XREADGROUP", "GROUP", "billing", "bob", "BLOCK", "0", "CLAIM", "60000", "STREAMS", "orders", ">")
    answer = desk.aside(*claim)

    desk.advance(ms=59_999)
    assert not answer.done()
    desk.advance(ms=1)

    assert answer.result(LONG_S)[0][1][0][0] == b"1-0"


def test_a_delayed_element_of_a_queue_reaches_those_who_wait_already(desk: Desk) -> None:
    first = desk.aside("RQ.POP", "BLOCK", 0, "jobs")
    second = desk.aside("RQ.POP", "BLOCK", 0, "jobs")
    names = desk("RQ.PUSHX", "jobs", "DELAY", 5000, "ELEMENTS", 2, "mail", "print")
    desk.advance(ms=4999)
    assert not first.done() and not second.done()

    desk.advance(ms=1)

    assert first.result(LONG_S) == [[b"jobs", names[0], b"mail"]]
    assert second.result(LONG_S) == [[b"jobs", names[1], b"print"]]


def test_a_queue_caller_whose_patience_ends_swallows_nothing(desk: Desk) -> None:
    gone = desk.aside("RQ.POP", "BLOCK", 0, "jobs", timeout_s=0.01)
    with pytest.raises(ConnectionLost):
        gone.result(LONG_S)
    [name] = desk("RQ.PUSH", "jobs", "mail")

    assert desk("RQ.POP", "jobs") == [[b"jobs", name, b"mail"]]


def test_a_caller_whose_patience_ends_leaves_no_trace(desk: Desk) -> None:
    with pytest.raises(ConnectionLost, match="taken back"):
        desk.transport.call(Request(("BLPOP", "jobs", "0")), 0.01)

    desk("RPUSH", "jobs", "a")
    assert desk("LPOP", "jobs") == b"a"
    assert not desk.broker.waiting


def test_a_waiting_reader_hears_of_its_streams_end_of_life(desk: Desk) -> None:
    desk("XADD", "orders", "1-0", "item", "tea")
    desk("XGROUP", "CREATE", "orders", "billing", "$")
    answer = desk.aside("XREADGROUP", "GROUP", "billing", "ann", "BLOCK", "0", "STREAMS", "orders", ">")
    desk("PEXPIRE", "orders", "5000")

    desk.advance(ms=5000)

    with pytest.raises(HeadraceError):
        answer.result(LONG_S)


def test_a_time_to_live_set_while_somebody_waits_is_noticed_by_that_one(desk: Desk) -> None:
    broker = InProcessBroker()
    transport = Transport(URL, broker)
    transport.call(Request(("XGROUP", "CREATE", "orders", "billing", "$", "MKSTREAM")), LONG_S)
    answer = desk.pool.submit(
        transport.call,
        Request(("XREADGROUP", "GROUP", "billing", "ann", "BLOCK", "0", "STREAMS", "orders", ">")),
        LONG_S,
    )
    wait_until(lambda: len(broker.waiting) == 1, "a waiting call")

    transport.call(Request(("PEXPIRE", "orders", "1")), LONG_S)

    with pytest.raises(HeadraceError):
        answer.result(LONG_S)


def test_keys_whose_time_has_come_go_while_others_are_used(desk: Desk) -> None:
    desk("SET", "a", "1", "PX", "10")
    desk.clock.advance(ms=1000)

    desk("PING")

    assert not desk.broker.state.databases[0].values


def test_a_paused_write_goes_on_after_the_pause(desk: Desk) -> None:
    desk("CLIENT", "PAUSE", "60000", "WRITE")
    answer = desk.aside("SET", "a", "1")
    assert desk("GET", "a") is None

    desk("CLIENT", "UNPAUSE")

    assert answer.result(LONG_S) == b"OK"
    assert desk("GET", "a") == b"1"


def test_a_pause_ends_by_itself(desk: Desk) -> None:
    desk("CLIENT", "PAUSE", "60000")
    answer = desk.aside("SET", "a", "1")

    desk.advance(ms=60_000)

    assert answer.result(LONG_S) == b"OK"


def test_closing_a_client_ends_its_waiting_calls_and_keeps_the_data(desk: Desk) -> None:
    desk("SET", "a", "1")
    other = Transport(URL, desk.broker)
    answer = desk.aside("BLPOP", "jobs", "0", transport=other)

    other.close()

    with pytest.raises(ClientClosed):
        answer.result(LONG_S)
    with pytest.raises(ClientClosed):
        other.call(Request(("PING",)), LONG_S)
    assert desk("GET", "a") == b"1"
    assert len(desk.broker.state.clients) == 1


def test_a_killed_connection_is_an_error_for_the_one_who_waits_on_it(desk: Desk) -> None:
    answer = desk.aside("BLPOP", "jobs", "0")
    [waiting] = desk.broker.waiting

    desk("CLIENT", "KILL", "ID", waiting)

    with pytest.raises(ConnectionLost):
        answer.result(LONG_S)
    assert desk("PING") == b"PONG"
    assert len(desk.broker.state.clients) == 1


def test_a_spare_connection_that_was_killed_is_replaced(desk: Desk) -> None:
    other = Transport(URL, desk.broker)
    number = other.call(Request(("CLIENT", "ID")), LONG_S)

    desk("CLIENT", "KILL", "ID", number)

    assert other.call(Request(("CLIENT", "ID")), LONG_S) != number


def test_there_are_no_more_connections_than_the_setting_allows(desk: Desk) -> None:
    desk("CONFIG", "SET", "maxclients", "2")
    answer = desk.aside("BLPOP", "jobs", "0")
    desk("PING")

    with pytest.raises(CommandError, match="max number of clients"):
        Transport(URL, desk.broker).call(Request(("PING",)), LONG_S)
    desk("RPUSH", "jobs", "a")
    assert answer.result(LONG_S) == [b"jobs", b"a"]


def test_fifty_threads_each_get_their_own_replies(desk: Desk) -> None:
    barrier = threading.Barrier(50)

    def work(number: int) -> list[Any]:
        barrier.wait(LONG_S)
        return [desk("ECHO", f"{number}-{turn}") for turn in range(100)]

    answers = [desk.pool.submit(work, number) for number in range(50)]

    for number, answer in enumerate(answers):
        assert answer.result(LONG_S) == [f"{number}-{turn}".encode() for turn in range(100)]


# Event loops


def test_a_waiting_task_is_given_what_another_one_adds(desk: Desk) -> None:
    async def main() -> Any:
        transport = AsyncTransport(URL, desk.broker)
        answer = asyncio.create_task(transport.call(Request(("BLPOP", "jobs", "0")), LONG_S))
        await until_it_waits(desk)
        await transport.call(Request(("RPUSH", "jobs", "a")), LONG_S)
        return await answer

    assert run(main) == [b"jobs", b"a"]


def test_a_task_and_a_thread_serve_each_other(desk: Desk) -> None:
    async def main() -> Any:
        transport = AsyncTransport(URL, desk.broker)
        answer = asyncio.create_task(transport.call(Request(("BLPOP", "from thread", "0")), LONG_S))
        await until_it_waits(desk)
        from_task = desk.aside("BLPOP", "from task", "0")
        desk.pool.submit(desk, "RPUSH", "from thread", "a")
        found = await answer
        await transport.call(Request(("RPUSH", "from task", "b")), LONG_S)
        return [found, from_task.result(LONG_S)]

    assert run(main) == [[b"from thread", b"a"], [b"from task", b"b"]]


def test_two_event_loops_may_wait_at_once(desk: Desk) -> None:
    transport = AsyncTransport(URL, desk.broker)
    loops = [desk.pool.submit(run, lambda: transport.call(Request(("BLPOP", "jobs", "0")), LONG_S)) for _ in range(2)]
    desk.until_waiting(2)

    desk("RPUSH", "jobs", "a", "b")

    assert sorted(loop.result(LONG_S) for loop in loops) == [[b"jobs", b"a"], [b"jobs", b"b"]]


def test_a_cancelled_call_takes_nothing_and_leaves_no_trace(desk: Desk) -> None:
    async def main() -> None:
        transport = AsyncTransport(URL, desk.broker)
        task = asyncio.create_task(transport.call(Request(("BLPOP", "jobs", "0")), LONG_S))
        await until_it_waits(desk)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(main)
    assert not desk.broker.waiting and not desk.broker.state.waiters.by_client

    desk("RPUSH", "jobs", "a")
    assert desk("LPOP", "jobs") == b"a"


def test_a_reply_to_a_cancelled_call_reaches_nobody_else(desk: Desk) -> None:
    async def main() -> None:
        transport = AsyncTransport(URL, desk.broker)
        for turn in range(200):
            task = asyncio.create_task(transport.call(Request(("BLPOP", "jobs", "0")), LONG_S))
            await until_it_waits(desk)
            await transport.call(Request(("RPUSH", "jobs", "a")), LONG_S)
            task.cancel()  # Answered, but not told yet.
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await transport.call(Request(("ECHO", str(turn))), LONG_S) == str(turn).encode()

    run(main)


def test_a_tasks_deadline_and_patience_are_kept(desk: Desk) -> None:
    async def main() -> None:
        transport = AsyncTransport(URL, InProcessBroker())
        assert await transport.call(Request(("BLPOP", "jobs", "0.001")), LONG_S) is None
        with pytest.raises(ConnectionLost, match="taken back"):
            await transport.call(Request(("BLPOP", "jobs", "0")), 0.01)

    run(main)


def test_closing_an_async_client_ends_its_waiting_calls(desk: Desk) -> None:
    async def main() -> None:
        transport = AsyncTransport(URL, desk.broker)
        task = asyncio.create_task(transport.call(Request(("BLPOP", "jobs", "0")), LONG_S))
        await until_it_waits(desk)
        await transport.close()
        with pytest.raises(ClientClosed):
            await task

    run(main)


def test_a_task_that_calls_on_and_on_lets_others_have_their_turn(desk: Desk) -> None:
    async def main() -> None:
        transport = AsyncTransport(URL, desk.broker)
        turns: list[int] = []

        async def other() -> None:
            for turn in range(3):
                turns.append(turn)
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        while len(turns) < 3:
            await transport.call(Request(("PING",)), LONG_S)
        await task

    run(main)


def test_many_async_calls_run_in_order_with_their_errors_in_place(desk: Desk) -> None:
    async def main() -> None:
        transport = AsyncTransport(URL, desk.broker)
        argvs = [("SET", "a", "1"), ("XLEN", "a")] + [("INCR", "a")] * 100
        replies = await transport.call_many([Request(argv) for argv in argvs], LONG_S)
        assert replies[0] == b"OK" and isinstance(replies[1], WrongType) and replies[-1] == 101
        assert await transport.call_many([], LONG_S) == []

    run(main)


def test_a_memory_limit_does_not_cost_a_line_for_each_call(desk: Desk) -> None:
    desk("CONFIG", "SET", "maxmemory", "100mb")
    first = desk("CLIENT", "ID")

    assert desk("SET", "k", "v") == b"OK"
    assert desk("CLIENT", "ID") == first
    desk("SUBSCRIBE", "news")
    assert desk("CLIENT", "ID") != first
