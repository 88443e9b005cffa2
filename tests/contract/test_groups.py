"""Groups: reading, pending entries, claiming, acknowledging, lag, consumers."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from headrace import CommandError, ConfigError, NotFound, Refused, WrongType
from headrace.client.flows import unique_consumer_name
from support.flavours import Spy
from support.servers import wait_until


def ids(entries):
    return [entry.id for entry in entries]


def fill(stream, count):
    for number in range(1, count + 1):
        stream.add({"n": number}, id=f"{number}-0")


# Creating


def test_creating_a_group_twice_is_harmless(stream):
    group = stream.group("billing")

    assert group.create() is True
    assert group.create() is False
    assert [info.name for info in stream.groups()] == ["billing"]


def test_a_group_begins_where_it_is_told(stream):
    fill(stream, 4)
    for name, start, expected in (
        ("all", "beginning", ["1-0", "2-0", "3-0", "4-0"]),
        ("behind", "2-0", ["3-0", "4-0"]),
        ("recent", "-1h", []),
        ("new", "now", []),
    ):
        group = stream.group(name)
        group.create(start=start)
        assert ids(group.read("ann")) == expected, name


def test_a_group_can_be_moved(stream, group):
    fill(stream, 4)
    group.read("ann")

    group.seek("2-0")
    assert ids(group.read("ann")) == ["3-0", "4-0"]
    group.seek("beginning")
    assert ids(group.read("ann", count=1)) == ["1-0"]
    group.seek("now")
    assert group.read("ann") == []


def test_a_destroyed_group_is_gone(stream, group):
    assert group.destroy() is True
    assert group.destroy() is False
    assert stream.groups() == []


# Reading


def test_each_entry_goes_to_one_consumer_of_a_group(stream, group):
    fill(stream, 4)

    assert ids(group.read("ann", count=3)) == ["1-0", "2-0", "3-0"]
    assert ids(group.read("bob")) == ["4-0"]
    assert group.read("ann") == []


def test_each_group_is_given_every_entry(stream):
    fill(stream, 2)
    for name in ("billing", "audit"):
        stream.group(name).create(start="beginning")
        assert ids(stream.group(name).read("ann")) == ["1-0", "2-0"]


def test_reading_waits_for_an_entry(connect, name):
    stream = connect().stream(name)
    group = stream.group("billing")
    group.create()
    other = connect().stream(name)
    spy = Spy(reader := connect())
    producer = threading.Thread(target=lambda: (wait_until(lambda: bool(spy.sent), "a read"), other.add({"n": 7})))
    producer.start()

    [entry] = reader.stream(name).group("billing").read("ann", wait="20s")

    producer.join()
    assert entry.fields == {"n": "7"}


def test_reading_gives_up_when_nothing_comes(group):
    assert group.read("ann", wait="50ms") == []


def test_reading_may_acknowledge_at_once(stream, group):
    fill(stream, 2)

    assert ids(group.read("ann", ack_at_once=True)) == ["1-0", "2-0"]
    assert group.pending() == []


def test_history_is_what_the_consumer_has_pending(stream, group):
    fill(stream, 5)
    group.read("ann", count=4)
    group.read("bob")
    group.ack("2-0")

    assert ids(group.history("ann")) == ["1-0", "3-0", "4-0"]
    assert ids(group.history("ann", after="1-0", count=1)) == ["3-0"]
    assert ids(group.history("bob")) == ["5-0"]
    assert group.history("eve") == []


def test_history_shows_deleted_entries_as_such(stream, group):
    fill(stream, 2)
    group.read("ann")
    stream.delete("1-0")

    assert [(entry.id, entry.is_deleted, entry.fields) for entry in group.history("ann")] == [
        ("1-0", True, {}),
        ("2-0", False, {"n": "2"}),
    ]


# Claiming while reading


def test_idle_entries_come_before_new_ones(stream, group):
    fill(stream, 4)
    group.read("ann", count=2)

    entries = group.read("bob", claim_idle=0)

    assert ids(entries) == ["1-0", "2-0", "3-0", "4-0"]
    assert [entry.deliveries for entry in entries] == [1, 1, 0, 0]
    assert all(entry.idle_ms >= 0 for entry in entries)
    assert {item.consumer for item in group.pending()} == {"bob"}


def test_entries_that_are_not_idle_long_enough_stay(stream, group):
    fill(stream, 3)
    group.read("ann", count=2)

    assert ids(group.read("bob", claim_idle="1h")) == ["3-0"]


def test_waiting_with_a_claim_ends_when_an_entry_has_been_idle_for_so_long(stream, group):
    fill(stream, 1)
    group.read("ann")

    [entry] = group.read("bob", claim_idle="200ms", wait="20s")

    assert (entry.id, entry.deliveries) == ("1-0", 1)


def test_waiting_with_a_claim_gives_up_too(group):
    assert group.read("bob", claim_idle="1m", wait="50ms") == []


# The consumer loop


def test_a_restarted_consumer_begins_with_what_it_left_behind(stream, group):
    fill(stream, 12)
    first_life = group.read("ann", count=10)
    group.ack(*ids(first_life[:4]))

    assert ids(group.consume("ann", count=4, wait=0)) == [f"{number}-0" for number in range(5, 13)]


def test_deleted_entries_are_acknowledged_and_not_handed_out(stream, group):
    fill(stream, 4)
    group.read("ann", count=3)
    stream.delete("1-0", "3-0")

    assert ids(group.consume("ann", wait=0)) == ["2-0", "4-0"]
    assert [item.id for item in group.pending()] == ["2-0", "4-0"]


def test_an_idle_loop_calls_once_per_wait(group, spy):
    assert list(group.consume("ann", wait="300ms")) == []

    reads = [argv for argv in spy.sent if argv[0] == "XREADGROUP"]
    assert [argv[-1] for argv in reads[:2]] == ["0-0", ">"]
    assert len(reads) <= 4  # The history, the wait, and the rest of a wait that a server ended a moment early.


def test_the_loop_gives_what_comes_later(connect, name):
    client, other = connect(), connect()
    group = client.stream(name).group("billing")
    group.create()
    entries = group.consume("ann", wait="20s")
    adder = threading.Thread(target=lambda: [other.stream(name).add({"n": number}) for number in range(20)])
    adder.start()

    seen = [next(entries).fields["n"] for _ in range(20)]

    adder.join()
    entries.close()
    assert seen == [str(number) for number in range(20)]


# Pending


def test_pending_entries_are_told_with_their_story(stream, group):
    fill(stream, 3)
    group.read("ann", count=2)
    group.read("bob")
    group.history("ann", count=1)

    items = group.pending()

    assert [(item.id, item.consumer, item.deliveries) for item in items] == [
        ("1-0", "ann", 2),
        ("2-0", "ann", 1),
        ("3-0", "bob", 1),
    ]
    assert all(item.idle_ms >= 0 for item in items)
    assert [item.id for item in group.pending(consumer="bob")] == ["3-0"]
    assert [item.id for item in group.pending(limit=2)] == ["1-0", "2-0"]
    assert group.pending(min_idle="1h") == []


def test_a_summary_of_what_is_pending(stream, group):
    assert group.pending_summary().total == 0
    assert group.pending_summary().lowest_id is None
    fill(stream, 3)
    group.read("ann", count=2)
    group.read("bob")

    summary = group.pending_summary()

    assert (summary.total, summary.lowest_id, summary.highest_id) == (3, "1-0", "3-0")
    assert summary.by_consumer == {"ann": 2, "bob": 1}


def test_more_pending_entries_than_one_page(stream, group):
    stream.add_many({"n": number} for number in range(1_234))
    group.read("ann")

    assert len(group.pending()) == 1_234
    assert len(group.pending(limit=777)) == 777


@pytest.mark.parametrize("call", ["pending", "claim"])
def test_a_limit_below_one_is_refused(group, call):
    arguments = ["ann"] if call == "claim" else []

    with pytest.raises(ConfigError, match="limit"):
        getattr(group, call)(*arguments, limit=0)


# Claiming


def test_entries_are_claimed_by_id(stream, group):
    fill(stream, 3)
    group.read("ann")

    claimed = group.claim("bob", "1-0", "3-0", "9-0")

    assert ids(claimed.entries) == ["1-0", "3-0"]
    assert [item.consumer for item in group.pending()] == ["bob", "ann", "bob"]
    assert group.claim("eve", "1-0", min_idle="1h").entries == []


def test_everything_idle_is_claimed_once_over_several_calls(stream, group, spy):
    stream.add_many({"n": number} for number in range(1_700))
    given = group.read("ann")
    gone = ids(given)[10:20]
    stream.delete(*gone)

    claimed = group.claim("bob", min_idle=0)

    assert ids(claimed.entries) == [entry.id for entry in given if entry.id not in gone]
    assert claimed.deleted_ids == gone
    assert spy.names.count("XAUTOCLAIM") > 1
    assert {item.consumer for item in group.pending()} == {"bob"}


def test_a_claim_survives_changes_meanwhile(connect, name):
    stream = connect().stream(name)
    group = stream.group("billing")
    group.create(start="beginning")
    stream.add_many({"n": number} for number in range(1_700))
    given = ids(group.read("ann"))
    other = connect().stream(name)
    spy = Spy(claimer := connect())
    first_half = given[:850]

    def disturb() -> None:
        wait_until(lambda: "XAUTOCLAIM" in spy.names, "the first call of the claim")
        other.add_many({"n": number} for number in range(100))
        other.group("billing").read("ann", count=50)
        other.group("billing").ack(*given[-100:])

    disturber = threading.Thread(target=disturb)
    disturber.start()
    claimed = ids(claimer.stream(name).group("billing").claim("bob").entries)
    disturber.join()

    assert len(claimed) == len(set(claimed))
    assert set(first_half) <= set(claimed)
    still = {item.id for item in group.pending(consumer="bob")}
    assert set(given[:-100]) <= still


def test_a_limited_claim_stops_there(stream, group):
    fill(stream, 5)
    group.read("ann")

    assert ids(group.claim("bob", limit=2).entries) == ["1-0", "2-0"]


@pytest.mark.other_process
def test_another_consumer_takes_over_from_a_killed_one(url, connect, name):
    stream = connect().stream(name)
    group = stream.group("billing")
    group.create(start="beginning")
    fill(stream, 10)
    code = (
        "import sys, time; from headrace import Client\n"
        f"Client({url!r}).stream({name!r}).group('billing').read('ann')\n"
        "print('read', flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"read\n"
        os.kill(process.pid, signal.SIGKILL)

    assert ids(group.claim("bob").entries) == [f"{number}-0" for number in range(1, 11)]


# Acknowledging


def test_acknowledging_says_how_many_were_pending(stream, group):
    fill(stream, 3)
    group.read("ann")

    assert group.ack("1-0", "2-0", "9-0") == 2
    assert group.ack("1-0") == 0
    assert group.ack() == 0
    assert [item.id for item in group.pending()] == ["3-0"]
    assert stream.length() == 3


def test_acknowledging_with_delete_waits_for_the_last_group(stream, group):
    fill(stream, 3)
    audit = stream.group("audit")
    audit.create(start="beginning")
    group.read("ann")
    audit.read("eve", count=2)

    assert group.ack("1-0", "2-0", "3-0", delete=True) == 3
    assert ids(stream.range()) == ["1-0", "2-0", "3-0"]
    assert audit.ack("1-0", delete=True) == 1
    assert ids(stream.range()) == ["2-0", "3-0"]
    assert audit.ack("2-0") == 1
    audit.read("eve")
    assert audit.ack("3-0", delete=True) == 1
    assert ids(stream.range()) == ["2-0"]


def test_acknowledging_with_delete_is_one_call(stream, group, spy):
    fill(stream, 2)
    group.read("ann")
    group.ack("1-0", delete=True)
    spy.sent.clear()

    group.ack("2-0", delete=True)

    assert len(spy.sent) == 1
    assert stream.length() == 0


def test_acknowledging_with_delete_leaves_what_was_not_pending(stream, group):
    fill(stream, 2)
    group.read("ann", count=1)

    assert group.ack("2-0", "9-0", delete=True) == 0
    assert stream.length() == 2


# Facts


def test_lag_is_what_was_not_given_yet(stream, group):
    fill(stream, 5)
    assert group.lag() == 5
    group.read("ann", count=2)

    info = group.info()

    assert (info.name, info.consumers, info.pending, info.last_delivered_id) == ("billing", 1, 2, "2-0")
    assert (info.entries_read, info.lag, group.lag()) == (2, 3, 3)


def test_lag_is_none_when_the_server_cannot_know(stream):
    fill(stream, 5)
    group = stream.group("billing")
    group.create(start="2-0")
    stream.delete("4-0")

    assert group.lag() is None


def test_consumers_are_told_with_their_times(stream, group):
    fill(stream, 2)
    group.read("ann", count=1)
    group.read("bob", count=1)

    consumers = {consumer.name: consumer for consumer in group.consumers()}

    assert {name: consumer.pending for name, consumer in consumers.items()} == {"ann": 1, "bob": 1}
    assert all(consumer.idle_ms >= 0 for consumer in consumers.values())
    assert all(consumer.inactive_ms is None or consumer.inactive_ms >= 0 for consumer in consumers.values())


# Removing consumers


def test_a_consumer_with_pending_entries_is_not_deleted(stream, group):
    fill(stream, 3)
    group.read("ann")

    with pytest.raises(Refused, match=r"'ann'.*3 pending"):
        group.delete_consumer("ann")

    assert [consumer.name for consumer in group.consumers()] == ["ann"]


def test_pending_entries_are_handed_over_with_their_counts(stream, group):
    stream.add_many({"n": number} for number in range(600))
    group.read("ann")
    group.history("ann")

    assert group.delete_consumer("ann", hand_over_to="bob") == 600

    assert {(item.consumer, item.deliveries) for item in group.pending()} == {("bob", 2)}
    assert [consumer.name for consumer in group.consumers()] == ["bob"]


def test_handing_over_to_oneself_is_refused(stream, group):
    fill(stream, 1)
    group.read("ann")

    with pytest.raises(ConfigError, match="'ann'"):
        group.delete_consumer("ann", hand_over_to="ann")


def test_force_drops_what_is_pending(stream, group):
    fill(stream, 3)
    group.read("ann")

    assert group.delete_consumer("ann", force=True) == 3
    assert group.pending() == []


def test_deleting_a_consumer_nobody_knows_is_harmless(group):
    assert group.delete_consumer("nobody") == 0


def test_default_consumer_names_are_never_shared():
    names = {unique_consumer_name() for _ in range(1_000)}
    code = "from headrace.client.flows import unique_consumer_name; print(unique_consumer_name())"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()

    assert len(names) == 1_000
    assert other not in names and str(os.getpid()) in names.pop()


# Errors


@pytest.mark.parametrize(
    "call",
    [
        lambda group: group.read("ann"),
        lambda group: group.read("ann", claim_idle=0),
        lambda group: group.history("ann"),
        lambda group: next(group.consume("ann")),
        lambda group: group.pending(),
        lambda group: group.pending_summary(),
        lambda group: group.claim("ann"),
        lambda group: group.claim("ann", "1-0"),
        lambda group: group.consumers(),
        lambda group: group.info(),
        lambda group: group.lag(),
        lambda group: group.seek("now"),
        lambda group: group.delete_consumer("ann"),
    ],
    ids=lambda call: call.__code__.co_names[0] if hasattr(call, "__code__") else None,
)
def test_a_missing_group_is_named_with_what_to_do(stream, call):
    stream.add({"n": 1})

    with pytest.raises(NotFound, match=r"(?=.*'nobody')(?=.*[Cc]reate)") as caught:
        call(stream.group("nobody"))

    assert repr(stream.name) in str(caught.value)


def test_acknowledging_for_a_missing_group_is_nothing(stream):
    stream.add({"n": 1})

    assert stream.group("nobody").ack("1-0") == 0
    assert stream.group("nobody").ack("1-0", delete=True) == 0


def test_a_group_on_a_key_of_another_type(client, stream):
    client.command("SET", stream.name, "text")
    group = stream.group("billing")

    for call in (group.create, lambda: group.read("ann"), group.pending, lambda: group.ack("1-0")):
        with pytest.raises(WrongType, match=f"{stream.name!r}"):
            call()


def test_an_id_that_is_none_is_a_command_error(stream, group):
    with pytest.raises(CommandError, match="Invalid stream ID"):
        group.ack("abc")
