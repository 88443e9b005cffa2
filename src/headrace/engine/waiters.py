"""Who waits for which key, until when.

A client that must wait leaves a Waiter: its keys, its command, its deadline, and (XREADGROUP CLAIM, RQ.POP) when
looking again is worth it without any write. One that waits for a list is not run again for a key of another type.
Writers ask `on_key`; that costs nothing for keys nobody waits for. Clients on one key are served in the order they
blocked, also when they are woken by the clock.
"""

import heapq

NO_TIME = -1  # Waits for ever; nothing to look for.


class Waiter:
    __slots__ = ("client_id", "database", "keys", "argv", "deadline_ms", "due_ms", "wants", "number")

    def __init__(
        self, client_id: int, database: int, keys: list[bytes], argv: list[bytes], deadline_ms: int, due_ms: int,
        wants: str = "",
    ) -> None:  # fmt: skip
        self.client_id = client_id
        self.database = database
        self.keys = keys
        self.argv = argv  # The command to run again, with `$` and the like already resolved.
        self.deadline_ms = deadline_ms  # Answer null then. NO_TIME: never.
        self.due_ms = due_ms  # Look again then. NO_TIME: only when a key changes.
        self.wants = wants  # The type a key must have got to look again. Empty: any change, also that it is gone.
        self.number = 0  # In the order of all that ever waited.

    def next_ms(self) -> int:
        if self.due_ms != NO_TIME and (self.deadline_ms == NO_TIME or self.due_ms < self.deadline_ms):
            return self.due_ms
        return self.deadline_ms


class Waiters:
    __slots__ = ("by_client", "by_key", "times", "added")

    def __init__(self) -> None:
        self.by_client: dict[int, Waiter] = {}
        self.by_key: dict[tuple[int, bytes], dict[int, Waiter]] = {}
        self.times: list[tuple[int, int]] = []  # A heap of (when, client); stale ones are passed over.
        self.added = 0

    def add(self, waiter: Waiter) -> None:
        self.added += 1
        waiter.number = self.added
        self.by_client[waiter.client_id] = waiter
        for key in waiter.keys:
            self.by_key.setdefault((waiter.database, key), {})[waiter.client_id] = waiter
        self.schedule(waiter)

    def bring_forward(self, waiter: Waiter, due_ms: int) -> None:
        """Let the waiter look again at that time at the latest, without running it now."""
        if due_ms != NO_TIME and (waiter.due_ms == NO_TIME or due_ms < waiter.due_ms):
            waiter.due_ms = due_ms
            self.schedule(waiter)

    def schedule(self, waiter: Waiter) -> None:
        when = waiter.next_ms()
        if when != NO_TIME:
            heapq.heappush(self.times, (when, waiter.client_id))
            if len(self.times) > 64 and len(self.times) > 4 * len(self.by_client):
                self.times = [(w.next_ms(), w.client_id) for w in self.by_client.values() if w.next_ms() != NO_TIME]
                heapq.heapify(self.times)

    def remove(self, client_id: int) -> Waiter | None:
        waiter = self.by_client.pop(client_id, None)
        if waiter is not None:
            for key in waiter.keys:
                waiting = self.by_key.get((waiter.database, key))
                if waiting is not None:
                    waiting.pop(client_id, None)
                    if not waiting:
                        del self.by_key[(waiter.database, key)]
        return waiter

    def on_key(self, database: int, key: bytes) -> list[Waiter]:
        """Those who wait for the key, longest first."""
        waiting = self.by_key.get((database, key))
        return list(waiting.values()) if waiting is not None else []

    def keys_in(self, database: int) -> list[bytes]:
        """Every key of a database that somebody waits for."""
        return [key for number, key in self.by_key if number == database]

    def next_ms(self) -> int:
        """When somebody's time comes next, or NO_TIME."""
        while self.times:
            when, client_id = self.times[0]
            waiter = self.by_client.get(client_id)
            if waiter is not None and waiter.next_ms() == when:
                return when
            heapq.heappop(self.times)
        return NO_TIME

    def due(self, now_ms: int) -> list[Waiter]:
        """Those whose time has come, in the order they blocked. The caller removes or schedules each of them."""
        found: dict[int, Waiter] = {}
        when = self.next_ms()
        while when != NO_TIME and when <= now_ms:
            _, client_id = heapq.heappop(self.times)
            found[client_id] = self.by_client[client_id]
            when = self.next_ms()
        return sorted(found.values(), key=number_of)


def number_of(waiter: Waiter) -> int:
    return waiter.number
