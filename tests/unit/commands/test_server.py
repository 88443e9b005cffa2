"""INFO, CONFIG, TIME, the databases as a whole, MEMORY."""

from __future__ import annotations

import pytest

from headrace import __version__
from support.memory import START_MS, ManualClock, MemoryBroker, Refusal


def facts_of(broker: MemoryBroker, *sections: str) -> dict[str, str]:
    text = broker("INFO", *sections).decode()
    return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)


# INFO


def test_info_has_sections_of_name_and_value_lines(broker: MemoryBroker) -> None:
    text = broker("INFO").decode()
    titles = [line for line in text.split("\r\n") if line.startswith("#")]
    assert titles[:3] == ["# Server", "# Clients", "# Memory"]
    assert "# Commandstats" not in titles
    assert "# Commandstats" in broker("INFO everything").decode()
    assert broker("INFO nosuchsection") == b""
    assert [line for line in broker("INFO server CLIENTS").decode().split("\r\n") if line.startswith("#")] == titles[:2]


def test_info_tells_which_headrace_and_which_build(broker: MemoryBroker) -> None:
    facts = facts_of(broker, "server")
    assert facts["headrace_version"] == __version__
    assert facts["headrace_build"] in ("plain", "compiled")
    assert facts["redis_version"].startswith("8.6.")


def test_info_is_verbatim_text_in_resp3(broker: MemoryBroker) -> None:
    client = broker.client(protocol=3)
    client.send("INFO server")
    assert client.received().startswith(b"=")


def test_info_counts_those_who_wait_and_what_they_wait_for(broker: MemoryBroker) -> None:
    broker("XGROUP CREATE orders billing $ MKSTREAM")
    pops, reads = broker.client(), broker.client()
    pops.send("BLPOP queue other 0")
    reads.send("XREADGROUP GROUP billing ann BLOCK 0 STREAMS orders >")
    facts = facts_of(broker, "clients")
    assert facts["blocked_clients"] == "2"
    assert facts["total_blocking_keys"] == "3"
    assert facts["total_blocking_keys_on_nokey"] == "1"
    broker("RPUSH queue a")
    assert facts_of(broker, "clients")["blocked_clients"] == "1"


def test_info_counts_transactions_that_watch(broker: MemoryBroker) -> None:
    broker("WATCH a b")
    facts = facts_of(broker, "clients")
    assert (facts["watching_clients"], facts["total_watched_keys"]) == ("1", "2")


def test_every_change_counts_once_and_reads_do_not(broker: MemoryBroker) -> None:
    def changes() -> int:
        return int(facts_of(broker, "persistence")["rdb_changes_since_last_save"])

    broker("MSET a 1 b 2")
    assert changes() == 2
    broker("RPUSH list x y z")
    assert changes() == 5
    broker("GET a")
    broker("DEL missing")
    assert changes() == 5
    broker("DEL a b")
    assert changes() == 7


def test_errors_are_counted_by_their_first_word(broker: MemoryBroker) -> None:
    broker("CONFIG RESETSTAT")
    broker("SET key 1")
    broker("LPUSH key a")
    broker("NOSUCH")
    facts = facts_of(broker, "errorstats", "stats")
    assert facts["errorstat_WRONGTYPE"] == "count=1"
    assert facts["errorstat_ERR"] == "count=1"
    assert facts["total_error_replies"] == "2"


def test_commands_are_counted_and_the_counters_can_be_reset(broker: MemoryBroker) -> None:
    broker("CONFIG RESETSTAT")
    broker("SET key 1")
    broker("LPUSH key a")
    facts = facts_of(broker, "commandstats")
    assert facts["cmdstat_set"].startswith("calls=1,")
    assert facts["cmdstat_lpush"].endswith("failed_calls=1")
    broker("CONFIG RESETSTAT")
    assert "cmdstat_set" not in facts_of(broker, "commandstats")


def test_of_a_command_that_is_called_often_some_calls_are_measured_for_all(broker: MemoryBroker) -> None:
    readings = iter(range(0, 10**9, 2500))  # Each measured call takes 2.5 us.
    asked: list[int] = []

    def clock_ns() -> int:
        asked.append(next(readings))
        return asked[-1]

    broker("CONFIG RESETSTAT")
    broker.state.clock_ns = clock_ns
    for number in range(128):
        broker(f"SET key {number}")
    broker("MULTI")
    broker("GET key")
    broker("EXEC")
    asked_by_them = len(asked)

    facts = facts_of(broker, "commandstats")
    assert facts["cmdstat_set"].startswith("calls=128,usec=320,usec_per_call=2.50,")
    assert facts["cmdstat_get"].startswith("calls=1,usec=2,usec_per_call=2.50,")
    assert asked_by_them < 12


def test_keyspace_lines_name_databases_with_keys(broker: MemoryBroker) -> None:
    broker("SET a 1")
    broker("SET b 1 EX 10")
    assert facts_of(broker, "keyspace") == {"db0": "keys=2,expires=1,avg_ttl=0"}


def test_expired_keys_are_counted(broker: MemoryBroker, clock: ManualClock) -> None:
    broker("SET a 1 PX 10")
    broker("SET b 1 PX 10")
    clock.advance(ms=10)
    assert broker("GET a") is None
    assert facts_of(broker, "stats")["expired_keys"] == "2"


def test_used_memory_grows_with_the_data(broker: MemoryBroker) -> None:
    before = int(facts_of(broker, "memory")["used_memory"])
    for _ in range(100):
        broker("XADD", "orders", "*", "item", "x" * 1000)
    assert int(facts_of(broker, "memory")["used_memory"]) > before + 100_000


# CONFIG


def test_settings_are_found_by_pattern_in_any_case(broker: MemoryBroker) -> None:
    reply = broker("CONFIG GET STREAM-NODE-* maxclients nosuch")
    names = reply[::2]
    assert sorted(names) == [b"maxclients", b"stream-node-max-bytes", b"stream-node-max-entries"]
    assert broker("CONFIG GET stream-node-max-entries") == [b"stream-node-max-entries", b"100"]


def test_a_setting_has_its_effect_at_once(broker: MemoryBroker) -> None:
    assert broker("CONFIG SET stream-node-max-entries 2") == b"OK"
    for number in range(1, 6):
        broker(f"XADD orders {number}-0 a b")
    assert len(broker.state.databases[0].values[b"orders"].nodes) == 3


def test_several_settings_change_together_or_not_at_all(broker: MemoryBroker) -> None:
    error = broker("CONFIG SET maxclients 5 stream-idmp-duration 0")
    assert "possibly related to argument 'stream-idmp-duration'" in str(error)
    assert "must be between 1 and 86400 inclusive" in str(error)
    assert broker("CONFIG GET maxclients") == [b"maxclients", b"10000"]
    assert broker("CONFIG SET maxclients 5 stream-idmp-duration 7") == b"OK"
    assert broker("CONFIG GET maxclients") == [b"maxclients", b"5"]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("nosuch 1", "ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'"),
        ("maxclients 1 timeout", "ERR syntax error"),
        (
            "databases 4",
            "ERR CONFIG SET failed (possibly related to argument 'databases') - can't set immutable config",
        ),
        (
            "timeout 1 TIMEOUT 2",
            "ERR CONFIG SET failed (possibly related to argument 'TIMEOUT') - duplicate parameter",
        ),
        (
            "appendonly maybe",
            "ERR CONFIG SET failed (possibly related to argument 'appendonly') - argument must be 'yes' or 'no'",
        ),
        (
            "maxmemory 1x",
            "ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument must be a memory value",
        ),
        (
            "maxclients many",
            "ERR CONFIG SET failed (possibly related to argument 'maxclients') - "
            "argument couldn't be parsed into an integer",
        ),
    ],
)
def test_what_cannot_be_set_is_refused(broker: MemoryBroker, words: str, error: str) -> None:
    assert broker(f"CONFIG SET {words}") == Refusal(error)


def test_memory_settings_take_units(broker: MemoryBroker) -> None:
    broker("CONFIG SET proto-max-bulk-len 2mb maxmemory 3k")
    assert broker("CONFIG GET proto-max-bulk-len") == [b"proto-max-bulk-len", b"2097152"]
    assert broker("CONFIG GET maxmemory") == [b"maxmemory", b"3000"]


def test_there_is_no_file_to_rewrite(broker: MemoryBroker) -> None:
    assert broker("CONFIG REWRITE") == Refusal("ERR The server is running without a config file")


# Time, databases, memory


def test_time_is_seconds_and_microseconds(broker: MemoryBroker, clock: ManualClock) -> None:
    clock.advance(ms=5)
    assert broker("TIME") == [str(START_MS // 1000).encode(), b"5000"]


def test_flushdb_empties_one_database_and_flushall_all(broker: MemoryBroker) -> None:
    broker("SET key 1")
    broker("SELECT 1")
    broker("SET key 1")
    assert broker("FLUSHDB ASYNC") == b"OK"
    assert broker("DBSIZE") == 0
    broker("SELECT 0")
    assert broker("DBSIZE") == 1
    assert broker("FLUSHALL") == b"OK"
    assert broker("DBSIZE") == 0
    assert broker("FLUSHALL NOW") == Refusal("ERR syntax error")


def test_flushing_stops_transactions_on_keys_that_existed_only(broker: MemoryBroker) -> None:
    other = broker.client()
    other("SET present 1")
    broker("WATCH missing")
    other("FLUSHALL")
    broker("MULTI")
    assert broker("EXEC") == []
    other("SET present 1")
    broker("WATCH present")
    other("FLUSHALL")
    broker("MULTI")
    assert broker("EXEC") is None


def test_swapping_databases_wakes_those_who_wait(broker: MemoryBroker) -> None:
    waiting = broker.client()
    waiting.send("BLPOP queue 0")
    broker("SELECT 1")
    broker("RPUSH queue a")
    assert broker("SWAPDB 0 1") == b"OK"
    assert waiting.replies() == [[b"queue", b"a"]]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("a 1", "ERR invalid first DB index"),
        ("1 b", "ERR invalid second DB index"),
        ("1 16", "ERR DB index is out of range"),
    ],
)
def test_only_databases_that_exist_can_be_swapped(broker: MemoryBroker, words: str, error: str) -> None:
    assert broker(f"SWAPDB {words}") == Refusal(error)


def test_memory_usage_grows_with_the_value(broker: MemoryBroker) -> None:
    broker("SET", "short", "x")
    broker("SET", "large", "x" * 1000)
    assert broker("MEMORY USAGE large") >= broker("MEMORY USAGE short") + 999
    assert broker("MEMORY USAGE missing") is None
    broker("SADD set a b c")
    assert broker("MEMORY USAGE set SAMPLES 0") > 0
    assert broker("MEMORY USAGE set SAMPLES -1") == Refusal("ERR syntax error")
    assert broker("MEMORY USAGE set WHAT") == Refusal("ERR syntax error")
