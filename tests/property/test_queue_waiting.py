"""Who waits for reliable queues, and who is served: random sessions against one list of clients in their order."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from support.memory import MemoryBroker

KEYS = ["a", "b"]
CLIENTS = 6
Reply = list[bytes] | None


@dataclass
class Waiting:
    client: int
    keys: list[str]
    count: int
    deadline: int  # 0: none.


class Model:
    def __init__(self) -> None:
        self.now = 0
        self.ready: dict[str, list[bytes]] = {key: [] for key in KEYS}
        self.delayed: dict[str, list[tuple[int, int, bytes]]] = {key: [] for key in KEYS}
        self.waiting: list[Waiting] = []
        self.replies: dict[int, list[Reply]] = {}

    def take(self, keys: list[str], count: int) -> list[bytes]:
        found: list[bytes] = []
        for key in keys:
            while self.ready[key] and len(found) < count:
                found.append(self.ready[key].pop(0))
        return found

    def serve(self) -> None:
        """Everybody in turn, longest first."""
        for one in list(self.waiting):
            found = self.take(one.keys, one.count)
            if found:
                self.waiting.remove(one)
                self.replies.setdefault(one.client, []).append(found)

    def advance(self, ms: int) -> None:
        for _ in range(ms):
            self.now += 1
            for one in list(self.waiting):
                if one.deadline == self.now:  # Its time is up, also when something comes due just then.
                    self.waiting.remove(one)
                    self.replies.setdefault(one.client, []).append(None)
            for key in KEYS:
                due = sorted(item for item in self.delayed[key] if item[0] <= self.now)
                self.delayed[key] = [item for item in self.delayed[key] if item not in due]
                self.ready[key] += [body for _, _, body in due]
            self.serve()


def check(seed: int, steps: int) -> None:
    random = Random(seed)
    broker, model = MemoryBroker(), Model()
    clients = [broker.client() for _ in range(CLIENTS)]
    log: list[str] = []
    for number in range(steps):
        free = [client for client in range(CLIENTS) if client not in {one.client for one in model.waiting}]
        choice = random.randrange(8)
        if choice < 3 and free:
            client, keys = random.choice(free), random.choice([["a"], ["b"], ["a", "b"], ["b", "a"]])
            count, block = random.choice([1, 1, 2, 5]), random.choice([0, 0, 3, 10])
            log.append(f"{client}: RQ.POP COUNT {count} BLOCK {block} {' '.join(keys)}")
            clients[client].send(log[-1].partition(" ")[2])
            found = model.take(keys, count)
            if found:
                model.replies.setdefault(client, []).append(found)
            else:
                model.waiting.append(Waiting(client, keys, count, model.now + block if block else 0))
        elif choice < 5:
            key, delay = random.choice(KEYS), random.choice([0, 0, 2, 5, 9])
            words = [f"m{number}.{part}" for part in range(random.choice([1, 1, 2, 4]))]
            log.append(f"RQ.PUSHX {key} DELAY {delay} ELEMENTS {len(words)} {' '.join(words)}")
            broker(log[-1])
            bodies = [word.encode() for word in words]
            if delay:
                model.delayed[key] += [(model.now + delay, 10 * number + part, b) for part, b in enumerate(bodies)]
            else:
                model.ready[key] += bodies
                model.serve()
        elif choice == 5 and model.waiting:
            gone = random.choice(model.waiting)
            log.append(f"{gone.client}: gone")
            clients[gone.client].close()
            clients[gone.client] = broker.client()
            model.waiting.remove(gone)
        else:
            ms = random.choice([1, 1, 2, 6])
            log.append(f"{ms} ms later")
            broker.clock.advance(ms=ms)
            model.advance(ms)
        got = {
            index: [None if reply is None else [row[-1] for row in reply] for reply in client.replies()]
            for index, client in enumerate(clients)
        }
        assert {index: replies for index, replies in got.items() if replies} == model.replies, "\n".join(log)
        model.replies = {}


@settings(max_examples=300)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60))
def test_clients_are_served_in_the_order_they_began_to_wait(seed: int, steps: int) -> None:
    check(seed, steps)
