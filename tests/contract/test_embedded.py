"""`embedded:` through the client: threads, tasks, cancellation, fork."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from headrace.client.async_client import AsyncClient
from headrace.client.client import Client
from headrace.errors import ClientClosed, NotFound, WrongType
from headrace.server.inprocess_broker import shared_broker
from support.servers import wait_until

LONG_S = 60


@pytest.fixture
def client() -> Iterator[Client]:
    with Client("embedded:") as made:
        yield made


@pytest.fixture
def name() -> str:
    """A stream of the test's own: the broker lives as long as the process."""
    return f"orders-{uuid.uuid4().hex}"


def until_waiting(count: int) -> None:
    wait_until(lambda: len(shared_broker().waiting) == count, f"{count} waiting calls")


def test_every_client_of_the_process_sees_the_same_data(client: Client, name: str) -> None:
    client.stream(name).add({"item": "tea"})

    async def read() -> list[str]:
        async with AsyncClient("embedded:") as other:
            return [entry.fields["item"] for entry in await other.stream(name).range()]

    assert asyncio.run(read()) == ["tea"]
    with Client("embedded:") as other:
        assert other.stream(name).length() == 1
    assert client.stream(name).length() == 1


def test_a_group_works_through_a_stream(client: Client, name: str) -> None:
    stream = client.stream(name)
    group = stream.group("billing")
    assert group.create("beginning")
    ids = stream.add_many({"number": number} for number in range(2500))

    seen: list[str] = []
    while entries := group.read("ann", count=100):
        seen += [entry.id for entry in entries]
        assert group.ack(*[entry.id for entry in entries]) == len(entries)

    assert seen == ids
    assert group.pending() == []


def test_what_is_refused_has_an_exception_of_its_kind(client: Client, name: str) -> None:
    client.command("SET", name, "text")

    with pytest.raises(WrongType):
        client.stream(name).length()
    with pytest.raises(NotFound):
        client.stream(name + "-other").group("billing").read("ann")


def test_a_waiting_reader_is_woken_by_another_thread(client: Client, name: str) -> None:
    group = client.stream(name).group("billing")
    group.create()
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(group.read, "ann", wait="60s")
        until_waiting(1)

        added = client.stream(name).add({"item": "tea"})

        assert [entry.id for entry in answer.result(LONG_S)] == [added]


def test_an_entry_left_by_a_silent_consumer_is_given_to_one_who_waits(client: Client, name: str) -> None:
    group = client.stream(name).group("billing")
    group.create("beginning")
    added = client.stream(name).add({"item": "tea"})
    group.read("ann")

    entries = group.read("bob", wait="60s", claim_idle="50ms")

    assert [entry.id for entry in entries] == [added]
    assert [pending.consumer for pending in group.pending()] == ["bob"]


def test_fifty_threads_share_out_a_stream_with_nothing_lost_or_given_twice(client: Client, name: str) -> None:
    stream = client.stream(name)
    group = stream.group("billing")
    group.create()
    total = 5000
    seen: list[str] = []
    done = threading.Event()

    def consume(number: int) -> None:
        while not done.is_set():
            entries = group.read(f"consumer-{number}", count=7, wait="50ms")
            group.ack(*[entry.id for entry in entries])
            seen.extend(entry.id for entry in entries)
            if len(seen) >= total:
                done.set()

    with ThreadPoolExecutor(max_workers=60) as pool:
        consumers = [pool.submit(consume, number) for number in range(50)]
        producers = [pool.submit(lambda: [stream.add({"a": "b"}) for _ in range(total // 10)]) for _ in range(10)]
        added = [entry_id for producer in producers for entry_id in producer.result(LONG_S)]
        for consumer in consumers:
            consumer.result(LONG_S)

    assert sorted(seen) == sorted(added)
    assert group.pending_summary().total == 0


def test_two_thousand_cancelled_reads_never_answer_somebody_else(name: str) -> None:
    async def main() -> None:
        async with AsyncClient("embedded:") as client:
            for turn in range(2000):
                waiting = asyncio.create_task(client.command("BLPOP", name, "0"))
                for _ in range(turn % 5):
                    await asyncio.sleep(0)
                if turn % 3 == 0:
                    await client.command("RPUSH", name, turn)
                waiting.cancel()
                await asyncio.gather(waiting, return_exceptions=True)
                assert await client.command("ECHO", str(turn)) == str(turn).encode()
            assert shared_broker().waiting == {}
            await client.command("DEL", name)

            taken = asyncio.create_task(client.command("BLPOP", name, "0"))
            await client.command("RPUSH", name, "last")
            assert await taken == [name.encode(), b"last"]

    asyncio.run(asyncio.wait_for(main(), LONG_S))


def test_a_reader_stops_when_its_client_is_closed(client: Client, name: str) -> None:
    other = Client("embedded:")
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(lambda: list(other.stream(name).follow("now")))
        until_waiting(1)

        other.close()

        with pytest.raises(ClientClosed):
            answer.result(LONG_S)
    assert shared_broker().waiting == {}


def test_a_forked_process_has_a_broker_of_its_own_and_old_clients_say_so() -> None:
    script = """
        import os, threading
        from headrace.client.client import Client
        from headrace.errors import ConfigError

        client = Client("embedded:")
        client.stream("orders").add({"item": "tea"})
        stop = threading.Event()
        def busy():
            while not stop.is_set():
                client.stream("orders").length()
        threads = [threading.Thread(target=busy, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(20):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    client.stream("orders").length()
                except ConfigError as error:
                    is_told = f"process {os.getppid()}" in str(error)
                    client.close()
                    orders = Client("embedded:").stream("orders")
                    code = 0 if is_told and orders.length() == 0 and orders.add({"a": "b"}) else 2
                finally:
                    os._exit(code)
            assert os.waitpid(child, 0)[1] == 0
        stop.set()
        for thread in threads:
            thread.join()
        assert client.stream("orders").length() == 1
        print("done")
    """
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=LONG_S
    )
    assert (result.stdout, result.stderr) == ("done\n", "")
