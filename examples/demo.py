"""Orders that are billed once each, whatever dies: a short story on a real broker, with a verdict at the end.

    make demo                                          our broker, embedded: a folder, and no server to start
    python examples/demo.py redis://localhost:6379     the same on a server that runs already: Redis or Valkey

ann and bob are two worker processes with the same app (demo_app.py), which bills the orders of each customer in order.
ann is killed with orders in her hands; bob gets them. A bank that does not answer is asked again; a card that is
declined again and again goes to the dead letters, and is billed when they are replayed. At the end Spark archives both
streams to a table; it gets ready while the story is told (demo_archive.py). Every verdict is recomputed from the data
(demo_verdicts.py), not from what the story believes. Exit code 1 when one of them fails.
"""

import asyncio
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from rich.console import Console

from demo_app import GROUP, ORDERS, RECEIPTS, Order, app
from demo_archive import archivist
from demo_verdicts import Process, Verdict, find_keys, judge, judge_archive, judge_processes, show_verdicts
from headrace import Client
from headrace.cli.version import version_line
from headrace.testing.processes import child_process

CUSTOMERS, ORDER_COUNT = 6, 60
CARDS = {8: "slow", 17: "declined"}  # Order 8: the bank does not answer at first. All others are good.
TIMEOUT_S = 60.0  # Generous; the story takes seconds.
HERE = Path(__file__).resolve().parent

T = TypeVar("T")
console = Console(highlight=False)


def main(arguments: list[str]) -> int:
    signal.signal(signal.SIGTERM, end_in_order)
    try:
        return demonstrate(arguments[0] if arguments else None)
    except KeyboardInterrupt:
        console.print("interrupted; the workers are stopped")
        return 130


def end_in_order(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)  # Leaves every with block, which stops the workers.


def demonstrate(url: str | None) -> int:
    started: list[Process] = []
    with tempfile.TemporaryDirectory(prefix="headrace-demo-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        place = url or f"embedded:{folder / 'data'}"
        console.print(f"[bold]{url or 'embedded:./data'}[/]  {'runs already' if url else version_line()}\n")
        app.use_url(place)
        with Client(place) as client:
            clean_up(client)
            verdicts = tell(client, folder, started)
            clean_up(client)
    verdicts.append(judge_processes(started))
    show_verdicts(console, verdicts)
    return 0 if all(verdict.holds for verdict in verdicts) else 1


# The story.


def tell(client: Client, folder: Path, started: list[Process]) -> list[Verdict]:
    with archivist(client.url, folder, ORDERS, RECEIPTS) as archive:
        started.append(archive.process)
        chapter("publish", f"{ORDER_COUNT} orders of {CUSTOMERS} customers, to one stream")
        in_app(app.publish_many(ORDERS, map(order, range(ORDER_COUNT))))

        with worker("ann", client.url, folder) as ann, worker("bob", client.url, folder) as bob:
            started += [ann, bob]
            chapter(
                "share", "ann and bob, two worker processes with one app; each customer is with one of them at a time"
            )
            wait_until(lambda: ann.poll() is not None, "ann to die")
            held = [entry.id for entry in client.stream(ORDERS).group(GROUP).pending()]
            chapter(
                "death", f"ann is killed with orders in hand; {len(held)} are pending, and the lease of hers ends soon"
            )
            show_group(client)

            wait_until(lambda: is_idle(client) and count_dead() == 1, "bob to finish what is left")
            [letter] = in_app(app.dead(ORDERS).list())
            chapter("bury", f"one order failed {letter.attempts} times: a dead letter that tells why: {letter.error}")
            (folder / "bank").touch()
            in_app(app.dead(ORDERS).replay(to=ORDERS))
            chapter("replay", "the bank says yes now; the letter is published again, and billed")
            wait_until(lambda: is_idle(client) and count_dead() == 0, "the replayed order to be billed")
            show_group(client)
        verdicts = list(judge(client, ORDER_COUNT, ann.returncode, held, letter))

        chapter("archive", "Spark writes both streams to a table, on this machine, from pip alone")
        return verdicts + list(judge_archive(console, client, archive.finish(console)))


def order(number: int) -> Order:
    return Order(number, f"customer-{number % CUSTOMERS}", CARDS.get(number, "good"))


def chapter(name: str, text: str) -> None:
    console.print(f"[bold cyan]{name:<8}[/] {text}", soft_wrap=True)


def show_group(client: Client) -> None:
    group = client.stream(ORDERS).group(GROUP)
    share = ", ".join(f"{one.name} {one.pending}" for one in group.consumers() if one.pending)
    pending = f"pending {group.info().pending}" + (f" ({share})" if share else "")
    console.print(f"         [dim]{pending} · not read yet {group.lag()}[/]", soft_wrap=True)


def is_idle(client: Client) -> bool:
    group = client.stream(ORDERS).group(GROUP).info()
    return group.pending == 0 and group.last_delivered_id == client.stream(ORDERS).info().last_id


def count_dead() -> int:
    count: int = in_app(app.dead(ORDERS).count())
    return count


def clean_up(client: Client) -> None:
    """On a server that others use, nothing of the demo is left, and nothing of others is touched."""
    beside = [f"{{{ORDERS}}}:ledger:*", *[f"hr:{{{stream}}}:*" for stream in (ORDERS, RECEIPTS)]]
    for key in (ORDERS, RECEIPTS, *[key for pattern in beside for key in find_keys(client, pattern)]):
        client.command("DEL", key)


# The workers, each a process of its own; and the app here, for publishing.


@contextmanager
def worker(name: str, url: str, folder: Path) -> Iterator[Process]:
    """As `headrace worker demo_app:app` on a command line. What it says is in a file."""
    command = [sys.executable, "-m", "headrace", "worker", "demo_app:app", "--shutdown-timeout", "5s"]
    path = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    own = {"HEADRACE_URL": url, "DEMO_WORKER": name, "DEMO_BANK": str(folder / "bank"), "PYTHONPATH": path}
    with (
        (folder / f"{name}.log").open("wb") as log,
        child_process(command, stderr=log, env=os.environ | own) as process,
    ):
        yield process


def in_app(coroutine: Coroutine[Any, Any, T]) -> T:
    async def run() -> T:
        async with app:
            return await coroutine

    return asyncio.run(run())


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not is_so():
        if time.monotonic() > deadline:
            raise SystemExit(f"waited {TIMEOUT_S:g} s for {what}; it did not happen")
        time.sleep(0.02)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
