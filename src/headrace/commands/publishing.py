"""Handing messages to those who listen: at once, and to nobody who comes later.

A message is encoded once for each protocol, however many listen; each listener's output gets the same bytes, and leaves
with one write per connection and loop turn. A client that publishes to itself gets the message behind the reply of the
command that runs, as in Redis; in a transaction, behind the reply of EXEC.

Messages that nobody takes are bounded: at the hard limit of client-output-buffer-limit the listener is closed.
Keyspace events are messages like all others.
"""

from typing import Final

from headrace.commands.call import Call, State
from headrace.commands.notifications import KEYEVENT, KEYSPACE, MISSED
from headrace.commands.spec import Command
from headrace.wire.encoder import encode_bulk

ASK_ABOUT: Final = ("object|", "memory|")  # These look at a key without asking for it.
TOO_SLOW: Final = -1  # Stands in `Call.killed_by` for the broker itself.


def publish(state: State, ctx: Call | None, channel: bytes, message: bytes) -> int:
    """Send a message to a channel's listeners, then to those of patterns that match; how many got it."""
    channels = state.channels
    received = 0
    tail = b""
    listeners = channels.channels.by_name.get(channel)
    if listeners is not None:
        tail = encode_bulk(channel) + encode_bulk(message)
        received = push(state, ctx, listeners, b"3\r\n$7\r\nmessage\r\n" + tail)
    if channels.globs:
        for pattern in channels.patterns_on(channel):
            if not tail:
                tail = encode_bulk(channel) + encode_bulk(message)
            body = b"4\r\n$8\r\npmessage\r\n" + encode_bulk(pattern) + tail
            listeners = channels.patterns.by_name.get(pattern)  # May be gone: its listener was closed just now.
            if listeners is not None:
                received += push(state, ctx, listeners, body)
    return received


def publish_to_shard(state: State, ctx: Call | None, channel: bytes, message: bytes) -> int:
    listeners = state.channels.shards.by_name.get(channel)
    if listeners is None:
        return 0
    return push(state, ctx, listeners, b"3\r\n$8\r\nsmessage\r\n" + encode_bulk(channel) + encode_bulk(message))


def push(state: State, ctx: Call | None, listeners: dict[int, None], body: bytes) -> int:
    """Give every listener the message: the body behind the sign of its protocol."""
    clients = state.clients
    speaking = state.speaking
    hard_bytes = state.settings.listener_limit.hard_bytes
    size = len(body) + 1
    for_resp2 = b""
    for_resp3 = b""
    too_slow: list[Call] = []
    for number in listeners:
        call = clients[number]
        if call.is_closing:
            continue
        if call.resp3:
            if not for_resp3:
                for_resp3 = b">" + body
            data = for_resp3
        else:
            if not for_resp2:
                for_resp2 = b"*" + body
            data = for_resp2
        if call is ctx:
            call.pushes.append(data)
        else:
            if not call.out:  # Otherwise somebody has named it already.
                speaking.append(call)
            call.out.append(data)
        call.pushed_bytes += size
        if 0 < hard_bytes <= call.pushed_bytes:
            too_slow.append(call)
    received = len(listeners)
    for call in too_slow:
        drop(state, call)
    return received


def drop(state: State, call: Call) -> None:
    """Too much waits for the client: it is closed, and what waits is thrown away."""
    state.dropped_listeners += 1
    state.channels.forget(call.id)
    state.waiters.remove(call.id)
    call.is_blocked = False
    call.postponed = None
    call.is_closing = True
    call.is_halted = True
    call.killed_by = TOO_SLOW
    call.out = []
    call.pushes = []
    call.pushed_bytes = 0
    state.speaking.append(call)


# Keyspace events


def publish_events(state: State, ctx: Call | None) -> None:
    """Publish what has happened to keys since the last time."""
    events = state.events[:]
    state.events.clear()
    for _, database, event, key in events:
        if state.event_kinds & KEYSPACE:
            publish(state, ctx, b"__keyspace@%d__:%b" % (database, key), event)
        if state.event_kinds & KEYEVENT:
            publish(state, ctx, b"__keyevent@%d__:%b" % (database, event), key)


def notice_missed(ctx: Call, command: Command, argv: list[bytes]) -> None:
    """A command that only reads has run: the keys it named that do not exist are events too."""
    if ctx.state.event_kinds & MISSED and "readonly" in command.flags and not command.full_name.startswith(ASK_ABOUT):
        for key in command.keys_in(argv):
            if key not in ctx.db.values:
                ctx.notify(MISSED, b"keymiss", key)
