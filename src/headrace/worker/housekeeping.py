"""Housekeeping: what keeps streams and groups tidy, done by every worker now and then, harmless to do twice.

Names of consumers that did nothing for ten leases and hold nothing are removed. Entries that every group has
acknowledged are trimmed: those that `keep` has let stay for so long, those that others acknowledged without deleting
them, and those that only a group needed which is gone. Messages in the outbox go on to the streams of other slots they
are meant for.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from headrace.app.app import App
from headrace.client import flows, publish_flows, requests
from headrace.client.async_client import AsyncClient
from headrace.client.results import Entry, decode_text
from headrace.client.worker_keys import stream_keys
from headrace.errors import CommandError, ConnectionLost, HeadraceError
from headrace.worker import events
from headrace.worker.consumer import Consumer
from headrace.worker.ordered_consumer import OrderedConsumer
from headrace.worker.running import OUTBOX_TARGET

EVERY_S: Final = 1.0
IDLE_LEASES: Final = 10  # A consumer that was silent for so many leases is gone.
TRIM_EVERY_S: Final = 10.0
PAGE: Final = 100
HIGHEST_SEQUENCE: Final = 2**64 - 1


AnyConsumer = Consumer | OrderedConsumer


class Housekeeper:
    def __init__(self, app: App, consumers: Sequence[AnyConsumer], client: AsyncClient, name: str) -> None:
        self.app = app
        self.consumers = consumers
        self.client = client
        self.name = name
        self.outbox_filled = asyncio.Event()
        for consumer in consumers:
            consumer.runner.outbox_filled = self.outbox_filled

    async def run(self) -> None:
        next_trim_s = time.monotonic() + TRIM_EVERY_S
        while True:
            await self.wait()
            is_trimming = time.monotonic() >= next_trim_s
            if is_trimming:
                next_trim_s = time.monotonic() + TRIM_EVERY_S
            for consumer in self.consumers:
                try:
                    await self.tidy(consumer, is_trimming=is_trimming)
                except ConnectionLost:
                    break
                except Exception as error:  # Whatever it is, it must go on: the outbox is emptied here.
                    consumer.outage.refused(consumer.handler.stream, consumer.handler.group, error)

    async def wait(self) -> None:
        """A second; meanwhile, what comes into an outbox is sent on at once."""
        until_s = time.monotonic() + EVERY_S
        while (left_s := until_s - time.monotonic()) > 0:
            try:
                async with asyncio.timeout(left_s):
                    await self.outbox_filled.wait()
            except TimeoutError:
                return
            self.outbox_filled.clear()
            with suppress(HeadraceError):  # Told, and tried again, at the end of the second.
                await self.relay_all()

    async def relay_all(self) -> None:
        for consumer in self.consumers:
            if consumer.runner.is_cluster:
                await self.relay(consumer.handler.stream)

    async def tidy(self, consumer: AnyConsumer, *, is_trimming: bool) -> None:
        stream, group = consumer.handler.stream, consumer.handler.group
        idle_ms = IDLE_LEASES * consumer.handler.lease_ms
        removed: list[str] = []
        if isinstance(consumer, Consumer):
            removed = await consumer.sweep(idle_ms, with_again=is_trimming)
        elif is_trimming:
            removed = await consumer.sweep(idle_ms)
        if removed:
            events.info("consumers_removed", stream=stream, group=group, count=len(removed))
        if is_trimming:
            await self.trim(consumer)
        if consumer.runner.is_cluster:
            await self.relay(stream)
        if is_trimming and isinstance(consumer, Consumer):
            await consumer.refuse_ordered_group()  # Order may have been turned on beside it: the log tells.

    async def trim(self, consumer: AnyConsumer) -> None:
        """Below what the slowest group needs; with keep, only what is older than that."""
        stream = consumer.handler.stream
        keep_ms = self.app.keep_of(consumer.handler)
        if keep_ms is None:
            # Not beyond what our group was given: if somebody destroys it this moment, what it has not read must stay.
            group = await self.client.run(flows.find_group(stream, consumer.handler.group))
            below = id_behind(group.last_delivered_id)
        elif keep_ms >= 0:
            below = f"{max(0, time.time_ns() // 1_000_000 - keep_ms)}-0"
        else:
            return  # Kept for ever.
        await self.client.run(flows.trim_step(self.client._facts, stream, ("MINID", below), dry_run=False))

    async def relay(self, stream: str) -> None:
        """Send on what lies in the outbox. The id makes twice once, so any number of workers may relay."""
        outbox = stream_keys(stream).outbox
        start = "-"
        while True:
            entries = await self.client.run(requests.range_(outbox, start, "+", PAGE, newest_first=False).run())
            for entry in entries:
                try:
                    await self.relay_one(outbox, entry)
                except CommandError as error:
                    events.error("outbox_refused", stream=stream, id=entry.id, error=error)
            if len(entries) < PAGE:
                return
            start = "(" + entries[-1].id

    async def relay_one(self, outbox: str, entry: Entry) -> None:
        target = entry.find(OUTBOX_TARGET)
        if target is not None:
            pairs = [pair for pair in entry.pairs if pair[0] != OUTBOX_TARGET]
            flow = publish_flows.add_once(self.client._facts, decode_text(target), pairs, f"{outbox}:{entry.id}")
            await self.client.run(flow)
        await self.client.run(requests.delete(outbox, [entry.id]).run())


def id_behind(entry_id: str) -> str:
    """The next higher ID of the same millisecond."""
    milliseconds, _, sequence = entry_id.partition("-")
    return f"{milliseconds}-{min(int(sequence) + 1, HIGHEST_SEQUENCE)}"
