"""Replies of a real server, kept in files, so that ours can be compared where that server is absent.

A script (`NAME.commands`) holds sessions without replies, each under a title:

    == A duplicate gets the ID of the first entry
    > XADD s IDMP producer 1 * f v
    > XADD s IDMP producer 1 * f v

`[resp3]` at the end of a title plays it in RESP3. Its recording (`NAME.json`) holds the same titles with a list of
[step, reply], replies in the notation of notation.py. What differs from run to run is made equal first: generated IDs
become <id1>, <id2>, …, times become <time>, idle times are rounded down to ten seconds. A command may name an earlier
<id1>.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .notation import render
from .servers import Server
from .session import Session, Step, read_steps
from .wire import Map

_RESP3 = " [resp3]"
_GENERATED_ID = re.compile(r'(?<=["(])(?:1[6-9]|2\d)\d{11}-\d+(?=")')
_TIME = re.compile(r"(?<=:)(?:1[6-9]|2\d)\d{11}\b")
_IDLE_STEP_MS = 10_000
_IDLE_NAMES = (b"idle", b"inactive")
_NEWER_NAMES = (b"nacked-count",)  # Redis 8.8 adds it to XINFO STREAM FULL; ours has it already.


@dataclass(frozen=True)
class Script:
    title: str
    steps: tuple[Step, ...]

    @property
    def protocol(self) -> int:
        return 3 if self.title.endswith(_RESP3) else 2


def read_scripts(path: Path) -> list[Script]:
    """The sessions of a script file."""
    _, *parts = re.split(r"^== ", path.read_text(), flags=re.MULTILINE)
    scripts = []
    for part in parts:
        title, _, body = part.partition("\n")
        scripts.append(Script(title.strip(), tuple(read_steps(body))))
    return scripts


def recording_of(script_file: Path) -> Path:
    return script_file.with_suffix(".json")


def read_recording(script_file: Path) -> dict[str, list[list[str]]]:
    recording: dict[str, list[list[str]]] = json.loads(recording_of(script_file).read_text())["sessions"]
    return recording


def play_and_normalise(server: Server, script: Script) -> list[list[str]]:
    """Play a script and give [step, reply] pairs that are the same in every run."""
    server.clean()
    pairs = []
    with Session(server, protocol=script.protocol) as session:
        normaliser = Normaliser()
        for step in script.steps:
            session.bound.update(normaliser.names)
            reply = session.run(step)
            pairs.append([str(step), step.waiting or normaliser.text(reply)])
    return pairs


class Normaliser:
    """Makes replies comparable; remembers the IDs it has seen."""

    def __init__(self) -> None:
        self._numbers: dict[str, str] = {}

    @property
    def names(self) -> dict[str, str]:
        return {name: value for value, name in self._numbers.items()}

    def text(self, reply: Any) -> str:
        text = _GENERATED_ID.sub(lambda found: f"<{self._name(found[0])}>", render(even_out(reply)))
        return _TIME.sub("<time>", text)

    def _name(self, entry_id: str) -> str:
        return self._numbers.setdefault(entry_id, f"id{len(self._numbers) + 1}")


def even_out(value: Any) -> Any:
    """The same reply with rounded idle times and without pairs that only newer servers have."""
    if isinstance(value, Map):
        pairs = ((key, item) for key, item in value.items() if key not in _NEWER_NAMES)
        return Map({key: round_idle(item) if key in _IDLE_NAMES else even_out(item) for key, item in pairs})
    if not isinstance(value, list):
        return value
    items = [even_out(item) for item in value]
    for name in _NEWER_NAMES:
        if name in items:
            at = items.index(name)
            del items[at : at + 2]
    for position, item in enumerate(items[:-1]):
        if isinstance(item, bytes) and item in _IDLE_NAMES:
            items[position + 1] = round_idle(items[position + 1])
    if len(items) == 4 and [type(item) for item in items[2:]] == [int, int] and is_id(items[0]):
        items[2] = round_idle(items[2])
    return type(value)(items)


def is_id(value: Any) -> bool:
    return isinstance(value, bytes) and re.fullmatch(rb"\d+-\d+", value) is not None


def round_idle(value: Any) -> Any:
    if type(value) is not int or value < 0 or _TIME.fullmatch(str(value)):
        return value
    return value - value % _IDLE_STEP_MS
