"""What is sent, and how replies of any age and protocol are read."""

import pytest

from headrace.client import requests
from headrace.client.results import Claimed, Entry, PendingEntry

OLD_STREAM = [
    b"length", 2, b"radix-tree-keys", 1, b"radix-tree-nodes", 2, b"last-generated-id", b"2-0", b"groups", 1,
    b"first-entry", [b"1-0", [b"a", b"1"]], b"last-entry", [b"2-0", [b"a", b"2"]],
]  # fmt: skip
NEW_STREAM = [
    b"length", 0, b"last-generated-id", b"2-0", b"max-deleted-entry-id", b"2-0", b"entries-added", 2,
    b"groups", 0, b"first-entry", None, b"last-entry", None, b"idmp-duration", 100, b"from-the-future", [b"x", 1],
]  # fmt: skip


def as_map(flat):
    return dict(zip(flat[::2], flat[1::2], strict=True))


# Entries


@pytest.mark.parametrize(
    ("reply", "entry"),
    [
        ([b"1-0", [b"a", b"1", b"a", b"2"]], Entry("1-0", ((b"a", b"1"), (b"a", b"2")), "s")),
        ([b"1-0", [b"a", b"1"], 1000, 3], Entry("1-0", ((b"a", b"1"),), "s", 1000, 3)),
        ([b"1-0", [b"a", b"1"], b"1000", b"3"], Entry("1-0", ((b"a", b"1"),), "s", 1000, 3)),
        ([b"1-0", None], Entry("1-0", (), "s", is_deleted=True)),
        ([b"1-0", None, 5, 2], Entry("1-0", (), "s", 5, 2, is_deleted=True)),
        ([b"1-0", []], Entry("1-0", (), "s")),
        ([b"1-0", [b"a", b"1"], 5, 2, b"from the future"], Entry("1-0", ((b"a", b"1"),), "s", 5, 2)),
    ],
)
def test_entries_of_two_and_four_elements_and_deleted_ones(reply, entry):
    assert requests.read_entry(reply, "s") == entry


@pytest.mark.parametrize(
    "reply",
    [
        [[b"s", [[b"1-0", [b"a", b"1"]]]]],
        {b"s": [[b"1-0", [b"a", b"1"]]]},
    ],
    ids=["RESP2", "RESP3"],
)
def test_reads_of_both_protocols(reply):
    assert requests.read_streams(reply) == [Entry("1-0", ((b"a", b"1"),), "s")]


@pytest.mark.parametrize("reply", [None, [], {}])
def test_nothing_read(reply):
    assert requests.read_streams(reply) == []


def test_gaps_in_a_list_of_claimed_entries_are_passed_over():
    assert requests.read_entries([None, [b"1-0", [b"a", b"1"]]], "s") == [Entry("1-0", ((b"a", b"1"),), "s")]
    assert requests.read_entries(None, "s") == []


# Facts


@pytest.mark.parametrize("shape", [list, as_map], ids=["RESP2", "RESP3"])
def test_the_shorter_stream_facts_of_an_old_server(shape):
    info = requests.stream_info("s").decode(shape(OLD_STREAM))

    assert (info.length, info.last_id, info.groups) == (2, "2-0", 1)
    assert (info.first_entry.id, info.last_entry.id) == ("1-0", "2-0")
    assert (info.entries_added, info.max_deleted_id) == (None, None)


@pytest.mark.parametrize("shape", [list, as_map], ids=["RESP2", "RESP3"])
def test_stream_facts_nobody_knows_yet_do_no_harm(shape):
    info = requests.stream_info("s").decode(shape(NEW_STREAM))

    assert (info.length, info.first_entry, info.entries_added, info.max_deleted_id) == (0, None, 2, "2-0")
    assert info.facts["idmp-duration"] == 100
    assert info.facts["from-the-future"] == [b"x", 1]


@pytest.mark.parametrize("shape", [list, as_map], ids=["RESP2", "RESP3"])
def test_group_facts_of_old_and_new_servers(shape):
    old = [b"name", b"g", b"consumers", 1, b"pending", 2, b"last-delivered-id", b"2-0"]
    new = [*old, b"entries-read", 2, b"lag", 0, b"colour", b"red"]
    unknown = [*old, b"entries-read", None, b"lag", None]

    [first, second, third] = requests.groups("s").decode([shape(old), shape(new), shape(unknown)])

    assert (first.name, first.consumers, first.pending, first.last_delivered_id) == ("g", 1, 2, "2-0")
    assert (first.entries_read, first.lag) == (None, None)
    assert (second.entries_read, second.lag) == (2, 0)
    assert (third.entries_read, third.lag) == (None, None)


@pytest.mark.parametrize(("inactive", "expected"), [([], None), ([b"inactive", -1], None), ([b"inactive", 7], 7)])
def test_consumer_facts_with_and_without_the_time_of_the_last_success(inactive, expected):
    reply = [[b"name", b"ann", b"pending", 2, b"idle", 9, *inactive]]

    [info] = requests.consumers("s", "g").decode(reply)

    assert (info.name, info.pending, info.idle_ms, info.inactive_ms) == ("ann", 2, 9, expected)


def test_summaries_of_nothing_and_of_something():
    decode = requests.pending_summary("s", "g").decode

    assert decode([0, None, None, None]).by_consumer == {}
    assert decode([2, b"1-0", b"2-0", [[b"ann", b"2"]]]).by_consumer == {"ann": 2}


def test_claims_of_servers_before_7_have_no_deleted_ids():
    decode = requests.auto_claim("s", "g", "ann", 0, "0-0", 10).decode

    assert decode([b"0-0", [], [b"1-0"]]) == ("0-0", Claimed([], ["1-0"]))
    assert decode([b"5-0", []]) == ("5-0", Claimed([], []))


def test_pending_rows():
    decode = requests.pending("s", "g", start="-", end="+", count=1, min_idle_ms=0, consumer=None).decode

    assert decode([[b"1-0", b"ann", 5, 2]]) == [PendingEntry("1-0", "ann", 5, 2)]


def test_server_facts_are_read_line_by_line():
    assert requests.server_info().decode(b"# Server\r\nredis_version:7.0.15\r\nos:a:b\r\n") == {
        "redis_version": "7.0.15",
        "os": "a:b",
    }


# Sending


@pytest.mark.parametrize(
    ("request_", "argv"),
    [
        (requests.add("s", [(b"a", b"1")], "*", ("MAXLEN", "~", 5)), "XADD s MAXLEN ~ 5 * a 1"),
        (requests.range_("s", "-", "+", None, newest_first=False), "XRANGE s - +"),
        (requests.range_("s", "1-0", "2-0", 3, newest_first=True), "XREVRANGE s 2-0 1-0 COUNT 3"),
        (requests.read("s", "1-0", 10, 500), "XREAD COUNT 10 BLOCK 500 STREAMS s 1-0"),
        (requests.read("s", "1-0", None, None), "XREAD STREAMS s 1-0"),
        (
            requests.read_group("s", "g", "ann", ">", count=1, wait_ms=5, claim_idle_ms=9, acks_at_once=True),
            "XREADGROUP GROUP g ann COUNT 1 BLOCK 5 CLAIM 9 NOACK STREAMS s >",
        ),
        (
            requests.pending("s", "g", start="-", end="+", count=5, min_idle_ms=9, consumer="ann"),
            "XPENDING s g IDLE 9 - + 5 ann",
        ),
        (requests.claim_ids("s", "g", "ann", 0, ["1-0"]), "XCLAIM s g ann 0 1-0 JUSTID"),
        (requests.ack_and_delete("s", "g", ["1-0", "2-0"]), "XACKDEL s g ACKED IDS 2 1-0 2-0"),
        (requests.create_group("s", "g", "$", makes_stream=True), "XGROUP CREATE s g $ MKSTREAM"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_commands_are_written_in_the_order_servers_expect(request_, argv):
    assert " ".join(word.decode() if isinstance(word, bytes) else str(word) for word in request_.argv) == argv


def test_only_what_does_no_harm_is_repeatable():
    assert requests.length("s").is_repeatable
    assert requests.ack("s", "g", ["1-0"]).is_repeatable
    assert not requests.add("s", [(b"a", b"1")], "*", ()).is_repeatable
    assert not requests.read_group("s", "g", "ann", ">").is_repeatable
    assert not requests.raw("INCR", "x").is_repeatable
