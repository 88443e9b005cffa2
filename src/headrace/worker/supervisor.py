"""Supervisor: several worker processes, kept running until it is told to end.

A process that dies is started again, at once the first time and with growing pauses when it dies at once again.
SIGTERM and Ctrl-C go to all, also a second time; what has not ended shutdown_timeout later, and a little, is killed.
Each process holds the end of a pipe: when the supervisor itself is killed they notice, and end in good order.
"""

import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from headrace.client.client import Client
from headrace.errors import HeadraceError
from headrace.worker import events

LOOK_S: Final = 0.5
GRACE_S: Final = 10.0  # Beyond the shutdown timeout, for settling and giving back.
FIRST_PAUSE_S: Final = 0.5  # Before a process that died at once is started again; doubles up to the longest.
LONGEST_PAUSE_S: Final = 30.0
HEALTHY_S: Final = 10.0  # A process that ran for so long did not die at once.


class Child:
    """One place for a process, whichever fills it now."""

    def __init__(self, command: Sequence[str], environment: dict[str, str]) -> None:
        self.command = command
        self.environment = environment
        self.process: subprocess.Popen[bytes] | None = None
        self.started_s = 0.0
        self.pause_s = 0.0
        self.start_at_s = 0.0

    def start(self) -> None:
        self.process = subprocess.Popen(  # noqa: S603 - our own command.
            self.command, env=self.environment, stdin=subprocess.PIPE, start_new_session=True
        )
        self.started_s = time.monotonic()
        events.info("process_started", pid=self.process.pid)

    def look(self) -> None:
        """Start it, or note that it died."""
        now_s = time.monotonic()
        if self.process is None:
            if now_s >= self.start_at_s:
                self.start()
            return
        code = self.process.poll()
        if code is None:
            return
        self.close()
        lived_s = now_s - self.started_s
        self.pause_s = 0.0 if lived_s >= HEALTHY_S else min(max(FIRST_PAUSE_S, 2 * self.pause_s), LONGEST_PAUSE_S)
        self.start_at_s = now_s + self.pause_s
        events.error("process_died", code=code, lived_s=round(lived_s, 1), again_in_s=self.pause_s)

    def tell(self, number: signal.Signals) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def close(self) -> None:
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()
        self.process = None


class Supervisor:
    def __init__(
        self, command: Sequence[str], environment: dict[str, str], processes: int, shutdown_s: float,
        has_changed: Callable[[], bool] | None,
    ) -> None:  # fmt: skip
        self.children = [Child(command, environment) for _ in range(processes)]
        self.shutdown_s = shutdown_s
        self.has_changed = has_changed  # For --reload.
        self.signals = 0
        self.wake = threading.Event()

    def run(self) -> None:
        """Until SIGTERM or Ctrl-C. A second one waits for no handler any more, a third kills what still runs."""
        before = {number: signal.signal(number, self.told) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            while not self.signals:
                for child in self.children:
                    child.look()
                if self.has_changed is not None and self.has_changed():
                    events.info("reloading")
                    self.end_all()
                    for child in self.children:
                        child.start_at_s = 0.0
                    continue
                self.wake.wait(LOOK_S)
        finally:
            self.end_all()
            for number, handler in before.items():
                signal.signal(number, handler)

    def told(self, number: int, frame: object) -> None:  # noqa: ARG002 - as signal calls it.
        self.signals += 1
        self.wake.set()

    def end_all(self) -> None:
        told = 1
        self.tell_all(signal.SIGTERM)
        deadline_s = time.monotonic() + self.shutdown_s + GRACE_S
        while any([child.is_running() for child in self.children]):
            if self.signals > told:  # In a hurry: a worker that is told twice gives everything back at once.
                told = self.signals
                self.tell_all(signal.SIGINT)  # Another one than before: two of a kind may become one on their way.
                deadline_s = time.monotonic() + GRACE_S
            if time.monotonic() > deadline_s or told > 2:
                self.tell_all(signal.SIGKILL)
            time.sleep(0.02)
        for child in self.children:
            child.close()

    def tell_all(self, number: signal.Signals) -> None:
        for child in self.children:
            child.tell(number)


@contextmanager
def kept_hosted(client: Client) -> Iterator[None]:
    """Somebody hosts the folder all the time: when the one that does leaves, a call of ours takes over."""
    client.ping()
    ending = threading.Event()

    def ping_for_ever() -> None:
        while not ending.wait(LOOK_S):
            with suppress(HeadraceError):
                client.ping()

    thread = threading.Thread(target=ping_for_ever, name="headrace host", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()
