"""Publishing in headrace's layout: now, later, and once for each publish id. Written once for both flavours.

HR.ADD on our broker, the steps `add` and `delay` of functions/ elsewhere.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from headrace.client import layout, requests
from headrace.client.flow import Flow
from headrace.client.flows import BATCH, Facts, add_all, beside, capabilities, check_several
from headrace.client.functions import is_missing, request_step, run_step
from headrace.client.requests import Request, Word
from headrace.client.times import Duration, parse_duration_ms
from headrace.client.worker_keys import stream_keys
from headrace.errors import ConfigError, HeadraceError, Unconfirmed

PUBLISH_ID_WINDOW_MS: Final = 24 * 3_600_000  # For how long a publish id is remembered.
PUBLISH_ID_LIMIT: Final = 1_000_000  # And how many of them per stream.
REPLICA_WAIT_MS: Final = 1000  # For the confirmation of replicas.
MOST_REPLICAS: Final = 100

Pairs = Sequence[tuple[bytes, bytes]]
Time = tuple[str, int]  # DELAY and milliseconds from now, or AT and milliseconds since 1970, by the server's clock.


def parse_time(delay: Duration | None, at: datetime | None) -> Time | None:
    """When a message is to come; None: at once."""
    if delay is not None and at is not None:
        raise ConfigError("delay and at are both given; one of them says when.")
    if delay is not None:
        return "DELAY", parse_duration_ms(delay, "delay")
    if at is None:
        return None
    if not isinstance(at, datetime):
        raise ConfigError(f"at is {layout.a_type(at)}; give a datetime, or a duration as delay=.")
    return "AT", max(1, round(at.timestamp() * 1000))


def publish(
    facts: Facts, stream: str, payload: Any, key: str | None, id: str | None, headers: Mapping[str, str] | None,
    time: Time | None,
) -> Flow[str | None]:  # fmt: skip
    pairs = layout.encode_entry(payload, key=key, id=id, headers=headers)
    if time is not None:
        return (yield from add_later(facts, stream, pairs, time, id))
    if id is None:
        return (yield from requests.add(stream, pairs, "*", ()).run())
    return (yield from add_once(facts, stream, pairs, id))


def publish_many(
    facts: Facts, stream: str, payloads: Iterable[Any], key: str | None, headers: Mapping[str, str] | None,
    time: Time | None,
) -> Flow[list[str] | None]:  # fmt: skip
    check_several(payloads, "the payloads to publish")
    many = (layout.encode_entry(payload, key=key, headers=headers) for payload in payloads)
    if time is None:
        return (yield from add_all(stream, many))
    yield from add_many_later(facts, stream, many, time)
    return None


def add_once(facts: Facts, stream: str, pairs: Pairs, id: str) -> Flow[str]:
    """Add an entry unless one with this publish id was added within the window; either way, the entry's ID."""
    words = words_of(pairs)
    known = yield from capabilities(facts)
    if known.has_native_steps:
        argv = ("HR.ADD", stream, *once_words(id), "FIELDS", len(words), *words)
        return (yield from Request(argv, read_id, stream, is_repeatable=True).run()) or ""
    keys = (stream, beside(stream, "ids"), beside(stream, "ids:age"))
    arguments: tuple[Word, ...] = (id, PUBLISH_ID_WINDOW_MS, PUBLISH_ID_LIMIT, *words)
    return (yield from run_step(facts.scripts, "add", keys, arguments, read_id, is_repeatable=True)) or ""


def add_confirmed(stream: str, pairs: Pairs, min_replicas: int) -> Flow[str]:
    """Add an entry and wait until so many replicas have it; Unconfirmed when they have not in time."""
    if isinstance(min_replicas, bool) or not isinstance(min_replicas, int) or not 1 <= min_replicas <= MOST_REPLICAS:
        raise ConfigError(f"min_replicas is {min_replicas!r}; give a whole number from 1 to {MOST_REPLICAS}.")
    wait: Request[int] = Request(("WAIT", min_replicas, REPLICA_WAIT_MS), requests.number, stream)
    entry_id, confirmed = yield [requests.add(stream, pairs, "*", ()), wait]  # On one connection, as WAIT needs it.
    for reply in (entry_id, confirmed):
        if isinstance(reply, HeadraceError):
            raise reply
    if confirmed < min_replicas:
        raise Unconfirmed(
            f"message {entry_id} was added to {stream!r}, but only {confirmed} of {min_replicas} replicas have it "
            f"after {REPLICA_WAIT_MS / 1000:g} s."
        )
    return str(entry_id)


def add_later(facts: Facts, stream: str, pairs: Pairs, time: Time, id: str | None) -> Flow[str | None]:
    """Add an entry when its time has come. Its ID when it is there already, None while it waits."""
    known = yield from capabilities(facts)
    if known.has_native_steps:
        return (yield from later_request(stream, pairs, time, id).run())
    step = "delay", later_keys(stream), later_words(pairs, time, id), read_id
    return (yield from run_step(facts.scripts, *step, is_repeatable=id is not None))


def add_many_later(facts: Facts, stream: str, many: Iterable[Pairs], time: Time) -> Flow[None]:
    known = yield from capabilities(facts)
    is_ready = known.has_native_steps
    batch: list[Pairs] = []
    for pairs in many:
        if is_ready:
            batch.append(pairs)
        else:
            yield from add_later(facts, stream, pairs, time, None)
            is_ready = True  # The server has the step now, and takes it in batches.
        if len(batch) == BATCH:
            yield from add_batch_later(facts, stream, batch, time)
            batch = []
    if batch:
        yield from add_batch_later(facts, stream, batch, time)


def add_batch_later(facts: Facts, stream: str, batch: list[Pairs], time: Time) -> Flow[None]:
    known = yield from capabilities(facts)
    sent: list[Request[Any]] = []
    for pairs in batch:
        if known.has_native_steps:
            sent.append(later_request(stream, pairs, time, None))
        else:
            words = later_words(pairs, time, None)
            sent.append(request_step(facts.scripts, "delay", later_keys(stream), words, read_id))
    replies = yield sent
    for pairs, reply in zip(batch, replies, strict=True):
        if isinstance(reply, HeadraceError):
            if not is_missing(reply):
                raise reply
            yield from add_later(facts, stream, pairs, time, None)


def later_request(stream: str, pairs: Pairs, time: Time, id: str | None) -> Request[str | None]:
    words = words_of(pairs)
    once = () if id is None else once_words(id)
    argv = ("HR.ADD", stream, *once, *time, "FIELDS", len(words), *words)
    return Request(argv, read_id, stream, is_repeatable=id is not None)


def later_keys(stream: str) -> tuple[str, ...]:
    keys = stream_keys(stream)
    return stream, beside(stream, "ids"), beside(stream, "ids:age"), keys.delayed, keys.bodies


def later_words(pairs: Pairs, time: Time, id: str | None) -> tuple[Word, ...]:
    return (id or "", PUBLISH_ID_WINDOW_MS, PUBLISH_ID_LIMIT, *time, *words_of(pairs))


def once_words(id: str) -> tuple[Word, ...]:
    return "ID", id, "WINDOW", PUBLISH_ID_WINDOW_MS, "MAX", PUBLISH_ID_LIMIT


def words_of(pairs: Pairs) -> tuple[bytes, ...]:
    return tuple(word for pair in pairs for word in pair)


def read_id(reply: Any) -> str | None:
    return None if reply[0] is None else requests.text(reply[0])
