"""headrace: a message broker with Redis Streams semantics over the Redis protocol, and a client for any such server.

Users import from here and from headrace.testing; every other module may move. The client is loaded when first asked
for: `import headrace` alone, as the command line does it, stays quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from headrace.errors import (
    AccessDenied,
    BadRecord,
    ClientClosed,
    CommandError,
    ConfigError,
    ConnectionLost,
    DataLoss,
    HeadraceError,
    NotFound,
    ProtocolError,
    Refused,
    TableError,
    Unreachable,
    Unsupported,
    WrongType,
)

if TYPE_CHECKING:
    from headrace.client.async_client import AsyncClient, AsyncGroup, AsyncStream
    from headrace.client.client import Client, Group, Stream
    from headrace.client.results import (
        Claimed,
        ConsumerInfo,
        Entry,
        GroupInfo,
        Guarantee,
        PendingEntry,
        PendingSummary,
        StreamInfo,
        TrimReport,
    )

__version__ = "0.1.0.dev0"

HOMES = {
    "headrace.client.client": ("Client", "Group", "Stream"),
    "headrace.client.async_client": ("AsyncClient", "AsyncGroup", "AsyncStream"),
    "headrace.client.results": (
        "Claimed", "ConsumerInfo", "Entry", "GroupInfo", "Guarantee", "PendingEntry", "PendingSummary", "StreamInfo",
        "TrimReport",
    ),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    for home, names in HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module 'headrace' has no attribute {name!r}")


__all__ = [
    "Client", "Stream", "Group", "AsyncClient", "AsyncStream", "AsyncGroup",
    "Entry", "PendingEntry", "PendingSummary", "StreamInfo", "GroupInfo", "ConsumerInfo", "Claimed", "TrimReport",
    "Guarantee",
    "HeadraceError", "ProtocolError", "CommandError", "NotFound", "WrongType", "Refused", "Unsupported",
    "ConnectionLost", "Unreachable", "AccessDenied", "ClientClosed", "ConfigError", "DataLoss", "BadRecord",
    "TableError",
    "__version__",
]  # fmt: skip
