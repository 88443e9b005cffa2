"""Consumer groups: who is given what, when, and what is remembered of it."""

from __future__ import annotations

import pytest

from support.memory import ManualClock, MemoryBroker, Refusal
from support.wire import encode

NO_KEY = Refusal(
    "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option "
    "to create an empty stream automatically."
)
NO_GROUP = Refusal("NOGROUP No such consumer group 'g' for key name 's'")


@pytest.fixture
def stream(broker: MemoryBroker) -> MemoryBroker:
    """Entries 1-0 to 5-0, and the group g that has read none of them."""
    for number in range(1, 6):
        broker(f"XADD s {number}-0 f v{number}")
    broker("XGROUP CREATE s g 0")
    return broker


def ids(reply: list[list[list[list[bytes]]]] | None) -> list[bytes] | None:
    """The IDs in a reply about one stream."""
    return None if reply is None else [entry[0] for entry in reply[0][1]]


def pending(broker: MemoryBroker) -> list[tuple[bytes, bytes, int, int]]:
    return [tuple(row) for row in broker("XPENDING s g - + 100")]


# Groups


@pytest.mark.parametrize(("start", "given"), [("0", 5), ("2-0", 3), ("$", None), ("4", 1)])
def test_a_group_is_given_what_is_behind_its_start(stream: MemoryBroker, start: str, given: int | None) -> None:
    stream(f"XGROUP CREATE s h {start}")
    reply = stream("XREADGROUP GROUP h ann STREAMS s >")

    assert (len(reply[0][1]) if reply else None) == given


def test_a_group_may_make_its_stream(broker: MemoryBroker) -> None:
    assert broker("XGROUP CREATE s g $") == NO_KEY
    assert broker("XGROUP CREATE s g $ MKSTREAM") == b"OK"
    assert (broker("XLEN s"), broker("TYPE s")) == (0, b"stream")


def test_a_group_is_created_once(stream: MemoryBroker) -> None:
    assert stream("XGROUP CREATE s g 0") == Refusal("BUSYGROUP Consumer Group name already exists")


def test_a_refused_creation_makes_no_stream(broker: MemoryBroker) -> None:
    assert broker("XGROUP CREATE s g abc MKSTREAM") == Refusal(
        "ERR Invalid stream ID specified as stream command argument"
    )
    assert broker("EXISTS s") == 0


def test_the_count_of_read_entries_is_capped_at_those_added(stream: MemoryBroker) -> None:
    stream("XGROUP CREATE s h 2-0 ENTRIESREAD 99")

    assert stream("XINFO GROUPS s")[1][9] == 5


def test_a_destroyed_group_is_gone_with_all_it_had(stream: MemoryBroker) -> None:
    stream("XREADGROUP GROUP g ann STREAMS s >")

    assert stream("XGROUP DESTROY s g") == 1
    assert stream("XGROUP DESTROY s g") == 0
    stream("XGROUP CREATE s g 0")
    assert stream("XPENDING s g") == [0, None, None, None]


def test_setid_moves_the_position_and_leaves_what_is_pending(stream: MemoryBroker) -> None:
    stream("XREADGROUP GROUP g ann COUNT 3 STREAMS s >")
    stream("XGROUP SETID s g 1-0")

    assert [row[0] for row in pending(stream)] == [b"1-0", b"2-0", b"3-0"]
    assert ids(stream("XREADGROUP GROUP g bob COUNT 2 STREAMS s >")) == [b"2-0", b"3-0"]


def test_an_entry_read_again_belongs_to_its_new_reader_only(stream: MemoryBroker) -> None:
    stream("XREADGROUP GROUP g ann COUNT 2 STREAMS s >")
    stream("XREADGROUP GROUP g ann STREAMS s 0")
    stream("XGROUP SETID s g 0")
    stream("XREADGROUP GROUP g bob COUNT 1 STREAMS s >")

    assert pending(stream) == [(b"1-0", b"bob", 0, 1), (b"2-0", b"ann", 0, 2)]


def test_consumers_are_created_by_name_case_and_all(stream: MemoryBroker) -> None:
    assert stream("XGROUP CREATECONSUMER s g ann") == 1
    assert stream("XGROUP CREATECONSUMER s g ann") == 0
    assert stream("XGROUP CREATECONSUMER s g Ann") == 1


def test_a_reader_is_known_from_its_first_try(stream: MemoryBroker) -> None:
    stream("XGROUP SETID s g $")
    stream("XREADGROUP GROUP g ann STREAMS s >")

    assert [row[1] for row in stream("XINFO CONSUMERS s g")] == [b"ann"]


def test_deleting_a_consumer_loses_what_it_had(stream: MemoryBroker) -> None:
    stream("XREADGROUP GROUP g ann COUNT 2 STREAMS s >")
    stream("XREADGROUP GROUP g bob COUNT 1 STREAMS s >")

    assert stream("XGROUP DELCONSUMER s g ann") == 2
    assert stream("XGROUP DELCONSUMER s g ann") == 0
    assert [row[0] for row in pending(stream)] == [b"3-0"]


def test_groups_do_not_disturb_each_other(stream: MemoryBroker) -> None:
    stream("XGROUP CREATE s h 0")
    stream("XREADGROUP GROUP g ann STREAMS s >")
    stream("XREADGROUP GROUP h ann STREAMS s >")
    stream("XACK s g 1-0 2-0")

    assert (stream("XPENDING s g")[0], stream("XPENDING s h")[0]) == (3, 5)


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("XGROUP SETID s g 0", str(NO_GROUP)),
        ("XGROUP CREATECONSUMER s g c", str(NO_GROUP)),
        ("XGROUP DELCONSUMER s g c", str(NO_GROUP)),
        ("XGROUP SETID none g 0", str(NO_KEY)),
        ("XGROUP DESTROY none g", str(NO_KEY)),
        ("XGROUP CREATE s g 0 ENTRIESREAD -3", "ERR value for ENTRIESREAD must be positive or -1"),
        (
            "XGROUP CREATE s g 0 FOO",
            "ERR unknown subcommand or wrong number of arguments for 'CREATE'. Try XGROUP HELP.",
        ),
        ("XGROUP CREATE s g -", "ERR Invalid stream ID specified as stream command argument"),
        ("XGROUP FOO s g", "ERR unknown subcommand 'FOO'. Try XGROUP HELP."),
        ("XGROUP CREATE s", "ERR wrong number of arguments for 'xgroup|create' command"),
        ("XGROUP", "ERR wrong number of arguments for 'xgroup' command"),
    ],
)
def test_xgroup_refuses_in_the_words_of_redis(broker: MemoryBroker, command: str, text: str) -> None:
    broker("XADD s 1-0 f v")

    assert broker(command) == Refusal(text)


# Reading


def test_every_entry_goes_to_one_consumer(stream: MemoryBroker) -> None:
    assert ids(stream("XREADGROUP GROUP g ann COUNT 2 STREAMS s >")) == [b"1-0", b"2-0"]
    assert ids(stream("XREADGROUP GROUP g bob COUNT 2 STREAMS s >")) == [b"3-0", b"4-0"]
    assert ids(stream("XREADGROUP GROUP g ann STREAMS s >")) == [b"5-0"]
    assert stream("XREADGROUP GROUP g bob STREAMS s >") is None


def test_eight_readers_share_a_hundred_thousand_entries_without_a_double(broker: MemoryBroker) -> None:
    broker.first.send_bytes(encode([b"XADD", b"s", b"*", b"f", b"v"]) * 100_000)
    broker.first.received()
    broker("XGROUP CREATE s g 0")
    readers = [broker.client() for _ in range(8)]
    given: list[bytes] = []
    turn = 0
    while part := ids(readers[turn % 8](f"XREADGROUP GROUP g c{turn % 8} COUNT {turn % 90 + 1} STREAMS s >")):
        given += part
        turn += 1

    assert len(given) == len(set(given)) == 100_000
    assert broker("XPENDING s g")[0] == 100_000


def test_delivered_entries_are_pending_from_now_on(stream: MemoryBroker, clock: ManualClock) -> None:
    stream("XREADGROUP GROUP g ann COUNT 1 STREAMS s >")
    clock.advance(ms=40)

    assert pending(stream) == [(b"1-0", b"ann", 40, 1)]


def test_a_consumer_reads_its_own_history(stream: MemoryBroker) -> None:
    stream("XREADGROUP GROUP g ann COUNT 2 STREAMS s >")
    stream("XREADGROUP GROUP g bob COUNT 1 STREAMS s >")
    stream("XREADGROUP GROUP g ann COUNT 1 STREAMS s >")

    assert ids(stream("XREADGROUP GROUP g ann STREAMS s 0")) == [b"1-0", b"2-0", b"4-0"]
    assert ids(stream("XREADGROUP GROUP g ann COUNT 1 STREAMS s 1")) == [b"2-0"]


def test_history_counts_as_a_delivery_and_restarts_the_idle_time(stream: MemoryBroker, clock: ManualClock) -> None:
    stream("XREADGROUP GROUP g ann COUNT 1 STREAMS s >")
    clock.advance(s=9)
    stream("XREADGROUP GROUP g ann STREAMS s 0")
    stream("XREADGROUP GROUP g ann STREAMS s 0")

    assert pending(stream) == [(b"1-0", b"ann", 0, 3)]


def test_an_empty_history_is_an_empty_list(stream: MemoryBroker) -> None:
    assert stream("XREADGROUP GROUP g ann STREAMS s 0") == [[b"s", []]]


def test_history_answers_at_once_whatever_the_options(stream: MemoryBroker) -> None:
    assert stream("XREADGROUP GROUP g ann BLOCK 0 NOACK CLAIM 5 STREAMS s 0") == [[b"s", []]]


@pytest.mark.parametrize(
    "removal", ["XDEL s 1-0", "XTRIM s MAXLEN 3", "XADD s MINID 2 9-0 f v", "XDELEX s IDS 1 1-0", "XTRIM s MINID 2"]
)
def test_history_shows_entries_that_are_gone_without_fields(stream: MemoryBroker, removal: str) -> None:
    stream("XREADGROUP GROUP g ann COUNT 1 STREAMS s >")
    stream(removal)

    assert stream("XREADGROUP GROUP g ann STREAMS s 0") == [[b"s", [[b"1-0", None]]]]


def test_noack_gives_and_forgets(stream: MemoryBroker) -> None:
    assert len(ids(stream("XREADGROUP GROUP g ann NOACK STREAMS s >")) or []) == 5
    assert stream("XPENDING s g") == [0, None, None, None]


def test_several_streams_are_read_in_one_call(stream: MemoryBroker) -> None:
    stream("XADD t 7-0 f v")
    stream("XGROUP CREATE t g 0")
    stream("XREADGROUP GROUP g ann COUNT 1 STREAMS s >")

    reply = stream("XREADGROUP GROUP g ann COUNT 2 STREAMS s t 0 >")
    assert [(key, [entry[0] for entry in entries]) for key, entries in reply] == [(b"s", [b"1-0"]), (b"t", [b"7-0"])]


def test_one_missing_group_and_nothing_is_given(stream: MemoryBroker) -> None:
    stream("XADD t 7-0 f v")

    assert stream("XREADGROUP GROUP g ann STREAMS s t > >") == Refusal(
        "NOGROUP No such key 't' or consumer group 'g' in XREADGROUP with GROUP option"
    )
    assert stream("XPENDING s g")[0] == 0


@pytest.mark.parametrize(
    ("command", "start"),
    [
        ("XREADGROUP GROUP g c STREAMS s $", "ERR The $ ID is meaningless in the context of XREADGROUP"),
        ("XREADGROUP GROUP g c STREAMS s +", "ERR The + ID is meaningless in the context of XREADGROUP"),
        (
            "XREADGROUP COUNT 1 STREAMS s x >",
            "ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or",
        ),
        ("XREADGROUP COUNT 1 NOACK STREAMS s >", "ERR Missing GROUP option for XREADGROUP"),
        ("XREADGROUP GROUP g c COUNT 1 NOACK", "ERR syntax error"),
        ("XREADGROUP GROUP g c CLAIM test STREAMS s >", "ERR min-idle-time is not an integer or out of range"),
        ("XREADGROUP GROUP g c CLAIM 5.5 STREAMS s >", "ERR min-idle-time is not an integer or out of range"),
        ("XREADGROUP GROUP g c CLAIM +10 STREAMS s >", "ERR min-idle-time is not an integer or out of range"),
        ("XREADGROUP GROUP g c CLAIM -0 STREAMS s >", "ERR min-idle-time is not an integer or out of range"),
        ("XREADGROUP GROUP g c CLAIM 10e STREAMS s >", "ERR min-idle-time is not an integer or out of range"),
        ("XREADGROUP GROUP g c CLAIM -10 STREAMS s >", "ERR min-idle-time must be a positive integer"),
    ],
)
def test_xreadgroup_refuses_in_the_words_of_redis(stream: MemoryBroker, command: str, start: str) -> None:
    assert str(stream(command)).startswith(start)
    assert stream("XINFO CONSUMERS s g") == []


# CLAIM


def test_idle_entries_come_first_and_new_ones_behind_them(stream: MemoryBroker, clock: ManualClock) -> None:
    stream("XREADGROUP GROUP g ann COUNT 2 STREAMS s >")
    clock.advance(ms=60)

    reply = stream("XREADGROUP GROUP g bob COUNT 3 CLAIM 50 STREAMS s >")
    assert reply == [
        [
            b"s",
            [
                [b"1-0", [b"f", b"v1"], 60, 1],
                [b"2-0", [b"f", b"v2"], 60, 1],
                [b"3-0", [b"f", b"v3"], 0, 0],
            ],
        ]
    ]
    assert pending(stream) == [(b"1-0", b"bob", 0, 2), (b"2-0", b"bob", 0, 2), (b"3-0", b"bob", 0, 1)]


def test_the_longest_idle_is_claimed_first(stream: MemoryBroker, clock: ManualClock) -> None:
    stream("XREADGROUP GROUP g ann STREAMS s >")
    clock.advance(ms=100)
    stream("XCLAIM s g ann 0 1-0 3-0 IDLE 60")
    stream("XCLAIM s g ann 0 4-0 IDLE 500")

    assert ids(stream("XREADGROUP GROUP g bob CLAIM 50 STREAMS s >")) == [b"4-0", b"2-0", b"5-0", b"1-0", b"3-0"]


def test_the_count_is_shared_by_idle_and_new_entries(broker: MemoryBroker, clock: ManualClock) -> None:
    for _ in range(220):
        broker("XADD s * f v")
    broker("XGROUP CREATE s g 0")
    broker("XREADGROUP GROUP g ann COUNT 20 STREAMS s >")
    clock.advance(ms=50)

    entries = broker("XREADGROUP GROUP g bob COUNT 100 CLAIM 50 STREAMS s >")[0][1]
    assert [entry[3] for entry in entries] == [1] * 20 + [0] * 80


def test_claim_0_takes_everything_at_once(stream: MemoryBroker) -> None:
    stream("XREADGROUP GROUP g ann STREAMS s >")

    assert len(ids(stream("XREADGROUP GROUP g bob CLAIM 0 STREAMS s >")) or []) == 5


def test_own_entries_can_be_claimed_too(stream: MemoryBroker) -> None:
    stream("XREADGROUP GROUP g ann COUNT 1 STREAMS s >")
    stream("XREADGROUP GROUP g ann COUNT 1 CLAIM 0 STREAMS s >")

    assert pending(stream) == [(b"1-0", b"ann", 0, 2)]


def test_entries_that_are_gone_are_never_claimed(stream: MemoryBroker) -> None:
    stream("XREADGROUP GROUP g ann STREAMS s >")
    stream("XTRIM s MAXLEN 0")

    assert stream("XREADGROUP GROUP g bob CLAIM 0 STREAMS s >") is None
    assert stream("XPENDING s g")[0] == 5


def test_noack_does_not_touch_claimed_entries(stream: MemoryBroker) -> None:
    stream("XREADGROUP GROUP g ann COUNT 1 STREAMS s >")
    stream("XREADGROUP GROUP g bob COUNT 2 CLAIM 0 NOACK STREAMS s >")

    assert pending(stream) == [(b"1-0", b"bob", 0, 2)]


def test_of_two_claims_the_last_counts(stream: MemoryBroker, clock: ManualClock) -> None:
    stream("XREADGROUP GROUP g ann STREAMS s >")
    clock.advance(ms=55)

    assert stream("XREADGROUP GROUP g bob CLAIM 50 COUNT 1 CLAIM 60 STREAMS s >") is None


def test_an_entry_claimed_by_one_must_grow_idle_again_for_the_other(stream: MemoryBroker, clock: ManualClock) -> None:
    stream("XREADGROUP GROUP g ann STREAMS s >")
    clock.advance(ms=100)

    assert len(ids(stream("XREADGROUP GROUP g bob CLAIM 100 STREAMS s >")) or []) == 5
    assert stream("XREADGROUP GROUP g cat CLAIM 100 STREAMS s >") is None


# Acknowledging


def test_an_ack_counts_what_was_pending_whoever_sends_it(stream: MemoryBroker) -> None:
    stream("XREADGROUP GROUP g ann COUNT 2 STREAMS s >")

    assert stream.client()("XACK s g 1-0 99-0") == 1
    assert stream("XACK s g 1-0") == 0
    assert stream("XRANGE s 1-0 1-0") == [[b"1-0", [b"f", b"v1"]]]


def test_an_ack_knows_ids_by_any_spelling(stream: MemoryBroker) -> None:
    stream("XREADGROUP GROUP g ann STREAMS s >")

    assert stream("XACK s g 1 02-0 +3-0") == 3


def test_one_bad_id_and_nothing_is_acknowledged(stream: MemoryBroker) -> None:
    stream("XREADGROUP GROUP g ann STREAMS s >")

    assert isinstance(stream("XACK s g 1-0 abc"), Refusal)
    assert stream("XPENDING s g")[0] == 5


@pytest.mark.parametrize("place", ["none g", "s none"])
def test_a_missing_key_or_group_has_nothing_to_acknowledge(stream: MemoryBroker, place: str) -> None:
    assert stream(f"XACK {place} 1-0") == 0
    assert stream(f"XACKDEL {place} IDS 2 1-0 2-0") == [-1, -1]


def test_xackdel_acknowledges_and_deletes_in_one_step(stream: MemoryBroker) -> None:
    stream("XREADGROUP GROUP g ann COUNT 2 STREAMS s >")

    assert stream("XACKDEL s g IDS 3 1-0 2-0 3-0") == [1, 1, -1]
    assert (stream("XLEN s"), stream("XPENDING s g")[0]) == (3, 0)


def test_xackdel_acked_waits_for_the_last_group(stream: MemoryBroker) -> None:
    stream("XGROUP CREATE s h 0")
    stream("XREADGROUP GROUP g ann COUNT 1 STREAMS s >")
    stream("XREADGROUP GROUP h ann COUNT 1 STREAMS s >")

    assert stream("XACKDEL s g ACKED IDS 1 1-0") == [2]
    assert stream("XACKDEL s h ACKED IDS 1 1-0") == [1]
    assert stream("XRANGE s 1-0 1-0") == []


def test_xackdel_delref_acknowledges_for_every_group(stream: MemoryBroker) -> None:
    stream("XGROUP CREATE s h 0")
    stream("XREADGROUP GROUP g ann COUNT 1 STREAMS s >")
    stream("XREADGROUP GROUP h ann COUNT 1 STREAMS s >")

    assert stream("XACKDEL s g DELREF IDS 1 1-0") == [1]
    assert stream("XPENDING s h")[0] == 0


def test_xackdel_keepref_leaves_the_other_groups_reference(stream: MemoryBroker) -> None:
    stream("XGROUP CREATE s h 0")
    stream("XREADGROUP GROUP g ann COUNT 1 STREAMS s >")
    stream("XREADGROUP GROUP h ann COUNT 1 STREAMS s >")

    assert stream("XACKDEL s g IDS 1 1-0") == [1]
    assert stream("XREADGROUP GROUP h ann STREAMS s 0") == [[b"s", [[b"1-0", None]]]]


def test_a_waiting_claim_is_served_in_time_beside_entries_that_are_gone(
    broker: MemoryBroker, clock: ManualClock
) -> None:
    broker("XGROUP CREATE s g 0 MKSTREAM")
    broker("XADD s 1-0 f v")
    broker("XREADGROUP GROUP g ann STREAMS s >")
    broker("XDEL s 1-0")
    clock.advance(ms=900)
    broker("XADD s 2-0 f v")
    broker("XREADGROUP GROUP g ann STREAMS s >")
    clock.advance(ms=600)
    bob = broker.client()
    bob.send("XREADGROUP GROUP g bob BLOCK 0 CLAIM 1000 STREAMS s >")
    clock.advance(ms=399)
    assert bob.is_waiting
    clock.advance(ms=1)

    assert bob.replies() == [[[b"s", [[b"2-0", [b"f", b"v"], 1000, 1]]]]]


def test_a_pause_of_writes_holds_back_the_claim_of_who_waits(stream: MemoryBroker, clock: ManualClock) -> None:
    stream("XREADGROUP GROUP g ann STREAMS s >")
    bob = stream.client()
    bob.send("XREADGROUP GROUP g bob BLOCK 5000 CLAIM 1000 STREAMS s >")
    stream("CLIENT PAUSE 100000 WRITE")
    clock.advance(s=2)
    assert bob.is_waiting
    stream("CLIENT UNPAUSE")
    assert len(bob.replies()) == 1


def test_an_entry_that_came_back_under_its_id_can_be_claimed(broker: MemoryBroker, clock: ManualClock) -> None:
    broker("XGROUP CREATE s g 0 MKSTREAM")
    broker("XADD s 5-0 f v")
    broker("XREADGROUP GROUP g ann STREAMS s >")
    broker("XTRIM s MAXLEN 0")
    clock.advance(ms=1000)
    claim = "XREADGROUP GROUP g bob CLAIM 1000 STREAMS s >"
    assert broker(claim) is None
    broker("XSETID s 1-0")
    broker("XADD s 5-0 f new")

    assert broker(claim) == [[b"s", [[b"5-0", [b"f", b"new"], 1000, 1]]]]
