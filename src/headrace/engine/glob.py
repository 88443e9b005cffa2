"""Patterns for key and setting names: `*`, `?`, `[a-z]`, `[^a]`, and `\\` before a character that stands for itself.

A pattern is read once into places, each with the bytes it takes. Only the last `*` met is ever tried again, which is
enough for globs, so a match costs at most len(pattern) * len(text) steps; a hostile pattern cannot make it worse.
A class without its closing bracket ends with the pattern, as in Redis.
"""

from typing import Final

ANY: Final = bytes(range(256))
MAX_STARS: Final = 1000  # A pattern with more matches nothing, as in Redis: nobody means it.


class Glob:
    __slots__ = ("takes", "is_star", "is_everything", "ignores_case", "stars", "prefix", "is_prefix")

    def __init__(self, pattern: bytes, *, ignores_case: bool = False) -> None:
        self.ignores_case = ignores_case
        self.takes: list[bytes] = []  # Per place: the bytes it takes.
        self.is_star: list[bool] = []
        self.read(pattern.lower() if ignores_case else pattern)
        self.is_everything = self.is_star == [True]
        self.stars = self.is_star.count(True)
        self.prefix = self.read_prefix()
        self.is_prefix = self.is_star[len(self.prefix) :] == [True]  # The prefix, then a star: news.*

    def read_prefix(self) -> bytes:
        """The bytes every match begins with. Most names differ from a pattern there: 0.2 us instead of 1 or more."""
        prefix = bytearray()
        for taken, is_star in zip(self.takes, self.is_star, strict=True):
            if is_star or len(taken) != 1:
                break
            prefix += taken
        return bytes(prefix)

    def read(self, pattern: bytes) -> None:
        position = 0
        while position < len(pattern):
            char = pattern[position : position + 1]
            if char == b"*":
                if not self.is_star or not self.is_star[-1]:
                    self.add(ANY, star=True)
            elif char == b"?":
                self.add(ANY, star=False)
            elif char == b"[":
                position = self.read_class(pattern, position + 1)
            else:
                if char == b"\\" and position + 1 < len(pattern):
                    position += 1
                    char = pattern[position : position + 1]
                self.add(char, star=False)
            position += 1

    def add(self, taken: bytes, *, star: bool) -> None:
        self.takes.append(taken)
        self.is_star.append(star)

    def read_class(self, pattern: bytes, position: int) -> int:
        """Read the class whose first byte stands at `position`; the position of its last byte comes back."""
        is_negated = pattern[position : position + 1] == b"^"
        if is_negated:
            position += 1
        taken = bytearray()
        while position < len(pattern) and pattern[position] != 93:  # ]
            if pattern[position] == 92 and position + 1 < len(pattern):  # \
                position += 1
                taken.append(pattern[position])
            elif position + 2 < len(pattern) and pattern[position + 1] == 45:  # -
                ends = sorted((pattern[position], pattern[position + 2]))
                taken += ANY[ends[0] : ends[1] + 1]
                position += 2
            else:
                taken.append(pattern[position])
            position += 1
        members = set(taken)
        self.add(bytes([byte for byte in range(256) if (byte in members) != is_negated]), star=False)
        return position

    def matches(self, text: bytes) -> bool:
        if self.is_everything:
            return True
        if self.stars > MAX_STARS:
            return False
        if self.ignores_case:
            text = text.lower()
        if not text.startswith(self.prefix):
            return False
        if self.is_prefix:
            return True
        takes = self.takes
        is_star = self.is_star
        places = len(takes)
        place = 0
        position = 0
        star_place = -1  # The last star met, and how much of the text it has taken so far.
        star_position = 0
        while position < len(text):
            if place < places and is_star[place]:
                star_place = place
                star_position = position
                place += 1
            elif place < places and text[position] in takes[place]:
                place += 1
                position += 1
            elif star_place >= 0:
                star_position += 1
                position = star_position
                place = star_place + 1
            else:
                return False
        while place < places and is_star[place]:
            place += 1
        return place == places
