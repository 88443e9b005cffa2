"""When checkpoints are written: what a start would have to replay stays short, however fast clients write."""

from __future__ import annotations

import asyncio
from random import Random

from headrace.server.conversation import Conversations
from headrace.server.durability import Durability
from headrace.server.keeper import Keeper
from headrace.server.listener import Listener
from support.fake_disk import FakeDisk
from support.memory import MemoryBroker
from support.simulation import contents_of

WORTH_BYTES = 20_000  # A longer log is worth a checkpoint.


class Kept:
    """A broker on a fake disk, in a loop. Every turn is kept at once."""

    def __init__(self) -> None:
        self.disk = FakeDisk(Random(0))
        self.broker = MemoryBroker()
        self.durability = Durability(self.broker.state, self.disk)
        self.durability.log_bytes = WORTH_BYTES
        self.listener = Listener(Conversations(self.broker.state), lambda: 0)
        self.keeper = Keeper(self.durability, self.listener)
        self.client = self.broker.client()

    def grow(self, log_bytes: int) -> None:
        """Write until the log has grown by so much."""
        until = self.durability.folder.log_bytes + log_bytes
        while self.durability.folder.log_bytes < until:
            self.client("XADD s * text some-words")
            self.listener.keep()

    async def stop(self) -> None:
        self.listener.close()
        await self.keeper.stop()


def test_what_was_written_during_a_checkpoint_begins_the_next_one_at_once() -> None:
    async def session() -> None:
        kept = Kept()
        durability = kept.durability
        kept.grow(WORTH_BYTES)
        kept.keeper.begin_if_due()
        first = durability.checkpoint
        assert first is not None
        kept.grow(2 * WORTH_BYTES)

        while durability.checkpoint is first:  # noqa: ASYNC110 - every turn of the loop is looked at.
            await asyncio.sleep(0)
        assert durability.checkpoint is not None, "the log is long, and nothing is done about it"
        while durability.checkpoint is not None:  # noqa: ASYNC110 - as above.
            await asyncio.sleep(0)
        assert durability.folder.log_bytes < WORTH_BYTES

        reloaded = MemoryBroker()
        Durability(reloaded.state, kept.disk.after_crash())
        assert contents_of(reloaded) == contents_of(kept.broker)
        await kept.stop()

    asyncio.run(session())


def test_a_checkpoint_hurries_when_clients_write_much_meanwhile_and_never_takes_all_the_time() -> None:
    async def session() -> None:
        kept = Kept()
        kept.grow(WORTH_BYTES)
        kept.keeper.begin_if_due()
        pauses = [kept.keeper.pause_s()]
        for _ in range(3):
            kept.grow(WORTH_BYTES // 2)
            pauses.append(kept.keeper.pause_s())
        assert pauses[0] > pauses[1] > pauses[2] == pauses[3] > 0
        await kept.stop()

    asyncio.run(session())
