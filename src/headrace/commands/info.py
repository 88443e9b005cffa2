"""INFO, and the counters behind it.

Only what is true here is shown: sections and names are Redis's where the thing exists, and nothing is made up for
tools. Memory is an estimate from the engine's own accounting (`engine/encodings.py`).
"""

from typing import Final

from headrace import __version__
from headrace.commands.call import Call, State
from headrace.commands.catalogue import every_command
from headrace.commands.connection import REDIS_VERSION
from headrace.commands.memory_limit import used_memory
from headrace.commands.outcome import Outcome
from headrace.commands.spec import command, find_command, many, optional, text
from headrace.wire.encoder import encode
from headrace.wire.values import Verbatim

Facts = dict[str, str | int]

UNITS: Final = ("B", "K", "M", "G", "T")


@command(
    "INFO", optional(many(text("section"))),
    group="server", flags="loading stale", categories="dangerous", since="1.0.0",
    complexity="O(1), and O(N) with N clients",
    summary="Facts and counters about the server.",
    tips="nondeterministic_output request_policy:all_shards response_policy:special",
)  # fmt: skip
def info(ctx: Call, argv: list[bytes]) -> Outcome:
    """Sections that do not exist are left out. `all` and `everything` add commandstats to the usual ones.

    Its times are estimates, made from one call in 64.
    """
    asked = [section.decode("utf-8", "replace").lower() for section in argv[1:]] or ["default"]
    names: list[str] = []
    for section in asked:
        if section == "default":
            names += [name for name in SECTIONS if name != "commandstats"]
        elif section in ("all", "everything"):
            names += SECTIONS
        else:
            names.append(section)
    parts: list[str] = []
    for name in dict.fromkeys(names):
        facts = find_facts(ctx, name)
        if facts is not None:
            lines = [f"{fact}:{value}\r\n" for fact, value in facts.items()]
            parts.append(f"# {name.capitalize()}\r\n" + "".join(lines))
    return Outcome(encode(Verbatim("\r\n".join(parts)), resp3=ctx.resp3))


SECTIONS: Final = [
    "server", "clients", "memory", "persistence", "stats", "replication", "commandstats", "errorstats", "cluster",
    "keyspace",
]  # fmt: skip


def find_facts(ctx: Call, section: str) -> Facts | None:
    state = ctx.state
    if section == "server":
        return server_facts(state, ctx.now_ms)
    if section == "clients":
        return client_facts(state)
    if section == "memory":
        return memory_facts(state)
    if section == "persistence":
        return persistence_facts(state)
    if section == "stats":
        return traffic_facts(state)
    if section == "replication":
        return {"role": "master", "connected_slaves": 0}
    if section == "commandstats":
        return command_facts()
    if section == "errorstats":
        return {f"errorstat_{prefix}": f"count={count}" for prefix, count in state.errors.items()}
    if section == "cluster":
        return {"cluster_enabled": 0}
    if section == "keyspace":
        return keyspace_facts(state)
    return None


def server_facts(state: State, now_ms: int) -> Facts:
    uptime_s = max(0, now_ms - state.started_ms) // 1000
    return {
        "redis_version": REDIS_VERSION,
        "redis_mode": "standalone",
        "server_name": "headrace",
        "headrace_version": __version__,
        "headrace_build": state.build,
        "arch_bits": 64,
        "tcp_port": state.port,
        "server_time_usec": now_ms * 1000,
        "uptime_in_seconds": uptime_s,
        "uptime_in_days": uptime_s // 86400,
    }


def client_facts(state: State) -> Facts:
    waiters = state.waiters
    paused = [call for call in state.clients.values() if call.postponed is not None]
    told = 0  # Keys whose waiting clients are also told when the key goes away.
    for waiting in waiters.by_key.values():
        if any(is_group_read(waiter.argv[0]) for waiter in waiting.values()):
            told += 1
    return {
        "connected_clients": len(state.clients),
        "maxclients": state.settings.max_clients,
        "blocked_clients": len(waiters.by_client) + len(paused),
        "tracking_clients": 0,
        "pubsub_clients": state.channels.count_clients(),
        "watching_clients": len([call for call in state.clients.values() if call.watching]),
        "clients_in_timeout_table": len([waiter for waiter in waiters.by_client.values() if waiter.deadline_ms > 0]),
        "total_watched_keys": len(state.watched),
        "total_blocking_keys": len(waiters.by_key),
        "total_blocking_keys_on_nokey": told,
    }


def is_group_read(name: bytes) -> bool:
    found = find_command(name)
    return found is not None and found.full_name == "xreadgroup"


def memory_facts(state: State) -> Facts:
    used = used_memory(state)
    limit = state.settings.max_memory
    return {
        "used_memory": used,
        "used_memory_human": human(used),
        "used_memory_dataset": used,
        "maxmemory": limit,
        "maxmemory_human": human(limit),
        "maxmemory_policy": state.settings.get("maxmemory-policy"),
    }


def persistence_facts(state: State) -> Facts:
    keeping = state.keeping
    facts: Facts = {
        "loading": 0,
        "rdb_changes_since_last_save": state.changes,
        "rdb_bgsave_in_progress": int(keeping.is_saving or keeping.is_wanted),
        "rdb_last_save_time": keeping.last_save_s,
        "rdb_last_bgsave_status": "ok" if keeping.is_last_good else "err",
        "aof_enabled": int(state.settings.get("appendonly") == "yes"),
        "aof_rewrite_in_progress": int(keeping.is_saving or keeping.is_wanted),
        "aof_last_bgrewrite_status": "ok" if keeping.is_last_good else "err",
        "aof_last_write_status": "err" if keeping.is_full else "ok",
    }
    if keeping.is_durable:
        facts["aof_current_size"] = keeping.log_bytes
        facts["aof_base_size"] = keeping.base_bytes
    if keeping.folder_id:
        facts["folder_id"] = keeping.folder_id
    return facts


def human(size_bytes: int) -> str:
    size = float(size_bytes)
    for unit in UNITS:
        if size < 1024 or unit == UNITS[-1]:
            return f"{size_bytes}B" if unit == "B" else f"{size:.2f}{unit}"
        size /= 1024
    return ""


def traffic_facts(state: State) -> Facts:
    return {
        "total_connections_received": state.connections_received,
        "total_commands_processed": sum([made.calls for made in every_command()]),
        "total_net_input_bytes": sum([call.bytes_in for call in state.clients.values()]),
        "total_net_output_bytes": sum([call.bytes_out for call in state.clients.values()]),
        "rejected_connections": 0,
        "expired_keys": state.expired_keys,
        "expired_keys_active": state.expired_actively,
        "evicted_keys": 0,
        "pubsub_channels": len(state.channels.channels.by_name),
        "pubsub_patterns": len(state.channels.globs),
        "pubsubshard_channels": len(state.channels.shards.by_name),
        "total_forks": 0,
        "total_error_replies": state.error_replies,
        "client_output_buffer_limit_disconnections": state.dropped_listeners,
    }


def command_facts() -> Facts:
    """One call in 64 of each command is measured, the first of them too: times are estimates made from those."""
    facts: Facts = {}
    for made in every_command():
        if made.calls or made.rejected or made.failed:
            each_us = made.timed_ns / made.timed / 1000 if made.timed else 0.0
            facts[f"cmdstat_{made.full_name}"] = (
                f"calls={made.calls},usec={int(each_us * made.calls)},usec_per_call={each_us:.2f},"
                f"rejected_calls={made.rejected},failed_calls={made.failed}"
            )
    return facts


def keyspace_facts(state: State) -> Facts:
    return {
        f"db{database.number}": f"keys={len(database.values)},expires={len(database.expires_ms)},avg_ttl=0"
        for database in state.databases
        if database.values
    }


def reset_statistics(state: State) -> None:
    for made in every_command():
        made.calls = 0
        made.timed = 0
        made.timed_ns = 0
        made.failed = 0
        made.rejected = 0
    state.errors.clear()
    state.error_replies = 0
    state.expired_keys = 0
    state.expired_actively = 0
    state.dropped_listeners = 0
    state.connections_received = 0
