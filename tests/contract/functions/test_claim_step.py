"""claim.lua: XREADGROUP with CLAIM on servers that lack it (requirements, rows 104-120 and 123).

Sessions recorded from Redis 8.6 are played with the step in place of the option, on every real server that is present,
Redis 8.6 included. What differs is listed in DIFFERENCES and in docs/servers.md.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import NotFound
from support.flavours import Spy
from support.notation import render
from support.recording import Script, even_out, read_recording, read_scripts
from support.servers import Kind, Server, our_kind
from support.steps import Steps
from support.wire import NULL, NULL_ARRAY, ErrorReply, Map, Wire, split_line

ROOT = Path(__file__).resolve().parents[3]
RECORDED = ROOT / "tests/conformance/recorded/claim-option.commands"

# Here readers wait, which a step cannot: the client does it. See the tests at the end.
WAITING = (
    "A waiting reader is served by an entry of another stream",
    "Removing the group wakes a reader that waits to claim",
)
# Mistakes in the words of the command; a step has no such words.
NOT_A_STEP = (
    "> XREADGROUP GROUP g c CLAIM STREAMS s >",
    "> XREADGROUP CLAIM 1 COUNT 1 STREAMS s >",
    "> XREAD CLAIM 1 STREAMS s 0",
    "> XREAD COUNT 1 CLAIM x STREAMS s 0",
)
# XCLAIM, by which the step claims, drops pending IDs whose entry is gone. The native option leaves them pending.
GONE = "Entries that are gone stay pending and are not claimed"
DIFFERENCES = {
    (GONE, "> XPENDING s g"): "[:0, (nil), (nil), (nil array)]",
    (GONE, "> XPENDING s g - + 10"): "[]",
}
# The table of docs/servers.md.
DOCUMENTED = (
    "a pending ID whose entry is gone",
    "waiting",
    "several streams in one call",
    "more than 1,000 idle entries, and a count",
    "a PEL of a million entries",
)
SCRIPTS = [script for script in read_scripts(RECORDED) if script.title not in WAITING]


# Against the recorded replies


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.title)
def test_the_step_replies_as_the_native_option_did(server: Server, way: str, script: Script) -> None:
    """Rows 104-110 and 114-120."""
    differences = []
    with server.connect(protocol=script.protocol) as wire:
        steps = Steps(wire, way)
        for line, recorded in read_recording(RECORDED)[script.title]:
            if line in NOT_A_STEP:
                continue
            expected = DIFFERENCES.get((script.title, line), recorded)
            got = render(even_out(play(steps, line.removeprefix("> "))))
            if without_inactive(expected) != without_inactive(got):
                differences.append(f"{line}\n    expected  {expected}\n    got       {got}")
    assert not differences, "\n" + "\n".join(differences)


def play(steps: Steps, line: str) -> Any:
    """A recorded command: as it is, or by the step for each stream when it claims."""
    words = split_line(line)
    if b"CLAIM" not in words:
        return steps.wire(line)
    options, streams = words[: words.index(b"STREAMS")], words[words.index(b"STREAMS") + 1 :]
    where = options.index(b"GROUP")
    group, consumer, least_idle = options[where + 1], options[where + 2], options[options.index(b"CLAIM") + 1]
    count = options[options.index(b"COUNT") + 1] if b"COUNT" in options else b"0"
    noack = int(b"NOACK" in options)
    found = Map()
    for key, after in zip(streams[: len(streams) // 2], streams[len(streams) // 2 :], strict=True):
        if after != b">":  # The option counts for new entries only.
            reply = steps.wire(b"XREADGROUP", b"GROUP", group, consumer, b"STREAMS", key, after)
            entries = reply if isinstance(reply, ErrorReply) else reply[key] if type(reply) is Map else reply[0][1]
        else:
            entries = steps("claim", [key.decode()], group, consumer, least_idle, count, noack)
        if isinstance(entries, ErrorReply):
            return entries
        if entries or after != b">":
            found[key] = entries
    if steps.wire.protocol == 3:
        return found or NULL
    return [list(pair) for pair in found.items()] or NULL_ARRAY


def test_the_page_on_servers_lists_the_differences() -> None:
    page = (ROOT / "docs/servers.md").read_text("utf-8")
    table = page.split("## CLAIM by the step")[1].split("\n## ")[0]

    assert re.findall(r"^\| ([^|-]+?) \|", table, re.MULTILINE) == ["situation", *DOCUMENTED]


@pytest.mark.parametrize("seed", range(3))
def test_random_histories_end_as_with_the_native_option(steps: Steps, native: Wire, seed: int) -> None:
    chance = random.Random(seed)
    for line in ("XADD s 1-0 n 1", "XGROUP CREATE s g 0"):
        assert steps.wire(line) == native(line)
    for number in range(2, 120):
        line = f"XADD s {number}-0 n {number}"
        assert steps.wire(line) == native(line)
        for entry in chance.sample(range(1, number + 1), min(number, 4)):
            idle_ms = (number * 100 + entry) * 10_000 + 1000  # No two alike, and far from the next ten seconds.
            line = f"XCLAIM s g gone 0 {entry}-0 IDLE {idle_ms} RETRYCOUNT {chance.randrange(9)} JUSTID"
            assert steps.wire(line) == native(line)
        count, consumer, least_idle = (
            chance.randrange(1, 5),
            chance.choice("ab"),
            chance.randrange(1, number) * 1_000_000,
        )
        noack = chance.choice([(), ("NOACK",)])
        words = ("COUNT", count, "CLAIM", least_idle, *noack, "STREAMS", "s", ">")
        expected = native("XREADGROUP", "GROUP", "g", consumer, *words)
        got = steps("claim", ["s"], "g", consumer, least_idle, count, len(noack))
        assert even_out(got) == ([] if expected is NULL_ARRAY else even_out(expected[0][1]))
    for line in ("XPENDING s g", "XPENDING s g - + 200", "XINFO CONSUMERS s g"):
        assert without_inactive(render(even_out(steps.wire(line)))) == without_inactive(render(even_out(native(line))))


def without_inactive(text: str) -> str:
    """Redis 7.0 does not tell the time of the last success."""
    return re.sub(r', "inactive", :-?\d+', "", text)


# Through the client


def test_count_is_shared_by_idle_and_new_entries(wire: Wire, group: Any) -> None:
    """Row 110."""
    fill(wire, 220, delivered=20)

    entries = group.read("c", count=100, claim_idle=0)

    assert [entry.deliveries for entry in entries] == [1] * 20 + [0] * 80
    assert [entry.id for entry in entries] == [f"{i}-0" for i in range(1, 101)]


def test_everything_without_a_count(wire: Wire, group: Any) -> None:
    """Rows 110, 115: more entries than one call of XCLAIM is given."""
    fill(wire, 2700, delivered=2500)

    entries = group.read("c", claim_idle=0)

    assert [entry.id for entry in entries] == [f"{i}-0" for i in range(1, 2701)]
    assert [entry.deliveries for entry in entries] == [1] * 2500 + [0] * 200


def test_the_longest_idle_comes_first_and_says_how_long(wire: Wire, group: Any) -> None:
    """Rows 104-109."""
    fill(wire, 5, delivered=4)
    wire("XCLAIM s g gone 0 4-0 IDLE 60000 RETRYCOUNT 7 JUSTID")
    wire("XCLAIM s g gone 0 1-0 IDLE 50000 JUSTID")

    entries = group.read("c", claim_idle="40s")

    assert [(entry.id, entry.deliveries) for entry in entries] == [("4-0", 7), ("1-0", 1), ("5-0", 0)]
    assert [entry.idle_ms // 10_000 for entry in entries] == [6, 5, 0]
    assert [(item.id, item.consumer, item.deliveries) for item in group.pending(consumer="c")] == [
        ("1-0", "c", 2), ("4-0", "c", 8), ("5-0", "c", 1),
    ]  # fmt: skip


def test_claimed_entries_stay_pending_when_new_ones_are_acked_at_once(wire: Wire, group: Any) -> None:
    """Row 114."""
    fill(wire, 3, delivered=1)

    assert [entry.id for entry in group.read("c", claim_idle=0, ack_at_once=True)] == ["1-0", "2-0", "3-0"]
    assert [item.id for item in group.pending()] == ["1-0"]


def test_removed_entries_are_never_claimed_and_do_not_use_up_the_count(wire: Wire, group: Any) -> None:
    """Row 120."""
    fill(wire, 1300, delivered=1300)
    wire("XTRIM s MINID 1200-0")

    assert [entry.id for entry in group.read("c", count=2, claim_idle=0)] == ["1200-0", "1201-0"]
    wire("XTRIM s MAXLEN 0")
    assert group.read("c", claim_idle=0) == []
    assert group.pending() == []


def test_with_a_count_the_lowest_ids_are_put_in_order(wire: Wire, group: Any) -> None:
    """The difference documented for row 106: the 1,000 with the lowest IDs, the rest when they are done."""
    fill(wire, 1500, delivered=1500)
    wire("XCLAIM s g gone 0 1000-0 IDLE 60000 JUSTID")
    wire("XCLAIM s g gone 0 1500-0 IDLE 90000 JUSTID")

    assert [entry.id for entry in group.read("c", count=2, claim_idle=0)] == ["1000-0", "1-0"]
    assert [entry.id for entry in group.read("c", count=1500, claim_idle=0)][:2] == ["1500-0", "2-0"]


def test_an_unknown_group_is_named(wire: Wire, group: Any) -> None:
    wire("XADD s 1-0 n 1")

    with pytest.raises(NotFound, match="stream 's' has no group 'g'"):
        group.read("c", claim_idle=0)


# Waiting, which the client does


def test_a_reader_waits_until_an_entry_has_been_idle_long_enough(wire: Wire, group: Any) -> None:
    """Row 111."""
    fill(wire, 1, delivered=1)
    wire("XCLAIM s g gone 0 1-0 IDLE 59500 JUSTID")

    [entry] = group.read("c", wait="20s", claim_idle="60s")

    assert (entry.id, entry.deliveries) == ("1-0", 1)
    assert entry.idle_ms >= 60_000


def test_a_server_that_has_the_option_does_the_waiting(
    real_servers: Callable[[Kind], Server], open_url: Callable[..., Any]
) -> None:
    """Row 111: one command, woken by the server."""
    server = real_servers(our_kind())
    server.clean()
    with server.connect() as wire:
        fill(wire, 1, delivered=1)
        wire("XCLAIM s g gone 0 1-0 IDLE 59500 JUSTID")
    client = open_url(f"redis://127.0.0.1:{server.port}")
    client.capabilities()
    spy = Spy(client)

    [entry] = client.stream("s").group("g").read("c", wait="20s", claim_idle="60s")

    assert (entry.id, entry.deliveries) == ("1-0", 1)
    assert spy.names == ["XREADGROUP"]


def test_a_waiting_reader_gets_a_new_entry(server: Server, wire: Wire, group: Any) -> None:
    """Row 111."""
    fill(wire, 1, delivered=1)
    with ThreadPoolExecutor(1) as threads:
        reading = threads.submit(group.read, "c", wait="20s", claim_idle="1h")
        server.wait_until_blocked(1)
        wire("XADD s 2-0 n 2")
        [entry] = reading.result()

    assert (entry.id, entry.idle_ms, entry.deliveries) == ("2-0", 0, 0)


def test_nothing_due_ends_with_nothing(wire: Wire, group: Any) -> None:
    """Row 112."""
    fill(wire, 1, delivered=1)

    assert group.read("c", wait="20ms", claim_idle="1h") == []


def test_an_entry_goes_to_one_of_two_waiting_readers_and_later_to_the_other(
    server: Server, wire: Wire, connect: Callable[..., Any]
) -> None:
    """Row 113."""
    wire("XGROUP CREATE s g $ MKSTREAM")
    readers = {name: connect().stream("s").group("g") for name in ("one", "two")}
    with ThreadPoolExecutor(2) as threads:
        reading = [threads.submit(group.read, name, wait="20s", claim_idle="300ms") for name, group in readers.items()]
        server.wait_until_blocked(2)
        wire("XADD s 1-0 n 1")
        entries = [entry for future in reading for entry in future.result()]

    assert sorted((entry.id, entry.deliveries) for entry in entries) == [("1-0", 0), ("1-0", 1)]


def test_removing_the_group_wakes_a_reader_that_waits_to_claim(server: Server, wire: Wire, group: Any) -> None:
    """Row 97."""
    fill(wire, 1, delivered=1)
    with ThreadPoolExecutor(1) as threads:
        reading = threads.submit(group.read, "c", wait="20s", claim_idle="1h")
        server.wait_until_blocked(1)
        wire("XGROUP DESTROY s g")
        with pytest.raises(NotFound, match="has no group 'g'"):
            reading.result()


def test_the_step_works_in_a_transaction(steps: Steps) -> None:
    """Row 122."""
    fill(steps.wire, 3, delivered=2)
    steps.wire("MULTI")
    assert steps("claim", ["s"], "g", "c", 0, 1, 0) == "QUEUED"
    assert steps("claim", ["s"], "g", "c", 90_000, 0, 0) == "QUEUED"

    first, second = steps.wire("EXEC")

    assert [entry[0] for entry in first + second] == [b"1-0", b"3-0"]


def fill(wire: Wire, entries: int, *, delivered: int) -> None:
    """Entries 1-0, 2-0, … of stream s; the first ones pending in group g with a consumer that is gone."""
    wire.pipeline([("XADD", "s", f"{i}-0", "n", i) for i in range(1, entries + 1)])
    wire("XGROUP CREATE s g 0")
    wire(f"XREADGROUP GROUP g gone COUNT {delivered} STREAMS s >")
