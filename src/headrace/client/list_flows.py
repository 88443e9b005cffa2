"""Lists, written once for both flavours. An element that was popped is gone from the server, whoever got it."""

import time
from collections.abc import Sequence
from typing import Any

from headrace.client.flow import Flow
from headrace.client.layout import a_type
from headrace.client.queue_flows import check_count, encode_element, sized_parts_of
from headrace.client.requests import BLOCK_MS, Request, Word, number
from headrace.errors import CommandError, ConfigError


def push(name: str, elements: Sequence[Any], *, left: bool) -> Flow[int]:
    """How many there are now. More than 1,000 elements, or 16 MB, go in several calls."""
    words = [encode_element(element) for element in elements]
    if not words:
        return (yield from length(name))
    size = 0
    for part in sized_parts_of(words):
        size = yield from Request(("LPUSH" if left else "RPUSH", name, *part), number, name, kind="list").run()
    return size


def pop(name: str, count: int, wait_ms: int, *, right: bool) -> Flow[list[bytes]]:
    check_count(count)
    side = "RIGHT" if right else "LEFT"
    deadline = time.monotonic() + wait_ms / 1000
    while True:
        left_ms = max(0, round((deadline - time.monotonic()) * 1000))
        block_ms = min(left_ms, BLOCK_MS)
        words: tuple[Word, ...] = ("BLMPOP", seconds(block_ms)) if block_ms else ("LMPOP",)
        argv = (*words, 1, name, side, "COUNT", count)
        found = yield from Request(argv, read_popped, name, wait_ms=block_ms, kind="list").run()
        if found or not left_ms:
            return found


def read_popped(reply: Any) -> list[bytes]:
    return [] if reply is None else list(reply[1])


def seconds(milliseconds: int) -> str:
    """0 would mean to wait for ever."""
    return f"{max(1, milliseconds) / 1000:.3f}"


def length(name: str) -> Flow[int]:
    return (yield from Request(("LLEN", name), number, name, is_repeatable=True, kind="list").run())


def range_(name: str, first: int, last: int) -> Flow[list[bytes]]:
    return (yield from Request(("LRANGE", name, first, last), list, name, is_repeatable=True, kind="list").run())


def move(name: str, to: str, wait_ms: int) -> Flow[bytes | None]:
    """Take the first element and append it to another list, in one step. None: nothing came."""
    if not isinstance(to, str):
        raise ConfigError(f"a list to move to is given by its name; this is {a_type(to)}.")
    deadline = time.monotonic() + wait_ms / 1000
    while True:
        left_ms = max(0, round((deadline - time.monotonic()) * 1000))
        block_ms = min(left_ms, BLOCK_MS)
        argv: tuple[Word, ...] = ("LMOVE", name, to, "LEFT", "RIGHT")
        if block_ms:
            argv = ("BLMOVE", name, to, "LEFT", "RIGHT", seconds(block_ms))
        try:
            request: Request[bytes | None] = Request(argv, lambda reply: reply, name, wait_ms=block_ms, kind="list")
            moved = yield from request.run()
        except CommandError as error:
            if "same slot" not in str(error):
                raise
            raise ConfigError(
                "in a cluster, an element can only move between lists in one slot. Give their names a common part in "
                "braces: {inbox}:new and {inbox}:doing."
            ) from error
        if moved is not None or not left_ms:
            return moved
