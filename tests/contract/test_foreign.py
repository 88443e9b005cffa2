"""Streams that other programs wrote: read as they are, and nothing is changed until asked."""

import pytest

from headrace import HeadraceError


@pytest.fixture
def foreign(client, name):
    """A stream and a group made by raw commands, with entries of several layouts."""
    client.command("XADD", name, "1-0", "sensor", "7", "value", "21.5")
    client.command("XADD", name, "2-0", b"\xff\x00", b"\xfe", "", "")
    client.command("XADD", name, "3-0", "a", "1", "a", "2", "a", "3")
    client.command("XADD", name, "4-0", "data", "not json", "payload", "x")
    client.command("XADD", name, "5-0", "data", '{"id":17,"total":9.9}', "key", "customer-42", "id", "order-17")
    client.command("XGROUP", "CREATE", name, "legacy", "0")
    client.command("XREADGROUP", "GROUP", "legacy", "old", "COUNT", "2", "STREAMS", name, ">")
    return client.stream(name)


def test_entries_of_any_layout_are_read_as_they_are(foreign):
    entries = foreign.range()

    assert entries[0].payload == entries[0].fields == {"sensor": "7", "value": "21.5"}
    assert entries[1].pairs == ((b"\xff\x00", b"\xfe"), (b"", b""))
    assert entries[1].fields == {"\udcff\x00": "\udcfe", "": ""}
    assert entries[2].pairs == ((b"a", b"1"), (b"a", b"2"), (b"a", b"3"))
    assert entries[2].fields == {"a": "3"}
    assert entries[3].fields == {"data": "not json", "payload": "x"}


def test_a_payload_that_is_not_json_says_which_entry(foreign):
    with pytest.raises(HeadraceError, match="4-0"):
        _ = foreign.get("4-0").payload


def test_a_message_written_by_another_language_is_read(foreign):
    entry = foreign.get("5-0")

    assert entry.payload == {"id": 17, "total": 9.9}
    assert (entry.key, entry.publish_id, entry.headers) == ("customer-42", "order-17", {})


def test_a_foreign_entry_is_written_again_unchanged(client, foreign, name):
    copy = client.stream(f"{name}-copy")
    copy.add_many(entry.pairs for entry in foreign.range())

    assert [entry.pairs for entry in copy.range()] == [entry.pairs for entry in foreign.range()]


def test_looking_changes_nothing(client, foreign, name):
    group = foreign.group("legacy")
    keys_before = client.streams(f"*{name}*")
    before = client.command("DUMP", name), client.command("XINFO", "STREAM", name, "FULL")

    foreign.length(), foreign.range(), foreign.info(), foreign.get("1-0"), foreign.groups()
    list(foreign.iterate(page=2)), list(foreign.follow(start="beginning", wait=0))
    group.info(), group.lag(), group.consumers(), group.pending(), group.pending_summary()
    foreign.trim(keep=1, dry_run=True)
    client.capabilities(), client.ping()

    assert (client.command("DUMP", name), client.command("XINFO", "STREAM", name, "FULL")) == before
    assert client.streams(f"*{name}*") == keys_before
    for aside in ("ids", "ids:age", "bookmarks"):
        assert client.command("EXISTS", f"hr:{{{name}}}:{aside}") == 0


def test_a_group_of_another_program_is_taken_up_where_it_stands(foreign):
    group = foreign.group("legacy")

    assert [entry.id for entry in group.history("old")] == ["1-0", "2-0"]
    assert [entry.id for entry in group.read("new")] == ["3-0", "4-0", "5-0"]
    assert group.create(start="beginning") is False
    assert group.info().last_delivered_id == "5-0"
