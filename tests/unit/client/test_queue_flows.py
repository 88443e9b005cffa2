"""Flows of queues and lists driven by hand: no server, no waiting."""

import pytest

from headrace.client import list_flows, queue_flows
from headrace.client.capabilities import Capabilities
from headrace.client.flows import Facts
from headrace.client.functions import LIBRARY
from headrace.client.queue_flows import MOST, MOST_BYTES, PushOptions
from headrace.errors import CommandError, ConfigError, ConnectionLost, Unsupported


def facts_of(*, ours: bool) -> Facts:
    facts = Facts()
    facts.capabilities = Capabilities("headrace" if ours else "redis", (8,), True, True, ours, ours, ours)
    return facts


OURS = facts_of(ours=True)
OTHERS = facts_of(ours=False)


def drive(flow, answers):
    """Run a flow with these raw replies, or errors, one for each request; what was asked, and the result."""
    asked = []
    answers = iter(answers)
    try:
        step = next(flow)
        while True:
            asked.append(step.argv)
            answer = next(answers)
            step = flow.throw(answer) if isinstance(answer, Exception) else flow.send(step.decode(answer))
    except StopIteration as stop:
        return asked, stop.value


def words(argvs):
    return [" ".join(str(word) for word in argv) for argv in argvs]


def rows(first, count):
    return [[b"q", b"%d-0" % number, b"x"] for number in range(first, first + count)]


def test_many_elements_go_in_calls_of_a_thousand():
    asked, ids = drive(queue_flows.push(OURS, "q", range(MOST + 1), PushOptions()), [[b"1-1"] * MOST, [b"2-1"]])

    assert [(argv[:2], len(argv)) for argv in asked] == [(("RQ.PUSH", "q"), MOST + 2), (("RQ.PUSH", "q"), 3)]
    assert len(ids) == MOST + 1


def test_large_elements_go_in_calls_of_16_megabytes():
    third = bytes(MOST_BYTES // 3)

    parts = list(queue_flows.sized_parts_of([third, third, third, third, bytes(MOST_BYTES + 1), b"x"]))

    assert [[len(element) for element in part] for part in parts] == [
        [len(third)] * 3, [len(third)], [MOST_BYTES + 1], [1]
    ]  # fmt: skip


def test_options_of_a_push_are_for_our_broker():
    options = PushOptions(delay_ms=5, ttl_ms=6, retry_ms=7, max_deliveries=8, dead_letter="d")
    asked, _ = drive(queue_flows.push(OURS, "q", ["a"], options), [[b"1-1"]])

    assert words(asked) == ["RQ.PUSHX q DELAY 5 TTL 6 RETRY 7 MAXDELIVERIES 8 DEADLETTER d ELEMENTS 1 b'a'"]
    with pytest.raises(Unsupported, match="delay of a push is not possible"):
        drive(queue_flows.push(OTHERS, "q", ["a"], options), [])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (PushOptions(dead_letter="d"), "dead_letter needs max_deliveries"),
        (PushOptions(max_deliveries=2, dead_letter="q"), "dead_letter is 'q', the queue itself"),
        (PushOptions(max_deliveries=0), "max_deliveries is 0"),
        (PushOptions(max_deliveries=2**31), "max_deliveries is 2147483648"),
        (PushOptions(ttl_ms=0), "ttl is 0"),
        (PushOptions(retry_ms=0), "retry is 0"),
    ],
)
def test_options_that_make_no_sense_are_refused_in_the_words_of_python(options, said):
    for facts in (OURS, OTHERS):
        with pytest.raises(ConfigError, match=said):
            drive(queue_flows.push(facts, "q", ["a"], options), [])


def test_our_broker_waits_by_itself():
    asked, found = drive(queue_flows.pop(OURS, ["a", "b"], 3, 60_000), [None, rows(1, 1)])

    assert words(asked) == ["RQ.POP COUNT 3 BLOCK 5000 a b"] * 2
    assert found == [("q", "1-0", b"x")]


def test_elsewhere_the_client_waits_for_a_signal_and_pops_again():
    asked, found = drive(queue_flows.pop(OTHERS, ["a", "b"], 1, 60_000), [[], [b"5-0", b"0-0"], None, rows(1, 1)])

    assert words(asked) == [
        f"FCALL {LIBRARY}_queue_pop 2 a b COUNT 1",
        f"FCALL {LIBRARY}_queue_wait 2 a b",
        "XREAD COUNT 1 BLOCK 1000 STREAMS a b 5-0 0-0",
        f"FCALL {LIBRARY}_queue_pop 2 a b COUNT 1",
    ]
    assert len(found) == 1


def test_a_large_pop_does_not_wait_for_its_second_part():
    asked, found = drive(queue_flows.pop(OURS, ["q"], MOST + 5, 60_000), [rows(1, MOST), []])

    assert words(asked) == [f"RQ.POP COUNT {MOST} BLOCK 5000 q", "RQ.POP COUNT 5 q"]
    assert len(found) == MOST


def test_queues_of_several_slots_are_explained():
    with pytest.raises(ConfigError, match="must lie in one slot"):
        drive(
            queue_flows.pop(OTHERS, ["a", "b"], 1, 0),
            [CommandError("CROSSSLOT Keys in request don't hash to the same slot")],
        )


def test_a_large_recover_does_not_come_round_to_what_it_recovered():
    first = [[b"%d-0" % number, b"x"] for number in range(MOST)]
    asked, found = drive(
        queue_flows.recover(OURS, "q", 0, 5_000),
        [
            first,
            [b"undelivered", 0, b"delivered", MOST + 2],
            [[b"9000-0", b"x"], [b"9001-0", b"x"]],
            [[b"9000-0", b"x", 1, 0, 3]],
        ],
    )

    assert words(asked) == [
        f"RQ.RECOVER q {MOST} 0", "RQ.INFO q", "RQ.RECOVER q 2 0", f"RQ.INSPECT q PENDING {-MOST - 2} {MOST}"
    ]  # fmt: skip
    assert len(found) == MOST + 2
    assert found[-2:] == [("9000-0", b"x", 3), ("9001-0", b"x", None)]


def test_what_is_recovered_is_given_out_also_when_its_deliveries_cannot_be_told():
    _, found = drive(queue_flows.recover(OURS, "q", 0, 5), [[[b"1-1", b"x"]], ConnectionLost("gone")])

    assert found == [("1-1", b"x", None)]


def test_inspecting_from_the_end_stops_at_the_end():
    page = [[b"1-0", b"x"]] * MOST
    asked, found = drive(
        queue_flows.inspect(OURS, "q", pending=False, delayed=False, start=-MOST - 2, count=5_000), [page, page[:2]]
    )

    assert words(asked) == [f"RQ.INSPECT q {-MOST - 2} {MOST}", f"RQ.INSPECT q -2 {MOST}"]
    assert len(found) == MOST + 2


def test_a_list_waits_in_pieces():
    asked, found = drive(list_flows.pop("l", 2, 60_000, right=True), [None, [b"l", [b"x"]]])

    assert words(asked) == ["BLMPOP 5.000 1 l RIGHT COUNT 2"] * 2
    assert found == [b"x"]
