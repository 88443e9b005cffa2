"""The documented use of Client, as mypy --strict must see it. Checked by make lint; never run."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import assert_type

from headrace import (
    Claimed,
    Client,
    ConnectionLost,
    ConsumerInfo,
    Entry,
    Group,
    GroupInfo,
    Guarantee,
    NotFound,
    PendingEntry,
    PendingSummary,
    Stream,
    StreamInfo,
    TrimReport,
)


def streams() -> None:
    with Client("redis://localhost", timeout="10s", protocol=3) as client:
        orders = client.stream("orders")
        assert_type(orders, Stream)
        assert_type(orders.add({"id": "17", "total": 9.9, "raw": b"\xff"}), str)
        assert_type(orders.add([("a", "1"), (b"a", b"2")], max_length=1000, exact=True), str)
        assert_type(orders.add_many({"n": number} for number in range(3)), list[str])
        assert_type(orders.publish({"id": 17}, key="customer-42", id="order-17", headers={"a": "b"}), str)
        assert_type(orders.publish_many([{"id": 17}]), list[str])
        assert_type(orders.length(), int)
        assert_type(orders.info(), StreamInfo)
        assert_type(orders.get("1-0"), Entry | None)
        assert_type(orders.range(since="-1h", until=datetime.now(UTC), count=10, newest_first=True), list[Entry])
        assert_type(orders.iterate(page=7), Iterator[Entry])
        assert_type(orders.follow(start="now", bookmark="audit", wait=timedelta(seconds=5)), Iterator[Entry])
        assert_type(orders.delete("1-0", "2-0"), int)
        assert_type(orders.trim(keep=100_000, partly=True), TrimReport)
        assert_type(orders.trim(before="-7d", dry_run=True).held_by, str | None)
        assert_type(orders.groups(), list[GroupInfo])
        assert_type(orders.guarantee, Guarantee)
        assert_type(client.streams("orders*"), list[str])
        assert_type(client.url, str)


def groups(client: Client) -> None:
    billing = client.stream("orders").group("billing")
    assert_type(billing, Group)
    assert_type(billing.create(start="beginning"), bool)
    billing.seek("-5m")
    assert_type(billing.read("worker-1", count=10, wait="5s", claim_idle="1m"), list[Entry])
    assert_type(billing.history("worker-1"), list[Entry])
    assert_type(billing.consume("worker-1", wait=1.5), Iterator[Entry])
    assert_type(billing.ack("1-0", delete=True), int)
    assert_type(billing.pending(min_idle="5m"), list[PendingEntry])
    assert_type(billing.pending_summary(), PendingSummary)
    assert_type(billing.claim("worker-2", min_idle="5m"), Claimed)
    assert_type(billing.lag(), int | None)
    assert_type(billing.consumers(), list[ConsumerInfo])
    assert_type(billing.delete_consumer("worker-1", hand_over_to="worker-2"), int)
    assert_type(billing.destroy(), bool)


def entries(entry: Entry) -> None:
    assert_type(entry.fields, dict[str, str])
    assert_type(entry.pairs, tuple[tuple[bytes, bytes], ...])
    assert_type(entry.time, datetime | None)
    assert_type(entry.key, str | None)
    assert_type(entry.headers, dict[str, str])


def mistakes(client: Client) -> None:
    """Each ignore is needed: mypy says so when the mistake is no longer seen."""
    client.stream("orders").add("text")  # type: ignore[arg-type]
    client.stream("orders").trim(10)  # type: ignore[call-arg]
    client.stream("orders").group("billing").read()  # type: ignore[call-arg]
    client.stream(b"orders")  # type: ignore[arg-type]


def errors(client: Client) -> None:
    try:
        client.ping()
    except (ConnectionLost, NotFound) as error:
        assert_type(error, ConnectionLost | NotFound)
