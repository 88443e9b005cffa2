"""Another process with a client, which does what it is told and says what came of it.

with Other("embedded:./data") as other:
    other("client.stream('orders').add({'a': '1'})")     # the repr of the result; raises Failed with what it raised
    other.start("client.queue('jobs').pop(wait='60s')")  # goes on; the result with other.result()
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping

PROGRAM = """
import sys
from headrace import Broker, Client

client = Client(sys.argv[1], timeout=sys.argv[2])
client.ping()
print("ready", flush=True)
for line in sys.stdin:
    try:
        print("=", repr(eval(line)).replace(chr(10), " "), flush=True)
    except BaseException as error:
        print("!", f"{type(error).__name__}: {error}".replace(chr(10), " "), flush=True)
"""


class Failed(Exception):
    """What the other process raised: its kind and its text."""


class Other:
    def __init__(
        self, url: str, *, timeout: str = "30s", environment: Mapping[str, str] | None = None, program: str = PROGRAM
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, url, timeout],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
        )
        self.pid = self.process.pid
        assert self.read() == "ready"

    def __enter__(self) -> Other:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def __call__(self, line: str) -> str:
        self.start(line)
        return self.result()

    def start(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def result(self) -> str:
        said = self.read()
        if said.startswith("!"):
            raise Failed(said[2:])
        return said[2:]

    def read(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def leave(self) -> int:
        """Let it come to its end; its exit code."""
        self.process.communicate(timeout=60)
        return self.process.returncode

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)
