"""Streams to a table, exactly once, and what the table has out of the broker, if wanted.

    report = archive("orders", "./archive", url="redis://localhost")
    report.entries, report.through

A run takes what is there and ends, or goes on until it is stopped (`continuous`). Before anything is read every stream
has a hold, so that nobody removes what is not archived yet. The table says how far the archive goes; a run that was
killed at any point is simply started again.
"""

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import Any, Final

from headrace.client.client import Client, group_place
from headrace.client.results import StreamInfo
from headrace.client.times import Duration, Place, parse_duration_ms
from headrace.errors import ConfigError, DataLoss, HeadraceError, Refused, TableError
from headrace.pipeline import archives, checkpoints
from headrace.pipeline.archive_files import ArchiveTarget
from headrace.pipeline.archive_layout import create_archive, find_first_id
from headrace.pipeline.archives import Archive
from headrace.pipeline.entry_ids import MAX_ID, id_of, text_of
from headrace.pipeline.jobs.compact import join_small_files
from headrace.pipeline.jobs.trim import Holder, TrimmedStream, check_beginnings, trim_archived
from headrace.pipeline.options import get_broker_url
from headrace.pipeline.planning import list_matching
from headrace.pipeline.same_stream import keep_hold
from headrace.pipeline.session import get_session
from headrace.pipeline.spark_errors import find_error
from headrace.pipeline.tables.table import OWN_FOLDER, Table, check_files, check_partition, table_folder

POLL_S: Final = 0.2
COMPACT_EVERY: Final = 500  # Batches: opening a table takes longer with each file, and a long run makes many.
STOP_WAIT_S: Final = 60.0  # For a batch under way when the run is to end; then it is broken off, which harms nothing.


@dataclass(frozen=True, slots=True)
class ArchiveReport:
    """What a run did. Also given to `on_progress` after each batch, with the figures so far."""

    entries: int
    through: dict[str, str]  # Stream -> the last ID that is archived.
    batches: int
    seconds: float
    trimmed: dict[str, int] = field(default_factory=dict)  # Stream -> entries removed from the broker.
    held_by: dict[str, Holder] = field(default_factory=dict)  # Stream -> the group that needs archived entries.


@dataclass(frozen=True, slots=True)
class Plan:
    """All that a run was asked for."""

    url: str = field(repr=False)
    streams: tuple[str, ...]
    pattern: str | None
    name: str
    folder: Path
    format: str | None
    start: Place
    checkpoint: Path
    max_entries_per_batch: int
    fail_on_data_loss: bool
    trims: bool

    @property
    def owner(self) -> str:
        """Of the checkpoint."""
        return f"{self.name} {self.folder}"

    @property
    def has_own_checkpoint(self) -> bool:
        """Not one that the user chose."""
        return self.folder / OWN_FOLDER in self.checkpoint.parents


def archive(
    streams: str | Sequence[str] = (),
    to: str | Path = "",
    *,
    pattern: str | None = None,
    url: str | None = None,
    name: str | None = None,
    format: str | None = None,
    start: Place = "beginning",
    trim: bool = False,
    continuous: bool = False,
    interval: Duration = "10s",
    max_entries_per_batch: int = 1_000_000,
    checkpoint: str | Path | None = None,
    fail_on_data_loss: bool = True,
    spark: Any = None,
    on_progress: Callable[[ArchiveReport], None] | None = None,
    stop_event: Event | None = None,
    duration: Duration | None = None,
) -> ArchiveReport:
    """Archive streams to a folder. Ends when all that was there is archived, or when told so if continuous.

    Raises DataLoss where entries were removed before they were archived, Refused where somebody else writes to the
    same table, TableError where the table is damaged. Nothing is skipped or doubled: start it again.
    """
    plan = make_plan(
        streams, to, pattern=pattern, url=url, name=name, format=format, start=start, trim=trim,
        max_entries_per_batch=max_entries_per_batch, checkpoint=checkpoint, fail_on_data_loss=fail_on_data_loss,
    )  # fmt: skip
    trigger = {"processingTime": f"{parse_duration_ms(interval, 'interval')} milliseconds"}
    if not continuous:
        trigger = {"availableNow": True}  # type: ignore[dict-item]
    ends_at = None if duration is None else time.monotonic() + parse_duration_ms(duration, "duration") / 1000
    with Client(plan.url) as client:
        check_folder(client, plan)
        with only_writer(plan) as table:
            positions = prepare(client, plan, table)
            run = Run(client, plan, table, on_progress)
            if positions or plan.pattern:
                running = start_query(get_session(spark, "headrace archive"), plan, positions, trigger)
                run.watch(running, stop_event, ends_at)
            return run.report(is_last=True)


def make_plan(
    streams: str | Sequence[str],
    to: str | Path,
    *,
    pattern: str | None,
    url: str | None,
    name: str | None,
    format: str | None,
    start: Place,
    trim: bool,
    max_entries_per_batch: int,
    checkpoint: str | Path | None,
    fail_on_data_loss: bool,
) -> Plan:
    chosen = get_broker_url(url)
    names = (streams,) if isinstance(streams, str) else tuple(streams)
    if bool(names) == bool(pattern):
        raise ConfigError("say what to archive: streams by their names, or a pattern like orders:*, and not both.")
    if not str(to):
        raise ConfigError("say where to archive: the path of a folder.")
    if max_entries_per_batch < 1:
        raise ConfigError(f"max_entries_per_batch is {max_entries_per_batch}; it must be at least 1.")
    folder, name = table_folder(to), name or "archive"
    place = folder / OWN_FOLDER / f"checkpoint-{archives.file_name(name)}"
    return Plan(
        url=chosen, streams=names, pattern=pattern, name=name, folder=folder, format=format, start=start,
        checkpoint=place if checkpoint is None else table_folder(checkpoint),
        max_entries_per_batch=max_entries_per_batch, fail_on_data_loss=fail_on_data_loss, trims=trim,
    )  # fmt: skip


# Before the first read


def check_folder(client: Client, plan: Plan) -> None:
    """Before a table is made there: a name that belongs to another folder leaves nothing in this one."""
    known = archives.find_archive(client, plan.name)
    if known is not None:
        archives.reject_other_place(client, Archive(plan.name, str(plan.folder), known.format))


@contextmanager
def only_writer(plan: Plan) -> Iterator[Table]:
    """The table, made if need be, while no other archive of this machine writes to it."""
    table = create_archive(plan.folder, plan.format)
    lock = plan.folder / OWN_FOLDER / "archive.lock"
    try:
        lock.parent.mkdir(exist_ok=True)
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise TableError(f"the table at {plan.folder} cannot be written: {error.strerror}.") from error
    try:
        take_lock(descriptor, plan.folder)
        yield table
    finally:
        os.close(descriptor)


def take_lock(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        who = os.pread(descriptor, 20, 0).decode().strip() or "unknown"
        raise Refused(
            f"another archive (process {who}) writes to the table at {folder}. Wait for it, or give another folder."
        ) from None
    os.truncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)


def prepare(client: Client, plan: Plan, table: Table) -> dict[str, int]:
    """Puts the holds in place and registers the archive. Behind which ID each stream is to be read."""
    asked = Archive(plan.name, str(plan.folder), table.format, pattern=plan.pattern)
    archives.reject_other_place(client, asked)
    if not plan.has_own_checkpoint:
        checkpoints.check_own(plan.checkpoint, plan.owner)
    check_files(table)
    names = plan.streams or tuple(list_matching(client, plan.pattern or "*"))
    for name in names:
        check_partition({"stream": name})
    infos = {name: client.stream(name).info() for name in names}  # Raises for what is missing or no stream.
    known = archives.find_archive(client, plan.name) or asked
    through = table.through(names)
    positions = {}
    starts = dict(known.starts)
    for name, info in infos.items():
        there = through.get(name)
        if there is None:
            starts[name] = positions[name] = archives.make_hold(client, plan.name, name, group_place(plan.start))
            check_table_kept(name, positions[name], known.starts.get(name), plan)
        else:
            check_loss(name, there, id_of(info.last_id), id_of(info.max_deleted_id or "0-0"), plan)
            check_table_whole(info, there, archives.find_hold(client, plan.name, name), plan)
            keep_hold(client, plan.url, table, plan.name, name, there)
            positions[name] = there
            if name not in starts:  # The registry was lost; the table still knows.
                first = find_first_id(table, name)
                starts[name] = there if first is None else first - 1
    registered = archives.register(client, replace(asked, streams=names, starts=starts))
    if plan.trims:
        check_beginnings(client, registered, names)
    return positions


def check_table_kept(stream: str, hold: int, start: int | None, plan: Plan) -> None:
    """The hold has moved, so the table had entries, and now it has none."""
    if start is not None and hold > start:
        raise TableError(
            f"the archive {plan.name!r} had {stream!r} up to {text_of(hold)}, but the table at {plan.folder} has "
            "nothing of it: it was moved or removed. Put it back, or archive under another name."
        )


def check_table_whole(info: StreamInfo, through: int, hold: int | None, plan: Plan) -> None:
    """The hold moves behind the table; where it is ahead, the table was put back, or somebody moved the hold.

    That is harmless while the broker has an entry from before: streams are trimmed from their beginning.
    """
    if hold is None or hold <= through or not plan.fail_on_data_loss:
        return
    if info.first_entry is None or id_of(info.first_entry.id) > through:
        raise DataLoss(
            f"the archive {plan.name!r} had {info.name!r} up to {text_of(hold)}, but the table at {plan.folder} has it "
            f"only up to {text_of(through)}, and what lies between may be gone from the broker too. Put the newest "
            "table back, or set fail_on_data_loss to false to go on with what is left."
        )


def check_loss(stream: str, through: int, last_id: int, deleted_id: int, plan: Plan) -> None:
    """What can be told without a checkpoint. The source tells more while it reads."""
    if last_id < through:
        raise DataLoss(
            f"stream {stream!r} was deleted and made anew: its last ID {text_of(last_id)} is below {text_of(through)}, "
            "up to where it is archived. Archive it to another folder, or under another name of the stream."
        )
    if deleted_id > through and plan.fail_on_data_loss:
        raise DataLoss(
            f"stream {stream!r}: entries behind {text_of(through)}, up to where it is archived, were deleted, "
            f"{text_of(deleted_id)} among them. To go on with what is left, set fail_on_data_loss to false."
        )


# The query


def start_query(spark: Any, plan: Plan, positions: dict[str, int], trigger: dict[str, Any]) -> Any:
    if not checkpoints.fits(plan.checkpoint, positions):
        checkpoints.discard(plan.checkpoint)
    checkpoints.claim(plan.checkpoint, plan.owner)
    target = ArchiveTarget(str(plan.folder), plan.name).to_option()
    starts = {stream: text_of(min(after + 1, MAX_ID)) for stream, after in positions.items()}
    reader = spark.readStream.format("headrace").option("url", plan.url).option("archive", target)
    if plan.pattern:
        reader = reader.option("streamsPattern", plan.pattern)
    else:
        reader = reader.option("streams", json.dumps(plan.streams))
    reader = reader.option("startingOffsets", json.dumps(starts))
    reader = reader.option("maxEntriesPerTrigger", str(plan.max_entries_per_batch))
    reader = reader.option("failOnDataLoss", str(plan.fail_on_data_loss).lower())
    spark.createDataFrame([], "id int")  # Makes it this thread's session, where Spark looks for the format of the sink.
    writer = reader.load().writeStream.format("headrace").option("url", plan.url).option("archive", target)
    return writer.option("checkpointLocation", str(plan.checkpoint)).trigger(**trigger).start()


class Run:
    """Follows the query: trims and tells after each batch."""

    def __init__(
        self, client: Client, plan: Plan, table: Table, on_progress: Callable[[ArchiveReport], None] | None
    ) -> None:
        self.client = client
        self.plan = plan
        self.table = table
        self.on_progress = on_progress
        self.began = time.monotonic()
        self.rows_before = table.figures().rows
        self.batches = 0
        self.seen = -1
        self.compacted = 0  # After so many batches.
        self.trims: dict[str, TrimmedStream] = {}

    def watch(self, query: Any, stop_event: Event | None, ends_at: float | None) -> None:
        """Until the query ends, or is to end."""
        try:
            while not query.awaitTermination(POLL_S):
                self.look(query)
                if (stop_event is not None and stop_event.is_set()) or (ends_at and time.monotonic() >= ends_at):
                    wait_for_batch(query)
                    break
        except HeadraceError:
            raise
        except Exception as error:  # Spark's failures have no common ancestor; this is where they become words.
            found = find_error(error)
            if found is None:
                raise
            raise found from error
        finally:
            query.stop()
        self.look(query)

    def look(self, query: Any) -> None:
        """Count the batches that ended since, and do what follows them."""
        new = [one for one in query.recentProgress if one["batchId"] > self.seen and one["numInputRows"]]
        if not new:
            return
        self.seen = new[-1]["batchId"]
        self.batches += len(new)
        self.table.refresh()
        self.trim()
        if self.on_progress is not None:
            self.on_progress(self.report())
        if self.batches - self.compacted >= COMPACT_EVERY:
            self.compacted = self.batches
            self.compact()

    def compact(self) -> None:
        """While the query goes on: nobody waits for it."""
        with suppress(Refused):  # Somebody else compacts.
            join_small_files(self.table)

    def trim(self) -> None:
        if not self.plan.trims:
            return
        streams = archives.get_archive(self.client, self.plan.name).streams
        for done in trim_archived(self.client, self.plan.name, self.table, streams, dry_run=False):
            before = self.trims[done.stream].removed if done.stream in self.trims else 0
            self.trims[done.stream] = done.plus(before)

    def report(self, *, is_last: bool = False) -> ArchiveReport:
        if is_last:
            self.table.refresh()
            self.trim()
        known = archives.find_archive(self.client, self.plan.name)
        streams = self.plan.streams if known is None else known.streams
        return ArchiveReport(
            entries=self.table.figures().rows - self.rows_before,
            through={stream: text_of(there) for stream, there in sorted(self.table.through(streams).items())},
            batches=self.batches,
            seconds=time.monotonic() - self.began,
            trimmed={stream: done.removed for stream, done in self.trims.items()},
            held_by={stream: done.held_by for stream, done in self.trims.items() if done.held_by is not None},
        )


def wait_for_batch(query: Any) -> None:
    """Let the batch under way come to its end. Where many wait, the next one begins at once; it is not waited for."""
    deadline = time.monotonic() + STOP_WAIT_S
    before = last_batch(query)
    while query.isActive and query.status["isTriggerActive"] and last_batch(query) == before:
        if time.monotonic() >= deadline or query.awaitTermination(POLL_S):
            return


def last_batch(query: Any) -> int:
    """The number of the last batch that ended."""
    progress = query.lastProgress
    return -1 if progress is None else int(progress["batchId"])
