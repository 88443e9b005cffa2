"""The archive act of the demo: a process that gets Spark ready while the story is told, and archives it at its end.

    python examples/demo_archive.py URL FOLDER STREAM...

It tells on stdout what it is at, one line each, and at last what the table holds, as JSON. The file FOLDER/go is its
cue. Where this Python has no Spark it goes on in .venv, and has it installed there first. Exit code 3: there is no
Spark, and stderr ends with a sentence that says why; 1: archiving failed, and stderr says why too.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

from headrace import Client
from headrace.errors import ConfigError
from headrace.pipeline.session import check_packages, session
from headrace.testing.processes import child_process

ROOT = Path(__file__).resolve().parent.parent
VENV_PYTHON = ROOT / ".venv" / "bin" / "python"
NO_SPARK = 3
CUE_TIMEOUT_S = 600.0  # The story takes seconds; whoever waits longer than this waits in vain.
# A short run is over before the JVM has compiled anything for good.
SMALL = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def main(url: str, folder: str, *streams: str) -> int:
    signal.signal(signal.SIGTERM, end_in_order)
    try:
        check_packages()
    except ConfigError as error:
        return go_on_in_venv(error, [url, folder, *streams])
    try:
        archive(url, Path(folder), streams)
    except Exception as error:  # Whatever it is, the demo shows one sentence of it.
        from headrace.pipeline.spark_errors import explain_error

        print(explain_error(error) or f"{type(error).__name__}: {str(error).splitlines()[0]}", file=sys.stderr)
        return 1
    return 0


def end_in_order(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)  # Leaves every with block, which stops what was started.


def go_on_in_venv(lack: ConfigError, arguments: list[str]) -> int:
    if not VENV_PYTHON.exists() or "HEADRACE_DEMO_HAS_SPARK" in os.environ:
        print(lack, file=sys.stderr)
        return NO_SPARK
    if not has_spark(VENV_PYTHON) and not install_spark():
        return NO_SPARK
    environment = os.environ | {"HEADRACE_DEMO_HAS_SPARK": "1"}  # So that it asks no second time.
    command = [str(VENV_PYTHON), __file__, *arguments]
    return os.execve(VENV_PYTHON, command, environment)  # noqa: S606 - a Python, and no shell.


def has_spark(python: Path) -> bool:
    check = "from headrace.pipeline.session import check_packages as check; check()"
    return subprocess.run([python, "-c", check], check=False, capture_output=True).returncode == 0


def install_spark() -> bool:
    tell("Spark is being installed into .venv, once; that takes a minute or two")
    set_up = [os.environ.get("PYTHON") or sys.executable, str(ROOT / "tools" / "setup.py"), "spark"]
    with child_process(set_up) as process:
        return process.wait() == 0


def archive(url: str, folder: Path, streams: tuple[str, ...]) -> None:
    from headrace.pipeline import archives
    from headrace.pipeline.jobs.archive import archive as run

    tell("Spark is starting")
    options = f'{SMALL} "-Djava.io.tmpdir={folder}"'
    config = {"spark.local.dir": str(folder), "spark.driver.extraJavaOptions": options}
    spark = session("demo", master="local[2]", config=config)
    wait_for_cue(folder / "go")
    tell("Spark is archiving")
    name = f"demo-{os.getpid()}"
    report = run(streams, folder / "table", url=url, name=name, spark=spark)
    with Client(url) as client:
        archives.forget(client, name)
    print(json.dumps({"seconds": report.seconds, **read_table(folder / "table")}), flush=True)
    spark.stop()


def read_table(path: Path) -> dict[str, Any]:
    """What any reader of Delta tables finds; nothing of ours is asked."""
    from deltalake import DeltaTable

    table = DeltaTable(path)
    rows = table.to_pyarrow_table(columns=["stream", "id"]).to_pylist()
    sizes = [Path(file).stat().st_size for file in table.file_uris()]
    return {"ids": [[row["stream"], row["id"]] for row in rows], "files": len(sizes), "size_bytes": sum(sizes)}


def wait_for_cue(cue: Path) -> None:
    deadline = time.monotonic() + CUE_TIMEOUT_S
    while not cue.exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"no cue within {CUE_TIMEOUT_S:g} s")
        time.sleep(0.05)


def tell(stage: str) -> None:
    print(stage, flush=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
