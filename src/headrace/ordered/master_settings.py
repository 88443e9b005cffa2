"""What a coordinator is told at its start. The names are those of the article that described the pattern."""

import ipaddress
import socket
from dataclasses import dataclass
from typing import Final

from headrace.client.lane_keys import Order, Settings
from headrace.errors import ConfigError

STREAM: Final = "ticket_stream"
GROUP: Final = "concurrency_stream_group"
KEY_FIELD: Final = "ticket_id"
TICKETS: Final = "tickets"
CONSUMERS: Final = "consumers"
HOST: Final = "127.0.0.1"
PORT: Final = 7381
MAX_HOLD_MS: Final = 600_000
SHORTEST_LEASE_MS: Final = 100  # Leases are extended over the network, by three tries in each.
LANES: Final = Settings((KEY_FIELD,), tickets=TICKETS, consumers=CONSUMERS)


@dataclass(frozen=True, slots=True)
class MasterSettings:
    stream: str = STREAM
    group: str = GROUP
    lanes: Settings = LANES
    host: str = HOST
    port: int = PORT
    token: str = ""
    max_hold_ms: int = MAX_HOLD_MS  # A key is extended for so long after it was given, and no longer.
    early_revoke: bool = False
    deletes: bool = False  # What every group has acknowledged; the article leaves it in the stream.

    def __post_init__(self) -> None:
        if self.lanes.lease_ms < SHORTEST_LEASE_MS:
            raise ConfigError(f"the lease is {self.lanes.lease_ms} ms; give {SHORTEST_LEASE_MS} ms or more.")
        if self.max_hold_ms < self.lanes.lease_ms:
            raise ConfigError(
                "the longest hold is shorter than the lease; give it a longer time, or shorten the lease."
            )
        if not self.token and not is_loopback(self.host):
            raise ConfigError(
                f"others can reach {self.host!r}, so a token is needed: give --token, or set HEADRACE_ORDERED_TOKEN. "
                "Without one listen on 127.0.0.1."
            )

    @property
    def order(self) -> Order:
        return Order(self.stream, self.group, self.lanes)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        pass
    try:
        found = {info[4][0] for info in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    return bool(found) and all(ipaddress.ip_address(str(address).split("%")[0]).is_loopback for address in found)
