"""Every promise of a reliable queue (support/queue_rows.py), kept by queue_*.lua on real servers.

The words of a row are those of RQ.PUSH and its like; here they go to the steps. Rows about what a stream cannot keep,
a time or a limit for a single element, must be refused in one sentence.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from support import queue_rows
from support.queue_rows import EXTENSION_ROWS, ROWS, Dialect, Row
from support.servers import Server
from support.steps import Steps
from support.wire import NULL_ARRAY, NULL_BULK, ErrorReply

KEYS = itertools.count(1)
NOT_POSSIBLE = {
    queue_rows.a_delayed_push_comes_later: ("RQ.PUSHX", "DELAY", 5),
    queue_rows.a_waiting_pop_wakes_when_a_delay_is_over: ("RQ.PUSHX", "DELAY", 5),
    queue_rows.an_element_that_is_not_delivered_in_time_is_dropped: ("RQ.PUSHX", "TTL", 5),
    queue_rows.an_element_that_is_not_acknowledged_in_time_goes_back: ("RQ.PUSHX", "RETRY", 5),
    queue_rows.an_element_delivered_too_often_goes_to_the_dead_letters: ("RQ.PUSHX", "MAXDELIVERIES", 2),
    queue_rows.recover_buries_too: ("RQ.PUSHX", "MAXDELIVERIES", 1),
    queue_rows.what_is_given_back_with_a_delay_comes_later: ("RQ.NACK", "DELAY", 5),
}
POSSIBLE = [row for row in ROWS + EXTENSION_ROWS if row not in NOT_POSSIBLE]


class StepQueues:
    """RQ commands as steps, on a connection of their own."""

    dialect = Dialect(first_sequence=0, type_name=b"stream")

    def __init__(self, server: Server, way: str, stack: ExitStack) -> None:
        self.server = server
        self.stack = stack
        self.steps = Steps(stack.enter_context(server.connect()), way)

    def __call__(self, *argv: str | bytes | int) -> Any:
        command, *words = argv
        name = str(command).upper()
        if not name.startswith("RQ."):
            return plain(self.steps.wire(*argv))
        if name == "RQ.POP":
            return self.pop(words)
        if name == "RQ.STATS":
            return plain(self.steps("queue_info", [str(words[0])], "STATS"))
        return plain(self.steps(name.lower().replace("rq.", "queue_"), [str(words[0])], *words[1:]))

    def pop(self, words: list[Any]) -> Any:
        options: list[Any] = []
        while str(words[0]).upper() in ("COUNT", "BLOCK"):
            options += words[:2]
            words = words[2:]
        blocks = [value for name, value in itertools.pairwise(options) if str(name).upper() == "BLOCK"]
        reply = plain(self.steps("queue_pop", words, *options))
        deadline = time.monotonic() + (int(blocks[0]) or 60_000) / 1000 if reply is None else 0.0
        while reply is None and (left_s := deadline - time.monotonic()) > 0:
            ids = self.steps("queue_wait", words)
            self.steps.wire("XREAD", "COUNT", 1, "BLOCK", round(left_s * 1000) + 1, "STREAMS", *words, *ids)
            reply = plain(self.steps("queue_pop", words, *options))
        return reply

    def connect(self) -> StepQueues:
        return StepQueues(self.server, self.steps.way, self.stack)


def plain(reply: Any) -> Any:
    """Nulls and statuses as the rows expect them."""
    if reply in (NULL_ARRAY, NULL_BULK):
        return None
    if isinstance(reply, str):
        return reply.encode()
    return [plain(item) for item in reply] if isinstance(reply, list) else reply


@pytest.fixture
def queues(server: Server, way: str) -> Iterator[StepQueues]:
    with ExitStack() as stack:
        yield StepQueues(server, way, stack)


@pytest.mark.parametrize("row", POSSIBLE, ids=lambda row: row.__name__)
def test_row(queues: StepQueues, row: Row) -> None:
    row(queues, f"q{next(KEYS)}")


@pytest.mark.parametrize(("command", "option", "value"), sorted(set(NOT_POSSIBLE.values())))
def test_what_a_stream_cannot_keep_is_refused_in_one_sentence(
    queues: StepQueues, command: str, option: str, value: int
) -> None:
    [name] = queues("RQ.PUSH", "q", "a")
    queues("RQ.POP", "q")

    refused = queues(command, "q", option, value, *([name] if command == "RQ.NACK" else ["ELEMENTS", 1, "b"]))

    assert isinstance(refused, ErrorReply)
    assert refused.text.startswith(f"ERR {option} is not possible on this server: a stream keeps no ")
    assert queue_rows.info(queues, "q") == (0, 1)
