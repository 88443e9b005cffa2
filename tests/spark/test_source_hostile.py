"""What goes wrong is told in one sentence, inside Spark's exception; once it is mended, nothing is missing or doubled.

Wrong options one by one, and lost entries, are in tests/unit/pipeline/test_options.py and test_source_planning.py; here
is what they look like through Spark.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkException, StreamingQueryException

from headrace import Client
from headrace.pipeline.spark_errors import explain_error
from support.deployments import KEEPS_EVERYTHING, KEEPS_NOTHING, Process, is_from_wheel, real_kinds
from support.servers import Kind

PASSWORD = "s3cret-and-rather-long"


def told(spark: Any, schema: str | None = None, **options: Any) -> str:
    """The sentence that a batch read ends with."""
    reader = spark.read.format("headrace").options(**options)
    with pytest.raises(PySparkException) as raised:
        (reader if schema is None else reader.schema(schema)).load().collect()
    sentence = explain_error(raised.value)
    assert sentence is not None, raised.value
    assert "\n" not in sentence and PASSWORD not in str(raised.value)
    return sentence


@pytest.fixture
def valkey() -> Kind:
    [kind] = [kind for kind in real_kinds() if is_from_wheel(kind)]
    return kind


def test_what_is_wrong_with_a_batch_read_is_one_sentence(
    spark: Any, our_url: str, our_client: Client, name: str
) -> None:
    our_client.stream(name).add({"n": "1"})
    our_client.command("SET", name + "-text", "no stream")
    good = {"url": our_url, "streams": name}

    for options, schema, words in [
        ({"streams": name + "-none"}, None, f"there is no stream '{name}-none'"),
        ({"streams": name + "-text"}, None, f"'{name}-text' is not a stream but a string"),
        ({"startingGroup": "nobody"}, None, "no group 'nobody'"),
        ({"maxEntriesPerTriger": "5"}, None, "Did you mean maxEntriesPerTrigger?"),
        ({"startingOffsets": "soon"}, "n long", "startingOffsets is 'soon'"),
        ({}, "n interval day to second", "column 'n' cannot be read"),
        ({"mode": "FAILFAST"}, "n date", "'1'"),
        ({"url": "embedded:"}, None, "headrace serve"),
    ]:
        assert words in told(spark, schema, **(good | options)), options


def test_a_server_that_cannot_be_reached_or_wants_something_else_is_one_sentence(
    spark: Any, our_url: str, valkey: Kind
) -> None:
    with Process(valkey, *KEEPS_NOTHING) as server:
        server.command_reply("CONFIG", "SET", "requirepass", PASSWORD)
        closed = f"redis://:{PASSWORD}@127.0.0.1:{server.port}"
        assert "refuses the user or password" in told(spark, url=closed.replace(PASSWORD, "wrong"), streams="orders")
        assert "refuses" in told(spark, url=server.url, streams="orders")
    with ThreadPoolExecutor() as pool:  # Both try for some seconds before they give up.
        away = pool.submit(told, spark, url=closed, streams="orders")
        plain = pool.submit(told, spark, url=our_url.replace("redis:", "rediss:"), streams="orders")
    assert "Cannot reach redis://127.0.0.1" in away.result()
    assert "does not speak TLS" in plain.result()


class Archive:
    """A streaming query that writes files, run after run, from one checkpoint."""

    def __init__(self, spark: Any, url: str, name: str, folder: Path, drain: Callable[[Any], Any]) -> None:
        self.spark, self.url, self.name, self.folder, self.drain = spark, url, name, folder, drain

    def run(self, **options: Any) -> None:
        reader = self.spark.readStream.format("headrace").option("url", self.url).option("streams", self.name)
        rows = reader.option("startingOffsets", "earliest").options(**options).load()
        writer = rows.writeStream.format("parquet").option("path", str(self.folder / "rows"))
        self.drain(writer.option("checkpointLocation", str(self.folder / "checkpoint")))

    def told(self, **options: Any) -> str:
        with pytest.raises((StreamingQueryException, AnalysisException)) as raised:
            self.run(**options)
        sentence = explain_error(raised.value)
        assert sentence is not None, raised.value
        return sentence

    def ids(self) -> list[str]:
        rows = self.spark.read.parquet(str(self.folder / "rows")).collect()
        return [row.id for row in sorted(rows, key=lambda row: (row.id_ms, row.id_seq))]


@pytest.fixture
def archive(
    spark: Any, our_url: str, our_client: Client, name: str, tmp_path: Path, drain: Callable[[Any], Any]
) -> tuple[Archive, list[str]]:
    """A query that has read 20 entries, while 5 more wait."""
    ids = our_client.stream(name).add_many([{"n": str(n)} for n in range(20)])
    made = Archive(spark, our_url, name, tmp_path, drain)
    made.run()
    return made, ids + our_client.stream(name).add_many([{"n": str(n)} for n in range(5)])


def test_a_query_that_was_stopped_by_something_mended_goes_on_without_gap_or_double(
    archive: tuple[Archive, list[str]], our_client: Client, name: str
) -> None:
    query, ids = archive
    assert "endingOffsets is for batch reads" in query.told(endingOffsets="5-0")
    assert "maxEntriesPerTrigger is '0'" in query.told(maxEntriesPerTrigger="0")

    our_client.command("RENAME", name, name + "-aside")
    assert f"'{name}', read up to {ids[19]}, is gone" in query.told()
    our_client.command("SET", name, "something else")
    assert f"'{name}' is not a stream but a string" in query.told()
    our_client.command("DEL", name)
    our_client.command("RENAME", name + "-aside", name)

    offsets = query.folder / "checkpoint" / "offsets" / "0"
    kept = offsets.read_text()
    (offsets.parent / ".0.crc").unlink()
    for damage in (json.dumps({name: "no ID"}), "[]"):
        offsets.write_text("\n".join([*kept.split("\n")[:2], damage]))
        assert "the checkpoint is damaged" in query.told()
    offsets.write_text(kept)

    query.run()
    assert query.ids() == ids


def test_a_server_that_is_killed_and_comes_back_is_read_on_without_gap_or_double(
    spark: Any, valkey: Kind, name: str, tmp_path: Path, drain: Callable[[Any], Any]
) -> None:
    with Process(valkey, *KEEPS_EVERYTHING) as server:
        query = Archive(spark, server.url, name, tmp_path, drain)
        with Client(server.url) as client:
            ids = client.stream(name).add_many([{"n": str(n)} for n in range(20)])
            query.run()
            ids += client.stream(name).add_many([{"n": str(n)} for n in range(5)])
        server.end()
        back = threading.Timer(2.0, server.start)  # While the query tries to reach it.
        back.start()
        query.run()
        back.join()

    assert query.ids() == ids
