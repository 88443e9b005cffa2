"""Reply bytes as the values a caller gets."""

import pytest

from headrace.wire.replies import ReplyReader


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"+OK\r\n", b"OK"),
        (b":-5\r\n", -5),
        (b"$3\r\na\r\n\r\n", b"a\r\n"),
        (b"$-1\r\n", None),
        (b"*-1\r\n", None),
        (b"*2\r\n*1\r\n:1\r\n$0\r\n\r\n", [[1], b""]),
    ],
)
def test_each_type_has_its_python_value(data: bytes, value: object) -> None:
    assert ReplyReader(ValueError).decode(data) == value


def test_an_error_is_given_and_not_raised() -> None:
    reader = ReplyReader(ValueError)

    assert str(reader.decode(b"-ERR no\r\n")) == "ERR no"
    assert [type(item) for item in reader.decode(b"*2\r\n-NOGROUP gone\r\n:1\r\n")] == [ValueError, int]


def test_a_reader_is_used_again_and_again() -> None:
    reader = ReplyReader(ValueError)

    assert [reader.decode(b":%d\r\n" % number) for number in range(3)] == [0, 1, 2]
