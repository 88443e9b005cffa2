"""A group survives the death of a consumer: a short story on a real broker, with a verdict at the end.

    make demo                                          our broker, started and stopped for you
    python examples/demo.py redis://localhost:6379     the same on a server that runs already (Redis 8.4 or newer)

ann and bob are two processes that share the group "billing". ann is killed with an order in her hands: taken, not
acknowledged. Nothing is lost: the order stays pending, and once it has been idle long enough bob's next read claims it.
At the end Spark archives both streams to a Delta table; it gets ready while the story is told (demo_archive.py).
Every verdict is recomputed from the streams and the table, not from what the story believes. Exit code 1 when one of
them fails.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, Any

import redis
from rich.console import Console
from rich.table import Table

from headrace.cli.version import version_line
from headrace.testing import running_broker
from headrace.testing.processes import child_process

ORDERS, RECEIPTS, GROUP = "demo:orders", "demo:receipts", "billing"
ORDER_COUNT = 12
WORK_S = 0.04  # What an order costs, so that both consumers get their share.
FATAL_ORDER = 3  # ann dies with her third order in hand.
CLAIM_IDLE_MS = 800  # Pending for so long without a sign of life: another consumer may have it.
TIMEOUT_S = 30.0  # Generous; the story takes two seconds.
ARCHIVE = Path(__file__).with_name("demo_archive.py")
INSTALL_TIMEOUT_S = 1800.0  # Half a gigabyte over a slow line.
ARCHIVE_TIMEOUT_S = 300.0  # Spark starts and archives in some ten seconds.
END_TIMEOUT_S = 10.0
NO_SPARK = 3  # The exit code of demo_archive.py where there is no Spark.

Process = subprocess.Popen[bytes]
console = Console(highlight=False)


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["consumer"]:
        consume(*arguments[1:])
        return 0
    signal.signal(signal.SIGTERM, end_in_order)
    try:
        return demonstrate(arguments[0] if arguments else None)
    except KeyboardInterrupt:
        console.print("interrupted; broker and consumers are stopped")
        return 130


def end_in_order(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)  # Leaves every with block, which stops broker and consumers.


def demonstrate(url: str | None) -> int:
    started: list[Process] = []
    if url is None:
        with running_broker() as broker:
            started.append(broker.process)
            verdicts = tell(broker.url, version_line(), started)
    else:
        verdicts = tell(url, "runs already", started)
    left = [str(process.pid) for process in started if process.poll() is None]
    verdicts.append(Verdict("no process is left", f"{len(started)} started, {len(left)} left", not left))
    show_verdicts(verdicts)
    return 0 if all(verdict.holds for verdict in verdicts) else 1


# The story.


def tell(url: str, server: str, started: list[Process]) -> "list[Verdict]":
    console.print(f"[bold]{url}[/]  {server}\n")
    client = connect(url)
    client.delete(ORDERS, RECEIPTS)
    client.xgroup_create(ORDERS, GROUP, "0", mkstream=True)

    chapter("publish", f"{ORDER_COUNT} orders to one stream; group {GROUP} has seen none of them")
    for number in range(1, ORDER_COUNT + 1):
        client.xadd(ORDERS, {"order": f"order-{number}", "total": f"{number * 7 % 50}.90"})
    show_group(client)

    with archivist(url) as archive, consumer("ann", url) as ann, consumer("bob", url) as bob:
        started += [archive.process, ann, bob]
        chapter("share", "ann and bob, two processes, read as one group; each order goes to one of them")
        wait_until(lambda: ann.poll() is not None, "ann to die")
        held = client.xpending_range(ORDERS, GROUP, "-", "+", 10, consumername="ann")
        chapter("death", f"ann is killed ({signal.Signals(-ann.returncode).name}) with {names(client, held)} in hand")
        show_group(client)

        chapter("claim", f"bob reads on with CLAIM {CLAIM_IDLE_MS}: what stays idle for {CLAIM_IDLE_MS} ms becomes his")
        wait_until(lambda: is_done(client), "bob to finish what is left")
        show_group(client)
        verdicts = list(judge(client, [entry["message_id"] for entry in held], ann.poll() or 0))

        chapter("archive", "Spark writes both streams to a table, on this machine, from pip alone")
        verdicts += judge_archive(client, archive.finish())
    client.delete(ORDERS, RECEIPTS)
    return verdicts


def chapter(name: str, text: str) -> None:
    console.print(f"[bold cyan]{name:<8}[/] {text}", soft_wrap=True)


def show_group(client: Any) -> None:
    [group] = client.xinfo_groups(ORDERS)
    share = ", ".join(f"{one['name']} {one['pending']}" for one in client.xinfo_consumers(ORDERS, GROUP))
    console.print(f"         [dim]pending {group['pending']}{f' ({share})' if share else ''} · lag {group['lag']}[/]")


def names(client: Any, pending: list[dict[str, Any]]) -> str:
    """The orders behind pending entries, for people."""
    ids = [entry["message_id"] for entry in pending]
    return ", ".join(fields["order"] for entry_id in ids for _, fields in client.xrange(ORDERS, entry_id, entry_id))


def is_done(client: Any) -> bool:
    [group] = client.xinfo_groups(ORDERS)
    return bool(group["pending"] == 0 and group["lag"] == 0)


# The consumers, each a process of its own.


def consumer(name: str, url: str) -> AbstractContextManager[Process]:
    return child_process([sys.executable, __file__, "consumer", name, url])


def consume(name: str, url: str) -> None:
    client = connect(url)
    client.xgroup_createconsumer(ORDERS, GROUP, name)
    wait_until(lambda: len(client.xinfo_consumers(ORDERS, GROUP)) == 2, "the other consumer")
    taken = 0
    while True:
        reply = client.xreadgroup(GROUP, name, {ORDERS: ">"}, count=1, block=1000, claim_min_idle_time=CLAIM_IDLE_MS)
        for _, entries in reply:
            for entry_id, fields, _, deliveries_before in entries:
                taken += 1
                if name == "ann" and taken == FATAL_ORDER:
                    os.kill(os.getpid(), signal.SIGKILL)  # No clean-up, no last words: like a power cut.
                time.sleep(WORK_S)
                # Receipt and acknowledgement in one step: both happen or neither does.
                done = client.pipeline(transaction=True)
                done.xadd(RECEIPTS, {**fields, "entry": entry_id, "by": name, "delivery": deliveries_before + 1})
                done.xack(ORDERS, GROUP, entry_id)
                done.execute()


def connect(url: str) -> Any:
    """A redis-py client, untyped: its reply types allow for bytes, text and None at once; with decoding it is text."""
    return redis.Redis.from_url(url, decode_responses=True)


def wait_until(is_so: Callable[[], bool], what: str, timeout_s: float = TIMEOUT_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not is_so():
        if time.monotonic() > deadline:
            raise SystemExit(f"waited {timeout_s:g} s for {what}; it did not happen")
        time.sleep(0.01)


# The archive, by a process that has been getting ready since the story began.


@dataclass(frozen=True, slots=True)
class Archivist:
    process: Process
    folder: Path
    said: IO[bytes]
    complained: IO[bytes]

    def finish(self) -> "dict[str, Any] | str | None":
        """What the table holds; a sentence when archiving failed; None when there is no Spark, which is told."""
        (self.folder / "go").touch()
        if self.process.poll() is None and self.last_line(self.said):
            console.print(f"         [dim]{self.last_line(self.said)} …[/]")
        wait_until(lambda: not self.is_installing(), "Spark to be installed", INSTALL_TIMEOUT_S)
        wait_until(lambda: self.process.poll() is not None, "Spark to archive", ARCHIVE_TIMEOUT_S)
        if self.process.returncode == NO_SPARK:
            console.print(f"         [yellow]not shown:[/] {self.last_line(self.complained)}", soft_wrap=True)
            return None
        if self.process.returncode != 0:
            return self.last_line(self.complained)
        table: dict[str, Any] = json.loads(self.last_line(self.said))
        return table

    def is_installing(self) -> bool:
        return self.process.poll() is None and "installed" in self.last_line(self.said)

    @staticmethod
    def last_line(file: IO[bytes]) -> str:
        file.seek(0)
        return (file.read().decode("utf-8", "replace").strip().splitlines() or [""])[-1]


@contextmanager
def archivist(url: str) -> Iterator[Archivist]:
    with tempfile.TemporaryDirectory(prefix="headrace-demo-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        with (folder / "said").open("w+b") as said, (folder / "complained").open("w+b") as complained:
            command = [sys.executable, str(ARCHIVE), url, name, ORDERS, RECEIPTS]
            environment = os.environ | {"TMPDIR": name}
            with child_process(command, stdout=said, stderr=complained, env=environment) as process:
                try:
                    yield Archivist(process, folder, said, complained)
                finally:
                    end_group(process)


def end_group(process: Process) -> None:
    """Ends it and its JVM, which would end by itself, but not at once. They are a process group of their own."""
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_TIMEOUT_S)
    deadline = time.monotonic() + END_TIMEOUT_S
    while time.monotonic() < deadline:
        process.poll()  # The dead are members of their group until they are asked for.
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):  # macOS says "not permitted" of a group that is ending.
            return
        time.sleep(0.01)


def judge_archive(client: Any, table: "dict[str, Any] | str | None") -> "Iterator[Verdict]":
    if table is None:
        return
    if isinstance(table, str):
        yield Verdict("every message is in the table", table, holds=False)
        return
    published = [[name, entry_id] for name in (ORDERS, RECEIPTS) for entry_id, _ in client.xrange(name)]
    rows = Counter(map(tuple, table["ids"]))
    size = f"{table['size_bytes'] / 1000:.1f} kB"
    console.print(f"         [dim]rows {rows.total()} · files {table['files']} · {size} · {table['seconds']:.1f} s[/]")
    found = sum(tuple(one) in rows for one in published)
    is_complete = found == len(published) == len(rows) == 2 * ORDER_COUNT
    yield Verdict("every message is in the table", f"{found} of {len(published)}", is_complete)
    twice = sum(count > 1 for count in rows.values())
    yield Verdict("no message is in it twice", f"{rows.total()} rows, {len(rows)} IDs", twice == 0)


# The verdict.


@dataclass(frozen=True, slots=True)
class Verdict:
    promise: str
    found: str
    holds: bool


def judge(client: Any, held_by_ann: list[str], ann_code: int) -> Iterator[Verdict]:
    orders = [entry_id for entry_id, _ in client.xrange(ORDERS)]
    receipts = [fields for _, fields in client.xrange(RECEIPTS)]
    per_order = Counter(receipt["entry"] for receipt in receipts)
    by = Counter(receipt["by"] for receipt in receipts)
    rescued = [receipt for receipt in receipts if receipt["entry"] in held_by_ann]
    [group] = client.xinfo_groups(ORDERS)
    pending = client.xpending(ORDERS, GROUP)["pending"]

    handled = sum(entry_id in per_order for entry_id in orders)
    is_complete = handled == len(orders) == ORDER_COUNT
    yield Verdict("every published order was handled", f"{handled} of {ORDER_COUNT}", is_complete)
    twice = sum(count > 1 for count in per_order.values())
    yield Verdict("no order was handled twice", f"{twice} handled twice", twice == 0)
    yield Verdict("both consumers had a share", f"ann {by['ann']}, bob {by['bob']}", by["ann"] > 0 and by["bob"] > 0)
    is_killed = ann_code == -signal.SIGKILL and len(held_by_ann) == 1
    yield Verdict("ann was killed with one order in hand", f"exit {ann_code}, held {len(held_by_ann)}", is_killed)
    seen = ", ".join(f"{receipt['order']} by {receipt['by']}, delivery {receipt['delivery']}" for receipt in rescued)
    is_rescued = [(receipt["by"], receipt["delivery"]) for receipt in rescued] == [("bob", "2")]
    yield Verdict("bob handled it, at its second delivery", seen or "nobody did", is_rescued)
    yield Verdict("nothing is pending", f"pending {pending}", pending == 0 == group["pending"])
    yield Verdict("the group has read everything", f"lag {group['lag']}", group["lag"] == 0)


def show_verdicts(verdicts: list[Verdict]) -> None:
    table = Table(header_style="bold")
    for column in ("promise", "found in the data", ""):
        table.add_column(column)
    for verdict in verdicts:
        table.add_row(verdict.promise, verdict.found, "[green]holds[/]" if verdict.holds else "[red]FAILS[/]")
    console.print()
    console.print(table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
