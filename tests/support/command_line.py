"""The headrace command as a user runs it: a process of its own, piped or on a terminal."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any

TIMEOUT_S = 60.0  # Only to end a broken test.
COMMAND = [sys.executable, "-m", "headrace"]


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[Any]:
        """The lines of a piped command, decoded. It must have ended well."""
        assert self.code == 0, self
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def row(self) -> Any:
        [row] = self.rows
        return row


def environment(url: str | None, more: Mapping[str, str] | None = None) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("HEADRACE_URL", "NO_COLOR")}
    return {**kept, **({"HEADRACE_URL": url} if url is not None else {}), **(more or {})}


def headrace(*arguments: str | bytes, url: str | None = None, stdin: bytes = b"") -> Ended:
    """Run it with pipes, until it ends."""
    done = subprocess.run(
        [*COMMAND, *arguments], input=stdin, capture_output=True, env=environment(url), timeout=TIMEOUT_S
    )
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())


def start_headrace(*arguments: str, url: str) -> subprocess.Popen[bytes]:
    """Start it with pipes; the caller ends it."""
    return subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(url),
    )


def on_terminal(
    *arguments: str, url: str, types: str = "", stdin: IO[bytes] | None = None, columns: int = 160
) -> Ended:
    """Run it on a terminal of its own; what it shows on stdout and stderr comes together, as `out`.

    A file given as stdin takes the place of the keyboard.
    """
    master, slave = pty.openpty()
    look = {"COLUMNS": str(columns), "TERM": "xterm", "NO_COLOR": "1"}
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=slave if stdin is None else stdin,
        stdout=slave,
        stderr=slave,
        env=environment(url, look),
        start_new_session=True,
    )
    os.close(slave)
    os.write(master, types.encode())
    shown = b""
    try:
        while piece := read_piece(master):
            shown += piece
    finally:
        process.wait(TIMEOUT_S)
        os.close(master)
    return Ended(process.returncode, shown.decode().replace("\r\n", "\n"), "")


def read_piece(master: int) -> bytes:
    try:
        return os.read(master, 65536)
    except OSError:  # Linux tells the end of a terminal so.
        return b""
