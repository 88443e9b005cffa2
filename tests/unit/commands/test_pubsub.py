"""Channels: who gets a message, in what order, and what a listener may say. Rows 62-65."""

from __future__ import annotations

import pytest

from support.memory import ManualClock, MemoryBroker, MemoryClient, Refusal
from support.wire import Push, encode


def listening(broker: MemoryBroker, command: str, *, protocol: int = 2) -> MemoryClient:
    client = broker.client(protocol=protocol)
    client.send(command)
    client.replies()
    return client


def test_a_message_reaches_all_who_listen_and_is_counted(broker: MemoryBroker) -> None:
    """Row 64."""
    ann = listening(broker, "SUBSCRIBE news")
    bob = listening(broker, "SUBSCRIBE news", protocol=3)

    assert broker("PUBLISH news hi") == 2
    assert (ann.replies(), bob.replies()) == ([[b"message", b"news", b"hi"]], [[b"message", b"news", b"hi"]])
    assert broker("PUBLISH other hi") == 0


def test_who_comes_late_gets_nothing(broker: MemoryBroker) -> None:
    """Row 65."""
    assert broker("PUBLISH news hi") == 0
    assert listening(broker, "SUBSCRIBE news").replies() == []


def test_the_message_is_encoded_once_for_all_of_one_protocol(broker: MemoryBroker) -> None:
    clients = [listening(broker, "SUBSCRIBE news", protocol=protocol) for protocol in (2, 2, 3, 3)]
    calls = [client.call for client in clients]
    broker.clients.clear()  # So that what is pushed stays where it is.
    broker.first.send("PUBLISH news hi")

    first, second, third, fourth = [call.out[0] for call in calls]
    assert first is second
    assert third is fourth
    assert first[1:] == third[1:]


def test_one_who_is_named_to_speak_is_named_once(broker: MemoryBroker) -> None:
    ann = listening(broker, "SUBSCRIBE news")
    ann.call.out.append(b"+not sent yet\r\n")

    broker.first.conversation.feed(b"*3\r\n$7\r\nPUBLISH\r\n$4\r\nnews\r\n$2\r\nhi\r\n", 0)

    assert broker.state.speaking == []


@pytest.mark.parametrize(
    "command", ["GET k", "PUBLISH news hi", "MULTI", "HELLO 3", "CLIENT LIST", "PUBSUB CHANNELS", "XADD s * f v"]
)
def test_a_listener_in_resp2_may_only_listen_ping_and_leave(broker: MemoryBroker, command: str) -> None:
    ann = listening(broker, "SUBSCRIBE news")
    name = "|".join(command.lower().split()[:2]) if command.startswith(("CLIENT", "PUBSUB")) else command.split()[0]

    assert ann(command) == Refusal(
        f"ERR Can't execute '{name.lower()}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed "
        "in this context"
    )
    assert ann("PING") == [b"pong", b""]
    assert ann("PING hi") == [b"pong", b"hi"]
    assert ann("UNSUBSCRIBE") == [b"unsubscribe", b"news", 0]
    assert ann("PING") == b"PONG"


def test_a_client_that_publishes_to_itself_gets_the_message_behind_the_reply(broker: MemoryBroker) -> None:
    wire = broker.wire(protocol=3)
    wire("SUBSCRIBE news")

    assert wire("PUBLISH news hi") == 1
    assert wire.read() == Push([b"message", b"news", b"hi"])


def test_in_a_transaction_messages_to_oneself_come_behind_all_replies(broker: MemoryBroker) -> None:
    wire = broker.wire(protocol=3)
    wire("SUBSCRIBE news")
    for command in ("MULTI", "PING a", "PUBLISH news hi", "PING b"):
        wire(command)

    assert wire("EXEC") == [b"a", 1, b"b"]
    assert wire.read() == Push([b"message", b"news", b"hi"])


def test_a_transaction_may_subscribe(broker: MemoryBroker) -> None:
    broker("MULTI")
    assert broker("SUBSCRIBE news") == b"QUEUED"
    broker("PUBLISH news hi")
    broker.first.send("EXEC")

    assert broker.first.replies() == [[[b"subscribe", b"news", 1], 1], [b"message", b"news", b"hi"]]


def test_replies_turned_off_let_messages_and_confirmations_through(broker: MemoryBroker) -> None:
    ann = broker.client(protocol=3)
    ann.send("CLIENT REPLY OFF")
    ann.send("SUBSCRIBE news")
    broker("PUBLISH news hi")
    ann.send("GET k")
    ann.send("UNSUBSCRIBE news")

    assert ann.replies() == [
        [b"subscribe", b"news", 1],
        [b"message", b"news", b"hi"],
        [b"unsubscribe", b"news", 0],
    ]


def test_a_skipped_reply_does_not_skip_a_confirmation(broker: MemoryBroker) -> None:
    ann = broker.client()
    ann.send("CLIENT REPLY SKIP")
    ann.send("SUBSCRIBE news")

    assert ann.replies() == [[b"subscribe", b"news", 1]]


@pytest.mark.parametrize("ending", ["RESET", "QUIT", "hang up"])
def test_a_client_that_leaves_listens_no_more(broker: MemoryBroker, ending: str) -> None:
    ann = listening(broker, "SUBSCRIBE news")
    ann.send("PSUBSCRIBE n*")
    ann.send("SSUBSCRIBE news")
    ann.replies()
    if ending == "RESET":
        assert ann("RESET") == b"RESET"
        assert ann("PING") == b"PONG"
    elif ending == "QUIT":
        assert ann("QUIT") == b"OK"
        ann.close()
    else:
        ann.close()

    assert broker("PUBLISH news hi") == 0
    assert broker("SPUBLISH news hi") == 0
    assert broker("PUBSUB NUMPAT") == 0


def test_client_list_tells_who_listens_to_how_much(broker: MemoryBroker) -> None:
    ann = listening(broker, "SUBSCRIBE a b c")
    ann.send("PSUBSCRIBE x* y*")
    ann.send("SSUBSCRIBE s")

    lines = broker("CLIENT LIST TYPE pubsub").decode().splitlines()

    assert len(lines) == 1
    assert " flags=P " in lines[0]
    assert " sub=3 psub=2 ssub=1 " in lines[0]
    assert " cmd=ssubscribe " in lines[0]
    assert f"id={ann.call.id} " not in broker("CLIENT LIST TYPE normal").decode()


def test_clients_that_listen_can_be_closed_by_their_type(broker: MemoryBroker) -> None:
    ann = listening(broker, "SUBSCRIBE news")
    bob = broker.client()

    assert broker("CLIENT KILL TYPE pubsub") == 1
    assert (ann.is_closed, bob.is_closed) == (True, False)


def test_info_counts_channels_patterns_and_listeners(broker: MemoryBroker) -> None:
    listening(broker, "SUBSCRIBE a b")
    listening(broker, "PSUBSCRIBE a* b* c*")
    listening(broker, "SSUBSCRIBE s")
    listening(broker, "SUBSCRIBE a")

    stats = broker("INFO stats").decode()
    for line in ("pubsub_channels:2", "pubsub_patterns:3", "pubsubshard_channels:1"):
        assert line in stats.split("\r\n")
    assert "pubsub_clients:4" in broker("INFO clients").decode().split("\r\n")


def test_a_listener_that_takes_nothing_is_dropped_at_the_hard_limit(broker: MemoryBroker) -> None:
    assert broker("CONFIG", "SET", "client-output-buffer-limit", "pubsub 1000 0 0") == b"OK"
    slow = listening(broker, "SUBSCRIBE news")
    quick = listening(broker, "SUBSCRIBE news")
    twice = encode([b"PUBLISH", b"news", b"x" * 300]) * 2
    del broker.clients[slow.call.id]  # Nobody takes what it is sent.
    del broker.clients[quick.call.id]

    broker.first.conversation.feed(twice, 0)
    quick.take(0)
    broker.first.conversation.feed(twice, 0)

    broker.first.take(0)
    broker.first.replies()
    assert slow.is_closed
    assert not quick.is_closed
    assert slow.call.out == []
    assert "client_output_buffer_limit_disconnections:1" in broker("INFO stats").decode()
    assert broker("PUBSUB NUMSUB news") == [b"news", 1]


def test_a_waiting_client_hears_too(broker: MemoryBroker, clock: ManualClock) -> None:
    """In RESP3 a client may wait for a stream and listen at the same time."""
    ann = listening(broker, "SUBSCRIBE news", protocol=3)
    ann.send("XREAD BLOCK 0 STREAMS s $")

    broker("PUBLISH news hi")
    assert ann.replies() == [[b"message", b"news", b"hi"]]
    broker("XADD s 1-0 f v")
    assert ann.replies() == [{b"s": [[b"1-0", [b"f", b"v"]]]}]


def test_too_many_words_for_a_list_of_channels_are_refused(broker: MemoryBroker) -> None:
    assert broker("PUBSUB channels a b") == Refusal(
        "ERR unknown subcommand or wrong number of arguments for 'channels'. Try PUBSUB HELP."
    )


def test_a_pause_of_writes_holds_back_messages_too(broker: MemoryBroker, clock: ManualClock) -> None:
    ann = listening(broker, "SUBSCRIBE news")
    bob = broker.client()
    broker("CLIENT PAUSE 1000 WRITE")

    bob.send("PUBLISH news hi")
    assert (bob.replies(), ann.replies()) == ([], [])
    clock.advance(s=2)
    assert (bob.replies(), ann.replies()) == ([1], [[b"message", b"news", b"hi"]])
