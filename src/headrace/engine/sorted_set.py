"""Members of a sorted set: each with a score, in the order of score and then of the members' bytes.

`scores` tells a member's score. The order is a list of chunks of at most LARGEST_CHUNK members; `lasts` has the last
member of each, to find a chunk, and `starts` the rank of its first one, worked out again on demand from the first chunk
that changed. Putting, removing and finding a place are two bisections and a move inside one chunk.

A chunk is two columns, scores as plain doubles and members, and not a list of pairs: half the memory, and a bisection
that stays in one small array. Ranks count from 0 at the lowest score. Scores are never nan. Which kinds of ranges exist
is for commands/ to know: they ask for ranks (`rank_of_score`, `rank_of_member`) and take what lies between two of them.
"""

from array import array
from bisect import bisect_left, bisect_right
from typing import Final, final

LARGEST_CHUNK: Final = 1024  # From 512 to 4096 all are about as fast with a million members.
SMALLEST_CHUNK: Final = 128  # Smaller ones join the next, or few members could stand in very many chunks.
Pair = tuple[float, bytes]


@final
class Chunk:
    """Members in order, and their scores at the same places."""

    __slots__ = ("scores", "members")

    def __init__(self, pairs: list[Pair]) -> None:
        self.scores: array[float] = array("d", [score for score, _ in pairs])
        self.members: list[bytes] = [member for _, member in pairs]

    def place_of(self, score: float, member: bytes) -> int:
        """Where the member stands, or would stand."""
        scores = self.scores
        place = bisect_left(scores, score)
        if place < len(scores) and scores[place] == score:
            place = bisect_left(self.members, member, place, bisect_right(scores, score, place))
        return place

    def insert(self, place: int, score: float, member: bytes) -> None:
        self.scores.insert(place, score)
        self.members.insert(place, member)

    def replace(self, place: int, score: float, member: bytes) -> None:
        self.scores[place] = score
        self.members[place] = member

    def delete(self, place: int) -> None:
        del self.scores[place]
        del self.members[place]

    def cut(self, start: int, stop: int) -> list[Pair]:
        """The pairs from one place up to another."""
        return list(zip(self.scores[start:stop], self.members[start:stop], strict=True))


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
        self.scores: dict[bytes, float] = {member: score for score, member in pairs}
        self.chunks: list[Chunk] = [Chunk(pairs[start : start + half]) for start in range(0, len(pairs), half)]
        self.lasts = Chunk([pairs[min(start + half, len(pairs)) - 1] for start in range(0, len(pairs), half)])
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
        self.insert(score, member)
        return before is None

    def remove(self, member: bytes) -> bool:
        """Whether it was there."""
        score = self.scores.pop(member, None)
        if score is None:
            return False
        self.take_out(score, member)
        return True

    def put_all(self, members: list[bytes], score: float) -> list[bytes]:
        """Give all of them this score; those come back that had another one, or none. Cheap where it is the highest,
        as a time mostly is."""
        score += 0.0
        scores = self.scores
        changed: list[bytes] = []
        for member in members:
            before = scores.get(member)
            if before is None or before != score:
                if before is not None:
                    self.take_out(before, member)
                scores[member] = score
                changed.append(member)
        if not self.append(score, changed):
            for member in changed:
                self.insert(score, member)
        return changed

    def append(self, score: float, members: list[bytes]) -> bool:
        """Into the order only, at its end, in the last chunk. Whether their place is there."""
        if not members or len(members) > LARGEST_CHUNK // 4:
            return False
        if not self.chunks:
            self.chunks.append(Chunk([]))
            self.lasts.insert(0, score, members[0])
        chunk = self.chunks[-1]
        start = bisect_left(chunk.scores, score)
        if (chunk.scores and chunk.scores[-1] > score) or (start == 0 and len(self.chunks) > 1):
            return False
        equals = chunk.members[start:] + members
        equals.sort()
        chunk.members[start:] = equals
        chunk.scores.extend([score] * len(members))
        index = len(self.chunks) - 1
        self.lasts.replace(index, score, equals[-1])
        del self.starts[index + 1 :]
        if len(chunk.members) > LARGEST_CHUNK:
            self.split(index)
        return True

    def remove_all(self, members: list[bytes]) -> list[bytes]:
        """Those that were there come back. Cheap where they stand together, as those do that came together."""
        scores = self.scores
        gone: list[bytes] = []
        by_score: dict[float, list[bytes]] = {}
        for member in members:
            score = scores.pop(member, None)
            if score is not None:
                gone.append(member)
                by_score.setdefault(score, []).append(member)
        for score, group in by_score.items():
            self.take_all_out(score, group)
        return gone

    def take_all_out(self, score: float, members: list[bytes]) -> None:
        """Members of one score, out of the order only."""
        members.sort()
        index = self.lasts.place_of(score, members[0])
        chunk = self.chunks[index]
        place = chunk.place_of(score, members[0])
        end = place + len(members)
        if chunk.members[place:end] != members:
            for member in members:
                self.take_out(score, member)
            return
        del chunk.scores[place:end]
        del chunk.members[place:end]
        self.shortened(index)

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

    def insert(self, score: float, member: bytes) -> None:
        """Into the order only."""
        index = self.lasts.place_of(score, member)
        if index < len(self.chunks):
            chunk = self.chunks[index]
            chunk.insert(chunk.place_of(score, member), score, member)
        elif not self.chunks:
            self.chunks.append(Chunk([(score, member)]))
            self.lasts.insert(0, score, member)
            return
        else:
            index -= 1
            chunk = self.chunks[index]
            chunk.insert(len(chunk.members), score, member)
            self.lasts.replace(index, score, member)
        del self.starts[index + 1 :]
        if len(chunk.members) > LARGEST_CHUNK:
            self.split(index)

    def split(self, index: int) -> None:
        chunk = self.chunks[index]
        # Members that arrive in order, as times do, fill their chunks; others leave room in both halves.
        is_last = index == len(self.chunks) - 1
        size = LARGEST_CHUNK * 3 // 4 if is_last else LARGEST_CHUNK // 2
        self.chunks.insert(index + 1, Chunk(chunk.cut(size, len(chunk.members))))
        del chunk.scores[size:]
        del chunk.members[size:]
        self.lasts.insert(index, chunk.scores[-1], chunk.members[-1])

    def take_out(self, score: float, member: bytes) -> None:
        """Out of the order only."""
        index = self.lasts.place_of(score, member)
        chunk = self.chunks[index]
        chunk.delete(chunk.place_of(score, member))
        self.shortened(index)

    def shortened(self, index: int) -> None:
        """A chunk has lost members."""
        chunk = self.chunks[index]
        del self.starts[index + 1 :]
        if len(chunk.members) < SMALLEST_CHUNK:
            self.shrink(index)
        else:
            self.lasts.replace(index, chunk.scores[-1], chunk.members[-1])

    def shrink(self, index: int) -> None:
        """A chunk has become small: put it before the next one if that has room, or forget it when it is empty."""
        chunk = self.chunks[index]
        following = self.chunks[index + 1] if index + 1 < len(self.chunks) else None
        if following is not None and len(following.members) <= LARGEST_CHUNK // 2:
            following.scores[:0] = chunk.scores
            following.members[:0] = chunk.members
        elif chunk.members:
            self.lasts.replace(index, chunk.scores[-1], chunk.members[-1])
            return
        del self.chunks[index]
        self.lasts.delete(index)
        del self.starts[index:]

    # Ranks

    def rank(self, member: bytes) -> int:
        """The rank of a member that is there."""
        score = self.scores[member]
        index = self.lasts.place_of(score, member)
        return self.start_of(index) + self.chunks[index].place_of(score, member)

    def rank_of_score(self, score: float, *, after: bool) -> int:
        """How many members have a lower score; `after`: a score that is not higher."""
        lasts = self.lasts.scores
        index = bisect_right(lasts, score) if after else bisect_left(lasts, score)
        if index == len(self.chunks):
            return len(self.scores)
        scores = self.chunks[index].scores
        return self.start_of(index) + (bisect_right(scores, score) if after else bisect_left(scores, score))

    def rank_of_member(self, member: bytes, *, after: bool) -> int:
        """How many members stand before this one, there or not, when all have the same score. `after`: itself too."""
        lasts = self.lasts.members
        index = bisect_right(lasts, member) if after else bisect_left(lasts, member)
        if index == len(self.chunks):
            return len(self.scores)
        members = self.chunks[index].members
        return self.start_of(index) + (bisect_right(members, member) if after else bisect_left(members, member))

    def start_of(self, index: int) -> int:
        """The rank of a chunk's first member."""
        starts = self.starts
        if not starts:
            starts.append(0)
        for place in range(len(starts) - 1, index):
            starts.append(starts[place] + len(self.chunks[place].members))
        return starts[index]

    def pairs(self, start: int, stop: int) -> list[Pair]:
        """Score and member of the ranks from `start` up to but not including `stop`."""
        stop = min(stop, len(self.scores))
        if start >= stop:
            return []
        index = self.chunk_at(start)
        offset = start - self.starts[index]
        found = self.chunks[index].cut(offset, offset + stop - start)
        while len(found) < stop - start:
            index += 1
            found += self.chunks[index].cut(0, stop - start - len(found))
        return found

    def chunk_at(self, rank: int) -> int:
        """Which chunk has this rank. Looks no further than it must: the first ranks are asked for most."""
        starts = self.starts
        last = max(0, len(starts) - 1)
        if rank < self.start_of(last):
            return bisect_right(starts, rank) - 1
        while rank >= starts[last] + len(self.chunks[last].members):
            last += 1
            self.start_of(last)
        return last
