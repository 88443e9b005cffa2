"""Chance, for the commands that answer at random (SPOP, SRANDMEMBER, ZRANDMEMBER).

A small generator (splitmix64) with its own state: the pure rooms take no randomness from the world, and a test that
gives the seed gets the same choices again. Good enough to be fair; not for secrets.
"""

from typing import Final, final

MASK: Final = 2**64 - 1


@final
class Chance:
    __slots__ = ("state",)

    def __init__(self, seed: int) -> None:
        self.state = seed & MASK

    def below(self, limit: int) -> int:
        """A number from 0 up to but not including `limit`."""
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        mixed = self.state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
        return (mixed ^ (mixed >> 31)) * limit >> 64

    def sample(self, size: int, count: int) -> list[int]:
        """`count` different places of `size`, in the order they were drawn. Takes as long as `count` says."""
        moved: dict[int, int] = {}  # A shuffle that keeps only the places it touched.
        drawn: list[int] = []
        for index in range(min(count, size)):
            other = index + self.below(size - index)
            drawn.append(moved.get(other, other))
            moved[other] = moved.get(index, index)
        return drawn
