"""What the archive has, out of the broker; never what a group still needs.

    for done in trim("orders", url="redis://localhost", dry_run=False): …

Which entries may go is decided and done in one step on the server, stream by stream. Nothing is removed unless the
table can be read, all its files are there, and the archive's hold stands on the stream. An archive that began in
mid-stream does not have what came before, so nothing is removed while such entries are there.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from headrace.client.client import Client, choose_url
from headrace.errors import ConfigError, NotFound, Refused
from headrace.pipeline import archives
from headrace.pipeline.archive_layout import check_version
from headrace.pipeline.entry_ids import MAX_ID, text_of
from headrace.pipeline.tables.table import Table, check_files, open_table


@dataclass(frozen=True, slots=True)
class Holder:
    """A group that keeps archived entries in the broker, and how many entries it still needs."""

    group: str
    entries: int | None  # None: the server cannot tell.


@dataclass(frozen=True, slots=True)
class TrimmedStream:
    stream: str
    archived_through: str
    removed: int  # In a dry run: what would be.
    held_by: Holder | None
    is_dry_run: bool

    def plus(self, removed: int) -> "TrimmedStream":
        return replace(self, removed=self.removed + removed)


def trim(
    streams: str | Sequence[str] = (), *, url: str | None = None, name: str | None = None, dry_run: bool = True
) -> list[TrimmedStream]:
    """Trim the streams of an archive, all or those named. A dry run only tells."""
    with Client(choose_url(url)) as client:
        archive = archives.get_archive(client, name or "archive")
        names = (streams,) if isinstance(streams, str) else tuple(streams)
        for stream in names:
            if stream not in archive.streams:
                raise ConfigError(
                    f"the archive {archive.name!r} does not keep {stream!r}; it keeps {', '.join(archive.streams)}."
                )
        table = open_table(archive.path, archive.format)
        check_version(table)
        check_files(table)
        check_holds(client, archive.name, names or archive.streams)
        check_beginnings(client, archive, names or archive.streams)
        return trim_archived(client, archive.name, table, names or archive.streams, dry_run=dry_run)


def check_holds(client: Client, name: str, streams: Iterable[str]) -> None:
    for stream in streams:
        try:
            hold = archives.find_hold(client, name, stream)
        except NotFound:
            continue  # No stream, nothing to trim.
        if hold is None:
            raise Refused(
                f"stream {stream!r} has no group {archives.group_of(name)!r}, the hold of the archive: somebody "
                "removed it. Nothing was trimmed; run the archive, which makes it again."
            )


def check_beginnings(client: Client, archive: archives.Archive, streams: Iterable[str]) -> None:
    """Refuses where the broker has entries from before the archive began: the table has never had them."""
    for stream in streams:
        start = archive.starts.get(stream, 0)
        if start and client.stream(stream).range(until=text_of(start), count=1):
            raise Refused(
                f"stream {stream!r} has entries up to {text_of(start)} from before the archive {archive.name!r} began, "
                "which are in no table. Nothing was trimmed; remove them with headrace streams trim, or archive from "
                "the beginning under another name."
            )


def trim_archived(
    client: Client, name: str, table: Table, streams: Iterable[str], *, dry_run: bool
) -> list[TrimmedStream]:
    """Trim each of the streams behind what the table has of it. One without the hold may be another stream."""
    wanted = set(streams)
    found = []
    for stream, through in sorted(table.through(wanted).items()):
        if stream not in wanted:
            continue
        try:
            if archives.find_hold(client, name, stream) is None:
                continue
            report = client.stream(stream).trim(before=text_of(min(through + 1, MAX_ID)), partly=True, dry_run=dry_run)
        except NotFound:
            continue
        holder = (
            None if report.held_by is None else Holder(report.held_by, count_needed(client, stream, report.held_by))
        )
        found.append(TrimmedStream(stream, text_of(through), report.removed, holder, dry_run))
    return found


def count_needed(client: Client, stream: str, group: str) -> int | None:
    """Entries that a group was not given, or has not acknowledged."""
    for one in client.stream(stream).groups():
        if one.name == group:
            return None if one.lag is None else one.pending + one.lag
    return None
