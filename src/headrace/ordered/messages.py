"""What is delegated to one consumer, read without touching it: no delivery counter grows, no idle time begins anew.

Only what somebody deleted from the stream is acknowledged on the way.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from headrace.client import requests
from headrace.client.flow import Flow
from headrace.client.flows import send_batch
from headrace.client.lane_keys import Order, order_key
from headrace.client.lane_views import Registered, Ticket, read_registered
from headrace.client.requests import Request
from headrace.client.results import Entry, encode_text
from headrace.ordered.bodies import MOST_CAPACITY
from headrace.ordered.entry_keys import find_key
from headrace.ordered.granted import Remembered
from headrace.ordered.held_keys import find_tickets, tickets_request

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


def read_delegation(
    order: Order, consumer: str, after: int, known: Sequence[Remembered] = ()
) -> Flow[tuple[Registered | None, Delegation]]:  # fmt: skip
    """The consumer's registration, and what it holds. What is known of it already is not asked for once more.

    The last fence is read first: what is given later is left to the next call, so that nothing is passed over. The
    tickets are read last: what they say of messages that are pending is no older than that.
    """
    place = order_key(order.stream, order.group)
    entries = {one.id: one.entry for one in known if one.entry is not None}
    keys = {one.id: one.key for one in known}
    tickets = tickets_request(order, list(dict.fromkeys(keys.values())))
    batch: list[Request[Any]] = [
        registered_request(order, consumer),
        Request(("HGET", place, "fence"), read_fence, place, is_repeatable=True),
        requests.pending(
            order.stream, order.group, start="-", end="+", count=MOST_CAPACITY, min_idle_ms=0, consumer=consumer
        ),
        *([tickets] if known else []),
    ]  # fmt: skip
    registered, last, pending, *found = yield from send_batch(batch)
    states: dict[str, Ticket] = dict(found[0]) if found else {}
    unread = [one.id for one in pending if one.id not in entries and is_wanted(states, keys.get(one.id), after)]
    if unread:
        read = yield from read_entries(order.stream, unread)
        entries.update({entry.id: entry for entry in read})
        new = {entry.id: find_key(entry, order.settings.keyfields) for entry in read if entry.id not in keys}
        keys.update(new)
        states.update((yield from find_tickets(order, list(dict.fromkeys(new.values())))))
        if gone := [one for one in unread if one not in entries]:
            # Deleted while they were pending: they hold nothing to handle, and the next extension frees their keys.
            yield from requests.ack(order.stream, order.group, gone).run()
    held, messages = [], []
    for one in pending:
        ticket = states.get(keys.get(one.id, ""))
        if ticket is None or ticket.state != "held" or ticket.consumer != consumer:
            continue
        held.append(ticket.fence)
        if after < ticket.fence <= last and one.id in entries:
            messages.append(Delegated(keys[one.id], ticket.fence, ticket.attempts, entries[one.id]))
    return registered, Delegation(sorted(messages, key=lambda one: one.fence), held, max(after, last))


def is_wanted(states: dict[str, Ticket], key: str | None, after: int) -> bool:
    """Whether an entry has to be read: for its key, or to be told."""
    return key is None or key not in states or states[key].fence > after


def registered_request(order: Order, consumer: str) -> Request[Registered | None]:
    def decode(reply: Any) -> Registered | None:
        return None if reply is None else read_registered(consumer, requests.text(reply))

    argv = ("HGET", order.consumers, encode_text(consumer))
    return Request(argv, decode, order.consumers, is_repeatable=True)


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
