"""What consumers ask of the coordinator: to register, to acknowledge, to say what went wrong, to see what they have.

It decides nothing by what it remembers, which is signs of life (roster.py) and what it took for whom (granted.py). Each
request is one atomic step on the broker, or a look and then one step that is refused when what was seen has changed
meanwhile.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final

from headrace.client import lane_steps, requests
from headrace.client.async_client import AsyncClient
from headrace.client.flow import Flow
from headrace.client.lane_keys import LANES
from headrace.client.lane_views import KeyInfo, Registered, info_key
from headrace.client.requests import Request
from headrace.client.results import encode_text
from headrace.ordered.bodies import BY_CALLS, MOST_ERROR_BYTES, Acknowledge, Fail, Register, Sign, key_of
from headrace.ordered.delegating import IDLE_S, Delegator, all_of
from headrace.ordered.granted import Remembered
from headrace.ordered.master_settings import MasterSettings
from headrace.ordered.messages import read_delegation, registered_request, show_delegation
from headrace.ordered.refusal import Refusal
from headrace.ordered.roster import Roster, is_delegated
from headrace.ordered.settling import Settler

MOST_CONSUMERS: Final = 1000
REGISTER_AGAIN: Final = "Begin a new session: POST /api/consumers/register."


class Coordinator:
    def __init__(self, client: AsyncClient, settings: MasterSettings, roster: Roster, delegator: Delegator) -> None:
        self.client = client
        self.settings = settings
        self.order = settings.order
        self.roster = roster
        self.delegator = delegator
        self.settler = Settler(client, self.order, delegator, keeps=not settings.deletes)
        self.waiting: dict[str, int] = {}  # Long polls, by consumer.

    # Consumers

    async def register(self, body: Register) -> dict[str, Any]:
        if body.consumer in (LANES, self.order.settings.reader):
            raise Refusal(400, f"The name {body.consumer!r} is used by the group itself.", "Choose another one.")
        await self.check_room(body.consumer)
        health = body.healthURL or BY_CALLS
        step = lane_steps.register(self.client._facts, self.order, body.consumer, body.capacity, health)
        session = await self.client.run(step)
        self.roster.note(body.consumer, session.number)
        self.delegator.wake.set()
        return {
            "consumer": body.consumer,
            "session": session.number,
            "lease_ms": session.lease_ms,
            "capacity": body.capacity,
        }

    async def check_room(self, consumer: str) -> None:
        batch: list[Request[Any]] = [
            Request(("HLEN", self.order.consumers), requests.number, self.order.consumers, is_repeatable=True),
            Request(("HEXISTS", self.order.consumers, encode_text(consumer)), bool, self.order.consumers),
        ]
        count, is_known = [await self.client.run(request.run()) for request in batch]
        if count >= MOST_CONSUMERS and not is_known:
            how = "Let some leave: POST /api/consumers/leave; those that are silent are removed after a while."
            raise Refusal(429, f"{count} consumers are registered, and no more than {MOST_CONSUMERS} may be.", how)

    async def heartbeat(self, body: Sign) -> dict[str, Any]:
        one = await self.check_session(body.consumer, body.session)
        self.roster.note(one.name, one.session)
        await self.tell_heartbeat(one)
        return {"consumer": one.name, "session": one.session, "lease_ms": self.order.settings.lease_ms}

    async def leave(self, body: Sign) -> dict[str, Any]:
        """Leaving twice is harmless."""
        found = await self.find_registered(body.consumer)
        if found is None:
            return {"consumer": body.consumer, "given_back": 0}
        one = await self.check_session(body.consumer, body.session)
        keys = await self.client.run(lane_steps.leave(self.client._facts, self.order, one.name, one.session))
        self.delegator.wake.set()
        return {"consumer": one.name, "given_back": keys}

    async def find_registered(self, consumer: str) -> Registered | None:
        return await self.client.run(self.registered_as(consumer))

    def registered_as(self, consumer: str) -> Flow[Registered | None]:
        return registered_request(self.order, consumer).run()

    async def check_session(self, consumer: str, session: int | None) -> Registered:
        return self.check_registered(await self.find_registered(consumer), consumer, session)

    def check_registered(self, one: Registered | None, consumer: str, session: int | None) -> Registered:
        """A later session than the one of the map: somebody has written into it, and nobody took the name over."""
        if one is None or (session is not None and session > one.session):
            raise Refusal(404, f"Consumer {consumer!r} is not registered.", REGISTER_AGAIN)
        if session is not None and session != one.session:
            raise Refusal(409, f"Session {session} of consumer {consumer!r} has ended.", REGISTER_AGAIN)
        return one

    async def tell_heartbeat(self, one: Registered) -> None:
        """On the broker, for people and other coordinators to see."""
        lease_ms = self.order.settings.lease_ms
        await self.client.run(
            lane_steps.extend(self.client._facts, self.order, one.name, one.session, lease_ms, [])
        )  # fmt: skip

    # Messages

    async def acknowledge(self, body: Acknowledge) -> dict[str, Any]:
        """Done, by whoever holds the key and for the message that is its first. Again: already done."""
        key = key_of(body)
        if await self.settle(body, key, lambda fence: lane_steps.Done(key, fence, [body.message_id])):
            return self.answer(body, key, "acknowledged")
        await self.explain(body, key)
        return {**self.answer(body, key, "acknowledged"), "already": True}

    async def fail(self, body: Fail) -> dict[str, Any]:
        key = key_of(body)
        error = body.error.encode("utf-8", "surrogateescape")[:MOST_ERROR_BYTES].decode("utf-8", "ignore")

        def clause(fence: int) -> lane_steps.Clause:
            if body.bury:
                return lane_steps.Bury(key, fence, body.message_id, error, "")
            return lane_steps.Fail(key, fence, body.message_id, body.delay_ms, error)

        if await self.settle(body, key, clause):
            return self.answer(body, key, "failed")
        await self.explain(body, key)
        raise Refusal(409, f"Message {body.message_id} is done already.", "Go on with the next one.")

    def answer(self, body: Acknowledge | Fail, key: str, what: str) -> dict[str, Any]:
        return {
            "consumer": body.consumer,
            "ticket_id": key,
            "message_id": body.message_id,
            what: True,
            "already": False,
        }

    async def settle(self, body: Acknowledge | Fail, key: str, clause: Callable[[int], lane_steps.Clause]) -> bool:
        """Under the fence that was given with the message; when that is not known here, the broker is asked for it."""
        known = self.delegator.granted.find(body.consumer, key)
        if known is not None and is_meant(known, body):
            self.roster.note(body.consumer, known.session)
            if await self.settler.settle(body.consumer, clause(known.fence)):
                self.delegator.granted.forget(body.consumer, key, known.fence)
                return True
        fence = await self.find_fence(body, key)
        return fence is not None and await self.settler.settle(body.consumer, clause(fence))

    async def find_fence(self, body: Acknowledge | Fail, key: str) -> int | None:
        """The one to settle under; None when the consumer does not hold the key with this message first."""
        looks = (self.registered_as(body.consumer), info_key(self.client._facts, self.order, key))
        registered, found = await self.client.run(all_of(*looks))
        if registered is not None:
            if body.session is not None and body.session != registered.session:
                raise Refusal(409, f"Session {body.session} of {body.consumer!r} has ended.", REGISTER_AGAIN)
            if is_delegated(registered):
                self.roster.note(registered.name, registered.session)
        if not is_held_by(found, body.consumer, body.message_id):
            return None
        return found.ticket.fence if body.fence in (None, found.ticket.fence) else None

    async def explain(self, body: Acknowledge | Fail, key: str) -> None:
        """Returns when the message is done already; raises when it is somebody else's, or nobody's yet."""
        stream, group = self.order.stream, self.order.group
        entry_id = full_id(body.message_id)
        pending = await self.client.run(
            requests.pending(
                stream, group, start=entry_id, end=entry_id, count=1, min_idle_ms=0, consumer=None
            ).run()
        )  # fmt: skip
        if pending:
            await self.refuse_pending(body, key)
        groups = await self.client.run(requests.groups(stream).run())
        delivered = next((one.last_delivered_id for one in groups if one.name == group), "0-0")
        if parts_of(entry_id) > parts_of(delivered):
            raise Refusal(404, f"Message {entry_id} was not given to anybody yet.", "Acknowledge what you were given.")
        await self.free_after_xack(body, key)

    async def refuse_pending(self, body: Acknowledge | Fail, key: str) -> None:
        found = await self.client.run(info_key(self.client._facts, self.order, key))
        ticket = None if found is None else found.ticket
        how = "Drop what you did for it; see /api/tickets for who has it."
        if ticket is None:
            raise Refusal(409, f"Message {body.message_id} is pending, but not under the key {key!r}.", how)
        if ticket.state == "held" and ticket.consumer == body.consumer:
            if found is not None and found.ids[:1] != [full_id(body.message_id)]:
                raise Refusal(409, f"Message {body.message_id} is not the first of {key!r}.", "Begin with the first.")
            raise Refusal(409, f"Fence {body.fence} of {key!r} has ended; {ticket.fence} is the one now.", how)
        holder = f"with {ticket.consumer!r}" if ticket.state == "held" else ticket.state
        raise Refusal(409, f"{body.consumer!r} does not hold {key!r}: it is {holder}.", how)

    async def free_after_xack(self, body: Acknowledge | Fail, key: str) -> None:
        """The message was acknowledged by XACK, and the key may still wait for this call: the extension frees it."""
        found = await self.client.run(info_key(self.client._facts, self.order, key))
        registered = await self.find_registered(body.consumer)
        if found is None or registered is None or found.ticket.consumer != body.consumer:
            return
        keys = [(key, found.ticket.fence)]
        lease_ms = self.order.settings.lease_ms
        step = lane_steps.extend(
            self.client._facts, self.order, registered.name, registered.session, lease_ms, keys
        )  # fmt: skip
        await self.client.run(step)
        self.delegator.wake.set()

    # What a consumer has

    async def messages(self, consumer: str, session: int | None, after: int, wait_s: float) -> dict[str, Any]:
        """What was given to the consumer after this fence; waits for it. The call is a sign of life."""
        deadline_s = time.monotonic() + wait_s
        arrival = self.delegator.arrivals.setdefault(consumer, asyncio.Event())
        self.waiting[consumer] = self.waiting.get(consumer, 0) + 1
        try:
            while True:
                arrival.clear()
                known = self.delegator.granted.all_of(consumer)
                one, found = await self.client.run(read_delegation(self.order, consumer, after, known))
                one = self.check_registered(one, consumer, session)
                session = one.session
                self.roster.note(one.name, one.session)
                if self.roster.is_to_be_told(one.name, one.session):
                    await self.tell_heartbeat(one)
                left_s = deadline_s - time.monotonic()
                if found.messages or left_s <= 0:
                    self.delegator.granted.note_told(consumer, [message.key for message in found.messages])
                    return {**show_delegation(found), "session": one.session}
                await wait_for(arrival, min(left_s, IDLE_S, self.order.settings.lease_ms / 3000))
        finally:
            self.waiting[consumer] -= 1
            if not self.waiting[consumer]:
                del self.waiting[consumer], self.delegator.arrivals[consumer]


def is_meant(known: Remembered, body: Acknowledge | Fail) -> bool:
    """Whether a consumer speaks of this grant."""
    is_same = known.id == full_id(body.message_id) and body.fence in (None, known.fence)
    return is_same and body.session in (None, known.session)


def is_held_by(found: KeyInfo | None, consumer: str, message_id: str) -> bool:
    if found is None or found.ticket.state != "held":
        return False
    return found.ticket.consumer == consumer and found.ids[:1] == [full_id(message_id)]


def full_id(message_id: str) -> str:
    return message_id if "-" in message_id else f"{message_id}-0"


def parts_of(entry_id: str) -> tuple[int, int]:
    ms, _, sequence = entry_id.partition("-")
    return int(ms), int(sequence or 0)


async def wait_for(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass
