"""Values become the bytes Redis would send, in both protocols."""

from __future__ import annotations

import pytest

from headrace.wire.encoder import (
    READY,
    encode,
    encode_array_header,
    encode_bulk,
    encode_entry,
    encode_error,
    encode_integer,
)
from headrace.wire.values import ErrorReply, NullArray, Pairs, Status, Unordered, Verbatim


@pytest.mark.parametrize(
    ("value", "resp2", "resp3"),
    [
        (None, b"$-1\r\n", b"_\r\n"),
        (NullArray(), b"*-1\r\n", b"_\r\n"),
        (b"a\r\nb", b"$4\r\na\r\nb\r\n", b"$4\r\na\r\nb\r\n"),
        ("é", b"$2\r\n\xc3\xa9\r\n", b"$2\r\n\xc3\xa9\r\n"),
        (-5, b":-5\r\n", b":-5\r\n"),
        (True, b":1\r\n", b"#t\r\n"),
        (False, b":0\r\n", b"#f\r\n"),
        (0.5, b"$3\r\n0.5\r\n", b",0.5\r\n"),
        ([1, [b"x"]], b"*2\r\n:1\r\n*1\r\n$1\r\nx\r\n", b"*2\r\n:1\r\n*1\r\n$1\r\nx\r\n"),
        ((), b"*0\r\n", b"*0\r\n"),
        ({b"k": 1}, b"*2\r\n$1\r\nk\r\n:1\r\n", b"%1\r\n$1\r\nk\r\n:1\r\n"),
        (
            Pairs([b"k", 1, b"k", 2]),
            b"*4\r\n$1\r\nk\r\n:1\r\n$1\r\nk\r\n:2\r\n",
            b"%2\r\n$1\r\nk\r\n:1\r\n$1\r\nk\r\n:2\r\n",
        ),
        (Unordered([1, 2]), b"*2\r\n:1\r\n:2\r\n", b"~2\r\n:1\r\n:2\r\n"),
        (Status("OK"), b"+OK\r\n", b"+OK\r\n"),
        (ErrorReply("ERR no"), b"-ERR no\r\n", b"-ERR no\r\n"),
        (Verbatim("hi"), b"$2\r\nhi\r\n", b"=6\r\ntxt:hi\r\n"),
    ],
    ids=lambda value: None if isinstance(value, bytes) else type(value).__name__,
)
def test_each_type_has_its_form_in_both_protocols(value: object, resp2: bytes, resp3: bytes) -> None:
    assert encode(value, resp3=False) == resp2
    assert encode(value, resp3=True) == resp3


def test_a_value_without_a_form_is_a_mistake_of_ours() -> None:
    with pytest.raises(TypeError, match="object"):
        encode(object(), resp3=True)


def test_an_error_cannot_forge_a_second_reply() -> None:
    assert encode_error("ERR unknown command 'a\r\n+OK\r\n'") == b"-ERR unknown command 'a  +OK  '\r\n"


def test_bytes_that_are_no_text_come_back_in_an_error() -> None:
    assert encode_error(b"ERR \xff".decode("utf-8", "surrogateescape")) == b"-ERR \xff\r\n"


@pytest.mark.parametrize("number", [0, 1, READY - 1, READY, READY + 1, -1, 2**63 - 1, -(2**63)])
def test_integers_of_any_size_are_written_in_decimal(number: int) -> None:
    assert encode_integer(number) == b":%d\r\n" % number


@pytest.mark.parametrize("size", [0, READY - 1, READY, READY + 1])
def test_headers_of_any_size_are_right(size: int) -> None:
    assert encode_bulk(b"x" * size) == b"$%d\r\n%b\r\n" % (size, b"x" * size)
    assert encode_array_header(size) == b"*%d\r\n" % size


@pytest.mark.parametrize("size", [0, 1, READY - 1, READY, 100_000])
def test_a_stored_entry_is_its_reply(size: int) -> None:
    value = b"v" * size
    expected = b"*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nf\r\n$%d\r\n%b\r\n" % (size, value)

    assert encode_entry(encode_bulk(b"1-0"), [b"XADD", b"s", b"1-0", b"f", value], 3) == expected


def test_an_entry_of_very_many_fields_is_its_reply() -> None:
    words = [b"w"] * (2 * READY)

    assert encode_entry(encode_bulk(b"1-0"), words, 0) == b"*2\r\n$3\r\n1-0\r\n*%d\r\n" % len(
        words
    ) + b"$1\r\nw\r\n" * len(words)
