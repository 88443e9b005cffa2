"""Many callers at once, and callers that go away: every reply reaches the one who asked, or nobody."""

import asyncio
import contextlib
import random
import threading

import pytest

from headrace import AsyncClient, Client

ENTRIES = 500
WORKERS = 40


class Tally:
    def __init__(self) -> None:
        self.cancelled = 0
        self.answered = 0
        self.wrong: list[object] = []


async def ask(stream, number):
    """A call whose right answer is known; whether that answer came."""
    kind = number % 4
    if kind == 0:
        entry = await stream.get(f"{number + 1}-0")
        return entry.fields == {"n": str(number)}
    if kind == 1:
        return await stream.client.command("ECHO", f"echo-{number}") == b"echo-%d" % number
    if kind == 2:
        entries = await stream.range(f"{number + 1}-0", count=3)
        return [entry.id for entry in entries] == [f"{n}-0" for n in range(number + 1, min(number + 4, ENTRIES + 1))]
    async with contextlib.aclosing(stream.follow(start=f"{number + 1}-0", page=1)) as entries:
        entry = await anext(entries)
    return entry.fields == {"n": str(number)}


async def work(stream, chance, tally, goal):
    while tally.cancelled < goal:
        number = chance.randrange(ENTRIES)
        task = asyncio.ensure_future(ask(stream, number))
        if chance.random() < 0.8:
            for _ in range(chance.randrange(6)):
                await asyncio.sleep(0)
            if chance.random() < 0.3:
                await asyncio.sleep(chance.random() / 500)
            task.cancel()
        try:
            is_right = await task
        except asyncio.CancelledError:
            tally.cancelled += 1
            continue
        tally.answered += 1
        if not is_right:
            tally.wrong.append(number)


async def cancel_many(url, name, goal):
    tally = Tally()
    seed = random.randrange(2**32)
    async with AsyncClient(url) as client:
        stream = client.stream(name)
        for number in range(ENTRIES):
            await stream.add({"n": number}, id=f"{number + 1}-0")
        await asyncio.gather(*(work(stream, random.Random(seed + n), tally, goal) for n in range(WORKERS)))
        assert await stream.length() == ENTRIES
    assert tally.wrong == [], f"seed {seed}"
    assert tally.cancelled >= goal and tally.answered > 0
    return tally


def test_3_000_cancelled_calls_leave_no_reply_to_the_wrong_caller(url, name):
    asyncio.run(cancel_many(url, name, 3_000))


@pytest.mark.long
def test_100_000_cancelled_calls_leave_no_reply_to_the_wrong_caller(url, name):
    asyncio.run(cancel_many(url, name, 100_000))


def test_a_cancelled_call_ends_whatever_it_was_about_to_do(url, name):
    """While it connects, sends or waits: a cancellation is never lost."""

    async def session():
        chance = random.Random(7)
        async with AsyncClient(url) as client:
            group = client.stream(name).group("billing")
            await group.create()
            for _ in range(150):
                task = asyncio.ensure_future(group.read("ann", wait="10m"))
                await asyncio.sleep(chance.random() / 150)
                task.cancel()
                done, _ = await asyncio.wait([task], timeout=30)
                assert done and task.cancelled()

    asyncio.run(session())


def test_an_entry_that_meets_a_cancelled_read_is_not_lost(url, name):
    """The server may give it to the one who has just left. Then it is pending there, else the next one gets it."""

    async def session():
        async with AsyncClient(url) as client:
            stream, group = client.stream(name), client.stream(name).group("billing")
            await group.create()
            for number in range(20):
                task = asyncio.ensure_future(group.read("ann", wait="30s"))
                await asyncio.sleep(0.005)
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
                entry_id = await stream.add({"n": number})
                taken = await group.read("bob")
                late = await group.history("ann")
                assert [entry.id for entry in taken + late] == [entry_id]
                await group.ack(entry_id)

    asyncio.run(session())


def test_200_tasks_share_one_client(url, name):
    async def one(stream, number):
        for turn in range(5):
            assert await stream.client.command("ECHO", f"{number}-{turn}") == f"{number}-{turn}".encode()
            await stream.add({"n": number})

    async def session():
        async with AsyncClient(url) as client:
            stream = client.stream(name)
            await asyncio.gather(*(one(stream, number) for number in range(200)))
            return await stream.length()

    assert asyncio.run(session()) == 1_000


def test_sixty_followers_leave_room_for_others(url, name):
    """Calls that wait do not keep ordinary ones from a connection."""

    async def session():
        async with AsyncClient(url, timeout="20s") as client:
            stream = client.stream(name)

            async def first() -> str:
                async for entry in stream.follow(start="beginning"):
                    return entry.id
                raise AssertionError("follow ended")

            followers = [asyncio.ensure_future(first()) for _ in range(60)]
            await asyncio.sleep(0.05)
            entry_id = await stream.add({"n": 1})
            assert await asyncio.gather(*followers) == [entry_id] * 60

    asyncio.run(session())


def test_32_threads_share_one_client(url, name):
    problems: list[object] = []

    with Client(url) as client:
        stream = client.stream(name)

        def one(number: int) -> None:
            try:
                for turn in range(20):
                    assert client.command("ECHO", f"{number}-{turn}") == f"{number}-{turn}".encode()
                    entry_id = stream.add({"n": number})
                    assert stream.get(entry_id).fields == {"n": str(number)}
            except BaseException as error:
                problems.append(error)

        threads = [threading.Thread(target=one, args=(number,)) for number in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert problems == []
        assert stream.length() == 640
