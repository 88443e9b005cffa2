"""Conservation (row 313): at any time, every message that was published is somewhere, by number.

One run of everything from one seed, on ours and on Valkey: publishing at once, in lots, later, and with an id; messages
that pass, fail, kill their worker, do not fit or are given up; chains with effects; a second group; an archive's hold;
a stream that keeps its entries for a while; dead letters that are sent again or dropped; entries that are erased;
workers that are killed or told to stop, and a broker that is killed in the middle of a lot. Now and then all workers
are killed and the books are checked.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headrace import App, Client, ConnectionLost
from headrace.client.dead_letters import DeadLetter
from headrace.client.worker_keys import group_keys
from support.ledger import Ledger, numbers_of
from support.servers import wait_until
from support.worker_processes import SERVERS, WAIT_S, Crew, Kept, say, server_on_disk

ORDERS, PARCELS, DIARY = "{shop}:orders", "{shop}:parcels", "{shop}:diary"
KINDS = ("fine", "chain", "flaky", "poison", "hopeless", "killer", "misfit")
WEIGHTS = (40, 25, 12, 4, 4, 3, 3)
HOLD = "hr:archive:year"

SHOP = """
import asyncio, os
from headrace import App, Bury, Context, Retries, Retry

app = App()
QUICK = Retries(6, first="5ms", longest="50ms")
LOG = os.open("handled.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

def handled(group: str, number: int) -> None:
    os.write(LOG, f"{group} {number}\\n".encode())

@app.handler("{shop}:orders", group="sell", lease="400ms", retries=QUICK, concurrency=8, publish_to="{shop}:parcels")
async def sell(order: dict[str, int], ctx: Context) -> dict[str, int] | None:
    number, kind = order["id"], order["kind"]
    await asyncio.sleep(number % 7 / 1000)
    if kind == 3:
        raise ValueError("poison")
    if kind == 2 and ctx.attempt < 3:
        raise Retry("flaky", after=0.01 * ctx.attempt)
    if kind == 4:
        raise Bury("hopeless")
    if kind == 5 and ctx.attempt < 2:
        os._exit(1)
    handled("sell", number)
    return {"id": number} if kind == 1 else None

@app.handler("{shop}:orders", group="audit", lease="400ms", retries=QUICK, batch=10, wait="5ms")
async def audit(orders: list[dict]) -> None:
    for order in orders:
        handled("audit", order["id"])

@app.handler("{shop}:parcels", group="send", lease="400ms", retries=1000, concurrency=8)
async def send(parcel: dict[str, int], ctx: Context) -> None:
    await asyncio.sleep(0.002)
    handled("send", parcel["id"])
    await ctx.commit([("HINCRBY", "{shop}:sent", parcel["id"], 1)])

@app.handler("{shop}:diary", group="read", lease="400ms", retries=0, keep="300ms")
def read(page: dict[str, int]) -> None:
    handled("read", page["id"])
"""


class Play:
    """One run, from a seed."""

    def __init__(self, folder: Path, broker: Kept, seed: int) -> None:
        (folder / "shop.py").write_text(SHOP)
        self.broker = broker
        self.chance = random.Random(seed)
        self.client = Client(broker.url, timeout="60s")
        self.crew = Crew(folder, broker.url, 2, {ORDERS: "sell", PARCELS: "send"})
        log = folder / "handled.log"
        self.sell, self.audit = Ledger(ORDERS, "sell", log), Ledger(ORDERS, "audit", log)
        self.send, self.read = Ledger(PARCELS, "send", log), Ledger(DIARY, "read", log)
        self.kinds: dict[int, str] = {}
        self.archived: set[int] = set()
        self.archive_end = "0-0"
        self.pages = 0
        self.counts: dict[str, int] = {}

    def open(self) -> None:
        """All groups are there before the first message: nobody needs what comes before a group."""
        self.client.stream(ORDERS).group(HOLD).create(start="beginning")
        for ledger in (self.sell, self.audit, self.send, self.read):
            self.client.stream(ledger.stream).group(ledger.group).create(start="beginning")

    # What may happen

    def step(self) -> None:
        ways: list[tuple[int, Callable[[], None]]] = [
            (30, self.publish_lot), (6, self.kill_worker), (3, self.stop_worker), (3, self.kill_broker),
            (5, self.replay), (2, self.drop), (4, self.erase), (6, self.archive), (3, self.trim), (3, self.check_books),
        ]  # fmt: skip
        [way] = self.chance.choices([way for _, way in ways], [weight for weight, _ in ways])
        way()
        self.counts[way.__name__] = self.counts.get(way.__name__, 0) + 1

    def publish_lot(self) -> None:
        """In one of many ways. If the answer is lost, it may have come or not; one with an id is simply repeated."""
        self.publish_pages()
        for _ in range(self.chance.randrange(1, 30)):
            number, order = self.next_order()
            way = self.chance.randrange(4)
            if way == 3:
                self.publish_with_id(number, order)
                continue
            try:
                if way == 0:
                    self.client.stream(ORDERS).publish(order)
                elif way == 1:
                    self.client.stream(ORDERS).publish(order, delay=self.chance.uniform(0, 1))
                else:
                    self.client.stream(ORDERS).publish_many([order])
            except ConnectionLost:
                self.note_order(number, is_sure=False)
                return
            self.note_order(number, is_sure=True)

    def next_order(self) -> tuple[int, dict[str, Any]]:
        number = len(self.kinds)
        kind = self.kinds[number] = self.chance.choices(KINDS, WEIGHTS)[0]
        return number, {"id": number, "kind": "misfit" if kind == "misfit" else KINDS.index(kind)}

    def note_order(self, number: int, *, is_sure: bool) -> None:
        for ledger in (self.sell, self.audit):
            (ledger.published if is_sure else ledger.unsure).add(number)

    def publish_with_id(self, number: int, order: dict[str, Any]) -> None:
        deadline_s = time.monotonic() + WAIT_S
        for _ in range(self.chance.randrange(1, 3)):  # Twice is once.
            while True:
                try:
                    self.client.stream(ORDERS).publish(order, id=f"order-{number}")
                    break
                except ConnectionLost:
                    assert time.monotonic() < deadline_s
                    time.sleep(0.05)
        self.note_order(number, is_sure=True)

    def publish_pages(self) -> None:
        pages = [{"id": self.pages + number} for number in range(self.chance.randrange(5))]
        self.pages += len(pages)
        numbers = {page["id"] for page in pages}
        try:
            self.client.stream(DIARY).publish_many(pages)
            self.read.published |= numbers
        except ConnectionLost:
            self.read.unsure |= numbers

    def kill_worker(self) -> None:
        self.crew.tend()
        self.crew.kill_any(self.chance)

    def stop_worker(self) -> None:
        self.crew.tend()
        process = self.chance.choice(self.crew.workers)
        process.terminate()
        process.wait(60)
        self.crew.tend()

    def kill_broker(self) -> None:
        """In the middle of publishing."""

        def kill_and_start() -> None:
            time.sleep(pause_s)
            self.broker.kill()
            self.broker.start()

        pause_s = self.chance.uniform(0, 0.05)
        thread = threading.Thread(target=kill_and_start)
        thread.start()
        self.publish_lot()
        thread.join(WAIT_S)
        assert not thread.is_alive()
        wait_until(self.is_answered, "the broker", timeout_s=WAIT_S)

    def is_answered(self) -> bool:
        try:
            self.client.ping()
        except ConnectionLost:
            return False
        return True

    def replay(self) -> None:
        to = self.chance.choice([None, None, ORDERS])
        asyncio.run(self.with_dead(lambda dead: dead.replay(where=self.some_letters(), to=to)))

    def drop(self) -> None:
        """Dead letters that somebody deletes are erased, for this group."""
        chosen: list[DeadLetter] = asyncio.run(self.with_dead(lambda dead: dead.list(where=self.some_letters())))
        letters = [letter.id for letter in chosen]
        self.sell.erased |= {letter.payload["id"] for letter in chosen}
        if letters:
            asyncio.run(self.with_dead(lambda dead: dead.drop(*letters)))

    async def with_dead(self, act: Callable[[Any], Any]) -> Any:
        app = App(self.broker.url)
        try:
            return await act(app.dead(ORDERS, "sell"))
        finally:
            await app.close()

    def some_letters(self) -> Callable[[DeadLetter], bool]:
        part = self.chance.randrange(3)
        return lambda letter: letter.payload["id"] % 3 == part

    def erase(self) -> None:
        """An entry that somebody deletes, wherever it stands."""
        entries = list(self.client.stream(ORDERS).range())
        if entries:
            entry = self.chance.choice(entries)
            if self.client.stream(ORDERS).delete(entry.id):
                for ledger in (self.sell, self.audit):
                    ledger.erased |= numbers_of([entry])

    def archive(self) -> None:
        """As an archive does: first what is new is kept elsewhere, then the hold moves."""
        entries = self.client.stream(ORDERS).range(since=self.archive_end)
        if entries and entries[-1].id != self.archive_end:
            self.archived |= numbers_of(entries)
            self.archive_end = entries[-1].id
            self.client.stream(ORDERS).group(HOLD).seek(self.archive_end)

    def trim(self) -> None:
        for stream in (ORDERS, PARCELS):
            self.client.stream(stream).trim(keep=0, partly=True)

    # The books

    def check_books(self) -> None:
        for process in self.crew.workers:
            process.kill()
            process.wait(60)
        self.sell.check(self.client)
        self.audit.check(self.client)
        self.read.check(self.client)
        self.check_chain()
        self.crew.tend()

    def check_chain(self) -> dict[str, set[int]]:
        """A parcel is made with the acknowledgement of its order: once that is gone, the parcel is there."""
        places = self.sell.places(self.client)
        waiting = set().union(*[places.get(place, set()) for place in ("undelivered", "pending", "delayed", "dead")])
        chains = {number for number in self.sell.published if self.kinds[number] == "chain"}
        self.send.published = chains - waiting - self.sell.erased
        self.send.unsure = {number for number, kind in self.kinds.items() if kind == "chain"}
        return self.send.check(self.client)

    def is_quiet(self) -> bool:
        """Nothing waits, anywhere."""
        for ledger in (self.sell, self.audit, self.send, self.read):
            places = ledger.places(self.client)
            if any(places.get(place) for place in ("undelivered", "pending", "delayed")):
                return False
        return True

    def is_tidy(self) -> bool:
        """Nothing is pending, no record is left, and only the living have a name."""
        names = {process.pid for process in self.crew.workers}
        for ledger in (self.sell, self.audit, self.send, self.read):
            keys = group_keys(ledger.stream, ledger.group)
            group = self.client.stream(ledger.stream).group(ledger.group)
            consumers = {int(consumer.name.split("-")[-2]) for consumer in group.consumers()}
            if self.client.command("EXISTS", keys.due, keys.attempts) or group.pending(limit=1) or consumers - names:
                return False
        return True

    def end(self) -> None:
        self.crew.wait_until(self.is_quiet, "everything to be done", timeout_s=2 * WAIT_S)
        self.archive()
        self.trim()
        sell, audit, read = [ledger.check(self.client) for ledger in (self.sell, self.audit, self.read)]
        self.check_chain()
        for places in (sell, audit, read):  # Whatever was published is at an end now.
            assert not places["undelivered"] | places["pending"] | places["delayed"]
        always = {number for number in self.sell.published if self.kinds[number] in ("poison", "hopeless", "misfit")}
        assert always <= sell["dead"] | sell["erased"]
        assert not self.sell.published - self.archived - self.sell.erased, "gone before it was archived"
        sent = self.client.command("HGETALL", "{shop}:sent")
        counts = {int(number): int(count) for number, count in pairs_of(sent)}
        assert set(counts.values()) <= {1}, "an effect happened twice"
        assert self.send.published <= set(counts)
        assert self.client.stream(ORDERS).length() == 0 and self.client.stream(PARCELS).length() == 0
        self.crew.wait_until(self.is_tidy, "what erased entries and dead workers left behind to be gone")


def pairs_of(reply: Any) -> list[tuple[Any, Any]]:
    return list(reply.items()) if isinstance(reply, dict) else list(zip(reply[::2], reply[1::2], strict=True))


@pytest.mark.parametrize(
    ("seed", "steps"), [(1, 25), *[pytest.param(seed, 150, marks=pytest.mark.long) for seed in range(2, 7)]]
)
@pytest.mark.parametrize("server", SERVERS)
def test_whatever_is_published_is_accounted_for_at_any_time(tmp_path, capsys, server, seed, steps):
    with server_on_disk(server, tmp_path / "data") as broker:
        play = Play(tmp_path, broker, seed)
        with play.client, play.crew:
            play.open()
            play.check_books()
            for _ in range(steps):
                play.step()
            play.end()
        say(capsys, f"seed {seed}: {len(play.kinds)} orders, {play.pages} pages, {play.counts}")
