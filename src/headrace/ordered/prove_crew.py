"""The consumers of a proof: worker processes that join, leave, are killed and are paused.

Each holds the end of a pipe, as the processes of `headrace worker` do: when the proof itself is killed they notice, and
end. One that is paused could not; so a pause is made by a small process of its own, which also ends it.
"""

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from random import Random
from typing import IO, Final

from headrace.client.client import Client
from headrace.client.lane_views import consumers, tickets
from headrace.errors import HeadraceError
from headrace.ordered.prove_plan import Plan

APP: Final = "headrace.ordered.prove_app:app"
SHUTDOWN: Final = "1s"  # For handlers that run when their consumer leaves.
END_S: Final = 30.0  # For a consumer that was told to end; then it is killed.
PAUSES: Final = (1.2, 2.5)  # How long one lasts, in leases.
WEIGHTS: Final = {"killed": 4, "paused": 3, "left": 2}


@dataclass(frozen=True, slots=True)
class Loss:
    """A key whose holder was killed or paused, and when."""

    key: str
    at_ns: int
    fence: int  # Under which it was held.


WORKER: Final = ("worker", APP, "--shutdown-timeout", SHUTDOWN)


class Crew:
    def __init__(
        self, client: Client, url: str, plan: Plan, chance: Random, log: IO[bytes], kinds: Sequence[Sequence[str]]
    ) -> None:
        self.client = client
        self.url = url
        self.plan = plan
        self.chance = chance
        self.log = log
        self.kinds = cycle(kinds)  # Words behind `headrace`: what joins, in turn.
        self.members: list[subprocess.Popen[bytes]] = []
        self.pauses: list[tuple[subprocess.Popen[bytes], subprocess.Popen[bytes]]] = []  # Who, and by whom.
        self.events: Counter[str] = Counter()
        self.losses: list[Loss] = []
        self.last_words = ""  # Of the log, when nothing moved any more.

    def __enter__(self) -> "Crew":
        return self

    def __exit__(self, *_: object) -> None:
        self.end_all()

    # Joining and leaving

    def fill(self) -> None:
        """One more, where some are missing."""
        if len(self.working()) < self.plan.consumers:
            self.join()

    def join(self) -> None:
        # The URL goes by the environment: on a command line other users could see its password.
        environment = {**self.plan.environment(), "HEADRACE_WORKER_CHILD": "1", "HEADRACE_WORKER_URL": self.url}
        member = subprocess.Popen(  # noqa: S603 - our own command.
            [sys.executable, "-m", "headrace", *next(self.kinds)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=self.log,
            stderr=self.log,
            start_new_session=True,
        )
        self.members.append(member)
        self.events["joined"] += 1

    def working(self) -> list[subprocess.Popen[bytes]]:
        """Those that run and are not paused."""
        self.forget_ended()
        paused = {member.pid for member, _ in self.pauses}
        return [member for member in self.members if member.pid not in paused]

    def forget_ended(self) -> None:
        self.pauses = [(member, pause) for member, pause in self.pauses if pause.poll() is None]
        for member in [one for one in self.members if one.poll() is not None]:
            self.members.remove(member)
            close_stdin(member)

    # Trouble

    def trouble(self) -> None:
        """Something happens to one of them, by chance. Two that are at work always go on."""
        members = self.at_work()
        if len(members) <= 2:
            return
        what = self.chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        member = self.chance.choice(members)
        at_ns = time.monotonic_ns()
        if what == "left":
            member.terminate()
        elif what == "killed":
            member.kill()
            member.wait()
        else:
            self.pause(member)
        self.events[what] += 1
        if what != "left":
            self.losses += [Loss(key, at_ns, fence) for key, fence in self.held_by(member.pid)]

    def pause(self, member: subprocess.Popen[bytes]) -> None:
        seconds = self.chance.uniform(*PAUSES) * self.plan.lease_ms / 1000
        script = f"kill -STOP {member.pid} && sleep {seconds:.3f}; kill -CONT {member.pid}"
        pause = subprocess.Popen(["/bin/sh", "-c", script], start_new_session=True)  # noqa: S603 - a fixed program.
        self.pauses.append((member, pause))

    def at_work(self) -> list[subprocess.Popen[bytes]]:
        """Those that have begun: it takes a process a while to start. Their names tell the process."""
        with suppress(HeadraceError):  # Without an answer in time, nothing happens this time.
            names = [one.name for one in self.client.run(consumers(self.client._facts, self.plan.order))]
            return [one for one in self.working() if any(f"-{one.pid}-" in name for name in names)]
        return []

    def held_by(self, pid: int) -> list[tuple[str, int]]:
        """The keys that a process holds, with their fences, as the server has it."""
        with suppress(HeadraceError):  # Without an answer in time, these keys are just not measured.
            return self.find_held(f"-{pid}-")
        return []

    def find_held(self, part_of_name: str) -> list[tuple[str, int]]:
        fences: dict[str, int] = {}
        cursor = 0
        while True:
            page = self.client.run(tickets(self.client._facts, self.plan.order, cursor))
            for key, ticket in page.tickets:
                if ticket.state == "held" and part_of_name in ticket.consumer:
                    fences[key] = ticket.fence
            cursor = page.cursor
            if cursor == 0:
                return sorted(fences.items())

    # The end

    def end_all(self) -> None:
        """Everything that was started has ended when this returns."""
        for member, pause in self.pauses:
            if pause.poll() is None:
                pause.kill()
            pause.wait()
            if member.poll() is None:
                member.send_signal(signal.SIGCONT)
        self.pauses.clear()
        for member in self.members:
            member.terminate()
        deadline_s = time.monotonic() + END_S
        try:
            for member in self.members:
                member.wait(max(0.0, deadline_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.events["killed"] += len([member for member in self.members if member.poll() is None])
        finally:  # Not in time, or Ctrl-C: no more patience either way.
            self.kill_all()

    def kill_all(self) -> None:
        for member in self.members:
            member.kill()
        for member in self.members:
            member.wait()
        self.forget_ended()


def close_stdin(member: subprocess.Popen[bytes]) -> None:
    if member.stdin is not None:
        member.stdin.close()


def last_lines(log: Path, count: int = 20) -> str:
    return "\n".join(log.read_text("utf-8", "replace").splitlines()[-count:])
