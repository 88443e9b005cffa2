"""However a client's bytes are cut on their way, the replies are the same."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.memory import MemoryBroker
from support.wire import encode

WORDS = st.sampled_from([b"", b"a", b"\r\n*1\r\n$4\r\nPING\r\n", b"$3\r\n", b"\x00\xff\r\n", b"x" * 100])

COMMANDS = st.one_of(
    st.builds(lambda word: encode([b"ECHO", word]), WORDS),
    st.builds(lambda word: encode([b"XADD", b"s", b"*", b"f", word]), WORDS),
    st.sampled_from(
        [
            encode([b"PING"]),
            encode([b"XRANGE", b"s", b"-", b"+"]),
            encode([b"XLEN", b"s"]),
            encode([b"NOSUCH", b"\r\n"]),
            encode([b"XADD", b"s"]),
            encode([b"HELLO", b"3"]),
            encode([b"MULTI"]),
            encode([b"EXEC"]),
            b"PING\r\n",
            b"PING\n",
            b'ECHO "a b\\x41\\n"\r\n',
            b"ECHO 'it''s'\r\n",
            b"   \r\n",
            b"\r\n",
            b"*0\r\n",
            b"*-1\r\n",
        ]
    ),
)

BROKEN = st.one_of(
    st.sampled_from(
        [
            b"*1\r\n$4\r\nPI",
            b"*2\r\n$4\r\nECHO\r\n",
            b"*x\r\n",
            b"*1\r\n$-1\r\n",
            b"*1\r\n$x\r\n",
            b"*1\r\n:5\r\n",
            b"*1\r\n*1\r\n$4\r\nPING\r\n",
            b"*1000000000\r\n",
            b"*1\r\n$1000000000\r\n",
            b"*1\r\n-ERR\r\n",
            b"$4\r\nPING\r\n",
            b'ECHO "open\r\n',
            b"ECHO 'a'b\r\n",
            b"\x00\xff\xfe",
        ]
    ),
    st.binary(max_size=12).filter(lambda data: not set(data) & set(b"*$+=(~>|%")),
)


@st.composite
def sessions(draw: st.DrawFn) -> tuple[bytes, list[int]]:
    """The bytes of a session, and where they are cut."""
    pieces = draw(st.lists(COMMANDS, max_size=12))
    if draw(st.booleans()):
        pieces.append(draw(BROKEN))
        pieces += draw(st.lists(COMMANDS, max_size=2))
    data = b"".join(pieces)
    cuts = draw(st.lists(st.integers(0, len(data)), max_size=8))
    return data, sorted({*cuts, 0, len(data)})


def replies_to(data: bytes, cuts: list[int]) -> tuple[bytes, bool]:
    client = MemoryBroker().first
    for start, end in pairwise(cuts):
        client.send_bytes(data[start:end])
    return client.received(), client.is_closed


def check(session: tuple[bytes, list[int]]) -> None:
    data, cuts = session
    whole = replies_to(data, [0, len(data)])
    assert replies_to(data, cuts) == whole
    assert replies_to(data, list(range(len(data) + 1))) == whole


@settings(max_examples=150)
@given(sessions())
def test_replies_do_not_depend_on_how_the_bytes_were_cut(session: tuple[bytes, list[int]]) -> None:
    check(session)


@pytest.mark.long
@settings(max_examples=5000)
@given(sessions())
def test_replies_do_not_depend_on_how_the_bytes_were_cut_in_many_sessions(session: tuple[bytes, list[int]]) -> None:
    check(session)
