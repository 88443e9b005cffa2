"""A program in a process of its own, on a machine without Java, that reads from a server with a password.

It runs once, as a start of Spark takes seconds; each test looks at another side of what it did.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.deployments import KEEPS_NOTHING, Process
from support.servers import valkey_kind

PASSWORD = "s3cret-and-rather-long"
TIMEOUT_S = 600  # Ends a broken test; Spark starts in seconds, on a busy machine in minutes.
TOOLS = ("bash", "sh", "ps", "env", "dirname", "chmod", "ls", "readlink")  # What Spark and its scripts call. No java.
ROWS = 7
ALOUD = "now with the log of Spark"

# First quietly: reads, fails and stops in the middle of a batch. Then aloud: shows all plans and keeps all events.
PROGRAM = """
import sys, time
from pathlib import Path
from headrace.pipeline import session
from headrace.pipeline.spark_errors import explain_error

url, folder, aloud = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
(folder / "events").mkdir(parents=True)
spark = session("secret", master="local[2]", config={
    "spark.eventLog.enabled": "true", "spark.eventLog.compress": "false",
    "spark.eventLog.dir": (folder / "events").as_uri(), "spark.sql.shuffle.partitions": "2",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
})
source = {"url": url, "streams": "orders"}
rows = spark.read.format("headrace").options(**source).load()
print("rows", rows.count())
print("java", spark._jvm.java.lang.System.getProperty("java.home"))

def tell(batches):
    taken = list(batches)  # No other worker is just being started: PySpark would tell of its end.
    (folder / "runs").touch()
    time.sleep(60)
    yield from taken

try:
    spark.read.format("headrace").option("url", url).load().count()
except Exception as error:
    print("error", explain_error(error))
stream = spark.readStream.format("headrace").options(**source, startingOffsets="earliest").load()
writer = stream.select("id").coalesce(1).mapInArrow(tell, "id string").writeStream.format("noop")
query = writer.option("checkpointLocation", str(folder / "stopped")).start()
while not (folder / "runs").exists() and query.isActive:
    time.sleep(0.05)
query.stop()
print("stopped", query.exception())

print(aloud, flush=True)
print(aloud, file=sys.stderr, flush=True)
spark.sparkContext.setLogLevel("INFO")
for mode in ("simple", "extended", "codegen", "cost", "formatted"):
    rows.groupBy("stream").count().explain(mode)
print(rows, rows.count())
writer = stream.writeStream.format("parquet").option("path", str(folder / "rows"))
query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
query.awaitTermination()
query.explain(True)
print(query.lastProgress, query.status)
for wrong in ({"streams": "none"}, {"streams": "orders", "unknown": "x"}):
    try:
        spark.read.format("headrace").option("url", url).options(**wrong).load().collect()
    except Exception as error:
        print(error)
spark.stop()
"""


@dataclass(frozen=True)
class Run:
    """What the program said, quietly and aloud, and where it kept its files."""

    quiet_out: str
    quiet_err: str
    loud_out: str
    loud_err: str
    folder: Path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    place = tmp_path_factory.mktemp("own")
    tools = place / "a path without java"
    tools.mkdir()
    for tool in TOOLS:
        (tools / tool).symlink_to(str(shutil.which(tool)))
    with Process(valkey_kind(), *KEEPS_NOTHING) as server:
        for number in range(ROWS):
            server.command_reply("XADD", "orders", "*", "n", number)
        server.command_reply("CONFIG", "SET", "requirepass", PASSWORD)
        url = f"redis://:{PASSWORD}@127.0.0.1:{server.port}"
        ended = subprocess.run(
            [sys.executable, "-c", PROGRAM, url, str(place / "kept"), ALOUD],
            env={"PATH": str(tools), "HOME": str(place / "home")},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )
    assert ended.returncode == 0, ended.stderr[-4000:]
    quiet_out, loud_out = ended.stdout.split(f"{ALOUD}\n")
    quiet_err, loud_err = ended.stderr.split(f"{ALOUD}\n")
    return Run(quiet_out, quiet_err, loud_out, loud_err, place / "kept")


def test_a_machine_without_java_reads_a_stream_and_hears_nothing_but_what_it_asked_for(run: Run) -> None:
    said = dict(line.split(" ", 1) for line in run.quiet_out.splitlines())

    assert said["rows"] == str(ROWS)
    assert Path(said["java"]).is_relative_to(sys.prefix)
    assert "streams" in said["error"] and "Traceback" not in said["error"]
    assert said["stopped"] == "None"
    assert run.quiet_err == ""


def test_the_password_is_in_no_plan_log_event_or_checkpoint(run: Run) -> None:
    assert "numInputRows" in run.loud_out and "INFO" in run.loud_err
    written = [path for path in run.folder.rglob("*") if path.is_file()]
    assert any("events_1" in path.name for path in written) and any(path.parent.name == "offsets" for path in written)
    leaks = [str(path) for path in written if PASSWORD.encode() in path.read_bytes()]
    assert not leaks
    assert PASSWORD not in run.quiet_out + run.quiet_err + run.loud_out + run.loud_err
