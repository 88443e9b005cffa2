"""Worker: all handlers of an App at work in one process.

    async with app.worker():            # inside a program of one's own
        ...

    app.run()                           # or alone, until SIGTERM or Ctrl-C

At the end nothing more is read; handlers that run get shutdown_timeout to finish; everything else is given back, free
for other workers at once.
"""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Final, Self

from headrace.app.app import SHUTDOWN_TIMEOUT, App
from headrace.client.async_client import AsyncClient
from headrace.client.flows import unique_consumer_name
from headrace.client.times import Duration, parse_duration_ms
from headrace.errors import ConfigError
from headrace.worker import events
from headrace.worker.consumer import Consumer
from headrace.worker.counters import Counters
from headrace.worker.housekeeping import Housekeeper
from headrace.worker.leases import Holder, LeaseKeeper
from headrace.worker.ordered_consumer import OrderedConsumer
from headrace.worker.outage import Outage
from headrace.worker.providing import make_values, values_for
from headrace.worker.threads import THREAD_NAME

ANSWER_S: Final = 5.0  # A broker that has not answered by then counts as lost, and is asked again.
GIVE_BACK_S: Final = 5.0  # For settling and giving back at the end, when the broker is slow or away.


class Worker:
    """One process' work for an App."""

    def __init__(self, app: App, *, shutdown_timeout: Duration = SHUTDOWN_TIMEOUT) -> None:
        if not app.handlers:
            raise ConfigError("this app has no handlers: there is nothing to work on. Declare one with @app.handler.")
        self.app = app
        self.shutdown_s = parse_duration_ms(shutdown_timeout, "shutdown_timeout") / 1000
        self.name = unique_consumer_name()
        self.consumers: list[Consumer | OrderedConsumer] = []
        self.ending = asyncio.Event()
        self.hurrying = asyncio.Event()
        self.stack = AsyncExitStack()
        self.outage = Outage()
        self.leases: LeaseKeeper | None = None
        self.housekeeper: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"Worker({self.name!r})"

    @property
    def counters(self) -> dict[tuple[str, str], Counters]:
        """By stream and group."""
        return {(one.handler.stream, one.handler.group): one.runner.counters for one in self.consumers}

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:  # Cancelled, perhaps, when half of it ran already.
            await self.finish()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.finish()

    async def run(self) -> None:
        """Until stop() is called, or something happens that no waiting can heal."""
        ended = asyncio.ensure_future(self.ending.wait())
        starting = asyncio.ensure_future(self.start())  # Which may wait for a broker that is not there.
        done: set[asyncio.Future[Any]] = set()
        try:
            await asyncio.wait({ended, starting}, return_when=asyncio.FIRST_COMPLETED)
            if not starting.done():
                starting.cancel()
                await asyncio.wait({starting})
                return
            starting.result()
            loops = [loop for consumer in self.consumers for loop in consumer.loops]
            done, _ = await asyncio.wait({ended, *loops}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended.cancel()
            await self.finish()
        for loop in done - {ended}:
            loop.result()  # A loop never ends by itself: this raises.

    def stop(self) -> None:
        """End run(), in good order. Called again, it waits for no handler any more."""
        if self.ending.is_set():
            self.hurrying.set()
        self.ending.set()

    # Beginning and end

    async def start(self) -> None:
        try:
            client = AsyncClient(self.app.url, timeout=ANSWER_S, may_host=self.app.may_host)
            self.stack.push_async_callback(client.close)
            values = await make_values(self.app, self.stack)
            for handler in self.app.handlers:
                for_handler = values_for(handler, self.app, values)
                kind = Consumer if handler.key is None else OrderedConsumer
                self.consumers.append(kind(self.app, handler, client, self.name, self.outage, for_handler))
            for consumer in self.consumers:
                await consumer.prepare()
        except BaseException:
            await self.stack.aclose()
            raise
        holders: list[Holder] = [holder for consumer in self.consumers for holder in consumer.sources]
        self.leases = LeaseKeeper(self.app.url, holders, may_host=self.app.may_host)
        self.leases.start()
        await asyncio.to_thread(self.leases.ready.wait, ANSWER_S)
        for consumer in self.consumers:
            consumer.start()
            for loop in consumer.loops:
                loop.add_done_callback(tell_failure)
        self.housekeeper = asyncio.ensure_future(Housekeeper(self.app, self.consumers, client, self.name).run())
        events.info("worker_started", worker=self.name, url=client.url, handlers=len(self.consumers))

    async def finish(self) -> None:
        if self.leases is None:
            return
        if self.housekeeper is not None:
            self.housekeeper.cancel()
        await asyncio.gather(*[consumer.stop_reading() for consumer in self.consumers])
        tasks = self.tasks()
        late = await self.let_finish(tasks) if tasks else set()
        await self.give_back()
        hooks = self.tasks() - late  # Of what was settled at the very end.
        if hooks:
            await asyncio.wait(hooks, timeout=GIVE_BACK_S)
        self.end_threads()
        leases, self.leases = self.leases, None
        await asyncio.to_thread(leases.stop)
        await self.stack.aclose()
        await self.app.close_if_idle()
        total = Counters()
        for counters in self.counters.values():
            for name in Counters.__slots__:
                setattr(total, name, getattr(total, name) + getattr(counters, name))
        events.info("worker_ended", worker=self.name, **{name: getattr(total, name) for name in Counters.__slots__})

    def tasks(self) -> set[asyncio.Task[None]]:
        return {task for consumer in self.consumers for task in consumer.runner.tasks}

    async def give_back(self) -> None:
        """What is not given back is taken over by others when its lease has run out."""
        giving = [asyncio.ensure_future(consumer.give_back()) for consumer in self.consumers]
        _, late = await asyncio.wait(giving, timeout=GIVE_BACK_S)
        for task in late:
            task.cancel()
        for task, result in zip(giving, await asyncio.gather(*giving, return_exceptions=True), strict=True):
            if isinstance(result, BaseException):
                events.warning("not_given_back", error="too slow" if task in late else repr(result))

    async def let_finish(self, tasks: set[asyncio.Task[None]]) -> set[asyncio.Task[None]]:
        """Handlers that run get their time, unless somebody is in a hurry; the others are cancelled, and come back."""
        all_done = asyncio.ensure_future(asyncio.wait(tasks, timeout=self.shutdown_s))
        hurrying = asyncio.ensure_future(self.hurrying.wait())
        await asyncio.wait({all_done, hurrying}, return_when=asyncio.FIRST_COMPLETED)
        for waiter in (all_done, hurrying):
            waiter.cancel()
        late = {task for task in tasks if not task.done()}
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=GIVE_BACK_S)
        return late

    def end_threads(self) -> None:
        for consumer in self.consumers:
            for settler in consumer.runner.settlers.values():
                for task in settler.tasks:
                    task.cancel()
            if consumer.runner.pool is not None:
                consumer.runner.pool.close()


def tell_failure(loop: "asyncio.Task[None]") -> None:
    """A loop never ends by itself. Inside a program of one's own nobody waits for it, and its handler stands still."""
    if not loop.cancelled() and loop.exception() is not None:
        events.error("loop_failed", error=repr(loop.exception()))


def run_until_told(app: App, *, shutdown_timeout: Duration = SHUTDOWN_TIMEOUT) -> None:
    """Run a worker in this process until SIGTERM or Ctrl-C."""
    run_loop(work(app, shutdown_timeout, watches_stdin=False))


def run_as_child(app: App, shutdown_timeout: Duration) -> None:
    """The same for a process of a supervisor: the end of its stdin is the end of that one."""
    run_loop(work(app, shutdown_timeout, watches_stdin=True))


def run_loop(coroutine: Coroutine[Any, Any, None]) -> None:
    """On uvloop where it is installed: a fifth less work per message (bench/worker.py)."""
    with asyncio.Runner(loop_factory=find_loop_factory()) as runner:
        runner.run(coroutine)
    end_now_if_threads_hang()


def find_loop_factory() -> Any:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def work(app: App, shutdown_timeout: Duration, *, watches_stdin: bool) -> None:
    worker = Worker(app, shutdown_timeout=shutdown_timeout)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, worker.stop)
    if watches_stdin:
        loop.add_reader(sys.stdin.fileno(), worker.stop)  # Nothing is ever written to it: readable means closed.
    try:
        await worker.run()
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
        if watches_stdin:
            loop.remove_reader(sys.stdin.fileno())


def end_now_if_threads_hang() -> None:
    """A plain function that outlived its shutdown timeout would keep the process from ending: its message went back."""
    if any([thread.name.startswith(THREAD_NAME) for thread in threading.enumerate()]):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
