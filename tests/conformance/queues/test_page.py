"""The page on reliable queues tells the truth: its examples are played from top to bottom."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from headrace.commands.spec import all_commands
from headrace.commands.table import MODULES
from support.servers import Kind, Server, our_kind
from support.session import Session

assert MODULES  # Importing them has declared every command.


def test_the_examples_of_the_page_are_true(root: Path, fleet: Callable[[Kind], Server]) -> None:
    page = (root / "docs" / "reliable-queues.md").read_text("utf-8")
    blocks = re.findall(r"^```session\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    server = fleet(our_kind())
    server.clean()

    with Session(server) as session:
        for block in blocks:
            session.play(block)

    shown = set(re.findall(r"^(?:worker)?> (RQ\.[A-Z]+)", "".join(blocks), re.MULTILINE))
    assert shown == {made.name.upper() for made in all_commands() if made.group == "queue"}
