"""The steps of workers through the client, on every deployment. What each of them does: support/worker_rows/."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace.client import worker_steps
from headrace.client.worker_keys import group_keys
from headrace.client.worker_steps import Ack, Add, Bury, Due, Retry, Started
from headrace.errors import CommandError, ConfigError, NotFound, WrongType
from support.servers import wait_until

Run = Callable[..., Any]


@pytest.fixture
def run(client: Any, name: str) -> Run:
    """run("due", "billing", "ann", 10): a step on the stream of this test."""

    def run(step: str, *arguments: Any, **options: Any) -> Any:
        facts = getattr(client, "target", client)._facts
        return client.run(getattr(worker_steps, step)(facts, name, *arguments, **options))

    return run


@pytest.fixture
def entries(stream: Any, group: Any) -> list[str]:
    """The IDs of five entries that ann has read."""
    stream.add_many([{"n": str(number)} for number in range(5)])
    return [entry.id for entry in group.read("ann")]


def test_messages_are_settled_in_one_call(client: Any, run: Run, stream: Any, group: Any, entries: list[str]) -> None:
    target = f"next{{{stream.name}}}"
    one, two, three, four, five = entries
    clauses = [
        Ack([one, two]),
        Ack([three], adds=[Add(target, [(b"data", b"\xff")])], effects=[("HSET", f"totals{{{stream.name}}}", "a", 1)]),
        Retry(four, 0, 1, "ValueError: é \udcff"),
        Bury(five, "Timeout: slow", "line 1\nline 2", 3),
    ]

    assert run("settle", "billing", "ann", clauses) == [True] * 5
    assert run("settle", "billing", "ann", clauses) == [False, False, False, True, False]
    assert [entry.pairs for entry in client.stream(target).range()] == [((b"data", b"\xff"),)]
    [letter] = client.stream(group_keys(stream.name, "billing").dead).range()
    assert (letter.fields["hr:id"], letter.fields["hr:attempts"], letter.fields["n"]) == (five, "3", "4")
    due = run("due", "billing", "bob", 10)
    assert ([entry.id for entry in due.entries], due.wait_ms, due.again) == ([four], None, 0)
    assert run("start", "billing", "bob", [four, one]) == [Started(2, "ValueError: é \udcff"), Started(0)]
    assert run("extend", "billing", "bob", [four, one]) == [True, False]
    assert run("release", "billing", "bob", [four, one]) == [True, False]
    assert run("sweep", "billing", 0, "ann") == ["ann"]
    assert [item.id for item in group.pending()] == [four]


def test_a_retry_that_must_wait_says_for_how_long(run: Run, group: Any, entries: list[str]) -> None:
    run("settle", "billing", "ann", [Retry(entries[0], 3_600_000, 1, "later")])

    [started] = run("start", "billing", "ann", entries[:1])
    due = run("due", "billing", "ann", 10)
    assert started.is_ours
    assert started.attempt == 0
    assert 3_500_000 < started.wait_ms <= 3_600_000
    assert due.entries == []
    assert 3_500_000 < due.wait_ms <= 3_600_000


def test_more_than_a_thousand_ids_are_several_calls(run: Run, stream: Any, group: Any) -> None:
    stream.add_many([{"n": str(number)} for number in range(2500)])
    ids = [entry.id for entry in group.read("ann")]

    assert run("extend", "billing", "ann", ids) == [True] * 2500
    assert [started.attempt for started in run("start", "billing", "ann", ids[:1001])] == [1] * 1001
    retries = [Retry(entry_id, 0, 1, "x") for entry_id in ids[:1200]]
    assert run("settle", "billing", "ann", [*retries, Ack(ids[1200:])]) == [True] * 2500
    assert len(group.pending()) == 1200
    with pytest.raises(ConfigError, match="1001 entries are to be settled in one step; 1000 are possible"):
        run("settle", "billing", "ann", [Ack(ids[:1001], adds=[Add("next", [(b"a", b"b")])])])
    assert run("settle", "billing", "ann", []) == run("extend", "billing", "ann", []) == []


def test_kept_entries_stay_but_those_tried_again_never_do(
    client: Any, run: Run, stream: Any, group: Any, entries: list[str]
) -> None:
    assert run("settle", "billing", "ann", [Ack(entries)], keep=True) == [True] * 5
    assert stream.length() == 5

    again = client.stream(group_keys(stream.name, "billing").again)
    again.group("billing").create(start="beginning")
    entry_id = again.add({"n": "1", "hr:id": "1-0"})
    assert run("due", "billing", "ann", 10) == Due([], None, 1)
    again.group("billing").read("ann")
    facts = getattr(client, "target", client)._facts
    settled = client.run(worker_steps.settle(facts, again.name, "billing", "ann", [Ack([entry_id])], keep=True))
    assert settled == [True]
    assert again.length() == 0


def test_a_missing_group_is_named(run: Run, stream: Any) -> None:
    with pytest.raises(NotFound, match=f"stream '{stream.name}' has no group 'billing'"):
        run("due", "billing", "ann", 10)
    assert run("settle", "billing", "ann", [Ack(["1-0"])]) == [False]
    assert run("start", "billing", "ann", ["1-0"]) == [Started(0)]
    assert run("sweep", "billing", 0) == []


def test_what_cannot_be_is_refused(client: Any, run: Run, stream: Any, group: Any, entries: list[str]) -> None:
    with pytest.raises(CommandError, match="EFFECT cannot be FLUSHALL"):
        run("settle", "billing", "ann", [Ack(entries[:1], effects=[("FLUSHALL", f"x{{{stream.name}}}")])])
    with pytest.raises(CommandError, match="Invalid stream ID"):
        run("settle", "billing", "ann", [Ack(["never"])])
    client.command("SET", f"text{{{stream.name}}}", "x")
    wrong = Add(f"text{{{stream.name}}}", [(b"a", b"b")])
    with pytest.raises(WrongType):
        run("settle", "billing", "ann", [Ack(entries[:1]), Ack(entries[1:2], adds=[wrong])])
    assert len(group.pending()) == 5


# Publishing for later


def test_a_delayed_message_is_there_when_its_time_has_come(run: Run, stream: Any, group: Any) -> None:
    assert stream.publish({"n": 1}, key="k", delay="30ms", headers={"a": "b"}) is None
    assert stream.length() == 0

    wait_until(lambda: run("due", "billing", "ann", 10).wait_ms is None, "the message")
    [entry] = stream.range()
    assert (entry.payload, entry.key, entry.headers) == ({"n": 1}, "k", {"a": "b"})


def test_many_delayed_messages_keep_their_order(run: Run, stream: Any, group: Any) -> None:
    at = datetime.now(UTC) + timedelta(hours=1)
    assert stream.publish_many(range(1500), at=at) is None

    due = run("due", "billing", "ann", 10)
    assert 3_400_000 < due.wait_ms <= 3_600_000
    assert stream.publish_many(range(1500), delay=0) is None
    assert [entry.payload for entry in stream.range()] == list(range(1500))


def test_a_delayed_message_with_an_id_is_published_once(run: Run, stream: Any, group: Any) -> None:
    assert [stream.publish({}, id="order-17", delay="10ms") for _ in range(3)] == [None] * 3
    wait_until(lambda: run("due", "billing", "ann", 10).wait_ms is None, "the message")

    [entry] = stream.range()
    assert entry.publish_id == "order-17"
    assert stream.publish({}, id="order-17") == stream.publish({}, id="order-17", delay="1h") == entry.id


def test_a_time_that_has_passed_is_now(stream: Any) -> None:
    entry_id = stream.publish({"n": 1}, at=datetime(2020, 1, 1, tzinfo=UTC))

    assert [entry.id for entry in stream.range()] == [entry_id]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"delay": "1s", "at": datetime(2020, 1, 1, tzinfo=UTC)}, "delay and at are both given"),
        ({"delay": "soon"}, "delay is 'soon'; write it like"),
        ({"delay": -1}, "delay is -1; it must be between 0"),
        ({"at": 1_700_000_000}, "at is an int; give a datetime"),
    ],
)
def test_a_time_that_is_none_is_refused(stream: Any, options: dict[str, Any], error: str) -> None:
    for publish, payload in ((stream.publish, 1), (stream.publish_many, [1])):
        with pytest.raises(ConfigError, match=error):
            publish(payload, **options)
