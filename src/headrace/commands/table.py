"""Every command, by importing the modules that declare them."""

from typing import Final

from headrace.commands import (
    clients,
    connection,
    expiry,
    groups,
    hashes,
    info,
    introspection,
    keys,
    lists,
    pending,
    server,
    sets,
    settle,
    stream_info,
    streams,
    strings,
    transactions,
)

MODULES: Final = (
    clients, connection, expiry, groups, hashes, info, introspection, keys, lists, pending, server, sets, settle,
    stream_info, streams, strings, transactions,
)  # fmt: skip
