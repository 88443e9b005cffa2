"""What is there after a restart: of a killed broker, from its journal; of one that stopped, from its checkpoint."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
import redis

from headrace.server.durability import Durability
from support.durable_broker import DurableBroker
from support.fake_disk import Content, FakeDisk
from support.faulty_disk import FaultyDisk
from support.memory import MemoryBroker
from support.simulation import contents_of


class History:
    """A session of every kind, and what it looks like: before, and after kill -9, a clean stop and kill -9 again.

    The last kill leaves a checkpoint and nothing behind it.
    """

    def __init__(self, folder: Path) -> None:
        self.looks: list[dict[str, Any]] = []
        with DurableBroker(folder) as broker:
            broker.start()
            with broker.client() as client:
                self.ids = write_orders(client)
                write_empty_streams(client)
                self.popped = write_list(client)
                self.jobs = write_queue(client)
                self.looks.append(look(client))
            for how in (broker.kill, broker.stop, broker.kill):
                how()
                broker.start()
                with broker.client() as client:
                    self.looks.append(look(client))
            with broker.client() as client:
                self.claimed = client.xautoclaim("orders", "billing", "eve", 0, count=1000)
                self.added = client.xadd("emptied", {"a": "b"})
                self.heard = listen(client)
                client.execute_command("RQ.PAUSE", "jobs", "NONE")
                [self.pushed] = client.execute_command("RQ.PUSH", "jobs", "new")
                self.given = [body for _, _, body in client.execute_command("RQ.POP", "COUNT", 100, "jobs")]

    def check(self, *names: str) -> None:
        """All of them are the same after each restart as before."""
        for name in names:
            for after in self.looks[1:]:
                assert after[name] == self.looks[0][name]


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    return History(tmp_path_factory.mktemp("history") / "data")


def look(client: redis.Redis) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    for key in ("orders", "empty", "emptied"):
        facts[key] = without_sightings(client.xinfo_stream(key, full=True))
    facts["pending"] = client.xpending_range("orders", "billing", "-", "+", 1000)
    for row in facts["pending"]:
        del row["time_since_delivered"]  # Goes on growing; the time itself is among the facts of the stream.
    facts["entries"] = client.xrange("orders")
    facts["list"] = client.lrange("list", 0, -1)
    inspected = {view: client.execute_command("RQ.INSPECT", "jobs", *view, 0, 100) for view in ((), ("PENDING",))}
    facts["undelivered"] = inspected[()]
    facts["delivered"] = [[*row[:3], *row[4:]] for row in inspected[("PENDING",)]]  # How long ago goes on growing.
    facts["queue"] = [client.execute_command(name, "jobs") for name in ("RQ.INFO", "RQ.STATS")]
    return facts


def without_sightings(facts: Any) -> Any:
    """XINFO STREAM FULL but for when consumers were seen last: that is not promised."""
    for group in facts["groups"]:
        for consumer in group["consumers"]:
            del consumer[b"seen-time"], consumer[b"active-time"]
    return facts


def write_orders(client: redis.Redis) -> list[bytes]:
    ids = [client.xadd("orders", {"number": number}) for number in range(300)]
    client.xgroup_create("orders", "billing", id="0")
    client.xgroup_create("orders", "idle", id="$")
    client.xgroup_createconsumer("orders", "idle", "nobody")
    client.xreadgroup("billing", "ann", {"orders": ">"}, count=120)
    client.xreadgroup("billing", "bob", {"orders": ">"}, count=10)
    client.xack("orders", "billing", *ids[:50:2])
    client.xclaim("orders", "billing", "bob", 0, ids[1:9:2], retrycount=7)
    client.xdel("orders", ids[53], ids[121], ids[299])
    client.xtrim("orders", minid=ids[20], approximate=False)
    return ids


def write_empty_streams(client: redis.Redis) -> None:
    client.xgroup_create("empty", "waiting", id="0", mkstream=True)
    client.xadd("emptied", {"a": "b"})
    client.xgroup_create("emptied", "waiting", id="0")
    client.xtrim("emptied", maxlen=0, approximate=False)


def write_list(client: redis.Redis) -> Any:
    client.rpush("list", *range(10))
    assert client.publish("news", "nobody listens yet") == 0
    return client.lpop("list", 3)


def write_queue(client: redis.Redis) -> list[bytes]:
    run = client.execute_command
    ids: list[bytes] = run("RQ.PUSH", "jobs", *range(10))
    held = run("RQ.POP", "COUNT", 6, "jobs")
    run("RQ.NACK", "jobs", held[1][1])
    run("RQ.ACK", "jobs", held[5][1])
    run("RQ.RECOVER", "jobs", 2, 0)
    run("RQ.PUSHX", "jobs", "DELAY", 3_600_000, "TTL", 7_200_000, "ELEMENTS", 1, "later")
    run("RQ.PAUSE", "jobs", "IN")
    return ids


def listen(client: redis.Redis) -> list[Any]:
    with client.pubsub(ignore_subscribe_messages=True) as listener:
        listener.subscribe("news")
        listener.get_message(timeout=60)
        client.publish("news", "fresh")
        return [listener.get_message(timeout=60)["data"]]


def test_streams_come_back_with_the_full_state_of_their_groups(history: History) -> None:
    """Row 175: cursor, consumers, pending entries with times and counts, as XINFO STREAM FULL tells them."""
    history.check("orders", "entries")


def test_an_entry_is_pending_until_it_is_acknowledged_over_any_restart(history: History) -> None:
    """Row 161. Also those that were deleted or trimmed meanwhile: the next one to claim is told."""
    history.check("pending")
    pending = [row["message_id"] for row in history.looks[0]["pending"]]
    assert pending == [*history.ids[1:50:2], *history.ids[50:130]]

    _, claimed, gone = history.claimed
    assert gone == [*history.ids[1:20:2], history.ids[53], history.ids[121]]
    assert [*gone, *[name for name, _ in claimed]] == sorted(pending, key=lambda name: (name not in gone, parts(name)))


def test_streams_without_entries_come_back_with_their_groups(history: History) -> None:
    """Row 181."""
    history.check("empty", "emptied")
    assert [history.looks[0][key]["length"] for key in ("empty", "emptied")] == [0, 0]
    assert parts(history.added) > parts(history.looks[0]["emptied"]["last-generated-id"])


def test_a_list_comes_back_without_what_was_popped(history: History) -> None:
    """Row 69. Its consumer is gone, and so are they."""
    assert history.popped == [b"0", b"1", b"2"]
    history.check("list")
    assert history.looks[0]["list"] == [b"%d" % number for number in range(3, 10)]


def test_lists_are_kept_and_messages_of_channels_are_not(history: History) -> None:
    """Row 182."""
    history.check("list")
    assert history.heard == [b"fresh"]


def test_queues_come_back_with_both_lists_counters_and_the_last_id(history: History) -> None:
    """Row 210. Delayed elements are still delayed, and delivering goes on."""
    history.check("undelivered", "delivered", "queue")
    assert len(history.looks[0]["delivered"]) == 4
    assert parts(history.pushed) > parts(history.jobs[-1])
    assert history.given == [b"1", b"6", b"7", b"8", b"9", b"new"]


def test_ids_and_times_to_live_are_right_when_the_clock_goes_back_over_a_restart(tmp_path: Path) -> None:
    disk = FaultyDisk(tmp_path)
    with DurableBroker(tmp_path / "data", environment=disk.environment) as broker:
        broker.start()
        with broker.client() as client:
            ids = [client.xadd("orders", {"number": number}) for number in range(3)]
            jobs = client.execute_command("RQ.PUSH", "jobs", "a")
            client.set("token", "a", px=60_000)
            client.xdel("orders", *ids)  # The last ID is remembered without them.
        for how, seconds in ((broker.kill, -3600), (broker.stop, -7200)):
            how()
            disk.set_clock(seconds)
            broker.start()
            with broker.client() as client:
                assert client.time()[0] * 1000 < parts(ids[0])[0]
                ids.append(client.xadd("orders", {"number": 0}))
                jobs += client.execute_command("RQ.PUSH", "jobs", "b")
                assert client.pttl("token") > 60_000  # It ends at the same moment as before.

    assert [parts(name) for name in ids] == sorted({parts(name) for name in ids})
    assert [parts(name) for name in jobs] == sorted({parts(name) for name in jobs})


def parts(name: bytes) -> tuple[int, int]:
    milliseconds, number = name.split(b"-")
    return int(milliseconds), int(number)


BLOCK = ["XADD s * f v", "RPUSH l a b", "XREADGROUP GROUP g ann STREAMS s >", "DEL gone", "RQ.PUSH q x", "SET k new"]


def load(disk: FakeDisk) -> tuple[MemoryBroker, Durability]:
    broker = MemoryBroker()
    durability = Durability(broker.state, disk)
    broker.first = broker.client()
    return broker, durability


def test_a_transaction_that_was_torn_at_any_byte_is_dropped_as_a_whole() -> None:
    """Row 180. Cut there, or with zeros from there on; the start succeeds, and the next one finds the same."""
    disk = FakeDisk(Random(0))
    broker, durability = load(disk)

    def commit() -> int:
        records, broker.state.records = broker.state.records, []
        assert durability.commit(records)
        return durability.folder.log.size

    for command in ("XADD s 1-1 f v", "XGROUP CREATE s g 0", "SET gone soon", "SET k old"):
        broker(command)
    start = commit()
    before = contents_of(broker)
    for command in ["MULTI", *BLOCK, "EXEC"]:
        broker(command)
    end = commit()
    after = contents_of(broker)
    files = {name: bytes(content.data) for name, content in disk.files.items()}
    log = files["log-00000001"]

    assert len(log) == end
    for place in range(start, end + 1):
        for torn in (log[:place], log[:place] + bytes(end - place)):
            copy = FakeDisk(Random(0), {name: Content(data) for name, data in files.items()})
            copy.files["log-00000001"] = Content(torn)
            found, again = load(copy)
            assert contents_of(found) == (after if torn == log else before)
            assert len(again.loaded.notes) == (0 if torn in (log, log[:start]) else 1)
            assert contents_of(load(copy)[0]) == contents_of(found)
