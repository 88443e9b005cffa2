"""One table over archive and live stream, and SQL over such tables.

    query("select key, count(*) from orders group by key", url="redis://localhost").show()
    table("orders", url="redis://localhost").filter("day = '2026-11-15'").count()

The columns are those of the source, and `day`. Rows up to where the archive goes come from its files, the rest from the
broker; `seam.py` sees to it that no row is missing and none comes twice while both move. A table ends with the entries
there are when it is made: counting it again gives the same, if nobody deletes.
"""

from functools import partial
from typing import Any, Final

from headrace.client.client import Client
from headrace.client.results import StreamInfo
from headrace.client.urls import parse_url
from headrace.errors import ConfigError, NotFound, TableError
from headrace.pipeline import archives
from headrace.pipeline.archive_layout import ARCHIVE_DDL, check_version, read_archive, with_view
from headrace.pipeline.archives import Archive
from headrace.pipeline.entry_ids import id_of
from headrace.pipeline.options import get_broker_url
from headrace.pipeline.ranges import Extent, Span, cut_spans
from headrace.pipeline.session import get_session
from headrace.pipeline.tables.table import Table, open_table
from headrace.pipeline.views import run_sql, spellings

DEFAULT_ARCHIVE = "archive"  # The one that is meant where a stream is in several.


def query(sql: str, *, url: str | None = None, archive: str | None = None, spark: Any = None) -> Any:
    """The result of a query as a DataFrame. Names of streams in it are tables; odd names stand in backticks.

    `archive` names the archive to take for streams that are in several. Raises NotFound for a name that is neither a
    stream nor archived, ConfigError for SQL that cannot be run, TableError for an archive that cannot be read.
    """
    chosen = get_broker_url(url)
    stay_reachable(chosen)
    spark = get_session(spark, "headrace query")
    with Client(chosen) as client:
        return run_sql(spark, sql, partial(make_named_table, spark, client, chosen, archive, sql))


def table(stream: str, *, url: str | None = None, archive: str | None = None, spark: Any = None) -> Any:
    """A stream as a DataFrame: what is archived and what is live, each entry once."""
    chosen = get_broker_url(url)
    stay_reachable(chosen)
    spark = get_session(spark, "headrace query")
    with Client(chosen) as client:
        if archive is not None and stream not in archives.get_archive(client, archive).streams:
            raise ConfigError(f"the archive {archive!r} does not keep {stream!r}. Leave it out, or name another one.")
        return make_table(spark, client, chosen, stream, archive)


KEPT: Final[dict[str, Client]] = {}


def stay_reachable(url: str) -> None:
    """A DataFrame is read when it is used. If this process hosts the folder, it goes on hosting it to its end."""
    if parse_url(url).kind == "embedded" and url not in KEPT:
        KEPT[url] = Client(url)
        KEPT[url].ping()


def make_named_table(spark: Any, client: Client, url: str, archive: str | None, sql: str, name: str) -> Any:
    """The table of a name in SQL, which does not tell upper from lower case as brokers do."""
    for other in spellings(sql, name):
        if choose_archive(client, other, archive) or find_stream(client, other):
            raise ConfigError(
                f"there are streams {name!r} and {other!r}, which SQL cannot tell apart. Take their DataFrames from "
                "headrace.pipeline.table, and give them other names."
            )
    return make_table(spark, client, url, name, archive)


def make_table(spark: Any, client: Client, url: str, stream: str, archive_name: str | None) -> Any:
    archive = choose_archive(client, stream, archive_name)
    stored = None if archive is None else open_archive(archive)
    info = find_stream(client, stream)
    if info is None and stored is None:
        raise NotFound(f"there is no stream {stream!r} at {client.url}, and no archive of one.", "ERR", stream)
    if info is None and stored is not None:
        stored.refresh()  # There is no live end any more, so the archive's own is the newest.
    frames = []
    if stored is not None:
        files = [one for one in stored.files() if one.partition.get("stream") == stream]
        frames.append(read_archive(spark, stored, files))
    if info is not None:
        frames.append(read_live(spark, url, info, archive, stored))
    return frames[0] if len(frames) == 1 else frames[0].unionByName(frames[1])


# The archive


def choose_archive(client: Client, stream: str, name: str | None) -> Archive | None:
    """The archive that keeps the stream: the one named, else the only one, else the default one."""
    keeping = {one.name: one for one in archives.list_archives(client) if stream in one.streams}
    if name is not None:
        archives.get_archive(client, name)  # Raises for a name that nobody knows.
    for chosen in (name, next(iter(keeping)) if len(keeping) == 1 else None, DEFAULT_ARCHIVE):
        if chosen in keeping:
            return keeping[chosen]
    if keeping:
        raise ConfigError(f"{stream!r} is in the archives {', '.join(keeping)}. Say which one to take: archive=NAME.")
    return None


def open_archive(archive: Archive) -> Table:
    try:
        stored = open_table(archive.path, archive.format)
    except TableError as error:
        raise TableError(f"the archive {archive.name!r} cannot be read: {error}") from error
    check_version(stored)
    return stored


# The stream


def find_stream(client: Client, stream: str) -> StreamInfo | None:
    try:
        return client.stream(stream).info()
    except NotFound:
        return None


def read_live(spark: Any, url: str, info: StreamInfo, archive: Archive | None, stored: Table | None) -> Any:
    """What the archive does not have: entries behind it, and those from before it was begun."""
    from headrace.pipeline.seam import FORMAT, LiveDataSource, LivePart, live_option

    through = None if stored is None else stored.through([info.name]).get(info.name)
    path = None if archive is None else archive.path
    pieces = cut(spark, info, through or 0, id_of(info.last_id))
    parts = [LivePart(piece, path, looks=archive is None) for piece in pieces]
    if archive is not None and through is not None:
        start = min(archive.starts.get(info.name, 0), through)
        parts += [LivePart(piece, None) for piece in cut(spark, info, 0, start)]
    if not parts:
        return with_view(spark.createDataFrame([], ARCHIVE_DDL))
    spark.dataSource.register(LiveDataSource)
    reader = spark.read.format(FORMAT).option("url", url).option("slices", live_option(parts))
    return with_view(reader.load())


def cut(spark: Any, info: StreamInfo, after: int, through: int) -> list[Any]:
    """Slices of what lies behind the one ID, up to and with the other."""
    last = id_of(info.last_id)
    first = last if info.first_entry is None else id_of(info.first_entry.id)
    cores = spark.sparkContext.defaultParallelism
    return cut_spans([Span(info.name, after, through, Extent(first, last, info.length))], cores)
