"""The verdicts of the demo: what was promised, and what is found in the streams, the ledgers and the table."""

import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from demo_app import GROUP, ORDERS, RECEIPTS
from headrace import Client
from headrace.client.dead_letters import DeadLetter

Process = subprocess.Popen[bytes]


@dataclass(frozen=True, slots=True)
class Verdict:
    promise: str
    found: str
    holds: bool


def judge(client: Client, count: int, ann_code: int, held: list[str], letter: DeadLetter) -> Iterator[Verdict]:
    """`held` were pending when ann died."""
    receipts = [entry.payload for entry in client.stream(RECEIPTS).iterate()]
    billed = Counter(receipt["order"] for receipt in receipts)
    by = Counter(receipt["by"] for receipt in receipts)

    yield Verdict("every order was billed", f"{len(billed)} of {count}", sorted(billed) == list(range(count)))
    twice = sum(times > 1 for times in billed.values())
    yield Verdict("no order was billed twice", f"{twice} billed twice", twice == 0)
    lines = ledger_lines(client)
    entries = {(receipt["order"], receipt["entry"]) for receipt in receipts}
    is_same = len(lines) == len(receipts) and set(lines) == entries
    yield Verdict("the ledgers have the same", f"{len(lines)} lines, {len(receipts)} receipts", is_same)

    yield Verdict("both workers had a share", f"ann {by['ann']}, bob {by['bob']}", by["ann"] > 0 and by["bob"] > 0)
    rescued = [one for one in receipts if one["entry"] in held and one["by"] == "bob" and one["attempt"] > 1]
    is_killed = ann_code == -signal.SIGKILL and len(rescued) > 0
    yield Verdict("ann was killed, bob took over", f"exit {ann_code}, {len(rescued)} rescued", is_killed)
    [slow] = [receipt for receipt in receipts if receipt["order"] == 8]
    yield Verdict("what failed was tried again", f"order 8: attempt {slow['attempt']}", slow["attempt"] > 1)
    is_told = letter.attempts == 3 and "the bank says no" in letter.error and billed[letter.payload["number"]] == 1
    found = f"order {letter.payload['number']}: {letter.attempts} attempts"
    yield Verdict("a hopeless one was kept, replayed", found, is_told)

    group = client.stream(ORDERS).group(GROUP).info()
    yield Verdict("nothing is pending, all was read", f"pending {group.pending}, lag {group.lag}", group.pending == 0)
    left = leftovers(client)
    yield Verdict("nothing is left beside the stream", ", ".join(left) or "no key", not left)


def ledger_lines(client: Client) -> list[tuple[int, str]]:
    """Of all customers: order and entry, in the order they were billed."""
    lines: list[tuple[int, str]] = []
    for key in find_keys(client, f"{{{ORDERS}}}:ledger:*"):
        for line in client.list(key).range():
            entry, _, number = line.decode().partition(" ")
            lines.append((int(number), entry))
    return lines


def leftovers(client: Client) -> list[str]:
    """Records that workers keep while they need them. Streams stay, empty."""
    keys = find_keys(client, f"hr:{{{ORDERS}}}:{GROUP}:*")
    return [key for key in keys if client.command("TYPE", key) != b"stream" or client.stream(key).length()]


def find_keys(client: Client, pattern: str) -> list[str]:
    found: list[str] = []
    cursor = "0"
    while True:
        cursor, keys = client.command("SCAN", cursor, "MATCH", pattern, "COUNT", 1000)
        found += [key.decode() for key in keys]
        if int(cursor) == 0:
            return sorted(set(found))


def judge_archive(console: Console, client: Client, table: dict[str, Any] | str | None) -> Iterator[Verdict]:
    """`table` is what any reader finds in it; a sentence when archiving failed; None where there is no Spark."""
    if table is None:
        return
    if isinstance(table, str):
        yield Verdict("every message is in the table", table, holds=False)
        return
    published = [(name, entry.id) for name in (ORDERS, RECEIPTS) for entry in client.stream(name).iterate()]
    rows = Counter(map(tuple, table["ids"]))
    size = f"{table['size_bytes'] / 1000:.1f} kB"
    console.print(f"         [dim]rows {rows.total()} · files {table['files']} · {size} · {table['seconds']:.1f} s[/]")
    found = sum(one in rows for one in published)
    is_complete = found == len(published) == len(rows) > 0
    yield Verdict("every message is in the table", f"{found} of {len(published)}", is_complete)
    twice = sum(times > 1 for times in rows.values())
    yield Verdict("no message is in it twice", f"{rows.total()} rows, {len(rows)} IDs", twice == 0)


def judge_processes(started: list[Process]) -> Verdict:
    left = sum(process.poll() is None for process in started)
    return Verdict("no process is left", f"{len(started)} started, {left} left", left == 0)


def show_verdicts(console: Console, verdicts: list[Verdict]) -> None:
    table = Table(header_style="bold")
    for column in ("promise", "found in the data", ""):
        table.add_column(column)
    for verdict in verdicts:
        table.add_row(verdict.promise, verdict.found, "[green]holds[/]" if verdict.holds else "[red]FAILS[/]")
    console.print()
    console.print(table)
