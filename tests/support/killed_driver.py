"""A Spark driver in a process of its own that is killed, with its JVM, and started again.

program = KilledDriver(source_text, url, name)
program.run_and_kill(when=lambda: length() > 700)      # whether it was killed; False: it had ended before
program.run_to_the_end()

The program finds the settings of a small Spark in `SMALL`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from .small_spark import SMALL

END_TIMEOUT_S = 300.0
POLL_S = 0.003


class KilledDriver:
    def __init__(self, program: str, folder: Path, *arguments: str) -> None:
        self.command = [sys.executable, "-c", f"SMALL = {SMALL!r}\n{program}", *arguments]
        self.folder = folder
        self.starts = 0
        self.group = 0  # Of processes: the driver that was started last, its JVM and its tasks.

    def start(self) -> tuple[subprocess.Popen[bytes], Path]:
        self.starts += 1
        log = self.folder / f"driver-{self.starts}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
                start_new_session=True,  # The JVM is in the group too.
            )
        self.group = process.pid
        return process, log

    def run_and_kill(self, when: Callable[[], bool]) -> bool:
        """Start it and kill it at once when the condition holds. False: it ended well before."""
        process, log = self.start()
        deadline = time.monotonic() + END_TIMEOUT_S
        try:
            while process.poll() is None:
                if when():
                    return True
                if time.monotonic() > deadline:
                    raise TimeoutError(f"waited in vain for the moment to kill:\n{tail(log)}")
                time.sleep(POLL_S)
        finally:
            end_group(process)
        assert process.returncode == 0, tail(log)
        return False

    def run_to_the_end(self) -> None:
        process, log = self.start()
        try:
            assert process.wait(END_TIMEOUT_S) == 0, tail(log)
        finally:
            end_group(process)


def end_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def tail(log: Path) -> str:
    return log.read_text(errors="replace")[-4000:]
