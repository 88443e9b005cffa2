"""Plays a written session against a server.

    # A comment.
    > XADD orders * item tea                        a command on the first connection
    "<id>"                                          its reply in the notation of notation.py, over one or more lines
    bob> XREAD BLOCK 0 STREAMS orders $             a command on the connection named bob
    (blocks)                                        the server must hold it back; (sent): it may or may not
    > XADD orders * item milk                       no reply written: anything but an error
    bob<                                            bob's reply has come
    [["orders", [["<any>", ["item", "milk"]]]]]

A session stops at the first reply that differs. Connections and names live as long as the Session.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .notation import Bindings, parse, render, substitute
from .servers import Server
from .wire import ErrorReply, Wire

FIRST = ""  # the connection that has no name
BLOCKS = "(blocks)"
SENT = "(sent)"

_PROMPT = re.compile(r"([a-z][a-z0-9-]*)?>(?: (.*))?$")
_ARRIVAL = re.compile(r"([a-z][a-z0-9-]*)<$")


@dataclass(frozen=True)
class Step:
    """One line of a session: send a command and read its reply, send one that waits, or read a late reply."""

    connection: str
    line: str | None
    waiting: str  # BLOCKS, SENT or nothing
    expected: str
    number: int

    def __str__(self) -> str:
        return f"{self.connection}<" if self.line is None else f"{self.connection}> {self.line}"


def read_steps(text: str) -> Iterator[Step]:
    """The steps of a session."""
    head: tuple[str, str | None, int] | None = None
    body: list[str] = []

    def finish() -> Iterator[Step]:
        if head is not None:
            reply = "\n".join(body)
            waiting = reply if reply in (BLOCKS, SENT) else ""
            yield Step(head[0], head[1], waiting, "" if waiting else reply, head[2])

    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("# ") or line == "#":
            continue
        prompt, arrival = _PROMPT.match(line), _ARRIVAL.match(line)
        if prompt or arrival:
            yield from finish()
            body = []
            head = (prompt[1] or FIRST, prompt[2], number) if prompt else (arrival[1], None, number)  # type: ignore[index]
        else:
            assert head is not None, f"a session begins with a command, not with {line!r}"
            body.append(line)
    yield from finish()


class Session:
    """A talk with one server over named connections."""

    def __init__(self, server: Server, *, protocol: int = 2) -> None:
        self.server = server
        self.protocol = protocol
        self.bound: Bindings = {}
        self._wires: dict[str, Wire] = {}

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for wire in self._wires.values():
            wire.close()
        self._wires.clear()

    def wire(self, name: str = FIRST) -> Wire:
        """The raw connection of this name, opened at first use."""
        if name not in self._wires:
            self._wires[name] = self.server.connect(protocol=self.protocol)
        return self._wires[name]

    def play(self, text: str, **names: object) -> None:
        """Play the session and compare; names are known to it as <name>."""
        self.bound.update({name: str(value) for name, value in names.items()})
        for step in read_steps(text):
            self._compare(step, self.run(step))

    def run(self, step: Step) -> Any:
        """Do one step and give its reply; None for a command whose reply comes later."""
        wire = self.wire(step.connection)
        if step.line is None:
            return wire.read()
        line = substitute(step.line, self.bound)
        if not step.waiting:
            return wire(line)
        before = self.server.blocked_clients()
        wire.send(line)
        if step.waiting == BLOCKS:
            self.server.wait_until_blocked(before + 1)
        return None

    def _compare(self, step: Step, reply: Any) -> None:
        if step.waiting:
            return
        if not step.expected:
            good = not isinstance(reply, ErrorReply)
            wanted = "anything but an error"
        else:
            wanted = step.expected
            bound = parse(step.expected).match(reply, self.bound)
            good = bound is not None
            if bound is not None:
                self.bound = bound
        if not good:
            names = ", ".join(f"<{name}> = {value}" for name, value in self.bound.items())
            raise AssertionError(
                f"{self.server.kind.name}, line {step.number}: {step}\n"
                f"  expected  {' '.join(wanted.split())}\n  got       {render(reply)}\n  names     {names or 'none'}"
            )
