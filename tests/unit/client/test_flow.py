"""Flows driven by hand and over transports that fail as told: no server, no waiting."""

import asyncio

import pytest

from headrace.client import flow as flow_module
from headrace.client import flows, requests
from headrace.client.capabilities import Capabilities, name_and_version, parse_version
from headrace.client.flow import run_flow, run_flow_async, together
from headrace.errors import AccessDenied, CommandError, ConfigError, ConnectionLost, Refused, WrongType


def drive(flow, answers):
    """Run a flow with these raw replies, or errors, one for each request; what was asked, and the result."""
    asked = []
    answers = iter(answers)
    try:
        step = next(flow)
        while True:
            asked.append(" ".join(str(word) for word in step.argv))
            answer = next(answers)
            step = flow.throw(answer) if isinstance(answer, Exception) else flow.send(step.decode(answer))
    except StopIteration as stop:
        return asked, stop.value


class Scripted:
    """A transport that answers what it was told, or raises it. The same for both flavours."""

    url = "scripted:"

    def __init__(self, *answers):
        self.answers = list(answers)
        self.calls = 0

    def call(self, request, timeout_s):
        self.calls += 1
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def call_many(self, requests, timeout_s):
        return self.call(requests, timeout_s)


class AsyncScripted(Scripted):
    async def call(self, request, timeout_s):
        return super().call(request, timeout_s)

    async def call_many(self, requests, timeout_s):
        return super().call(requests, timeout_s)


@pytest.fixture(params=["sync", "async"])
def run(request, monkeypatch):
    """run(flow, *answers) gives the result and how many calls were made."""
    monkeypatch.setattr(flow_module, "FIRST_PAUSE_S", 0.0)

    def run(flow, *answers, timeout_s=60.0):
        if request.param == "sync":
            transport = Scripted(*answers)
            return run_flow(transport, flow, timeout_s), transport.calls
        transport = AsyncScripted(*answers)
        return asyncio.run(run_flow_async(transport, flow, timeout_s)), transport.calls

    return run


LOST = ConnectionLost("lost")


def test_what_does_no_harm_is_repeated(run):
    assert run(requests.length("s").run(), LOST, LOST, 5) == (5, 3)


def test_what_may_do_harm_is_not(run):
    with pytest.raises(ConnectionLost):
        run(requests.add("s", [(b"a", b"1")], "*", ()).run(), LOST, b"1-0")


def test_repeating_ends_with_the_timeout(run):
    with pytest.raises(ConnectionLost):
        run(requests.length("s").run(), LOST, LOST, timeout_s=-1.0)


def test_a_batch_is_repeated_only_when_all_of_it_may_be(run):
    harmless = [requests.length("s"), requests.length("t")]

    assert run(flows.send_batch(list(harmless)), LOST, [1, 2]) == ([1, 2], 2)
    with pytest.raises(ConnectionLost):
        run(flows.send_batch([*harmless, requests.raw("INCR", "x")]), LOST, [1, 2, 3])


def test_the_first_error_of_a_batch_is_raised(run):
    with pytest.raises(CommandError, match="ERR no"):
        run(flows.send_batch([requests.length("s"), requests.length("t")]), [1, CommandError("ERR no")])


def test_many_entries_go_in_several_batches(run):
    many = [{"n": number} for number in range(flows.BATCH + 1)]
    first = [b"%d-0" % number for number in range(flows.BATCH)]

    ids, calls = run(flows.add_many("s", many, ()), first, [b"9999-0"])

    assert (len(ids), calls) == (flows.BATCH + 1, 2)


def test_an_existing_group_is_not_an_error():
    asked, is_new = drive(flows.create_group("s", "g", "$"), [CommandError("BUSYGROUP exists")])

    assert (asked, is_new) == (["XGROUP CREATE s g $ MKSTREAM"], False)
    with pytest.raises(CommandError, match="ERR"):
        drive(flows.create_group("s", "g", "$"), [CommandError("ERR no")])


def test_claiming_goes_on_until_the_cursor_is_back():
    page = [[b"1-0", [b"a", b"1"]]]
    asked, claimed = drive(
        flows.claim_idle("s", "g", "ann", 5, None), [[b"7-0", page, []], [b"8-0", [], [b"3-0"]], [b"0-0", page, []]]
    )

    assert [words.split()[5] for words in asked] == ["0-0", "7-0", "8-0"]
    assert (len(claimed.entries), claimed.deleted_ids) == (2, ["3-0"])


def test_pending_entries_are_asked_for_page_by_page():
    rows = [[b"%d-0" % number, b"ann", 1, 1] for number in range(1, flows.PAGE + 1)]
    flow = flows.pending("s", "g", min_idle_ms=0, consumer=None, limit=None)
    asked, found = drive(flow, [rows, [[b"9999-0", b"ann", 1, 1]]])

    assert asked[1] == f"XPENDING s g ({flows.PAGE}-0 + {flows.PAGE}"
    assert len(found) == flows.PAGE + 1


def test_a_consumer_is_deleted_only_once_nothing_is_pending_with_it():
    row = [[b"1-0", b"ann", 1, 1]]
    handed_over = flows.delete_consumer("s", "g", "ann", hand_over_to="bob", force=False)
    asked, moved = drive(handed_over, [row, [b"1-0"], row, [b"1-0"], [], 0])

    assert [words.split()[0] for words in asked] == ["XPENDING", "XCLAIM", "XPENDING", "XCLAIM", "XPENDING", "XGROUP"]
    assert moved == 2
    with pytest.raises(Refused):
        drive(flows.delete_consumer("s", "g", "ann", hand_over_to=None, force=False), [row])
    with pytest.raises(ConfigError):
        drive(flows.delete_consumer("s", "g", "ann", hand_over_to="ann", force=False), [])


def test_following_from_now_begins_at_the_last_id_there_is():
    info = [b"length", 0, b"last-generated-id", b"7-3", b"groups", 0]

    assert drive(flows.resolve_start("s", "$", None), [info])[1] == "7-3"
    assert drive(flows.resolve_start("s", "7-3", None), [])[1] == "7-2"
    assert drive(flows.resolve_start("s", "$", "audit"), [b"5-0"])[1] == "5-0"
    assert drive(flows.resolve_start("s", "9-1", "audit"), [None])[1] == "9-0"


@pytest.mark.parametrize(
    ("stream", "key"),
    [("orders", "hr:{orders}:ids"), ("{shop}:orders", "hr:{shop}:{shop}:orders:ids"), ("{}x", "hr:{{}x}:ids")],
)
def test_keys_of_ours_lie_beside_the_stream(stream, key):
    assert flows.beside(stream, "ids") == key


# Capabilities


def probe(info, commands, ours, queues=(), lanes=()):
    facts = flows.Facts()
    _, known = drive(flows.capabilities(facts), [info, commands, ours, queues, lanes])
    assert drive(flows.capabilities(facts), []) == ([], known)  # Asked once.
    return known


def test_what_servers_can_do():
    old = probe(b"redis_version:7.0.15", [b"xadd"], [])
    new = probe(b"redis_version:8.6.3", [b"xadd", b"xackdel"], [])
    valkey = probe(b"redis_version:7.2.4\r\nvalkey_version:9.1.2", [b"xadd"], [])
    ours = probe(
        b"redis_version:8.6.3\r\nheadrace_version:0.1", [b"xackdel"], [b"hr.add"], [b"rq.push"], [b"lane.take"]
    )

    assert old == Capabilities("redis", (7, 0, 15), False, False, False, False, False)
    assert new == Capabilities("redis", (8, 6, 3), True, True, False, False, False)
    assert valkey == Capabilities("valkey", (9, 1, 2), False, False, False, False, False)
    assert (ours.server, ours.has_claim, ours.has_native_steps) == ("headrace", True, True)
    assert (ours.has_queues, ours.has_lanes) == (True, True)
    assert new.shown == "redis 8.6.3"


def test_a_server_that_tells_nothing_counts_as_an_old_one():
    denied = AccessDenied("no")
    _, known = drive(flows.capabilities(flows.Facts()), [denied, denied])

    assert known == Capabilities("redis", (), False, False, False, False, False)


def test_versions():
    assert parse_version("8.6.3") == (8, 6, 3)
    assert parse_version("") == ()
    assert name_and_version({"redis_version": "7.0"}) == ("redis", (7, 0))


WRONG = WrongType("WRONGTYPE Operation against a key holding the wrong kind of value")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (b"hash", "'orders' is not a stream but a hash. Check the name."),
        (b"none", "'orders' is not a stream but something else. Check the name."),
        (AccessDenied("no TYPE for you"), "'orders' is not a stream but something else. Check the name."),
        (b"stream", str(WRONG)),
    ],
)
def test_a_key_that_is_no_stream_is_told_with_what_it_is(run, kind, words):
    with pytest.raises(WrongType) as raised:
        run(requests.length("orders").run(), WRONG, kind)

    assert str(raised.value) == words
    assert raised.value.prefix == "WRONGTYPE"


def test_a_command_of_the_user_keeps_the_words_of_the_server(run):
    with pytest.raises(WrongType, match=r"^WRONGTYPE Operation"):
        run(requests.raw("GET", "orders").run(), WRONG)


def asking(*words, fails_with=None):
    """A flow that asks once per word; its result is all replies."""
    replies = []
    for word in words:
        replies.append((yield requests.Request((word,), str)))
    if fails_with is not None:
        raise fails_with
    return replies


def test_flows_that_run_together_share_their_round_trips():
    flow = together(asking("a", "b"), asking("c"), asking())
    batch = next(flow)
    assert [request.argv for request in batch] == [("a",), ("c",)]
    batch = flow.send(["1", "2"])
    assert [request.argv for request in batch] == [("b",)]
    with pytest.raises(StopIteration) as stop:
        flow.send(["3"])
    assert stop.value.value == [["1", "3"], ["2"], []]


def test_an_error_ends_its_own_flow_and_no_other():
    refused, wrong = CommandError("ERR no"), ConfigError("no such word")
    flow = together(asking("a", "b"), asking("c", "d"), asking(fails_with=wrong))
    next(flow)
    assert [request.argv for request in flow.send([refused, "1"])] == [("d",)]
    with pytest.raises(StopIteration) as stop:
        flow.send(["2"])
    assert stop.value.value == [refused, ["1", "2"], wrong]


def test_a_lost_connection_ends_all_flows_that_run_together():
    flow = together(asking("a"), asking("b"))
    next(flow)
    with pytest.raises(ConnectionLost):
        flow.throw(ConnectionLost("gone"))
