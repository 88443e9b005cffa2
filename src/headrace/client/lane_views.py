"""What can be seen of order per key: its settings, keys and consumers. Nothing here changes anything."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headrace.client import requests
from headrace.client.flow import Flow
from headrace.client.flows import Facts, beside
from headrace.client.lane_keys import (
    KEYLESS,
    LAYOUTS,
    MOST_KEY_FIELDS,
    POISON,
    Order,
    Settings,
    decode_names,
    order_key,
)
from headrace.client.lane_steps import call
from headrace.client.requests import Request, Word
from headrace.client.results import decode_text, encode_text

STATES = ("ready", "held", "waiting", "parked")
LONGEST_NUMBER = 16  # Digits.


@dataclass(frozen=True, slots=True)
class Ticket:
    """The state of a key: ready, held, waiting or parked. What does not apply is 0 or empty."""

    state: str
    attempts: int = 0  # That were begun on its first message.
    fence: int = 0
    until_ms: int = 0  # The end of the lease or of the pause; since when it is parked.
    given: int = 0  # Messages that the holder has and has not done.
    consumer: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Registered:
    """A consumer."""

    name: str
    session: int
    heartbeat_ms: int
    capacity: int
    health: str


@dataclass(frozen=True, slots=True)
class KeyInfo:
    ticket: Ticket
    length: int  # Undone messages that are in its lane.
    ids: list[str]  # The first 1,000 of them.


@dataclass(frozen=True, slots=True)
class OrderInfo:
    settings: Settings
    keys: int  # With undone messages that were read.
    ready: int
    timed: int  # Held or waiting.
    registered: int
    strays: int  # Messages that were read and are in no lane yet.
    last_fence: int
    is_rebuilding: bool


@dataclass(frozen=True, slots=True)
class TicketPage:
    tickets: list[tuple[str, Ticket]]
    cursor: int  # 0: these were the last ones.


def info(facts: Facts, order: Order) -> Flow[OrderInfo]:
    def decode(reply: Any) -> OrderInfo:
        named = requests.named(reply)
        names = tuple(requests.text(name) for name in named["keyfields"])
        return OrderInfo(
            settings=read_settings(named, names, order.stream, order.group),
            keys=requests.number(named["keys"]),
            ready=requests.number(named["ready"]),
            timed=requests.number(named["timed"]),
            registered=requests.number(named["registered"]),
            strays=requests.number(named["pending-reader"]),
            last_fence=requests.number(named["fence"]),
            is_rebuilding=requests.number(named["rebuilding"]) == 1,
        )

    return (yield from call(facts, "INFO", order, (), decode))


def info_key(facts: Facts, order: Order, key: str) -> Flow[KeyInfo | None]:
    """None: the key has nothing undone that was read."""

    def decode(reply: Any) -> KeyInfo | None:
        if reply is None:
            return None
        named = requests.named(reply)
        number = {name: requests.number(named[name]) for name in ("attempts", "fence", "until", "since", "given")}
        ticket = Ticket(
            requests.text(named["state"]), number["attempts"], number["fence"], number["until"] or number["since"],
            number["given"], requests.text(named["consumer"]), requests.text(named["error"]),
        )  # fmt: skip
        return KeyInfo(ticket, requests.number(named["length"]), [requests.text(one) for one in named["ids"]])

    words: tuple[Word, ...] = ("KEY", encode_text(key))
    return (yield from call(facts, "INFO", order, words, decode))


def find_settings(_: Facts, stream: str, group: str) -> Flow[Settings | None]:
    """Those that the group was set up with; None: it was not."""

    def decode(reply: Any) -> Settings | None:
        named = requests.named(reply)
        names = tuple(decode_text(name) for name in decode_names(named.get("keyfields", b"")))
        return read_settings(named, names, stream, group) if names and all(names) else None

    key = order_key(stream, group)
    return (yield from Request(("HGETALL", key), decode, key, is_repeatable=True).run())


def tickets(_: Facts, order: Order, cursor: int = 0, count: int = 1000) -> Flow[TicketPage]:
    """The states of about so many keys. A key that changes meanwhile may be there twice, as HSCAN has it."""

    def decode(reply: Any) -> TicketPage:
        words = reply[1]
        pairs = words.items() if isinstance(words, dict) else zip(words[::2], words[1::2], strict=True)
        found = [(requests.text(key), read_ticket(text)) for key, text in pairs]
        return TicketPage(found, requests.number(reply[0]))

    argv = ("HSCAN", order.tickets, cursor, "COUNT", count)
    return (yield from Request(argv, decode, order.tickets, is_repeatable=True).run())


def consumers(_: Facts, order: Order) -> Flow[list[Registered]]:
    """All that have registered and not left, by name."""

    def decode(reply: Any) -> list[Registered]:
        named = requests.named(reply)
        return [read_registered(name, requests.text(named[name])) for name in sorted(named)]

    return (yield from Request(("HGETALL", order.consumers), decode, order.consumers, is_repeatable=True).run())


# Reading


def read_settings(named: Mapping[str, Any], names: tuple[str, ...], stream: str, group: str) -> Settings:
    """Maps that have our own names count as not named; what makes no sense, as for the server, as not given."""
    usual = Settings(names[:MOST_KEY_FIELDS])

    def word(what: str, possible: tuple[str, ...], default: str) -> str:
        value = requests.text(named.get(what, b""))
        return value if value in possible else default

    def whole(what: str, default: int) -> int:
        value = named.get(what, b"")
        digits = value if isinstance(value, bytes) else str(value).encode()
        return int(digits) if digits.isdigit() and len(digits) <= LONGEST_NUMBER else default

    def own_name(what: str) -> str | None:
        name = requests.text(named.get(what, b""))
        return None if name in ("", beside(stream, f"{group}:{what}")) else name

    return Settings(
        usual.keyfields, word("poison", POISON, usual.poison), whole("maxattempts", usual.max_attempts),
        word("keyless", KEYLESS, usual.keyless), whole("lease", usual.lease_ms) or usual.lease_ms,
        requests.text(named.get("reader", b"")) or usual.reader, own_name("tickets"), own_name("consumers"),
        word("layout", LAYOUTS, usual.layout),
    )  # fmt: skip


def read_ticket(text: bytes) -> Ticket:
    """What is no ticket counts as ready, as it does for the server."""
    state, *words = decode_text(text).split(" ")
    numbers = {"ready": 1, "held": 4, "waiting": 2, "parked": 2}.get(state, len(words) + 1)
    if len(words) < numbers or not all(word.isascii() and word.isdecimal() for word in words[:numbers]):
        return Ticket("ready")
    first, *rest = (int(word) for word in words[:numbers])
    more = " ".join(words[numbers:])
    if state == "held":
        return Ticket(state, first, rest[0], rest[1], rest[2], more)
    return Ticket(state, first, until_ms=rest[0] if rest else 0, error=more)


def read_registered(name: str, text: str) -> Registered:
    session, heartbeat, capacity, health = (text.split(" ", 3) + ["", "", "", ""])[:4]
    numbers = [int(word) if word.isascii() and word.isdecimal() else 0 for word in (session, heartbeat, capacity)]
    return Registered(name, numbers[0], numbers[1], numbers[2], health)
