"""Reliable queues on a broker: waiting, what comes due, dead letters, and being a key like any other.

The promises that hold on every server are in tests/support/queue_rows.py.
"""

from __future__ import annotations

import pytest

from headrace.commands.table import MODULES
from support.memory import START_MS, ManualClock, MemoryBroker, Refusal
from support.replay import contents_of, state_of

assert MODULES


def bodies(reply: list[list[bytes]]) -> list[bytes]:
    return [row[-1] for row in reply]


# Waiting


def test_who_waits_longest_is_served_first(broker: MemoryBroker) -> None:
    clients = [broker.client() for _ in range(3)]
    for client in reversed(clients):
        client.send("RQ.POP BLOCK 0 q")
    broker("RQ.PUSH q a b")

    assert [bodies(reply) for client in reversed(clients) for reply in client.replies()] == [[b"a"], [b"b"]]
    assert clients[0].is_waiting


def test_waiting_for_several_queues_is_fair_on_each(broker: MemoryBroker) -> None:
    first, second, third = broker.client(), broker.client(), broker.client()
    first.send("RQ.POP BLOCK 0 other q")
    second.send("RQ.POP BLOCK 0 q")
    third.send("RQ.POP BLOCK 0 q other")
    broker("RQ.PUSH q a")
    broker("RQ.PUSH other b")

    assert bodies(first.replies()[0]) == [b"a"]
    assert bodies(third.replies()[0]) == [b"b"]
    assert second.is_waiting


def test_a_waiting_pop_takes_up_to_its_count(broker: MemoryBroker) -> None:
    client, other = broker.client(), broker.client()
    client.send("RQ.POP COUNT 2 BLOCK 0 q")
    other.send("RQ.POP COUNT 5 BLOCK 0 q")
    broker("RQ.PUSH q a b c")

    assert bodies(client.replies()[0]) == [b"a", b"b"]
    assert bodies(other.replies()[0]) == [b"c"]


def test_a_client_that_is_gone_swallows_nothing(broker: MemoryBroker) -> None:
    gone, next_one = broker.client(), broker.client()
    gone.send("RQ.POP BLOCK 0 q")
    next_one.send("RQ.POP BLOCK 0 q")
    gone.close()
    broker("RQ.PUSH q a")

    assert bodies(next_one.replies()[0]) == [b"a"]


def test_of_many_who_wait_each_gets_what_comes_due_in_turn(broker: MemoryBroker, clock: ManualClock) -> None:
    """At each time one gets the element, one looks in vain, and all the others still look at the next time."""
    clients = [broker.client() for _ in range(6)]
    for client in clients:
        client.send("RQ.POP BLOCK 40 q")
    for delay_ms in (10, 20, 30):
        broker("RQ.PUSHX", "q", "DELAY", delay_ms, "ELEMENTS", 1, delay_ms)
    served = []
    for _ in range(3):
        clock.advance(ms=10)
        served.append([bodies(reply) for client in clients for reply in client.replies()])

    assert served == [[[b"10"]], [[b"20"]], [[b"30"]]]
    assert [client.is_waiting for client in clients] == [False] * 3 + [True] * 3
    clock.advance(ms=10)
    assert [client.replies() for client in clients[3:]] == [[None]] * 3


def test_nothing_is_handed_out_while_writes_are_paused(broker: MemoryBroker, clock: ManualClock) -> None:
    client = broker.client()
    client.send("RQ.POP BLOCK 0 q")
    broker("RQ.PUSHX q DELAY 10 ELEMENTS 1 a")
    broker("CLIENT PAUSE 100 WRITE")
    clock.advance(ms=50)

    assert broker("RQ.INFO q") == [b"undelivered", 1, b"delivered", 0]
    assert client.replies() == []
    clock.advance(ms=50)
    assert [bodies(reply) for reply in client.replies()] == [[b"a"]]


def test_waiting_ends_with_null_when_the_time_is_up(broker: MemoryBroker, clock: ManualClock) -> None:
    client = broker.client()
    client.send("RQ.POP BLOCK 100 q")
    clock.advance(ms=99)
    assert client.replies() == []
    clock.advance(ms=1)
    assert client.replies() == [None]
    assert client("PING") == b"PONG"


@pytest.mark.parametrize(
    ("how", "answer"), [("TIMEOUT", None), ("ERROR", "UNBLOCKED client unblocked via CLIENT UNBLOCK")]
)
def test_a_waiting_client_can_be_sent_on(broker: MemoryBroker, how: str, answer: str | None) -> None:
    client = broker.client()
    client.send("RQ.POP BLOCK 0 q")
    assert broker(f"CLIENT UNBLOCK {client.call.id} {how}") == 1
    broker("RQ.PUSH q a")

    assert client.replies() == [Refusal(answer) if answer else None]
    assert broker("RQ.INFO q") == [b"undelivered", 1, b"delivered", 0]


def test_nobody_waits_inside_a_transaction(broker: MemoryBroker) -> None:
    broker("MULTI")
    broker("RQ.POP BLOCK 0 q")
    broker("RQ.PUSH q a")
    broker("RQ.POP BLOCK 0 q")

    missed, names, found = broker("EXEC")

    assert missed is None
    assert found == [[b"q", names[0], b"a"]]


def test_another_type_does_not_disturb_who_waits_already(broker: MemoryBroker) -> None:
    client = broker.client()
    client.send("RQ.POP BLOCK 0 q")
    broker("SET q text")
    assert client.is_waiting
    broker("DEL q")
    broker("RQ.PUSH q a")

    assert bodies(client.replies()[0]) == [b"a"]


def test_a_wrong_type_among_the_keys_leaves_the_others_alone(broker: MemoryBroker) -> None:
    broker("RQ.PUSH q a")
    broker("SET text 1")

    assert "WRONGTYPE" in str(broker("RQ.POP COUNT 1 q text"))
    assert broker("RQ.INFO q") == [b"undelivered", 1, b"delivered", 0]


@pytest.mark.parametrize(
    "write",
    ["RENAME other q", "COPY other q", "MOVE q 0", "SWAPDB 0 1", "RQ.PAUSE q NONE"],
)
def test_a_queue_that_appears_wakes_those_who_wait(broker: MemoryBroker, write: str) -> None:
    elsewhere = broker.client()
    if write.startswith(("MOVE", "SWAPDB")):
        elsewhere("SELECT 1")
        elsewhere("RQ.PUSH q a")
    elif "PAUSE" in write:
        broker("RQ.PUSH q a")
        broker("RQ.PAUSE q OUT")
    else:
        broker("RQ.PUSH other a")
    client = broker.client()
    client.send("RQ.POP BLOCK 0 q")
    assert client.is_waiting

    elsewhere(write)

    assert bodies(client.replies()[0]) == [b"a"]


def test_a_queue_that_is_paused_keeps_its_elements_from_those_who_wait(broker: MemoryBroker) -> None:
    broker("RQ.PAUSE q OUT")
    client = broker.client()
    client.send("RQ.POP BLOCK 0 q")
    broker("RQ.PUSH q a")
    assert client.is_waiting

    broker("RQ.PAUSE q IN")

    assert bodies(client.replies()[0]) == [b"a"]


# What comes due


def test_those_who_wait_are_woken_by_the_clock_in_their_order(broker: MemoryBroker, clock: ManualClock) -> None:
    late, early = broker.client(), broker.client()  # The one with the higher number waits first.
    broker("RQ.PUSHX q DELAY 50 ELEMENTS 1 a")
    early.send("RQ.POP BLOCK 0 q")
    late.send("RQ.POP BLOCK 0 q")
    clock.advance(ms=49)
    assert early.is_waiting and late.is_waiting

    clock.advance(ms=1)

    assert bodies(early.replies()[0]) == [b"a"]
    assert late.is_waiting


@pytest.mark.parametrize("way", ["delayed push", "delayed give back", "retry", "copy"])
def test_who_waits_already_learns_of_a_new_time(broker: MemoryBroker, clock: ManualClock, way: str) -> None:
    """Set after the waiting began; the one who waits has no other reason to look again."""
    broker("RQ.PUSHX q RETRY 50 ELEMENTS 1 a")
    if way == "retry":
        client = broker.client()
        broker("RQ.PAUSE q OUT")
        client.send("RQ.POP BLOCK 0 q")
        broker("MULTI")
        broker("RQ.PAUSE q NONE")
        broker("RQ.POP q")
        broker("EXEC")
    else:
        [[_, name, _]] = broker("RQ.POP q")
        client = broker.client()
        client.send("RQ.POP BLOCK 0 q other")
        if way == "delayed push":
            broker("RQ.PUSHX q DELAY 50 ELEMENTS 1 a")
            broker("RQ.ACK", "q", name)
        elif way == "delayed give back":
            broker("RQ.NACK", "q", "DELAY", "50", name)
        else:
            broker("COPY q other")
            broker("RQ.ACK", "q", name)
    assert client.is_waiting

    clock.advance(ms=50)

    assert bodies(client.replies()[0]) == [b"a"]


def test_all_who_wait_learn_of_the_times_of_a_queue_that_appears(broker: MemoryBroker, clock: ManualClock) -> None:
    first, second = broker.client(), broker.client()
    broker("RQ.PUSHX other DELAY 50 ELEMENTS 1 a")
    first.send("RQ.POP BLOCK 0 q")
    second.send("RQ.POP BLOCK 0 q")
    broker("RENAME other q")
    first.close()

    clock.advance(ms=50)

    assert bodies(second.replies()[0]) == [b"a"]


def test_an_earlier_time_replaces_a_later_one(broker: MemoryBroker, clock: ManualClock) -> None:
    client = broker.client()
    broker("RQ.PUSHX q DELAY 5000 ELEMENTS 1 late")
    client.send("RQ.POP BLOCK 0 q")
    broker("RQ.PUSHX q DELAY 10 ELEMENTS 1 soon")

    clock.advance(ms=10)

    assert bodies(client.replies()[0]) == [b"soon"]


def test_delayed_elements_join_the_end_of_the_queue(broker: MemoryBroker, clock: ManualClock) -> None:
    broker("RQ.PUSHX q DELAY 20 ELEMENTS 2 b c")
    broker("RQ.PUSHX q DELAY 10 ELEMENTS 1 a")
    clock.advance(ms=30)
    broker("RQ.PUSH q d")

    assert bodies(broker("RQ.POP COUNT 9 q")) == [b"a", b"b", b"c", b"d"]


def test_elements_given_back_are_not_told_from_those_the_clock_gave_back(
    broker: MemoryBroker, clock: ManualClock
) -> None:
    broker("RQ.PUSHX q RETRY 30 ELEMENTS 3 a b c")
    broker("RQ.PUSH q d")
    names = [row[1] for row in broker("RQ.POP COUNT 3 q")]
    broker("RQ.NACK", "q", names[1])
    clock.advance(ms=30)

    assert bodies(broker("RQ.INSPECT q 0 9")) == [b"a", b"b", b"c", b"d"]
    assert broker("RQ.INFO q") == [b"undelivered", 4, b"delivered", 0]


def test_extending_keeps_an_element_from_being_given_back(broker: MemoryBroker, clock: ManualClock) -> None:
    broker("RQ.PUSHX q RETRY 30 ELEMENTS 1 a")
    [[_, name, _]] = broker("RQ.POP q")
    for _ in range(5):
        clock.advance(ms=29)
        assert broker("RQ.EXTEND", "q", name) == [name]
    assert broker("RQ.INFO q") == [b"undelivered", 0, b"delivered", 1]
    clock.advance(ms=30)

    assert broker("RQ.EXTEND", "q", name) == []


def test_a_time_to_live_ends_with_the_first_delivery(broker: MemoryBroker, clock: ManualClock) -> None:
    broker("RQ.PUSHX q TTL 30 ELEMENTS 1 a")
    [[_, name, _]] = broker("RQ.POP q")
    clock.advance(ms=100)
    broker("RQ.NACK", "q", name)
    clock.advance(ms=100)

    assert bodies(broker("RQ.POP q")) == [b"a"]


def test_what_is_delayed_longer_than_it_lives_is_never_delivered(broker: MemoryBroker, clock: ManualClock) -> None:
    broker("RQ.PUSHX q DELAY 30 TTL 30 ELEMENTS 1 a")
    clock.advance(ms=30)

    assert broker("RQ.POP q") == []
    assert broker("RQ.STATS q")[13] == 1


def test_delayed_elements_can_be_looked_at(broker: MemoryBroker, clock: ManualClock) -> None:
    [late] = broker("RQ.PUSHX q DELAY 900 ELEMENTS 1 late")
    [soon] = broker("RQ.PUSHX q DELAY 500 ELEMENTS 1 soon")
    clock.advance(ms=100)

    assert broker("RQ.INSPECT q DELAYED 0 9") == [
        [soon, b"soon", START_MS + 500, 400, 0],
        [late, b"late", START_MS + 900, 800, 0],
    ]
    assert broker("RQ.INSPECT q DELAYED -1 1") == [[late, b"late", START_MS + 900, 800, 0]]


# Dead letters


def test_a_dead_letter_wakes_those_who_wait_for_it(broker: MemoryBroker, clock: ManualClock) -> None:
    doctor, worker = broker.client(), broker.client()
    doctor.send("RQ.POP BLOCK 0 dead")
    broker("RQ.PUSHX q MAXDELIVERIES 1 RETRY 30 DEADLETTER dead ELEMENTS 1 poison")
    assert bodies(broker("RQ.POP q")) == [b"poison"]
    worker.send("RQ.POP BLOCK 0 q")

    clock.advance(ms=30)

    assert [row[0] for row in doctor.replies()[0]] == [b"dead"]
    assert worker.is_waiting
    assert broker("RQ.INFO q") == [b"undelivered", 0, b"delivered", 0]


def test_a_dead_letter_is_a_new_element(broker: MemoryBroker, clock: ManualClock) -> None:
    broker("RQ.PUSHX q MAXDELIVERIES 1 DEADLETTER dead ELEMENTS 2 a b")
    broker("RQ.POP COUNT 2 q")
    clock.advance(ms=5)

    assert broker("RQ.RECOVER q 9 0") == []

    names = [b"%d-%d" % (START_MS + 5, number) for number in (1, 2)]
    assert broker("RQ.INSPECT dead 0 9") == [[names[0], b"a"], [names[1], b"b"]]
    broker("RQ.POP dead")
    assert bodies(broker("RQ.RECOVER dead 9 0")) == [b"a"]


def test_a_dead_letter_without_a_place_is_delivered_once_more(broker: MemoryBroker) -> None:
    """Nothing is lost, and nobody is stuck behind it."""
    broker("RQ.PUSHX q MAXDELIVERIES 1 DEADLETTER dead ELEMENTS 1 a")
    broker("SET dead text")
    [[_, name, _]] = broker("RQ.POP q")
    broker("RQ.NACK", "q", name)

    assert bodies(broker("RQ.POP q")) == [b"a"]
    assert bodies(broker("RQ.RECOVER q 1 0")) == [b"a"]
    broker("DEL dead")
    assert broker("RQ.RECOVER q 1 0") == []
    assert bodies(broker("RQ.POP dead")) == [b"a"]


def test_a_paused_queue_takes_dead_letters(broker: MemoryBroker) -> None:
    broker("RQ.PAUSE dead IN")
    broker("RQ.PUSHX q MAXDELIVERIES 1 DEADLETTER dead ELEMENTS 1 a")
    broker("RQ.POP q")
    broker("RQ.RECOVER q 1 0")

    assert bodies(broker("RQ.POP dead")) == [b"a"]


def test_a_queue_renamed_to_its_own_dead_letters_goes_on(broker: MemoryBroker) -> None:
    broker("RQ.PUSHX q MAXDELIVERIES 1 DEADLETTER dead ELEMENTS 1 a")
    broker("RQ.POP q")
    broker("RENAME q dead")

    assert broker("RQ.RECOVER dead 9 0") == []
    assert bodies(broker("RQ.POP COUNT 9 dead")) == [b"a"]


# A key like any other


def test_a_queue_is_a_key_like_any_other(broker: MemoryBroker) -> None:
    [name] = broker("RQ.PUSH q a")
    broker("SET other text")

    assert broker("TYPE q") == b"RELIABLEQ"
    assert broker("OBJECT ENCODING q") == b"raw"
    assert broker("MEMORY USAGE q") > 100
    assert broker("SCAN 0 TYPE reliableq") == broker("SCAN 0 TYPE RELIABLEQ") == [b"0", [b"q"]]
    payload = broker("DUMP q")
    assert broker("RESTORE", "again", 0, payload) == b"OK"
    assert broker("RQ.POP again") == [[b"again", name, b"a"]]
    assert broker("COPY q copy") == 1
    assert broker("RENAME q renamed") == b"OK"
    assert broker("MOVE renamed 1") == 1
    assert broker("RQ.POP copy") == [[b"copy", name, b"a"]]
    assert "WRONGTYPE" in str(broker("LPUSH copy a"))
    assert broker("PEXPIRE copy 1") == 1


def test_keys_of_a_pop_are_found_behind_its_options(broker: MemoryBroker) -> None:
    """The original says that the key of RQ.POP COUNT 2 q is 2."""
    assert broker("COMMAND GETKEYS RQ.POP COUNT 2 BLOCK 0 q r") == [b"q", b"r"]
    assert broker("COMMAND GETKEYS RQ.POP q") == [b"q"]
    assert broker("COMMAND GETKEYS RQ.PUSHX q DELAY 5 ELEMENTS 1 a") == [b"q"]
    assert b"movablekeys" in broker("COMMAND INFO rq.pop")[0][2]


def test_a_pop_from_a_watched_queue_cancels_a_transaction(broker: MemoryBroker) -> None:
    broker("RQ.PUSH q a")
    broker("WATCH q")
    broker.client()("RQ.POP COUNT 1 q")
    broker("MULTI")
    broker("PING")

    assert broker("EXEC") is None


def test_what_comes_due_by_itself_cancels_a_transaction_once_it_is_noticed(
    broker: MemoryBroker, clock: ManualClock
) -> None:
    broker("RQ.PUSHX q DELAY 10 ELEMENTS 1 a")
    broker("WATCH q")
    clock.advance(ms=10)
    broker.client()("RQ.INFO q")
    broker("MULTI")
    broker("PING")

    assert broker("EXEC") is None


def test_a_queue_named_like_an_option_can_be_popped(broker: MemoryBroker) -> None:
    broker("RQ.PUSH count a b")

    assert bodies(broker("RQ.POP COUNT 1 count")) == [b"a"]
    assert bodies(broker("RQ.POP COUNT 1 BLOCK 0 COUNT count")) == [b"b"]
    for words in ("RQ.POP COUNT", "RQ.POP COUNT 1", "RQ.POP BLOCK 1", "RQ.POP COUNT 1 BLOCK 5"):
        assert str(broker(words)).startswith("ERR usage: RQ.POP")


def test_every_change_is_told_as_an_event(broker: MemoryBroker, clock: ManualClock) -> None:
    listener = broker.client()
    broker("CONFIG SET notify-keyspace-events Kd")
    listener.send("SUBSCRIBE __keyspace@0__:q")
    listener.replies()
    broker("RQ.PUSHX q DELAY 5 RETRY 5 MAXDELIVERIES 1 ELEMENTS 2 a b")
    clock.advance(ms=5)
    broker("RQ.INFO q")
    [first, second] = [row[1] for row in broker("RQ.POP COUNT 2 q")]
    broker("RQ.EXTEND", "q", first)
    broker("RQ.NACK", "q", first)
    broker("RQ.ACK", "q", second)
    broker("RQ.POP q")
    broker("RQ.PUSH q c")
    broker("RQ.POP q")
    broker("RQ.RECOVER q 1 0")
    broker("RQ.PAUSE q ALL")

    events = [message[2].removeprefix(b"rq.").decode() for message in listener.replies()]

    assert events == ["push", "due", "pop", "extend", "nack", "ack", "bury", "push", "pop", "recover", "pause"]


def test_changes_are_counted_by_elements(broker: MemoryBroker) -> None:
    broker("RQ.PUSH q a b c")
    assert broker.state.changes == 3
    names = [row[1] for row in broker("RQ.POP COUNT 2 q")]
    assert broker.state.changes == 5
    broker("RQ.ACK", "q", *names)
    assert broker.state.changes == 7
    for words in ("RQ.INFO q", "RQ.INSPECT q 0 9", "RQ.RECOVER q 1 0", "RQ.ACK q 1-1", "RQ.PAUSE q NONE"):
        broker(words)
    assert broker.state.changes == 7


def test_what_waiting_clients_were_given_is_in_the_records(clock: ManualClock) -> None:
    broker = MemoryBroker(clock, journaling=True)
    clients = [broker.client() for _ in range(4)]
    for client in clients:
        client.send("RQ.POP BLOCK 0 q other")
    broker("RQ.PUSHX q RETRY 20 MAXDELIVERIES 1 DEADLETTER other ELEMENTS 2 a b")
    broker("RQ.PUSHX q DELAY 30 ELEMENTS 1 c")
    clock.advance(ms=20)
    clock.advance(ms=10)

    assert contents_of(state_of(broker.state.records)) == contents_of(broker.state)
    assert all(client.replies() for client in clients)


def test_ids_are_not_given_again_after_the_records_are_replayed(clock: ManualClock) -> None:
    """Also when everything that had them is gone."""
    broker = MemoryBroker(clock, journaling=True)
    [name] = broker("RQ.PUSH q a")
    broker("RQ.POP q")
    broker("RQ.ACK", "q", name)
    again = MemoryBroker(clock)
    for database, other in zip(again.state.databases, state_of(broker.state.records).databases, strict=True):
        database.values.update(other.values)

    assert again("RQ.PUSH q b") == [b"%d-2" % START_MS]


def test_the_answers_are_the_same_in_both_protocols(broker: MemoryBroker) -> None:
    newer = broker.client(protocol=3)
    broker("RQ.PUSH q a")

    assert newer("RQ.INFO q") == broker("RQ.INFO q")
    assert newer("RQ.STATS q") == broker("RQ.STATS q")
    assert newer("RQ.ACK missing 1-1") is None
    newer.send("RQ.POP BLOCK 1 missing")
    broker.clock.advance(ms=1)
    assert newer.replies() == [None]


def test_syntax_errors(broker: MemoryBroker) -> None:
    broker("RQ.PUSH q a")
    syntax = Refusal("ERR syntax error")

    assert broker("RQ.INSPECT q PENDING 0 1 2") == syntax
    assert broker("RQ.NACK q DELAY 5") == syntax
    assert broker("RQ.PUSHX q DELAY 5 TTL 5") == syntax
    assert broker("RQ.PUSHX q TTL 9007199254740993 ELEMENTS 1 a") == Refusal(
        "ERR TTL must be from 1 to 9007199254740992 milliseconds"
    )
