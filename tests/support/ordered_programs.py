"""What the tests of the coordinator share: coordinators on a stream of their own, and calls to them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from headrace import AsyncClient
from headrace.ordered.http_call import Caller
from headrace.ordered.master import Master
from headrace.ordered.master_settings import LANES, MasterSettings

GROUP = "concurrency_stream_group"
CALL_S = 60.0  # Only to end a broken test.
SHORT_MS = 1500  # A lease that a test can wait for, and that a busy machine still keeps.


class Scene:
    """One stream with coordinators, a client of the broker, and calls over HTTP."""

    def __init__(self, client: AsyncClient, stream: str, masters: list[Master]) -> None:
        self.client = client
        self.stream = stream
        self.masters = masters
        self.caller = Caller()
        self.last = 0

    @property
    def master(self) -> Master:
        return self.masters[0]

    async def call(self, method: str, path: str, body: Any = None, *, of: int = 0) -> tuple[int, Any]:
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        answer = await self.caller.call(method, self.masters[of].url + path, body=data, timeout_s=CALL_S)
        return answer.status, json.loads(answer.body)

    async def ok(self, method: str, path: str, body: Any = None, *, of: int = 0) -> Any:
        status, answer = await self.call(method, path, body, of=of)
        assert status == 200, answer
        return answer

    async def register(self, consumer: str, capacity: int = 1, health: str | None = None, *, of: int = 0) -> int:
        body = {"consumer": consumer, "capacity": capacity, "healthURL": health}
        return int((await self.ok("POST", "/api/consumers/register", body, of=of))["session"])

    async def acknowledge(self, consumer: str, message: dict[str, Any], *, of: int = 0, **more: Any) -> tuple[int, Any]:
        body = {"consumer": consumer, "ticket_id": message["ticket_id"], "message_id": message["message_id"], **more}
        return await self.call("POST", "/api/messages/acknowledge", body, of=of)

    async def messages(self, consumer: str, count: int = 1, *, of: int = 0) -> list[dict[str, Any]]:
        """What the consumer holds, once it is so much. Asking is a sign of life."""
        while True:
            found = (await self.ok("GET", f"/api/consumers/{consumer}/messages?wait=0.2", of=of))["messages"]
            if len(found) >= count:
                return list(found)

    async def hold_first_of_two(self, consumer: str) -> dict[str, Any]:
        """The consumer is registered and holds the first message of the key 7, which has two."""
        await self.register(consumer)
        for number in range(2):
            await self.add("7", number)
        [message] = await self.messages(consumer)
        return message

    async def add(self, key: str, value: object = "") -> str:
        added: bytes = await self.client.command("XADD", self.stream, "*", "ticket_id", key, "n", str(value))
        return added.decode()

    async def ticket(self, key: str) -> Any:
        """None: it has nothing undone."""
        status, answer = await self.call("GET", f"/api/tickets/{key}")
        return answer if status == 200 else None

    async def is_held(self, key: str) -> bool:
        found = await self.ticket(key)
        return bool(found and found["state"] == "held")

    async def owners(self) -> dict[str, int]:
        """How much is pending with whom."""
        return (await self.client.stream(self.stream).group(GROUP).pending_summary()).by_consumer


def settings_for(stream: str, *, lease_ms: int = 30_000, **more: Any) -> MasterSettings:
    """Maps of its own, in the stream's slot: others use the same broker."""
    lane_words = {name: more.pop(name) for name in ("poison", "max_attempts", "keyless", "keyfields") if name in more}
    lanes = replace(
        LANES, lease_ms=lease_ms, tickets=f"{{{stream}}}:tickets", consumers=f"{{{stream}}}:consumers", **lane_words
    )
    return MasterSettings(stream, GROUP, lanes, **{"port": 0, "max_hold_ms": max(lease_ms, 600_000), **more})


@asynccontextmanager
async def scene(url: str, stream: str, *, masters: int = 1, **words: Any) -> AsyncIterator[Scene]:
    async with AsyncClient(url) as client:
        running = [Master(url, settings_for(stream, **words)) for _ in range(masters)]
        place = Scene(client, stream, running)
        try:
            for master in running:
                await master.start()
            yield place
        finally:
            await place.caller.close()
            for master in running:
                await master.finish()
