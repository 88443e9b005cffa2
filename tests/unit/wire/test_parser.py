"""Received bytes become commands, however they are cut; what is not the protocol is refused in Redis's words."""

from __future__ import annotations

import pytest

from headrace.errors import ProtocolError
from headrace.wire.parser import CHEAP_BYTES, MAX_ARGUMENTS, MAX_INLINE_BYTES, Parser
from support.wire import encode


def read(*chunks: bytes) -> list[list[bytes]]:
    """Every command in the chunks, each chunk fed by itself."""
    parser = Parser()
    commands: list[list[bytes]] = []
    for chunk in chunks:
        parser.feed(chunk)
        command = parser.next()
        while command is not None:
            commands.append(command)
            command = parser.next()
    return commands


def bytewise(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


def refusal(*chunks: bytes) -> str:
    with pytest.raises(ProtocolError) as caught:
        read(*chunks)
    return str(caught.value)


PIPELINE = encode([b"XADD", b"s", b"*", b"f", b"v"]) + encode([b"PING"]) + encode([b"XRANGE", b"s", b"-", b"+"])
PIPELINE_COMMANDS = [[b"XADD", b"s", b"*", b"f", b"v"], [b"PING"], [b"XRANGE", b"s", b"-", b"+"]]


# Whole and cut commands


def test_a_pipeline_is_read_in_order() -> None:
    assert read(PIPELINE) == PIPELINE_COMMANDS


@pytest.mark.parametrize("cut", range(1, len(PIPELINE)))
def test_a_pipeline_may_be_cut_at_any_byte(cut: int) -> None:
    assert read(PIPELINE[:cut], PIPELINE[cut:]) == PIPELINE_COMMANDS


def test_a_pipeline_may_arrive_byte_by_byte() -> None:
    assert read(*bytewise(PIPELINE)) == PIPELINE_COMMANDS


def test_a_cut_behind_the_star_of_an_automatic_id_is_no_border() -> None:
    """The star stands behind a line end, as a command does."""
    data = encode([b"PING"]) * 3 + encode([b"XADD", b"s", b"*", b"f", b"v"])
    cut = data.rindex(b"*\r\n") + 1

    assert read(data[:cut], data[cut:]) == [[b"PING"]] * 3 + [[b"XADD", b"s", b"*", b"f", b"v"]]


def test_a_value_that_looks_like_commands_is_a_value() -> None:
    value = encode([b"PING"]) * 20
    data = encode([b"PING"]) + encode([b"ECHO", value])

    for cut in range(1, len(data)):
        assert read(data[:cut], data[cut:]) == [[b"PING"], [b"ECHO", value]]


def test_a_value_that_looks_like_a_huge_array_is_a_value() -> None:
    data = encode([b"ECHO", b"\r\n*99999999\r\n"]) + encode([b"PING"])

    assert read(data) == [[b"ECHO", b"\r\n*99999999\r\n"], [b"PING"]]
    assert read(*bytewise(data)) == [[b"ECHO", b"\r\n*99999999\r\n"], [b"PING"]]


def test_every_byte_is_a_good_value() -> None:
    value = bytes(range(256))

    assert read(encode([b"ECHO", value])) == [[b"ECHO", value]]


def test_empty_words_are_words() -> None:
    assert read(encode([b"XADD", b"", b"*", b"", b""])) == [[b"XADD", b"", b"*", b"", b""]]


def test_a_large_value_may_arrive_in_many_pieces() -> None:
    value = b"0123456789abcdef" * 20_000
    data = encode([b"ECHO", value]) + encode([b"PING"])
    chunks = [data[at : at + 1000] for at in range(0, len(data), 1000)]

    assert read(*chunks) == [[b"ECHO", value], [b"PING"]]


def test_a_large_value_that_looks_like_a_huge_array_may_arrive_in_many_pieces() -> None:
    value = b"*12345678" * 40_000
    data = encode([b"ECHO", value]) + encode([b"PING"])
    chunks = [data[at : at + 1000] for at in range(0, len(data), 1000)]

    assert read(*chunks) == [[b"ECHO", value], [b"PING"]]


def test_a_command_of_many_words_is_read() -> None:
    words = [b"XACK", b"s", b"g"] + [b"%d-0" % number for number in range(20_000)]

    assert read(encode(words)) == [words]


def test_an_empty_array_is_an_empty_command() -> None:
    assert read(b"*0\r\n" + encode([b"PING"])) == [[], [b"PING"]]


def test_a_negative_array_length_is_an_empty_command() -> None:
    assert read(b"*-1\r\n" + encode([b"PING"])) == [[], [b"PING"]]


# Inline commands


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"PING", [b"PING"]),
        (b"  SET\tkey   value  ", [b"SET", b"key", b"value"]),
        (b'ECHO "a b"', [b"ECHO", b"a b"]),
        (b"ECHO 'a b'", [b"ECHO", b"a b"]),
        (b'ECHO "\\n\\r\\t\\b\\a"', [b"ECHO", b"\n\r\t\b\a"]),
        (b'ECHO "\\x41\\xff\\x00"', [b"ECHO", b"A\xff\x00"]),
        (b'ECHO "\\xZZ"', [b"ECHO", b"xZZ"]),
        (b'ECHO "\\""', [b"ECHO", b'"']),
        (b'ECHO "\\q"', [b"ECHO", b"q"]),
        (b"ECHO 'it\\'s'", [b"ECHO", b"it's"]),
        (b"ECHO '\\n'", [b"ECHO", b"\\n"]),
        (b'ECHO ""', [b"ECHO", b""]),
        (b'ECHO a"b c"', [b"ECHO", b"ab c"]),
        (b"", []),
        (b"   ", []),
    ],
)
def test_an_inline_command_is_split_as_redis_does(line: bytes, words: list[bytes]) -> None:
    assert read(line + b"\r\n") == [words]
    assert read(line + b"\n") == [words]


@pytest.mark.parametrize("line", [b'ECHO "open', b"ECHO 'open", b'ECHO "a"b', b"ECHO 'a'b", b'"'])
def test_unbalanced_quotes_are_refused(line: bytes) -> None:
    assert refusal(line + b"\r\n") == "Protocol error: unbalanced quotes in request"


def test_inline_and_array_commands_may_be_mixed() -> None:
    data = b"PING\r\n" + encode([b"ECHO", b"x"]) + b"ECHO 'y z'\r\n" + encode([b"PING"])
    commands = [[b"PING"], [b"ECHO", b"x"], [b"ECHO", b"y z"], [b"PING"]]

    assert read(data) == commands
    assert read(*bytewise(data)) == commands


def test_an_endless_inline_command_is_refused() -> None:
    assert refusal(b"x" * (MAX_INLINE_BYTES + 1)) == "Protocol error: too big inline request"


# What is not the protocol


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"*x\r\n", "invalid multibulk length"),
        (b"*1x\r\n", "invalid multibulk length"),
        (b"*\r\n", "invalid multibulk length"),
        (b"*99999999999999999999\r\n", "invalid multibulk length"),
        (b"*%d\r\n" % (MAX_ARGUMENTS + 1), "invalid multibulk length"),
        (b"*1\r\n$x\r\n", "invalid bulk length"),
        (b"*1\r\n$-1\r\n", "invalid bulk length"),
        (b"*1\r\n$536870913\r\n", "invalid bulk length"),
        (b"*1\r\n:5\r\n", "expected '$', got ':'"),
        (b"*1\r\n*1\r\n$4\r\nPING\r\n", "expected '$', got '*'"),
        (b"*2\r\n$4\r\nPING\r\nPING\r\n", "expected '$', got 'P'"),
        (b"*1\r\n-ERR\r\n", "expected '$', got '-'"),
    ],
)
def test_broken_arrays_are_refused_in_the_words_of_redis(data: bytes, reason: str) -> None:
    assert refusal(data) == f"Protocol error: {reason}"
    assert refusal(*bytewise(data)) == f"Protocol error: {reason}"


@pytest.mark.parametrize("cut", range(1, 11))
def test_a_huge_array_is_refused_before_it_is_allocated(cut: int) -> None:
    """Also behind good commands, and when its header arrives in two pieces."""
    data = b"*2147483647\r\n"

    assert refusal(encode([b"PING"]) + data[:cut], data[cut:]) == "Protocol error: invalid multibulk length"


def test_commands_before_a_broken_one_are_given_first() -> None:
    parser = Parser()
    parser.feed(encode([b"PING"]) + encode([b"ECHO", b"x"]) + b"*1\r\n:5\r\n")

    assert parser.next() == [b"PING"]
    assert parser.next() == [b"ECHO", b"x"]
    with pytest.raises(ProtocolError, match="expected"):
        parser.next()


def test_an_endless_header_is_refused() -> None:
    assert refusal(b"*" + b"1" * (MAX_INLINE_BYTES + 1)) == "Protocol error: too big mbulk count string"
    assert refusal(b"*1\r\n$" + b"1" * (MAX_INLINE_BYTES + 1)) == "Protocol error: too big bulk count string"


def test_the_limit_of_a_value_can_be_lowered() -> None:
    parser = Parser()
    parser.max_bulk_bytes = 1024
    parser.feed(b"*2\r\n$4\r\nECHO\r\n$1025\r\n")

    with pytest.raises(ProtocolError, match="invalid bulk length"):
        parser.next()


# What is kept


def test_nothing_is_kept_between_commands() -> None:
    parser = Parser()
    for _ in range(3):
        parser.feed(PIPELINE)
        while parser.next() is not None:
            pass

    assert parser.waiting_bytes() == 0


def test_only_the_unfinished_command_is_kept() -> None:
    parser = Parser()
    parser.feed(PIPELINE * 50 + b"*2\r\n$4\r\nEC")
    while parser.next() is not None:
        pass

    assert parser.waiting_bytes() == len(b"*2\r\n$4\r\nEC")


def test_what_waits_behind_an_inline_command_is_counted() -> None:
    parser = Parser()
    parser.feed(b"PING\r\nECHO unfin")
    assert parser.next() == [b"PING"]

    assert parser.waiting_bytes() == len(b"ECHO unfin")


def test_a_long_unfinished_command_is_not_looked_at_with_every_chunk() -> None:
    """What is joined counts as looked at; between two looks what is held doubles."""
    parser = Parser()
    parser.feed(b"*2\r\n$4\r\nECHO\r\n$10000000\r\n")
    looks = 0
    for _ in range(1000):
        parser.feed(b"x" * CHEAP_BYTES)
        assert parser.next() is None
        looks += len(parser.held) == 1

    assert looks <= 12


def test_a_command_of_very_many_words_may_arrive_in_very_many_pieces() -> None:
    words = [b"DEL"] + [b"%d" % number for number in range(100_000)]
    data = b"PING\r\n" + encode(words) + encode([b"PING"])
    chunks = [data[at : at + 500] for at in range(0, len(data), 500)]

    assert read(*chunks) == [[b"PING"], words, [b"PING"]]
