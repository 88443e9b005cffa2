"""The engine against a model that is too simple to be wrong: lists, dicts, and a loop for everything.

The model knows no nodes, no cursors, no deliveries shared by entries and no orders kept besides: what it answers is
read off the definition. Both are given the same random commands, with the clock moving in between.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.memory import MemoryBroker

ID = tuple[int, int]
Step = tuple[str, ...]

KEY = "s"
LOWEST: ID = (0, 0)
HIGHEST: ID = (2**64 - 1, 2**64 - 1)


def text(entry_id: ID) -> bytes:
    return b"%d-%d" % entry_id


@dataclass
class Pending:
    consumer: str
    time_ms: int
    count: int
    turn: int  # Which delivery of the group it was: the order among equal times.


@dataclass
class ModelGroup:
    last: ID
    consumers: set[str] = field(default_factory=set)
    pending: dict[ID, Pending] = field(default_factory=dict)


class Model:
    """One stream with its groups."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.entries: dict[ID, list[bytes]] = {}
        self.last: ID = LOWEST
        self.groups: dict[str, ModelGroup] = {}
        self.turns = 0

    # Entries

    def shown(self, entry_id: ID) -> list[Any]:
        return [text(entry_id), self.entries[entry_id]]

    def add(self, entry_id: ID, value: str) -> bytes:
        self.entries[entry_id] = [b"f", value.encode()]
        self.last = entry_id
        return text(entry_id)

    def delete(self, ids: list[ID]) -> int:
        there = [entry_id for entry_id in ids if self.entries.pop(entry_id, None) is not None]
        return len(there)

    def keep_newest(self, count: int) -> int:
        return self.delete(sorted(self.entries)[: max(0, len(self.entries) - count)])

    def keep_from(self, entry_id: ID) -> int:
        return self.delete([known for known in self.entries if known < entry_id])

    def between(self, low: ID, high: ID, count: int) -> list[Any]:
        found = [self.shown(entry_id) for entry_id in sorted(self.entries) if low <= entry_id <= high]
        return found[:count]

    def between_backwards(self, low: ID, high: ID, count: int) -> list[Any]:
        found = [self.shown(entry_id) for entry_id in sorted(self.entries, reverse=True) if low <= entry_id <= high]
        return found[:count]

    # Groups

    def note(self, group: ModelGroup, entry_id: ID, consumer: str, time_ms: int, count: int) -> None:
        self.turns += 1
        group.pending[entry_id] = Pending(consumer, time_ms, count, self.turns)

    def read_new(self, group: ModelGroup, consumer: str, count: int) -> list[Any]:
        new = sorted(entry_id for entry_id in self.entries if entry_id > group.last)[:count]
        for entry_id in new:
            self.note(group, entry_id, consumer, self.now_ms, 1)
            group.last = entry_id
        return [self.shown(entry_id) for entry_id in new]

    def read_history(self, group: ModelGroup, consumer: str, after: ID, count: int) -> list[Any]:
        own = sorted(known for known, held in group.pending.items() if held.consumer == consumer and known > after)
        found: list[Any] = []
        for entry_id in own[:count]:
            if entry_id in self.entries:
                self.note(group, entry_id, consumer, self.now_ms, group.pending[entry_id].count + 1)
                found.append(self.shown(entry_id))
            else:
                found.append([text(entry_id), None])
        return found

    def read_claiming(self, group: ModelGroup, consumer: str, idle_ms: int, count: int) -> list[Any]:
        by_time = sorted(group.pending, key=lambda known: (group.pending[known].time_ms, group.pending[known].turn))
        found: list[Any] = []
        for entry_id in by_time:
            held = group.pending[entry_id]
            idle = self.now_ms - held.time_ms
            if idle >= idle_ms and entry_id in self.entries and len(found) < count:
                found.append([*self.shown(entry_id), idle, held.count])
                self.note(group, entry_id, consumer, self.now_ms, held.count + 1)
        new = self.read_new(group, consumer, count - len(found))
        return found + [[*entry, 0, 0] for entry in new]

    def ack(self, group: ModelGroup, ids: list[ID]) -> int:
        return len([entry_id for entry_id in ids if group.pending.pop(entry_id, None) is not None])

    def claim(self, group: ModelGroup, consumer: str, min_idle_ms: int, ids: list[ID], new_idle_ms: int) -> list[Any]:
        group.consumers.add(consumer)
        claimed: list[Any] = []
        for entry_id in ids:
            held = group.pending.get(entry_id)
            if held is None:
                continue
            if entry_id not in self.entries:
                del group.pending[entry_id]
            elif self.now_ms - held.time_ms >= min_idle_ms:
                self.note(group, entry_id, consumer, self.now_ms - new_idle_ms, held.count + 1)
                claimed.append(self.shown(entry_id))
        return claimed

    def claim_all(self, group: ModelGroup, consumer: str, min_idle_ms: int, start: ID, count: int) -> list[Any]:
        group.consumers.add(consumer)
        claimed: list[Any] = []
        gone: list[bytes] = []
        waiting = sorted(entry_id for entry_id in group.pending if entry_id >= start)
        for looked_at, entry_id in enumerate(waiting):
            if len(claimed) + len(gone) == count or looked_at == 10 * count:
                return [text(entry_id), claimed, gone]
            held = group.pending[entry_id]
            if entry_id not in self.entries:
                del group.pending[entry_id]
                gone.append(text(entry_id))
            elif self.now_ms - held.time_ms >= min_idle_ms:
                self.note(group, entry_id, consumer, self.now_ms, held.count + 1)
                claimed.append(self.shown(entry_id))
        return [b"0-0", claimed, gone]

    def summary(self, group: ModelGroup) -> list[Any]:
        if not group.pending:
            return [0, None, None, None]
        owners = sorted({held.consumer for held in group.pending.values()})
        counts = [[owner.encode(), b"%d" % self.count_of(group, owner)] for owner in owners]
        return [len(group.pending), text(min(group.pending)), text(max(group.pending)), counts]

    def count_of(self, group: ModelGroup, consumer: str) -> int:
        return len([held for held in group.pending.values() if held.consumer == consumer])

    def listing(
        self, group: ModelGroup, low: ID, high: ID, count: int, consumer: str | None, idle_ms: int
    ) -> list[Any]:
        rows: list[Any] = []
        for entry_id in sorted(group.pending):
            held = group.pending[entry_id]
            idle = self.now_ms - held.time_ms
            if low <= entry_id <= high and consumer in (None, held.consumer) and idle >= idle_ms:
                rows.append([text(entry_id), held.consumer.encode(), idle, held.count])
        return rows[:count]

    def drop_consumer(self, group: ModelGroup, consumer: str) -> int:
        group.consumers.discard(consumer)
        return self.ack(group, [known for known, held in group.pending.items() if held.consumer == consumer])


class Pair:
    """The broker and the model, given the same."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.broker = MemoryBroker()
        self.model = Model()
        self.model.now_ms = self.broker.clock.now_ms()
        assert self.broker("CONFIG SET stream-node-max-entries 4") == b"OK"
        self.broker(f"XADD {KEY} 1-0 f v")
        self.model.add((1, 0), "v")

    def same(self, command: str, expected: Any) -> None:
        assert self.broker(command) == expected, command

    def id(self) -> ID:
        top = self.model.last[0]
        return (self.random.randint(max(1, top - 12), top + 1), self.random.choice([0, 0, 1]))

    def ids(self) -> list[ID]:
        return [self.id() for _ in range(self.random.choice([1, 2, 4]))]

    def words(self, ids: list[ID]) -> str:
        return " ".join(text(entry_id).decode() for entry_id in ids)

    def ends(self) -> tuple[ID, ID, str, str]:
        low, high = self.random.choice([LOWEST, self.id()]), self.random.choice([HIGHEST, self.id()])
        return low, high, text(low).decode(), text(high).decode()

    def step(self) -> None:
        random, model = self.random, self.model
        choice = random.randrange(22)
        if choice < 6:
            ms, seq = model.last
            entry_id = random.choice([(ms, seq + 1), (ms + 1, 0), (ms + 1, 0), (ms + 2, 1)])
            value = random.choice(["v", "w" * 50])
            self.same(f"XADD {KEY} {text(entry_id).decode()} f {value}", model.add(entry_id, value))
        elif choice == 6:
            wait_ms = random.choice([1, 50, 100, 200])
            self.broker.clock.advance(ms=wait_ms)
            model.now_ms += wait_ms
        elif choice == 7:
            ids = self.ids()
            self.same(f"XDEL {KEY} {self.words(ids)}", model.delete(ids))
        elif choice == 8:
            count = random.choice([0, 3, 8, 8, 20])
            self.same(f"XTRIM {KEY} MAXLEN {count}", model.keep_newest(count))
        elif choice == 9:
            entry_id = self.id()
            self.same(f"XTRIM {KEY} MINID {text(entry_id).decode()}", model.keep_from(entry_id))
        elif choice == 10:
            low, high, start, end = self.ends()
            count = random.choice([1, 2, 5, 1000])
            self.same(f"XRANGE {KEY} {start} {end} COUNT {count}", model.between(low, high, count))
            self.same(f"XREVRANGE {KEY} {end} {start} COUNT {count}", model.between_backwards(low, high, count))
        elif choice == 11:
            self.group_step()
        else:
            self.consumer_step()

    def group_step(self) -> None:
        random, model = self.random, self.model
        name = random.choice(["g", "h"])
        start = random.choice([LOWEST, self.id(), model.last])
        if name not in model.groups:
            model.groups[name] = ModelGroup(start)
            self.same(f"XGROUP CREATE {KEY} {name} {text(start).decode()}", b"OK")
        elif random.randrange(3) == 0:
            del model.groups[name]
            self.same(f"XGROUP DESTROY {KEY} {name}", 1)
        else:
            model.groups[name].last = start
            self.same(f"XGROUP SETID {KEY} {name} {text(start).decode()}", b"OK")

    def consumer_step(self) -> None:
        random, model = self.random, self.model
        name = random.choice(["g", "g", "h"])
        group = model.groups.get(name)
        if group is None:
            return
        consumer = random.choice(["ann", "bob", "cat"])
        count = random.choice([1, 2, 3, 1000])
        idle_ms = random.choice([0, 50, 100])
        read = f"XREADGROUP GROUP {name} {consumer} COUNT {count}"
        choice = random.randrange(9)
        if choice < 2:
            group.consumers.add(consumer)
            found = model.read_new(group, consumer, count)
            self.same(f"{read} STREAMS {KEY} >", [[KEY.encode(), found]] if found else None)
        elif choice == 2:
            group.consumers.add(consumer)
            after = random.choice([LOWEST, self.id()])
            found = model.read_history(group, consumer, after, count)
            self.same(f"{read} STREAMS {KEY} {text(after).decode()}", [[KEY.encode(), found]])
        elif choice == 3:
            group.consumers.add(consumer)
            found = model.read_claiming(group, consumer, idle_ms, count)
            self.same(f"{read} CLAIM {idle_ms} STREAMS {KEY} >", [[KEY.encode(), found]] if found else None)
        elif choice == 4:
            ids = self.ids()
            self.same(f"XACK {KEY} {name} {self.words(ids)}", model.ack(group, ids))
        elif choice == 5:
            ids = self.ids()
            new_idle_ms = random.choice([0, 70])
            claimed = model.claim(group, consumer, idle_ms, ids, new_idle_ms)
            self.same(f"XCLAIM {KEY} {name} {consumer} {idle_ms} {self.words(ids)} IDLE {new_idle_ms}", claimed)
        elif choice == 6:
            start = random.choice([LOWEST, self.id()])
            claimed = model.claim_all(group, consumer, idle_ms, start, count)
            self.same(f"XAUTOCLAIM {KEY} {name} {consumer} {idle_ms} {text(start).decode()} COUNT {count}", claimed)
        elif choice == 7:
            low, high, start_text, end = self.ends()
            only = random.choice([None, consumer])
            rows = model.listing(group, low, high, count, only, idle_ms)
            if only is not None and only not in group.consumers:
                rows = []
            self.same(f"XPENDING {KEY} {name} IDLE {idle_ms} {start_text} {end} {count} {only or ''}", rows)
        elif random.randrange(4) == 0:
            self.same(f"XGROUP DELCONSUMER {KEY} {name} {consumer}", model.drop_consumer(group, consumer))

    def compare_all(self) -> None:
        model = self.model
        self.same(f"XRANGE {KEY} - +", model.between(LOWEST, HIGHEST, 10**6))
        self.same(f"XREVRANGE {KEY} + -", model.between_backwards(LOWEST, HIGHEST, 10**6))
        self.same(f"XLEN {KEY}", len(model.entries))
        for name, group in model.groups.items():
            self.same(f"XPENDING {KEY} {name}", model.summary(group))
            self.same(f"XPENDING {KEY} {name} - + 1000", model.listing(group, LOWEST, HIGHEST, 1000, None, 0))
            told = self.broker(f"XINFO CONSUMERS {KEY} {name}")
            expected = [(consumer.encode(), model.count_of(group, consumer)) for consumer in sorted(group.consumers)]
            assert [(row[1], row[3]) for row in told] == expected
        told = self.broker(f"XINFO GROUPS {KEY}")
        groups = [model.groups[name] for name in sorted(model.groups)]
        assert [row[7] for row in told] == [text(group.last) for group in groups]


def check(seed: int, steps: int) -> None:
    pair = Pair(Random(seed))
    for _ in range(steps):
        pair.step()
    pair.compare_all()


@settings(max_examples=300)
@given(st.integers(0, 2**32 - 1), st.integers(1, 150))
def test_replies_are_those_of_the_model(seed: int, steps: int) -> None:
    check(seed, steps)


@pytest.mark.long
@settings(max_examples=10_000)
@given(st.integers(0, 2**32 - 1), st.integers(1, 400))
def test_replies_are_those_of_the_model_in_many_sessions(seed: int, steps: int) -> None:
    check(seed, steps)
