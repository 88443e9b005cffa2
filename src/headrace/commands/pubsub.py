"""Channels: SUBSCRIBE, PUBLISH and their relatives. Fan-out, at most once, and nothing is kept.

A message reaches those who listen at that moment and nobody else. Every confirmation of SUBSCRIBE and its relatives is
a message of its own, one for each name. A client that listens in RESP2 may send nothing but these commands, PING, QUIT
and RESET; in RESP3 it may send anything.

Shard channels are ordinary channels of their own space: there is one shard.
"""

from headrace.commands.call import Call
from headrace.commands.help import help_reply
from headrace.commands.outcome import Outcome
from headrace.commands.publishing import publish, publish_to_shard
from headrace.commands.spec import command, container, key, many, optional, pattern, text
from headrace.engine.channels import Listeners
from headrace.engine.glob import Glob
from headrace.errors import CommandError
from headrace.wire.encoder import encode_array, encode_bulk, encode_integer, encode_null


def confirmation(ctx: Call, word: bytes, name: bytes | None, count: int) -> bytes:
    """What a client is told about one name, and to how many it listens now."""
    shown = encode_null(resp3=ctx.resp3) if name is None else encode_bulk(name)
    return (b">3\r\n" if ctx.resp3 else b"*3\r\n") + encode_bulk(word) + shown + encode_integer(count)


def refresh_listening(ctx: Call, command_name: str) -> None:
    ctx.last_command = command_name
    ctx.is_listening = ctx.state.channels.is_listening(ctx.id)
    ctx.refresh_gate()


# Listening


@command(
    "SUBSCRIBE", many(text("channel")),
    group="pubsub", flags="denyoom pubsub noscript loading stale", since="2.0.0",
    complexity="O(N) with N channels", summary="Listen to channels.",
)  # fmt: skip
def subscribe(ctx: Call, argv: list[bytes]) -> Outcome:
    """The confirmations count channels and patterns together."""
    channels = ctx.state.channels
    replies: list[bytes] = []
    for channel in argv[1:]:
        channels.channels.add(ctx.id, channel)
        replies.append(confirmation(ctx, b"subscribe", channel, channels.count_of(ctx.id)))
    refresh_listening(ctx, "subscribe")
    return Outcome(b"".join(replies))


@command(
    "PSUBSCRIBE", many(pattern("pattern")),
    group="pubsub", flags="denyoom pubsub noscript loading stale", since="2.0.0",
    complexity="O(N) with N patterns", summary="Listen to all channels that match a pattern.",
)  # fmt: skip
def psubscribe(ctx: Call, argv: list[bytes]) -> Outcome:
    """A message that matches several patterns of a client, or also one of its channels, comes once for each."""
    channels = ctx.state.channels
    replies: list[bytes] = []
    for name in argv[1:]:
        channels.add_pattern(ctx.id, name)
        replies.append(confirmation(ctx, b"psubscribe", name, channels.count_of(ctx.id)))
    refresh_listening(ctx, "psubscribe")
    return Outcome(b"".join(replies))


@command(
    "SSUBSCRIBE", many(key("not_key", "shardchannel")),
    group="pubsub", flags="denyoom pubsub noscript loading stale", since="7.0.0",
    complexity="O(N) with N shard channels", summary="Listen to shard channels.",
)  # fmt: skip
def ssubscribe(ctx: Call, argv: list[bytes]) -> Outcome:
    shards = ctx.state.channels.shards
    replies: list[bytes] = []
    for channel in argv[1:]:
        shards.add(ctx.id, channel)
        replies.append(confirmation(ctx, b"ssubscribe", channel, shards.count_of(ctx.id)))
    refresh_listening(ctx, "ssubscribe")
    return Outcome(b"".join(replies))


@command(
    "UNSUBSCRIBE", optional(many(text("channel"))),
    group="pubsub", flags="pubsub noscript loading stale", since="2.0.0",
    complexity="O(N) with N channels", summary="Listen to channels no longer; without names, to none.",
)  # fmt: skip
def unsubscribe(ctx: Call, argv: list[bytes]) -> Outcome:
    """Always answers: one confirmation for each name, or one without a name when there was nothing to end."""
    channels = ctx.state.channels
    replies: list[bytes] = []
    for channel in argv[1:] or channels.channels.names_of(ctx.id):
        channels.channels.remove(ctx.id, channel)
        replies.append(confirmation(ctx, b"unsubscribe", channel, channels.count_of(ctx.id)))
    refresh_listening(ctx, "unsubscribe")
    return Outcome(b"".join(replies) or confirmation(ctx, b"unsubscribe", None, channels.count_of(ctx.id)))


@command(
    "PUNSUBSCRIBE", optional(many(pattern("pattern"))),
    group="pubsub", flags="pubsub noscript loading stale", since="2.0.0",
    complexity="O(N) with N patterns", summary="Listen to patterns no longer; without names, to none.",
)  # fmt: skip
def punsubscribe(ctx: Call, argv: list[bytes]) -> Outcome:
    channels = ctx.state.channels
    replies: list[bytes] = []
    for name in argv[1:] or channels.patterns.names_of(ctx.id):
        channels.remove_pattern(ctx.id, name)
        replies.append(confirmation(ctx, b"punsubscribe", name, channels.count_of(ctx.id)))
    refresh_listening(ctx, "punsubscribe")
    return Outcome(b"".join(replies) or confirmation(ctx, b"punsubscribe", None, channels.count_of(ctx.id)))


@command(
    "SUNSUBSCRIBE", optional(many(key("not_key", "shardchannel"))),
    group="pubsub", flags="pubsub noscript loading stale", since="7.0.0",
    complexity="O(N) with N shard channels", summary="Listen to shard channels no longer; without names, to none.",
)  # fmt: skip
def sunsubscribe(ctx: Call, argv: list[bytes]) -> Outcome:
    shards = ctx.state.channels.shards
    replies: list[bytes] = []
    for channel in argv[1:] or shards.names_of(ctx.id):
        shards.remove(ctx.id, channel)
        replies.append(confirmation(ctx, b"sunsubscribe", channel, shards.count_of(ctx.id)))
    refresh_listening(ctx, "sunsubscribe")
    return Outcome(b"".join(replies) or confirmation(ctx, b"sunsubscribe", None, shards.count_of(ctx.id)))


# Publishing


@command(
    "PUBLISH", text("channel"), text("message"),
    group="pubsub", flags="pubsub loading stale fast", since="2.0.0",
    complexity="O(N+M) with N listeners of the channel and M patterns",
    summary="Send a message to those who listen to a channel now.",
)  # fmt: skip
def publish_(ctx: Call, argv: list[bytes]) -> Outcome:
    """The reply counts those who got it. Nobody else ever will: nothing is kept."""
    return Outcome(encode_integer(publish(ctx.state, ctx, argv[1], argv[2])))


@command(
    "SPUBLISH", key("not_key", "shardchannel"), text("message"),
    group="pubsub", flags="pubsub loading stale fast", since="7.0.0",
    complexity="O(N) with N listeners of the shard channel",
    summary="Send a message to those who listen to a shard channel now.",
)  # fmt: skip
def spublish(ctx: Call, argv: list[bytes]) -> Outcome:
    return Outcome(encode_integer(publish_to_shard(ctx.state, ctx, argv[1], argv[2])))


# Looking

container("PUBSUB", group="pubsub", since="2.8.0", summary="Who listens to what.")


def check_length(argv: list[bytes], most: int) -> None:
    if len(argv) > most:
        asked = argv[1].decode("utf-8", "surrogateescape")
        raise CommandError(f"ERR unknown subcommand or wrong number of arguments for '{asked}'. Try PUBSUB HELP.")


def list_names(listeners: Listeners, argv: list[bytes]) -> Outcome:
    check_length(argv, 3)
    glob = Glob(argv[2]) if len(argv) == 3 else None
    return Outcome(encode_array([encode_bulk(name) for name in listeners.matching(glob)]))


def count_listeners(listeners: Listeners, argv: list[bytes]) -> Outcome:
    parts: list[bytes] = []
    for name in argv[2:]:
        parts.append(encode_bulk(name))
        parts.append(encode_integer(listeners.count_on(name)))
    return Outcome(encode_array(parts))


@command(
    "PUBSUB CHANNELS", optional(pattern("pattern")),
    group="pubsub", flags="pubsub loading stale", since="2.8.0", complexity="O(N) with N channels",
    summary="Channels that somebody listens to by name.",
)  # fmt: skip
def pubsub_channels(ctx: Call, argv: list[bytes]) -> Outcome:
    return list_names(ctx.state.channels.channels, argv)


@command(
    "PUBSUB NUMSUB", optional(many(text("channel"))),
    group="pubsub", flags="pubsub loading stale", since="2.8.0", complexity="O(N) with N channels asked for",
    summary="How many listen to each channel by name.",
)  # fmt: skip
def pubsub_numsub(ctx: Call, argv: list[bytes]) -> Outcome:
    return count_listeners(ctx.state.channels.channels, argv)


@command(
    "PUBSUB NUMPAT",
    group="pubsub", flags="pubsub loading stale", since="2.8.0", complexity="O(1)",
    summary="How many different patterns somebody listens to.",
)  # fmt: skip
def pubsub_numpat(ctx: Call, argv: list[bytes]) -> Outcome:
    return Outcome(encode_integer(len(ctx.state.channels.globs)))


@command(
    "PUBSUB SHARDCHANNELS", optional(pattern("pattern")),
    group="pubsub", flags="pubsub loading stale", since="7.0.0", complexity="O(N) with N shard channels",
    summary="Shard channels that somebody listens to.",
)  # fmt: skip
def pubsub_shardchannels(ctx: Call, argv: list[bytes]) -> Outcome:
    return list_names(ctx.state.channels.shards, argv)


@command(
    "PUBSUB SHARDNUMSUB", optional(many(text("shardchannel"))),
    group="pubsub", flags="pubsub loading stale", since="7.0.0", complexity="O(N) with N shard channels asked for",
    summary="How many listen to each shard channel.",
)  # fmt: skip
def pubsub_shardnumsub(ctx: Call, argv: list[bytes]) -> Outcome:
    return count_listeners(ctx.state.channels.shards, argv)


@command(
    "PUBSUB HELP",
    group="pubsub", flags="loading stale", since="6.2.0", complexity="O(1)", summary="The subcommands of PUBSUB.",
)  # fmt: skip
def pubsub_help(ctx: Call, argv: list[bytes]) -> Outcome:
    return help_reply(
        "PUBSUB",
        [
            "CHANNELS [<pattern>]", "    Channels that somebody listens to by name, all or those that match.",
            "NUMPAT", "    How many different patterns somebody listens to.",
            "NUMSUB [<channel> ...]", "    How many listen to each channel by name.",
            "SHARDCHANNELS [<pattern>]", "    Shard channels that somebody listens to, all or those that match.",
            "SHARDNUMSUB [<shardchannel> ...]", "    How many listen to each shard channel.",
        ],
    )  # fmt: skip
