"""As linked_list.py, awaited. Written by tools/async_client.py from that one; change it there."""

from typing import TYPE_CHECKING

from headrace.client import list_flows
from headrace.client.results import LIST_GUARANTEE
from headrace.client.times import Duration, parse_duration_ms

if TYPE_CHECKING:
    from headrace.client.async_client import AsyncClient


class AsyncLinkedList:
    """One list. Elements go in at the right end and come out at the left one, unless told otherwise."""

    guarantee = LIST_GUARANTEE

    def __init__(self, client: "AsyncClient", name: str) -> None:
        self.client = client
        self.name = name

    def __repr__(self) -> str:
        return f"AsyncLinkedList({self.name!r})"

    async def push(self, *elements: bytes | str | int | float, left: bool = False) -> int:
        """Append elements, or put each before all others (left); how many there are now."""
        return await self.client.run(list_flows.push(self.name, elements, left=left))

    async def pop(self, *, count: int = 1, wait: Duration = 0, right: bool = False) -> list[bytes]:
        """Up to `count` elements. Waits up to `wait` for the first one; an empty list: nothing came.

        They are gone from the server with that. When the answer is lost, or the call is cancelled, so may they be.
        """
        return await self.client.run(list_flows.pop(self.name, count, parse_duration_ms(wait, "wait"), right=right))

    async def move(self, to: str, *, wait: Duration = 0) -> bytes | None:
        """Take the first element and append it to another list in one step; None: nothing came.

        So it is kept somewhere while it is worked on. A queue does that for you.
        """
        return await self.client.run(list_flows.move(self.name, to, parse_duration_ms(wait, "wait")))

    async def length(self) -> int:
        return await self.client.run(list_flows.length(self.name))

    async def range(self, first: int = 0, last: int = -1) -> list[bytes]:
        """Elements between two places, both included; negative ones count from the end."""
        return await self.client.run(list_flows.range_(self.name, first, last))
