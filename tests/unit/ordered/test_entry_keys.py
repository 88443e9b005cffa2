"""The key of an entry, as the broker finds it."""

import pytest

from headrace.client.results import Entry
from headrace.ordered.entry_keys import find_key


def entry(*pairs):
    return Entry("5-1", tuple((name.encode(), value.encode()) for name, value in pairs), "s")


@pytest.mark.parametrize(
    ("pairs", "key"),
    [
        ([("ticket_id", "7")], "7"),
        ([("n", "1"), ("ticket_id", "a b")], "a b"),
        ([("ticket_id", "")], "id:5-1"),
        ([("n", "1")], "id:5-1"),
        ([("ticket_id", "first"), ("ticket_id", "second")], "first"),
        ([("data", '{"ticket_id": "x"}')], "x"),
        ([("data", '{"ticket_id": 7}')], "7"),
        ([("data", '{"ticket_id": -7}')], "-7"),
        ([("data", '{"ticket_id": true}')], "true"),
        ([("data", '{"ticket_id": 7.5}')], "id:5-1"),
        ([("data", '{"ticket_id": null}')], "id:5-1"),
        ([("data", '{"ticket_id": [7]}')], "id:5-1"),
        ([("data", f'{{"ticket_id": {2**53}}}')], "id:5-1"),
        ([("data", "{broken")], "id:5-1"),
        ([("data", "[1]")], "id:5-1"),
        ([("data", '{"ticket_id": "x"}'), ("ticket_id", "field")], "field"),
    ],
)
def test_the_key_is_a_field_or_a_member_of_the_payload(pairs, key):
    assert find_key(entry(*pairs), ("ticket_id",)) == key


def test_the_first_name_that_is_there_counts():
    found = entry(("key", "k"), ("data", '{"ticket_id": "t"}'))

    assert find_key(found, ("ticket_id", "key")) == "t"
    assert find_key(found, ("key", "ticket_id")) == "k"


def test_the_fields_of_the_layout_are_no_keys_beside_a_payload():
    assert find_key(entry(("data", '{"id": "x"}'), ("id", "publish-1")), ("id",)) == "x"
    assert find_key(entry(("id", "own")), ("id",)) == "own"


def test_a_key_that_is_no_utf8_keeps_its_bytes():
    found = Entry("5-1", ((b"ticket_id", b"\xff"),), "s")

    assert find_key(found, ("ticket_id",)).encode("utf-8", "surrogateescape") == b"\xff"
