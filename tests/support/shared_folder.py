"""Several processes on one folder: they are started, killed and stopped, and then judged by what they were promised."""

from __future__ import annotations

import itertools
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from headrace import Client
from headrace.journal.pointer import read_pointer

from .servers import wait_until

PROGRAM = Path(__file__).with_name("folder_member.py")
LONG_S = 60.0


class Member:
    """One process."""

    def __init__(self, folder: Path, name: str, promises: Path, flavour: str) -> None:
        self.name = name
        self.promises = promises / name
        self.errors = promises / f"{name}.errors"
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, str(PROGRAM), str(folder), name, str(self.promises), flavour],
                stdin=subprocess.PIPE,
                stderr=errors,
            )

    def lines(self) -> list[list[str]]:
        """What it has written down, but for a line it is just writing."""
        if not self.promises.exists():
            return []
        text = self.promises.read_text()
        return [line.split() for line in text[: text.rfind("\n") + 1].splitlines()]

    def served_since(self, when_ms: int) -> bool:
        return any(int(line[0]) > when_ms and line[1] in ("added", "acked") for line in self.lines())

    def said(self) -> str:
        return self.errors.read_text()

    def where(self) -> str:
        """Where it hangs."""
        self.process.send_signal(signal.SIGUSR1)
        wait_until(lambda: bool(self.said()), "a traceback")
        return f"{self.name} hangs:\n{self.said()}"

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def leave(self) -> int:
        """Let it end by itself; its exit code."""
        self.process.communicate(timeout=LONG_S)
        return self.process.returncode


@dataclass
class Judgement:
    """What was found in the folder, and what had been promised."""

    promised: int = 0
    lost: list[str] = field(default_factory=list)


class Folder:
    """Members of one folder."""

    def __init__(self, path: Path) -> None:
        self.path = path / "data"
        self.promises = path / "promises"
        self.promises.mkdir()
        self.members: list[Member] = []
        self.gone: list[Member] = []
        self.started = 0

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members:
            member.kill()

    def start_member(self) -> Member:
        self.started += 1
        flavour = "sync" if self.started % 2 else "async"
        member = Member(self.path, f"m{self.started}", self.promises, flavour)
        self.members.append(member)
        return member

    def wait_until_served(self, members: Iterable[Member], since_ms: int) -> None:
        for member in members:
            deadline_s = time.monotonic() + LONG_S
            while not member.served_since(since_ms):
                assert member.process.poll() is None, member.said()
                assert time.monotonic() < deadline_s, member.where()
                time.sleep(0.02)

    def host(self) -> Member:
        """The member that hosts the folder."""

        def find() -> Member | None:
            pointer = read_pointer(self.path)
            pid = None if pointer is None else pointer.pid
            return next((member for member in self.members if member.process.pid == pid), None)

        wait_until(lambda: find() is not None, "a host", timeout_s=LONG_S)
        host = find()
        assert host is not None
        return host

    def kill_host(self) -> int:
        """The time of its death, in ms."""
        host = self.host()
        host.kill()
        when_ms = now_ms()
        self.members.remove(host)
        self.gone.append(host)
        return when_ms

    def let_host_leave(self) -> None:
        host = self.host()
        assert host.leave() == 0, host.said()
        self.members.remove(host)
        self.gone.append(host)

    def stop(self) -> None:
        while self.members:
            member = self.members.pop()
            assert member.leave() == 0, member.said()
            self.gone.append(member)

    # Judging, when all are gone

    def judge(self) -> Judgement:
        judgement = Judgement()
        with Client(f"embedded:{self.path}") as client:
            entries = {entry.id: entry.fields for entry in client.stream("orders").range()}
            group = client.stream("orders").group("workers")
            pending = {one.id for one in group.pending()}
        for member in self.gone:
            judge_member(member, entries, pending, judgement)
        places = [(fields["by"], int(fields["number"])) for fields in entries.values()]
        assert len(places) == len(set(places)), "an entry was added twice"
        return judgement

    def gaps_ms(self, kills_ms: list[int]) -> list[int]:
        """For each kill and each member that lived through it, how long it was not served, at most."""
        found = []
        for member in self.gone:
            times = [int(line[0]) for line in member.lines() if line[1] in ("added", "acked", "given")]
            for kill_ms in kills_ms:
                spans = [
                    later - max(before, kill_ms)
                    for before, later in itertools.pairwise(times)
                    if later > kill_ms and before < kill_ms + 1000
                ]
                if spans and times[0] < kill_ms:
                    found.append(max(spans))
        return found


def judge_member(member: Member, entries: dict[str, dict[str, str]], pending: set[str], judgement: Judgement) -> None:
    given: set[str] = set()
    asked: set[str] = set()
    acked: set[str] = set()
    for line in member.lines():
        _, what, *about = line
        if what == "added":
            judgement.promised += 1
            fields = entries.get(about[1])
            if fields != {"by": member.name, "number": about[0]}:
                judgement.lost.append(f"{member.name} added {about}, and there is {fields}")
        elif what in ("given", "asked", "acked"):
            {"given": given, "asked": asked, "acked": acked}[what].add(about[0])
    judgement.promised += len(given) + len(acked)
    judgement.lost += [f"{member.name} acknowledged {name}, and it is pending" for name in acked & pending]
    judgement.lost += [f"{member.name} was given {name}, and it is not pending" for name in given - asked - pending]
    numbers = [int(fields["number"]) for fields in entries.values() if fields["by"] == member.name]
    if numbers != sorted(numbers):
        judgement.lost.append(f"the entries of {member.name} are out of order")


def now_ms() -> int:
    return int(time.monotonic() * 1000)


def describe(gaps_ms: list[int]) -> str:
    return f"not served for {statistics.median(gaps_ms):.0f} ms in the median, {max(gaps_ms)} ms at worst"
