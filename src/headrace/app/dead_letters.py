"""app.dead("orders"): the dead letters of a group, for programs.

dead = app.dead("orders", "billing")
for letter in await dead.list(where=lambda letter: "timeout" in letter.error): …
await dead.replay(where=…, rate="50/s")         # back to this group; to="orders" publishes anew
"""

import asyncio
from collections.abc import AsyncIterator, Callable

from headrace.app.handlers import parse_rate
from headrace.client import dead_letters
from headrace.client.async_client import AsyncClient
from headrace.client.dead_letters import DeadLetter, Where
from headrace.errors import ConfigError

Letters = list[DeadLetter]  # In DeadLetters, list is the method.


class DeadLetters:
    """Of one group of one stream."""

    def __init__(self, client: Callable[[], AsyncClient], stream: str, group: str) -> None:
        self._client = client
        self.stream = stream
        self.group = group

    def __repr__(self) -> str:
        return f"DeadLetters({self.stream!r}, {self.group!r})"

    async def count(self) -> int:
        return await self._client().run(dead_letters.count(self.stream, self.group))

    async def list(self, *, where: Where | str | None = None, limit: int | None = None) -> Letters:
        """Oldest first. `where` is a function, or a condition like 'error ~ "timeout"'."""
        found: Letters = []
        async for letter in self.iterate(where=where):
            if limit is not None and len(found) >= limit:
                break
            found.append(letter)
        return found

    async def iterate(self, *, where: Where | str | None = None) -> AsyncIterator[DeadLetter]:
        """As list, fetched page by page. Those that come meanwhile are given too."""
        test = dead_letters.parse_where(where) if isinstance(where, str) else where
        after = ""
        while True:
            letters = await self._client().run(dead_letters.page(self.stream, self.group, after))
            for letter in letters:
                if test is None or test(letter):
                    yield letter
            if len(letters) < dead_letters.PAGE:
                return
            after = letters[-1].id

    async def get(self, letter_id: str) -> DeadLetter:
        return await self._client().run(dead_letters.get(self.stream, self.group, letter_id))

    async def replay(
        self, *ids: str, where: Where | str | None = None, to: str | None = None, rate: str | float | None = None,
        dry_run: bool = False,
    ) -> int:  # fmt: skip
        """Send letters again: those named, those that match, or all. How many it were, or would be."""
        chosen = await self._choose(ids, where)
        if dry_run:
            return len(chosen)
        client = self._client()
        pause_s = 0.0 if rate is None else 1 / parse_rate(rate)
        if to is None:
            await client.run(dead_letters.prepare_replay(self.stream, self.group))
        for letter in chosen:
            await client.run(dead_letters.replay(client._facts, self.stream, self.group, letter, to))
            if pause_s:
                await asyncio.sleep(pause_s)
        return len(chosen)

    async def drop(self, *ids: str, where: Where | str | None = None, everything: bool = False) -> int:
        """Delete letters for good: those named, or those that match; all only when everything=True."""
        if not ids and where is None and not everything:
            raise ConfigError("say which dead letters to drop: IDs, where=, or everything=True.")
        chosen = [letter.id for letter in await self._choose(ids, where)]
        dropped = 0
        for place in range(0, len(chosen), dead_letters.PAGE):
            part = chosen[place : place + dead_letters.PAGE]
            dropped += await self._client().run(dead_letters.drop(self.stream, self.group, part))
        return dropped

    async def _choose(self, ids: tuple[str, ...], where: Where | str | None) -> Letters:
        """Chosen before anything is done, so that what fails again meanwhile is not sent round and round."""
        if ids and where is not None:
            raise ConfigError("give either IDs or where=, not both.")
        if ids:
            return [await self.get(letter_id) for letter_id in dict.fromkeys(ids)]
        return await self.list(where=where)
