"""Read-only views of what is under way: keys, consumers, settings. The article's message_ids and ticket_ids are made
here from the lanes and tickets; they are stored nowhere."""

from collections import defaultdict
from typing import Any, Final

from headrace.client.async_client import AsyncClient
from headrace.client.lane_keys import Order
from headrace.client.lane_views import KeyInfo, Registered, Ticket, consumers, info, info_key, tickets
from headrace.ordered.bodies import BY_CALLS
from headrace.ordered.held_keys import held_keys
from headrace.ordered.refusal import Refusal
from headrace.ordered.roster import Roster, is_delegated

PAGE: Final = 100
LARGEST_PAGE: Final = 1000
MOST_PAGES: Final = 100  # Looked through for one answer; the next page goes on from there.


class Views:
    def __init__(self, client: AsyncClient, order: Order, roster: Roster) -> None:
        self.client = client
        self.order = order
        self.roster = roster

    async def tickets(self, state: str | None, cursor: int, limit: int) -> dict[str, Any]:
        """About `limit` keys, and where to go on; in no particular order, as the map has none."""
        rows: list[dict[str, Any]] = []
        for _ in range(MOST_PAGES):
            page = await self.client.run(tickets(self.client._facts, self.order, cursor, limit))
            rows += [show_ticket(key, one) for key, one in page.tickets if state in (None, one.state)]
            cursor = page.cursor
            if not cursor or len(rows) >= limit:
                break
        return {"tickets": rows, "cursor": cursor or None}

    async def ticket(self, key: str) -> dict[str, Any]:
        found = await self.client.run(info_key(self.client._facts, self.order, key))
        if found is None:
            raise Refusal(404, f"Key {key!r} has nothing undone.", "See /api/tickets for the keys that have.")
        return show_key(key, found)

    async def consumers(self) -> dict[str, Any]:
        registered = await self.client.run(consumers(self.client._facts, self.order))
        keys: dict[str, list[str]] = defaultdict(list)
        for one in await self.client.run(held_keys(self.order)):
            keys[one.ticket.consumer].append(one.key)
        return {"consumers": [self.show_consumer(one, keys[one.name]) for one in registered]}

    def show_consumer(self, one: Registered, keys: list[str]) -> dict[str, Any]:
        return {
            "consumer": one.name,
            "session": one.session,
            "capacity": one.capacity,
            "healthURL": None if one.health in ("", BY_CALLS) else one.health,
            "takes_for_itself": not is_delegated(one),
            "heartbeat_ms": one.heartbeat_ms,
            "alive": self.roster.is_alive(one) if is_delegated(one) else None,
            "ticket_ids": keys[:LARGEST_PAGE],
            "held": len(keys),
        }

    async def lanes(self) -> dict[str, Any]:
        found = await self.client.run(info(self.client._facts, self.order))
        return {"stream": self.order.stream, "group": self.order.group, **show_order(found)}


def show_order(found: Any) -> dict[str, Any]:
    settings = found.settings
    return {
        "key_fields": list(settings.keyfields),
        "poison": settings.poison,
        "max_attempts": settings.max_attempts,
        "keyless": settings.keyless,
        "lease_ms": settings.lease_ms,
        "reader": settings.reader,
        "keys": found.keys,
        "ready": found.ready,
        "held_or_waiting": found.timed,
        "consumers": found.registered,
        "strays": found.strays,
        "last_fence": found.last_fence,
        "rebuilding": found.is_rebuilding,
    }


def show_ticket(key: str, one: Ticket) -> dict[str, Any]:
    is_held = one.state == "held"
    return {
        "ticket_id": key,
        "state": one.state,
        "attempts": one.attempts,
        "consumer_name": one.consumer or None,
        "fence": one.fence or None,
        "since_ms": one.fence // 1000 if is_held else one.until_ms if one.state == "parked" else None,
        "until_ms": one.until_ms if one.state in ("held", "waiting") else None,
        "error": one.error or None,
    }


def show_key(key: str, found: KeyInfo) -> dict[str, Any]:
    """message_ids: the first thousand; messages: how many there are."""
    return {**show_ticket(key, found.ticket), "messages": found.length, "message_ids": found.ids}
