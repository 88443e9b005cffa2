"""What every row needs: how it is declared, how HR commands become steps, and short ways to ask a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from headrace.client.flows import beside
from headrace.client.worker_keys import group_keys, stream_keys

from ..servers import wait_until
from ..wire import ErrorReply

WRONG_TYPE = ErrorReply("WRONGTYPE Operation against a key holding the wrong kind of value")
INVALID_ID = ErrorReply("ERR Invalid stream ID specified as stream command argument")
SYNTAX = ErrorReply("ERR syntax error")
SOON_MS = 60  # Long enough to be told apart from at once.
LONG_MS = 3_600_000


class WorkerSteps(Protocol):
    def __call__(self, *argv: str | bytes | int) -> Any: ...


Row = Callable[[WorkerSteps, str], None]
ROWS: list[Row] = []


def row(function: Row) -> Row:
    ROWS.append(function)
    return function


def words_to_step(argv: tuple[str | bytes | int, ...]) -> tuple[str, list[str], list[str | bytes | int]]:
    """The words of an HR command as a step, its keys and its arguments."""
    name, stream, *words = argv
    key = str(stream)
    if name == "HR.ADD":
        return add_to_step(key, words)
    of_stream, of_group = stream_keys(key), group_keys(key, str(words[0]))
    keys = {
        "HR.DUE": [
            of_stream.delayed, of_stream.bodies, of_group.due, of_group.attempts, of_group.again, beside(key, "ids"),
        ],
        "HR.START": [of_group.due, of_group.attempts],
        "HR.RELEASE": [of_group.due, of_group.attempts],
        "HR.EXTEND": [],
        "HR.SWEEP": [of_group.due, of_group.attempts],
        "HR.SETTLE": [of_group.due, of_group.attempts, of_group.dead, *named_keys(words)],
    }[str(name)]  # fmt: skip
    return str(name).lower().replace("hr.", "worker_"), [key, *keys], words


def add_to_step(key: str, words: list[Any]) -> tuple[str, list[str], list[Any]]:
    at = words.index("FIELDS")
    options = dict(zip(words[:at:2], words[1:at:2], strict=True))
    once = [options.get("ID", ""), options.get("WINDOW", LONG_MS), options.get("MAX", 100)]
    when = [pair for word in ("AT", "DELAY") if word in options for pair in (word, options[word])] or ["DELAY", 0]
    of_stream = stream_keys(key)
    keys = [key, beside(key, "ids"), beside(key, "ids:age"), of_stream.delayed, of_stream.bodies]
    return "delay", keys, [*once, *when, *words[at + 2 :]]


def named_keys(words: list[Any]) -> list[str]:
    """Streams behind ADD, and keys behind EFFECT, a number and the name of a command."""
    added = [str(words[at + 1]) for at, word in enumerate(words) if word == "ADD"]
    return added + [str(words[at + 3]) for at, word in enumerate(words) if word == "EFFECT"]


def given(steps: WorkerSteps, key: str, count: int, consumer: str = "ann") -> list[bytes]:
    """The names of so many new entries that a consumer was given."""
    if steps("EXISTS", key) == 0:
        steps("XGROUP", "CREATE", key, "g", "0", "MKSTREAM")
    names = [steps("XADD", key, "*", "n", number) for number in range(count)]
    steps("XREADGROUP", "GROUP", "g", consumer, "STREAMS", key, ">")
    return names


def pending(steps: WorkerSteps, key: str) -> list[list[Any]]:
    """ID, consumer and deliveries of what is pending."""
    return [[name, consumer, count] for name, consumer, _, count in steps("XPENDING", key, "g", "-", "+", 2000)]


def names_in(steps: WorkerSteps, key: str) -> list[bytes]:
    return [entry[0] for entry in steps("XRANGE", key, "-", "+")]


def due(steps: WorkerSteps, key: str, consumer: str = "bob", count: int = 100) -> Any:
    return steps("HR.DUE", key, "g", consumer, "COUNT", count)


def now_ms(steps: WorkerSteps) -> int:
    seconds, micros = steps("TIME")
    return int(seconds) * 1000 + int(micros) // 1000


def wait_for_delayed(steps: WorkerSteps, key: str, count: int = 100) -> None:
    wait_until(lambda: due(steps, key, count=count)[1] == -1, "the delayed messages")


def beside_keys(steps: WorkerSteps, key: str) -> list[bytes]:
    """The keys that are left beside the stream."""
    return sorted(steps("KEYS", f"hr:{{{key}}}:*"))
