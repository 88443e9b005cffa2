"""A client's talk as bytes in and bytes out."""

from __future__ import annotations

import pytest

from headrace.server.conversation import COMMANDS_PER_TURN
from support.memory import ManualClock, MemoryBroker
from support.wire import encode

PING = encode([b"PING"])


def test_a_command_cut_in_two_is_answered_once_it_is_whole(broker: MemoryBroker) -> None:
    client = broker.first
    client.send_bytes(PING[:5])
    assert client.received() == b""
    client.send_bytes(PING[5:])

    assert client.received() == b"+PONG\r\n"


def test_replies_come_in_the_order_of_the_commands(broker: MemoryBroker) -> None:
    broker.first.send_bytes(b"".join(encode([b"ECHO", b"%d" % number]) for number in range(100)))

    assert broker.first.replies() == [b"%d" % number for number in range(100)]


def test_empty_commands_get_no_reply(broker: MemoryBroker) -> None:
    broker.first.send_bytes(b"\r\n*0\r\n*-1\r\n   \r\n" + PING)

    assert broker.first.received() == b"+PONG\r\n"


def test_commands_may_be_typed_by_hand(broker: MemoryBroker) -> None:
    broker.first.send_bytes(b'XADD s 1-0 field "two words"\r\nXRANGE s - +\n')

    assert broker.first.replies() == [b"1-0", [[b"1-0", [b"field", b"two words"]]]]


@pytest.mark.parametrize(
    ("data", "reply"),
    [
        (b"*1\r\n:5\r\n", b"-ERR Protocol error: expected '$', got ':'\r\n"),
        (b"*x\r\n", b"-ERR Protocol error: invalid multibulk length\r\n"),
        (b"*1\r\n$x\r\n", b"-ERR Protocol error: invalid bulk length\r\n"),
        (b'ECHO "a\r\n', b"-ERR Protocol error: unbalanced quotes in request\r\n"),
    ],
)
def test_bytes_that_are_not_the_protocol_end_the_talk_with_a_reason(
    broker: MemoryBroker, data: bytes, reply: bytes
) -> None:
    client = broker.client()
    client.send_bytes(PING + data + PING)

    assert client.received() == b"+PONG\r\n" + reply
    assert client.is_closed
    client.send_bytes(PING)
    assert client.received() == b""


def test_a_long_pipeline_is_run_in_parts(broker: MemoryBroker) -> None:
    conversation = broker.first.conversation
    conversation.feed(PING * (COMMANDS_PER_TURN + 10), broker.clock.now_ms())

    assert conversation.has_more
    assert conversation.take() == b"+PONG\r\n" * COMMANDS_PER_TURN
    conversation.run(broker.clock.now_ms())
    assert conversation.take() == b"+PONG\r\n" * 10
    assert not conversation.has_more


def test_bytes_received_between_the_parts_are_not_lost(broker: MemoryBroker) -> None:
    conversation = broker.first.conversation
    now_ms = broker.clock.now_ms()
    conversation.feed(PING * (COMMANDS_PER_TURN + 10), now_ms)
    conversation.feed(encode([b"ECHO", b"last"]), now_ms)
    conversation.take()
    conversation.run(now_ms)

    assert conversation.take() == b"+PONG\r\n" * 10 + b"$4\r\nlast\r\n"


def test_a_large_reply_leaves_before_the_next_command_runs(broker: MemoryBroker) -> None:
    value = b"x" * 1_000_000
    broker("SET", "k", value)
    conversation = broker.first.conversation
    conversation.feed(encode([b"GET", b"k"]) + PING, broker.clock.now_ms())

    assert conversation.take() == b"$1000000\r\n" + value + b"\r\n"
    assert conversation.has_more
    conversation.run(broker.clock.now_ms())
    assert conversation.take() == b"+PONG\r\n"


def test_many_large_replies_are_sent_one_by_one(broker: MemoryBroker) -> None:
    broker("SET", "k", b"x" * 300_000)
    broker.first.send_bytes(encode([b"GET", b"k"]) * 5 + PING)

    assert [len(reply) for reply in broker.first.replies()] == [300_000] * 5 + [4]


def test_quit_answers_and_ends_the_talk(broker: MemoryBroker) -> None:
    client = broker.client()
    client.send_bytes(encode([b"QUIT"]) + PING)

    assert client.received() == b"+OK\r\n"
    assert client.is_closed


def test_settle_names_everybody_who_got_something(broker: MemoryBroker) -> None:
    readers = [broker.client() for _ in range(3)]
    for reader in readers[:2]:
        reader.send("XREAD BLOCK 0 STREAMS s $")
    now_ms = broker.clock.now_ms()
    broker.first.conversation.feed(encode([b"XADD", b"s", b"1-0", b"f", b"v"]), now_ms)

    speaking = broker.conversations.settle(now_ms)
    assert speaking == [reader.conversation for reader in readers[:2]]
    assert broker.conversations.settle(now_ms) == []


def test_nothing_is_left_of_a_client_that_is_gone(broker: MemoryBroker) -> None:
    client = broker.client()
    client("WATCH s")
    client.send("XREAD BLOCK 100 STREAMS s t $ $")
    client.close()

    state = broker.state
    assert list(state.clients) == list(broker.conversations.by_id) == [broker.first.call.id]
    assert (state.watched, state.waiters.by_client, state.waiters.by_key) == ({}, {}, {})


def test_the_next_time_to_look_is_the_next_deadline(broker: MemoryBroker) -> None:
    now_ms = broker.clock.now_ms()
    broker.client().send("XREAD BLOCK 500 STREAMS s $")
    broker.client().send("XREAD BLOCK 300 STREAMS s $")

    assert broker.conversations.next_ms() == now_ms + 300


def test_a_client_without_replies_still_changes_things(broker: MemoryBroker) -> None:
    client = broker.client()
    client.send("CLIENT REPLY OFF")
    client.send("XADD s 1-0 f v")
    assert client.received() == b""
    client.send("CLIENT REPLY ON")

    assert client.received() == b"+OK\r\n"
    assert broker("XLEN s") == 1


def test_one_reply_can_be_left_out(broker: MemoryBroker) -> None:
    client = broker.client()
    client.send("CLIENT REPLY SKIP")
    client.send("PING")
    client.send("ECHO seen")

    assert client.replies() == [b"seen"]


def test_large_replies_are_sent_one_by_one_whatever_gives_them(broker: MemoryBroker) -> None:
    broker("XGROUP CREATE s g 0 MKSTREAM")
    broker("XADD", "s", "1-0", "f", b"x" * 1_000_000)
    broker("XREADGROUP GROUP g ann STREAMS s >")
    claims = encode([b"XCLAIM", b"s", b"g", b"ann", b"0", b"1-0"]) * 5
    reads = encode([b"XRANGE", b"s", b"-", b"+"]) * 5
    now_ms = broker.clock.now_ms()
    conversation = broker.client().conversation
    conversation.feed(claims, now_ms)

    assert len(conversation.call.out) == 1

    broker("CLIENT PAUSE 1000 WRITE")
    conversation = broker.client().conversation
    conversation.feed(reads, now_ms)

    assert len(conversation.call.out) == 1


def test_a_large_reply_that_nobody_wants_holds_nothing_up(broker: MemoryBroker) -> None:
    broker("SET", "large", b"x" * 1_000_000)
    client = broker.client()
    client.send_bytes(encode([b"CLIENT", b"REPLY", b"SKIP"]) + encode([b"GET", b"large"]) + PING)

    assert client.received() == b"+PONG\r\n"


@pytest.mark.parametrize("line", [b"POST / HTTP/1.1", b"Host: 127.0.0.1:7379", b"post x"])
def test_a_web_page_cannot_send_commands(broker: MemoryBroker, line: bytes) -> None:
    client = broker.client()
    client.send_bytes(line + b"\r\nContent-Length: 99\r\n\r\nSET key value\r\n")

    assert client.is_closed
    assert client.received().count(b"\r\n") == 1
    assert broker("EXISTS key") == 0


def test_many_keys_that_are_due_at_once_go_soon(broker: MemoryBroker, clock: ManualClock) -> None:
    for number in range(5000):
        broker(f"SET key-{number} x PX 100")
    broker("SET staying x EX 100")
    clock.advance(ms=100)
    assert broker("DBSIZE") == 1
    assert "expired_keys:5000" in broker("INFO stats").decode()
