"""The coordinator as a service: its loops, its HTTP server, its beginning and its end.

    async with Master("redis://localhost", MasterSettings()) as master:
        print(master.url)

Everything it knows is on the broker. Start as many as you like, kill any of them; consumers go on with another one.
"""

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Final, Self

from headrace.client import lane_steps, requests
from headrace.client.async_client import AsyncClient
from headrace.client.flows import unique_consumer_name
from headrace.client.requests import Request
from headrace.errors import ConfigError, ConnectionLost, HeadraceError, NoLanes, NotFound, WrongType
from headrace.ordered.api import Api
from headrace.ordered.coordinator import Coordinator
from headrace.ordered.delegating import Delegator
from headrace.ordered.guard import Guard
from headrace.ordered.keeping import Keeper
from headrace.ordered.master_settings import MasterSettings
from headrace.ordered.refusal import Refusal
from headrace.ordered.roster import Roster
from headrace.ordered.serving import Serving
from headrace.ordered.views import Views
from headrace.worker import events
from headrace.worker.outage import REFUSED_PAUSE_S, Outage

ANSWER_S: Final = 5.0  # A broker that has not answered by then counts as lost.


class Master:
    def __init__(self, url: str | None, settings: MasterSettings, *, may_host: bool = True) -> None:
        self.settings = settings
        self.order = settings.order
        self.name = unique_consumer_name()
        self.client = AsyncClient(url, timeout=ANSWER_S, may_host=may_host)
        self.roster = Roster(settings.lanes.lease_ms)
        self.delegator = Delegator(self.client, self.order, self.roster)
        self.keeper = Keeper(self.client, settings, self.roster)
        self.coordinator = Coordinator(self.client, settings, self.roster, self.delegator)
        views = Views(self.client, self.order, self.roster)
        api = Api(self.coordinator, views, self.health, Guard(settings.token, settings.host))
        self.serving = Serving(api.app(), settings.host, settings.port, "--port")
        self.outage = Outage()
        self.loops: list[asyncio.Task[None]] = []
        self.ending = asyncio.Event()
        self.started_s = time.monotonic()

    def __repr__(self) -> str:
        return f"Master({self.url!r})"

    @property
    def url(self) -> str:
        return self.serving.url

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.finish()

    async def start(self) -> None:
        try:
            await self.set_up()
        except BaseException:
            await self.finish()
            raise
        self.loops = [
            asyncio.ensure_future(self.repeat(self.delegate, lambda: 0.0)),
            asyncio.ensure_future(self.repeat(self.keeper.ask_all, lambda: self.keeper.ask_s)),
            asyncio.ensure_future(self.repeat(self.keeper.extend_all, lambda: self.keeper.extend_s)),
        ]
        self.serving.start()
        events.info("master_started", url=self.url, broker=self.client.url, stream=self.order.stream)

    async def set_up(self) -> None:
        """The group, from the beginning of the stream if it is new, and how it is ordered. Again: nothing changes."""
        try:
            await self.client.run(lane_steps.set_up(self.client._facts, self.order))
        except WrongType:
            await self.check_maps()
            raise

    async def check_maps(self) -> None:
        """Their names are short ones, which others may have used."""
        for key, option in ((self.order.tickets, "--tickets"), (self.order.consumers, "--consumers")):
            kind = await self.client.run(requests.key_type(key).run())
            if kind not in ("hash", "none"):
                raise ConfigError(
                    f"{key!r} on the broker is a {kind}, and the coordinator keeps a hash under this name. Give it "
                    f"another one: {option}."
                )

    async def delegate(self) -> None:
        is_drained = await self.delegator.round()
        self.outage.over()
        await self.delegator.wait(is_drained=is_drained)

    async def repeat(self, work: Callable[[], Awaitable[None]], pause_s: Callable[[], float]) -> None:
        """Whatever the broker answers, it goes on: a missing group is made, everything else may pass."""
        while True:
            try:
                await work()
                await asyncio.sleep(pause_s())
            except (NotFound, NoLanes) as error:
                await self.mend(error)
            except ConnectionLost as error:
                await self.outage.pause(error)
            except HeadraceError as error:
                events.error("call_refused", stream=self.order.stream, error=error)
                await asyncio.sleep(REFUSED_PAUSE_S)

    async def mend(self, error: HeadraceError) -> None:
        try:
            await self.set_up()
            events.warning("group_made", stream=self.order.stream, group=self.order.group, after=error)
        except ConnectionLost as failure:
            await self.outage.pause(failure)
        except HeadraceError as failure:
            events.error("call_refused", stream=self.order.stream, error=failure)
            await asyncio.sleep(REFUSED_PAUSE_S)

    async def health(self) -> dict[str, Any]:
        """503 while the broker is away: whoever asks can go to another coordinator only if its broker is another."""
        until = self.order.keys[3]
        try:
            held = await self.client.run(Request(("ZCARD", until), requests.number, until, is_repeatable=True).run())
        except HeadraceError as error:
            raise Refusal(503, str(error), "Wait: the coordinator reaches its broker again by itself.") from error
        return {
            "name": self.name,
            "status": "ok",
            "stream": self.order.stream,
            "group": self.order.group,
            "uptime_s": round(time.monotonic() - self.started_s, 3),
            "held_or_waiting": held,
            "given": self.delegator.given,
        }

    async def finish(self) -> None:
        for loop in self.loops:
            loop.cancel()
        await asyncio.gather(*self.loops, return_exceptions=True)
        await self.delegator.stop()
        await self.serving.stop()
        await self.coordinator.settler.stop()
        await self.keeper.caller.close()
        await self.client.close()

    # Alone in a process

    async def run(self, tell: Callable[[str], None] = lambda _: None) -> None:
        """Until stop() is called. Raises what no waiting can heal."""
        async with self:
            tell(f"listening on {self.url}")
            ended = asyncio.ensure_future(self.ending.wait())
            watched = {ended, *self.loops} | ({self.serving.task} if self.serving.task else set())
            done, _ = await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
            ended.cancel()
            for one in done - {ended}:
                one.result()  # None of them ends by itself: this raises.

    def stop(self) -> None:
        self.ending.set()


async def run_master(url: str | None, settings: MasterSettings, tell: Callable[[str], None]) -> None:
    """Until SIGTERM or Ctrl-C."""
    master = Master(url, settings)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, master.stop)
    await master.run(tell)
