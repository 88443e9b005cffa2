"""Reliable queues through the client, on every deployment (rows 183 to 213)."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from headrace import CommandError, ConfigError, Guarantee, NotFound, Unsupported, WrongType
from support.deployments import real_kinds, three_primaries
from support.flavours import Spy
from support.servers import wait_until


@pytest.fixture
def queue(client, name):
    return client.queue(name)


def bodies(jobs):
    return [job.body for job in jobs]


def is_ours(client):
    return client.capabilities().has_queues


# In and out


def test_what_is_pushed_is_popped_in_order_and_stays_until_it_is_acknowledged(queue):
    ids = queue.push(b"a", "b", 3)

    jobs = queue.pop(count=2)

    assert [(job.id, job.body, job.text) for job in jobs] == [(ids[0], b"a", "a"), (ids[1], b"b", "b")]
    assert (queue.info().undelivered, queue.info().delivered) == (1, 2)
    assert jobs[0].ack() is True
    assert queue.ack(jobs[1], ids[2]) == [ids[1]]
    assert (queue.info().undelivered, queue.info().delivered) == (1, 0)


def test_an_empty_queue_gives_nothing(queue):
    assert queue.pop() == []
    assert queue.pop(wait="20ms") == []
    assert queue.push() == [] and queue.ack() == [] and queue.nack() == [] and queue.extend() == []
    assert queue.ack("1-1") == [] and queue.recover(idle=0) == []


@pytest.mark.parametrize("word", ["BLOCK", "count"])
def test_a_queue_may_be_called_like_an_option(client, word):
    queue = client.queue(word)
    queue.delete()
    queue.push("a", "b")

    assert bodies(queue.pop()) == [b"a"]
    assert bodies(queue.pop(wait="1s")) == [b"b"]
    assert queue.pop() == []
    queue.delete()


def test_any_bytes_survive(queue):
    sent = [b"", b"\x00\xff\r\n", bytes(range(256)), b"x" * 300_000]
    queue.push(*sent)

    assert bodies(queue.pop(count=10)) == sent


def test_thousands_go_in_several_calls(queue):
    sent = [b"%d" % number for number in range(2_500)]

    ids = queue.push(*sent)
    jobs = queue.pop(count=5_000)

    assert bodies(jobs) == sent
    assert [job.id for job in jobs] == ids
    assert [element.id for element in queue.inspect(pending=True, start=100, count=2_300)] == ids[100:2_400]
    recovered = queue.recover(idle=0, count=5_000)
    assert [job.id for job in recovered] == ids
    assert {job.deliveries for job in recovered} == {2}
    assert {element.deliveries for element in queue.inspect(pending=True, count=2_500)} == {2}
    assert queue.ack(*jobs) == ids


def test_the_first_queue_comes_first(client, name):
    urgent, later = client.queue(f"{{{name}}}:urgent"), client.queue(f"{{{name}}}:later")
    later.push("l1", "l2")
    urgent.push("u1", "u2")

    jobs = client.pop_first(urgent.name, later.name, count=3)

    assert [(job.queue.name, job.text) for job in jobs] == [
        (urgent.name, "u1"), (urgent.name, "u2"), (later.name, "l1")
    ]  # fmt: skip
    assert all(job.ack() for job in jobs)
    assert later.info().undelivered == 1


@pytest.mark.parametrize("wakes", ["push", "nack", "resume"])
def test_a_waiting_pop_gets_what_comes(connect, name, wakes):
    client = connect()
    queue = client.queue(name)
    if wakes != "push":
        queue.push("x")
    held = queue.pop() if wakes == "nack" else []
    if wakes == "resume":
        queue.pause("out")
    other = connect()
    spy = Spy(other)
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(other.queue(name).pop, wait="30s")
        wait_until(lambda: any("BLOCK" in argv for argv in spy.sent), "the other one to wait")

        if wakes == "push":
            queue.push("x")
        elif wakes == "nack":
            held[0].nack()
        else:
            queue.resume()

        assert bodies(waiting.result(30)) == [b"x"]


def test_each_of_many_waiting_clients_gets_one(connect, name):
    got: list[bytes] = []
    clients = [connect() for _ in range(8)]
    threads = [
        threading.Thread(target=lambda one=one: got.extend(bodies(one.queue(name).pop(wait="30s")))) for one in clients
    ]
    for thread in threads:
        thread.start()

    connect().queue(name).push(*range(8))
    for thread in threads:
        thread.join(30)

    assert sorted(got) == [b"%d" % number for number in range(8)]


# Given back, recovered, extended


def test_a_silent_consumer_loses_its_job_to_another_and_its_late_ack_shows(queue, connect):
    queue.push("x")
    [slow] = queue.pop()
    other = connect().queue(queue.name)

    assert other.recover(idle="10m") == []
    [again] = other.recover(idle=0)

    assert (again.id, again.body, again.deliveries) == (slow.id, slow.body, 2)
    assert slow.deliveries is None
    assert [again.ack(), slow.ack()] == [True, False]


def test_a_job_that_is_given_back_comes_first(queue):
    queue.push("a", "b", "c")
    first, second = queue.pop(count=2)

    assert second.nack() and first.nack()

    assert first.nack() is False
    assert first.ack() is False
    assert bodies(queue.pop(count=3)) == [b"a", b"b", b"c"]
    assert [one.deliveries for one in queue.inspect(pending=True)] == [2, 2, 1]


def test_a_job_that_is_extended_is_the_last_to_be_recovered(queue):
    queue.push("a", "b", "c")
    first, _, _ = queue.pop(count=3)

    assert first.extend()

    assert [one.body for one in queue.inspect(pending=True)] == [b"b", b"c", b"a"]
    assert bodies(queue.recover(idle=0, count=2)) == [b"b", b"c"]
    first.ack()
    assert first.extend() is False


# Looking and managing


def test_inspect_shows_both_ends_and_takes_nothing(queue):
    ids = queue.push("a", "b", "c", "d")
    [job] = queue.pop()

    assert [(one.id, one.body, one.deliveries) for one in queue.inspect()] == [
        (ids[1], b"b", None), (ids[2], b"c", None), (ids[3], b"d", None)
    ]  # fmt: skip
    assert [one.body for one in queue.inspect(start=-2, count=1)] == [b"c"]
    assert queue.inspect(start=9) == queue.inspect(start=-9) == []
    [pending] = queue.inspect(pending=True)
    assert (pending.id, pending.body, pending.deliveries) == (job.id, b"a", 1)
    assert pending.idle_ms is not None and pending.idle_ms >= 0


def test_statistics(queue):
    ids = queue.push("a", "b", "c")
    job, _ = queue.pop(count=2)
    job.nack()
    queue.pop()

    found = queue.stats()

    assert (found.undelivered, found.delivered, found.delayed) == (1, 2, 0)
    assert (found.nacks, found.redeliveries, found.dead, found.expired) == (1, 1, 0, 0)
    assert (found.paused, found.last_id) == ("none", ids[-1])


def test_a_paused_queue(queue):
    queue.push("a")
    queue.pause("in")
    with pytest.raises(CommandError, match="is paused: it takes no new elements"):
        queue.push("b")
    assert bodies(queue.pop()) == [b"a"]
    queue.pause("out")
    queue.push("b")

    assert queue.pop() == queue.pop(wait="20ms") == queue.recover(idle=0) == []
    assert queue.stats().paused == "out"
    queue.pause()
    assert queue.stats().paused == "all"
    queue.resume()
    assert bodies(queue.pop()) == [b"b"]


def test_queues_are_listed_and_deleted(client, name):
    client.stream(f"{name}-stream").add({"a": "b"})
    names = [f"{name}-{number}" for number in range(3)]
    for one in names:
        client.queue(one).push("x")

    assert client.queues(f"{name}-*") == names
    assert client.queue(names[1]).delete() is True
    assert client.queue(names[1]).delete() is False
    assert client.queues(f"{name}-*") == [names[0], names[2]]


def test_options_of_a_push_work_on_our_broker_and_are_refused_elsewhere(client, queue):
    if not is_ours(client):
        for option in ({"delay": "1s"}, {"ttl": "1s"}, {"retry": "1s"}, {"max_deliveries": 3}):
            with pytest.raises(Unsupported, match="not possible on this server"):
                queue.push("x", **option)
        queue.push("x")
        [job] = queue.pop()
        with pytest.raises(Unsupported, match="a delay is not possible"):
            job.nack(delay="1s")
        assert queue.inspect(delayed=True) == []
        return
    with pytest.raises(ConfigError, match="dead_letter needs max_deliveries"):
        queue.push("x", dead_letter="elsewhere")
    dead = f"{queue.name}-dead"
    queue.push("late", delay="10m")
    queue.push("stale", ttl="1ms")
    queue.push("poison", max_deliveries=1, dead_letter=dead)
    wait_until(lambda: queue.stats().expired == 1, "the stale one to expire")

    [job] = queue.pop()

    assert (job.text, queue.stats().delayed) == ("poison", 1)
    [late] = queue.inspect(delayed=True)
    assert (late.body, late.deliveries, late.delivered_ms) == (b"late", 0, None)
    assert late.due_ms is not None and 0 < late.due_ms - int(late.id.split("-")[0]) <= 600_000
    assert job.nack(delay="20ms")
    wait_until(lambda: queue.pop() == [] and client.queue(dead).pop() != [], "the dead letter")


@pytest.mark.parametrize("protocol", [2, 3])
def test_both_protocols_give_the_same(connect, name, protocol):
    client = connect(protocol=protocol)
    queue, inbox = client.queue(name), client.list(f"{name}-list")
    queue.push("a", "b")

    assert bodies(queue.pop(wait="1s")) == [b"a"]
    assert queue.pop(count=5)[0].nack()
    assert (queue.info().undelivered, queue.stats().nacks, queue.stats().paused) == (1, 1, "none")
    assert [one.deliveries for one in queue.inspect(pending=True)] == [1]
    inbox.push("x", "y")
    assert inbox.pop(wait="1s") + inbox.pop() + inbox.pop(wait="10ms") == [b"x", b"y"]
    with client.channel(name).listen(wait="20s") as messages:
        client.channel(name).publish("hi")
        assert next(messages).text == "hi"


# What is refused


def test_a_key_of_another_kind_is_told(client, name, queue):
    client.command("SET", name, "text")

    for call in (
        lambda: queue.push("x"),
        queue.pop,
        lambda: queue.pop(wait="1s"),
        lambda: queue.ack("1-1"),
        lambda: queue.nack("1-1"),
        lambda: queue.extend("1-1"),
        lambda: queue.recover(idle=0),
        queue.inspect,
        queue.info,
        queue.stats,
        queue.pause,
        queue.delete,
    ):
        with pytest.raises(WrongType, match=f"'{name}' is not a queue but a string"):
            call()
    assert client.command("GET", name) == b"text"


def test_a_stream_is_not_taken_for_a_queue_nor_a_queue_for_a_stream(client, name):
    client.stream(name).add({"a": "b"})
    with pytest.raises(WrongType, match="is not a queue but a stream"):
        client.queue(name).pop()
    with pytest.raises(WrongType, match="is not a queue but a stream"):
        client.queue(name).push("x")
    client.queue(f"{name}-jobs").push("x")

    for call in (client.stream(f"{name}-jobs").groups, client.stream(f"{name}-jobs").group("billing").info):
        with pytest.raises(WrongType, match="is not a stream but a queue"):
            call()


def test_a_missing_queue_is_told(queue):
    for call in (queue.info, queue.stats, queue.inspect):
        with pytest.raises(NotFound, match=f"there is no queue '{queue.name}'"):
            call()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda queue: queue.push({"a": 1}), "cannot be a dict"),
        (lambda queue: queue.push("fine", None), "cannot be a NoneType"),
        (lambda queue: queue.push(True), "cannot be a bool"),
        (lambda queue: queue.pop(count=0), "count is 0"),
        (lambda queue: queue.pop(count="2"), "count is '2'"),
        (lambda queue: queue.pop(wait="soon"), "wait is 'soon'"),
        (lambda queue: queue.recover(idle="1 week"), "idle is '1 week'"),
        (lambda queue: queue.recover(idle=0, count=-1), "count is -1"),
        (lambda queue: queue.inspect(count=0), "count is 0"),
        (lambda queue: queue.inspect(pending=True, delayed=True), "not at both"),
        (lambda queue: queue.pause("sideways"), "'sideways'"),
        (lambda queue: queue.client.pop_first(), "at least one queue"),
    ],
)
def test_wrong_arguments_are_explained_and_nothing_is_sent(queue, call, words):
    with pytest.raises(ConfigError, match=words):
        call(queue)
    with pytest.raises(NotFound):
        queue.info()


def test_a_malformed_id_is_refused_and_nothing_changes(queue):
    queue.push("x")
    [job] = queue.pop()

    for wrong in ("foo", "", "1-2-3", "99999999999999999999-1"):
        for call in (queue.ack, queue.nack, queue.extend):
            with pytest.raises(CommandError, match="one of the IDs is not that of an element"):
                call(job.id, wrong)
    assert queue.info().delivered == 1


def test_the_guarantee_is_named(client):
    assert client.queue("q").guarantee == Guarantee(delivery="at least once", fan_out=False, persisted=True)
    assert client.list("l").guarantee == Guarantee(delivery="at most once", fan_out=False, persisted=True)
    assert client.channel("c").guarantee == Guarantee(delivery="at most once", fan_out=True, persisted=False)
    assert client.stream("s").guarantee == Guarantee(delivery="at least once", fan_out=True, persisted=True)


@pytest.mark.long
@pytest.mark.parametrize("kind", real_kinds(), ids=lambda kind: kind.name)
def test_queues_of_several_slots_cannot_be_popped_together(kind, open_url, name):
    with three_primaries(kind) as url:
        client = open_url(url)
        names = [f"{name}-{number}" for number in range(8)]
        for wait in (0, "1s"):
            with pytest.raises(ConfigError, match="must lie in one slot"):
                client.pop_first(*names, wait=wait)
        with pytest.raises(ConfigError, match="between lists in one slot"):
            [client.list(names[0]).move(other) for other in names]
