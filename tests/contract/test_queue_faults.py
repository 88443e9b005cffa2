"""Queues when somebody goes away: consumers that are killed or cancelled, servers that restart."""

import asyncio
import contextlib
import random
import signal
import subprocess
import sys
import threading

import pytest

from headrace import AsyncClient, Client, ConnectionLost
from support.deployments import KEEPS_EVERYTHING, Process, SentinelTrio, is_from_wheel, real_kinds
from support.servers import Server, present_kinds, wait_until

WAITING = 100


def kinds(*, ours: bool = False):
    """Valkey, and ours where asked for; every Redis in the long run."""
    found = [kind for kind in present_kinds() if kind.ours] if ours else []
    return [
        pytest.param(kind, marks=[] if kind.ours or is_from_wheel(kind) else [pytest.mark.long], id=kind.name)
        for kind in [*found, *real_kinds()]
    ]


# Consumers that go away


WAITER = "import sys; from headrace import Client; print(Client(sys.argv[1]).queue(sys.argv[2]).pop(wait='60s'))"


@pytest.mark.parametrize("kind", kinds(ours=True))
def test_a_consumer_that_is_killed_while_it_waits_swallows_nothing(kind, name):
    """Row 193."""
    with kind.start() as server, Client(f"redis://127.0.0.1:{server.port}") as client:
        dead = subprocess.Popen([sys.executable, "-c", WAITER, client.url, name])
        server.wait_until_blocked(1)
        dead.send_signal(signal.SIGKILL)
        dead.wait()
        server.wait_until_blocked(0)

        client.queue(name).push("x")

        assert [job.text for job in client.queue(name).pop()] == ["x"]


@pytest.mark.parametrize("kind", kinds(ours=True))
def test_of_100_that_wait_one_goes_away_and_no_element_is_swallowed(kind, name):
    with kind.start() as server:
        asyncio.run(kill_one_of_many(server, name))


async def kill_one_of_many(server: Server, name: str) -> None:
    url = f"redis://127.0.0.1:{server.port}"
    async with AsyncClient(url) as client, contextlib.AsyncExitStack() as stack:
        others = [await stack.enter_async_context(AsyncClient(url)) for _ in range(WAITING)]
        waiting = [asyncio.ensure_future(one.queue(name).pop(wait="60s")) for one in others]
        await asyncio.to_thread(wait_until, lambda: server.blocked_clients() >= WAITING, "all to wait")
        await others[0].close()
        with contextlib.suppress(Exception):
            await waiting[0]

        await client.queue(name).push(*range(WAITING - 1))
        taken = await asyncio.gather(*waiting[1:])

        assert sorted(int(job.body) for jobs in taken for job in jobs) == list(range(WAITING - 1))
        assert (await client.queue(name).info()).undelivered == 0


def test_an_element_that_meets_a_cancelled_pop_is_not_lost(url, name):
    """The server may give it to the one who has just left. Then it is delivered, and a recover finds it."""

    async def session():
        chance = random.Random(3)
        async with AsyncClient(url) as client:
            queue = client.queue(name)
            for number in range(40):
                task = asyncio.ensure_future(queue.pop(wait="30s"))
                await asyncio.sleep(chance.random() / 200)
                await queue.push(number)
                await asyncio.sleep(chance.random() / 500)
                task.cancel()
                try:
                    taken = await task
                except asyncio.CancelledError:
                    taken = []
                await settled(queue)
                found = taken or await queue.pop() or await queue.recover(idle=0)
                assert [int(job.body) for job in found] == [number]
                assert await found[0].ack()

    async def settled(queue):
        """What a cancelled call had sent is done when a later one on any connection sees the same twice."""
        before = None
        while (now := await queue.info()) != before:
            before = now
            await asyncio.sleep(0.005)

    asyncio.run(session())


# Servers that restart


@pytest.mark.parametrize("kind", kinds())
def test_a_restart_keeps_both_lists_counters_and_the_last_id(kind, open_url, name):
    """Row 210. The original module loses elements here."""
    with Process(kind, *KEEPS_EVERYTHING) as server:
        queue = open_url(server.url).queue(name)
        ids = queue.push(*range(10))
        held = queue.pop(count=6)
        held[1].nack()
        queue.recover(idle=0, count=2)
        held[5].ack()
        queue.ack(*(job.id for job in queue.pop()))  # The one that was given back.
        queue.pause("in")
        before = facts_of(queue)

        for how in (signal.SIGKILL, signal.SIGTERM):
            server.restart(how)
            assert facts_of(queue) == before

        queue.resume()
        [new] = queue.push("new")
        assert parts(new) > parts(ids[-1])
        assert [job.text for job in queue.pop(count=10)] == ["6", "7", "8", "9", "new"]


def facts_of(queue):
    pending = [(one.id, one.body, one.delivered_ms, one.deliveries) for one in queue.inspect(pending=True)]
    return queue.stats(), queue.inspect(), pending


def parts(element_id):
    return tuple(int(part) for part in element_id.split("-"))


@pytest.mark.parametrize("kind", kinds())
def test_jobs_are_done_while_the_server_restarts(kind, open_url, name):
    """Each at least once; none is left over."""
    count, restarts = 300, 2
    with Process(kind, *KEEPS_EVERYTHING) as server:
        queue = open_url(server.url).queue(name)
        queue.push(*range(count))
        done: list[int] = []
        stop = threading.Event()

        def work(worker):
            while not stop.is_set():
                with contextlib.suppress(ConnectionLost):
                    for job in worker.recover(idle="200ms", count=5) or worker.pop(count=5, wait="100ms"):
                        done.append(int(job.body))
                        job.ack()

        threads = [threading.Thread(target=work, args=(open_url(server.url).queue(name),)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for restart in range(1, restarts + 1):
            wait_until(lambda due=count * restart // (restarts + 1): len(set(done)) >= due, "some to be done")
            server.restart(signal.SIGKILL if restart % 2 else signal.SIGTERM)
        wait_until(lambda: (found := queue.info()).undelivered + found.delivered == 0, "all to be acknowledged")
        stop.set()
        for thread in threads:
            thread.join()
        assert sorted(set(done)) == list(range(count))


@pytest.mark.parametrize("kind", kinds())
def test_a_pop_that_waits_goes_on_after_a_restart(kind, open_url, name):
    with Process(kind, *KEEPS_EVERYTHING) as server:
        open_url(server.url).queue(name).push("first")
        got = []

        def wait_for_one(queue):
            while not got:
                with contextlib.suppress(ConnectionLost):
                    got.extend(queue.pop(wait="60s"))

        open_url(server.url).queue(name).pop()
        thread = threading.Thread(target=wait_for_one, args=(open_url(server.url).queue(name),))
        thread.start()
        server.restart(signal.SIGKILL)
        queue = open_url(server.url).queue(name)
        queue.push("second")
        thread.join(60)

        assert [job.text for job in got] == ["second"]
        assert queue.info().delivered == 2


@pytest.mark.long
@pytest.mark.parametrize("kind", kinds())
def test_a_queue_goes_on_after_a_failover(kind, open_url, name):
    with SentinelTrio(kind) as trio:
        queue = open_url(trio.url, timeout="60s").queue(name)
        ids = queue.push(*range(20))
        queue.pop(count=5)
        assert open_url(trio.url).command("WAIT", 1, 10_000) == 1
        trio.primary.end(signal.SIGKILL)
        wait_until(lambda: trio.primary_port() == trio.replica.port, "the failover", timeout_s=60)

        assert [one.id for one in queue.inspect(pending=True)] == ids[:5]
        assert [job.id for job in queue.pop(count=20)] == ids[5:]
