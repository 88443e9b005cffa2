"""What requests to the coordinator hold. Every limit is checked here, before anything is sent to the broker."""

from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import msgspec

from headrace.client.times import ENTRY_ID
from headrace.ordered.refusal import Refusal

MOST_BODY_BYTES: Final = 64 << 10
MOST_TOGETHER: Final = 100  # Messages acknowledged with one request.
MOST_NAME_BYTES: Final = 512
MOST_URL_BYTES: Final = 2048
MOST_CAPACITY: Final = 1000  # Keys of one consumer; as many entries fit into one reply of the broker.
MOST_ERROR_BYTES: Final = 4096  # Of a failure's text; the rest is cut off.
LONGEST_DELAY_MS: Final = 7 * 24 * 3_600_000
LARGEST_FENCE: Final = 2**53
BY_CALLS: Final = "heartbeat:"  # In the place of a health URL: alive as long as it calls.


class Register(msgspec.Struct):
    """A consumer that wants messages delegated to it. The same name again ends the session before."""

    consumer: str
    healthURL: str | None = None  # noqa: N815 - the name that consumers send.
    capacity: int = 1


class Acknowledge(msgspec.Struct):
    """A message that is done."""

    consumer: str
    message_id: str
    ticket_id: str | int | None = None
    fence: int | None = None
    session: int | None = None


class Fail(msgspec.Struct):
    """A message that could not be done: it is tried again after the delay, or goes to the dead letters."""

    consumer: str
    message_id: str
    ticket_id: str | int | None = None
    fence: int | None = None
    session: int | None = None
    error: str = ""
    delay_ms: int = 0
    bury: bool = False


class Sign(msgspec.Struct):
    """A sign of life, or of leaving."""

    consumer: str
    session: int | None = None


Body = TypeVar("Body", Register, Acknowledge, Fail, Sign)


def read_body(data: bytes, kind: type[Body]) -> Body:
    body: Body = decode(data, kind)
    return check_body(body)


def read_bodies(data: bytes, kind: type[Body]) -> list[Body]:
    """Several of a kind, in a list. One that cannot be used refuses them all."""
    bodies: list[Body] = decode(data, list[kind])  # type: ignore[valid-type] # It is a type, and msgspec wants it made here.
    if len(bodies) > MOST_TOGETHER:
        raise Refusal(400, f"There are {len(bodies)} in one list.", f"Send {MOST_TOGETHER} at the most.")
    return [check_body(body) for body in bodies]


def decode(data: bytes, kind: Any) -> Any:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        example = '{"consumer": "c1", …}'
        raise Refusal(
            400, f"The body cannot be read: {error}.", f"Send JSON like {example}; see /openapi.json."
        ) from None


def check_body(body: Body) -> Body:
    check_consumer(body.consumer)
    if isinstance(body, Register):
        check_register(body)
    if isinstance(body, (Acknowledge, Fail)):
        check_message(body)
    return body


def check_consumer(name: str) -> None:
    if not name or size_of(name) > MOST_NAME_BYTES:
        raise Refusal(400, f"consumer is {cut(name)!r}.", f"Send a name of 1 to {MOST_NAME_BYTES} bytes.")


def check_register(body: Register) -> None:
    if not 1 <= body.capacity <= MOST_CAPACITY:
        raise Refusal(400, f"capacity is {body.capacity}.", f"Send a number from 1 to {MOST_CAPACITY}.")
    if body.healthURL is None or body.healthURL == BY_CALLS:
        return
    if not is_http_url(body.healthURL):
        how = "Send one like http://host:9001/api/health, or leave it out and send heartbeats."
        raise Refusal(400, f"healthURL is {cut(body.healthURL)!r}.", how)


def check_message(body: Acknowledge | Fail) -> None:
    if ENTRY_ID.fullmatch(body.message_id) is None or any(int(part) >= 2**64 for part in body.message_id.split("-")):
        raise Refusal(400, f"message_id is {cut(body.message_id)!r}.", "Send an entry ID like 1690275391705-0.")
    if body.fence is not None and not 0 <= body.fence < LARGEST_FENCE:
        raise Refusal(400, f"fence is {body.fence}.", "Send the number that came with the message, or leave it out.")
    if isinstance(body, Fail) and not 0 <= body.delay_ms <= LONGEST_DELAY_MS:
        raise Refusal(400, f"delay_ms is {body.delay_ms}.", f"Send a number from 0 to {LONGEST_DELAY_MS}.")


def key_of(body: Acknowledge | Fail) -> str:
    """The key of the message. One without a key has a lane of its own, named by its entry ID."""
    return f"id:{body.message_id}" if body.ticket_id in (None, "") else str(body.ticket_id)


def is_http_url(url: str) -> bool:
    if size_of(url) > MOST_URL_BYTES or not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0


def size_of(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def cut(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:100]}…"
