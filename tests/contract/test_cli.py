"""The command line against ours and real servers, as a user runs it: piped, and on a terminal."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.command_line import TIMEOUT_S, Ended, headrace, on_terminal, start_headrace
from support.servers import Kind, Server, kind_parameters


@pytest.fixture(scope="module", params=kind_parameters())
def running(request: pytest.FixtureRequest) -> Iterator[Server]:
    kind: Kind = request.param
    with kind.start() as server:
        yield server


@pytest.fixture
def server(running: Server) -> Server:
    running.clean()
    return running


class Shell:
    """headrace with HEADRACE_URL set."""

    def __init__(self, server: Server) -> None:
        self.url = f"redis://127.0.0.1:{server.port}"

    def __call__(self, *arguments: str | bytes, stdin: bytes = b"") -> Ended:
        return headrace(*arguments, url=self.url, stdin=stdin)

    def terminal(self, *arguments: str, types: str = "", columns: int = 160) -> Ended:
        return on_terminal(*arguments, url=self.url, types=types, columns=columns)

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        return start_headrace(*arguments, url=self.url)


@pytest.fixture
def shell(server: Server) -> Shell:
    return Shell(server)


@pytest.fixture
def three(server: Server) -> list[str]:
    """A stream "orders" of three entries, and a group "billing" at its beginning."""
    ids = ["1-0", "2-0", "3-0"]
    for number, entry_id in enumerate(ids, 1):
        server.control("XADD", "orders", entry_id, "data", json.dumps({"id": number}))
    server.control("XGROUP", "CREATE", "orders", "billing", "0")
    return ids


@pytest.fixture
def pending(server: Server, three: list[str]) -> list[str]:
    """All three are pending with ann."""
    server.control("XREADGROUP", "GROUP", "billing", "ann", "STREAMS", "orders", ">")
    return three


def entries(server: Server, stream: str = "orders") -> Any:
    return server.control("XRANGE", stream, "-", "+")


# publish


def test_publish_writes_the_layout_and_tells_the_id(shell: Shell, server: Server) -> None:
    row = shell("publish", "orders", "item=tea", "total:=9.90", "--key", "c-42", "--header", "from=shop").row

    data = [b"data", b'{"item":"tea","total":9.90}', b"key", b"c-42", b"h:from", b"shop"]
    assert entries(server) == [[row["id"].encode(), data]]


def test_publish_takes_a_whole_message_as_json(shell: Shell, server: Server) -> None:
    shell("publish", "orders", "--json", '[1, "two"]')

    assert entries(server)[0][1] == [b"data", b'[1, "two"]']


def test_an_item_with_several_signs_is_split_at_the_first(shell: Shell, server: Server) -> None:
    shell("publish", "orders", "url=http://x/?a:=b", "a:b=c", "empty=")

    assert json.loads(entries(server)[0][1][1]) == {"url": "http://x/?a:=b", "a:b": "c", "empty": ""}


def test_publish_with_an_id_twice_is_once(shell: Shell, server: Server) -> None:
    first = shell("publish", "orders", "item=tea", "--id", "order-17").row
    second = shell("publish", "orders", "item=tea", "--id", "order-17").row

    assert first == second
    assert len(entries(server)) == 1


def test_every_line_of_stdin_is_a_message(shell: Shell, server: Server) -> None:
    lines = b"".join(b'{"n":%d}\n' % number for number in range(2500)) + b'\n{"n":"last, without an end"}'

    rows = shell("publish", "orders", "-", "--key", "k", stdin=lines).rows

    stored = entries(server)
    assert [row["id"].encode() for row in rows] == [entry_id for entry_id, _ in stored]
    assert [pairs[1] for _, pairs in stored] == [line for line in lines.split(b"\n") if line]
    assert {tuple(pairs[2:]) for _, pairs in stored} == {(b"key", b"k")}


def test_a_bad_line_is_named_and_what_stood_before_it_is_published(shell: Shell, server: Server) -> None:
    ended = shell("publish", "orders", "-", stdin=b'{"n":1}\n{"n":2}\n{oops\n{"n":4}\n')

    assert ended.code == 1
    assert "line 3 is not JSON" in ended.err and "2 messages before it were published" in ended.err
    assert len(entries(server)) == 2


def test_publish_on_a_terminal_tells_the_bare_id(shell: Shell, server: Server) -> None:
    shown = shell.terminal("publish", "orders", "item=tea")

    assert shown.out == entries(server)[0][0].decode() + "\n"


def test_a_file_published_on_a_terminal_shows_progress_and_a_summary(
    shell: Shell, server: Server, tmp_path: Path
) -> None:
    lines = tmp_path / "orders.ndjson"
    lines.write_bytes(b'{"item":"tea"}\n' * 3000)

    with lines.open("rb") as file:
        shown = on_terminal("publish", "orders", "-", url=shell.url, stdin=file)

    assert shown.code == 0
    assert "3,000 messages" in shown.out and "first id" in shown.out
    assert len(entries(server)) == 3000


# tail


def test_tail_shows_what_is_there_and_exits(shell: Shell, three: list[str]) -> None:
    rows = shell("tail", "orders", "--from", "beginning", "-e").rows

    assert [row["id"] for row in rows] == three
    assert rows[0] == {
        "id": "1-0", "time": "1970-01-01T00:00:00.001Z", "key": None, "publish_id": None, "headers": {},
        "payload": {"id": 1},
    }  # fmt: skip


def test_tail_begins_where_it_is_told_and_stops_after_n(shell: Shell, three: list[str]) -> None:
    def ids(*options: str) -> list[str]:
        return [row["id"] for row in shell("tail", "orders", *options).rows]

    assert ids("--from", "2", "-e") == ["2-0", "3-0"]
    assert ids("--from", "beginning", "-n", "1") == ["1-0"]
    assert ids("--last", "2", "-e") == ["2-0", "3-0"]
    assert ids("--from", "-1h", "-e") == []
    assert ids("-e") == []


def test_tail_shows_entries_that_others_wrote_as_they_are(shell: Shell, server: Server) -> None:
    server.control("XADD", "orders", "1-0", "key", "theirs", "raw", b"caf\xe9")
    server.control("XADD", "orders", "2-0", "data", "{half")
    server.control("XADD", "orders", "3-0", "data", "[" * 100_000)

    rows = shell("tail", "orders", "--from", "beginning", "-e").rows

    assert [row["payload"] for row in rows] == [{"key": "theirs", "raw": "caf\\xe9"}, "{half", "[" * 100_000]
    assert [row["key"] for row in rows] == [None, None, None]


def test_tail_waits_for_what_comes(shell: Shell, server: Server) -> None:
    with shell.start("tail", "orders", "-n", "1") as waiting:
        server.wait_until_blocked(1)
        published = shell("publish", "orders", "item=tea").row
        out, err = waiting.communicate(timeout=TIMEOUT_S)

    assert json.loads(out)["id"] == published["id"]
    assert waiting.returncode == 0
    assert err == b"headrace: there is no stream 'orders' yet; waiting for it.\n"


def test_tail_of_a_group_shows_what_it_would_be_given_and_changes_nothing(shell: Shell, server: Server) -> None:
    for number in (1, 2, 3):
        server.control("XADD", "orders", f"{number}-0", "n", number)
    server.control("XGROUP", "CREATE", "orders", "billing", "1-0")
    before = server.control("XINFO", "GROUPS", "orders")

    rows = shell("tail", "orders", "--group", "billing", "-e").rows

    assert [row["id"] for row in rows] == ["2-0", "3-0"]
    assert server.control("XINFO", "GROUPS", "orders") == before


def test_tail_with_ack_takes_entries_from_the_group_and_leaves_nothing_behind(
    shell: Shell, server: Server, three: list[str]
) -> None:
    first = shell("tail", "orders", "--group", "billing", "--ack", "-n", "2").rows
    rest = shell("tail", "orders", "--group", "billing", "--ack", "-e").rows

    assert [row["id"] for row in first + rest] == three
    facts = shell("groups", "info", "orders", "billing").row
    assert (facts["pending"], facts["consumers"], facts["lag"]) == (0, 0, 0)


def test_tail_with_ack_and_a_name_begins_with_what_that_consumer_holds(shell: Shell, pending: list[str]) -> None:
    rows = shell("tail", "orders", "--group", "billing", "--ack", "--consumer", "ann", "-e").rows

    assert [row["id"] for row in rows] == pending
    assert shell("pending", "orders", "billing").rows == []


def test_a_tail_with_a_bookmark_goes_on_where_the_last_one_ended(shell: Shell, three: list[str]) -> None:
    def ids(*options: str) -> list[str]:
        options = ("--from", "beginning", "--bookmark", "audit", "-e", *options)
        return [row["id"] for row in shell("tail", "orders", *options).rows]

    assert [ids("-n", "1"), ids("-n", "1"), ids(), ids()] == [["1-0"], ["2-0"], ["3-0"], []]


def test_ctrl_c_ends_a_tail_without_a_word(shell: Shell, server: Server, three: list[str]) -> None:
    with shell.start("tail", "orders") as waiting:
        server.wait_until_blocked(1)
        waiting.send_signal(signal.SIGINT)
        out, err = waiting.communicate(timeout=TIMEOUT_S)

    assert (waiting.returncode, out, err) == (130, b"", b"")


def test_a_reader_that_goes_away_ends_a_tail_without_a_word(shell: Shell, server: Server) -> None:
    for number in range(200):
        server.control("XADD", "orders", f"{number + 1}-0", "data", json.dumps("x" * 1000))

    with shell.start("tail", "orders", "--from", "beginning", "-e") as waiting:
        assert waiting.stdout is not None and waiting.stderr is not None
        waiting.stdout.readline()
        waiting.stdout.close()
        said = waiting.stderr.read()
        waiting.wait(TIMEOUT_S)

    assert (waiting.returncode, said) == (141, b"")


def test_what_others_stored_cannot_steer_the_terminal(shell: Shell, server: Server) -> None:
    server.control("XADD", "orders", "1-0", "\x1b[2J", "\x1b]0;title\x07", "c1", "\u009b31m")
    server.control("XADD", "orders", "2-0", "data", '"\x1b[31m"', "type", "text/plain", "key", "\x1b[1m")

    shown = shell.terminal("tail", "orders", "--from", "beginning", "-e").out

    assert not [char for char in shown if not char.isprintable() and char != "\n"]
    assert "key=\\x1b[1m" in shown


# streams


def test_streams_are_listed_by_pattern(shell: Shell, server: Server, three: list[str]) -> None:
    server.control("XADD", "invoices", "5-1", "a", "b")
    server.control("SET", "orders-count", "3")

    assert shell("streams", "ls").rows == [
        {"stream": "invoices", "length": 1, "groups": 0, "first_id": "5-1", "last_id": "5-1"},
        {"stream": "orders", "length": 3, "groups": 1, "first_id": "1-0", "last_id": "3-0"},
    ]
    assert [row["stream"] for row in shell("streams", "ls", "ord*").rows] == ["orders"]
    assert shell("streams", "ls", "nothing*").rows == []


def test_a_stream_is_shown_with_its_groups(shell: Shell, three: list[str]) -> None:
    facts = shell("streams", "info", "orders").row
    shown = shell.terminal("streams", "info", "orders").out

    assert (facts["length"], facts["last_generated_id"], facts["groups"]) == (3, "3-0", 1)
    assert [(group["group"], group["lag"]) for group in facts["by_group"]] == [("billing", 3)]
    assert "last generated id" in shown and "billing" in shown


def test_trim_refuses_what_a_group_needs_and_names_it(shell: Shell, server: Server, three: list[str]) -> None:
    ended = shell("streams", "trim", "orders", "--keep", "1", "--yes")

    assert ended.code == 1
    assert "'billing'" in ended.err
    assert len(entries(server)) == 3


def test_a_dry_run_tells_that_a_trim_would_be_refused(shell: Shell, server: Server, three: list[str]) -> None:
    server.control("XGROUP", "SETID", "orders", "billing", "1-0")

    told = shell("streams", "trim", "orders", "--keep", "0", "--dry-run")
    assert told.row == {
        "stream": "orders", "removed": 0, "kept_from_id": "1-1", "held_by": "billing", "dry_run": True, "removable": 1
    }  # fmt: skip
    assert told.err == (
        "headrace: this would be refused: group 'billing' of 'orders' still needs entries from 1-1 on. "
        "With --partly it would remove 1 entry.\n"
    )

    partly = shell("streams", "trim", "orders", "--keep", "0", "--dry-run", "--partly")
    assert (partly.row["removed"], partly.row["removable"], partly.err) == (1, 1, "")
    assert len(entries(server)) == 3


def test_trim_tells_before_it_removes(shell: Shell, server: Server, three: list[str]) -> None:
    server.control("XGROUP", "SETID", "orders", "billing", "2-0")

    told = shell("streams", "trim", "orders", "--before", "3", "--dry-run").row
    unasked = shell("streams", "trim", "orders", "--before", "3")
    assert (told["removed"], told["dry_run"]) == (2, True)
    assert unasked.code == 2 and "remove 2 entries of 'orders'" in unasked.err and "--yes" in unasked.err
    assert len(entries(server)) == 3

    done = shell("streams", "trim", "orders", "--before", "3", "--yes").row
    assert (done["removed"], done["dry_run"]) == (2, False)
    assert len(entries(server)) == 1


def test_trim_partly_and_by_force(shell: Shell, server: Server, three: list[str]) -> None:
    server.control("XGROUP", "SETID", "orders", "billing", "1-0")

    partly = shell("streams", "trim", "orders", "--keep", "0", "--partly", "--yes").row
    assert (partly["removed"], partly["held_by"]) == (1, "billing")

    told = shell("streams", "trim", "orders", "--keep", "0", "--force", "--dry-run").row
    assert told["removed"] == 2
    forced = shell("streams", "trim", "orders", "--keep", "0", "--force", "--yes").row
    assert forced["removed"] == 2
    assert entries(server) == []


@pytest.mark.parametrize(("answer", "left"), [("y\n", 1), ("n\n", 3), ("\n", 3)])
def test_a_terminal_is_asked_before_entries_go(shell: Shell, server: Server, answer: str, left: int) -> None:
    for number in (1, 2, 3):
        server.control("XADD", "orders", f"{number}-0", "n", number)

    shown = shell.terminal("streams", "trim", "orders", "--keep", "1", types=answer)

    assert "This will remove 2 entries of 'orders'. Go on? [y/N]" in shown.out
    assert len(entries(server)) == left
    assert shown.code == (0 if left == 1 else 1)
    assert ("nothing was changed" in shown.out) == (left == 3)


# groups


def test_a_group_is_created_once_and_listed(shell: Shell, server: Server) -> None:
    server.control("XADD", "orders", "1-0", "a", "b")

    first = shell("groups", "create", "orders", "billing", "--start", "beginning").row
    again = shell("groups", "create", "orders", "billing").row

    assert (first["created"], again["created"]) == (True, False)
    [listed] = shell("groups", "ls", "orders").rows
    assert (listed["group"], listed["lag"], listed["last_delivered_id"]) == ("billing", 1, "0-0")


def test_a_group_is_shown_with_its_consumers(shell: Shell, pending: list[str]) -> None:
    facts = shell("groups", "info", "orders", "billing").row
    shown = shell.terminal("groups", "info", "orders", "billing").out

    assert [(who["consumer"], who["pending"]) for who in facts["by_consumer"]] == [("ann", 3)]
    assert facts["by_consumer"][0]["idle_ms"] >= 0
    assert "ann" in shown and "last delivered id" in shown


def test_a_lag_nobody_knows_is_null_in_a_pipe_and_unknown_on_a_terminal(shell: Shell, server: Server) -> None:
    for number in (1, 2, 3):
        server.control("XADD", "orders", f"{number}-0", "n", number)
    server.control("XDEL", "orders", "2-0")
    server.control("XGROUP", "CREATE", "orders", "billing", "1-0")

    assert shell("groups", "ls", "orders").row["lag"] is None
    assert "unknown" in shell.terminal("groups", "ls", "orders").out


@pytest.mark.parametrize(
    ("where", "stands"), [("2-0", "2-0"), ("beginning", "0-0"), ("now", "3-0"), ("-100000d", "0-0")]
)
def test_a_group_is_moved(shell: Shell, three: list[str], where: str, stands: str) -> None:
    assert shell("groups", "seek", "orders", "billing", where).row["last_delivered_id"] == stands


def test_a_group_with_pending_entries_is_not_removed_unless_forced(
    shell: Shell, server: Server, pending: list[str]
) -> None:
    refused = shell("groups", "rm", "orders", "billing", "--yes")
    unasked = shell("groups", "rm", "orders", "billing", "--force")
    assert refused.code == 1 and "3 pending entries" in refused.err and "--force" in refused.err
    assert unasked.code == 2 and "--yes" in unasked.err
    assert len(shell("groups", "ls", "orders").rows) == 1

    assert shell("groups", "rm", "orders", "billing", "--force", "--yes").row["removed"] is True
    assert shell("groups", "ls", "orders").rows == []


# pending, claim, ack


def test_pending_entries_are_listed(shell: Shell, pending: list[str]) -> None:
    rows = shell("pending", "orders", "billing").rows

    assert [(row["id"], row["consumer"], row["deliveries"]) for row in rows] == [(i, "ann", 1) for i in pending]
    assert len(shell("pending", "orders", "billing", "--limit", "2").rows) == 2
    assert shell("pending", "orders", "billing", "--min-idle", "1h").rows == []
    assert shell("pending", "orders", "billing", "--consumer", "bob").rows == []
    assert shell("pending", "orders", "billing", "--summary").row == {
        "stream": "orders", "group": "billing", "pending": 3, "lowest_id": "1-0", "highest_id": "3-0",
        "by_consumer": [{"consumer": "ann", "pending": 3}],
    }  # fmt: skip


def test_idle_entries_are_claimed_and_shown(shell: Shell, pending: list[str]) -> None:
    rows = shell("claim", "orders", "billing", "--min-idle", "0s", "--consumer", "bob").rows

    assert [(row["id"], row["consumer"], row["payload"]) for row in rows] == [
        ("1-0", "bob", {"id": 1}), ("2-0", "bob", {"id": 2}), ("3-0", "bob", {"id": 3}),
    ]  # fmt: skip
    assert len(shell("pending", "orders", "billing", "--consumer", "bob").rows) == 3


def test_named_entries_are_claimed_and_the_others_told(shell: Shell, pending: list[str]) -> None:
    ended = shell("claim", "orders", "billing", "2-0", "9-9")

    assert ended.row["id"] == "2-0" and ended.row["consumer"]
    assert ended.err == "headrace: 1 of the IDs was not pending, or not idle for so long.\n"


def test_entries_are_acknowledged_by_id(shell: Shell, pending: list[str]) -> None:
    assert shell("ack", "orders", "billing", "1-0", "9-9").row == {
        "stream": "orders", "group": "billing", "acked": 1, "not_pending": 1
    }  # fmt: skip
    assert len(shell("pending", "orders", "billing").rows) == 2


def test_acknowledging_all_idle_entries_is_asked_for(shell: Shell, pending: list[str]) -> None:
    unasked = shell("ack", "orders", "billing", "--min-idle", "0s")
    assert unasked.code == 2 and "acknowledge 3 entries" in unasked.err

    assert shell("ack", "orders", "billing", "--min-idle", "0s", "--yes").row["acked"] == 3


def test_acknowledged_entries_are_deleted_when_no_group_needs_them(
    shell: Shell, server: Server, pending: list[str]
) -> None:
    server.control("XGROUP", "CREATE", "orders", "audit", "1-0")

    assert shell("ack", "orders", "billing", "1-0", "2-0", "--delete", "--yes").row["acked"] == 2

    assert [entry_id for entry_id, _ in entries(server)] == [b"2-0", b"3-0"]


def test_pending_entries_are_a_table_on_a_terminal(shell: Shell, pending: list[str]) -> None:
    shown = shell.terminal("pending", "orders", "billing").out

    assert "deliveries" in shown and "idle" in shown and "idle_ms" not in shown
    assert all(entry_id in shown for entry_id in pending)


LONG_ID = "1690275391705-12345"


def test_ids_stay_in_one_piece_on_a_terminal_of_80_columns(shell: Shell, server: Server) -> None:
    consumer = "a-host-with-a-name-that-is-long.example.org-12345-0123abcd"
    server.control("XADD", "orders", LONG_ID, "data", json.dumps({"id": 1}))
    server.control("XGROUP", "CREATE", "orders", "billing-of-all-the-orders-there-ever-were", "0")
    group = "billing-of-all-the-orders-there-ever-were"
    server.control("XREADGROUP", "GROUP", group, consumer, "STREAMS", "orders", ">")

    for arguments in (
        ("groups", "ls", "orders"), ("pending", "orders", group), ("claim", "orders", group, LONG_ID),
        ("streams", "ls"), ("streams", "info", "orders"),
    ):  # fmt: skip
        assert LONG_ID in shell.terminal(*arguments, columns=80).out, arguments
    assert "stream" not in shell.terminal("groups", "ls", "orders").out


def test_claimed_entries_are_lines_as_of_tail_on_a_terminal(shell: Shell, pending: list[str]) -> None:
    shown = shell.terminal("claim", "orders", "billing", "--min-idle", "0s", "--consumer", "bob").out

    assert shown.splitlines() == [
        '1-0  00:00:00.001Z  {"id":1}', '2-0  00:00:00.002Z  {"id":2}', '3-0  00:00:00.003Z  {"id":3}',
        "headrace: 3 entries are now pending with 'bob'.",
    ]  # fmt: skip


def test_a_terminal_is_told_when_there_is_nothing(shell: Shell, server: Server) -> None:
    assert shell.terminal("streams", "ls").out == "No streams.\n"
    server.control("XADD", "orders", "1-0", "a", "b")
    assert shell.terminal("streams", "ls", "x*").out == "No streams with such a name.\n"
    assert shell.terminal("groups", "ls", "orders").out == "No groups.\n"
    server.control("XGROUP", "CREATE", "orders", "billing", "0")
    assert shell.terminal("pending", "orders", "billing").out == "Nothing is pending.\n"
    assert shell.terminal("claim", "orders", "billing", "--min-idle", "0s").out == "Nothing to claim.\n"
    assert shell("claim", "orders", "billing", "--min-idle", "0s").out == ""


# Where to


def test_the_option_wins_over_the_environment(shell: Shell, three: list[str]) -> None:
    ended = headrace("groups", "ls", "orders", "--url", shell.url, url="redis://127.0.0.1:1")

    assert ended.row["group"] == "billing"
    ended = headrace("--url", shell.url, "groups", "ls", "orders", url="redis://127.0.0.1:1")
    assert ended.row["group"] == "billing"
