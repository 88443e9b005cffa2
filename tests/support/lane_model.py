"""Random sessions of order per key, and a naive model that tells which replies are right.

A session talks through `run("LANE.TAKE", key, …)` alone, so it can be played with our broker and with functions on real
servers. After each step everything is looked at: who owns what is pending, which keys are ready, what stands in the
lanes. Times do not count: they are over, or far away; `pass_time` lets some of them be over.

Replies are plain: bytes, int, list, None for null, any exception for an error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

Run = Callable[..., Any]

FAR_MS = 3_000_000_000
CONSUMERS = ("ann", "bob", "eve")
KEYS = ("a", "b", "c", "d")
ENDED = b"its consumers ended while they ran it"


@dataclass
class Hold:
    """What a consumer was given with a key and has not settled."""

    consumer: str
    fence: int
    ids: list[bytes]
    is_over: bool = False


@dataclass
class Model:
    max_attempts: int
    skips: bool
    is_keyless_dead: bool
    undone: dict[bytes, list[bytes]] = field(default_factory=dict)  # Per key, in the order they were added.
    held: dict[bytes, Hold] = field(default_factory=dict)
    waiting: dict[bytes, bool] = field(default_factory=dict)  # Whether its time is over.
    parked: set[bytes] = field(default_factory=set)
    attempts: dict[bytes, int] = field(default_factory=dict)  # Begun on the head.
    errors: dict[bytes, bytes] = field(default_factory=dict)
    by_hand: set[bytes] = field(default_factory=set)  # IDs acknowledged with XACK.
    keyless: list[bytes] = field(default_factory=list)
    dead: list[tuple[bytes, bytes, bytes]] = field(default_factory=list)  # ID, attempts, error.
    effects: int = 0
    last_fence: int = 0

    def stop(self, key: bytes) -> None:
        """Whatever the state of a key was, it is ready now."""
        self.held.pop(key, None)
        self.waiting.pop(key, None)
        self.parked.discard(key)

    def restart(self, key: bytes) -> None:
        self.stop(key)
        self.attempts[key], self.errors[key] = 0, b""

    def end_hold(self, key: bytes, *, counts: bool) -> None:
        """The holder lost the key."""
        hold = self.held[key]
        attempts = self.attempts[key] - (not counts)
        self.stop(key)
        if hold.ids[0] in self.by_hand:
            attempts = 0
        self.attempts[key], self.errors[key] = attempts, b""
        if counts and 0 < self.max_attempts <= attempts and self.undone[key]:
            self.poison(key, ENDED)

    def poison(self, key: bytes, error: bytes) -> None:
        self.stop(key)
        if self.skips:
            self.bury(key, error)
        else:
            self.parked.add(key)

    def bury(self, key: bytes, error: bytes) -> None:
        name = self.undone[key].pop(0)
        self.dead.append((name, b"%d" % self.attempts[key], error))
        self.attempts[key], self.errors[key] = 0, b""

    def count_held(self, consumer: str) -> int:
        """Messages that are pending with it."""
        names = [name for hold in self.held.values() if hold.consumer == consumer for name in hold.ids]
        return sum(name not in self.by_hand for name in names)

    def finish(self, key: bytes, count: int) -> None:
        """The first of those given are done."""
        hold = self.held[key]
        for name in hold.ids[:count]:
            if name in self.undone[key]:
                assert self.undone[key][0] == name, "out of order"
                self.undone[key].pop(0)
        del hold.ids[:count]
        self.attempts[key], self.errors[key] = 1, b""
        if not hold.ids:
            self.restart(key)

    def keys_of(self, consumer: str) -> list[bytes]:
        """Those it holds that can be found: something of them is pending with it."""
        mine = [(key, hold) for key, hold in self.held.items() if hold.consumer == consumer]
        return [key for key, hold in mine if any(name not in self.by_hand for name in hold.ids)]

    def pass_over(self) -> None:
        """What a TAKE does first."""
        for key in [key for key, hold in self.held.items() if hold.is_over]:
            self.end_hold(key, counts=True)
        for key in [key for key, is_over in self.waiting.items() if is_over]:
            self.stop(key)


class Session:
    """A server and the model, step by step."""

    def __init__(self, seed: int, run: Run, stream: str) -> None:
        self.random = Random(seed)
        self.run = run
        self.stream = stream
        self.place = (stream, "g")
        self.beside = f"hr:{{{stream}}}:g:"
        self.model = Model(self.random.choice([0, 0, 2]), self.random.random() < 0.5, self.random.random() < 0.5)
        self.sessions: dict[str, int] = {}
        self.old: list[tuple[bytes, int, list[bytes]]] = []  # Key, fence and IDs of every grant.
        self.deleted: set[bytes] = set()
        self.lanes: dict[bytes, list[bytes]] = {}  # And their attempts, when they were last looked at.
        self.attempts: dict[bytes, int] = {}
        self.played: list[Any] = []
        self.ask("XGROUP", "CREATE", stream, "g", "0", "MKSTREAM")
        words = ["KEYFIELDS", 2, "k", "other", "MAXATTEMPTS", self.model.max_attempts]
        words += ["POISON", "SKIP" if self.model.skips else "PARK"]
        words += ["KEYLESS", "DEAD" if self.model.is_keyless_dead else "OWN"]
        self.ask("LANE.CONFIG", *self.place, *words)
        for consumer in CONSUMERS:
            self.register(consumer)
        assert self.ask("LANE.TAKE", *self.who("ann"), "LEASE", FAR_MS, "KEYS", 1, "RUN", 1) == [[], 0]

    def ask(self, *words: Any) -> Any:
        self.played.append(words)
        reply = self.run(*words)
        assert not isinstance(reply, Exception), (words, reply)
        return reply

    def who(self, consumer: str) -> tuple[Any, ...]:
        return (*self.place, consumer, self.sessions[consumer])

    # Steps

    def play(self) -> None:
        steps = {
            self.add: 12, self.wait_as_reader: 4, self.take: 24, self.settle: 32, self.settle_old: 3, self.extend: 3,
            self.extend_only: 2, self.leave: 1, self.register_again: 1, self.park: 2, self.resume: 3, self.rebuild: 1,
            self.pass_time: 3, self.acknowledge_by_hand: 2, self.delete_by_hand: 1,
        }  # fmt: skip
        self.random.choices(list(steps), list(steps.values()))[0]()
        self.look()

    def add(self) -> None:
        for _ in range(self.random.choice([1, 1, 3])):
            key = self.random.choice(KEYS)
            words = self.random.choice(
                [("k", key), ("k", key), ("other", key), ("data", f'{{"k": "{key}"}}'), ("x", "1")]
            )
            name = self.ask("XADD", self.stream, "*", *words)
            lane = key.encode()
            if words[0] == "x":
                if self.model.is_keyless_dead:
                    self.model.keyless.append(name)
                    continue
                lane = b"id:" + name
            self.model.undone.setdefault(lane, []).append(name)

    def wait_as_reader(self) -> None:
        self.ask("XREADGROUP", "GROUP", "g", "master", "COUNT", 1, "STREAMS", self.stream, ">")

    def take(self, consumer: str = "", keys: int = 0, run: int = 0) -> bool:
        """Whether it is worth asking again at once."""
        limit = 0 if keys else self.random.choice([0, 0, 1, 3])
        consumer = consumer or self.random.choice(CONSUMERS)
        keys = keys or self.random.choice([1, 2, 9])
        run = run or self.random.choice([1, 2, 9])
        model = self.model
        words = ("LEASE", FAR_MS, "KEYS", keys, "RUN", run, *(("LIMIT", limit) if limit else ()))
        grants, wait_ms = self.ask("LANE.TAKE", *self.who(consumer), *words)
        model.pass_over()
        if limit:
            keys = min(keys, max(0, limit - model.count_held(consumer)))
        assert len(grants) <= keys
        for key, fence, attempt, error, entries in grants:
            ids = [entry[0] for entry in entries]
            assert key not in model.held and key not in model.waiting and key not in model.parked
            assert 1 <= len(ids) <= run and ids == model.undone[key][: len(ids)], "not the first ones"
            assert (attempt, error) == (model.attempts.get(key, 0) + 1, model.errors.get(key, b"")), (key, ids)
            assert fence > model.last_fence
            model.last_fence = fence
            model.attempts[key] = attempt
            model.held[key] = Hold(consumer, fence, ids)
            self.old.append((key, fence, list(ids)))
        if len(grants) < keys and wait_ms != 0:
            assert not self.free_keys(), "somebody waits for nothing"
        return bool(grants) or wait_ms == 0

    def free_keys(self) -> list[bytes]:
        model = self.model
        taken = {*model.held, *model.waiting, *model.parked}
        return [key for key, ids in model.undone.items() if ids and key not in taken]

    def settle(self) -> None:
        """Some of the keys that are held, each in its own way."""
        held = list(self.model.held)
        chosen = self.random.sample(held, min(len(held), self.random.choice([1, 1, 2, 5])))
        words: list[Any] = []
        after: list[Callable[[], None]] = []
        for key in chosen:
            clause, change = self.clause(key)
            words += clause
            after.append(change)
        if words:
            assert self.ask("LANE.SETTLE", *self.place, *words) == [1] * len(chosen)
        for change in after:
            change()

    def clause(self, key: bytes) -> tuple[list[Any], Callable[[], None]]:
        model, hold = self.model, self.model.held[key]
        head = [key, hold.fence, hold.ids[0]]
        is_plain = hold.ids[0] not in model.by_hand
        way = self.random.choice(["DONE", "DONE", "DONE", "FAIL", "BURY", "PARK", "BACK"])
        if way == "FAIL" and is_plain:
            delay_ms = self.random.choice([0, FAR_MS])
            return ["FAIL", *head, delay_ms, "it failed"], lambda: self.fail(key, is_over=delay_ms == 0)
        if way == "BURY" and is_plain:
            return ["BURY", *head, "bad", "trace"], lambda: self.bury(key)
        if way == "PARK" and is_plain:
            return ["PARK", key, hold.fence, "stop"], lambda: self.park_key(key)
        if way == "BACK":
            return ["BACK", key, hold.fence], lambda: model.end_hold(key, counts=False)
        count = self.random.randint(1, len(hold.ids))
        words = ["DONE", key, hold.fence, count, *hold.ids[:count]]
        model.effects += 1
        return [*words, "EFFECT", 4, "HINCRBY", f"totals{{{self.stream}}}", "n", 1], lambda: model.finish(key, count)

    def fail(self, key: bytes, *, is_over: bool) -> None:
        model = self.model
        model.held.pop(key)
        if 0 < model.max_attempts <= model.attempts[key]:
            model.poison(key, b"it failed")
        else:
            model.errors[key] = b"it failed"
            model.waiting[key] = is_over

    def bury(self, key: bytes) -> None:
        model = self.model
        model.dead.append((model.held[key].ids[0], b"%d" % model.attempts[key], b"bad"))
        model.finish(key, 1)

    def park_key(self, key: bytes) -> None:
        self.model.stop(key)
        self.model.parked.add(key)

    def settle_old(self) -> None:
        """A fence that was given some time ago, or IDs that are not the first."""
        if not self.old:
            return
        key, fence, ids = self.random.choice(self.old)
        hold = self.model.held.get(key)
        if hold is not None and hold.fence == fence:
            if len(hold.ids) > 1:
                assert self.ask("LANE.SETTLE", *self.place, "DONE", key, fence, 1, hold.ids[1]) == [0]
            return
        effect = ("EFFECT", 4, "HINCRBY", f"totals{{{self.stream}}}", "n", 1)
        words = self.random.choice(
            [("DONE", key, fence, 1, ids[0], *effect), ("BACK", key, fence), ("PARK", key, fence, "late")]
        )
        assert self.ask("LANE.SETTLE", *self.place, *words) == [0]

    def extend(self, *, only: bool = False) -> None:
        consumer, model = self.random.choice(CONSUMERS), self.model
        known = [(key, hold) for key, hold in model.held.items() if self.random.random() < 0.6]
        words = [word for key, hold in known for word in (key, hold.fence)]
        option = ["ONLY"] if only else []
        reply = self.ask("LANE.EXTEND", *self.who(consumer), "LEASE", FAR_MS, *option, len(known), *words)
        expected = [int(hold.consumer == consumer and self.is_left(key, hold)) for key, hold in known]
        assert reply == expected
        kept = [key for (key, _), flag in zip(known, expected, strict=True) if flag]
        if only:
            for key in model.keys_of(consumer):
                if key not in kept:
                    model.end_hold(key, counts=False)

    def is_left(self, key: bytes, hold: Hold) -> bool:
        """Whether something that was given is still undone; what is not leaves from the front."""
        count = 0
        while count < len(hold.ids) and hold.ids[count] in self.model.by_hand:
            count += 1
        if count:
            self.model.finish(key, count)
        hold.is_over = False
        return bool(hold.ids)

    def extend_only(self) -> None:
        self.extend(only=True)

    def leave(self) -> None:
        consumer = self.random.choice(CONSUMERS)
        keys = self.model.keys_of(consumer)
        assert self.ask("LANE.LEAVE", *self.who(consumer)) == len(keys)
        for key in keys:
            self.model.end_hold(key, counts=False)
        self.register(consumer)

    def register_again(self) -> None:
        consumer = self.random.choice(CONSUMERS)
        keys = self.model.keys_of(consumer)
        self.register(consumer)
        for key in keys:
            self.model.end_hold(key, counts=True)

    def register(self, consumer: str) -> None:
        self.sessions[consumer], _ = self.ask("LANE.REGISTER", *self.place, consumer)
        assert self.sessions[consumer] > self.model.last_fence
        self.model.last_fence = self.sessions[consumer]

    def park(self) -> None:
        key = self.random.choice(KEYS).encode()
        is_known = self.ask("LANE.INFO", *self.place, "KEY", key) is not None
        assert self.ask("LANE.PARK", *self.place, key) == int(is_known)
        if is_known:
            self.park_key(key)
            self.model.errors[key] = b""

    def resume(self) -> None:
        model = self.model
        keys = [*model.parked, *model.waiting, b"a"]
        key = self.random.choice(sorted(keys))
        skips = self.random.random() < 0.4 and not self.has_deleted(key)
        is_known = key in model.parked or key in model.waiting
        error = (self.facts(key)["error"] or b"skipped") if is_known else b""
        assert self.ask("LANE.RESUME", *self.place, key, *(["SKIP"] if skips else [])) == int(is_known)
        if is_known:
            if skips and any(name not in model.by_hand for name in self.lanes[key]):
                model.attempts[key] = self.attempts[key]
                model.bury(key, error)
            model.restart(key)

    def has_deleted(self, key: bytes) -> bool:
        """Whether entries of the lane are gone from the stream: burying would meet one that nobody can read."""
        return any(name in self.deleted for name in self.lanes.get(key, []))

    def rebuild(self) -> None:
        self.ask("LANE.REBUILD", *self.place)
        for key in self.model.undone:
            self.model.restart(key)

    def pass_time(self) -> None:
        for key in self.ask("ZRANGE", self.beside + "until", 0, -1):
            if self.random.random() < 0.5:
                self.ask("ZADD", self.beside + "until", 1, key)
                if key in self.model.held:
                    self.model.held[key].is_over = True
                else:
                    self.model.waiting[key] = True

    def acknowledge_by_hand(self) -> None:
        rows = self.ask("XPENDING", self.stream, "g", "-", "+", 100)
        names = [row[0] for row in rows if self.key_of(row[0]) is not None]
        if names:
            name = self.random.choice(names)
            key = self.key_of(name)
            assert key is not None
            self.ask("XACK", self.stream, "g", name)
            self.forget(key, name)

    def delete_by_hand(self) -> None:
        """Of keys that nobody holds. What a holder has already is not taken away by this."""
        free = [key for key in self.free_keys() if not self.model.attempts.get(key)]
        if free:
            key = self.random.choice(free)
            name = self.random.choice(self.model.undone[key])
            self.ask("XDEL", self.stream, name)
            self.deleted.add(name)
            self.forget(key, name)

    def forget(self, key: bytes, name: bytes) -> None:
        model = self.model
        if key not in model.held and model.undone[key][0] == name:
            model.attempts[key] = 0
            model.errors[key] = b""
        model.undone[key].remove(name)
        model.by_hand.add(name)

    def key_of(self, name: bytes) -> bytes | None:
        return next((key for key, ids in self.model.undone.items() if name in ids), None)

    # Looking

    def facts(self, key: bytes) -> dict[str, Any]:
        reply = self.run("LANE.INFO", *self.place, "KEY", key)
        return {reply[at].decode(): reply[at + 1] for at in range(0, len(reply), 2)}

    def look(self) -> None:
        """Whether everything the server keeps fits together, and fits the model."""
        model, run = self.model, self.run
        tickets = run("HGETALL", self.beside + "tickets")
        keys = dict.fromkeys(tickets if isinstance(tickets, dict) else tickets[::2])
        facts = {key: self.facts(key) for key in keys}
        self.attempts = {key: fact["attempts"] for key, fact in facts.items()}
        self.lanes = {key: fact["ids"] for key, fact in facts.items()}
        ready = run("LRANGE", self.beside + "ready", 0, -1)
        assert sorted(ready) == sorted(key for key in keys if facts[key]["state"] == b"ready"), self.played
        timed = run("ZRANGE", self.beside + "until", 0, -1)
        assert sorted(timed) == sorted(key for key in keys if facts[key]["state"] in (b"held", b"waiting")), self.played
        for key, fact in facts.items():
            undone = [name for name in fact["ids"] if name not in model.by_hand]
            assert undone == model.undone[key][: len(undone)], self.played
            assert (fact["state"] == b"held") == (key in model.held), (key, self.played)
            assert (fact["state"] == b"waiting") == (key in model.waiting), (key, self.played)
            assert (fact["state"] == b"parked") == (key in model.parked), (key, self.played)
            if fact["state"] == b"held":
                hold = model.held[key]
                assert (fact["fence"], fact["consumer"]) == (hold.fence, hold.consumer.encode()), self.played
                assert fact["ids"][: fact["given"]] == hold.ids, self.played
        assert set(model.held) | set(model.waiting) | model.parked <= set(keys), self.played
        self.look_at_owners(facts)

    def look_at_owners(self, facts: dict[bytes, dict[str, Any]]) -> None:
        laned = {name: key for key, fact in facts.items() for name in fact["ids"]}
        for name, consumer, _, deliveries in self.run("XPENDING", self.stream, "g", "-", "+", 10_000):
            if consumer == b"master":
                assert name not in laned, self.played
                continue
            fact = facts[laned[name]]
            place = fact["ids"].index(name)
            is_given = fact["state"] == b"held" and place < fact["given"]
            assert consumer == (fact["consumer"] if is_given else b"lanes"), (name, self.played)
            if is_given:
                assert deliveries == (fact["attempts"] if place == 0 else 1), (name, self.played)

    # The end

    def drain(self) -> None:
        """Everything is done, and nothing is left of it."""
        model = self.model
        for key in [*model.parked, *model.waiting]:
            assert self.ask("LANE.RESUME", *self.place, key) == 1
            model.restart(key)
        self.rebuild()
        rounds = 0
        while self.take("ann", 9, 9):
            rounds += 1
            assert rounds < 1000, "it never ends"
            for key, hold in list(model.held.items()):
                words = ["DONE", key, hold.fence, len(hold.ids), *hold.ids]
                assert self.ask("LANE.SETTLE", *self.place, *words) == [1]
                model.finish(key, len(hold.ids))
            self.look()
        assert not any(model.undone.values()), self.played
        assert self.run("XPENDING", self.stream, "g")[0] == 0
        left = [name.decode().removeprefix(self.beside) for name in self.run("KEYS", self.beside + "*")]
        assert set(left) <= {"order", "consumers", "dead"}, (left, self.played)
        totals = self.run("HGET", f"totals{{{self.stream}}}", "n")
        assert int(totals or 0) == model.effects, self.played
        self.look_at_dead_letters()

    def look_at_dead_letters(self) -> None:
        expected = [*self.model.dead]
        expected += [(name, b"0", b"no key: the message has none of k, other") for name in self.model.keyless]
        letters = []
        for _, words in self.run("XRANGE", self.beside + "dead", "-", "+"):
            story = dict(zip(words[::2], words[1::2], strict=True))
            letters.append((story[b"hr:id"], story[b"hr:attempts"], story[b"hr:error"]))
        assert sorted(letters) == sorted(expected), self.played


def play_session(seed: int, length: int, run: Run, stream: str) -> None:
    session = Session(seed, run, stream)
    session.look()
    for _ in range(length):
        session.play()
    session.drain()
