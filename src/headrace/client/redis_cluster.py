"""Clusters on redis-py: which node a request goes to.

redis-py finds the nodes and follows MOVED and ASK. Here every request with a key goes to the node of its key, every
other one to one node, where redis-py would ask all of them and hand back a dict; only SCAN visits every primary.

redis-py reads the answers about its own topology through callbacks, so those stay; all others go, as everywhere.
"""

from collections.abc import Sequence
from typing import Any, Final

import redis
import redis.asyncio

from headrace.client.requests import Request

ANYWHERE: Final = frozenset({"PING", "INFO", "COMMAND", "ECHO", "TIME"})  # The same on every node.
TOPOLOGY: Final = ("CLUSTER", "COMMAND")


class PlainCluster(redis.RedisCluster):
    """Gives answers as the server sent them."""

    def get_redis_connection(self, node: Any) -> Any:
        connection = super().get_redis_connection(node)
        forget_callbacks(connection.response_callbacks)
        return connection


def connect(hosts: Sequence[tuple[str, int]], options: dict[str, Any], *, is_async: bool) -> Any:
    options.pop("health_check_interval")
    node: Any = redis.asyncio.cluster.ClusterNode if is_async else redis.cluster.ClusterNode
    nodes = [node(host, port) for host, port in hosts]
    if not is_async:
        client: Any = PlainCluster(startup_nodes=nodes, **options)
        forget_callbacks(client.cluster_response_callbacks)
        forget_callbacks(client.result_callbacks)
        return client
    client = redis.asyncio.RedisCluster(startup_nodes=nodes, **options)
    forget_callbacks(client.response_callbacks)  # All nodes share it.
    forget_callbacks(client.result_callbacks)
    return client


def forget_callbacks(callbacks: Any) -> None:
    for name in [name for name in callbacks if not name.upper().startswith(TOPOLOGY)]:
        del callbacks[name]


def call(client: Any, request: Request[Any], words: list[Any]) -> Any:
    if request.argv[0] == "SCAN":
        return scan(client, words)
    return client.execute_command(*words, **target_of(client, request))


async def call_async(client: Any, request: Request[Any], words: list[Any]) -> Any:
    await client.initialize()
    if request.argv[0] == "SCAN":
        return await scan_async(client, words)
    return await client.execute_command(*words, **target_of(client, request))


def target_of(client: Any, request: Request[Any]) -> dict[str, Any]:
    """Where a request goes; empty: redis-py finds out."""
    if request.key is not None:
        return {"target_nodes": client.get_node_from_key(request.key.encode("utf-8", "surrogateescape"))}
    if str(request.argv[0]).upper() in ANYWHERE:
        return {"target_nodes": client.get_default_node()}
    return {}


def scan(client: Any, words: list[Any]) -> list[Any]:
    """The keys of all primaries, as the one answer of a single server with nothing left."""
    keys: list[Any] = []
    for node in client.get_primaries():
        cursor: Any = 0
        while True:
            cursor, page = client.execute_command("SCAN", cursor, *words[2:], target_nodes=node)
            keys += page
            if int(cursor) == 0:
                break
    return [0, keys]


async def scan_async(client: Any, words: list[Any]) -> list[Any]:
    keys: list[Any] = []
    for node in client.get_primaries():
        cursor: Any = 0
        while True:
            cursor, page = await client.execute_command("SCAN", cursor, *words[2:], target_nodes=node)
            keys += page
            if int(cursor) == 0:
                break
    return [0, keys]
