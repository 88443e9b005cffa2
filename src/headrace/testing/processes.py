"""Child processes that never outlive their with block.

Ctrl-C while a process is being started would leave a child that nobody knows: signals are held back for that moment
and delivered right after. A child has a session of its own, so Ctrl-C reaches only its owner, who stops it in order.
When the owner is killed it can stop nothing any more: a guard beside each child notices the end of the owner, by the
end of a pipe, and stops the child in its place.
"""

import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import IO

STOP_TIMEOUT_S = 10.0
HELD_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def child_process(
    command: Sequence[str],
    *,
    stdout: int | IO[bytes] | None = subprocess.DEVNULL,
    stderr: int | IO[bytes] | None = None,
    env: Mapping[str, str] | None = None,
) -> Iterator["subprocess.Popen[bytes]"]:
    """Runs the command for the length of the block; then SIGTERM and, if that is not heard, SIGKILL."""
    process: subprocess.Popen[bytes] | None = None
    guard: subprocess.Popen[bytes] | None = None
    try:
        with held_signals():
            process = subprocess.Popen(  # noqa: S603 - the command is the caller's own.
                command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, env=env, start_new_session=True
            )
            guard = start_guard(process.pid)
        yield process
    finally:
        if guard is not None:
            stop_guard(guard)  # First: once the child is gone, its number may belong to somebody else.
        if process is not None:
            stop_process(process)


def start_guard(pid: int) -> "subprocess.Popen[bytes]":
    """Waits for a line that never comes; its pipe ends with the process that holds the other end, which is ours."""
    return subprocess.Popen(  # noqa: S603 - a fixed program and a number.
        ["/bin/sh", "-c", f"read -r _; kill -TERM {pid} 2>&-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def stop_guard(guard: "subprocess.Popen[bytes]") -> None:
    guard.kill()
    assert guard.stdin is not None
    guard.stdin.close()
    guard.wait()


def stop_process(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(STOP_TIMEOUT_S)
    except BaseException:  # Not stopped in time, or a second Ctrl-C while waiting: no more patience either way.
        process.kill()
        process.wait()
        raise


@contextmanager
def held_signals() -> Iterator[None]:
    """Signals that arrive in the block are delivered at its end. Python delivers them to the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []

    def remember(number: int, _: FrameType | None) -> None:
        arrived.append(number)

    before = {number: signal.signal(number, remember) for number in HELD_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for late in arrived:
            signal.raise_signal(late)
