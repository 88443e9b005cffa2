"""XINFO: what a stream, its groups and its consumers look like from outside."""

from __future__ import annotations

from typing import Any

import pytest

from support.memory import START_MS, ManualClock, MemoryBroker, Refusal


def named(pairs: list[Any]) -> dict[str, Any]:
    return dict(zip([name.decode() for name in pairs[::2]], pairs[1::2], strict=True))


@pytest.fixture
def stream(broker: MemoryBroker) -> MemoryBroker:
    for number in range(1, 7):
        broker(f"XADD s {number}-0 f v")
    broker("XGROUP CREATE s g 0")
    return broker


def lag(broker: MemoryBroker) -> int | None:
    value = named(broker("XINFO GROUPS s")[0])["lag"]
    assert value is None or isinstance(value, int)
    return value


def test_a_stream_tells_its_length_edges_and_counters(stream: MemoryBroker) -> None:
    stream("XDEL s 1-0 4-0")
    info = named(stream("XINFO STREAM s"))

    assert list(info) == [
        "length", "radix-tree-keys", "radix-tree-nodes", "last-generated-id", "max-deleted-entry-id", "entries-added",
        "recorded-first-entry-id", "idmp-duration", "idmp-maxsize", "pids-tracked", "iids-tracked", "iids-added",
        "iids-duplicates", "groups", "first-entry", "last-entry",
    ]  # fmt: skip
    assert (info["length"], info["entries-added"], info["groups"]) == (4, 6, 1)
    assert (info["last-generated-id"], info["max-deleted-entry-id"]) == (b"6-0", b"4-0")
    assert (info["recorded-first-entry-id"], info["first-entry"][0], info["last-entry"][0]) == (b"2-0", b"2-0", b"6-0")


def test_an_empty_stream_has_no_edges(stream: MemoryBroker) -> None:
    stream("XTRIM s MAXLEN 0")
    info = named(stream("XINFO STREAM s"))

    assert (info["first-entry"], info["last-entry"], info["recorded-first-entry-id"]) == (None, None, b"0-0")
    assert (info["last-generated-id"], info["entries-added"]) == (b"6-0", 6)


def test_in_resp3_it_is_a_map(stream: MemoryBroker) -> None:
    client = stream.client(protocol=3)

    assert client("XINFO STREAM s")[b"length"] == 6
    assert client("XINFO GROUPS s")[0][b"lag"] == 6


def test_repeated_messages_are_counted(broker: MemoryBroker) -> None:
    for message in ("m1", "m2", "m1"):
        broker(f"XADD s IDMP p {message} * f v")
    info = named(broker("XINFO STREAM s"))

    assert (info["pids-tracked"], info["iids-tracked"], info["iids-added"], info["iids-duplicates"]) == (1, 2, 2, 1)


def test_the_full_form_shows_entries_groups_and_consumers(stream: MemoryBroker, clock: ManualClock) -> None:
    stream("XREADGROUP GROUP g ann COUNT 2 STREAMS s >")
    clock.advance(ms=70)
    stream("XREADGROUP GROUP g bob COUNT 1 STREAMS s >")
    info = named(stream("XINFO STREAM s FULL"))
    [group] = map(named, info["groups"])
    ann, bob = map(named, group["consumers"])

    assert [entry[0] for entry in info["entries"]] == [b"1-0", b"2-0", b"3-0", b"4-0", b"5-0", b"6-0"]
    assert (group["pel-count"], group["lag"], group["entries-read"]) == (3, 3, 3)
    assert group["pending"][2] == [b"3-0", b"bob", START_MS + 70, 1]
    assert (ann["pel-count"], ann["seen-time"], ann["active-time"]) == (2, START_MS, START_MS)
    assert bob["pending"] == [[b"3-0", START_MS + 70, 1]]


@pytest.mark.parametrize(("words", "shown"), [("", 10), ("COUNT 3", 3), ("COUNT 0", 15), ("COUNT -1", 10)])
def test_the_full_form_shows_so_many(broker: MemoryBroker, words: str, shown: int) -> None:
    for number in range(1, 16):
        broker(f"XADD s {number}-0 f v")

    assert len(named(broker(f"XINFO STREAM s FULL {words}"))["entries"]) == shown


def test_groups_tell_their_position_and_lag(stream: MemoryBroker) -> None:
    stream("XREADGROUP GROUP g ann COUNT 2 STREAMS s >")

    assert named(stream("XINFO GROUPS s")[0]) == {
        "name": b"g",
        "consumers": 1,
        "pending": 2,
        "last-delivered-id": b"2-0",
        "entries-read": 2,
        "lag": 4,
    }


def test_groups_and_consumers_are_listed_by_name(stream: MemoryBroker) -> None:
    for name in ("zoe", "ann", "max"):
        stream(f"XGROUP CREATE s {name} 0")
        stream(f"XGROUP CREATECONSUMER s g {name}")

    assert [row[1] for row in stream("XINFO GROUPS s")] == [b"ann", b"g", b"max", b"zoe"]
    assert [row[1] for row in stream("XINFO CONSUMERS s g")] == [b"ann", b"max", b"zoe"]


def test_the_lag_is_unknown_behind_a_hole_and_known_again_at_the_end(stream: MemoryBroker) -> None:
    stream("XREADGROUP GROUP g ann COUNT 1 STREAMS s >")
    stream("XDEL s 4-0")
    assert lag(stream) is None
    stream("XREADGROUP GROUP g ann STREAMS s >")

    assert lag(stream) == 0


def test_the_lag_after_trimming_is_what_is_left(stream: MemoryBroker) -> None:
    stream("XREADGROUP GROUP g ann COUNT 1 STREAMS s >")
    stream("XTRIM s MAXLEN 2")

    assert lag(stream) == 2


def test_the_lag_of_an_arbitrary_position_is_unknown(stream: MemoryBroker) -> None:
    stream("XGROUP SETID s g 3-0")

    assert lag(stream) is None


def test_counters_set_by_hand_may_make_the_lag_negative_as_in_redis(stream: MemoryBroker) -> None:
    stream("XGROUP SETID s g 3-0 ENTRIESREAD 6")
    stream("XREADGROUP GROUP g ann COUNT 2 STREAMS s >")

    assert lag(stream) == -2


def test_consumers_tell_when_they_last_tried_and_last_got_something(stream: MemoryBroker, clock: ManualClock) -> None:
    stream("XREADGROUP GROUP g ann STREAMS s >")
    stream("XGROUP CREATECONSUMER s g bob")
    clock.advance(ms=30)
    stream("XREADGROUP GROUP g ann STREAMS s >")
    clock.advance(ms=5)

    ann, bob = map(named, stream("XINFO CONSUMERS s g"))
    assert ann == {"name": b"ann", "pending": 6, "idle": 5, "inactive": 35}
    assert bob == {"name": b"bob", "pending": 0, "idle": 35, "inactive": -1}


def test_a_consumer_that_reads_without_pending_entries_does_not_count_as_active(stream: MemoryBroker) -> None:
    """As in Redis."""
    stream("XREADGROUP GROUP g ann NOACK STREAMS s >")

    assert named(stream("XINFO CONSUMERS s g")[0])["inactive"] == -1


def test_entries_given_back_are_counted(stream: MemoryBroker) -> None:
    stream("XREADGROUP GROUP g ann STREAMS s >")
    stream("XNACK s g FAIL IDS 2 1-0 2-0")
    [group] = map(named, named(stream("XINFO STREAM s FULL"))["groups"])

    assert group["nacked-count"] == 2


def test_help_names_the_subcommands(broker: MemoryBroker) -> None:
    for container in ("XINFO", "XGROUP"):
        lines = broker(f"{container} HELP")
        assert lines[0].startswith(container.encode() + b" <subcommand>")
        assert lines[-1] == b"    Print this help."


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("XINFO STREAM none", "ERR no such key"),
        ("XINFO STREAM none FOO", "ERR no such key"),
        ("XINFO GROUPS none", "ERR no such key"),
        ("XINFO CONSUMERS none g", "ERR no such key"),
        ("XINFO CONSUMERS s nog", "NOGROUP No such consumer group 'nog' for key name 's'"),
        ("XINFO FOO s", "ERR unknown subcommand 'FOO'. Try XINFO HELP."),
        ("XINFO STREAM s FOO", "ERR unknown subcommand or wrong number of arguments for 'STREAM'. Try XINFO HELP."),
        ("XINFO STREAM s FULL COUNT x", "ERR value is not an integer or out of range"),
        ("XINFO STREAM", "ERR wrong number of arguments for 'xinfo|stream' command"),
    ],
)
def test_xinfo_refuses_in_the_words_of_redis(stream: MemoryBroker, command: str, text: str) -> None:
    assert stream(command) == Refusal(text)
