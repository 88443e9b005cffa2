"""Threads that run plain functions: side by side, told together, and gone at the end."""

import asyncio
import threading

import pytest

from headrace.worker.threads import THREAD_NAME, Threads

PATIENCE_S = 30


def nothing() -> bool:
    return False


def names():
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(THREAD_NAME)]


def test_calls_run_side_by_side_however_fast_they_come():
    together = threading.Barrier(4)

    async def program():
        threads = Threads("test", 4, nothing)
        await asyncio.gather(*[threads.submit(lambda: together.wait(PATIENCE_S)) for _ in range(4)])
        await asyncio.gather(*[threads.submit(lambda: together.wait(PATIENCE_S)) for _ in range(4)])
        threads.close()

    asyncio.run(program())


def test_no_more_run_at_once_than_there_are_threads():
    most, running, lock = 0, 0, threading.Lock()

    def work() -> None:
        nonlocal most, running
        with lock:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.001)
        with lock:
            running -= 1

    async def program():
        threads = Threads("test", 3, nothing)
        await asyncio.gather(*[threads.submit(work) for _ in range(50)])
        threads.close()

    asyncio.run(program())
    assert most <= 3


def test_errors_reach_who_waits_even_those_that_are_no_exception():
    async def program():
        threads = Threads("test", 1, nothing)
        with pytest.raises(SystemExit, match="7"):
            await threads.submit(lambda: exec("raise SystemExit(7)"))
        assert await threads.submit(lambda: 8) == 8
        threads.close()

    asyncio.run(program())


def test_free_threads_find_work_and_tell_it_in_one_go():
    """A thousand endings need a few looks of the loop, as it is busy meanwhile."""
    work = list(range(1000))
    seen = []
    looks = 0

    async def program():
        nonlocal looks
        all_done = asyncio.Event()

        def ended(number, _):
            seen.append(number)
            if len(seen) == 1000:
                all_done.set()

        def find_work() -> bool:
            try:
                number = work.pop()
            except IndexError:
                return False
            threads.tell((ended, number, None))
            return True

        threads = Threads("test", 4, find_work)
        take_ended = threads.take_ended

        def counted():
            nonlocal looks
            looks += 1
            take_ended()

        threads.take_ended = counted
        threads.wake(1000)
        while work:
            pass  # The loop has no time.
        await all_done.wait()
        threads.close()

    asyncio.run(program())
    assert sorted(seen) == list(range(1000))
    assert looks <= 5


def test_threads_end_with_their_pool():
    async def program():
        threads = Threads("ending", 3, nothing)
        await threads.submit(lambda: None)
        assert any("ending" in name for name in names())
        threads.close()

    asyncio.run(program())
    assert not any("ending" in name for name in names())


def test_what_was_given_up_before_it_began_does_not_run():
    begun, may_end, ran = threading.Event(), threading.Event(), []

    def hold() -> None:
        begun.set()
        may_end.wait(PATIENCE_S)

    async def program():
        threads = Threads("test", 1, nothing)
        first = threads.submit(hold)
        given_up = threads.submit(lambda: ran.append("given up"))
        last = threads.submit(lambda: ran.append("last"))
        await asyncio.to_thread(begun.wait, PATIENCE_S)
        given_up.cancel()
        may_end.set()
        await asyncio.gather(first, last)
        threads.close()

    asyncio.run(program())
    assert ran == ["last"]
