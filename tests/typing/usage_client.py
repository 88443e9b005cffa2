"""The documented use of Client, as mypy --strict must see it. Checked by make lint; never run."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import assert_type

from headrace import (
    Broker,
    Channel,
    Channels,
    Claimed,
    Client,
    ConnectionLost,
    ConsumerInfo,
    Element,
    Entry,
    Group,
    GroupInfo,
    Guarantee,
    Job,
    LinkedList,
    Message,
    NotFound,
    PendingEntry,
    PendingSummary,
    Queue,
    QueueInfo,
    QueueStats,
    Stream,
    StreamInfo,
    Subscription,
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
        assert_type(orders.publish({"id": 17}, delay="5s"), str | None)
        assert_type(orders.publish({"id": 17}, id="order-17", at=datetime.now(UTC)), str | None)
        assert_type(orders.publish_many([{"id": 17}], delay=timedelta(minutes=5)), list[str] | None)
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


def queues(client: Client) -> None:
    jobs = client.queue("jobs")
    assert_type(jobs, Queue)
    assert_type(jobs.push(b"a", "b", 3, delay="10m", ttl=60, retry="30s", max_deliveries=5, dead_letter="d"), list[str])
    assert_type(jobs.pop(count=10, wait="5s"), list[Job])
    assert_type(client.pop_first("urgent", "jobs", count=2, wait=timedelta(seconds=1)), list[Job])
    [job] = jobs.recover(idle="1m", count=1)
    assert_type((job.id, job.body, job.text, job.queue), tuple[str, bytes, str, Queue])
    assert_type(job.deliveries, int | None)
    assert_type((job.ack(), job.nack(delay="1m"), job.extend()), tuple[bool, bool, bool])
    assert_type(jobs.ack(job, "1-1"), list[str])
    assert_type(jobs.nack(job), list[str])
    assert_type(jobs.extend("1-1"), list[str])
    assert_type(jobs.inspect(pending=True, start=-10, count=10), list[Element])
    assert_type(jobs.info(), QueueInfo)
    assert_type(jobs.stats(), QueueStats)
    jobs.pause("in")
    jobs.resume()
    assert_type(jobs.delete(), bool)
    assert_type(client.queues("jobs*"), list[str])


def lists(client: Client) -> None:
    inbox = client.list("inbox")
    assert_type(inbox, LinkedList)
    assert_type(inbox.push("a", b"b", left=True), int)
    assert_type(inbox.pop(count=2, wait="5s", right=True), list[bytes])
    assert_type(inbox.move("doing", wait="5s"), bytes | None)
    assert_type((inbox.length(), inbox.range(0, -1)), tuple[int, list[bytes]])


def channels(client: Client) -> None:
    news = client.channel("news")
    assert_type(news, Channel)
    assert_type(news.publish("hi"), int)
    assert_type(client.channels("news.*"), Channels)
    with news.listen(wait="5s") as messages:
        assert_type(messages, Subscription)
        for message in messages:
            assert_type(message, Message)
            assert_type((message.channel, message.text, message.pattern), tuple[str, str, str | None])


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
    client.queue("jobs").push({"a": 1})  # type: ignore[arg-type]
    client.queue("jobs").recover()  # type: ignore[call-arg]
    client.queue("jobs").pause("sideways")  # type: ignore[arg-type]
    client.channels("news.*").publish("hi")  # type: ignore[attr-defined]


def errors(client: Client) -> None:
    try:
        client.ping()
    except (ConnectionLost, NotFound) as error:
        assert_type(error, ConnectionLost | NotFound)


def one_folder() -> None:
    with Broker("./data", port=7379, fsync="everysec") as broker, Client("embedded:./data", may_host=False) as client:
        assert_type(broker.url, str)
        assert_type(broker.port, int)
        assert_type(client.stream("orders").length(), int)
