"""What the jobs of `headrace pipeline` tell when they are done: a line or a table on a terminal, JSON when piped."""

import sys
from typing import TYPE_CHECKING, Any

from headrace.cli.output import counted, json_line, printable, say, show_rows, write

if TYPE_CHECKING:
    from headrace.cli.output import Row
    from headrace.pipeline.jobs.archive import ArchiveReport
    from headrace.pipeline.jobs.compact import CompactReport
    from headrace.pipeline.jobs.replay import ReplayReport
    from headrace.pipeline.jobs.trim import Holder, TrimmedStream

ROWS_ON_SCREEN = 1000  # Of a query, unless --limit says otherwise.
STREAM_COLUMNS = ("stream", "through_id", "trimmed", "held_by", "needed")
TRIM_COLUMNS = ("stream", "archived_through_id", "removed", "held_by", "needed", "dry_run")


def show_archive(report: "ArchiveReport") -> None:
    streams = [archive_row(report, stream) for stream in report.through]
    if not sys.stdout.isatty():
        facts = {"entries": report.entries, "batches": report.batches, "seconds": round(report.seconds, 3)}
        write(json_line({**facts, "streams": streams}), sys.stdout, flush=True)
        return
    write(archive_line(report) + "\n", sys.stdout, flush=True)
    if len(streams) > 1:
        show_rows(STREAM_COLUMNS, streams)


def archive_row(report: "ArchiveReport", stream: str) -> "Row":
    holder = report.held_by.get(stream)
    return {
        "stream": stream,
        "through_id": report.through[stream],
        "trimmed": report.trimmed.get(stream, 0),
        "held_by": None if holder is None else holder.group,
        "needed": None if holder is None else holder.entries,
    }


def archive_line(report: "ArchiveReport") -> str:
    """archived 1,204,331 entries through 1731651600000-4 · trimmed 1,198,002 (group "audit" still needs 6,329)"""
    archived = f"archived {counted(report.entries, 'entry', 'entries')}"
    if len(report.through) == 1:
        archived += f" through {next(iter(report.through.values()))}"
    elif report.through:
        archived += f" of {len(report.through):,} streams"
    if not report.trimmed:
        return archived
    held = [needs(holder) for holder in report.held_by.values()]
    return f"{archived} · trimmed {sum(report.trimmed.values()):,}" + (f" ({'; '.join(held)})" if held else "")


def needs(holder: "Holder") -> str:
    return f'group "{holder.group}" still needs ' + ("some" if holder.entries is None else f"{holder.entries:,}")


def show_trim(done: "list[TrimmedStream]", *, is_dry_run: bool) -> None:
    show_rows(TRIM_COLUMNS, [trim_row(one) for one in done], nothing="Nothing is archived yet.")
    if not sys.stdout.isatty():
        return
    for one in done:
        if one.held_by is not None:
            say(f"{one.stream!r} is held back: {needs(one.held_by)}.")
    if is_dry_run and done:
        say("this was a dry run: nothing was removed. Do it with --yes.")


def trim_row(one: "TrimmedStream") -> "Row":
    return {
        "stream": one.stream,
        "archived_through_id": one.archived_through,
        "removed": one.removed,
        "held_by": None if one.held_by is None else one.held_by.group,
        "needed": None if one.held_by is None else one.held_by.entries,
        "dry_run": one.is_dry_run,
    }


def show_replay(stream: str, target: str, report: "ReplayReport") -> None:
    if not sys.stdout.isatty():
        facts = {"stream": stream, "to": target, "matched": report.matched, "added": report.added}
        more = {"skipped": report.skipped, "seconds": round(report.seconds, 3), "name": report.name}
        write(json_line({**facts, **more, "dry_run": report.is_dry_run}), sys.stdout, flush=True)
        return
    did = "would replay" if report.is_dry_run else "replayed"
    line = f"{did} {counted(report.added, 'entry', 'entries')} of {stream!r} to {target!r}"
    if report.skipped:
        line += f" · skipped {report.skipped:,} that had been replayed before"
    write(printable(line) + "\n", sys.stdout, flush=True)


def show_compact(report: "CompactReport") -> None:
    if not sys.stdout.isatty():
        facts = {"files_before": report.files_before, "files_after": report.files_after, "removed": report.removed}
        write(json_line({**facts, "dry_run": report.is_dry_run}), sys.stdout, flush=True)
        return
    joined, removed = ("would join", "would remove") if report.is_dry_run else ("joined", "removed")
    files, old = counted(report.files_before, "file", "files"), counted(report.removed, "old file", "old files")
    is_joined = report.files_after < report.files_before
    first = f"{joined} {files} into {report.files_after:,}" if is_joined else f"nothing to join in {files}"
    write(f"{first} · {removed} {old}\n", sys.stdout, flush=True)
    if report.is_dry_run:
        say("this was a dry run: nothing was changed. Do it with --yes.")


def show_result(names: list[str], rows: list[Any], limit: int | None) -> None:
    """The rows of a query on a terminal; one more than wanted tells that there are more."""
    most = limit or ROWS_ON_SCREEN
    show_rows(names, rows[:most], nothing="No rows.", verbatim=True)
    if limit is None and len(rows) > most:
        say(f"these are the first {most:,} rows. Set another --limit, or write all of them with --output FILE.")


def show_written(path: str, count: int) -> None:
    if sys.stdout.isatty():
        write(f"wrote {counted(count, 'row', 'rows')} to {printable(path)}\n", sys.stdout, flush=True)
    else:
        write(json_line({"file": path, "rows": count}), sys.stdout, flush=True)
