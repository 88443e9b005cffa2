"""Reliable queues against a model that keeps plain lists and searches them from end to end.

The model is written from the promises and not from the engine. Random sessions, with a clock that also goes back, must
give the same replies; at the end the records alone must make the same memory, and a queue must survive its payload.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.engine.dump import dump_value, load_value
from support.memory import MemoryBroker, Refusal
from support.replay import contents_of, state_of

Id = tuple[int, int]
PAUSED = Refusal("PAUSED The queue takes no new elements until RQ.PAUSE lets them in again.")
KEYS = ["q", "q", "q", "r"]
DEAD = "r"


def text(name: Id) -> bytes:
    return b"%d-%d" % name


@dataclass
class Item:
    id: Id
    body: bytes
    retry: int = 0
    most: int = 0
    dead: str = ""
    expires: int = 0
    ready: int = 0
    deliveries: int = 0
    delivered: tuple[int, int] = (0, 0)  # Time, and which delivery of the queue it was.


@dataclass
class Model:
    """One queue."""

    last: Id = (0, 0)
    fresh: list[Item] = field(default_factory=list)
    returned: list[Item] = field(default_factory=list)
    pending: list[Item] = field(default_factory=list)
    delayed: list[Item] = field(default_factory=list)
    takes_in: bool = True
    gives_out: bool = True
    events: int = 0
    nacks: int = 0
    redeliveries: int = 0
    dead: int = 0
    expired: int = 0

    def due(self, item: Item) -> int:
        """When something happens to it by itself; 0: never."""
        if item in self.pending:
            return item.delivered[0] + item.retry if item.retry else 0
        if item in self.delayed:
            return min(item.ready, item.expires or item.ready)
        return item.expires if item in self.fresh else 0

    def advance(self, now: int) -> None:
        while True:
            items = self.fresh + self.pending + self.delayed
            waiting = sorted((self.due(item), item.id) for item in items if 0 < self.due(item) <= now)
            if not waiting:
                return
            when, name = waiting[0]
            [item] = [item for item in items if item.id == name]
            if item in self.pending:
                self.pending.remove(item)
                self.returned.append(item)
            elif item.expires and item.expires <= when:
                (self.fresh if item in self.fresh else self.delayed).remove(item)
                self.expired += 1
            else:
                self.delayed.remove(item)
                (self.returned if item.deliveries else self.fresh).append(item)

    def push(self, now: int, body: bytes, **options: Any) -> bytes:
        self.last = (now, 1) if now > self.last[0] else (self.last[0], self.last[1] + 1)
        item = Item(self.last, body, **options)
        (self.delayed if item.ready else self.fresh).append(item)
        return text(item.id)

    def undelivered(self) -> list[Item]:
        return sorted(self.returned, key=lambda item: item.id) + self.fresh

    def deliver(self, item: Item, now: int) -> None:
        for place in (self.fresh, self.returned, self.pending):
            if item in place:
                place.remove(item)
        self.redeliveries += 1 if item.deliveries else 0
        item.deliveries += 1
        item.expires = 0
        self.events += 1
        item.delivered = (now, self.events)
        self.pending.append(item)

    def by_time(self) -> list[Item]:
        return sorted(self.pending, key=lambda item: item.delivered)

    def find_pending(self, name: bytes) -> Item | None:
        return next((item for item in self.pending if text(item.id) == name), None)


class Pair:
    """Our broker and the model, given the same commands."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.broker = MemoryBroker(journaling=True)
        self.queues: dict[str, Model] = {}
        self.names: list[bytes] = [b"1-1"]
        self.sent: list[str] = []

    @property
    def now(self) -> int:
        return self.broker.clock.now_ms()

    def same(self, line: str, expected: Any) -> None:
        self.sent.append(line)
        assert self.broker(line) == expected, "\n".join(self.sent)

    def find(self, key: str) -> Model | None:
        queue = self.queues.get(key)
        if queue is not None:
            queue.advance(self.now)
        return queue

    def step(self) -> None:
        random = self.random
        if random.randrange(3) == 0:
            self.broker.clock.advance(ms=random.choice([1, 1, 7, 20, 20, 50, -1, -15]))
        steps = [self.push, self.push, self.push_with, self.push_with, self.pop, self.pop, self.pop, self.ack]
        steps += [self.nack, self.nack, self.extend, self.recover, self.recover, self.look, self.look, self.rare]
        random.choice(steps)()

    # Steps

    def push(self) -> None:
        key = self.random.choice(KEYS)
        words = [f"m{self.random.randrange(1000)}" for _ in range(self.random.choice([1, 1, 2, 5]))]
        self.push_words(f"RQ.PUSH {key} {' '.join(words)}", key, words, {})

    def push_with(self) -> None:
        random, now = self.random, self.now
        line, options = "RQ.PUSHX q", {}
        if random.randrange(3) == 0:
            delay = random.choice([0, 1, 10, 30])
            line += f" DELAY {delay}"
            options["ready"] = now + delay if delay else 0
        if random.randrange(3) == 0:
            ttl = random.choice([1, 10, 30])
            line += f" TTL {ttl}"
            options["expires"] = now + ttl
        if random.randrange(2) == 0:
            options["retry"] = random.choice([1, 10, 30])
            line += f" RETRY {options['retry']}"
        if random.randrange(2) == 0:
            options["most"] = random.choice([1, 2, 3])
            line += f" MAXDELIVERIES {options['most']}"
            if random.randrange(2) == 0:
                options["dead"] = DEAD  # type: ignore[assignment]
                line += f" DEADLETTER {DEAD}"
        words = [f"x{random.randrange(1000)}" for _ in range(random.choice([1, 2, 4]))]
        self.push_words(f"{line} ELEMENTS {len(words)} {' '.join(words)}", "q", words, options)

    def push_words(self, line: str, key: str, words: list[str], options: dict[str, Any]) -> None:
        queue = self.find(key)
        if queue is None:
            queue = self.queues[key] = Model()
        if not queue.takes_in:
            self.same(line, PAUSED)
            return
        names = [queue.push(self.now, word.encode(), **options) for word in words]
        self.names += names
        self.same(line, names)

    def pop(self) -> None:
        keys = self.random.choice([["q"], ["q"], ["q", "r"], ["r", "q"], ["missing", "q"]])
        count = self.random.choice([1, 1, 2, 3, 50])
        for key in keys:
            self.find(key)
        rows: list[list[bytes]] = []
        for key in keys:
            queue = self.find(key)
            if queue is not None and queue.gives_out:
                rows += self.pop_from(key, queue, count - len(rows))
        self.same(f"RQ.POP COUNT {count} {' '.join(keys)}", rows)

    def pop_from(self, key: str, queue: Model, count: int) -> list[list[bytes]]:
        rows: list[list[bytes]] = []
        for item in queue.undelivered():
            if len(rows) == count:
                break
            if item.most and item.deliveries >= item.most:
                queue.returned.remove(item)
                self.bury(queue, item)
            else:
                queue.deliver(item, self.now)
                rows.append([key.encode(), text(item.id), item.body])
        return rows

    def bury(self, queue: Model, item: Item) -> None:
        queue.dead += 1
        if item.dead:
            if self.find(item.dead) is None:
                self.queues[item.dead] = Model()
            self.names.append(self.queues[item.dead].push(self.now, item.body))

    def some_names(self) -> list[bytes]:
        queue = self.queues.get("q")
        likely = [text(item.id) for item in queue.pending] if queue else []
        return [self.random.choice(likely or self.names) for _ in range(self.random.choice([1, 1, 2, 4]))]

    def ack(self) -> None:
        key, names = self.random.choice(KEYS), self.some_names()
        queue = self.find(key)
        line = f"RQ.ACK {key} {b' '.join(names).decode()}"
        if queue is None:
            self.same(line, None)
            return
        done = []
        for name in names:
            item = queue.find_pending(name)
            if item is not None:
                queue.pending.remove(item)
                done.append(name)
        self.same(line, done)

    def nack(self) -> None:
        key, names = self.random.choice(KEYS), self.some_names()
        delay = self.random.choice([0, 0, 5, 25])
        queue = self.find(key)
        line = f"RQ.NACK {key} {f'DELAY {delay} ' if delay else ''}{b' '.join(names).decode()}"
        if queue is None:
            self.same(line, None)
            return
        done = []
        for name in names:
            item = queue.find_pending(name)
            if item is not None:
                queue.pending.remove(item)
                item.ready = self.now + delay if delay else 0
                (queue.delayed if delay else queue.returned).append(item)
                queue.nacks += 1
                done.append(name)
        self.same(line, done)

    def extend(self) -> None:
        names = list(dict.fromkeys(self.some_names()))
        queue = self.find("q")
        line = f"RQ.EXTEND q {b' '.join(names).decode()}"
        if queue is None:
            self.same(line, None)
            return
        done = []
        for name in names:
            item = queue.find_pending(name)
            if item is not None:
                queue.events += 1
                item.delivered = (self.now, queue.events)
                done.append(name)
        self.same(line, done)

    def recover(self) -> None:
        key = self.random.choice(KEYS)
        count, elapsed = self.random.choice([0, 1, 2, 50]), self.random.choice([0, 0, 1, 10, 30])
        queue = self.find(key)
        line = f"RQ.RECOVER {key} {count} {elapsed}"
        if queue is None:
            self.same(line, None)
            return
        rows: list[list[bytes]] = []
        for item in queue.by_time() if queue.gives_out else []:
            if len(rows) == count or max(0, self.now - item.delivered[0]) < elapsed:
                break
            if item.most and item.deliveries >= item.most:
                queue.pending.remove(item)
                self.bury(queue, item)
            else:
                queue.deliver(item, self.now)
                rows.append([text(item.id), item.body])
        self.same(line, rows)

    def look(self) -> None:
        key = self.random.choice(KEYS)
        start, count = self.random.choice([0, 1, 3, -1, -2, -4]), self.random.choice([1, 2, 10])
        queue = self.find(key)
        if queue is None:
            self.same(f"RQ.INFO {key}", Refusal("EMPTYKEY There is no queue at this key"))
            return
        undelivered = [[text(item.id), item.body] for item in queue.undelivered()]
        pending = [
            [text(item.id), item.body, item.delivered[0], max(0, self.now - item.delivered[0]), item.deliveries]
            for item in queue.by_time()
        ]
        delayed = [
            [text(item.id), item.body, item.ready, item.ready - self.now, item.deliveries]
            for item in sorted(queue.delayed, key=lambda item: (item.ready, item.id))
        ]
        for view, rows in (("", undelivered), ("PENDING ", pending), ("DELAYED ", delayed)):
            first = start if start >= 0 else start + len(rows)
            self.same(f"RQ.INSPECT {key} {view}{start} {count}", rows[first : first + count] if first >= 0 else [])
        direction = ["all", "out", "in", "none"][2 * queue.gives_out + queue.takes_in]
        facts = {
            "undelivered": len(undelivered), "delivered": len(pending), "delayed": len(delayed), "nacks": queue.nacks,
            "redeliveries": queue.redeliveries, "dead": queue.dead, "expired": queue.expired,
            "paused": direction.encode(), "last-id": text(queue.last),
        }  # fmt: skip
        self.same(f"RQ.STATS {key}", [part for name, value in facts.items() for part in (name.encode(), value)])

    def rare(self) -> None:
        way = self.random.randrange(8)
        if way == 0:
            self.same("DEL q", 1 if self.queues.pop("q", None) is not None else 0)
        elif way < 3:
            direction = self.random.choice(["IN", "OUT", "ALL", "NONE"])
            queue = self.find("q")
            if queue is None and direction != "NONE":
                queue = self.queues["q"] = Model()
            if queue is not None:
                queue.takes_in = direction in ("OUT", "NONE")
                queue.gives_out = direction in ("IN", "NONE")
            self.same(f"RQ.PAUSE q {direction}", b"OK")
        elif way < 6:
            queue = self.find("q")
            if queue is not None:
                queue.takes_in = queue.gives_out = True
            self.same("RQ.PAUSE q NONE", b"OK")
        else:
            self.same("COPY q q2 REPLACE", 1 if "q" in self.queues else 0)
            self.same("RENAME q2 q", b"OK" if "q" in self.queues else Refusal("ERR no such key"))


def check(seed: int, steps: int) -> None:
    pair = Pair(Random(seed))
    for _ in range(steps):
        pair.step()
    state = pair.broker.state
    assert contents_of(state_of(state.records)) == contents_of(state), "\n".join(pair.sent)
    for value in state.databases[0].values.values():
        payload = dump_value(value)
        assert dump_value(load_value(payload, state.settings.limits)) == payload


@settings(max_examples=300)
@given(st.integers(0, 2**32 - 1), st.integers(1, 120))
def test_replies_are_those_of_the_model_and_records_make_the_same_queues(seed: int, steps: int) -> None:
    check(seed, steps)


@pytest.mark.long
@settings(max_examples=10_000)
@given(st.integers(0, 2**32 - 1), st.integers(1, 400))
def test_replies_are_those_of_the_model_in_many_sessions(seed: int, steps: int) -> None:
    check(seed, steps)
