"""Streams: adding, reading, iterating, trimming; the same words on every server."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from headrace import ClientClosed, CommandError, ConfigError, Guarantee, NotFound, Refused, WrongType
from support.flavours import take

LONG_S = 60.0  # Only to end a broken test.


def ids(entries):
    return [entry.id for entry in entries]


def fill(stream, count):
    """Entries 1-0, 2-0, … with their number."""
    for number in range(1, count + 1):
        stream.add({"n": number}, id=f"{number}-0")


# Adding


def test_an_entry_is_read_back_as_it_was_added(stream):
    entry_id = stream.add({"item": "tea", "cups": 2, "price": 1.5, "raw": b"\xff\x00"})

    entry = stream.get(entry_id)

    assert entry.id == entry_id
    assert entry.pairs == ((b"item", b"tea"), (b"cups", b"2"), (b"price", b"1.5"), (b"raw", b"\xff\x00"))
    assert entry.stream == stream.name
    assert abs(entry.time - datetime.now(UTC)) < timedelta(hours=1)


def test_fields_may_repeat_and_keep_their_order(stream):
    entry_id = stream.add([("a", "1"), ("b", "2"), (b"a", b"3")])

    entry = stream.get(entry_id)

    assert entry.pairs == ((b"a", b"1"), (b"b", b"2"), (b"a", b"3"))
    assert entry.fields == {"a": "3", "b": "2"}


def test_the_id_may_be_chosen(stream):
    assert stream.add({"n": 1}, id="5-1") == "5-1"
    assert stream.add({"n": 2}, id="5-*") == "5-2"


def test_an_id_below_the_last_one_is_refused(stream):
    stream.add({"n": 1}, id="5-1")

    with pytest.raises(CommandError, match="equal or smaller"):
        stream.add({"n": 2}, id="5-1")


@pytest.mark.parametrize("fields", [{}, {"a": None}, {"a": True}, {"a": ["list"]}])
def test_fields_that_cannot_be_stored_are_refused_before_anything_is_sent(stream, fields):
    with pytest.raises(ConfigError):
        stream.add(fields)
    assert stream.length() == 0


def test_many_entries_are_added_in_order(stream):
    added = stream.add_many({"n": number} for number in range(2_345))

    assert len(added) == len(set(added)) == stream.length() == 2_345
    assert [int(entry.fields["n"]) for entry in stream.range()] == list(range(2_345))
    assert ids(stream.range()) == added


def test_adding_none_is_nothing(stream):
    assert stream.add_many([]) == []


def test_adding_many_trims_in_the_same_step(stream):
    stream.add_many(({"n": number} for number in range(50)), max_length=7, exact=True)

    assert stream.length() == 7


def test_max_length_trims_roughly_unless_exact(stream, spy):
    stream.add({"n": 1}, max_length=1)
    stream.add({"n": 2}, max_length=1, exact=True)

    assert [argv[2:5] for argv in spy.sent] == [("MAXLEN", "~", 1), ("MAXLEN", "=", 1)]
    assert stream.length() == 1


def test_a_name_that_is_not_utf8_survives_a_round_trip(client, name):
    raw = name.encode() + b"\xff\xfe"
    client.command("XADD", raw, "1-0", b"\xff", b"\xfe")
    [found] = client.streams(name + "*")

    [entry] = client.stream(found).range()

    assert found.encode("utf-8", "surrogateescape") == raw
    assert entry.fields == {"\udcff": "\udcfe"}
    assert client.stream(found).add(entry.pairs, id="2-0") == "2-0"


# Looking


def test_a_stream_nobody_wrote_to_is_empty(stream):
    assert stream.length() == 0
    assert stream.range() == []
    assert stream.get("1-0") is None
    assert list(stream.iterate()) == []
    assert stream.delete("1-0") == 0


def test_the_facts_of_a_stream(stream):
    fill(stream, 3)
    stream.delete("1-0")
    stream.group("billing").create()

    info = stream.info()

    assert (info.name, info.length, info.last_id, info.groups) == (stream.name, 2, "3-0", 1)
    assert (info.first_entry.id, info.last_entry.id) == ("2-0", "3-0")
    assert (info.entries_added, info.max_deleted_id) == (3, "1-0")


def test_the_facts_of_an_emptied_stream(stream):
    fill(stream, 1)
    stream.delete("1-0")

    info = stream.info()

    assert (info.length, info.first_entry, info.last_entry, info.last_id) == (0, None, None, "1-0")


def test_streams_are_listed_by_pattern_and_other_types_are_not(client, name):
    for suffix in ("a", "b", "c"):
        client.stream(f"{name}-{suffix}").add({"n": 1})
    client.command("SET", f"{name}-d", "text")

    assert client.streams(f"{name}-*") == [f"{name}-a", f"{name}-b", f"{name}-c"]


def test_a_stream_tells_its_guarantee(stream):
    assert stream.guarantee == Guarantee(delivery="at least once", fan_out=True, persisted=True)


def test_the_broker_answers(client):
    client.ping()
    assert client.capabilities().server in ("headrace", "redis", "valkey")
    assert client.capabilities().version >= (7, 0)


def test_handles_and_clients_show_what_they_are(client, stream):
    assert repr(stream.name) in repr(stream)
    assert "'billing'" in repr(stream.group("billing"))
    assert client.url in repr(client)


# Ranges


def test_a_range_includes_both_ends(stream):
    fill(stream, 5)

    assert ids(stream.range("2-0", "4-0")) == ["2-0", "3-0", "4-0"]
    assert ids(stream.range("2-0", "4-0", newest_first=True)) == ["4-0", "3-0", "2-0"]
    assert ids(stream.range(count=2)) == ["1-0", "2-0"]
    assert ids(stream.range(newest_first=True, count=2)) == ["5-0", "4-0"]
    assert ids(stream.range("beginning", "now")) == ["1-0", "2-0", "3-0", "4-0", "5-0"]


def test_two_milliseconds_are_a_window(stream):
    for entry_id in ("1518951480105-9", "1518951480106-0", "1518951480107-0", "1518951480107-3", "1518951480108-0"):
        stream.add({"n": 1}, id=entry_id)

    window = ["1518951480106-0", "1518951480107-0", "1518951480107-3"]
    first, last = (datetime.fromtimestamp(ms / 1000, UTC) for ms in (1518951480106, 1518951480107))

    assert ids(stream.range("1518951480106", "1518951480107")) == window
    assert ids(stream.range(first, last)) == window
    assert ids(stream.iterate(first, last, page=2)) == window


def test_a_time_back_begins_there(stream):
    now = datetime.now(UTC)
    for minutes in (120, 50, 10):
        stream.add({"n": minutes}, id=f"{round((now - timedelta(minutes=minutes)).timestamp() * 1000)}-0")

    assert [entry.fields["n"] for entry in stream.range(since="-1h")] == ["50", "10"]
    assert [entry.fields["n"] for entry in stream.range(until="-1h")] == ["120"]
    assert [entry.fields["n"] for entry in stream.range("-1h", "-30m")] == ["50"]
    assert stream.range(since="now") == []


@pytest.mark.parametrize("place", ["yesterday", "", "1-2-3", "-", "-5 fortnights", "0x10"])
def test_a_place_that_is_none_is_refused_with_examples(stream, place):
    with pytest.raises(ConfigError, match="write"):
        stream.range(since=place)


def test_pages_of_seven_over_ten_thousand_give_every_entry_once(stream):
    added = stream.add_many({"n": number} for number in range(10_000))

    assert ids(take(stream.iterate(page=7), 20_000)) == added


def test_iterating_between_two_places(stream):
    fill(stream, 20)

    assert ids(stream.iterate("4-0", "9-0", page=2)) == [f"{number}-0" for number in range(4, 10)]


# Removing


def test_deleting_says_how_many_were_there(stream):
    fill(stream, 3)

    assert stream.delete("1-0", "2-0", "9-0") == 2
    assert stream.delete() == 0
    assert ids(stream.range()) == ["3-0"]


def test_trimming_keeps_the_newest(stream):
    fill(stream, 10)

    report = stream.trim(keep=4)

    assert (report.removed, report.held_by, report.is_dry_run) == (6, None, False)
    assert ids(stream.range()) == ["7-0", "8-0", "9-0", "10-0"]


def test_trimming_by_place_keeps_the_place(stream):
    fill(stream, 10)

    assert stream.trim(before="4-0").removed == 3
    assert stream.range(count=1)[0].id == "4-0"


def test_trimming_what_a_group_was_not_given_is_refused_and_names_the_group(stream, group):
    fill(stream, 10)
    group.read("ann", count=2, ack_at_once=True)

    with pytest.raises(Refused, match="'billing'"):
        stream.trim(keep=4)

    assert stream.length() == 10


def test_trimming_what_is_pending_is_refused_until_it_is_acknowledged(stream, group):
    fill(stream, 10)
    group.read("ann")
    group.ack("1-0", "2-0", "4-0")

    with pytest.raises(Refused, match="3-0"):
        stream.trim(keep=0)
    group.ack(*[item.id for item in group.pending()])

    assert stream.trim(keep=0).removed == 10


def test_partly_trims_up_to_what_a_group_needs(stream, group):
    fill(stream, 10)
    group.read("ann", count=5)
    group.ack("1-0", "2-0")

    report = stream.trim(keep=1, partly=True)

    assert (report.removed, report.held_by) == (2, "billing")
    assert stream.range(count=1)[0].id == "3-0"


def test_a_dry_run_tells_and_leaves_everything(stream, group):
    fill(stream, 10)
    group.read("ann", count=5, ack_at_once=True)

    report = stream.trim(keep=8, dry_run=True)
    held = stream.trim(keep=1, dry_run=True)
    forced = stream.trim(keep=1, dry_run=True, force=True)

    assert (report.removed, report.held_by, report.is_dry_run) == (2, None, True)
    assert (held.removed, held.held_by) == (5, "billing")
    assert forced.removed == 9
    assert stream.length() == 10


def test_the_slowest_of_several_groups_decides(stream):
    fill(stream, 10)
    fast, slow = stream.group("fast"), stream.group("slow")
    for group, count in ((fast, 9), (slow, 3)):
        group.create(start="beginning")
        group.read("ann", count=count, ack_at_once=True)

    with pytest.raises(Refused, match="'slow'"):
        stream.trim(keep=4)

    assert stream.trim(keep=7).removed == 3


def test_force_trims_all_the_same(stream, group):
    fill(stream, 10)

    report = stream.trim(keep=4, force=True)

    assert (report.removed, report.kept_from_id) == (6, "7-0")


@pytest.mark.parametrize("options", [{}, {"keep": 1, "before": "1-0"}, {"keep": -1}, {"before": "now"}])
def test_a_trim_that_does_not_say_what_is_refused(stream, options):
    with pytest.raises(ConfigError):
        stream.trim(**options)


def test_trimming_a_stream_that_is_not_there_removes_nothing(stream):
    assert stream.trim(keep=1).removed == 0
    assert stream.trim(keep=1, force=True).removed == 0


# Errors


def test_a_missing_stream_is_named(stream):
    with pytest.raises(NotFound, match=f"{stream.name!r}.*Add an entry"):
        stream.info()
    with pytest.raises(NotFound, match=f"{stream.name!r}"):
        stream.groups()


def test_a_key_of_another_type_is_named_with_what_it_is(client, stream):
    client.command("SET", stream.name, "text")

    for call in (stream.length, stream.range, stream.groups, lambda: stream.add({"a": 1}), lambda: stream.trim(keep=1)):
        with pytest.raises(WrongType, match=f"{stream.name!r}"):
            call()
    with pytest.raises(WrongType, match=f"{stream.name!r} is not a stream but a string"):
        stream.info()


def test_the_error_among_many_adds_names_the_stream(client, stream):
    client.command("SET", stream.name, "text")

    with pytest.raises(WrongType, match=f"{stream.name!r}"):
        stream.add_many([{"n": 1}, {"n": 2}])


def test_an_unknown_command_is_a_command_error(client):
    with pytest.raises(CommandError, match="unknown command"):
        client.command("NOSUCHCOMMAND", "x")


# A client that is closed


def test_a_closed_client_refuses_every_call(connect, name):
    client = connect()
    stream = client.stream(name)
    stream.add({"n": 1})
    client.close()
    client.close()

    for call in (
        client.ping, client.streams, client.capabilities, lambda: client.command("PING"), stream.length, stream.info,
        lambda: stream.add({"n": 2}), lambda: stream.add_many([{"n": 2}]), lambda: stream.publish({}, id="x"),
        lambda: take(stream.follow(), 1), lambda: take(stream.group("billing").consume("ann"), 1),
        lambda: stream.group("billing").read("ann", wait="5s"),
    ):  # fmt: skip
        with pytest.raises(ClientClosed, match="is closed"):
            call()


def test_closing_a_client_ends_a_call_that_waits(connect, client, stream, group, name):
    other = connect()
    waiting = other.stream(name).group("billing")
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(waiting.read, "ann", wait="30s")
        time.sleep(0.3)  # By now it waits, as a rule; the promise is the same if it does not. Redis 7.0 shows no sign.
        other.close()

        with pytest.raises(ClientClosed):
            answer.result(LONG_S)
