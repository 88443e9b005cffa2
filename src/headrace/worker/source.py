"""A stream as one handler reads it: what this worker holds of it, and the calls about that.

A handler has two: its own stream, and the group's `again`, where dead letters come back. Held is everything that was
read and is not settled yet; the lease thread looks at it too.
"""

import asyncio
import time
from typing import Any, Final

from headrace.app.delivery import Delivery
from headrace.client import flows, requests, worker_steps
from headrace.client.async_client import AsyncClient
from headrace.client.client import Client
from headrace.client.requests import Request, Word
from headrace.client.worker_keys import group_keys
from headrace.client.worker_steps import Due, Started

PAGE: Final = 1000


class Source:
    __slots__ = (
        "client", "stream", "group", "consumer", "lease_ms", "is_recorded", "held", "held_bytes", "starting",
        "start_task",
    )  # fmt: skip

    def __init__(
        self, client: AsyncClient, stream: str, group: str, consumer: str, lease_ms: int, *, is_recorded: bool
    ) -> None:
        self.client = client
        self.stream = stream
        self.group = group
        self.consumer = consumer
        self.lease_ms = lease_ms
        self.is_recorded = is_recorded  # Also the first try of every message is told before it runs.
        self.held: dict[str, Delivery] = {}
        self.held_bytes = 0
        self.starting: list[tuple[str, asyncio.Future[Started]]] = []
        self.start_task: asyncio.Task[None] | None = None

    # Reading

    def read_request(self, count: int, block_ms: int | None, *, claims: bool) -> Request[Any]:
        """New entries, and those of others whose lease ran out. The reply stays as it is: see take."""
        words: list[Word] = ["XREADGROUP", "GROUP", self.group, self.consumer, "COUNT", count]
        if block_ms is not None:
            words += ["BLOCK", block_ms]
        if claims:
            words += ["CLAIM", self.lease_ms]
        return Request((*words, "STREAMS", self.stream, ">"), as_it_is, self.stream, wait_ms=block_ms or 0)

    def take(self, reply: Any) -> tuple[list[Delivery], list[str]]:
        """What a read has brought, now held; and the IDs of entries that were deleted while they were pending."""
        taken: list[Delivery] = []
        gone: list[str] = []
        if not reply:
            return taken, gone
        now_s = time.monotonic()
        stream, held = self.stream, self.held
        size_bytes = 0
        [(_, rows)] = reply.items() if isinstance(reply, dict) else reply
        for row in rows:
            entry_id, words = row[0].decode(), row[1]
            if words is None:
                gone.append(entry_id)
                continue
            if entry_id in held:  # Claimed from ourselves: the lease thread was held up. It runs already.
                held[entry_id].leased_s = now_s
                continue
            size = len(words[1]) if len(words) == 2 else sum(map(len, words))
            is_again = len(row) > 3 and int(row[3]) > 0
            held[entry_id] = delivery = Delivery(entry_id, words, stream, now_s, size, is_again)
            size_bytes += size
            taken.append(delivery)
        self.held_bytes += size_bytes
        return taken, gone

    def take_entries(self, entries: list[Any]) -> tuple[list[Delivery], list[str]]:
        """The same for entries of the client: they come again, or from a server without CLAIM."""
        rows = [
            [
                entry.id.encode(),
                None if entry.is_deleted else [word for pair in entry.pairs for word in pair],
                0,
                1 if entry.deliveries is None else entry.deliveries,
            ]
            for entry in entries
        ]
        return self.take([(self.stream, rows)])

    def drop(self, delivery: Delivery) -> None:
        """No longer ours, or settled."""
        if self.held.pop(delivery.id, None) is not None:
            self.held_bytes -= delivery.size_bytes

    def drop_all(self, deliveries: list[Delivery]) -> None:
        held = self.held
        size_bytes = 0
        for delivery in deliveries:
            if held.pop(delivery.id, None) is not None:
                size_bytes += delivery.size_bytes
        self.held_bytes -= size_bytes

    async def make_group(self) -> None:
        """From the beginning: what was published before the group was there is for it too."""
        await self.client.run(flows.create_group(self.stream, self.group, "0"))

    async def claim(self, count: int) -> list[Any]:
        """On a server without CLAIM: entries whose lease ran out, then new ones."""
        words: tuple[Word, ...] = (self.group, self.consumer, self.lease_ms, count, 0)
        return await self.client.run(flows.claim_step(self.client._facts, self.stream, words))

    async def due(self, count: int) -> Due:
        return await self.client.run(
            worker_steps.due(self.client._facts, self.stream, self.group, self.consumer, count)
        )

    # Starting: which attempt it is, asked for all that start in one turn together

    async def start(self, delivery: Delivery) -> Started:
        future: asyncio.Future[Started] = asyncio.get_running_loop().create_future()
        self.starting.append((delivery.id, future))
        if self.start_task is None:
            self.start_task = asyncio.ensure_future(self.start_all())
        return await future

    async def start_all(self) -> None:
        await asyncio.sleep(0)
        while self.starting:
            asked, self.starting = self.starting[:PAGE], self.starting[PAGE:]
            try:
                ids = [entry_id for entry_id, _ in asked]
                flow = worker_steps.start(
                    self.client._facts, self.stream, self.group, self.consumer, ids, is_recorded=self.is_recorded
                )
                started = await self.client.run(flow)
            except BaseException as error:  # Whatever it is, those who wait have to know.
                for _, future in asked:
                    if not future.done():
                        future.set_exception(error)
                if not isinstance(error, Exception):
                    raise
                continue
            for (_, future), one in zip(asked, started, strict=True):
                if not future.done():
                    future.set_result(one)
        self.start_task = None

    # Keeping

    def extend(self, client: Client) -> None:
        """For the thread of the leases, with its own client."""
        now_s = time.monotonic()
        oldest_s = now_s - self.lease_ms / 3000
        held = list(self.held.values())  # One step for the interpreter: no lock is needed.
        aging = [delivery for delivery in held if 0 < delivery.leased_s <= oldest_s]
        for place in range(0, len(aging), worker_steps.MOST):
            part = aging[place : place + worker_steps.MOST]
            ids = [delivery.id for delivery in part]
            flow = worker_steps.extend(client._facts, self.stream, self.group, self.consumer, ids)
            for delivery, is_ours in zip(part, client.run(flow), strict=True):
                delivery.leased_s = now_s if is_ours else 0.0  # Settled this moment, or lost: then settling is refused.

    # Giving back

    async def release(self, ids: list[str]) -> int:
        """Free for everybody at once; how many were still ours."""
        flow = worker_steps.release(self.client._facts, self.stream, self.group, self.consumer, ids)
        return sum(await self.client.run(flow)) if ids else 0

    async def remove_name(self) -> None:
        """Our name leaves the group, unless something is pending with it: checked in the same step, or it were lost."""
        await self.client.run(worker_steps.sweep(self.client._facts, self.stream, self.group, 0, self.consumer))

    async def fence(self) -> None:
        """After this the server has seen what was sent to it, or closed, before: it serves all clients in turns.

        Twice, because within one turn the order is open.
        """
        for _ in range(2):
            await self.client.run(requests.length(self.stream).run())

    async def find_strays(self) -> list[str]:
        """Entries that are pending with us though we do not know them: the answer that brought them was lost.

        Those that wait for another try have their time; nobody has to give them back.
        """
        strays: list[str] = []
        start = "-"
        while True:
            page = await self.client.run(
                requests.pending(
                    self.stream, self.group, start=start, end="+", count=PAGE, min_idle_ms=0, consumer=self.consumer
                ).run()
            )
            unknown = [row.id for row in page if row.id not in self.held]
            if unknown:
                key = group_keys(self.stream, self.group).due
                times = await self.client.run(Request(("ZMSCORE", key, *unknown), as_it_is, key).run())
                strays += [entry_id for entry_id, due_ms in zip(unknown, times, strict=True) if due_ms is None]
            if len(page) < PAGE:
                return strays
            start = "(" + page[-1].id


def as_it_is(reply: Any) -> Any:
    return reply
