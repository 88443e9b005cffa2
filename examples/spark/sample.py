"""What the examples share: the server they read from, and how their sample entries get there.

With --url an example reads the streams of that server as they are. Without it, it starts a broker of its own and runs
once after each part of its sample entries, so that one sees what a second run adds. IDs are given and not left to the
clock: results are the same every time.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from tempfile import TemporaryDirectory
from typing import Any

from headrace import Client
from headrace.pipeline import session
from headrace.testing import running_broker

Main = Callable[[Any, str, str], Any]  # Called with the session, the URL and a folder for checkpoints and tables.
Part = Mapping[str, Sequence[tuple[str, Mapping[str, str]]]]  # Stream -> (time of day, fields) of each entry.

SHORT_RUN = {  # For little data: few tasks, and a Java that does not take its time to become fast.
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
DAY_MS = 1767225600000  # 2026-01-01, the day of all sample entries.


def run(main: Main, parts: Sequence[Part]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", help="read this server instead of a broker with sample entries")
    parser.add_argument("--folder", help="keep checkpoints and tables here, so that the next run goes on from them")
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = given.folder or stack.enter_context(TemporaryDirectory())
        url = given.url or stack.enter_context(running_broker()).url
        spark = session("example", config=SHORT_RUN)
        stack.callback(spark.stop)
        for part in [{}] if given.url else parts:
            add(url, part)
            main(spark, url, folder)


def add(url: str, part: Part) -> None:
    with Client(url) as client:
        for stream, entries in part.items():
            for time, fields in entries:
                client.stream(stream).add(fields, id=entry_id(time))


def entry_id(time: str) -> str:
    """09:00:30 -> 1767258030000-0."""
    hours, minutes, seconds = map(int, time.split(":"))
    return f"{DAY_MS + (hours * 3600 + minutes * 60 + seconds) * 1000}-0"
