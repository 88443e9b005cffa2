"""Which keys are held, by whom and under which fence: read from the times and the tickets on the broker.

Keys that are held or wait are the only ones with a time, so the cost follows what is under way and not what is undone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headrace.client import requests
from headrace.client.flow import Flow
from headrace.client.lane_keys import Order
from headrace.client.lane_views import Ticket, read_ticket
from headrace.client.requests import Request, Word
from headrace.client.results import encode_text

PAGE: Final = 1000
MOST_KEYS: Final = 100_000  # Looked at in one go.


@dataclass(frozen=True, slots=True)
class HeldKey:
    key: str
    ticket: Ticket

    @property
    def since_ms(self) -> int:
        """When it was given: a fence is the broker's time in microseconds, or a little more."""
        return self.ticket.fence // 1000


def held_keys(order: Order, until_ms: int | None = None) -> Flow[list[HeldKey]]:
    """Those whose lease ends by then, the earliest first; None: all of them."""
    until = order.keys[3]
    found: list[HeldKey] = []
    end = "+inf" if until_ms is None else str(until_ms)
    for place in range(0, MOST_KEYS, PAGE):
        argv = ("ZRANGEBYSCORE", until, "-inf", end, "LIMIT", place, PAGE)
        keys: list[Any] = yield from Request(argv, list, until, is_repeatable=True).run()
        names = [requests.text(key) for key in keys]
        tickets = yield from find_tickets(order, names)
        found += [HeldKey(key, ticket) for key, ticket in tickets if ticket.state == "held"]
        if len(keys) < PAGE:
            break
    return found


def find_tickets(order: Order, keys: Sequence[str]) -> Flow[list[tuple[str, Ticket]]]:
    """Those that there are."""
    return (yield from tickets_request(order, keys).run()) if keys else []


def tickets_request(order: Order, keys: Sequence[str]) -> Request[list[tuple[str, Ticket]]]:
    """Of at least one key."""
    argv: tuple[Word, ...] = ("HMGET", order.tickets, *map(encode_text, keys))
    return Request(argv, lambda reply: list(pair_tickets(keys, reply)), order.tickets, is_repeatable=True)


def pair_tickets(keys: Sequence[str], texts: Sequence[Any]) -> Iterator[tuple[str, Ticket]]:
    for key, text in zip(keys, texts, strict=True):
        if text is not None:
            yield key, read_ticket(text)


def server_time_ms(order: Order) -> Flow[int]:
    def decode(reply: Any) -> int:
        return requests.number(reply[0]) * 1000 + requests.number(reply[1]) // 1000

    return (yield from Request(("TIME",), decode, order.stream, is_repeatable=True).run())
