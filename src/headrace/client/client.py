"""Client: streams, queues, lists and channels of any broker, for programs that wait. AsyncClient has the same, awaited.

    client = Client("redis://localhost")
    orders = client.stream("orders")
    orders.add({"id": "17"})
    for entry in orders.follow(start="now"): …

Handles (`stream`, `group`, `queue`, `list`, `channel`) hold no state and cost nothing; nothing is created on the server
until asked. Every call gives up after the client's timeout. Methods that wait take `wait=`.
"""

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TypeVar, overload

from headrace.client import flows, publish_flows, queue_flows, requests
from headrace.client.capabilities import Capabilities
from headrace.client.channels import Channel, Channels
from headrace.client.connect import open_transport
from headrace.client.flow import LONGEST_PAUSE_S, Flow, run_flow
from headrace.client.flows import PAGE, Fields
from headrace.client.linked_list import LinkedList
from headrace.client.reliable_queue import Job, Queue
from headrace.client.results import (
    STREAM_GUARANTEE,
    Claimed,
    ConsumerInfo,
    Entry,
    GroupInfo,
    PendingEntry,
    PendingSummary,
    StreamInfo,
    TrimReport,
)
from headrace.client.settings import find_url
from headrace.client.times import Duration, Place, parse_duration_ms, parse_place
from headrace.client.transport import Transport
from headrace.errors import ConfigError, ConnectionLost

T = TypeVar("T")
Names = list[str]  # In Client, list is the method.
Jobs = list[Job]


def choose_url(url: str | None) -> str:
    """The URL given, else HEADRACE_URL, else that of headrace.toml."""
    chosen = url or os.environ.get("HEADRACE_URL") or find_url()
    if not chosen:
        raise ConfigError(
            "no URL: give one, like headrace://localhost:7379, set HEADRACE_URL, or write it to headrace.toml."
        )
    return chosen


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Client:
    """A broker, by its URL. `may_host=False`: with `embedded:FOLDER`, only attach to another process that hosts it."""

    def __init__(
        self,
        url: str | None = None,
        *,
        timeout: Duration = "10s",
        protocol: int | None = None,
        may_host: bool = True,
    ) -> None:
        self._timeout_s = parse_duration_ms(timeout, "timeout") / 1000
        self._transport: Transport = open_transport(choose_url(url), self._timeout_s, protocol, may_host=may_host)
        self._facts = flows.Facts()

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def url(self) -> str:
        """Where it leads, without password."""
        return self._transport.url

    def close(self) -> None:
        self._transport.close()

    def run(self, flow: Flow[T]) -> T:
        return run_flow(self._transport, flow, self._timeout_s)

    def ping(self) -> None:
        """Raises when the broker cannot be reached."""
        self.run(requests.ping().run())

    def capabilities(self) -> Capabilities:
        """What this server can do."""
        return self.run(flows.capabilities(self._facts))

    def command(self, *argv: bytes | str | int) -> Any:
        """Any command, its reply as it comes. For what has no method here."""
        return self.run(requests.raw(*argv).run())

    def streams(self, pattern: str = "*") -> Names:
        """The names of all streams that match."""
        return self.run(flows.list_streams(pattern))

    def stream(self, name: str) -> "Stream":
        """Kept, for any number of groups, at least once."""
        return Stream(self, name)

    def queue(self, name: str) -> Queue:
        """Kept, each element for one consumer, at least once."""
        return Queue(self, name)

    def list(self, name: str) -> LinkedList:
        """Kept, each element for one consumer, at most once."""
        return LinkedList(self, name)

    def channel(self, name: str) -> Channel:
        """Not kept, for everybody who listens, at most once."""
        return Channel(self, name)

    def channels(self, pattern: str) -> Channels:
        """All channels that match, to listen to: client.channels("news.*")."""
        return Channels(self, pattern)

    def queues(self, pattern: str = "*") -> Names:
        """The names of all queues that match."""
        return self.run(queue_flows.list_queues(self._facts, pattern))

    def pop_first(self, *queues: str, count: int = 1, wait: Duration = 0) -> Jobs:
        """Pop from several queues: all that can be had from the first one, then from the second, up to `count`.

        Waits up to `wait` for the first element of any; an empty list: nothing came. A call that is cancelled, or whose
        answer is lost, may have popped: such elements are delivered, and found by Queue.recover.
        """
        rows = self.run(queue_flows.pop(self._facts, queues, count, parse_duration_ms(wait, "wait")))
        return [Job(element_id, body, self.queue(name)) for name, element_id, body in rows]


class Stream:
    """One stream."""

    guarantee = STREAM_GUARANTEE

    def __init__(self, client: Client, name: str) -> None:
        self.client = client
        self.name = name

    def __repr__(self) -> str:
        return f"Stream({self.name!r})"

    def group(self, name: str) -> "Group":
        return Group(self, name)

    # Adding

    def add(self, fields: Fields, *, id: str = "*", max_length: int | None = None, exact: bool = False) -> str:
        """Add an entry with exactly these fields; its ID. max_length trims in the same step, roughly unless exact."""
        trim = flows.trim_words(max_length, exact=exact)
        return self.client.run(requests.add(self.name, flows.encode_pairs(fields), id, trim).run())

    def add_many(self, many: Iterable[Fields], *, max_length: int | None = None, exact: bool = False) -> list[str]:
        """Add many entries in few round trips; their IDs."""
        return self.client.run(flows.add_many(self.name, many, flows.trim_words(max_length, exact=exact)))

    @overload
    def publish(
        self, payload: Any, *, key: str | None = None, id: str | None = None, headers: Mapping[str, str] | None = None
    ) -> str: ...

    @overload
    def publish(
        self,
        payload: Any,
        *,
        key: str | None = None,
        id: str | None = None,
        headers: Mapping[str, str] | None = None,
        delay: Duration | None = None,
        at: datetime | None = None,
    ) -> str | None: ...

    def publish(
        self,
        payload: Any,
        *,
        key: str | None = None,
        id: str | None = None,
        headers: Mapping[str, str] | None = None,
        delay: Duration | None = None,
        at: datetime | None = None,
    ) -> str | None:
        """Add a message in headrace's layout. With id=, twice is once: the second call gives the first one's ID.

        With delay= or at= it comes into the stream later, never before its time by the server's clock; a worker of any
        group of the stream brings it there. Then there is no ID yet: None.
        """
        when = publish_flows.parse_time(delay, at)
        return self.client.run(publish_flows.publish(self.client._facts, self.name, payload, key, id, headers, when))

    @overload
    def publish_many(
        self, payloads: Iterable[Any], *, key: str | None = None, headers: Mapping[str, str] | None = None
    ) -> list[str]: ...

    @overload
    def publish_many(
        self,
        payloads: Iterable[Any],
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        delay: Duration | None = None,
        at: datetime | None = None,
    ) -> list[str] | None: ...

    def publish_many(
        self,
        payloads: Iterable[Any],
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        delay: Duration | None = None,
        at: datetime | None = None,
    ) -> list[str] | None:
        """Add many messages in headrace's layout in few round trips; their IDs. With delay= or at=, later: None."""
        when = publish_flows.parse_time(delay, at)
        return self.client.run(publish_flows.publish_many(self.client._facts, self.name, payloads, key, headers, when))

    # Reading

    def length(self) -> int:
        return self.client.run(requests.length(self.name).run())

    def info(self) -> StreamInfo:
        return self.client.run(flows.stream_info(self.name))

    def get(self, entry_id: str) -> Entry | None:
        found = self.client.run(requests.range_(self.name, entry_id, entry_id, 1, newest_first=False).run())
        return found[0] if found else None

    def range(
        self,
        since: Place = "beginning",
        until: Place | None = None,
        *,
        count: int | None = None,
        newest_first: bool = False,
    ) -> list[Entry]:
        """Entries between two places, both included: range(since="-1h")."""
        start, end = range_ids(since, until)
        return self.client.run(requests.range_(self.name, start, end, count, newest_first=newest_first).run())

    def iterate(self, since: Place = "beginning", until: Place | None = None, *, page: int = PAGE) -> Iterator[Entry]:
        """As range, but fetched page by page: for streams of any length."""
        start, end = range_ids(since, until)
        while True:
            entries = self.client.run(requests.range_(self.name, start, end, page, newest_first=False).run())
            yield from entries
            if len(entries) < page:
                return
            start = "(" + entries[-1].id

    def follow(
        self, start: Place = "now", *, bookmark: str | None = None, wait: Duration | None = None, page: int = PAGE
    ) -> Iterator[Entry]:
        """Entries from a place on, then each new one as it comes; none is lost or given twice.

        A bookmark is kept in the broker after each page: the next follow with the same name goes on behind it. With
        wait=, it ends when nothing came for so long; wait=0 takes what is there. A lost connection is made again.
        """
        after = self.client.run(flows.resolve_start(self.name, parse_place(start, now_ms(), "start"), bookmark))
        wait_ms = None if wait is None else parse_duration_ms(wait, "wait")
        quiet_since = time.monotonic()
        while True:
            left_ms = requests.BLOCK_MS
            if wait_ms is not None:
                left_ms = max(0, min(left_ms, wait_ms - round((time.monotonic() - quiet_since) * 1000)))
            try:
                entries = self.client.run(requests.read(self.name, after, page, left_ms or None).run())
            except ConnectionLost:
                time.sleep(LONGEST_PAUSE_S)
                continue
            for entry in entries:
                yield entry
                after = entry.id
            if entries:
                quiet_since = time.monotonic()
                if bookmark is not None:
                    self.client.run(flows.save_bookmark(self.name, bookmark, after))
            elif not left_ms:
                return

    # Removing

    def delete(self, *ids: str) -> int:
        return self.client.run(requests.delete(self.name, ids).run()) if ids else 0

    def trim(
        self,
        *,
        keep: int | None = None,
        before: Place | None = None,
        force: bool = False,
        partly: bool = False,
        dry_run: bool = False,
    ) -> TrimReport:
        """Remove the oldest entries, by number to keep or by place.

        Refuses to remove what a group has not been given or has not acknowledged, and names the group. partly removes
        up to there; force removes all the same.

        dry_run only tells. Where the report names a group in held_by, the call would be refused without partly, and
        removed is what it would remove with it.
        """
        place = None if before is None else parse_place(before, now_ms(), "before")
        return self.client.run(
            flows.trim(
                self.client._facts, self.name, keep=keep, before=place, force=force, dry_run=dry_run, partly=partly
            )
        )

    def groups(self) -> list[GroupInfo]:
        return self.client.run(flows.groups(self.name))


class Group:
    """One consumer group of a stream."""

    def __init__(self, stream: Stream, name: str) -> None:
        self.stream = stream
        self.client = stream.client
        self.name = name

    def __repr__(self) -> str:
        return f"Group({self.stream.name!r}, {self.name!r})"

    def create(self, start: Place = "now") -> bool:
        """Make sure the group exists; whether it is new. It is given entries behind `start`."""
        place = group_place(start)
        return self.client.run(flows.create_group(self.stream.name, self.name, place))

    def seek(self, place: Place) -> None:
        """Move the group: entries behind the place are given again, those before it are passed over."""
        self.client.run(requests.seek_group(self.stream.name, self.name, group_place(place)).run())

    def destroy(self) -> bool:
        return self.client.run(requests.destroy_group(self.stream.name, self.name).run())

    def info(self) -> GroupInfo:
        return self.client.run(flows.find_group(self.stream.name, self.name))

    def lag(self) -> int | None:
        """Entries not given to the group yet; None when the server cannot know."""
        return self.info().lag

    def consumers(self) -> list[ConsumerInfo]:
        return self.client.run(requests.consumers(self.stream.name, self.name).run())

    def delete_consumer(self, consumer: str, *, hand_over_to: str | None = None, force: bool = False) -> int:
        """Remove a consumer. What is pending with it goes to another first, or the call refuses."""
        return self.client.run(
            flows.delete_consumer(self.stream.name, self.name, consumer, hand_over_to=hand_over_to, force=force)
        )

    # Consuming

    def read(
        self,
        consumer: str,
        *,
        count: int | None = None,
        wait: Duration = 0,
        claim_idle: Duration | None = None,
        ack_at_once: bool = False,
    ) -> list[Entry]:
        """New entries for this consumer; with claim_idle, first those pending with anybody for so long.

        Waits up to `wait` for the first one; an empty list means that nothing came.
        """
        return self.client.run(
            flows.read_group(
                self.client._facts,
                self.stream.name,
                self.name,
                consumer,
                count=count,
                wait_ms=parse_duration_ms(wait, "wait"),
                claim_idle_ms=None if claim_idle is None else parse_duration_ms(claim_idle, "claim_idle"),
                acks_at_once=ack_at_once,
            )
        )

    def history(self, consumer: str, *, after: str = "0-0", count: int | None = None) -> list[Entry]:
        """The consumer's own pending entries behind an ID. Each counts as delivered once more."""
        request = requests.read_group(self.stream.name, self.name, consumer, after, count=count)
        return self.client.run(request.run())

    def consume(self, consumer: str, *, count: int = 100, wait: Duration | None = None) -> Iterator[Entry]:
        """First what this consumer has pending, then new entries as they come. Ack each one yourself.

        Entries that were deleted meanwhile are acknowledged here and not given out. With wait=, it ends when nothing
        came for so long; wait=0 takes what is there. After a lost connection it begins with the pending ones again.
        """
        after: str | None = "0-0"
        quiet_since = time.monotonic()
        wait_ms = None if wait is None else parse_duration_ms(wait, "wait")
        while True:
            left_ms = requests.BLOCK_MS
            try:
                if after is not None:
                    entries = self.history(consumer, after=after, count=count)
                    after = entries[-1].id if entries else None
                else:
                    if wait_ms is not None:
                        left_ms = max(0, min(left_ms, wait_ms - round((time.monotonic() - quiet_since) * 1000)))
                    entries = self.read(consumer, count=count, wait=left_ms / 1000)
                gone = [entry.id for entry in entries if entry.is_deleted]
                if gone:
                    self.ack(*gone)
            except ConnectionLost:
                time.sleep(LONGEST_PAUSE_S)
                after = "0-0"
                continue
            for entry in entries:
                if not entry.is_deleted:
                    yield entry
            if entries:
                quiet_since = time.monotonic()
            elif not left_ms:
                return

    def ack(self, *ids: str, delete: bool = False) -> int:
        """How many were pending. With delete, an entry also goes once no group needs it any more."""
        return self.client.run(flows.ack(self.client._facts, self.stream.name, self.name, ids, delete=delete))

    # Pending entries

    def pending(
        self, *, min_idle: Duration = 0, consumer: str | None = None, limit: int | None = None
    ) -> list[PendingEntry]:
        """What was delivered and not acknowledged, by ID."""
        min_idle_ms = parse_duration_ms(min_idle, "min_idle")
        return self.client.run(
            flows.pending(self.stream.name, self.name, min_idle_ms=min_idle_ms, consumer=consumer, limit=limit)
        )

    def pending_summary(self) -> PendingSummary:
        return self.client.run(requests.pending_summary(self.stream.name, self.name).run())

    def claim(self, consumer: str, *ids: str, min_idle: Duration = 0, limit: int | None = None) -> Claimed:
        """Take over pending entries: these, or without IDs all that were idle for min_idle."""
        min_idle_ms = parse_duration_ms(min_idle, "min_idle")
        if not ids:
            return self.client.run(flows.claim_idle(self.stream.name, self.name, consumer, min_idle_ms, limit))
        entries = self.client.run(requests.claim(self.stream.name, self.name, consumer, min_idle_ms, ids).run())
        return Claimed(entries, [])


def range_ids(since: Place, until: Place | None) -> tuple[str, str]:
    """Both ends of a range. A bare millisecond or a time as the end takes in all of its millisecond."""
    start = parse_place(since, now_ms(), "since")
    end = "+" if until is None else parse_place(until, now_ms(), "until")
    if start == "$":
        start = f"{now_ms()}-0"
    if until is not None and is_time(until):
        end = end.partition("-")[0]
    return ("-" if start == "0-0" else start), ("+" if end == "$" else end)


def is_time(place: Place) -> bool:
    return not isinstance(place, str) or place.strip().startswith("-")


def group_place(place: Place) -> str:
    """Where a group stands: behind the given place, but at times and "beginning" including it."""
    found = parse_place(place, now_ms(), "start")
    return flows.before(found) if is_time(place) else found
