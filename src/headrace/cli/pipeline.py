"""headrace pipeline: archive streams to a table, trim what is archived, replay it, query it, compact the table.

Each command is a job of `headrace.pipeline` with its words around it. Nothing of Spark is loaded before a command runs.
"""

import signal
import sys
from typing import Annotated, Any

import typer

from headrace.cli.spark import Master, Verbose
from headrace.cli.usage import (
    LARGEST_COUNT,
    Command,
    Stream,
    Url,
    WrongUsage,
    duration,
    place,
    place_or_time,
    stream_name,
)

app = typer.Typer(help="Archive, trim, replay and query streams with Spark.", no_args_is_help=True)

Streams = Annotated[
    list[str] | None,
    typer.Argument(metavar="STREAM", parser=stream_name, show_default=False, help="Names of streams."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only tell what would be done.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it. Without, only tell what would be done.")]


@app.command(cls=Command)
def archive(
    streams: Streams = None,
    to: Annotated[str, typer.Option("--to", metavar="FOLDER", help="Where the table lies, or is made.")] = "",
    pattern: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="Instead of names: 'orders:*', also streams to come.")
    ] = None,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Name of the archive; default: archive.")] = None,
    table_format: Annotated[
        str | None, typer.Option("--format", metavar="FORMAT", help="delta or parquet; default: what is there.")
    ] = None,
    start: Annotated[
        str, typer.Option(metavar="PLACE", parser=place("--start"), help="Where a new archive begins: now, an ID, -7d.")
    ] = "beginning",
    trim: Annotated[bool, typer.Option("--trim", help="Remove from the broker what is archived.")] = False,
    continuous: Annotated[bool, typer.Option("--continuous", help="Go on until Ctrl-C.")] = False,
    interval: Annotated[
        str,
        typer.Option(metavar="DURATION", parser=duration("--interval"), help="With --continuous: between batches."),
    ] = "10s",
    max_entries: Annotated[
        int, typer.Option(metavar="N", min=1, max=LARGEST_COUNT, help="In one batch, about.")
    ] = 1_000_000,
    checkpoint: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Spark's own notes; default: with the table.")
    ] = None,
    allow_loss: Annotated[
        bool, typer.Option("--allow-loss", help="Go on where entries were removed before they were archived.")
    ] = False,
    master: Master = None,
    verbose: Verbose = False,
    url: Url = None,
) -> None:
    """Archive streams to a table, each entry once. Ctrl-C ends it after the batch under way.

    Example: headrace pipeline archive orders --to ./lake --trim
    """
    if not to:
        raise WrongUsage("say where to archive: --to FOLDER.")
    if bool(streams) == bool(pattern):
        raise WrongUsage("say what to archive: names of streams, or --pattern, and not both.")

    from contextlib import ExitStack
    from threading import Event

    from headrace.cli.connection import open_client
    from headrace.cli.progress import estimate_left, shown_progress
    from headrace.cli.spark import check_broker, check_spark, one_sentence, spark_session, stopped_by_signal

    check_spark()
    chosen = check_broker(url)
    stop = Event()
    signals: list[int] = []
    with open_client(url) as broker:
        for stream in streams or ():
            broker.stream(stream).info()  # Spark takes seconds to start, and a wrong name need not wait for it.
        with shown_progress("archive") as update, one_sentence(verbose=verbose), ExitStack() as started:
            from headrace.pipeline.jobs.archive import archive as run

            def start_spark() -> Any:
                """Until Spark has started there is no batch to wait for: Ctrl-C ends the command at once."""
                spark = started.enter_context(spark_session("archive", master))
                started.enter_context(stopped_by_signal(stop, signals))
                return spark

            report = run(
                streams or (),
                to,
                pattern=pattern,
                url=chosen,
                name=name,
                format=table_format,
                start=start,
                trim=trim,
                continuous=continuous,
                interval=interval,
                max_entries_per_batch=max_entries,
                checkpoint=checkpoint,
                fail_on_data_loss=not allow_loss,
                spark=start_spark,
                on_progress=update and (lambda now: update(now.entries, estimate_left(broker, now.through))),
                stop_event=stop,
            )
    from headrace.cli.reports import show_archive

    show_archive(report)
    if signal.SIGINT in signals:
        raise KeyboardInterrupt


@app.command(cls=Command)
def trim(
    streams: Streams = None,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Name of the archive; default: archive.")] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    verbose: Verbose = False,
    url: Url = None,
) -> None:
    """Remove from the broker what is archived and no group needs. A dry run, unless --yes is given.

    Example: headrace pipeline trim orders --yes
    """
    if dry_run and yes:
        raise WrongUsage("--dry-run and --yes say different things; give one of them.")

    from headrace.cli.reports import show_trim
    from headrace.cli.spark import check_broker, check_spark, one_sentence

    check_spark()
    chosen = check_broker(url)
    with one_sentence(verbose=verbose):
        from headrace.pipeline.jobs.trim import trim as run

        done = run(streams or (), url=chosen, name=name, dry_run=not yes)
    show_trim(done, is_dry_run=not yes)


@app.command(cls=Command)
def replay(
    stream: Stream,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="STREAM", parser=stream_name, help="Where they go; default: the same stream."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="PLACE",
            parser=place_or_time("--from"),
            help="The first to replay: an ID, -7d, or 2026-11-01.",
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(metavar="PLACE", parser=place_or_time("--until"), help="The last one; default: all that follow."),
    ] = None,
    where: Annotated[str | None, typer.Option(metavar="SQL", help="Only these: \"fields['type'] = 'refund'\".")] = None,
    rate: Annotated[str | None, typer.Option(metavar="RATE", help="At most so many: 500/s.")] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="What was replayed under a name is not replayed again under it.")
    ] = None,
    archive: Annotated[str, typer.Option(metavar="NAME", help="The archive to take them from.")] = "archive",
    dry_run: DryRun = False,
    master: Master = None,
    verbose: Verbose = False,
    url: Url = None,
) -> None:
    """Add archived entries to a stream again, in their order. Doing it twice adds them once.

    Example: headrace pipeline replay orders --from -7d --to orders-again
    """
    from contextlib import ExitStack

    from headrace.cli.progress import shown_progress
    from headrace.cli.reports import show_replay
    from headrace.cli.spark import check_broker, check_spark, one_sentence, spark_session

    check_spark()
    chosen = check_broker(url)
    with shown_progress("replay") as update, one_sentence(verbose=verbose), ExitStack() as started:
        from headrace.pipeline.jobs.replay import replay as run

        report = run(
            stream,
            to=to,
            url=chosen,
            archive=archive,
            since=since,
            until=until,
            where=where,
            rate=rate,
            name=name,
            dry_run=dry_run,
            spark=lambda: started.enter_context(spark_session("replay", master)),
            on_progress=update and (lambda now: update(now.added, now.matched - now.added)),
        )
    show_replay(stream, to or stream, report)


@app.command(cls=Command)
def query(
    sql: Annotated[str, typer.Argument(metavar="SQL", help="Names of streams are tables; odd names in backticks.")],
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, max=2**31 - 1, help="At most so many rows.")] = None,
    output: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write to a file: .ndjson, .csv or .parquet.")
    ] = None,
    archive: Annotated[
        str | None, typer.Option(metavar="NAME", help="The archive to take, where a stream is in several.")
    ] = None,
    master: Master = None,
    verbose: Verbose = False,
    url: Url = None,
) -> None:
    """Run SQL over streams, archived and live as one table.

    Example: headrace pipeline query "select key, count(*) from orders group by key"
    """
    if not sql.strip():
        raise WrongUsage("the SQL is empty.")

    from headrace.cli.output import show_rows
    from headrace.cli.progress import shown_progress
    from headrace.cli.reports import ROWS_ON_SCREEN, show_result, show_written
    from headrace.cli.spark import check_broker, check_spark, one_sentence, spark_session

    check_spark()
    chosen = check_broker(url)
    with one_sentence(verbose=verbose):
        from headrace.pipeline.jobs.query import query as run
        from headrace.pipeline.results import find_writer, read_rows, unique_names, write_file

        if output is not None:
            find_writer(output)  # Before Spark starts.
        with shown_progress("query"), spark_session("query", master) as spark:
            frame = run(sql, url=chosen, archive=archive, spark=spark)
            names = unique_names(frame.columns)
            if output is not None:
                written = write_file(frame, output, limit)
            elif sys.stdout.isatty():
                rows = list(read_rows(frame, limit or ROWS_ON_SCREEN + 1))
            else:
                show_rows(names, read_rows(frame, limit))
    if output is not None:
        show_written(output, written)
    elif sys.stdout.isatty():
        show_result(names, rows, limit)


@app.command(cls=Command)
def compact(
    folder: Annotated[
        str | None, typer.Argument(metavar="FOLDER", show_default=False, help="A table; or --name of an archive.")
    ] = None,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Name of the archive; default: archive.")] = None,
    retention: Annotated[
        str,
        typer.Option(metavar="DURATION", parser=duration("--retention"), help="Keep replaced files so long."),
    ] = "7d",
    dry_run: DryRun = False,
    yes: Yes = False,
    verbose: Verbose = False,
    url: Url = None,
) -> None:
    """Join the small files of a table and remove old ones. A dry run, unless --yes is given.

    Example: headrace pipeline compact ./lake --yes
    """
    if dry_run and yes:
        raise WrongUsage("--dry-run and --yes say different things; give one of them.")
    if folder is not None and name is not None:
        raise WrongUsage("say which table: by its folder or by --name, not both.")

    from headrace.cli.reports import show_compact
    from headrace.cli.spark import check_broker, check_spark, one_sentence

    check_spark()
    chosen = check_broker(url) if folder is None else None
    with one_sentence(verbose=verbose):
        from headrace.pipeline.jobs.compact import compact as run

        report = run(folder, name=name, url=chosen, retention=retention, dry_run=not yes)
    show_compact(report)
