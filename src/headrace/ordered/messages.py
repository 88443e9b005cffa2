"""What is delegated to one consumer, read without touching it: no delivery counter grows, no idle time begins anew.

Only what somebody deleted from the stream is acknowledged on the way.
"""

import base64
from dataclasses import dataclass
from typing import Any, Final

from headrace.client import requests
from headrace.client.flow import Flow
from headrace.client.flows import send_batch
from headrace.client.lane_keys import Order, order_key
from headrace.client.requests import Request
from headrace.client.results import Entry
from headrace.ordered.bodies import MOST_CAPACITY
from headrace.ordered.entry_keys import find_key
from headrace.ordered.held_keys import find_tickets

PAGE: Final = 100  # Entries fetched in one go.
LONGEST_FENCE: Final = 16  # Digits.


@dataclass(frozen=True, slots=True)
class Delegated:
    """A message that a consumer holds."""

    key: str
    fence: int
    attempt: int
    entry: Entry


@dataclass(frozen=True, slots=True)
class Delegation:
    messages: list[Delegated]  # Given after the fence asked for, the oldest first.
    held: list[int]  # The fences of all that the consumer holds.
    after: int  # Everything that was given up to this fence has been told.


def read_delegation(order: Order, consumer: str, after: int) -> Flow[Delegation]:
    """The last fence is read first: what is given later is left to the next call, so that nothing is passed over."""
    place = order_key(order.stream, order.group)
    last: int = yield from Request(("HGET", place, "fence"), read_fence, place).run()
    pending = yield from requests.pending(
        order.stream, order.group, start="-", end="+", count=MOST_CAPACITY, min_idle_ms=0, consumer=consumer
    ).run()
    entries = yield from read_entries(order.stream, [one.id for one in pending])
    gone = {one.id for one in pending} - {entry.id for entry in entries}
    if gone:  # Deleted while they were pending: they hold nothing to handle, and the next extension frees their keys.
        yield from requests.ack(order.stream, order.group, sorted(gone)).run()
    keys = {entry.id: find_key(entry, order.settings.keyfields) for entry in entries}
    tickets = dict((yield from find_tickets(order, list(dict.fromkeys(keys.values())))))
    held, messages = [], []
    for entry in entries:
        ticket = tickets.get(keys[entry.id])
        if ticket is None or ticket.state != "held" or ticket.consumer != consumer:
            continue
        held.append(ticket.fence)
        if after < ticket.fence <= last:
            messages.append(Delegated(keys[entry.id], ticket.fence, ticket.attempts, entry))
    return Delegation(sorted(messages, key=lambda one: one.fence), held, max(after, last))


def read_fence(reply: Any) -> int:
    """What is none, because somebody else wrote it, is the lowest."""
    return int(reply) if reply is not None and reply.isdigit() and len(reply) <= LONGEST_FENCE else 0


def read_entries(stream: str, ids: list[str]) -> Flow[list[Entry]]:
    """Those that are still in the stream."""
    entries: list[Entry] = []
    for place in range(0, len(ids), PAGE):
        batch: list[Request[Any]] = [
            requests.range_(stream, one, one, 1, newest_first=False) for one in ids[place : place + PAGE]
        ]
        for found in (yield from send_batch(batch)):
            entries += found
    return entries


def show_delegation(delegation: Delegation) -> dict[str, Any]:
    return {
        "messages": [show_message(one) for one in delegation.messages],
        "held": delegation.held,
        "after": delegation.after,
    }


def show_message(one: Delegated) -> dict[str, Any]:
    """`pairs` holds the fields as they are stored, in order, in base64; `fields` is for people."""
    return {
        "ticket_id": one.key,
        "message_id": one.entry.id,
        "fence": one.fence,
        "attempt": one.attempt,
        "fields": one.entry.fields,
        "pairs": [[encode(name), encode(value)] for name, value in one.entry.pairs],
    }


def encode(data: bytes) -> str:
    return base64.b64encode(data).decode()
