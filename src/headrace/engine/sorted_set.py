"""Members of a sorted set: each with a score, in the order of score and then of the members' bytes.

`scores` tells a member's score. The order is a list of sorted chunks of at most LARGEST_CHUNK pairs (score, member);
`lasts` has each chunk's last pair, to find a chunk, and `starts` the rank of its first pair, worked out again on demand
from the first chunk that changed. Putting, removing and finding a place are two bisections and a move inside one chunk.

Ranks count from 0 at the lowest score. Scores are never nan. Which kinds of ranges exist is for commands/ to know: they
ask for ranks (`rank_of_score`, `rank_of_member`) and take what lies between two of them.
"""

from bisect import bisect_left, bisect_right, insort
from math import inf, nextafter
from typing import Final, final

LARGEST_CHUNK: Final = 1024  # Of 256 to 4096, the best for a million members (bench/sorted_set.py).
SMALLEST_CHUNK: Final = 128  # Smaller ones join the next, or few members could stand in very many chunks.
Pair = tuple[float, bytes]


def member_of(pair: Pair) -> bytes:
    return pair[1]


@final
class SortedSet:
    __slots__ = ("scores", "chunks", "lasts", "starts")

    def __init__(self, scores: dict[bytes, float] | None = None) -> None:
        """Of these scores; empty without them."""
        self.fill({} if scores is None else scores)

    def fill(self, scores: dict[bytes, float]) -> None:
        """Hold these and nothing else. One sort: much faster than putting them one by one."""
        pairs = sorted([(score + 0.0, member) for member, score in scores.items()])
        half = LARGEST_CHUNK // 2
        self.scores = {member: score for score, member in pairs}
        self.chunks: list[list[Pair]] = [pairs[start : start + half] for start in range(0, len(pairs), half)]
        self.lasts: list[Pair] = [chunk[-1] for chunk in self.chunks]
        self.starts: list[int] = []  # As many as are right; the others are added on demand.

    def __len__(self) -> int:
        return len(self.scores)

    # Changing

    def put(self, member: bytes, score: float) -> bool:
        """Give the member this score. Whether it is new."""
        score += 0.0  # Makes 0 of -0, as Redis does in sets of up to 128 members.
        before = self.scores.get(member)
        if before is not None:
            if before == score:
                return False
            self.take_out(before, member)
        self.scores[member] = score
        self.insert((score, member))
        return before is None

    def remove(self, member: bytes) -> bool:
        """Whether it was there."""
        score = self.scores.pop(member, None)
        if score is None:
            return False
        self.take_out(score, member)
        return True

    def remove_ranks(self, start: int, stop: int) -> list[Pair]:
        """Remove the members with ranks from `start` up to but not including `stop`; they come back in order."""
        gone = self.pairs(start, stop)
        if len(gone) > LARGEST_CHUNK and len(gone) > len(self.scores) // 4:
            kept = self.pairs(0, start) + self.pairs(start + len(gone), len(self.scores))
            self.fill({member: score for score, member in kept})
        else:
            for _, member in gone:
                self.remove(member)
        return gone

    def insert(self, pair: Pair) -> None:
        """Into the order only."""
        lasts = self.lasts
        index = bisect_left(lasts, pair)
        if index == len(lasts):
            if not lasts:
                self.chunks.append([pair])
                lasts.append(pair)
                return
            index -= 1
            self.chunks[index].append(pair)
            lasts[index] = pair
        else:
            insort(self.chunks[index], pair)
        del self.starts[index + 1 :]
        if len(self.chunks[index]) > LARGEST_CHUNK:
            self.split(index)

    def split(self, index: int) -> None:
        chunk = self.chunks[index]
        # Members that arrive in order, as times do, fill their chunks; others leave room in both halves.
        is_last = index == len(self.chunks) - 1
        size = LARGEST_CHUNK * 3 // 4 if is_last else LARGEST_CHUNK // 2
        self.chunks.insert(index + 1, chunk[size:])
        del chunk[size:]
        self.lasts.insert(index, chunk[-1])

    def take_out(self, score: float, member: bytes) -> None:
        """Out of the order only."""
        pair = (score, member)
        index = bisect_left(self.lasts, pair)
        chunk = self.chunks[index]
        del chunk[bisect_left(chunk, pair)]
        del self.starts[index + 1 :]
        if len(chunk) < SMALLEST_CHUNK:
            self.shrink(index)
        else:
            self.lasts[index] = chunk[-1]

    def shrink(self, index: int) -> None:
        """A chunk has become small: put it before the next one if that has room, or forget it when it is empty."""
        chunk = self.chunks[index]
        has_room = index + 1 < len(self.chunks) and len(self.chunks[index + 1]) <= LARGEST_CHUNK // 2
        if has_room:
            self.chunks[index + 1][:0] = chunk
        elif chunk:
            self.lasts[index] = chunk[-1]
            return
        del self.chunks[index]
        del self.lasts[index]
        del self.starts[index:]

    # Ranks

    def rank(self, member: bytes) -> int:
        """The rank of a member that is there."""
        pair = (self.scores[member], member)
        index = bisect_left(self.lasts, pair)
        return self.start_of(index) + bisect_left(self.chunks[index], pair)

    def rank_of_score(self, score: float, *, after: bool) -> int:
        """How many members have a lower score; `after`: a score that is not higher."""
        if after:
            if score == inf:
                return len(self.scores)
            score = nextafter(score, inf)
        pair = (score, b"")
        index = bisect_left(self.lasts, pair)
        if index == len(self.lasts):
            return len(self.scores)
        return self.start_of(index) + bisect_left(self.chunks[index], pair)

    def rank_of_member(self, member: bytes, *, after: bool) -> int:
        """How many members stand before this one, there or not, when all have the same score. `after`: itself too."""
        lasts = self.lasts
        index = bisect_right(lasts, member, key=member_of) if after else bisect_left(lasts, member, key=member_of)
        if index == len(lasts):
            return len(self.scores)
        chunk = self.chunks[index]
        place = bisect_right(chunk, member, key=member_of) if after else bisect_left(chunk, member, key=member_of)
        return self.start_of(index) + place

    def start_of(self, index: int) -> int:
        """The rank of a chunk's first pair."""
        starts = self.starts
        known = len(starts)
        if index < known:
            return starts[index]
        start = starts[known - 1] + len(self.chunks[known - 1]) if known else 0
        starts.append(start)
        for place in range(known, index):
            start += len(self.chunks[place])
            starts.append(start)
        return start

    def pairs(self, start: int, stop: int) -> list[Pair]:
        """Score and member of the ranks from `start` up to but not including `stop`."""
        stop = min(stop, len(self.scores))
        if start >= stop:
            return []
        index = self.chunk_at(start)
        offset = start - self.starts[index]
        found = self.chunks[index][offset : offset + stop - start]
        while len(found) < stop - start:
            index += 1
            found += self.chunks[index][: stop - start - len(found)]
        return found

    def chunk_at(self, rank: int) -> int:
        """Which chunk has this rank. Looks no further than it must: the first ranks are asked for most."""
        starts = self.starts
        if not starts:
            starts.append(0)
        last = len(starts) - 1
        if rank < starts[last]:
            return bisect_right(starts, rank) - 1
        while rank >= starts[last] + len(self.chunks[last]):
            starts.append(starts[last] + len(self.chunks[last]))
            last += 1
        return last
