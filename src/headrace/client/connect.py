"""URL -> an open transport, for both flavours."""

from functools import partial
from importlib import import_module
from typing import Any

from headrace.client.transport import AsyncTransport, Transport
from headrace.client.urls import Target, parse_url


def open_transport(url: str, timeout_s: float, protocol: int | None, *, may_host: bool = True) -> Transport:
    """Connections are opened when first used, so a server that is away shows at the first call."""
    target = parse_url(url, protocol)
    if target.kind == "embedded":
        return open_embedded(target, timeout_s, may_host=may_host)
    from headrace.client.redis_transport import RedisTransport

    if target.kind == "valkey":
        from headrace.client.valkey_process import release_valkey, start_valkey

        return RedisTransport(start_valkey(target, protocol), timeout_s, partial(release_valkey, target))
    return RedisTransport(target, timeout_s)


def open_async_transport(url: str, timeout_s: float, protocol: int | None, *, may_host: bool = True) -> AsyncTransport:
    target = parse_url(url, protocol)
    if target.kind == "embedded":
        return open_async_embedded(target, timeout_s, may_host=may_host)
    from headrace.client.redis_transport import AsyncRedisTransport

    if target.kind == "valkey":
        from headrace.client.valkey_process import release_valkey, start_valkey

        return AsyncRedisTransport(start_valkey(target, protocol), timeout_s, partial(release_valkey, target))
    return AsyncRedisTransport(target, timeout_s)


def open_embedded(target: Target, timeout_s: float, *, may_host: bool) -> Transport:
    if target.path:
        from headrace.client.shared_folder import FolderTransport

        folder = FolderTransport(target, timeout_s, may_host=may_host)
        folder.sit()  # Now: others may want to attach before the first call.
        return folder
    transport: Transport = in_process().Transport(target.shown)
    return transport


def open_async_embedded(target: Target, timeout_s: float, *, may_host: bool) -> AsyncTransport:
    if target.path:
        from headrace.client.shared_folder import AsyncFolderTransport

        return AsyncFolderTransport(target, timeout_s, may_host=may_host)
    transport: AsyncTransport = in_process().AsyncTransport(target.shown)
    return transport


def in_process() -> Any:
    """The broker in this process, loaded by name: the client knows no server."""
    return import_module("headrace.server.inprocess")
