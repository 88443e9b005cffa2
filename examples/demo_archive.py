"""The archive act of the demo: a process that gets Spark ready while the story is told, and archives it at its end.

    python examples/demo_archive.py URL FOLDER STREAM...

It tells on stdout what it is at, one line each, and at last what the table holds, as JSON. The file FOLDER/go is its
cue; `archivist` starts it, `finish` gives the cue. Where this Python has no Spark it goes on in .venv, and has it
installed there first. Exit code 3: there is no Spark, and stderr ends with a sentence that says why; 1: archiving
failed, and stderr says why too.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, Any

from rich.console import Console

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
INSTALL_TIMEOUT_S = 1800.0  # Half a gigabyte over a slow line.
ARCHIVE_TIMEOUT_S = 300.0  # Spark starts and archives in some ten seconds.
END_TIMEOUT_S = 10.0


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
    wait_until((folder / "go").exists, CUE_TIMEOUT_S, "no cue")
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


def wait_until(is_so: Callable[[], bool], timeout_s: float, lack: str) -> None:
    deadline = time.monotonic() + timeout_s
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{lack}, after {timeout_s:g} s")
        time.sleep(0.05)


def tell(stage: str) -> None:
    print(stage, flush=True)


# Its other side, in the demo.


@dataclass(frozen=True, slots=True)
class Archivist:
    process: "subprocess.Popen[bytes]"
    folder: Path
    said: IO[bytes]
    complained: IO[bytes]

    def finish(self, console: Console) -> dict[str, Any] | str | None:
        """What the table holds; a sentence when archiving failed; None when there is no Spark, which is told."""
        (self.folder / "go").touch()
        if self.process.poll() is None and self.last_line(self.said):
            console.print(f"         [dim]{self.last_line(self.said)} …[/]")
        wait_until(lambda: not self.is_installing(), INSTALL_TIMEOUT_S, "Spark is not installed yet")
        wait_until(lambda: self.process.poll() is not None, ARCHIVE_TIMEOUT_S, "Spark has not archived yet")
        if self.process.returncode == NO_SPARK:
            console.print(f"         [yellow]not shown:[/] {self.last_line(self.complained)}", soft_wrap=True)
            return None
        if self.process.returncode != 0:
            return self.last_line(self.complained)
        table: dict[str, Any] = json.loads(self.last_line(self.said))
        return table

    def is_installing(self) -> bool:
        return self.process.poll() is None and "installed" in self.last_line(self.said)

    @staticmethod
    def last_line(file: IO[bytes]) -> str:
        file.seek(0)
        return (file.read().decode("utf-8", "replace").strip().splitlines() or [""])[-1]


@contextmanager
def archivist(url: str, folder: Path, *streams: str) -> Iterator[Archivist]:
    with (folder / "said").open("w+b") as said, (folder / "complained").open("w+b") as complained:
        command = [sys.executable, __file__, url, str(folder), *streams]
        environment = os.environ | {"TMPDIR": str(folder)}
        with child_process(command, stdout=said, stderr=complained, env=environment) as process:
            try:
                yield Archivist(process, folder, said, complained)
            finally:
                end_group(process)


def end_group(process: "subprocess.Popen[bytes]") -> None:
    """Ends it and its JVM, which would end by itself, but not at once. They are a process group of their own."""
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_TIMEOUT_S)
    deadline = time.monotonic() + END_TIMEOUT_S
    while time.monotonic() < deadline:
        process.poll()  # The dead are members of their group until they are asked for.
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):  # macOS says "not permitted" of a group that is ending.
            return
        time.sleep(0.01)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
