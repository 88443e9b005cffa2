"""The session notation itself: it must refuse what differs."""

import pytest

from support.notation import parse, render
from support.wire import NULL, NULL_ARRAY, NULL_BULK, ErrorReply, Map, Push, SetReply, split_line

VALUES = [
    b"tea", b'say "\\\x00\xff', 5, -1, "OK", ErrorReply("ERR no"), NULL, NULL_ARRAY, NULL_BULK, True, False, 1.5,
    [], [b"a", [1, "QUEUED", ErrorReply("ERR a, b")]], Map({b"a": 1, b"b": [NULL]}), SetReply([b"a"]), Push([b"x", 1]),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=render)
def test_a_rendered_reply_matches_itself_and_no_other(value: object) -> None:
    pattern = parse(render(value))
    assert [other for other in VALUES if pattern.match(other, {}) is not None] == [value]


def test_a_name_stands_for_one_value_only() -> None:
    assert parse('["<a>", "<b>"]').match([b"1-0", b"2-0"], {}) == {"a": "1-0", "b": "2-0"}
    assert parse('["<a>", "<a>"]').match([b"1-0", b"2-0"], {}) is None
    assert parse('"<ms>-1"').match(b"7-1", {"ms": "8"}) is None


def test_dots_stand_for_elements_but_keep_the_order_of_the_others() -> None:
    pattern = parse('[..., "a", :1, ..., "b", :2, ...]')
    assert pattern.match([b"x", b"a", 1, b"b", 2], {}) == {}
    assert pattern.match([b"b", 2, b"a", 1], {}) is None


def test_map_order_counts() -> None:
    assert parse('{"a": :1, "b": :2}').match(Map({b"b": 2, b"a": 1}), {}) is None


def test_a_lower_bound_refuses_less() -> None:
    assert parse(":50+").match(49, {}) is None
    assert parse(":50+").match(50, {}) == {}


def test_command_lines_split_as_in_redis_cli() -> None:
    assert split_line(r'SET  k "a b\n\xff\"" ""') == [b"SET", b"k", b'a b\n\xff"', b""]
