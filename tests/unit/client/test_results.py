"""The comfortable view of an entry."""

from datetime import UTC, datetime

from headrace import Entry


def test_fields_keep_the_last_of_duplicates():
    entry = Entry("1-0", ((b"a", b"1"), (b"a", b"2")))

    assert entry.fields == {"a": "2"}
    assert entry.find(b"a") == b"2"
    assert entry.find(b"b") is None


def test_the_time_of_an_entry_is_that_of_its_id():
    assert Entry("1518951480106-3", ()).time == datetime(2018, 2, 18, 10, 58, 0, 106000, tzinfo=UTC)
    assert Entry("18446744073709551615-0", ()).time is None
    assert Entry("7-1", ()).id_ms == 7


def test_an_entry_without_data_is_its_fields_without_our_own():
    assert Entry("1-0", ((b"a", b"1"), (b"hr:stream", b"orders"))).payload == {"a": "1"}


def test_the_parts_of_a_published_entry():
    entry = Entry("1-0", ((b"data", b"1"), (b"key", b"k"), (b"id", b"i"), (b"h:a", b"x"), (b"h:b", b"\xff")))

    assert (entry.payload, entry.key, entry.publish_id, entry.headers) == (1, "k", "i", {"a": "x", "b": "\udcff"})


def test_an_entry_shows_itself():
    assert "1-0" in repr(Entry("1-0", ()))
