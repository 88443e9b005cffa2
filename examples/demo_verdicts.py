"""The verdicts of the demo: what was promised, and what is found in the streams, the ledgers and the table."""

import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
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
    ledgers = read_ledgers(client)
    lines = [line for ledger in ledgers for line in ledger]
    is_same = sorted(lines) == sorted((receipt["order"], receipt["entry"]) for receipt in receipts)
    yield Verdict("the ledgers have the same", f"{len(lines)} lines, {len(receipts)} receipts", is_same)
    violations = sum(count_violations(ledger) for ledger in ledgers)
    found = f"{violations} violations, {len(ledgers)} customers"
    yield Verdict("each customer's were in order", found, violations == 0 and len(ledgers) > 1)

    yield Verdict("both workers had a share", f"ann {by['ann']}, bob {by['bob']}", by["ann"] > 0 and by["bob"] > 0)
    rescued = [one for one in receipts if one["entry"] in held and one["by"] == "bob" and one["attempt"] > 1]
    is_killed = ann_code == -signal.SIGKILL and len(rescued) > 0
    yield Verdict("ann was killed, bob took over", f"exit {ann_code}, {len(rescued)} rescued", is_killed)
    [slow] = [receipt for receipt in receipts if receipt["order"] == 8]
    yield Verdict("what failed was tried again", f"order 8: attempt {slow['attempt']}", slow["attempt"] > 1)
    is_told = letter.attempts == 3 and "the bank says no" in letter.error and billed[letter.payload["number"]] == 1
    found = f"order {letter.payload['number']}: {letter.attempts} attempts"
    yield Verdict("a hopeless one was replayed", found, is_told)

    group = client.stream(ORDERS).group(GROUP).info()
    yield Verdict("nothing is pending, all was read", f"pending {group.pending}, lag {group.lag}", group.pending == 0)
    left = leftovers(client)
    yield Verdict("no record of them is left", ", ".join(left) or "no key", not left)


def read_ledgers(client: Client) -> list[list[tuple[int, str]]]:
    """Of each customer: order and entry, as they were billed."""
    ledgers: list[list[tuple[int, str]]] = []
    for key in find_keys(client, f"{{{ORDERS}}}:ledger:*"):
        lines = [line.decode().partition(" ") for line in client.list(key).range()]
        ledgers.append([(int(number), entry) for entry, _, number in lines])
    return ledgers


def count_violations(ledger: list[tuple[int, str]]) -> int:
    """Lines whose entry came before the one above them."""
    places = [tuple(map(int, entry.split("-"))) for _, entry in ledger]
    return sum(later < earlier for earlier, later in pairwise(places))


def leftovers(client: Client) -> list[str]:
    """Keys that tell of messages. Those that tell of the group itself, and empty streams, stay."""
    keys = [
        key for key in find_keys(client, f"hr:{{{ORDERS}}}:{GROUP}:*") if not key.endswith((":order", ":consumers"))
    ]
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
