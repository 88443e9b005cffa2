"""Adding, reading and deleting entries, as a client sees it."""

from __future__ import annotations

import pytest

from support.memory import START_MS, ManualClock, MemoryBroker, Refusal

TOP = "18446744073709551615"
INVALID = Refusal("ERR Invalid stream ID specified as stream command argument")
TOO_SMALL = Refusal("ERR The ID specified in XADD is equal or smaller than the target stream top item")
EXHAUSTED = Refusal("ERR The stream has exhausted the last possible ID, unable to add more items")
WRONG_TYPE = Refusal("WRONGTYPE Operation against a key holding the wrong kind of value")
SYNTAX = Refusal("ERR syntax error")


def fill(broker: MemoryBroker, *ids: str, key: str = "s") -> None:
    for entry_id in ids:
        broker(f"XADD {key} {entry_id} f v")


def ids_of(entries: list[list[bytes]]) -> list[bytes]:
    return [entry[0] for entry in entries]


# Adding


def test_an_entry_gets_the_time_as_its_id(broker: MemoryBroker) -> None:
    assert broker("XADD s * f v") == b"%d-0" % START_MS


def test_entries_of_one_millisecond_count_up_and_a_new_one_starts_at_0(
    broker: MemoryBroker, clock: ManualClock
) -> None:
    assert [broker("XADD s * f v") for _ in range(3)] == [b"%d-%d" % (START_MS, seq) for seq in range(3)]
    clock.advance(ms=1)

    assert broker("XADD s * f v") == b"%d-0" % (START_MS + 1)


def test_ids_never_go_back_with_the_clock(broker: MemoryBroker) -> None:
    broker(f"XADD s {START_MS + 60000}-5 f v")

    assert broker("XADD s * f v") == b"%d-6" % (START_MS + 60000)


def test_a_deleted_id_is_not_given_again(broker: MemoryBroker) -> None:
    last = broker("XADD s * f v").decode()
    broker(f"XDEL s {last}")

    assert broker("XADD s * f v") == b"%d-1" % START_MS


def test_fields_come_back_in_order_with_duplicates(broker: MemoryBroker) -> None:
    broker("XADD s 1-1 b 1 a 2 b 3")

    assert broker("XRANGE s - +") == [[b"1-1", [b"b", b"1", b"a", b"2", b"b", b"3"]]]


def test_any_bytes_are_a_value(broker: MemoryBroker) -> None:
    broker("XADD", "s", "1-0", bytes(range(256)), b"\r\n*2\r\n$3\r\n9-9\r\n")

    assert broker("XRANGE s - +") == [[b"1-0", [bytes(range(256)), b"\r\n*2\r\n$3\r\n9-9\r\n"]]]


@pytest.mark.parametrize("command", ["XADD s *", "XADD s * f", "XADD s * f v g", "XADD s 1-0", "XADD s MAXLEN 5 * f"])
def test_fields_without_values_are_refused(broker: MemoryBroker, command: str) -> None:
    assert broker(command) == Refusal("ERR wrong number of arguments for 'xadd' command")
    assert broker("EXISTS s") == 0


@pytest.mark.parametrize("entry_id", ["5-1", "5-0", "4-9", "0-1", "4-*"])
def test_an_id_must_be_greater_than_all_before(broker: MemoryBroker, entry_id: str) -> None:
    fill(broker, "5-1")

    assert broker(f"XADD s {entry_id} f v") == TOO_SMALL


def test_the_lowest_id_is_0_1(broker: MemoryBroker) -> None:
    assert broker("XADD s 0-0 f v") == Refusal("ERR The ID specified in XADD must be greater than 0-0")
    assert broker("EXISTS s") == 0
    assert broker("XADD s 0-* f v") == b"0-1"


def test_a_bare_millisecond_means_sequence_0(broker: MemoryBroker) -> None:
    assert broker("XADD s 5 f v") == b"5-0"


def test_a_star_for_the_sequence_takes_the_next_one(broker: MemoryBroker) -> None:
    assert broker("XADD s 5-* f v") == b"5-0"
    assert broker("XADD s 5-* f v") == b"5-1"
    assert broker("XADD s 7-* f v") == b"7-0"


def test_a_used_up_millisecond_has_no_next_sequence(broker: MemoryBroker) -> None:
    fill(broker, f"5-{TOP}")

    assert broker("XADD s 5-* f v") == TOO_SMALL
    assert broker("XADD s 6-* f v") == b"6-0"


def test_behind_the_last_possible_id_nothing_can_be_added(broker: MemoryBroker) -> None:
    fill(broker, f"{TOP}-{TOP}")

    assert broker("XADD s * f v") == EXHAUSTED
    assert broker(f"XADD s {TOP}-* f v") == EXHAUSTED
    assert broker("XADD s 1-0 f v") == EXHAUSTED


def test_before_the_last_possible_id_there_is_room_for_one(broker: MemoryBroker) -> None:
    fill(broker, f"{TOP}-{int(TOP) - 1}")

    assert broker("XADD s * f v") == f"{TOP}-{TOP}".encode()


def test_nomkstream_does_not_make_a_stream(broker: MemoryBroker) -> None:
    assert broker("XADD s NOMKSTREAM * f v") is None
    assert broker("EXISTS s") == 0


@pytest.mark.parametrize(
    "command",
    [
        "XADD k * f v",
        "XADD k NOMKSTREAM 1-0 f v",
        "XLEN k",
        "XRANGE k - +",
        "XREVRANGE k + -",
        "XREAD STREAMS k 0",
        "XDEL k 1",
        "XDELEX k IDS 1 1",
        "XTRIM k MAXLEN 1",
        "XSETID k 1-0",
        "XCFGSET k IDMP-MAXSIZE 5",
        "XIDMPRECORD k p m 1-0",
        "XGROUP CREATE k g 0",
        "XGROUP DESTROY k g",
        "XREADGROUP GROUP g c STREAMS k >",
        "XACK k g 1-0",
        "XACKDEL k g IDS 1 1-0",
        "XNACK k g FAIL IDS 1 1-0",
        "XPENDING k g",
        "XCLAIM k g c 0 1-0",
        "XAUTOCLAIM k g c 0 0",
        "XINFO STREAM k",
        "XINFO GROUPS k",
        "XINFO CONSUMERS k g",
    ],
)
def test_a_key_of_another_type_is_refused(broker: MemoryBroker, command: str) -> None:
    broker("SET k text")

    assert broker(command) == WRONG_TYPE


# Repeated messages


def test_a_repeated_message_is_answered_with_its_first_entry(broker: MemoryBroker) -> None:
    first = broker("XADD s IDMP p m1 * f v")

    assert broker("XADD s IDMP p m1 * f other") == first
    assert broker("XADD s IDMP p m2 * f v") != first
    assert broker("XADD s IDMP q m1 * f v") != first
    assert broker("XLEN s") == 3


def test_a_repeated_message_is_recognised_after_its_entry_was_deleted(broker: MemoryBroker) -> None:
    first = broker("XADD s IDMP p m1 * f v")
    broker("XDEL", "s", first)

    assert broker("XADD s IDMP p m1 * f v") == first
    assert broker("XLEN s") == 0


def test_messages_can_be_recognised_by_their_fields(broker: MemoryBroker) -> None:
    first = broker("XADD s IDMPAUTO p * a 1 b 2")

    assert broker("XADD s IDMPAUTO p * b 2 a 1") == first
    assert broker("XADD s IDMPAUTO p * a 1 b 3") != first


def test_a_message_repeated_too_late_is_new(broker: MemoryBroker, clock: ManualClock) -> None:
    first = broker("XADD s IDMP p m1 * f v")
    broker("XCFGSET s IDMP-DURATION 100")
    clock.advance(s=100)

    assert broker("XADD s IDMP p m1 * f v") != first


def test_an_entry_can_be_named_as_what_a_message_became(broker: MemoryBroker) -> None:
    first = broker("XADD s * f v").decode()

    assert broker(f"XIDMPRECORD s p m1 {first}") == b"OK"
    assert broker("XADD s IDMP p m1 * f v") == first.encode()
    assert broker(f"XIDMPRECORD s p m1 {first}") == b"OK"


def test_one_message_cannot_be_two_entries(broker: MemoryBroker) -> None:
    first, second = broker("XADD s * f v").decode(), broker("XADD s * f v").decode()
    broker(f"XIDMPRECORD s p m1 {first}")

    assert broker(f"XIDMPRECORD s p m1 {second}") == Refusal(
        "ERR IID already exists for this producer with a different stream ID"
    )


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("XADD s IDMP p m 1-0 f v", "ERR syntax error, IDMP/IDMPAUTO can be used only with auto-generated IDs"),
        ("XADD s IDMP p m IDMPAUTO p * f v", "ERR syntax error, IDMP/IDMPAUTO specified multiple times"),
        ('XADD s IDMP "" m * f v', "ERR syntax error, IDMP requires a non-empty producer ID"),
        ('XADD s IDMP p "" * f v', "ERR syntax error, IDMP requires a non-empty idempotent ID"),
        ('XADD s IDMPAUTO "" * f v', "ERR syntax error, IDMPAUTO requires a non-empty producer ID"),
        ("XCFGSET s", "ERR At least one parameter must be specified"),
        ("XCFGSET none IDMP-MAXSIZE 5", "ERR no such key"),
        ("XCFGSET s IDMP-MAXSIZE 0", "ERR IDMP-MAXSIZE must be between 1 and 10000 entries"),
        ("XCFGSET s IDMP-DURATION 86401", "ERR IDMP-DURATION must be between 1 and 86400 seconds"),
        ("XCFGSET s IDMP-MAXSIZE 5 IDMP-MAXSIZE 6", "ERR IDMP-MAXSIZE specified multiple times"),
        ("XIDMPRECORD s p m 9-9", "ERR No such message in stream"),
        ('XIDMPRECORD s "" m 1-0', "ERR producer ID must be non-empty"),
        ('XIDMPRECORD s p "" 1-0', "ERR idempotent ID must be non-empty"),
    ],
)
def test_wrong_words_about_repeated_messages_are_refused(broker: MemoryBroker, command: str, text: str) -> None:
    fill(broker, "1-0")

    assert broker(command) == Refusal(text)


# Ranges


def test_a_range_holds_both_ends(broker: MemoryBroker) -> None:
    fill(broker, "1-0", "2-0", "3-0", "4-0")

    assert ids_of(broker("XRANGE s 2-0 3-0")) == [b"2-0", b"3-0"]
    assert ids_of(broker("XREVRANGE s 3-0 2-0")) == [b"3-0", b"2-0"]


def test_a_bare_millisecond_in_a_range_is_the_whole_millisecond(broker: MemoryBroker) -> None:
    fill(broker, "4-9", "5-0", "5-1", "6-0")

    assert ids_of(broker("XRANGE s 5 5")) == [b"5-0", b"5-1"]


def test_a_bracket_leaves_an_end_out(broker: MemoryBroker) -> None:
    fill(broker, "1-0", "2-0", "3-0", "4-0", "5-0")

    assert ids_of(broker("XRANGE s (2-0 + COUNT 2")) == [b"3-0", b"4-0"]
    assert ids_of(broker("XREVRANGE s (4-0 (1-0")) == [b"3-0", b"2-0"]


@pytest.mark.parametrize("count", ["0", "-1", "-9223372036854775808"])
def test_a_count_of_nothing_is_null(broker: MemoryBroker, count: str) -> None:
    fill(broker, "1-0")

    assert broker(f"XRANGE s - + COUNT {count}") is None
    assert broker(f"XRANGE none - + COUNT {count}") == []


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("XRANGE s (- +", str(INVALID)),
        ("XRANGE s - (+", str(INVALID)),
        ("XRANGE s abc +", str(INVALID)),
        ("XRANGE s - + COUNT", "ERR syntax error"),
        ("XRANGE s - + LIMIT 5", "ERR syntax error"),
        ("XRANGE s - + COUNT x", "ERR value is not an integer or out of range"),
        (f"XRANGE s ({TOP}-{TOP} +", "ERR invalid start ID for the interval"),
        ("XRANGE s - (0-0", "ERR invalid end ID for the interval"),
        (f"XREVRANGE s (0-0 ({TOP}-{TOP}", "ERR invalid start ID for the interval"),
        ("XRANGE s -", "ERR wrong number of arguments for 'xrange' command"),
    ],
)
def test_ranges_that_make_no_sense_are_refused(broker: MemoryBroker, command: str, text: str) -> None:
    assert broker(command) == Refusal(text)


def test_a_range_turned_round_is_empty(broker: MemoryBroker) -> None:
    fill(broker, "1-0", "2-0")

    assert broker("XRANGE s + -") == []
    assert broker("XREVRANGE s - +") == []


def test_paging_with_a_bracket_sees_every_entry_once(broker: MemoryBroker) -> None:
    for _ in range(1000):
        broker("XADD s * f v")
    seen: list[bytes] = []
    start = b"-"
    while page := broker("XRANGE", "s", start, "+", "COUNT", "7"):
        seen += ids_of(page)
        start = b"(" + seen[-1]

    assert seen == ids_of(broker("XRANGE s - +"))
    assert len(seen) == 1000


# XREAD


def test_xread_gives_what_is_behind_each_id(broker: MemoryBroker) -> None:
    fill(broker, "1-0", "2-0", "3-0")
    fill(broker, "5-0", key="t")

    reply = broker("XREAD COUNT 2 STREAMS s t none 1 0-0 0")

    assert [(key, ids_of(entries)) for key, entries in reply] == [(b"s", [b"2-0", b"3-0"]), (b"t", [b"5-0"])]


def test_xread_with_nothing_to_give_is_null(broker: MemoryBroker) -> None:
    fill(broker, "1-0")

    assert broker("XREAD STREAMS s none $ 0") is None


def test_xread_with_a_plus_gives_the_last_entry(broker: MemoryBroker) -> None:
    fill(broker, "1-0", "2-0", "3-0")
    broker("XDEL s 3-0")

    assert broker("XREAD STREAMS s +") == [[b"s", [[b"2-0", [b"f", b"v"]]]]]


def test_xread_in_resp3_is_a_map(broker: MemoryBroker) -> None:
    fill(broker, "1-0")

    assert broker.client(protocol=3)("XREAD STREAMS s 0") == {b"s": [[b"1-0", [b"f", b"v"]]]}


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (
            "XREAD STREAMS a b 0",
            "ERR Unbalanced 'xread' list of streams: for each stream key an ID, '+', or '$' must be specified.",
        ),
        (
            "XREAD STREAMS s >",
            "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.",
        ),
        ("XREAD BLOCK -1 STREAMS s 0", "ERR timeout is negative"),
        ("XREAD BLOCK foo STREAMS s 0", "ERR timeout is not an integer or out of range"),
        ("XREAD COUNT 5 BLOCK", "ERR syntax error"),
        (
            "XREAD GROUP g c STREAMS s 0",
            "ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.",
        ),
        ("XREAD NOACK STREAMS s 0", "ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead."),
        (
            "XREAD CLAIM 5 STREAMS s 0",
            "ERR The CLAIM option is only supported by XREADGROUP. You called XREAD instead.",
        ),
        ("XREAD COUNT 5 FOO 6", "ERR syntax error"),
    ],
)
def test_xread_refuses_in_the_words_of_redis(broker: MemoryBroker, command: str, text: str) -> None:
    assert broker(command) == Refusal(text)


# Deleting


def test_xdel_counts_what_was_there(broker: MemoryBroker) -> None:
    fill(broker, "5-1", "6-0")

    assert broker("XDEL s 5-1 5-1 99-9") == 1
    assert broker("XDEL none 1-1") == 0


def test_one_bad_id_and_nothing_is_deleted(broker: MemoryBroker) -> None:
    fill(broker, "1-0", "2-0")

    assert broker("XDEL s 1-0 abc") == INVALID
    assert broker("XLEN s") == 2


def test_an_emptied_stream_goes_on_existing(broker: MemoryBroker) -> None:
    fill(broker, "1-0")
    broker("XDEL s 1-0")

    assert (broker("XLEN s"), broker("EXISTS s"), broker("XADD s 1-0 f v")) == (0, 1, TOO_SMALL)


def test_xdelex_tells_about_each_id(broker: MemoryBroker) -> None:
    fill(broker, "1-0", "2-0")

    assert broker("XDELEX s IDS 3 1-0 9-9 1-0") == [1, -1, -1]
    assert broker("XDELEX none IDS 2 1-0 2-0") == [-1, -1]


def test_xdelex_acked_keeps_what_a_group_still_needs(broker: MemoryBroker) -> None:
    fill(broker, "1-0", "2-0", "3-0")
    broker("XGROUP CREATE s g 0")
    broker("XREADGROUP GROUP g ann COUNT 2 STREAMS s >")
    broker("XACK s g 1-0")

    assert broker("XDELEX s ACKED IDS 3 1-0 2-0 3-0") == [1, 2, 2]


def test_xdelex_delref_clears_references_also_of_entries_long_gone(broker: MemoryBroker) -> None:
    fill(broker, "1-0", "2-0")
    broker("XGROUP CREATE s g 0")
    broker("XREADGROUP GROUP g ann STREAMS s >")
    broker("XDEL s 1-0")

    assert broker("XDELEX s DELREF IDS 2 1-0 2-0") == [-1, 1]
    assert broker("XPENDING s g") == [0, None, None, None]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("IDS 0 1-0", "ERR Number of IDs must be a positive integer"),
        ("IDS x 1-0", "ERR Number of IDs must be a positive integer"),
        ("IDS 3 1-0 2-0", "ERR The `numids` parameter must match the number of arguments"),
        ("KEEPREF ACKED IDS 1 1-0", "ERR syntax error"),
        ("IDS 1 1-0 2-0", "ERR syntax error"),
        ("KEEPREF", "ERR wrong number of arguments for 'xdelex' command"),
        ("IDS 1 abc", str(INVALID)),
    ],
)
def test_xdelex_refuses_in_the_words_of_redis(broker: MemoryBroker, words: str, text: str) -> None:
    fill(broker, "1-0")

    assert broker(f"XDELEX s {words}") == Refusal(text)


# XSETID


def test_xsetid_moves_the_last_id_and_the_counters(broker: MemoryBroker) -> None:
    fill(broker, "1-0")

    assert broker("XSETID s 9-0 ENTRIESADDED 20 MAXDELETEDID 5-0") == b"OK"
    info = broker("XINFO STREAM s")
    assert (info[7], info[9], info[11]) == (b"9-0", b"5-0", 20)
    assert broker("XADD s 9-0 f v") == TOO_SMALL


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("XSETID none 1-0", "ERR no such key"),
        ("XSETID s 1-0", "ERR The ID specified in XSETID is smaller than the target stream top item"),
        (
            "XSETID s 9-0 ENTRIESADDED 0",
            "ERR The entries_added specified in XSETID is smaller than the target stream length",
        ),
        ("XSETID s 9-0 ENTRIESADDED -1", "ERR entries_added must be positive"),
        (
            "XSETID s 9-0 MAXDELETEDID 10-0",
            "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id",
        ),
        ("XSETID s 9-0 FOO 1", "ERR syntax error"),
        ("XSETID s abc", str(INVALID)),
    ],
)
def test_xsetid_refuses_what_would_break_the_order(broker: MemoryBroker, command: str, text: str) -> None:
    fill(broker, "5-0")

    assert broker(command) == Refusal(text)


def test_xsetid_does_not_go_below_a_deleted_entry(broker: MemoryBroker) -> None:
    fill(broker, "5-0")
    broker("XDEL s 5-0")

    assert broker("XSETID s 4-0") == Refusal(
        "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id"
    )


@pytest.mark.parametrize("zeros", [126, 5000])
def test_an_endless_millisecond_before_a_free_sequence_is_refused(broker: MemoryBroker, zeros: int) -> None:
    assert str(broker("XADD", "orders", b"0" * zeros + b"-*", "item", "tea")).startswith("ERR Invalid stream ID")
    assert broker("EXISTS orders") == 0
