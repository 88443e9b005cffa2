"""What a server says about its commands, in a form that two servers can be compared by.

COMMAND INFO gives arity, flags, key positions, ACL categories and key specifications; COMMAND DOCS gives the group and
the arguments. Texts (summary, complexity), tips and version numbers are left out: every server has its own. Flags and
categories are sets on the wire, so they are sorted here.
"""

from __future__ import annotations

from typing import Any

from .servers import Server
from .wire import Map, Wire

STREAM_COMMANDS = (
    "xack", "xackdel", "xadd", "xautoclaim", "xcfgset", "xclaim", "xdel", "xdelex", "xgroup", "xidmprecord", "xinfo",
    "xlen", "xpending", "xrange", "xread", "xreadgroup", "xrevrange", "xsetid", "xtrim",
)  # fmt: skip

LIST_COMMANDS = (
    "blmove", "blmpop", "blpop", "brpop", "brpoplpush", "lindex", "linsert", "llen", "lmove", "lmpop", "lpop", "lpos",
    "lpush", "lpushx", "lrange", "lrem", "lset", "ltrim", "rpop", "rpoplpush", "rpush", "rpushx",
)  # fmt: skip

SET_COMMANDS = (
    "sadd", "scard", "sdiff", "sdiffstore", "sinter", "sintercard", "sinterstore", "sismember", "smembers",
    "smismember", "smove", "spop", "srandmember", "srem", "sscan", "sunion", "sunionstore",
)  # fmt: skip
SORTED_SET_COMMANDS = (
    "bzmpop", "bzpopmax", "bzpopmin", "zadd", "zcard", "zcount", "zdiff", "zdiffstore", "zincrby", "zinter",
    "zintercard", "zinterstore", "zlexcount", "zmpop", "zmscore", "zpopmax", "zpopmin", "zrandmember", "zrange",
    "zrangebylex", "zrangebyscore", "zrangestore", "zrank", "zrem", "zremrangebylex", "zremrangebyrank",
    "zremrangebyscore", "zrevrange", "zrevrangebylex", "zrevrangebyscore", "zrevrank", "zscan", "zscore", "zunion",
    "zunionstore",
)  # fmt: skip
DESCRIBED = {  # Recorded under these names.
    "stream-commands": STREAM_COMMANDS,
    "list-commands": LIST_COMMANDS,
    "set-commands": SET_COMMANDS,
    "sorted-set-commands": SORTED_SET_COMMANDS,
}

_ARGUMENT_FACTS = ("name", "type", "token", "key_spec_index", "flags")


def describe_recorded(server: Server, recorded: str) -> dict[str, Any]:
    """Command name, subcommands as `xgroup|create`, to its comparable description."""
    with server.connect(protocol=3) as wire:
        return describe_commands(wire, DESCRIBED[recorded])


def describe_commands(wire: Wire, names: tuple[str, ...]) -> dict[str, Any]:
    described: dict[str, Any] = {}
    infos = wire("COMMAND", "INFO", *names)
    docs = wire("COMMAND", "DOCS", *names)
    for name, info in zip(names, infos, strict=True):
        assert isinstance(info, list), f"COMMAND INFO does not know {name}"
        add_description(described, info, docs[name.encode()])
    return described


def add_description(described: dict[str, Any], info: list[Any], docs: Map) -> None:
    name, arity, flags, first, last, step, categories, _, key_specs, subcommands = info
    description = {
        "arity": arity,
        "flags": sorted(plain(flag) for flag in flags),
        "keys": [first, last, step],
        "categories": sorted(plain(category) for category in categories),
        "key specs": [key_spec(spec) for spec in key_specs],
        "group": plain(docs[b"group"]),
        "arguments": [argument(item) for item in docs.get(b"arguments", [])],
    }
    described[name.decode().lower()] = description
    sub_docs = docs.get(b"subcommands", Map())
    for subcommand in sorted(subcommands, key=lambda item: item[0]):
        add_description(described, subcommand, sub_docs[subcommand[0]])


def key_spec(spec: Map) -> dict[str, Any]:
    facts = {plain(key): plain(item) for key, item in spec.items() if key != b"notes"}
    facts["flags"] = sorted(facts["flags"])
    return facts


def argument(item: Map) -> dict[str, Any]:
    facts = {plain(key): plain(value) for key, value in item.items()}
    kept = {name: facts[name] for name in _ARGUMENT_FACTS if name in facts}
    if b"arguments" in item:
        kept["arguments"] = [argument(part) for part in item[b"arguments"]]
    return kept


def plain(value: Any) -> Any:
    """The value with text instead of bytes."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, Map):
        return {plain(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value
