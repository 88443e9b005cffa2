"""A group survives the death of a consumer: a short story on a real broker, with a verdict at the end.

    make demo                                          our broker, started and stopped for you
    python examples/demo.py redis://localhost:6379     the same on a server that runs already (Redis 8.4 or newer)

ann and bob are two processes that share the group "billing". ann is killed with an order in her hands: taken, not
acknowledged. Nothing is lost: the order stays pending, and once it has been idle long enough bob's next read claims it.
Every verdict is recomputed from the streams, not from what the story believes. Exit code 1 when one of them fails.
"""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import FrameType
from typing import Any

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

    with consumer("ann", url) as ann, consumer("bob", url) as bob:
        started += [ann, bob]
        chapter("share", "ann and bob, two processes, read as one group; each order goes to one of them")
        wait_until(lambda: ann.poll() is not None, "ann to die")
        held = client.xpending_range(ORDERS, GROUP, "-", "+", 10, consumername="ann")
        chapter("death", f"ann is killed ({signal.Signals(-ann.returncode).name}) with {names(client, held)} in hand")
        show_group(client)

        chapter("claim", f"bob reads on with CLAIM {CLAIM_IDLE_MS}: what stays idle for {CLAIM_IDLE_MS} ms becomes his")
        wait_until(lambda: is_done(client), "bob to finish what is left")
        show_group(client)

    verdicts = list(judge(client, [entry["message_id"] for entry in held], ann.returncode))
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


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not is_so():
        if time.monotonic() > deadline:
            raise SystemExit(f"waited {TIMEOUT_S:g} s for {what}; it did not happen")
        time.sleep(0.01)


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
