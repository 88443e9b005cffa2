"""Messages as they are written on the command line and on stdin."""

import os

import msgspec
import pytest

from headrace.cli import publish
from headrace.cli.publish import parse_message, read_lines
from headrace.cli.usage import WrongUsage


def stored(*items: str, json: str | None = None) -> bytes:
    return msgspec.json.encode(parse_message(list(items), json))


@pytest.mark.parametrize(
    ("item", "data"),
    [
        ("item=tea", b'{"item":"tea"}'),
        ("total:=9.90", b'{"total":9.90}'),
        ("number=17", b'{"number":"17"}'),
        ("deep:={\"a\":[1,null]}", b'{"deep":{"a":[1,null]}}'),
        ("empty=", b'{"empty":""}'),
        ("a=b=c", b'{"a":"b=c"}'),
        ("a=b:=c", b'{"a":"b:=c"}'),
        ("a:b=c", b'{"a:b":"c"}'),
        ("huge:=123456789012345678901234567890", b'{"huge":123456789012345678901234567890}'),
    ],
)  # fmt: skip
def test_an_item_is_text_after_an_equals_sign_and_json_after_a_colon_and_one(item: str, data: bytes) -> None:
    assert stored(item) == data


def test_items_keep_their_order() -> None:
    assert stored("b=1", "a=2") == b'{"b":"1","a":"2"}'


def test_a_whole_message_stays_as_it_was_written() -> None:
    assert stored(json='[1.0, "x"]') == b'[1.0, "x"]'


@pytest.mark.parametrize("items", [[], ["tea"], ["=x"], [":=1"], ["a=1", "a=2"], ["a:="], ["a:={"], ["a:=NaN"]])
def test_what_cannot_be_a_message_is_wrong_usage(items: list[str]) -> None:
    with pytest.raises(WrongUsage):
        parse_message(items, None)


def lines_of(*pieces: bytes) -> list[bytes]:
    """The lines read from a pipe into which these pieces were written."""
    reading, writing = os.pipe()
    for piece in pieces:
        os.write(writing, piece)
    os.close(writing)
    try:
        return [line for _, lines in read_lines(reading) for line in lines]
    finally:
        os.close(reading)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_lines_are_whole_however_they_arrive(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(publish, "READ_BYTES", size)

    assert lines_of(b"one\n\ntwo\nthree without an end") == [b"one", b"", b"two", b"three without an end"]
    assert lines_of(b"one\n") == [b"one"]
    assert lines_of() == []


def test_a_line_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publish, "LONGEST_LINE_BYTES", 10)

    with pytest.raises(publish.HeadraceError, match="longer than 10 bytes"):
        lines_of(b"x" * 11)
