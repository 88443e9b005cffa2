"""How far a job is: a bar on stderr where that is a terminal, and nothing elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from headrace.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.client.client import Client

MOST_STREAMS = 100  # Asked about after each batch; of more than that nobody says what is left.

Update = Callable[[int, int | None], None]


@contextmanager
def shown_progress(what: str, *, at_first: str = "Spark is at work") -> Iterator[Update | None]:
    """update(done, left) shows entries, their rate, and how many are left, about; left=None: nobody knows.

    None without a terminal: then there is nobody to look at it.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[figures]}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None, figures=at_first)
        pace = Pace()

        def update(done: int, left: int | None) -> None:
            total = None if left is None else done + left
            rate = pace.rate(done, time.monotonic())
            bar.update(task, completed=done, total=total, figures=figures(done, left, rate))

        yield update


@contextmanager
def shown_bytes(what: str) -> Iterator[Callable[[int, int], None]]:
    """update(done, total) shows bytes and how fast they go."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


class Pace:
    """Entries per second from the first look on: what lies before is the start of Spark."""

    def __init__(self) -> None:
        self.first: tuple[int, float] | None = None

    def rate(self, done: int, now_s: float) -> float | None:
        if self.first is None:
            self.first = done, now_s
        entries, seconds = done - self.first[0], now_s - self.first[1]
        return entries / seconds if entries > 0 and seconds > 0 else None


def figures(done: int, left: int | None, rate: float | None) -> str:
    pace = "" if rate is None else f"  {rate:,.0f}/s"
    behind = "" if left is None else f"  about {left:,} left" if left else "  up to date"
    return f"{done:,} entries{pace}{behind}"


def estimate_left(client: "Client", through: Mapping[str, str]) -> int | None:
    """About how many entries lie behind these IDs. Servers cannot count them; they are taken to be spread evenly."""
    from headrace.pipeline.entry_ids import id_of
    from headrace.pipeline.ranges import Extent, estimate_entries

    if len(through) > MOST_STREAMS:
        return None
    left = 0
    for stream, entry_id in through.items():
        try:
            info: Any = client.stream(stream).info()
        except HeadraceError:
            return None  # A bar is no reason to end a job.
        if info.first_entry is not None:
            last = id_of(info.last_id)
            extent = Extent(id_of(info.first_entry.id), last, info.length)
            left += estimate_entries(extent, id_of(entry_id) + 1, last)
    return left
