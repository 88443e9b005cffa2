"""Every command, by importing the modules that declare them."""

from typing import Final

from headrace.commands import (
    clients,
    connection,
    deleting,
    expiry,
    group_management,
    groups,
    hashes,
    info,
    introspection,
    keys,
    list_elements,
    list_moves,
    list_pops,
    lists,
    pending,
    pubsub,
    queue_extensions,
    queue_views,
    queues,
    scan,
    server,
    set_algebra,
    sets,
    settle,
    sorted_set_algebra,
    sorted_set_pops,
    sorted_set_ranges,
    sorted_sets,
    sorting,
    stream_info,
    stream_settings,
    streams,
    strings,
    transactions,
)

MODULES: Final = (
    clients, connection, deleting, expiry, group_management, groups, hashes, info, introspection, keys, list_elements,
    list_moves, list_pops, lists, pending, pubsub, queue_extensions, queue_views, queues, scan, server, set_algebra,
    sets, settle, sorted_set_algebra, sorted_set_pops, sorted_set_ranges, sorted_sets, sorting, stream_info,
    stream_settings, streams, strings, transactions,
)  # fmt: skip
