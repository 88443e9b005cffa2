"""The flows of order per key driven by hand: no server, no waiting."""

import pytest

from headrace import errors
from headrace.client import lane_steps, lane_views
from headrace.client.capabilities import Capabilities
from headrace.client.flows import Facts
from headrace.client.functions import LIBRARY
from headrace.client.lane_keys import Order, Settings, decode_names, encode_names
from headrace.client.lane_steps import MOST, Add, Back, Bury, Done, Fail, Grant, Park, Taken
from headrace.client.lane_views import Registered, Ticket
from headrace.errors import CommandError, ConfigError, Fenced, NoLanes

ORDER = Order("tickets", "agents", Settings(("ticket_id", "key")))


def facts_of(*, ours):
    facts = Facts()
    facts.capabilities = Capabilities("headrace" if ours else "redis", (8,), True, True, ours, ours, ours)
    return facts


def drive(flow, answers):
    """Run a flow with these raw replies, or errors, one for each request; the requests, and the result."""
    asked = []
    answers = iter(answers)
    try:
        step = next(flow)
        while True:
            asked.append(step)
            answer = next(answers)
            step = flow.throw(answer) if isinstance(answer, Exception) else flow.send(step.decode(answer))
    except StopIteration as stop:
        return asked, stop.value


def test_our_broker_is_told_by_command():
    [asked], taken = drive(lane_steps.take(facts_of(ours=True), ORDER, "ann", 7, 100, 5, 10), [[[], -1]])

    assert asked.argv == ("LANE.TAKE", "tickets", "agents", "ann", 7, "LEASE", 100, "KEYS", 5, "RUN", 10)
    assert not asked.is_repeatable
    assert taken == Taken([], None)


def test_other_servers_are_told_by_function_with_all_keys():
    [asked], taken = drive(
        lane_steps.take(facts_of(ours=False), ORDER, "ann", 7, 100, 5, 10),
        [[[[b"k\xff", 9, 2, b"slow", [[b"1-0", [b"a", b"b"]]]]], 0]],
    )

    assert asked.argv[:3] == ("FCALL", f"{LIBRARY}_lane_take", 8)
    assert asked.argv[3:11] == (
        "tickets", "hr:{tickets}:agents:tickets", "hr:{tickets}:agents:ready", "hr:{tickets}:agents:until",
        "hr:{tickets}:agents:consumers", "hr:{tickets}:agents:order", "hr:{tickets}:agents:dead",
        "hr:{tickets}:agents:lanes",
    )  # fmt: skip
    [grant] = taken.grants
    assert (grant.key, grant.fence, grant.attempt, grant.last_error) == ("k\udcff", 9, 2, "slow")
    assert isinstance(grant, Grant)
    assert (grant.entries[0].id, taken.wait_ms) == ("1-0", 0)


def test_a_server_that_refuses_undeclared_keys_gets_the_lanes_in_one_set():
    facts = facts_of(ours=False)
    undeclared = CommandError("ERR script tried accessing undeclared key, key=hr:{tickets}:agents:lane:")

    asked, _ = drive(lane_steps.config(facts, ORDER), [undeclared, "OK"])
    assert [request.argv[-2:] for request in asked] == [("LAYOUT", "list"), ("LAYOUT", "set")]
    asked, _ = drive(lane_steps.config(facts, ORDER), ["OK"])
    assert [request.argv[-2:] for request in asked] == [("LAYOUT", "set")]

    with pytest.raises(CommandError, match="something else"):
        drive(lane_steps.config(facts_of(ours=False), ORDER), [CommandError("ERR something else")])


def test_our_broker_is_told_no_layout():
    [asked], _ = drive(lane_steps.config(facts_of(ours=True), ORDER), ["OK"])

    assert asked.argv == (
        "LANE.CONFIG", "tickets", "agents", "KEYFIELDS", 2, b"ticket_id", b"key", "POISON", "park", "MAXATTEMPTS", 0,
        "KEYLESS", "own", "LEASE", 30_000, "READER", b"master",
        "MAPS", b"hr:{tickets}:agents:tickets", b"hr:{tickets}:agents:consumers",
    )  # fmt: skip


def test_clauses_as_words():
    clauses = [
        Done("a", 1, ["1-0", "2-0"], adds=[Add("next", [(b"x", b"y")])], effects=[("INCR", "total")]),
        Fail("b", 2, "3-0", 500, "slow"),
        Bury("c", 3, "4-0", "bad", "line"),
        Park("d", 4, "stop"),
        Back("e", 5),
    ]

    [asked], flags = drive(lane_steps.settle(facts_of(ours=False), ORDER, clauses, keep=True), [[1, 1, 0, 1, 1]])

    assert asked.argv[2] == 10
    assert asked.argv[11:13] == ("next", "total")
    assert asked.argv[13:] == (
        "agents", "KEEP", "DONE", b"a", 1, 2, "1-0", "2-0", "EFFECT", 2, "INCR", "total", "ADD", "next", "FIELDS", 2,
        b"x", b"y", "FAIL", b"b", 2, "3-0", 500, b"slow", "BURY", b"c", 3, "4-0", b"bad", b"line", "PARK", b"d", 4,
        b"stop", "BACK", b"e", 5,
    )  # fmt: skip
    assert flags == [True, True, False, True, True]


def test_a_call_has_each_key_once_and_a_thousand_ids_at_the_most():
    clauses = [Done("a", 1, ["1-0"] * 600), Done("b", 2, ["2-0"] * 500), Back("b", 2), Back("c", 3)]

    asked, flags = drive(lane_steps.settle(facts_of(ours=True), ORDER, clauses), [[1], [1], [1, 1]])

    assert [request.argv.count("DONE") for request in asked] == [1, 1, 0]
    assert flags == [True] * 4
    with pytest.raises(ConfigError, match="1001 entries are to be settled in one step; 1000 are possible"):
        drive(lane_steps.settle(facts_of(ours=True), ORDER, [Done("a", 1, ["1-0"] * (MOST + 1))]), [])


def test_many_keys_are_extended_in_several_calls_unless_they_are_all_of_them():
    held = [(str(number), number) for number in range(MOST + 1)]

    asked, flags = drive(lane_steps.extend(facts_of(ours=True), ORDER, "ann", 7, 9, held), [[1] * MOST, [0]])
    assert [request.argv[7] for request in asked] == [MOST, 1]
    assert flags == [True] * MOST + [False]
    with pytest.raises(ConfigError, match="1001 keys are to be extended in one step"):
        drive(lane_steps.extend(facts_of(ours=True), ORDER, "ann", 7, 9, held, only=True), [])
    [asked], flags = drive(lane_steps.extend(facts_of(ours=True), ORDER, "ann", 7, 9, [], only=True), [[]])
    assert (asked.argv[-2:], flags) == (("ONLY", 0), [])


@pytest.mark.parametrize(("wait_ms", "block_ms"), [(None, 1000), (0, 1), (20, 20), (99_999, 1000)])
def test_nobody_waits_longer_than_a_second(wait_ms, block_ms):
    [asked], came = drive(lane_steps.wait(facts_of(ours=False), ORDER, wait_ms), [None])

    words = f"XREADGROUP GROUP agents master COUNT 1 BLOCK {block_ms} STREAMS tickets >"
    assert " ".join(str(word) for word in asked.argv) == words
    assert (came, asked.wait_ms) == (False, block_ms)


@pytest.mark.parametrize(
    ("text", "ticket"),
    [
        (b"ready 0", Ticket("ready")),
        (b"ready 2 ValueError: a  b", Ticket("ready", 2, error="ValueError: a  b")),
        (b"held 1 99 5000 3 ann of a", Ticket("held", 1, 99, 5000, 3, "ann of a")),
        (b"waiting 3 700 slow", Ticket("waiting", 3, until_ms=700, error="slow")),
        (b"parked 3 700", Ticket("parked", 3, until_ms=700)),
        (b"held 1 x", Ticket("ready")),
        (b"gone 1", Ticket("ready")),
        (b"", Ticket("ready")),
    ],
)
def test_a_ticket_is_read_and_nonsense_counts_as_ready(text, ticket):
    _, page = drive(lane_views.tickets(facts_of(ours=False), ORDER), [[b"0", [b"key", text]]])

    assert page.tickets == [("key", ticket)]
    assert page.cursor == 0


def test_consumers_are_read():
    rows = {b"bob": b"7 99 4 http://bob/api/health?a b", b"ann": b"nonsense"}
    _, found = drive(lane_views.consumers(facts_of(ours=False), ORDER), [rows])

    assert found == [Registered("ann", 0, 0, 0, ""), Registered("bob", 7, 99, 4, "http://bob/api/health?a b")]


def test_names_of_key_fields_may_hold_anything():
    names = ("ticket_id", "3:a", "é", "\udcff\0")

    assert tuple(name.decode("utf-8", "surrogateescape") for name in decode_names(encode_names(names))) == names
    assert encode_names(("ticket_id", "key")) == b"9:ticket_id3:key"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"keyfields": ()}, "give 1 to 64 names"),
        ({"keyfields": ("a", "")}, "none of them empty"),
        ({"poison": "drop"}, "poison is 'drop'; it must be one of park, skip"),
        ({"keyless": "x"}, "keyless is 'x'"),
        ({"layout": "x"}, "layout is 'x'"),
        ({"max_attempts": -1}, "max_attempts must be 0"),
        ({"lease_ms": 0}, "lease_ms at least 1"),
    ],
)
def test_settings_that_cannot_be_are_refused(options, error):
    with pytest.raises(ConfigError, match=error):
        Settings(**{"keyfields": ("a",), **options})


def test_refusals_have_their_own_errors():
    assert type(errors.refusal("FENCED register again", "x")) is Fenced
    assert type(errors.refusal("NOLANES LANE.CONFIG first", "x")) is NoLanes
