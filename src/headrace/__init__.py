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
    LeaseLost,
    Misfit,
    NotFound,
    ProtocolError,
    Refused,
    TableError,
    Unconfirmed,
    Unreachable,
    Unsupported,
    WrongType,
)

if TYPE_CHECKING:
    from headrace.app.app import App
    from headrace.app.context import Context
    from headrace.app.dead_letters import DeadLetters
    from headrace.app.middleware import Middleware
    from headrace.app.retries import Bury, Retries, Retry
    from headrace.client.async_channels import AsyncChannel, AsyncChannels, AsyncSubscription
    from headrace.client.async_client import AsyncClient, AsyncGroup, AsyncStream
    from headrace.client.async_linked_list import AsyncLinkedList
    from headrace.client.async_reliable_queue import AsyncJob, AsyncQueue
    from headrace.client.channels import Channel, Channels, Subscription
    from headrace.client.client import Client, Group, Stream
    from headrace.client.dead_letters import DeadLetter
    from headrace.client.linked_list import LinkedList
    from headrace.client.reliable_queue import Job, Queue
    from headrace.client.results import (
        Claimed,
        ConsumerInfo,
        Element,
        Entry,
        GroupInfo,
        Guarantee,
        Message,
        PendingEntry,
        PendingSummary,
        QueueInfo,
        QueueStats,
        StreamInfo,
        TrimReport,
    )
    from headrace.ordered.consumer import OrderedConsumer
    from headrace.ordered.delegated_message import OrderedMessage
    from headrace.server.public_broker import Broker

__version__ = "0.1.0.dev0"

HOMES = {
    "headrace.app.app": ("App",),
    "headrace.app.context": ("Context",),
    "headrace.app.dead_letters": ("DeadLetters",),
    "headrace.client.dead_letters": ("DeadLetter",),
    "headrace.app.middleware": ("Middleware",),
    "headrace.app.retries": ("Bury", "Retries", "Retry"),
    "headrace.client.client": ("Client", "Group", "Stream"),
    "headrace.client.async_client": ("AsyncClient", "AsyncGroup", "AsyncStream"),
    "headrace.client.reliable_queue": ("Job", "Queue"),
    "headrace.client.async_reliable_queue": ("AsyncJob", "AsyncQueue"),
    "headrace.client.linked_list": ("LinkedList",),
    "headrace.client.async_linked_list": ("AsyncLinkedList",),
    "headrace.client.channels": ("Channel", "Channels", "Subscription"),
    "headrace.client.async_channels": ("AsyncChannel", "AsyncChannels", "AsyncSubscription"),
    "headrace.ordered.consumer": ("OrderedConsumer",),
    "headrace.ordered.delegated_message": ("OrderedMessage",),
    "headrace.server.public_broker": ("Broker",),
    "headrace.client.results": (
        "Claimed", "ConsumerInfo", "Element", "Entry", "GroupInfo", "Guarantee", "Message", "PendingEntry",
        "PendingSummary", "QueueInfo", "QueueStats", "StreamInfo", "TrimReport",
    ),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    for home, names in HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module 'headrace' has no attribute {name!r}")


__all__ = [
    "App", "Context", "Retries", "Retry", "Bury", "Middleware", "DeadLetters", "DeadLetter",
    "Client", "Stream", "Group", "Queue", "Job", "LinkedList", "Channel", "Channels", "Subscription",
    "AsyncClient", "AsyncStream", "AsyncGroup", "AsyncQueue", "AsyncJob", "AsyncLinkedList", "AsyncChannel",
    "AsyncChannels", "AsyncSubscription",
    "OrderedConsumer", "OrderedMessage",
    "Broker",
    "Entry", "PendingEntry", "PendingSummary", "StreamInfo", "GroupInfo", "ConsumerInfo", "Claimed", "TrimReport",
    "Element", "QueueInfo", "QueueStats", "Message", "Guarantee",
    "HeadraceError", "ProtocolError", "CommandError", "NotFound", "WrongType", "Refused", "Unsupported",
    "ConnectionLost", "Unreachable", "AccessDenied", "ClientClosed", "ConfigError", "DataLoss", "BadRecord",
    "TableError", "Misfit", "LeaseLost", "Unconfirmed",
    "__version__",
]  # fmt: skip
