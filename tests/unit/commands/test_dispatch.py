"""From words to a reply: which command it is, who has to wait, and who is served when something comes."""

from __future__ import annotations

import pytest

from support.memory import ManualClock, MemoryBroker, MemoryClient, Refusal
from support.wire import encode


def entry(number: int) -> list[object]:
    return [b"%d-0" % number, [b"f", b"v"]]


def blocked(broker: MemoryBroker, command: str) -> MemoryClient:
    """A client that waits."""
    client = broker.client()
    client.send(command)
    assert client.is_waiting
    assert client.replies() == []
    return client


# Looking up


def test_commands_are_known_in_any_case(broker: MemoryBroker) -> None:
    assert broker("pInG") == b"PONG"
    assert broker("xAdD s 1-0 f v") == b"1-0"
    assert broker("xinfo gRoUpS s") == []


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("NOSUCH", "ERR unknown command 'NOSUCH'"),
        ("NOSUCH a b", "ERR unknown command 'NOSUCH', with args beginning with: 'a' 'b' "),
        ("XADD s", "ERR wrong number of arguments for 'xadd' command"),
        ("XLEN", "ERR wrong number of arguments for 'xlen' command"),
        ("XLEN s t", "ERR wrong number of arguments for 'xlen' command"),
        ("XINFO STREAM", "ERR wrong number of arguments for 'xinfo|stream' command"),
        ("XINFO FOO s", "ERR unknown subcommand 'FOO'. Try XINFO HELP."),
        ("XINFO", "ERR wrong number of arguments for 'xinfo' command"),
    ],
)
def test_what_is_not_a_command_is_refused_in_the_words_of_redis(broker: MemoryBroker, command: str, text: str) -> None:
    assert broker(command) == Refusal(text)


def test_a_refusal_of_a_long_line_quotes_only_its_beginning(broker: MemoryBroker) -> None:
    reply = str(broker("NOSUCH", "a" * 1000, "b" * 1000))

    assert reply.startswith("ERR unknown command 'NOSUCH', with args beginning with: 'aaa")
    assert len(reply) < 250


def test_a_name_with_line_breaks_cannot_forge_a_reply(broker: MemoryBroker) -> None:
    broker.first.send("NO\r\n+OK\r\n", "x")

    assert len(broker.first.replies()) == 1


# Waiting


def test_a_waiting_reader_is_served_by_the_entry_it_waited_for(broker: MemoryBroker) -> None:
    broker("XADD s 1-0 f v")
    reader = blocked(broker, "XREAD BLOCK 0 STREAMS s $")
    broker("XADD s 2-0 f v")

    assert reader.replies() == [[[b"s", [entry(2)]]]]
    assert not reader.is_waiting


def test_who_finds_something_does_not_wait(broker: MemoryBroker) -> None:
    broker("XADD s 1-0 f v")

    assert broker("XREAD BLOCK 0 STREAMS s 0") == [[b"s", [entry(1)]]]


def test_a_reader_of_several_streams_is_served_by_the_first_that_has_something(broker: MemoryBroker) -> None:
    reader = blocked(broker, "XREAD BLOCK 0 STREAMS a b $ $")
    broker("XADD b 1-0 f v")
    broker("XADD a 1-0 f v")

    assert reader.replies() == [[[b"b", [entry(1)]]]]


def test_every_waiting_reader_gets_every_entry(broker: MemoryBroker) -> None:
    readers = [blocked(broker, "XREAD BLOCK 0 STREAMS s $") for _ in range(3)]
    broker("XADD s 1-0 f v")

    assert [reader.replies() for reader in readers] == [[[[b"s", [entry(1)]]]]] * 3


def test_consumers_are_served_in_the_order_they_came_one_entry_each(broker: MemoryBroker) -> None:
    broker("XGROUP CREATE s g $ MKSTREAM")
    readers = [blocked(broker, f"XREADGROUP GROUP g c{index} COUNT 1 BLOCK 0 STREAMS s >") for index in range(4)]
    broker("XADD s 1-0 f v")
    assert [len(reader.replies()) for reader in readers] == [1, 0, 0, 0]
    broker("XADD s 2-0 f v")

    assert [len(reader.replies()) for reader in readers] == [0, 1, 0, 0]
    assert [reader.is_waiting for reader in readers] == [False, False, True, True]


def test_who_comes_back_waits_behind_the_others(broker: MemoryBroker) -> None:
    broker("XGROUP CREATE s g $ MKSTREAM")
    first, second = (blocked(broker, f"XREADGROUP GROUP g c{index} BLOCK 0 STREAMS s >") for index in range(2))
    broker("XADD s 1-0 f v")
    first.replies()
    first.send("XREADGROUP GROUP g c0 BLOCK 0 STREAMS s >")
    broker("XADD s 2-0 f v")

    assert (len(first.replies()), len(second.replies())) == (0, 1)


def test_waiting_ends_with_null_when_its_time_is_over(broker: MemoryBroker, clock: ManualClock) -> None:
    reader = blocked(broker, "XREAD BLOCK 50 STREAMS s $")
    clock.advance(ms=49)
    assert reader.is_waiting
    clock.advance(ms=1)

    assert reader.replies() == [None]
    broker("XADD s 1-0 f v")
    assert reader.replies() == []


def test_null_after_waiting_is_the_null_array_or_the_null_of_resp3(broker: MemoryBroker, clock: ManualClock) -> None:
    old, new = broker.client(), broker.client(protocol=3)
    for reader in (old, new):
        reader.send("XREAD BLOCK 50 STREAMS s $")
    clock.advance(ms=50)

    assert (old.received(), new.received()) == (b"*-1\r\n", b"_\r\n")


def test_a_wait_without_end_ends_when_something_comes(broker: MemoryBroker, clock: ManualClock) -> None:
    reader = blocked(broker, "XREAD BLOCK 0 STREAMS s $")
    clock.advance(s=10**6)
    assert reader.is_waiting
    broker("XADD s 1-0 f v")

    assert reader.replies() == [[[b"s", [entry(1)]]]]


def test_dollar_is_the_last_id_at_the_time_of_the_call(broker: MemoryBroker) -> None:
    broker("XADD s 5-0 f v")
    reader = blocked(broker, "XREAD BLOCK 0 STREAMS s $")
    broker("XDEL s 5-0")
    assert reader.is_waiting
    broker("XADD s 6-0 f v")

    assert reader.replies() == [[[b"s", [entry(6)]]]]


def test_plus_on_an_empty_stream_waits_for_the_last_entry_there_will_be(broker: MemoryBroker) -> None:
    """As Redis does: of entries that come together only the last."""
    reader = blocked(broker, "XREAD BLOCK 0 STREAMS s +")
    for command in ("MULTI", "XADD s 1-0 f v", "XADD s 2-0 f v", "EXEC"):
        broker(command)

    assert reader.replies() == [[[b"s", [entry(2)]]]]


def test_an_entry_added_and_trimmed_at_once_wakes_nobody(broker: MemoryBroker) -> None:
    reader = blocked(broker, "XREAD BLOCK 0 STREAMS s $")
    broker("XADD s MAXLEN 0 1-0 f v")

    assert reader.is_waiting


def test_a_reader_stays_when_its_key_becomes_something_else(broker: MemoryBroker) -> None:
    reader = blocked(broker, "XREAD BLOCK 0 STREAMS s t $ $")
    broker("LPUSH s a")
    assert reader.is_waiting
    broker("XADD t 1-0 f v")

    assert reader.replies() == [[[b"t", [entry(1)]]]]


@pytest.mark.parametrize(
    ("change", "prefix"),
    [
        ("XGROUP DESTROY s g", "NOGROUP"),
        ("DEL s", "NOGROUP"),
        ("FLUSHALL", "NOGROUP"),
        ("FLUSHDB", "NOGROUP"),
        ("RENAME s t", "NOGROUP"),
        ("MOVE s 5", "NOGROUP"),
        ("SWAPDB 0 5", "NOGROUP"),
        ("SET s text", "WRONGTYPE"),
    ],
)
def test_a_waiting_consumer_is_told_when_its_group_goes(broker: MemoryBroker, change: str, prefix: str) -> None:
    broker("XGROUP CREATE s g $ MKSTREAM")
    reader = blocked(broker, "XREADGROUP GROUP g ann BLOCK 0 STREAMS s >")
    broker(change)

    [reply] = reader.replies()
    assert isinstance(reply, Refusal)
    assert str(reply).startswith(prefix)


def test_a_waiting_consumer_is_told_when_its_key_expires(broker: MemoryBroker, clock: ManualClock) -> None:
    broker("XGROUP CREATE s g $ MKSTREAM")
    broker("PEXPIRE s 100")
    reader = blocked(broker, "XREADGROUP GROUP g ann BLOCK 0 STREAMS s >")
    clock.advance(ms=100)

    [reply] = reader.replies()
    assert str(reply).startswith("NOGROUP")


def test_a_stream_that_arrives_by_rename_serves_those_who_wait_for_it(broker: MemoryBroker) -> None:
    reader = blocked(broker, "XREAD BLOCK 0 STREAMS s 0")
    broker("XADD other 1-0 f v")
    broker("RENAME other s")

    assert reader.replies() == [[[b"s", [entry(1)]]]]


def test_who_hangs_up_while_waiting_is_passed_over(broker: MemoryBroker) -> None:
    broker("XGROUP CREATE s g $ MKSTREAM")
    first, second = (blocked(broker, f"XREADGROUP GROUP g c{index} BLOCK 0 STREAMS s >") for index in range(2))
    first.close()
    broker("XADD s 1-0 f v")

    assert second.replies() == [[[b"s", [entry(1)]]]]
    assert broker("XPENDING s g") == [1, b"1-0", b"1-0", [[b"c1", b"1"]]]


def test_commands_behind_a_waiting_one_run_when_it_is_served(broker: MemoryBroker) -> None:
    reader = broker.client()
    reader.send_bytes(encode([b"XREAD", b"BLOCK", b"0", b"STREAMS", b"s", b"$"]) + encode([b"PING"]) * 2)
    reader.send("ECHO", "more")
    assert reader.replies() == []
    broker("XADD s 1-0 f v")

    assert reader.replies() == [[[b"s", [entry(1)]]], b"PONG", b"PONG", b"more"]


def test_a_command_behind_a_waiting_one_may_wait_again(broker: MemoryBroker) -> None:
    wait = encode([b"XREADGROUP", b"GROUP", b"g", b"c", b"BLOCK", b"0", b"STREAMS", b"s", b">"])
    broker("XGROUP CREATE s g $ MKSTREAM")
    reader = broker.client()
    reader.send_bytes(wait * 2)
    broker("XADD s 1-0 f v")
    assert (len(reader.replies()), reader.is_waiting) == (1, True)
    broker("XADD s 2-0 f v")

    assert (len(reader.replies()), reader.is_waiting) == (1, False)


def test_a_pipeline_of_writes_serves_a_waiting_consumer_with_the_first(broker: MemoryBroker) -> None:
    broker("XGROUP CREATE s g $ MKSTREAM")
    reader = blocked(broker, "XREADGROUP GROUP g ann BLOCK 0 STREAMS s >")
    broker.first.send_bytes(encode([b"XADD", b"s", b"1-0", b"f", b"v"]) + encode([b"XADD", b"s", b"2-0", b"f", b"v"]))

    assert reader.replies() == [[[b"s", [entry(1)]]]]


def test_unblock_ends_a_wait_with_null_or_an_error(broker: MemoryBroker) -> None:
    first, second = (blocked(broker, "XREAD BLOCK 0 STREAMS s $") for _ in range(2))

    assert broker("CLIENT", "UNBLOCK", first.call.id) == 1
    assert broker("CLIENT", "UNBLOCK", second.call.id, "ERROR") == 1
    assert broker("CLIENT", "UNBLOCK", second.call.id) == 0
    assert first.replies() == [None]
    assert second.replies() == [Refusal("UNBLOCKED client unblocked via CLIENT UNBLOCK")]


# Waiting with CLAIM


@pytest.fixture
def held(broker: MemoryBroker) -> MemoryBroker:
    """Ann was just given 1-0; there is nothing else."""
    broker("XADD s 1-0 f v")
    broker("XGROUP CREATE s g 0")
    broker("XREADGROUP GROUP g ann STREAMS s >")
    return broker


def test_a_waiting_claim_is_served_when_an_entry_becomes_idle_enough(held: MemoryBroker, clock: ManualClock) -> None:
    clock.advance(ms=400)
    reader = blocked(held, "XREADGROUP GROUP g bob BLOCK 5000 CLAIM 1000 STREAMS s >")
    clock.advance(ms=599)
    assert reader.is_waiting
    clock.advance(ms=1)

    assert reader.replies() == [[[b"s", [[b"1-0", [b"f", b"v"], 1000, 1]]]]]


def test_a_waiting_claim_is_served_by_a_new_entry_before_that(held: MemoryBroker, clock: ManualClock) -> None:
    reader = blocked(held, "XREADGROUP GROUP g bob BLOCK 5000 CLAIM 1000 STREAMS s >")
    clock.advance(ms=10)
    held("XADD s 2-0 f v")

    assert reader.replies() == [[[b"s", [[b"2-0", [b"f", b"v"], 0, 0]]]]]


def test_a_waiting_claim_ends_with_null_when_nothing_is_due_in_time(held: MemoryBroker, clock: ManualClock) -> None:
    reader = blocked(held, "XREADGROUP GROUP g bob BLOCK 100 CLAIM 500 STREAMS s >")
    clock.advance(ms=100)

    assert reader.replies() == [None]


def test_of_two_waiting_claims_the_second_gets_the_entry_when_it_is_idle_again(
    held: MemoryBroker, clock: ManualClock
) -> None:
    first = blocked(held, "XREADGROUP GROUP g bob BLOCK 0 CLAIM 1000 STREAMS s >")
    second = blocked(held, "XREADGROUP GROUP g cat BLOCK 0 CLAIM 1000 STREAMS s >")
    clock.advance(ms=1000)
    assert (len(first.replies()), len(second.replies())) == (1, 0)
    clock.advance(ms=1000)

    assert second.replies() == [[[b"s", [[b"1-0", [b"f", b"v"], 1000, 2]]]]]


def test_an_entry_acknowledged_meanwhile_is_not_claimed(held: MemoryBroker, clock: ManualClock) -> None:
    reader = blocked(held, "XREADGROUP GROUP g bob BLOCK 0 CLAIM 1000 STREAMS s >")
    held("XACK s g 1-0")
    clock.advance(ms=5000)

    assert reader.is_waiting


def test_an_entry_delivered_while_somebody_waits_is_claimed_in_time(broker: MemoryBroker, clock: ManualClock) -> None:
    broker("XGROUP CREATE s g $ MKSTREAM")
    other = blocked(broker, "XREADGROUP GROUP g ann BLOCK 0 STREAMS s >")
    reader = blocked(broker, "XREADGROUP GROUP g bob BLOCK 0 CLAIM 1000 STREAMS s >")
    clock.advance(ms=300)
    broker("XADD s 1-0 f v")
    assert len(other.replies()) == 1
    clock.advance(ms=1000)

    assert reader.replies() == [[[b"s", [[b"1-0", [b"f", b"v"], 1000, 1]]]]]


def test_a_claim_with_an_old_time_wakes_who_waits(held: MemoryBroker) -> None:
    reader = blocked(held, "XREADGROUP GROUP g bob BLOCK 0 CLAIM 1000 STREAMS s >")
    held("XCLAIM s g ann 0 1-0 IDLE 3000")

    assert reader.replies() == [[[b"s", [[b"1-0", [b"f", b"v"], 3000, 2]]]]]


def test_an_entry_given_back_wakes_who_waits(held: MemoryBroker) -> None:
    reader = blocked(held, "XREADGROUP GROUP g bob BLOCK 0 CLAIM 1000 STREAMS s >")
    held("XNACK s g FAIL IDS 1 1-0")

    assert reader.replies() == [[[b"s", [[b"1-0", [b"f", b"v"], -1, 1]]]]]


def test_waiting_with_claim_and_history_answers_at_once(held: MemoryBroker) -> None:
    held("XGROUP CREATE t g $ MKSTREAM")

    assert held("XREADGROUP GROUP g ann BLOCK 0 CLAIM 5000 STREAMS t s > 0") == [[b"s", [entry(1)]]]


# Pause


def test_a_pause_holds_commands_back_until_it_is_over(broker: MemoryBroker, clock: ManualClock) -> None:
    other = broker.client()
    broker("CLIENT PAUSE 100")
    other.send("XADD s 1-0 f v")
    other.send("PING")
    assert other.replies() == []
    clock.advance(ms=100)

    assert other.replies() == [b"1-0", b"PONG"]


def test_a_pause_for_writes_lets_reads_through(broker: MemoryBroker) -> None:
    broker("CLIENT PAUSE 100 WRITE")
    reader, writer = broker.client(), broker.client()
    writer.send("XADD s 1-0 f v")

    assert reader("XLEN s") == 0
    assert broker("CLIENT UNPAUSE") == b"OK"
    assert writer.replies() == [b"1-0"]
