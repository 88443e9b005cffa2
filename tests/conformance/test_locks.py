"""Locks of redis-py: their scripts run on every server, on ours without Lua."""

from collections.abc import Iterator

import pytest
import redis
from redis.exceptions import LockError, LockNotOwnedError
from redis.lock import Lock

from support.servers import Server, wait_until


@pytest.fixture
def db(server: Server) -> Iterator[redis.Redis]:
    with redis.Redis(port=server.port) as client:
        yield client


def test_a_lock_is_held_by_one_and_given_back(db: redis.Redis) -> None:
    first, second = db.lock("lock"), db.lock("lock")
    assert first.acquire(blocking=False)
    assert not second.acquire(blocking=False)
    first.release()
    assert second.acquire(blocking=False)
    with pytest.raises(LockError):
        first.release()


def test_only_the_owner_gives_a_lock_back_or_keeps_it_longer(db: redis.Redis) -> None:
    lock = db.lock("lock", timeout=100)
    assert lock.acquire(blocking=False)
    db.set("lock", "somebody else", keepttl=True)
    for step in (lock.release, lambda: lock.extend(5), lock.reacquire):
        if lock.local.token is None:
            lock.local.token = b"mine"
        with pytest.raises(LockNotOwnedError):
            step()
    assert db.get("lock") == b"somebody else"


def test_a_lock_is_kept_longer(db: redis.Redis) -> None:
    lock = db.lock("lock", timeout=100)
    assert lock.acquire(blocking=False)
    lock.extend(900)
    assert 990 < db.ttl("lock") <= 1000
    lock.extend(50, replace_ttl=True)
    assert 40 < db.ttl("lock") <= 50
    lock.reacquire()
    assert 90 < db.ttl("lock") <= 100


def test_a_lock_without_an_end_cannot_be_extended(db: redis.Redis) -> None:
    lock = db.lock("lock", timeout=100)
    assert lock.acquire(blocking=False)
    db.persist("lock")
    with pytest.raises(LockNotOwnedError):
        lock.extend(5)


def test_a_lock_ends_by_itself(db: redis.Redis) -> None:
    lock = db.lock("lock", timeout=0.05)
    assert lock.acquire(blocking=False)
    wait_until(lambda: not db.exists("lock"), "the lock to end")
    with pytest.raises(LockNotOwnedError):
        lock.release()


def test_the_scripts_of_a_lock_can_be_loaded_and_run_by_text(db: redis.Redis) -> None:
    for script in (Lock.LUA_RELEASE_SCRIPT, Lock.LUA_EXTEND_SCRIPT, Lock.LUA_REACQUIRE_SCRIPT):
        digest = db.script_load(script)
        assert db.script_exists(digest) == [True]
    db.set("lock", "token")
    assert db.eval(Lock.LUA_RELEASE_SCRIPT, 1, "lock", "other") == 0
    assert db.eval(Lock.LUA_RELEASE_SCRIPT, 1, "lock", "token") == 1
    assert not db.exists("lock")


def test_giving_a_lock_back_is_a_change(db: redis.Redis) -> None:
    lock = db.lock("lock", timeout=100)
    assert lock.acquire(blocking=False)
    with db.pipeline() as pipeline:
        pipeline.watch("lock")
        lock.release()
        pipeline.multi()
        pipeline.ping()
        with pytest.raises(redis.WatchError):
            pipeline.execute()
