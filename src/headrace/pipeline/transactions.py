"""Transactions on the node of one key, over connections that may break.

A step reads what is recorded under WATCH, decides, and ends with one MULTI ... EXEC that also changes the record. So it
may be repeated after a lost connection, whether or not its EXEC took effect: the record tells. `Steps.run` does that,
and gives up after a while.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final, Self, TypeVar

from headrace.client.explain import not_a_stream
from headrace.client.packing import Word
from headrace.client.raw_connection import RawConnection, open_raw
from headrace.client.results import decode_text
from headrace.errors import CommandError, ConnectionLost, HeadraceError

Command = Sequence[Word]
Result = TypeVar("Result")

FIRST_PATIENCE_S: Final = 2.0  # A wrong URL should show soon.
PATIENCE_S: Final = 30.0  # Longer than a failover of Sentinel or Cluster takes by default.
FIRST_PAUSE_S: Final = 0.05
LONGEST_PAUSE_S: Final = 2.0
MOST_COLLISIONS: Final = 100  # In a row. Others who change the same record are the exception.


class Collision(Exception):
    """A watched key changed under the step: look again."""


class Steps:
    """Runs steps on a connection that is made again when it breaks. For one thread."""

    def __init__(self, url: str, key: str) -> None:
        self.url = url
        self.key = key
        self.connection: RawConnection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.close()

    def run(self, step: Callable[[RawConnection], Result]) -> Result:
        """The step's result, over as many connections and collisions as it takes, within limits."""
        patience_s = PATIENCE_S if self.connection is not None else FIRST_PATIENCE_S
        gives_up_at: float | None = None
        pause_s, collisions = FIRST_PAUSE_S, 0
        while True:
            try:
                return step(self.open())
            except Collision:
                collisions += 1
                if collisions == MOST_COLLISIONS:
                    raise HeadraceError(
                        f"another program keeps writing to {self.key!r} under the same name; stop one of the two."
                    ) from None
            except ConnectionLost as error:
                if self.connection is not None:
                    patience_s = PATIENCE_S  # It answered, so the URL is right.
                refuse_replica(error, self.connection)
                self.close()
                gives_up_at = gives_up_at or time.monotonic() + patience_s
                if time.monotonic() + pause_s > gives_up_at:
                    raise
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def open(self) -> RawConnection:
        if self.connection is None:
            connection = open_raw(self.url, self.key)
            try:
                # Were MULTI refused later, what follows it in the same write would run on its own.
                check(connection.call_many([("MULTI",), ("DISCARD",)]))
            except BaseException:
                connection.close()
                raise
            self.connection = connection
        return self.connection


def watch(connection: RawConnection, key: str, *reads: Command) -> list[Any]:
    """Watch a key; its value and the replies to more reads, in one round trip. The next `execute` ends it."""
    replies = connection.call_many([("WATCH", key), ("GET", key), *reads])
    check(replies)
    return replies[1:]


def execute(connection: RawConnection, commands: Sequence[Command]) -> list[Any]:
    """Run the commands in one transaction; their replies, errors in place.

    Raises Collision where a watched key has changed, and the reason where a command was refused before anything ran.
    """
    replies = connection.call_many([("MULTI",), *commands, ("EXEC",)])
    done = replies[-1]
    if isinstance(done, HeadraceError):
        check(replies)  # The first error is the reason; that of EXEC only says that there was one.
    if done is None:
        raise Collision
    results: list[Any] = done
    return results


def check(replies: Sequence[Any]) -> None:
    """Raise the first error among replies."""
    for reply in replies:
        if isinstance(reply, HeadraceError):
            raise explained(reply)


def explained(error: HeadraceError) -> HeadraceError:
    if isinstance(error, CommandError) and error.prefix == "OOM":
        return CommandError(
            "the broker is out of memory (maxmemory) and takes no more entries. Make room, and start again: it goes on "
            "where it stopped.",
            "OOM",
        )
    return error


def refuse_replica(error: ConnectionLost, connection: RawConnection | None) -> None:
    """A replica behind a plain URL stays one; only sentinels and clusters name another node."""
    if connection is not None and "READONLY" in str(error) and connection.target.kind not in ("sentinel", "cluster"):
        raise CommandError(
            f"{connection.shown} is a replica and takes no writes. Give the URL of the primary, or of its sentinels "
            "(redis+sentinel://).",
            "READONLY",
        ) from error


def check_type(key: str, reply: Any) -> None:
    """`reply` is that of TYPE. A missing key will be a stream."""
    kind = decode_text(reply)
    if kind not in ("stream", "none"):
        article = "an" if kind[0] in "aeiou" else "a"
        raise not_a_stream(key, f"{article} {kind}")
