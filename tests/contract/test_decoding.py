"""The same answers whichever protocol is spoken."""

import pytest

from headrace import CommandError, NotFound


@pytest.fixture(params=[None, 2, 3], ids=["default", "resp2", "resp3"])
def session(request, connect, name):
    """A stream of a client that speaks the protocol."""
    return connect(protocol=request.param).stream(name)


def test_a_working_day_reads_the_same_in_every_protocol(session):
    group = session.group("billing")
    session.add_many({"n": number} for number in range(5))
    assert group.create(start="beginning") is True
    assert group.create() is False
    first, second, *rest = group.read("ann", count=4)
    assert [entry.fields for entry in (first, second)] == [{"n": "0"}, {"n": "1"}]
    assert group.ack(first.id) == 1
    assert group.ack(second.id, delete=True) == 1
    assert [entry.id for entry in group.history("ann")] == [entry.id for entry in rest]
    assert [entry.fields["n"] for entry in group.read("bob", claim_idle=0)] == ["2", "3", "4"]
    assert {item.consumer for item in group.pending()} == {"bob"}
    assert group.pending_summary().by_consumer == {"bob": 3}
    assert len(group.claim("eve").entries) == 3
    assert {consumer.name: consumer.pending for consumer in group.consumers()} == {"ann": 0, "bob": 0, "eve": 3}
    assert (group.info().pending, group.lag()) == (3, 0)
    assert [info.name for info in session.groups()] == ["billing"]
    info = session.info()
    assert (info.length, info.entries_added, info.groups) == (4, 5, 1)
    assert [entry.fields["n"] for entry in session.follow(start="beginning", wait=0)] == ["0", "2", "3", "4"]
    assert group.read("ann", wait="20ms") == []
    session.publish({"n": 5}, id="five")
    session.publish({"n": 5}, id="five")
    assert session.length() == 5
    assert session.trim(keep=4, partly=True).removed == 1
    assert session.name in session.client.streams(f"{session.name}*")


def test_refusals_read_the_same_in_every_protocol(session):
    with pytest.raises(NotFound, match="nobody") as missing:
        session.group("nobody").read("ann")
    assert missing.value.prefix == "NOGROUP"
    with pytest.raises(NotFound):
        session.info()
    with pytest.raises(CommandError, match="Invalid stream ID"):
        session.add({"n": 1}, id="abc")
    session.add({"n": 1}, id="5-0")
    with pytest.raises(CommandError, match="equal or smaller"):
        session.add({"n": 1}, id="4-0")
    session.client.command("SET", f"{session.name}-text", "x")
    with pytest.raises(CommandError, match="WRONGTYPE"):
        session.client.command("XLEN", f"{session.name}-text")


def test_any_command_gives_its_reply_as_it_comes(session):
    key = f"{session.name}-list"
    assert session.client.command("RPUSH", key, "a", b"\xff", 3) == 3
    assert session.client.command("LRANGE", key, 0, -1) == [b"a", b"\xff", b"3"]
    assert session.client.command("GET", f"{session.name}-none") is None
