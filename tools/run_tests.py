"""Runs all tests, in three lanes beside each other: most tests mainly wait, so two cores do all in the time of one.

    plain                 everything on the plain build but the next two; it prints as it goes
    contract              what a user relies on, on every server: half of the plain tests' time; it prints at its end
    compiled and Spark    the compiled build is made and tested, then Spark on the plain build; it prints at its end

Exit 1 when anything failed. On a machine where the compiled build cannot be made its tests do not run, and that lane
says so.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOGS = Path("build/logs")
PLAIN = ".venv/bin/python"
COMPILED = "build/compiled/bin/python"
SPARK, CONTRACT = "tests/spark", "tests/contract"
# Unit tests of what is never compiled; the compiled environment has no Spark.
NEEDS_SPARK = ("tests/unit/pipeline", "tests/unit/cli/test_pipeline.py")
CORE = ("tests/unit", "tests/conformance", "tests/property")
NO_CACHE = ("-p", "no:cacheprovider")  # The lanes would write the same file.


def main() -> int:
    os.chdir(ROOT)
    LOGS.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # As Ctrl-C: ends the lanes too.
    lanes = [
        Lane("plain", None, test_plain),
        Lane("contract", LOGS / "tests-contract.log", test_contract),
        Lane("compiled and Spark", LOGS / "tests-compiled-and-spark.log", test_compiled_and_spark),
    ]
    for lane in lanes:
        lane.start()
    try:
        for lane in lanes:
            lane.join()
    except KeyboardInterrupt:
        for lane in lanes:
            lane.stop()
        return 130
    for lane in lanes:
        lane.tell()
    return max(lane.code for lane in lanes)


class Lane(threading.Thread):
    """Commands one after the other, also when one has failed: it is good to know all that fails."""

    def __init__(self, name: str, log: Path | None, steps: "Callable[[Lane], None]") -> None:
        super().__init__(name=name)
        self.log = log  # Where its output goes; None: it is seen at once.
        self.steps = steps
        self.code = 0
        self.took_s = 0.0
        self.running: subprocess.Popen[bytes] | None = None
        self.is_stopped = False

    def run(self) -> None:
        start_s = time.monotonic()
        if self.log is not None:
            self.log.write_bytes(b"")
        self.steps(self)
        self.took_s = time.monotonic() - start_s

    def do(self, title: str, *command: str) -> None:
        if self.is_stopped:
            return
        self.say(title)
        if self.log is None:
            self.running = subprocess.Popen(command)
            code = self.running.wait()
        else:
            with self.log.open("ab") as log:
                self.running = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
                code = self.running.wait()
        self.code = max(self.code, 1 if code else 0)

    def say(self, title: str) -> None:
        if self.log is None:
            print(f"== {title}", flush=True)
        else:
            with self.log.open("a") as log:
                log.write(f"== {title}\n")

    def tell(self) -> None:
        if self.log is not None:
            print(self.log.read_text("utf-8", "replace"), end="")
        minutes, seconds = divmod(round(self.took_s), 60)
        print(f"== {self.name}: {'FAILED' if self.code else 'passed'} in {minutes}:{seconds:02}", flush=True)

    def stop(self) -> None:
        self.is_stopped = True
        if self.running is not None:
            self.running.terminate()
        self.join()


def test_plain(lane: Lane) -> None:
    leave_out = [f"--ignore={path}" for path in (SPARK, CONTRACT)]
    lane.do("all tests but those of the contract and Spark, plain build", PLAIN, "-m", "pytest", *leave_out)


def test_contract(lane: Lane) -> None:
    lane.do("the contract on every server, plain build", PLAIN, "-m", "pytest", *NO_CACHE, CONTRACT)


def test_compiled_and_spark(lane: Lane) -> None:
    lane.do("the compiled build", sys.executable, "tools/setup.py", "compiled")
    fastest = subprocess.run([sys.executable, "tools/setup.py", "python"], capture_output=True, text=True, check=True)
    if fastest.stdout.strip() == COMPILED:
        leave_out = [f"--ignore={path}" for path in NEEDS_SPARK]
        lane.do(
            "unit, conformance and property tests, compiled build",
            *(COMPILED, "-m", "pytest", *NO_CACHE, *leave_out, *CORE),
        )
    else:
        lane.say("the compiled build could not be made, so its tests did not run; build/logs/wheel.log says why")
    lane.do("Spark, plain build", PLAIN, "-m", "pytest", *NO_CACHE, SPARK)


if __name__ == "__main__":
    sys.exit(main())
