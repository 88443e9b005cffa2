"""A delegated consumer: it is given the first message of a key, handles it, and acknowledges it.

    async def handle(message: OrderedMessage) -> None: ...

    async with OrderedConsumer(handle, master="http://localhost:7381"):
        ...                                       # or OrderedConsumer(handle, url="redis://localhost")

Messages of one key come one after the other, in stream order; those of different keys run at the same time, up to the
capacity. An exception is a failed attempt: the key waits and the message comes again. With `master=` everything goes
through the coordinator; with `url=` straight to the broker. Neither polls: idle, it calls once a second at most.
"""

import asyncio
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from headrace.app.retries import Retries
from headrace.client.flows import unique_consumer_name
from headrace.client.lane_keys import Settings
from headrace.client.times import Duration, parse_duration_ms
from headrace.errors import CommandError, ConfigError, ConnectionLost, Fenced, HeadraceError, NoLanes, NotFound
from headrace.ordered.bodies import MOST_CAPACITY
from headrace.ordered.consumer_settings import ConsumerSettings, addresses_of, find_settings
from headrace.ordered.delegated_message import NotRegistered, Source, Superseded
from headrace.ordered.master_settings import KEY_FIELD
from headrace.ordered.running import Handler, Runner
from headrace.ordered.through_broker import ThroughBroker
from headrace.worker import events
from headrace.worker.outage import REFUSED_PAUSE_S, Outage

if TYPE_CHECKING:
    from headrace.ordered.serving import Serving

HEALTH_PORT: Final = 7382
GIVE_BACK_S: Final = 5.0


class OrderedConsumer:
    """Handles messages in order per key, by the master-consumers pattern."""

    def __init__(
        self,
        handler: Handler,
        *,
        master: str | None = None,
        url: str | None = None,
        name: str | None = None,
        stream: str | None = None,
        group: str | None = None,
        key_field: str = KEY_FIELD,
        capacity: int = 10,
        token: str = "",
        retries: Retries | None = None,
        host: str = "127.0.0.1",
        port: int | None = None,
        health_url: str | None = None,
        shutdown_timeout: Duration = "30s",
        settings: ConsumerSettings | None = None,
        delete: bool = False,
    ) -> None:
        if not 1 <= capacity <= MOST_CAPACITY:
            raise ConfigError(f"capacity is {capacity}; give a number from 1 to {MOST_CAPACITY}.")
        given = {"consumer": name, "ticket_stream": stream, "concurrency_stream_group": group, **addresses_of(master)}
        found = settings or find_settings(given)
        self.name = found.consumer or unique_consumer_name()
        self.capacity = capacity
        self.source = make_source(self.name, found, url, token, key_field, keep=not delete)
        self.runner = Runner(handler, self.source, capacity, retries or Retries())
        self.place = (host, port)
        self.health_url = health_url
        self.shutdown_s = parse_duration_ms(shutdown_timeout, "shutdown_timeout") / 1000
        self.serving: Serving | None = None
        self.outage = Outage("broker" if self.source.takes else "coordinator")
        self.lease_s = 0.0
        self.contact_s = 0.0  # When the source last answered.
        self.has_given_up = False  # What was running, since nobody answered.
        self.started_s = time.monotonic()
        self.loops: list[asyncio.Task[None]] = []
        self.ending = asyncio.Event()

    def __repr__(self) -> str:
        return f"OrderedConsumer({self.name!r})"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.finish()

    # Beginning

    async def start(self) -> None:
        try:
            self.serve_health()
            await self.register()
        except BaseException:
            await self.close()
            raise
        self.loops = [asyncio.ensure_future(self.fetch()), asyncio.ensure_future(self.keep())]
        events.info("consumer_started", consumer=self.name, capacity=self.capacity)

    def serve_health(self) -> None:
        host, port = self.place
        if port is None:
            return
        from headrace.ordered.consumer_health import health_app
        from headrace.ordered.serving import Serving
        from headrace.ordered.web_extra import check_web

        check_web()
        self.serving = Serving(health_app(self.facts), host, port, "--port for its health")
        self.health_url = self.health_url or f"{self.serving.url}/api/health"
        self.serving.start()

    def facts(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "status": "ok",
            "uptime_s": round(time.monotonic() - self.started_s, 3),
            "held": [message.key for message in self.runner.messages.values()],
            "done": self.runner.done,
            "failed": self.runner.failed,
            "refused": self.runner.refused,
        }

    async def register(self) -> None:
        """As often as it takes; raises what no waiting can heal."""
        while True:
            try:
                lease_ms = await self.source.register(self.capacity, self.health_url or "")
            except ConnectionLost as error:
                await self.outage.pause(error)
                continue
            self.lease_s = lease_ms / 1000
            self.answered()
            return

    def answered(self) -> None:
        self.contact_s = time.monotonic()
        self.outage.over()

    # Two loops

    async def fetch(self) -> None:
        """New messages, as long as there is room for them."""
        runner = self.runner
        while not self.ending.is_set():
            room = self.capacity - len(runner.messages)
            if self.source.takes and room <= 0:
                runner.changed.clear()
                await runner.changed.wait()
                continue
            sent_s = time.monotonic()
            try:
                if self.has_given_up:
                    await self.register()  # Frees all that the session before held.
                    self.has_given_up = False
                fetched = await self.source.fetch(room, list(runner.messages.values()))
            except HeadraceError as error:
                await self.heal(error)
                continue
            except Superseded:
                events.error("name_taken_over", consumer=self.name)
                runner.lose_all()
                raise
            self.outage.over()
            if not self.source.takes:  # The question was a sign of life, and the coordinator extends.
                self.contact_s = max(self.contact_s, sent_s)
            for fence in fetched.lost:
                runner.lose(fence)
            for message in fetched.messages:
                runner.begin(message)

    async def keep(self) -> None:
        """Hold what is running. Without any answer for a lease, it may be somebody else's: it is given up.

        And it may still be ours, by the broker: then nobody else would ever get it. So a new session follows.
        """
        while True:
            await asyncio.sleep(self.lease_s / 3)
            sent_s = time.monotonic()
            try:
                if self.source.takes:
                    async with asyncio.timeout(self.lease_s / 2):  # A broker that hangs must not hold this up too.
                        lost = await self.source.keep(list(self.runner.messages.values()))
                    self.contact_s = max(self.contact_s, sent_s)
                    for fence in lost:
                        self.runner.lose(fence)
            except (HeadraceError, TimeoutError):
                pass  # The other loop meets it too.
            if self.runner.messages and time.monotonic() - self.contact_s > self.lease_s:
                self.runner.lose_all()
                self.has_given_up = True

    async def heal(self, error: HeadraceError) -> None:
        if isinstance(error, ConnectionLost):
            await self.outage.pause(error)
            return
        if is_forgotten(error):
            events.warning("registering_again", consumer=self.name, after=error)
            self.runner.lose_all()
            try:
                await self.register()
                return
            except HeadraceError as failure:
                error = failure
        events.error("call_refused", consumer=self.name, error=error)
        await asyncio.sleep(REFUSED_PAUSE_S)

    # The end

    async def run(self) -> None:
        """Until stop() is called. Raises when another process has registered under the name."""
        ended = asyncio.ensure_future(self.ending.wait())
        starting = asyncio.ensure_future(self.start())  # Which may wait for a coordinator that is not there.
        done: set[asyncio.Future[Any]] = set()
        try:
            await asyncio.wait({ended, starting}, return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                starting.result()
                done, _ = await asyncio.wait({ended, *self.loops}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended.cancel()
            starting.cancel()
            await asyncio.wait({starting})
            await self.finish()
        for loop in done - {ended}:
            try:
                loop.result()  # A loop never ends by itself: this raises.
            except Superseded as error:
                raise ConfigError(
                    f"another process has registered as {self.name!r}, so this one ended. Give each its own name."
                ) from error

    def stop(self) -> None:
        self.ending.set()

    async def finish(self) -> None:
        self.ending.set()
        fetching, keeping = self.loops or (None, None)
        if fetching is not None:
            fetching.cancel()
            await asyncio.gather(fetching, return_exceptions=True)
        await self.runner.finish(self.shutdown_s)
        if keeping is not None:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
            try:
                async with asyncio.timeout(GIVE_BACK_S):
                    await self.source.leave()
            except (HeadraceError, TimeoutError) as error:
                events.warning("not_given_back", error=repr(error))  # The leases end by themselves.
        self.loops = []
        await self.close()

    async def close(self) -> None:
        if self.serving is not None:
            await self.serving.stop()
            self.serving = None
        await self.source.close()


def is_forgotten(error: HeadraceError) -> bool:
    """Whether registering again, with the settings that the group has by now, mends it."""
    if isinstance(error, (Fenced, NotRegistered, NoLanes, NotFound)):
        return True
    return isinstance(error, CommandError) and error.prefix == "MAPS"


def make_source(
    name: str, found: ConsumerSettings, url: str | None, token: str, key_field: str, *, keep: bool
) -> Source:  # fmt: skip
    if found.master_register_api_url or found.master_acknowledge_api_url:
        from headrace.ordered.through_master import ThroughMaster
        from headrace.ordered.web_extra import check_web

        check_web()
        addresses = (found.master_register_api_url, found.master_acknowledge_api_url)
        return ThroughMaster(name, *addresses, token, found.ticket_stream)
    settings = Settings((key_field,))
    return ThroughBroker(
        name, url, found.ticket_stream, found.concurrency_stream_group, settings, keep=keep
    )  # fmt: skip
