"""The rooms and doors of ARCHITECTURE.md, held against the imports that are really there.

The table in ARCHITECTURE.md is the rule; this file only reads it. If an import is refused here, either it is in the
wrong room or the table needs a new door, which is worth a page in docs/decisions/.
"""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "headrace"

# Told the time, handed the bytes: these rooms never reach for the world, so they can be tested and replayed exactly.
PURE_ROOMS = {"wire", "engine", "commands"}
THE_WORLD = {
    "asyncio", "concurrent", "datetime", "io", "multiprocessing", "os", "pathlib", "random", "secrets", "select",
    "selectors", "shutil", "signal", "socket", "socketserver", "ssl", "subprocess", "tempfile", "threading", "time",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Door:
    """What one room may import: our modules by their path below headrace, and packages from outside."""

    ours: frozenset[str]
    outside: frozenset[str]


@dataclass(frozen=True, slots=True)
class Import:
    file: str
    line: int
    module: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} imports {self.module}"


def read_table() -> dict[str, Door]:
    """The rows `| room | what it is | may import | from outside |` under the heading Rooms and doors."""
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    section = text.split("## Rooms and doors", 1)[1].split("\n## ", 1)[0]
    doors = {}
    for line in section.splitlines():
        cells = [re.findall(r"`([\w.]+)`", cell) for cell in line.strip("|").split("|")]
        if len(cells) == 4 and len(cells[0]) == 1:
            doors[cells[0][0]] = Door(frozenset(cells[2]), frozenset(cells[3]))
    return doors


DOORS = read_table()
ROOMS = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))


def imports_of(path: Path) -> Iterator[Import]:
    file = path.relative_to(ROOT).as_posix()
    package = ["headrace", *path.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(file, node.lineno, alias.name)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                yield Import(file, node.lineno, longest_module(base, alias.name))


def longest_module(base: str, name: str) -> str:
    """`from headrace.engine import stream` imports a module, `from headrace.engine.stream import Stream` a name."""
    inner = PACKAGE.joinpath(*base.split(".")[1:], name)
    if (base, name) == ("headrace", "__version__"):
        return "headrace.__version__"
    is_module = base.split(".")[0] == "headrace" and (inner.is_dir() or inner.with_suffix(".py").exists())
    return f"{base}.{name}" if is_module else base


def imports_of_room(room: str) -> list[Import]:
    return [found for path in sorted((PACKAGE / room).rglob("*.py")) for found in imports_of(path)]


def is_open(door: Door, room: str, module: str) -> bool:
    path = module.removeprefix("headrace").lstrip(".")
    if path.split(".")[0] in (room, "errors", "__version__"):
        return True
    if path.split(".")[0] == "testing":
        return False
    if path == "clock":
        return room not in PURE_ROOMS
    if "everything" in door.ours:
        return True
    return any(path == allowed or path.startswith(f"{allowed}.") for allowed in door.ours)


def test_the_table_names_every_room_and_no_other() -> None:
    assert sorted(DOORS) == ROOMS


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_what_the_table_opens(room: str) -> None:
    ours = [found for found in imports_of_room(room) if found.module.split(".")[0] == "headrace"]

    refused = [str(found) for found in ours if not is_open(DOORS[room], room, found.module)]

    assert not refused


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_uses_only_the_outside_packages_of_the_table(room: str) -> None:
    heads = [(found, found.module.split(".")[0]) for found in imports_of_room(room)]

    strangers = [str(found) for found, head in heads if head not in {"headrace", *sys.stdlib_module_names}]

    assert not [text for text in strangers if text.rsplit(" ", 1)[1].split(".")[0] not in DOORS[room].outside]


@pytest.mark.parametrize("room", sorted(PURE_ROOMS))
def test_a_pure_room_never_reaches_for_sockets_clock_chance_or_disk(room: str) -> None:
    assert not [str(found) for found in imports_of_room(room) if found.module.split(".")[0] in THE_WORLD]


def test_nothing_imports_testing() -> None:
    outside = [path for path in PACKAGE.rglob("*.py") if "testing" not in path.relative_to(PACKAGE).parts]
    found = [one for path in outside for one in imports_of(path)]

    assert not [str(one) for one in found if one.module.startswith("headrace.testing")]


def test_no_file_is_named_for_nothing_in_particular() -> None:
    shadows = {path.stem for path in PACKAGE.rglob("*.py")} & {"utils", "util", "helpers", "common", "misc"}

    assert not shadows
