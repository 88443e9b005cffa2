"""redis-py works unchanged, in both protocols, with and without asyncio."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis
import redis.asyncio
import redis.exceptions

from support.servers import Server


@pytest.fixture(params=[2, 3], ids=["resp2", "resp3"])
def db(server: Server, request: pytest.FixtureRequest) -> Iterator[redis.Redis]:
    with redis.Redis(port=server.port, protocol=request.param, decode_responses=True) as client:
        yield client


def entries_of(reply: object) -> list[tuple[str, dict[str, str]]]:
    """The entries of the only stream in a reply of xread or xreadgroup; RESP3 nests them one list deeper."""
    if not reply:
        return []
    entries = next(iter(reply.values())) if isinstance(reply, dict) else reply[0][1]  # type: ignore[index]
    return entries[0] if entries and isinstance(entries[0], list) else entries


def test_adding_and_reading(db: redis.Redis) -> None:
    assert db.xadd("s", {"item": "tea", "n": 1}, id="1-0") == "1-0"
    assert db.xadd("s", {"item": "milk"}, id="2-0", maxlen=10, approximate=False) == "2-0"
    assert db.xadd("missing", {"f": "v"}, nomkstream=True) is None
    assert db.xlen("s") == 2
    assert db.xrange("s") == [("1-0", {"item": "tea", "n": "1"}), ("2-0", {"item": "milk"})]
    assert db.xrevrange("s", count=1) == [("2-0", {"item": "milk"})]
    assert entries_of(db.xread({"s": "1-0"})) == [("2-0", {"item": "milk"})]
    assert not db.xread({"s": "$"}, block=10)
    assert db.xdel("s", "1-0") == 1
    assert db.xtrim("s", maxlen=0, approximate=False) == 1


def test_a_generated_id_is_returned(db: redis.Redis) -> None:
    first, second = db.xadd("s", {"f": "v"}), db.xadd("s", {"f": "v"})
    assert [entry for entry, _ in db.xrange("s")] == [first, second]


def test_a_group_reads_acknowledges_and_claims(db: redis.Redis) -> None:
    for i in range(1, 5):
        db.xadd("s", {"n": i}, id=f"{i}-0")
    assert db.xgroup_create("s", "g", id="0") is True
    assert entries_of(db.xreadgroup("g", "one", {"s": ">"}, count=2)) == [("1-0", {"n": "1"}), ("2-0", {"n": "2"})]
    assert entries_of(db.xreadgroup("g", "two", {"s": ">"})) == [("3-0", {"n": "3"}), ("4-0", {"n": "4"})]
    assert not db.xreadgroup("g", "two", {"s": ">"})
    assert entries_of(db.xreadgroup("g", "one", {"s": "0"})) == [("1-0", {"n": "1"}), ("2-0", {"n": "2"})]
    assert db.xack("s", "g", "1-0") == 1
    summary = db.xpending("s", "g")
    assert (summary["pending"], summary["min"], summary["max"]) == (3, "2-0", "4-0")
    assert summary["consumers"] == [{"name": "one", "pending": 1}, {"name": "two", "pending": 2}]
    assert db.xclaim("s", "g", "two", 0, ["2-0"]) == [("2-0", {"n": "2"})]
    rows = db.xpending_range("s", "g", "-", "+", 10)
    assert [(row["message_id"], row["consumer"], row["times_delivered"]) for row in rows] == [
        ("2-0", "two", 3), ("3-0", "two", 1), ("4-0", "two", 1),
    ]  # fmt: skip
    cursor, claimed, *_ = db.xautoclaim("s", "g", "one", 0, "0-0", count=2)
    assert (cursor, claimed) == ("4-0", [("2-0", {"n": "2"}), ("3-0", {"n": "3"})])
    assert db.xgroup_delconsumer("s", "g", "one") == 2
    assert db.xgroup_destroy("s", "g") in (1, True)


def test_descriptions_are_parsed(db: redis.Redis) -> None:
    db.xadd("s", {"f": "v"}, id="1-0")
    db.xgroup_create("s", "g", id="0")
    db.xreadgroup("g", "c", {"s": ">"})
    stream = db.xinfo_stream("s")
    assert (stream["length"], stream["last-generated-id"], stream["groups"]) == (1, "1-0", 1)
    assert stream["first-entry"] == ("1-0", {"f": "v"})
    (group,) = db.xinfo_groups("s")
    assert (group["name"], group["consumers"], group["pending"], group["lag"]) == ("g", 1, 1, 0)
    (consumer,) = db.xinfo_consumers("s", "g")
    assert (consumer["name"], consumer["pending"]) == ("c", 1)
    assert db.xinfo_stream("s", full=True)["groups"][0]["consumers"][0]["name"] == "c"


def test_errors_have_their_class_and_text(db: redis.Redis) -> None:
    with pytest.raises(redis.exceptions.ResponseError, match="requires the key to exist"):
        db.xgroup_create("s", "g")
    db.xgroup_create("s", "g", mkstream=True)
    with pytest.raises(redis.exceptions.ResponseError, match="BUSYGROUP"):
        db.xgroup_create("s", "g")
    with pytest.raises(redis.exceptions.ResponseError, match="NOGROUP"):
        db.xreadgroup("nog", "c", {"s": ">"})
    db.set("text", "x")
    with pytest.raises(redis.exceptions.ResponseError, match="WRONGTYPE"):
        db.xlen("text")


def test_pipelines_and_transactions(db: redis.Redis) -> None:
    with db.pipeline(transaction=False) as pipe:
        for i in range(1, 101):
            pipe.xadd("s", {"n": i}, id=f"{i}-0")
        assert pipe.execute() == [f"{i}-0" for i in range(1, 101)]
    with db.pipeline(transaction=True) as pipe:
        pipe.xlen("s")
        pipe.xtrim("s", maxlen=10, approximate=False)
        pipe.xlen("s")
        assert pipe.execute() == [100, 90, 10]


@pytest.mark.since("8.6")
def test_newer_commands(db: redis.Redis) -> None:
    for i in range(1, 4):
        db.xadd("s", {"n": i}, id=f"{i}-0")
    db.xgroup_create("s", "g", id="0")
    db.xreadgroup("g", "gone", {"s": ">"}, count=2)
    assert db.xackdel("s", "g", "1-0", ref_policy="DELREF") == [1]
    assert db.xdelex("s", "1-0", "3-0", ref_policy="KEEPREF") == [-1, 1]
    reply = db.execute_command("XREADGROUP", "GROUP", "g", "c", "CLAIM", 0, "STREAMS", "s", ">")
    assert "2-0" in str(reply)
    assert db.xpending("s", "g")["consumers"] == [{"name": "c", "pending": 1}]


@pytest.mark.parametrize("protocol", [2, 3])
def test_asyncio(server: Server, protocol: int) -> None:
    async def scenario() -> None:
        async with redis.asyncio.Redis(port=server.port, protocol=protocol, decode_responses=True) as db:
            await db.xgroup_create("s", "g", mkstream=True)
            waiting = asyncio.create_task(db.xreadgroup("g", "c", {"s": ">"}, block=0))
            await wait_for(lambda: server.blocked_clients() == 1)
            assert await db.xadd("s", {"item": "tea"}, id="1-0") == "1-0"
            assert entries_of(await waiting) == [("1-0", {"item": "tea"})]
            assert await db.xack("s", "g", "1-0") == 1
            assert (await db.xpending("s", "g"))["pending"] == 0
            many = await asyncio.gather(*(db.xadd("t", {"n": i}) for i in range(50)))
            assert len(set(many)) == 50
            assert await db.xlen("t") == 50

    asyncio.run(asyncio.wait_for(scenario(), 30))


async def wait_for(condition: Callable[[], bool]) -> None:
    """Wait for the condition; the caller sets the limit."""
    while not condition():  # noqa: ASYNC110 -- what changes is in another process
        await asyncio.sleep(0.002)


def test_waiting_from_another_thread_ends_with_an_entry(db: redis.Redis, server: Server) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(db.xread, {"s": "$"}, block=0)
        server.wait_until_blocked(1)
        db.xadd("s", {"f": "v"}, id="1-0")
        assert entries_of(waiting.result(20)) == [("1-0", {"f": "v"})]
