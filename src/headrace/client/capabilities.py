"""What the server can do, asked once per client.

Commands are asked for by name, because that is what counts; the version decides only where an option came without a
command of its own (CLAIM in Redis 8.4).
"""

from dataclasses import dataclass

from headrace.client import requests
from headrace.client.flow import Flow
from headrace.errors import AccessDenied, CommandError

CLAIM_SINCE = (8, 4)


@dataclass(frozen=True, slots=True)
class Capabilities:
    server: str  # headrace, redis or valkey
    version: tuple[int, ...]
    has_claim: bool  # XREADGROUP … CLAIM
    has_ack_and_delete: bool  # XACKDEL
    has_native_steps: bool  # HR.*: our own broker
    has_queues: bool  # RQ.*: our own broker
    has_lanes: bool  # LANE.*: our own broker

    @property
    def shown(self) -> str:
        return f"{self.server} {'.'.join(str(part) for part in self.version)}"


def probe() -> Flow[Capabilities]:
    """Ask the server. A server that keeps INFO or COMMAND to itself counts as an old one."""
    try:
        info = yield from requests.server_info().run()
    except (CommandError, AccessDenied):
        info = {}
    try:
        commands = yield from requests.known_commands("x*").run()
        ours = yield from requests.known_commands("hr.*").run()
        queues = yield from requests.known_commands("rq.*").run()
        lanes = yield from requests.known_commands("lane.*").run()
    except (CommandError, AccessDenied):
        commands, ours, queues, lanes = set(), set(), set(), set()
    server, version = name_and_version(info)
    return Capabilities(
        server=server,
        version=version,
        has_claim=server != "valkey" and (version >= CLAIM_SINCE or "XCFGSET" in commands),
        has_ack_and_delete="XACKDEL" in commands,
        has_native_steps="HR.ADD" in ours,
        has_queues="RQ.PUSH" in queues,
        has_lanes="LANE.TAKE" in lanes,
    )


def name_and_version(info: dict[str, str]) -> tuple[str, tuple[int, ...]]:
    if "headrace_version" in info:
        return "headrace", parse_version(info.get("redis_version", ""))
    if "valkey_version" in info:
        return "valkey", parse_version(info["valkey_version"])
    return "redis", parse_version(info.get("redis_version", ""))


def parse_version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdecimal())
