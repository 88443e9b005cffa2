"""The jobs of the pipeline, as documented, must type-check. DataFrames and sessions are Any: Spark is optional."""

from headrace.pipeline import (
    ArchiveReport,
    CompactReport,
    ReplayReport,
    TrimmedStream,
    archive,
    compact,
    query,
    replay,
    session,
    table,
    trim,
)


def run_all(url: str) -> int:
    spark = session("nightly", config={"spark.driver.memory": "2g"})
    archived: ArchiveReport = archive("orders", "./lake", url=url, trim=True, spark=spark)
    through: str = archived.through["orders"]
    trimmed: list[TrimmedStream] = trim("orders", url=url, dry_run=False)
    replayed: ReplayReport = replay("orders", to="orders-again", since=through, rate="500/s", url=url, spark=spark)
    compacted: CompactReport = compact("./lake", retention="7d", dry_run=False)
    rows: int = query("select * from orders", url=url, spark=spark).count()
    days: int = table("orders", url=url, archive="archive", spark=spark).select("day").distinct().count()
    return sum(one.removed for one in trimmed) + replayed.added + compacted.files_after + rows + days
