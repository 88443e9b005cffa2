"""Random sessions of worker steps, and a naive model of what they answer.

A session is played by several parties: the model, our broker, real servers with functions. Entries are numbers in the
order they were added, because every server gives IDs of its own; so replies are compared as numbers. Time does not
count: a time is over, or far away, and `pass_time` lets all of them be over.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from headrace.client.worker_keys import group_keys, stream_keys

from .worker_rows import WorkerSteps

CONSUMERS = ("ann", "ann", "bob")
FAR_MS = 4_000_000_000_000  # Told apart from every time that is over by its size.
UNKNOWN = 999_999  # The number of an entry that never was.

Op = tuple[Any, ...]


def random_op(random: Random, known: int) -> Op:
    """One step of a session with so many entries."""
    consumer = random.choice(CONSUMERS)
    numbers = [random_number(random, known) for _ in range(random.choice([1, 1, 2, 3, 5]))]
    return random.choice(
        [
            ("add",), ("add",), ("add",), ("later",), ("read", consumer, random.choice([1, 2, 5])),
            ("read", consumer, random.choice([1, 2, 5])), ("claim", consumer, numbers), ("claim", consumer, numbers),
            ("delete", numbers[:1]), ("start", consumer, numbers), ("start", consumer, numbers, True),
            ("extend", consumer, numbers), ("release", consumer, numbers), ("release", consumer, numbers),
            ("due", consumer), ("due", consumer), ("sweep",), ("pass_time",), ("read_other",), ("ack_other", numbers),
            *[("settle", consumer, random.randrange(8) == 0, random_clauses(random, known)) for _ in range(6)],
        ]
    )  # fmt: skip


def random_number(random: Random, known: int) -> int:
    """An entry that may well be there: rather a late one."""
    return UNKNOWN if not known or random.randrange(20) == 0 else max(0, known - 1 - random.choice([0, 1, 2, 3, 5, 9]))


def random_clauses(random: Random, known: int) -> list[Op]:
    clauses: list[Op] = []
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        way = random.randrange(6)
        number = random_number(random, known)
        if way == 0:
            clauses.append(("retry", number, random.choice([0, FAR_MS]), random.randrange(1, 5), random.choice("xy ")))
        elif way == 1:
            clauses.append(("bury", number, "bad", random.randrange(1, 5)))
        else:
            numbers = [random_number(random, known) for _ in range(random.choice([1, 1, 2, 3]))]
            adds = random.choice([0, 0, 1, 2])
            effects = [("a", random.randrange(-5, 6)) for _ in range(random.choice([0, 0, 1, 2]))]
            clauses.append(("ack", numbers, adds, effects))
    return clauses


# Servers


class Server:
    """A server, asked in words; it answers in numbers."""

    def __init__(self, steps: WorkerSteps, key: str) -> None:
        self.steps = steps
        self.key = key
        self.target = f"next{{{key}}}"
        self.totals = f"totals{{{key}}}"
        self.names: list[bytes] = []
        self.added = 0
        for group in ("g", "h"):
            steps("XGROUP", "CREATE", key, group, "0", "MKSTREAM")

    def name_of(self, number: int) -> bytes:
        return self.names[number] if number < len(self.names) else b"5-%d" % number

    def learn(self) -> None:
        """The names of entries that are new."""
        last = b"(" + self.names[-1] if self.names else b"-"
        self.names += [entry[0] for entry in self.steps("XRANGE", self.key, last, "+")]

    def play(self, op: Op) -> Any:
        verb, *words = op
        reply = getattr(self, verb)(*words)
        self.learn()
        return reply

    def numbers(self, entries: Any) -> list[int]:
        self.learn()
        return [self.names.index(entry[0]) for entry in entries]

    def add(self) -> None:
        self.added += 1
        self.steps("XADD", self.key, "*", "n", self.added)

    def later(self) -> Any:
        self.added += 1
        return self.steps("HR.ADD", self.key, "DELAY", FAR_MS, "FIELDS", 2, "n", self.added)

    def pass_time(self) -> None:
        for times in (group_keys(self.key, "g").due, stream_keys(self.key).delayed):
            for member in self.steps("ZRANGE", times, 0, -1):
                self.steps("ZADD", times, 1, member)

    def read(self, consumer: str, count: int, group: str = "g") -> list[int]:
        words = ("XREADGROUP", "GROUP", group, consumer, "COUNT", count, "STREAMS", self.key, ">")
        reply = self.steps(*words)
        return self.numbers(reply[0][1]) if reply else []

    def read_other(self) -> list[int]:
        return self.read("eve", 3, "h")

    def ack_other(self, numbers: list[int]) -> Any:
        return self.steps("HR.SETTLE", self.key, "h", "eve", "ACK", len(numbers), *map(self.name_of, numbers))

    def claim(self, consumer: str, numbers: list[int]) -> list[int]:
        reply = self.steps("XCLAIM", self.key, "g", consumer, 0, *[self.name_of(number) for number in numbers])
        return self.numbers(reply)

    def delete(self, numbers: list[int]) -> Any:
        return self.steps("XDEL", self.key, *[self.name_of(number) for number in numbers])

    def start(self, consumer: str, numbers: list[int], is_recorded: bool = False) -> Any:
        words = ["RECORDED"] if is_recorded else []
        rows = self.steps("HR.START", self.key, "g", consumer, *words, *[self.name_of(number) for number in numbers])
        return [(attempt if attempt >= 0 else "wait", error) for attempt, error in rows]

    def extend(self, consumer: str, numbers: list[int]) -> Any:
        return self.steps("HR.EXTEND", self.key, "g", consumer, *[self.name_of(number) for number in numbers])

    def release(self, consumer: str, numbers: list[int]) -> Any:
        return self.steps("HR.RELEASE", self.key, "g", consumer, *[self.name_of(number) for number in numbers])

    def sweep(self) -> list[bytes]:
        """Who is left. Servers do not agree on whether reading nothing makes a consumer."""
        removed = self.steps("HR.SWEEP", self.key, "g", "IDLE", 0)
        left = [dict(in_pairs(row))[b"name"] for row in self.steps("XINFO", "CONSUMERS", self.key, "g")]
        assert not set(removed) & set(left)
        return sorted(left)

    def due(self, consumer: str) -> Any:
        entries, wait_ms, again = self.steps("HR.DUE", self.key, "g", consumer, "COUNT", 1000)
        return sorted(self.numbers(entries)), (wait_ms > 0) - (wait_ms < 0), again

    def settle(self, consumer: str, keeps: bool, clauses: list[Op]) -> Any:
        words: list[Any] = ["KEEP"] if keeps else []
        for verb, *rest in clauses:
            if verb == "retry":
                words += ["RETRY", self.name_of(rest[0]), *rest[1:]]
            elif verb == "bury":
                words += ["BURY", self.name_of(rest[0]), rest[1], "trace", rest[2]]
            else:
                numbers, adds, effects = rest
                words += ["ACK", len(numbers), *[self.name_of(number) for number in numbers]]
                for fields, amount in effects:
                    words += ["EFFECT", 4, "HINCRBY", self.totals, fields, amount]
                words += ["ADD", self.target, "FIELDS", 2, "from", numbers[0]] * adds
        return self.steps("HR.SETTLE", self.key, "g", consumer, *words)

    def state(self) -> dict[str, Any]:
        keys, steps = group_keys(self.key, "g"), self.steps
        found: dict[str, Any] = {"entries": self.numbers(steps("XRANGE", self.key, "-", "+"))}
        for group in ("g", "h"):
            rows = steps("XPENDING", self.key, group, "-", "+", 10_000)
            found[group] = [(self.names.index(row[0]), row[1].decode(), row[3]) for row in rows]
        times = steps("ZRANGE", keys.due, 0, -1, "WITHSCORES")
        found["due"] = sorted((self.names.index(name), float(ms) > 3e12) for name, ms in in_pairs(times))
        records = steps("HGETALL", keys.attempts)
        found["attempts"] = sorted((self.names.index(name), record) for name, record in in_pairs(records))
        found["delayed"] = steps("ZCARD", stream_keys(self.key).delayed)
        found["target"] = [entry[1][1] for entry in steps("XRANGE", self.target, "-", "+")]
        found["dead"] = [self.letter(entry[1]) for entry in steps("XRANGE", keys.dead, "-", "+")]
        found["totals"] = steps("HGET", self.totals, "a")
        return found

    def letter(self, words: list[bytes]) -> tuple[int, bytes, bool]:
        """Which entry, its attempts, and whether its own fields are there."""
        fields = dict(in_pairs(words))
        return self.names.index(fields[b"hr:id"]), fields[b"hr:attempts"], b"n" in fields


def in_pairs(words: Any) -> list[Any]:
    return list(zip(words[::2], words[1::2], strict=True))


# The model


@dataclass
class Held:
    consumer: str
    deliveries: int


@dataclass
class Record:
    count: int
    deliveries: int = 0
    error: str = ""

    def text(self) -> bytes:
        numbers = f"{self.count} {self.deliveries}" if self.deliveries else f"{self.count}"
        return (f"{numbers}\n{self.error}" if self.error else numbers).encode()


@dataclass
class Model:
    """The same promises, kept in the simplest way."""

    entries: set[int] = field(default_factory=set)
    known: int = 0
    delayed: list[bool] = field(default_factory=list)  # Whether the time is over, in the order they were added.
    last: dict[str, int] = field(default_factory=lambda: {"g": 0, "h": 0})  # So many entries were passed.
    held: dict[str, dict[int, Held]] = field(default_factory=lambda: {"g": {}, "h": {}})
    times: dict[int, bool] = field(default_factory=dict)  # Whether it is far away.
    records: dict[int, Record] = field(default_factory=dict)
    target: list[bytes] = field(default_factory=list)
    dead: list[tuple[int, bytes, bool]] = field(default_factory=list)
    totals: int | None = None

    def play(self, op: Op) -> Any:
        verb, *words = op
        return getattr(self, verb)(*words)

    def add(self) -> None:
        self.entries.add(self.known)
        self.known += 1

    def later(self) -> Any:
        self.delayed.append(False)
        return [None, 1]

    def pass_time(self) -> None:
        self.delayed = [True] * len(self.delayed)
        self.times = dict.fromkeys(self.times, False)

    def read(self, consumer: str, count: int, group: str = "g") -> list[int]:
        numbers = sorted(number for number in self.entries if number >= self.last[group])[:count]
        for number in numbers:
            self.held[group][number] = Held(consumer, 1)
            self.last[group] = number + 1
        return numbers

    def read_other(self) -> list[int]:
        return self.read("eve", 3, "h")

    def ack_other(self, numbers: list[int]) -> list[int]:
        return [self.ack("h", number) for number in numbers]

    def ack(self, group: str, number: int, *, keeps: bool = False) -> int:
        if self.held[group].pop(number, None) is None:
            return 0
        is_needed = any(self.last[name] <= number or number in self.held[name] for name in ("g", "h"))
        if not keeps and not is_needed:
            self.entries.discard(number)
        return 1

    def claim(self, consumer: str, numbers: list[int]) -> list[int]:
        claimed = []
        for number in numbers:
            held = self.held["g"].get(number)
            if held is None:
                continue
            if number not in self.entries:
                del self.held["g"][number]
                continue
            self.held["g"][number] = Held(consumer, held.deliveries + 1)
            claimed.append(number)
        return claimed

    def delete(self, numbers: list[int]) -> int:
        before = len(self.entries)
        self.entries.difference_update(numbers)
        return before - len(self.entries)

    def is_ours(self, consumer: str, number: int) -> bool:
        held = self.held["g"].get(number)
        return held is not None and held.consumer == consumer

    def start(self, consumer: str, numbers: list[int], is_recorded: bool = False) -> Any:
        return [self.start_one(consumer, number, is_recorded) for number in numbers]

    def start_one(self, consumer: str, number: int, is_recorded: bool) -> Any:
        if not self.is_ours(consumer, number):
            return 0, b""
        if self.times.get(number):
            return "wait", b""
        self.times.pop(number, None)
        deliveries = self.held["g"][number].deliveries
        record = self.records.get(number)
        if record is None:
            record = Record(1 if deliveries == 1 or is_recorded else 2)
        elif record.deliveries != deliveries:
            record.count += 1
        record.deliveries = deliveries
        self.records[number] = record
        return record.count, record.error.encode()

    def extend(self, consumer: str, numbers: list[int]) -> list[int]:
        return [int(self.is_ours(consumer, number)) for number in numbers]

    def release(self, consumer: str, numbers: list[int]) -> list[int]:
        return [self.release_one(consumer, number) for number in numbers]

    def release_one(self, consumer: str, number: int) -> int:
        if not self.is_ours(consumer, number):
            return 0
        held, record = self.held["g"][number], self.records.get(number)
        if number in self.times:
            return 1
        if number not in self.entries:
            del self.held["g"][number]
            self.records.pop(number, None)
            return 1
        if record is not None:
            record.count -= record.deliveries == held.deliveries
            record.deliveries = 0
        elif held.deliveries == 1:
            self.records[number] = Record(0)
        held.deliveries = max(1, held.deliveries - 1)
        self.times[number] = False
        return 1

    def sweep(self) -> list[bytes]:
        for number in [number for number in self.held["g"] if number not in self.entries]:
            del self.held["g"][number]
            self.times.pop(number, None)
            self.records.pop(number, None)
        if not self.held["g"]:
            self.times.clear()
            self.records.clear()
        return sorted({held.consumer.encode() for held in self.held["g"].values()})

    def due(self, consumer: str) -> Any:
        for _ in range(sum(self.delayed)):
            self.add()
        self.delayed = [is_over for is_over in self.delayed if not is_over]
        numbers = sorted(number for number, is_far in self.times.items() if not is_far)
        given = self.claim(consumer, numbers) if numbers else []
        for number in numbers:
            del self.times[number]
            if number not in given:
                self.records.pop(number, None)
        return given, 1 if self.times or self.delayed else -1, 0

    def settle(self, consumer: str, keeps: bool, clauses: list[Op]) -> list[int]:
        reply: list[int] = []
        done: list[int] = []
        taken: set[int] = set()
        for verb, *rest in clauses:
            numbers = rest[0] if verb == "ack" else [rest[0]]
            flags = []
            for number in numbers:
                flags.append(int(self.is_ours(consumer, number) and number not in taken))
                taken.update([number] if flags[-1] else [])
            if verb == "ack" and (rest[1] or rest[2]) and not all(flags):
                taken.difference_update(number for number, flag in zip(numbers, flags, strict=True) if flag)
                flags = [0] * len(flags)
            reply += flags
            if not any(flags):
                continue
            if verb == "retry":
                self.times[numbers[0]] = rest[1] > 0
                self.records[numbers[0]] = Record(rest[2], 0, rest[3])
                continue
            if verb == "bury":
                self.dead.append((numbers[0], b"%d" % rest[2], numbers[0] in self.entries))
            elif all(flags):
                self.target += [b"%d" % numbers[0]] * rest[1]
                for _, amount in rest[2]:
                    self.totals = (self.totals or 0) + amount
            done += [number for number, flag in zip(numbers, flags, strict=True) if flag]
        for number in done:
            self.ack("g", number, keeps=keeps)
            self.times.pop(number, None)
            self.records.pop(number, None)
        return reply

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = {"entries": sorted(self.entries)}
        for group in ("g", "h"):
            rows = sorted(self.held[group].items())
            found[group] = [(number, held.consumer, held.deliveries) for number, held in rows]
        found["due"] = sorted(self.times.items())
        found["attempts"] = sorted((number, record.text()) for number, record in self.records.items())
        found["delayed"] = len(self.delayed)
        found["target"] = self.target
        found["dead"] = self.dead
        found["totals"] = None if self.totals is None else b"%d" % self.totals
        return found


def play_session(seed: int, length: int, server: Server) -> None:
    """The same session with the server and the model: all replies, and what is left, must be the same."""
    random, model = Random(seed), Model()
    played: list[Op] = []
    for _ in range(length):
        op = random_op(random, model.known)
        played.append(op)
        assert server.play(op) == model.play(op), played
    assert server.state() == model.state(), played
