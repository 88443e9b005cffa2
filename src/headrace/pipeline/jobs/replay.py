"""Entries of an archive back to a stream: the same one, or another.

    replay("orders", since="2026-11-01", until="2026-11-08", where="fields['type'] = 'refund'", rate="500/s")

Twice gives the set once: what was replayed under a name is not replayed again under it, however often it was killed or
whichever ranges the runs had. Entries that are replays themselves are not replayed to the stream they came from.
"""

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from headrace.client.client import Client, range_ids
from headrace.client.results import encode_text
from headrace.client.times import ENTRY_ID, Place
from headrace.errors import ConfigError, HeadraceError
from headrace.pipeline import archives
from headrace.pipeline.archive_layout import check_version, read_archive
from headrace.pipeline.entry_ids import MAX_ID, MAX_PART, id_of, ms_of, seq_of, text_of
from headrace.pipeline.options import get_broker_url
from headrace.pipeline.pace import parse_rate
from headrace.pipeline.replaying import ID_FIELD, STREAM_FIELD, Record, ReplayPlan, decode_record, replay_rows
from headrace.pipeline.seam import may_hold
from headrace.pipeline.session import get_session
from headrace.pipeline.spark_errors import find_error
from headrace.pipeline.tables.table import Table, open_table
from headrace.pipeline.transactions import check_type
from headrace.pipeline.views import sentence_of, unlogged

POLL_S: Final = 0.5  # Between two looks at how far a replay is.


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """What a replay did; in a dry run, what it would do. Also given to `on_progress`, with the figures so far."""

    matched: int  # Entries in the range that fit `where`.
    added: int
    skipped: int  # Replayed before, under the same name.
    seconds: float
    name: str
    is_dry_run: bool = False


def replay(
    stream: str,
    *,
    to: str | None = None,
    url: str | None = None,
    archive: str = "archive",
    path: str | Path | None = None,
    since: Place | None = None,
    until: Place | None = None,
    where: str | None = None,
    rate: str | None = None,
    name: str | None = None,
    dry_run: bool = False,
    spark: Any = None,
    on_progress: Callable[[ReplayReport], None] | None = None,
) -> ReplayReport:
    """Add archived entries of a stream, in their order, to it or to the stream `to`.

    `archive` is its name in the broker's registry; `path` names its folder instead. `since` and `until` are both
    included; without `until`, the end is what the archive has when the replay begins. `where` is SQL over the columns
    of the source. `name` is what a repetition is known by: by default it follows from stream, target and where.
    """
    began = time.monotonic()
    chosen_url = get_broker_url(url)
    target = to or stream
    per_second = None if rate is None else parse_rate(rate)
    with Client(chosen_url) as client:
        folder = archives.get_archive(client, archive).path if path is None else path
        table = open_table(folder)
        check_version(table)
        first, last = choose_range(table, stream, since, until)
        check_type(target, client.command("TYPE", target))
        subject = digest(stream, where)
        plan = ReplayPlan(
            chosen_url, stream, target, name or digest(stream, target, where)[:16], subject, first, last, per_second
        )
        before = load_record(client, plan)
        frame = choose_entries(get_session(spark, "headrace replay"), table, plan, where)
        if dry_run:
            return dry_report(frame, plan, before, began)
        total = count(frame) if on_progress is not None else 0

        def report(matched: int) -> ReplayReport:
            added = load_record(client, plan).added - before.added
            return ReplayReport(matched, added, matched - added, time.monotonic() - began, plan.name)

        with telling(lambda: report(total), on_progress):
            matched = run(frame, plan)
        return report(matched)


# What is replayed


def choose_range(table: Table, stream: str, since: Place | None, until: Place | None) -> tuple[int, int]:
    """Both ends as ID numbers. The end is fixed now: what is archived from here on is no part of this replay."""
    through = table.through([stream]).get(stream)
    if through is None:
        known = ", ".join(repr(one) for one in sorted(table.through())) or "nothing"
        raise ConfigError(f"the archive at {table.path} has nothing of {stream!r}; it has {known}.")
    start, end = range_ids(parse_time(since) or "beginning", parse_time(until))
    first, last = number_of(start, is_end=False), number_of(end, is_end=True)
    if first > last:
        raise ConfigError(f"the range begins at {text_of(first)} and ends before that, at {text_of(last)}.")
    if first > through:
        raise ConfigError(
            f"the archive has {stream!r} up to {text_of(through)}, and the range begins at {text_of(first)}: nothing "
            "of it is archived. Archive first, or begin earlier."
        )
    return first, min(last, through)


def parse_time(place: Place | None) -> Place | None:
    """A time in ISO 8601 becomes a datetime, in UTC where it names no zone; all else is left as it is."""
    if isinstance(place, str) and not ENTRY_ID.fullmatch(place.strip()):
        try:
            place = datetime.fromisoformat(place.strip())
        except ValueError:
            return place
    if isinstance(place, datetime) and place.tzinfo is None:
        return place.replace(tzinfo=UTC)
    return place


def number_of(place: str, *, is_end: bool) -> int:
    """As range_ids writes it: an ID, a bare millisecond, - or +."""
    if place in ("-", "+"):
        return MAX_ID if place == "+" else 0
    ms, dash, _ = place.partition("-")
    if int(ms) > MAX_PART or (dash and int(place.partition("-")[2]) > MAX_PART):
        raise ConfigError(f"{place!r} is no entry ID: its numbers have at most 64 bits.")
    return id_of(place) if dash else id_of(f"{ms}-{MAX_PART if is_end else 0}")


def digest(*words: str | None) -> str:
    return hashlib.sha256(json.dumps(words).encode()).hexdigest()


def load_record(client: Client, plan: ReplayPlan) -> Record:
    return decode_record(client.command("GET", plan.record_key), plan)


def choose_entries(spark: Any, table: Table, plan: ReplayPlan, where: str | None) -> Any:
    """The entries to replay, in the columns of the source."""
    from pyspark.sql.functions import col, lit

    files = [one for one in table.files() if may_hold(one, plan.source, max(0, plan.first - 1), plan.last)]
    frame = read_archive(spark, table, files)
    frame = frame.where(col("stream") == lit(plan.source)).where(between(plan.first, plan.last))
    if plan.source == plan.target:
        frame = frame.where(~(has_pair(ID_FIELD, None) & has_pair(STREAM_FIELD, encode_text(plan.source))))
    return frame if where is None else filtered(frame, where)


def has_pair(name: bytes, value: bytes | None) -> Any:
    """A condition: the entry has this field, with this value or any."""
    from pyspark.sql.functions import col, exists, lit

    def fits(pair: Any) -> Any:
        is_named = pair["name"] == lit(bytearray(name))
        return is_named if value is None else is_named & (pair["value"] == lit(bytearray(value)))

    return exists(col("pairs"), fits)


def filtered(frame: Any, where: str) -> Any:
    from pyspark.errors import AnalysisException, ParseException

    with unlogged():
        try:
            chosen = frame.where(where)
            _ = chosen.schema
            return chosen
        except ParseException as error:
            raise ConfigError(f"where cannot be read: {sentence_of(error)}") from None
        except AnalysisException as error:
            raise ConfigError(f"where cannot be used: {sentence_of(error)}") from None


def between(first: int, last: int) -> str:
    """SQL for IDs from first to last, both included."""
    return (
        f"(id_ms > {ms_of(first)} OR (id_ms = {ms_of(first)} AND id_seq >= {seq_of(first)})) AND "
        f"(id_ms < {ms_of(last)} OR (id_ms = {ms_of(last)} AND id_seq <= {seq_of(last)}))"
    )


# Running


def run(frame: Any, plan: ReplayPlan) -> int:
    """Replay in one task, so that the order stays; how many entries it was given."""
    ordered = frame.select("id_ms", "id_seq", "id", "pairs").repartition(1).sortWithinPartitions("id_ms", "id_seq")
    task = ordered.select("id", "pairs").mapInArrow(partial(replay_rows, plan), "matched bigint")
    return sum(row.matched for row in collect(task))


def count(frame: Any) -> int:
    [row] = collect(frame.groupBy().count())
    return int(row[0])


def collect(frame: Any) -> list[Any]:
    try:
        rows: list[Any] = frame.collect()
        return rows
    except Exception as error:  # Spark's failures have no common ancestor; this is where ours get their words back.
        found = find_error(error)
        if found is None:
            raise
        raise found from error


def dry_report(frame: Any, plan: ReplayPlan, before: Record, began: float) -> ReplayReport:
    is_done = " OR ".join(f"({between(first, last)})" for first, last in before.done.items) or "false"
    [row] = collect(frame.selectExpr("count(*) AS matched", f"count_if({is_done}) AS skipped"))
    seconds = time.monotonic() - began
    return ReplayReport(row.matched, row.matched - row.skipped, row.skipped, seconds, plan.name, is_dry_run=True)


@contextmanager
def telling(report: Callable[[], ReplayReport], on_progress: Callable[[ReplayReport], None] | None) -> Iterator[None]:
    """Tell how far it is, from a thread beside the one that waits for Spark."""
    if on_progress is None:
        yield
        return
    ended = threading.Event()

    def tell() -> None:
        while not ended.wait(POLL_S):
            try:
                on_progress(report())
            except HeadraceError:
                continue  # The broker is away for a moment; the task will tell if it stays so.

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        ended.set()
        teller.join()
