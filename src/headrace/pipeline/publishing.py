"""From staged rows to entries of the target, each once, whatever is killed in between.

    hr:{orders}:sink:QUERY     the fence: which batch was published last, or how far it is

    {"batch":7}                                           batch 7 is published
    {"batch":8,"parts":[["q:0:4f1c",3],["q:1:9a2b",1]],"at":[0,2]}   of batch 8, two chunks of the first part are

Each chunk is published in one transaction with the fence that says so. A driver that starts again finds the fence, goes
on with the parts that are recorded in it, and drops what the repeated batch has staged: so it does not matter whether
that has the same rows in the same order. A whole batch that is small is one transaction, without staging.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final, Self

import msgspec

from headrace.client.flows import beside
from headrace.client.packing import Word
from headrace.client.raw_connection import RawConnection
from headrace.errors import HeadraceError, Refused
from headrace.pipeline.entries_from_rows import Words
from headrace.pipeline.staging import STAGED_S, Chunk, Part, Taken, is_too_much, stage, staged_key, unpack_chunk
from headrace.pipeline.transactions import Command, Steps, check, check_type, execute, explained, watch

AT_ONCE_ENTRIES: Final = 2000  # A batch up to here is one transaction; others wait some milliseconds for it.
AT_ONCE_BYTES: Final = 2 << 20


@dataclass(frozen=True, slots=True)
class Fence:
    """A batch, its parts, and how many of their chunks are published."""

    batch: int
    parts: tuple[Part, ...] = ()
    part: int = 0
    chunk: int = 0

    @property
    def is_done(self) -> bool:
        return self.part == len(self.parts)

    def after_chunk(self) -> "Fence":
        if self.chunk + 1 < self.parts[self.part].chunks:
            return replace(self, chunk=self.chunk + 1)
        if self.part + 1 < len(self.parts):
            return replace(self, part=self.part + 1, chunk=0)
        return Fence(self.batch)

    def encode(self) -> bytes:
        if self.is_done:
            return msgspec.json.encode({"batch": self.batch})
        parts = [[part.name, part.chunks] for part in self.parts]
        return msgspec.json.encode({"batch": self.batch, "parts": parts, "at": [self.part, self.chunk]})


class StoredFence(msgspec.Struct):
    batch: int
    parts: list[tuple[str, int]] = []
    at: tuple[int, int] = (0, 0)


def decode_fence(stored: bytes | None, key: str) -> Fence | None:
    if stored is None:
        return None
    try:
        found = msgspec.json.decode(stored, type=StoredFence)
    except msgspec.DecodeError as error:
        raise HeadraceError(
            f"{key!r} does not hold what the stream sink left there. Find out who changed it; without it a restarted "
            "query cannot know what is written already."
        ) from error
    return Fence(found.batch, tuple(Part(name, chunks) for name, chunks in found.parts), *found.at)


@dataclass(frozen=True, slots=True)
class Run:
    """One streaming query, or one batch write, that publishes to a stream.

    `name` is that of the fence. `fence_s` is how long fence and staged parts are kept; None: for ever. A run that
    nobody can repeat `is_single`: it leaves no fence behind.
    """

    stream: str
    name: str
    max_length: int | None = None
    fence_s: int | None = None
    is_single: bool = False

    @property
    def fence_key(self) -> str:
        return beside(self.stream, f"sink:{self.name}")


class Publisher:
    def __init__(self, url: str, run: Run) -> None:
        self.url = url
        self.run = run
        self.steps = Steps(url, run.stream)
        self.trim: tuple[Word, ...] = () if run.max_length is None else ("MAXLEN", "~", run.max_length)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.steps.close()

    def publish(self, batch: int, taken: Sequence[Taken], name: str) -> None:
        """Publish the rows of a batch once, in the order of its tasks. `name` is for what is staged from here."""
        fence = self.load_fence(batch)
        if fence is not None and not fence.is_done:  # A driver was stopped here: its parts, not the new ones.
            self.move(fence)
        if fence is not None and fence.batch == batch:
            self.drop([one.part for one in taken if one.part is not None])
        else:
            self.publish_new(batch, taken, name)
        if self.run.is_single:
            self.steps.run(lambda connection: connection.call("UNLINK", self.run.fence_key))

    def publish_new(self, batch: int, taken: Sequence[Taken], name: str) -> None:
        carried = [chunk for one in taken for chunk in one.carried]
        is_staged = any(one.part is not None for one in taken)
        if is_staged or is_too_much(carried, AT_ONCE_ENTRIES, AT_ONCE_BYTES):
            self.move(self.record(Fence(batch, tuple(self.stage_carried(taken, name)))))
        elif carried:
            self.publish_at_once(batch, carried)

    def stage_carried(self, taken: Sequence[Taken], name: str) -> Iterator[Part]:
        """The parts in the order of the tasks; carried chunks between them become parts too."""
        for number, (_, same) in enumerate(groupby(taken, lambda one: one.part is None)):
            group = list(same)
            carried = [chunk for one in group for chunk in one.carried]
            if carried:
                yield stage(carried, self.url, self.run.stream, f"{name}:{number}")
            yield from (one.part for one in group if one.part is not None)

    def drop(self, parts: Sequence[Part]) -> None:
        """Forget parts that are not published, unless the fence has them by now."""
        if not parts:
            return

        def step(connection: RawConnection) -> None:
            [stored] = watch(connection, self.run.fence_key)
            fence = decode_fence(stored, self.run.fence_key)
            kept = set() if fence is None else {part.name for part in fence.parts}
            keys = [staged_key(self.run.stream, part.name) for part in parts if part.name not in kept]
            check(execute(connection, [("UNLINK", *keys)] if keys else []))

        self.steps.run(step)

    # The fence

    def load_fence(self, batch: int) -> Fence | None:
        key = self.run.fence_key
        fence = decode_fence(self.steps.run(lambda connection: connection.call("GET", key)), key)
        if fence is not None and fence.batch > batch:
            raise Refused(
                f"batch {batch} comes after batch {fence.batch} was written to {self.run.stream!r}: the checkpoint of "
                f"this query is older than the stream. Use the newest checkpoint; or delete the key {key!r}, and what "
                "was written since is written again."
            )
        return fence

    def record(self, fence: Fence) -> Fence:
        """Put the parts into the fence: from now on they, and no others, are this batch."""
        keys = [staged_key(self.run.stream, part.name) for part in fence.parts]
        keep = [self.keep_command(key) for key in keys]

        def step(connection: RawConnection) -> Fence:
            lengths = [("LLEN", key) for key in keys]
            stored, kind, *found = watch(connection, self.run.fence_key, ("TYPE", self.run.stream), *lengths)
            current = decode_fence(stored, self.run.fence_key)
            if current is not None and current.batch >= fence.batch:
                return current
            check_type(self.run.stream, kind)
            if found != [part.chunks for part in fence.parts]:
                raise HeadraceError(
                    f"rows staged for {self.run.stream!r} are gone before they were written: the broker evicts keys, "
                    "or it was emptied. Nothing of this batch is written; start again."
                )
            check(execute(connection, [*keep, self.fence_command(fence)]))
            return fence

        return self.steps.run(step)

    def keep_command(self, key: str) -> Command:
        return ("PERSIST", key) if self.run.fence_s is None else ("EXPIRE", key, self.run.fence_s)

    def fence_command(self, fence: Fence) -> Command:
        lifetime: tuple[Word, ...] = () if self.run.fence_s is None else ("EX", self.run.fence_s)
        return ("SET", self.run.fence_key, fence.encode(), *lifetime)

    # Publishing

    def publish_at_once(self, batch: int, carried: Sequence[Chunk]) -> None:
        def step(connection: RawConnection) -> None:
            stored, kind = watch(connection, self.run.fence_key, ("TYPE", self.run.stream))
            current = decode_fence(stored, self.run.fence_key)
            if current is not None and current.batch >= batch:
                return
            check_type(self.run.stream, kind)
            adds = [add for chunk in carried for add in self.adds(unpack_chunk(chunk.packed))]
            self.add_all(connection, adds, [self.fence_command(Fence(batch))], stored)

        self.steps.run(step)

    def move(self, fence: Fence) -> None:
        """Publish what the fence has recorded, chunk after chunk."""
        while not fence.is_done:
            fence = self.move_chunk(fence)

    def move_chunk(self, fence: Fence) -> Fence:
        """Publish the next chunk; the fence after it. Another driver may have been quicker: then the fence it left."""
        part = fence.parts[fence.part]
        key = staged_key(self.run.stream, part.name)
        read = ("LRANGE", key, fence.chunk, fence.chunk)

        def step(connection: RawConnection) -> Fence:
            stored, kind, found = watch(connection, self.run.fence_key, ("TYPE", self.run.stream), read)
            current = decode_fence(stored, self.run.fence_key)
            if current is None:
                raise HeadraceError(
                    f"{self.run.fence_key!r} vanished while batch {fence.batch} was written: somebody deleted it, or "
                    "the broker evicts keys. A part of the batch is written; started again, it would be written twice."
                )
            if current != fence:
                return current
            check_type(self.run.stream, kind)
            if not found:
                raise self.chunk_gone(fence)
            following = fence.after_chunk()
            is_last = following.is_done or following.part != fence.part
            end: list[Command] = [("EXPIRE", key, STAGED_S)] if is_last else []
            self.add_all(connection, self.adds(unpack_chunk(found[0])), [self.fence_command(following), *end], stored)
            if is_last:
                connection.call("UNLINK", key)  # Not before it is known that every entry was added.
            return following

        return self.steps.run(step)

    def adds(self, entries: list[Words]) -> Iterator[Command]:
        head = ("XADD", self.run.stream, *self.trim, "*")
        for words in entries:
            yield (*head, *words)

    def add_all(
        self, connection: RawConnection, adds: Iterable[Command], others: Iterable[Command], before: bytes | None
    ) -> None:
        """Add entries and move the fence in one transaction.

        A transaction is not undone when one of its commands fails. The type of the target was looked at just before, so
        this takes somebody who replaces it in this very moment; then the fence is put back as it was.
        """
        results = execute(connection, [*adds, *others])
        failed = [result for result in results if isinstance(result, HeadraceError)]
        if failed:
            back: Command = ("UNLINK", self.run.fence_key) if before is None else ("SET", self.run.fence_key, before)
            connection.call(*back)
            raise explained(failed[0])

    def chunk_gone(self, fence: Fence) -> HeadraceError:
        published = sum(part.chunks for part in fence.parts[: fence.part]) + fence.chunk
        total = sum(part.chunks for part in fence.parts)
        return HeadraceError(
            f"rows staged for {self.run.stream!r} are gone: the broker evicts keys, or somebody deleted them. Of batch "
            f"{fence.batch}, {published} of {total} chunks are written. To write the whole batch again, delete the key "
            f"{self.run.fence_key!r} and start again."
        )
