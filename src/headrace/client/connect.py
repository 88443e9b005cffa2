"""URL -> an open transport, for both flavours."""

from functools import partial
from importlib import import_module
from typing import Any

from headrace.client.transport import AsyncTransport, Transport
from headrace.client.urls import Target, parse_url
from headrace.errors import ConfigError


def open_transport(url: str, timeout_s: float, protocol: int | None) -> Transport:
    """Connections are opened when first used, so a server that is away shows at the first call."""
    target = parse_url(url, protocol)
    if target.kind == "embedded":
        transport: Transport = embedded(target).Transport(target.shown)
        return transport
    from headrace.client.redis_transport import RedisTransport

    if target.kind == "valkey":
        from headrace.client.valkey_process import release_valkey, start_valkey

        return RedisTransport(start_valkey(target, protocol), timeout_s, partial(release_valkey, target))
    return RedisTransport(target, timeout_s)


def open_async_transport(url: str, timeout_s: float, protocol: int | None) -> AsyncTransport:
    target = parse_url(url, protocol)
    if target.kind == "embedded":
        transport: AsyncTransport = embedded(target).AsyncTransport(target.shown)
        return transport
    from headrace.client.redis_transport import AsyncRedisTransport

    if target.kind == "valkey":
        from headrace.client.valkey_process import release_valkey, start_valkey

        return AsyncRedisTransport(start_valkey(target, protocol), timeout_s, partial(release_valkey, target))
    return AsyncRedisTransport(target, timeout_s)


def embedded(target: Target) -> Any:
    """The broker in this process, loaded by name: the client knows no server."""
    if target.path:
        raise ConfigError(
            f"{target.shown}: embedded: with a folder is not there yet. Use embedded: alone, which is in memory, start "
            "a broker with headrace serve --dir FOLDER, or use valkey:FOLDER."
        )
    return import_module("headrace.server.inprocess")
