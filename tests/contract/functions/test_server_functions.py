"""Our steps on real servers: loading them, and ackdel.lua, add.lua and trim.lua (rows 129, 171, 257, 310)."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from headrace.client import flows, functions, publish_flows, worker_steps
from headrace.errors import AccessDenied, CommandError, Refused, Unsupported, WrongType
from support.deployments import KEEPS_EVERYTHING, KEEPS_NOTHING, Process, cluster_node
from support.flavours import Spy
from support.servers import Kind, Server, our_kind, wait_until
from support.steps import Steps, use_steps
from support.wire import NULL_BULK, ErrorReply, Wire
from support.worker_rows import words_to_step

NEITHER = "this server runs neither functions nor scripts, which headrace needs for 'ackdel' here. Allow FCALL"


def libraries(wire: Wire) -> list[bytes]:
    return sorted(library[1] for library in wire("FUNCTION", "LIST"))


def calls_of(server: Server, command: str) -> int:
    line = server.info("commandstats").get(f"cmdstat_{command}", "calls=0,")
    return int(line.removeprefix("calls=").split(",")[0])


def pending_entry(wire: Wire, entry_id: str = "1-0") -> None:
    """One entry, pending in group g."""
    wire("XADD", "s", entry_id, "n", 1)
    wire("XGROUP CREATE s g 0")
    wire("XREADGROUP GROUP g ann STREAMS s >")


# Loading


def test_the_library_is_loaded_once(server: Server, wire: Wire, connect: Callable[..., Any]) -> None:
    for client in (connect(), connect()):
        for number in range(3):
            client.stream("s").publish({}, id=f"order-{number}")

    assert libraries(wire) == [functions.LIBRARY.encode()]
    assert calls_of(server, "function|load") == 1
    assert wire("XLEN s") == 3


def test_a_server_that_lost_the_steps_gets_them_again(server: Server, way: str, connect: Callable[..., Any]) -> None:
    stream = connect(way).stream("s")
    first = stream.publish({}, id="order-1")

    for command in ("FUNCTION FLUSH", "SCRIPT FLUSH"):
        server.control(command)

    assert stream.publish({}, id="order-1") == first
    assert stream.publish({}, id="order-2") != first


def test_a_server_that_was_restarted_gets_them_again(kind: Kind, way: str, open_url: Callable[..., Any]) -> None:
    with Process(kind, *KEEPS_NOTHING) as process:
        client = open_url(process.url)
        use_steps(client, way)
        client.stream("s").publish({}, id="order-1")

        process.restart(signal.SIGKILL)

        client.stream("s").publish({}, id="order-1")
        assert client.stream("s").length() == 1


def test_clients_that_load_at_the_same_moment_do_not_disturb_each_other(
    wire: Wire, connect: Callable[..., Any]
) -> None:
    streams = [connect().stream("s") for _ in range(8)]
    for stream in streams:
        stream.length()

    with ThreadPoolExecutor(8) as threads:
        ids = set(threads.map(lambda stream: stream.publish({}, id="order-1"), streams))

    assert len(ids) == 1
    assert libraries(wire) == [functions.LIBRARY.encode()]


def test_two_versions_live_side_by_side(
    wire: Wire, connect: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    old = connect().stream("s").publish({}, id="order-1")

    with monkeypatch.context() as newer:
        newer.setattr(functions, "LIBRARY", "headrace_newer")
        assert connect().stream("s").publish({}, id="order-1") == old

    assert connect().stream("s").publish({}, id="order-1") == old
    assert libraries(wire) == [functions.LIBRARY.encode(), b"headrace_newer"]


def test_what_the_steps_changed_is_the_same_after_a_restart_from_the_log(kind: Kind, way: str) -> None:
    """So it is on a replica, which gets the same commands."""
    with Process(kind, *KEEPS_EVERYTHING) as process:
        with Wire(process.port) as wire:
            run_every_step(Steps(wire, way), "s")
            before = state_of(wire)

        process.restart(signal.SIGKILL)

        with Wire(process.port) as wire:
            assert state_of(wire) == before


def run_every_step(steps: Steps, stream: str) -> None:
    wire = steps.wire
    ids, ages = flows.beside(stream, "ids"), flows.beside(stream, "ids:age")
    wire.pipeline([("XADD", stream, f"{i}-0", "n", i) for i in range(1, 9)])
    wire("XGROUP", "CREATE", stream, "g", 0)
    wire("XREADGROUP", "GROUP", "g", "gone", "COUNT", 6, "STREAMS", stream, ">")
    assert steps("ackdel", [stream], "g", "1-0", "2-0", "3-0") == [1, 1, 1]
    assert steps("trim", [stream], "MINID", "9-0") == [0, b"4-0", b"g"]
    assert [entry[0] for entry in steps("claim", [stream], "g", "c", 0, 4, 0)] == [b"4-0", b"5-0", b"6-0", b"7-0"]
    assert steps("add", [stream, ids, ages], "order-1", 60_000, 10, "n", "new")[1] == 1
    run_worker_steps(steps, stream)


def run_worker_steps(steps: Steps, stream: str) -> None:
    """As consumer c, who has 4-0 to 7-0."""
    target = flows.beside(stream, "target")

    def run(*argv: str | int) -> Any:
        step, keys, arguments = words_to_step(argv)
        return steps(step, keys, *arguments)

    retry, bury = ("RETRY", "4-0", 0, 1, "oops"), ("BURY", "5-0", "bad", "trace", 2)
    add = ("EFFECT", 4, "HSET", flows.beside(stream, "totals"), "a", 1, "ADD", target, "FIELDS", 2, "a", "b")
    assert run("HR.SETTLE", stream, "g", "c", *retry, *bury, "ACK", 1, "6-0", *add) == [1, 1, 1]
    assert run("HR.ADD", stream, "DELAY", 3_600_000, "FIELDS", 2, "n", "later") == [NULL_BULK, 1]
    assert [entry[0] for entry in run("HR.DUE", stream, "g", "d", "COUNT", 10)[0]] == [b"4-0"]
    assert run("HR.START", stream, "g", "d", "4-0") == [[2, b"oops"]]
    assert run("HR.EXTEND", stream, "g", "d", "4-0") == [1]
    assert run("HR.RELEASE", stream, "g", "d", "4-0") == [1]
    assert run("HR.SWEEP", stream, "g", "IDLE", 0) == [b"gone"]


def state_of(wire: Wire) -> list[Any]:
    pending = [row[:2] + row[3:] for row in wire("XPENDING s g - + 10")]
    ids = [wire("HGETALL hr:{s}:ids"), wire("ZRANGE hr:{s}:ids:age 0 -1 WITHSCORES")]
    groups = [row[:8] for row in wire("XINFO GROUPS s")]  # Redis 7.0 forgets entries-read and lag, steps or not.
    beside = [wire(f"XRANGE hr:{{s}}:{name} - +") for name in ("g:dead", "target")]
    beside += [wire(f"ZRANGE hr:{{s}}:{name} 0 -1 WITHSCORES") for name in ("g:due", "delayed")]
    beside += [wire(f"HGETALL hr:{{s}}:{name}") for name in ("g:attempts", "delayed:body", "totals")]
    assert all(beside)
    return [wire("XRANGE s - +"), groups, pending, *ids, *beside]


def test_all_keys_of_a_step_lie_in_one_slot(kind: Kind, way: str) -> None:
    with cluster_node(kind) as node:
        node.command_reply("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        wait_until(lambda: b"cluster_state:ok" in node.command_reply("CLUSTER", "INFO"), "the cluster to be whole")  # type: ignore[operator]
        with Wire(node.port) as wire:
            for stream in ("orders", "{shop}:orders"):
                run_every_step(Steps(wire, way), stream)


def test_a_full_server_still_runs_the_steps_that_need_no_memory(
    server: Server, way: str, connect: Callable[..., Any], wire: Wire
) -> None:
    wire.pipeline([("XADD", "s", f"{i}-0", "n", i) for i in range(1, 6)])
    wire("XGROUP CREATE s g 0")
    stream = connect(way).stream("s")
    stream.publish({}, id="order-0")  # Now the steps are there.
    stream.trim(keep=100)
    stream.group("g").read("ann", count=1, claim_idle=0)
    stream.group("g").ack("1-0", delete=True)
    stream.publish({}, delay=0)
    facts = getattr(stream.client, "target", stream.client)._facts
    stream.client.run(worker_steps.settle(facts, "s", "g", "nobody", [worker_steps.Ack(["1-0"])]))
    try:
        server.control("CONFIG", "SET", "maxmemory", 1)

        assert [entry.id for entry in stream.group("g").read("ann", count=3, claim_idle=0)] == ["2-0", "3-0", "4-0"]
        assert stream.group("g").ack("2-0", "3-0", delete=True) == 2
        assert stream.trim(before="4-0").removed == 0
        with pytest.raises(CommandError, match="OOM"):
            stream.publish({}, id="order-1")
        with pytest.raises(CommandError, match="OOM"):
            stream.publish({}, delay="1m")
        assert stream.client.run(worker_steps.settle(facts, "s", "g", "ann", [worker_steps.Ack(["4-0"])])) == [True]
    finally:
        server.control("CONFIG", "SET", "maxmemory", 0)


# Where they are refused


@pytest.fixture
def allow(server: Server) -> Iterator[Callable[..., str]]:
    """allow("-eval") makes a user with these rules; the result goes into a URL."""

    def allow(*rules: str) -> str:
        assert server.control("ACL", "SETUSER", "worker", "reset", "on", ">secret", *rules) == "OK"
        return "worker:secret"

    yield allow
    server.control("ACL", "DELUSER", "worker")


@pytest.mark.parametrize("refused", [("-function", "-fcall"), ("-function",), ("-fcall",)])
def test_without_functions_scripts_do_it(
    wire: Wire, connect: Callable[..., Any], allow: Callable[..., str], refused: tuple[str, ...]
) -> None:
    """Row 310."""
    pending_entry(wire)
    client = connect(user=allow("+@all", "~*", *refused))
    spy = Spy(client)

    assert client.stream("s").group("g").ack("1-0", delete=True) == 1
    client.stream("s").publish({}, id="order-1")
    client.stream("s").publish({}, id="order-1")

    assert wire("XLEN s") == 1
    assert spy.names[-5:] == ["EVALSHA", "EVAL", "EVALSHA", "EVAL", "EVALSHA"]
    assert set(spy.names[:-5]) <= {"FCALL", "FUNCTION"}


def test_without_scripts_the_features_that_need_none_go_on(
    wire: Wire, connect: Callable[..., Any], allow: Callable[..., str]
) -> None:
    """Row 310."""
    stream = connect(user=allow("+@all", "~*", "-@scripting")).stream("s")
    group = stream.group("g")
    group.create(start="beginning")
    stream.add({"n": 1}, id="1-0")
    stream.publish({"n": 2})
    [first, second] = group.read("ann")

    for _ in range(2):
        with pytest.raises(Unsupported, match=NEITHER):
            group.ack(first.id, delete=True)

    with pytest.raises(Unsupported, match="for 'add' here"):
        stream.publish({}, id="order-1")
    with pytest.raises(Unsupported, match="for 'claim' here"):
        group.read("ann", claim_idle="1m")
    with pytest.raises(Unsupported, match="for 'trim' here"):
        stream.trim(keep=1)
    with pytest.raises(Unsupported, match="for 'queue_push' here"):
        stream.client.queue("q").push("x")
    with pytest.raises(Unsupported, match="for 'delay' here"):
        stream.publish({}, delay="1m")
    facts = getattr(stream.client, "target", stream.client)._facts
    with pytest.raises(Unsupported, match="for 'worker_settle' here"):
        stream.client.run(worker_steps.settle(facts, "s", "g", "ann", [worker_steps.Ack([first.id])]))
    assert group.ack(first.id, second.id) == 2
    assert stream.trim(keep=1, force=True).removed == 1


def test_a_key_the_user_may_not_touch_says_so_and_functions_stay_in_use(
    wire: Wire, connect: Callable[..., Any], allow: Callable[..., str]
) -> None:
    pending_entry(wire)
    client = connect(user=allow("+@all", "~s", "~hr:{s}*"))
    spy = Spy(client)

    with pytest.raises(AccessDenied, match="key"):
        client.stream("other").group("g").ack("1-0", delete=True)

    assert client.stream("s").group("g").ack("1-0", delete=True) == 1
    assert set(spy.names) == {"FCALL", "FUNCTION"}


# Acknowledge and delete


def test_ack_and_delete_is_one_call(server: Server, wire: Wire, connect: Callable[..., Any]) -> None:
    """Row 129: nothing can happen between the two."""
    wire.pipeline([("XADD", "s", f"{i}-0", "n", i) for i in range(1, 6)])
    wire("XGROUP CREATE s g 0")
    wire("XREADGROUP GROUP g ann STREAMS s >")
    client = connect()
    client.stream("s").group("g").ack("1-0", delete=True)
    before = calls_of(server, "fcall")
    spy = Spy(client)

    assert client.stream("s").group("g").ack("2-0", "3-0", "4-0", delete=True) == 3

    assert spy.names == ["FCALL"]
    assert calls_of(server, "fcall") == before + 1
    assert [entry[0] for entry in wire("XRANGE s - +")] == [b"5-0"]


def test_an_entry_that_another_group_needs_is_kept(wire: Wire, stream: Any, group: Any) -> None:
    """Row 129: not given to it yet, then pending in it, then acknowledged."""
    pending_entry(wire)
    wire("XGROUP CREATE s other 0")
    other = stream.group("other")

    assert group.ack("1-0", delete=True) == 1
    assert wire("XLEN s") == 1
    assert len(other.read("bob")) == 1
    assert group.ack("1-0", delete=True) == 0
    assert wire("XLEN s") == 1
    assert other.ack("1-0", delete=True) == 1
    assert wire("XLEN s") == 0


def test_an_entry_that_a_marker_group_has_not_reached_is_kept(wire: Wire, group: Any) -> None:
    """Row 129: an archive holds what it has not written yet. Nobody ever reads in its group."""
    wire("XADD s 1-0 n 1")
    wire("XADD s 2-0 n 2")
    wire("XGROUP CREATE s hr:archive:lake 1-0")
    wire("XGROUP CREATE s g 0")
    wire("XREADGROUP GROUP g ann STREAMS s >")

    assert group.ack("1-0", "2-0", delete=True) == 2

    assert [entry[0] for entry in wire("XRANGE s - +")] == [b"2-0"]


def test_all_ids_are_checked_before_any_is_acknowledged(wire: Wire, group: Any) -> None:
    pending_entry(wire)

    for wrong in ("x", "1-", "-1", "18446744073709551616-0", "1-0-0", ""):
        with pytest.raises(CommandError, match="Invalid stream ID"):
            group.ack("1-0", wrong, delete=True)

    assert wire("XPENDING s g")[0] == 1


def test_more_ids_than_one_command_takes(wire: Wire, group: Any) -> None:
    wire.pipeline([("XADD", "s", f"{i}-0", "n", i) for i in range(1, 9002)])
    wire("XGROUP CREATE s g 0")
    wire("XREADGROUP GROUP g ann STREAMS s >")

    assert group.ack(*(f"{i}-0" for i in range(1, 9001)), delete=True) == 9000
    assert wire("XLEN s") == 1


@pytest.mark.parametrize("seed", range(3))
def test_random_histories_end_as_with_the_native_command(steps: Steps, native: Wire, seed: int) -> None:
    """Row 128, with the ACKED policy."""
    chance = random.Random(seed)
    wires = (steps.wire, native)
    for wire in wires:
        wire("XGROUP CREATE s g 0 MKSTREAM")
        wire("XGROUP CREATE s h 0")
    for number in range(1, 151):
        ids = [f"{chance.randrange(1, number + 2)}-{chance.randrange(2)}" for _ in range(chance.randrange(1, 4))]
        name = chance.choice("gh")
        wrong = chance.choice(["nog", name, name, name])
        for wire in wires:
            wire("XADD", "s", f"{number}-0", "n", number)
        turn = chance.randrange(6)
        if turn < 2:
            line = f"XREADGROUP GROUP {name} ann COUNT {chance.randrange(1, 5)} STREAMS s >"
        elif turn == 2:
            forced = f"XCLAIM s {name} bob 0 {ids[0]} FORCE JUSTID"
            line = chance.choice([f"XDEL s {ids[0]}", f"XACK s g {ids[0]}", forced])
        else:
            got = steps("ackdel", ["s"], wrong, *ids)
            assert got == native("XACKDEL", "s", wrong, "ACKED", "IDS", len(ids), *ids), (number, name, ids)
            continue
        assert steps.wire(line) == native(line), line
    for line in ("XRANGE s - +", "XPENDING s g", "XPENDING s h"):
        assert steps.wire(line) == native(line)


# Add once


def test_twice_is_once(wire: Wire, way: str, connect: Callable[..., Any]) -> None:
    """Row 257."""
    stream = connect(way).stream("s")

    first = stream.publish({"total": 9.9}, id="order-1", key="customer-1")

    assert stream.publish({"total": 7.7}, id="order-1") == first
    assert stream.publish({"total": 9.9}, id="order-2") != first
    [entry, _] = stream.range()
    assert (entry.id, entry.payload, entry.publish_id, entry.key) == (first, {"total": 9.9}, "order-1", "customer-1")


def test_it_is_once_also_when_the_entry_is_gone(wire: Wire, stream: Any) -> None:
    first = stream.publish({}, id="order-1")
    stream.delete(first)

    assert stream.publish({}, id="order-1") == first
    assert stream.length() == 0


def test_many_publishers_with_the_same_id_add_one_entry(wire: Wire, connect: Callable[..., Any]) -> None:
    streams = [connect().stream("s") for _ in range(4)]

    with ThreadPoolExecutor(8) as threads:
        ids = set(threads.map(lambda number: streams[number % 4].publish({}, id="order-1"), range(200)))

    assert len(ids) == 1
    assert wire("XLEN s") == 1


def test_an_id_is_forgotten_after_its_window(stream: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publish_flows, "PUBLISH_ID_WINDOW_MS", 500)
    first = stream.publish({}, id="order-1")

    wait_until(lambda: stream.publish({}, id="order-1") != first, "the id to be forgotten")

    assert stream.length() == 2


def test_an_id_of_another_window_counts_by_its_age(stream: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while it is still stored: only the age decides."""
    first = stream.publish({}, id="order-1")
    monkeypatch.setattr(publish_flows, "PUBLISH_ID_WINDOW_MS", 0)

    assert stream.publish({}, id="order-1") != first


def test_the_oldest_ids_go_when_there_are_too_many(wire: Wire, stream: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publish_flows, "PUBLISH_ID_LIMIT", 2)
    ids = {name: stream.publish({}, id=name) for name in ("c", "b", "a")}

    assert stream.publish({}, id="b") == ids["b"]
    assert stream.publish({}, id="a") == ids["a"]
    assert stream.publish({}, id="c") != ids["c"]
    assert wire("HLEN hr:{s}:ids") == wire("ZCARD hr:{s}:ids:age") == 2


def test_old_ids_go_a_few_at_a_time(steps: Steps) -> None:
    wire, keys = steps.wire, ["s", "ids", "age"]
    wire("XADD s 1-0 n 1")
    wire.pipeline([("HSET", "ids", f"old-{i}", "1-0") for i in range(250)])
    wire.pipeline([("ZADD", "age", i + 1, f"old-{i}") for i in range(250)])

    left = []
    for number in range(4):
        assert steps("add", keys, f"new-{number}", 60_000, 1000, "n", "1")[1] == 1
        left.append(wire("HLEN ids") - number - 1)

    assert left == [150, 50, 0, 0]
    assert wire("ZCARD age") == 4


def test_ids_leave_nothing_behind(wire: Wire, stream: Any) -> None:
    stream.publish({}, id="order-1")

    assert 0 < wire("PTTL hr:{s}:ids") <= 24 * 3_600_000
    assert 0 < wire("PTTL hr:{s}:ids:age") <= 24 * 3_600_000


def test_ids_go_with_their_stream(wire: Wire, stream: Any) -> None:
    stream.publish({}, id="order-1")
    wire("DEL s")

    stream.publish({}, id="order-1")

    assert stream.length() == 1


def test_an_entry_that_could_not_be_added_is_not_remembered(wire: Wire, stream: Any) -> None:
    wire("SET s text")
    with pytest.raises(WrongType):
        stream.publish({}, id="order-1")
    wire("DEL s")

    stream.publish({}, id="order-1")

    assert stream.length() == 1


# Trim


@pytest.fixture
def behind(wire: Wire) -> None:
    """Entries 1-0 to 9-0; group g was given three of them and has acknowledged the first, group fast all."""
    wire.pipeline([("XADD", "s", f"{i}-0", "n", i) for i in range(1, 10)])
    for group, count in (("g", 3), ("fast", 9)):
        wire("XGROUP", "CREATE", "s", group, 0)
        wire("XREADGROUP", "GROUP", group, "ann", "COUNT", count, "STREAMS", "s", ">")
    wire("XACK s g 1-0")
    wire.pipeline([("XACK", "s", "fast", f"{i}-0") for i in range(1, 10)])


@pytest.mark.usefixtures("behind")
@pytest.mark.parametrize("what", [{"keep": 4}, {"before": "6-0"}, {"keep": 0}])
def test_a_trim_that_a_group_holds_back_is_refused_and_names_it(stream: Any, what: dict[str, Any]) -> None:
    """Row 171."""
    with pytest.raises(Refused, match="group 'g' of 's' still needs entries from 2-0 on"):
        stream.trim(**what)
    assert stream.length() == 9


@pytest.mark.usefixtures("behind")
def test_a_dry_run_changes_nothing_and_tells_what_would_go(stream: Any) -> None:
    report = stream.trim(keep=4, dry_run=True)

    assert (report.removed, report.kept_from_id, report.held_by, report.is_dry_run) == (1, "2-0", "g", True)
    assert stream.length() == 9


@pytest.mark.usefixtures("behind")
def test_partly_removes_what_no_group_needs(wire: Wire, stream: Any) -> None:
    report = stream.trim(keep=4, partly=True)
    assert (report.removed, report.kept_from_id, report.held_by, report.is_dry_run) == (1, "2-0", "g", False)

    wire("XACK s g 2-0 3-0")
    report = stream.trim(keep=4, partly=True)
    assert (report.removed, report.kept_from_id, report.held_by) == (2, "3-1", "g")
    assert stream.length() == 6


@pytest.mark.usefixtures("behind")
def test_force_removes_all_the_same(stream: Any) -> None:
    assert stream.trim(keep=4, force=True).removed == 5
    assert stream.length() == 4


@pytest.mark.usefixtures("behind")
def test_a_group_that_keeps_nothing_from_going_is_not_named(wire: Wire, stream: Any) -> None:
    report = stream.trim(before="2-0")
    assert (report.removed, report.held_by) == (1, None)

    wire("XDEL s 2-0 3-0 4-0")
    report = stream.trim(before="5-0")
    assert (report.removed, report.held_by) == (0, None)


def test_a_pending_entry_that_is_gone_holds_nothing_back(wire: Wire, stream: Any) -> None:
    wire.pipeline([("XADD", "s", f"{i}-0", "n", i) for i in range(1, 7)])
    wire("XGROUP CREATE s g 0")
    wire("XREADGROUP GROUP g ann STREAMS s >")
    wire("XACK s g 1-0 3-0 5-0 6-0")
    wire("XDEL s 2-0")

    report = stream.trim(before="6-0", partly=True)

    assert (report.removed, report.kept_from_id, report.held_by) == (2, "4-0", "g")


@pytest.mark.parametrize("keep", [0, 1, 99, 100, 101, 349, 350, 351])
def test_the_newest_are_kept_to_the_number(wire: Wire, stream: Any, keep: int) -> None:
    """From either end, over several pages."""
    wire.pipeline([("XADD", "s", f"{i}-0", "n", i) for i in range(1, 351)])

    assert stream.trim(keep=keep, dry_run=True).removed == max(0, 350 - keep)
    assert stream.trim(keep=keep).removed == max(0, 350 - keep)
    assert [entry.id for entry in stream.range()] == [f"{i}-0" for i in range(max(0, 350 - keep) + 1, 351)]


def test_ids_beyond_the_precision_of_lua_are_told_apart(wire: Wire, stream: Any) -> None:
    first, top = 2**53, 2**64 - 1
    ids = [f"{first}-{top - 1}", f"{first}-{top}", f"{first + 1}-0", f"{first + 1}-{first}", f"{first + 1}-{first + 1}"]
    wire.pipeline([("XADD", "s", entry_id, "n", 1) for entry_id in ids])
    wire("XGROUP", "CREATE", "s", "g", ids[1])

    report = stream.trim(before=f"{top}-{top}", partly=True)
    assert (report.removed, report.kept_from_id, report.held_by) == (2, f"{first + 1}-0", "g")

    wire("XGROUP", "SETID", "s", "g", ids[3])
    report = stream.trim(before=f"{top}-{top}", dry_run=True)
    assert (report.removed, report.kept_from_id) == (2, f"{first + 1}-{first + 1}")

    assert [entry.id for entry in stream.group("g").read("ann")] == ids[4:]
    assert stream.group("g").ack(ids[4], delete=True) == 1
    assert [entry.id for entry in stream.range()] == ids[2:4]


@pytest.mark.parametrize("words", [("MINID",), ("MINID", "x"), ("MAXLEN", "-1"), ("SIZE", "1"), ("MINID", "1", "DRY")])
def test_a_wrong_request_changes_nothing(steps: Steps, words: tuple[str, ...]) -> None:
    steps.wire("XADD s 1-0 n 1")

    assert isinstance(steps("trim", ["s"], *words), ErrorReply)
    assert steps.wire("XLEN s") == 1


@pytest.mark.parametrize("seed", range(3))
def test_random_trims_reply_as_our_broker(steps: Steps, real_servers: Callable[[Kind], Server], seed: int) -> None:
    chance = random.Random(seed)
    with real_servers(our_kind()).connect() as ours:
        ours("FLUSHALL")
        for number in range(1, 200):
            for line in trim_history(chance, number):
                assert steps.wire(line) == ours(line), line
            least = ("MINID", str(chance.randrange(1, number + 3)))
            words = chance.choice([least, ("MAXLEN", str(chance.randrange(9)))]) + chance.choice([(), ("DRYRUN",)])
            removed, reached, group = ours("HR.TRIM", "s", *words)
            assert steps("trim", ["s"], *words) == [removed, reached, group if isinstance(group, bytes) else b""], words


def trim_history(chance: random.Random, number: int) -> Iterator[str]:
    """What happens between two trims. Entries that are pending are not deleted: there the replies differ."""
    for part in range(chance.randrange(1, 4)):
        yield f"XADD s {number}-{part} n {number}"
    if number in (3, 5):
        yield f"XGROUP CREATE s {'gh'[number == 5]} 0"
    for name in "gh":
        if number > 5 and chance.randrange(3):
            yield f"XREADGROUP GROUP {name} ann COUNT {chance.randrange(1, 5)} STREAMS s >"
        if number > 5 and chance.randrange(3):
            yield f"XACK s {name} " + " ".join(f"{chance.randrange(1, number + 1)}-{part}" for part in range(3))
