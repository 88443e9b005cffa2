"""XGROUP: making, moving and removing groups and their consumers."""

from typing import Final

from headrace.commands.call import Call
from headrace.commands.groups import consumer_record, no_group, wrong_arguments
from headrace.commands.help import help_reply
from headrace.commands.notifications import STREAM
from headrace.commands.numbers import parse_integer
from headrace.commands.outcome import CHANGED, OK, ZERO, Outcome
from headrace.commands.spec import command, container, integer, key, oneof, optional, shown, text, word
from headrace.engine.group import Group
from headrace.engine.ids import name_of, parse_id, parse_strict_id
from headrace.engine.stream import UNKNOWN, Stream
from headrace.errors import CommandError
from headrace.journal.record import (
    CREATE_GROUP,
    CREATE_STREAM,
    DELETE_CONSUMER,
    DESTROY_GROUP,
    SET_GROUP,
    encode_record,
)
from headrace.wire.encoder import (
    encode_integer,
)

CREATE_WORDS: Final = 8  # At most, with all options once. Redis counts them after all other checks.
SETID_WORDS: Final = (5, 7)
KEY_REQUIRED: Final = (
    "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option "
    "to create an empty stream automatically."
)

container("XGROUP", group="stream", since="5.0.0", summary="Commands that manage consumer groups.")


def get_stream(ctx: Call, name: bytes) -> Stream:
    stream = ctx.find_stream(name)
    if stream is None:
        raise CommandError(KEY_REQUIRED)
    return stream


def get_group(ctx: Call, argv: list[bytes]) -> Group:
    group = get_stream(ctx, argv[2]).groups.get(argv[3])
    if group is None:
        raise no_group(argv[3], argv[2])
    return group


def parse_entries_read(argv: list[bytes], index: int) -> int:
    entries_read = parse_integer(argv[index])
    if entries_read < -1:
        raise CommandError("ERR value for ENTRIESREAD must be positive or -1")
    return entries_read


@command(
    "XGROUP CREATE", key("RW INSERT"), text("group"),
    oneof("id-selector", text("id"), word("$", "new-id")),
    optional(word("MKSTREAM")),
    optional(shown("entries-read", integer("entriesread", token="ENTRIESREAD"))),
    group="stream", flags="write denyoom", since="5.0.0", complexity="O(1)",
    summary="Create a consumer group.",
)  # fmt: skip
def xgroup_create(ctx: Call, argv: list[bytes]) -> Outcome:
    """The group is given entries behind the ID: 0 for all, $ for those to come."""
    makes_stream = False
    entries_read = UNKNOWN
    index = 5
    while index < len(argv):
        option = argv[index].upper()
        if option == b"MKSTREAM":
            makes_stream = True
            index += 1
        elif option == b"ENTRIESREAD" and index + 1 < len(argv):
            entries_read = parse_entries_read(argv, index + 1)
            index += 2
        else:
            raise wrong_arguments(argv)
    name, group = argv[2], argv[3]
    stream = ctx.find_stream(name)
    if stream is None and not makes_stream:
        raise CommandError(KEY_REQUIRED)
    if len(argv) > CREATE_WORDS:
        raise wrong_arguments(argv)
    if argv[4] == b"$":
        last_id = 0 if stream is None else stream.last_id
    else:
        last_id = parse_strict_id(argv[4])
    record = CHANGED
    if stream is None:
        stream = ctx.new_stream(name)
        ctx.state.touch(ctx.db.number, name)
        if ctx.journaling:
            record = encode_record(CREATE_STREAM, ctx.db.number, name)
    elif group in stream.groups:
        raise CommandError("BUSYGROUP Consumer Group name already exists")
    entries_read = min(entries_read, stream.entries_added)
    stream.groups[group] = Group(last_id, entries_read)
    ctx.notify(STREAM, b"xgroup-create", name)
    if ctx.journaling:
        record += encode_record(CREATE_GROUP, ctx.db.number, name, group, name_of(last_id), b"%d" % entries_read)
    return Outcome(OK.reply, record, name)


@command(
    "XGROUP SETID", key("RW UPDATE"), text("group"),
    oneof("id-selector", text("id"), word("$", "new-id")),
    optional(shown("entries-read", integer("entriesread", token="ENTRIESREAD"))),
    group="stream", flags="write", since="5.0.0", complexity="O(1)",
    summary="Move a group's position. Pending entries stay.",
)  # fmt: skip
def xgroup_setid(ctx: Call, argv: list[bytes]) -> Outcome:
    entries_read = UNKNOWN
    index = 5
    while index < len(argv):
        if argv[index].upper() != b"ENTRIESREAD" or index + 1 >= len(argv):
            raise wrong_arguments(argv)
        entries_read = parse_entries_read(argv, index + 1)
        index += 2
    group = get_group(ctx, argv)
    stream = get_stream(ctx, argv[2])
    if len(argv) not in SETID_WORDS:
        raise wrong_arguments(argv)
    # Quirk of Redis, kept: SETID takes - and +, CREATE does not.
    last_id = stream.last_id if argv[4] == b"$" else parse_id(argv[4])
    group.set_last_id(last_id)
    group.entries_read = min(entries_read, stream.entries_added)
    ctx.notify(STREAM, b"xgroup-setid", argv[2])
    record = CHANGED
    if ctx.journaling:
        parts = (argv[2], argv[3], name_of(last_id), b"%d" % group.entries_read)
        record = encode_record(SET_GROUP, ctx.db.number, *parts)
    return Outcome(OK.reply, record, argv[2])


@command(
    "XGROUP DESTROY", key("RW DELETE"), text("group"),
    group="stream", flags="write", since="5.0.0", complexity="O(N), N being the group's pending entries.",
    summary="Remove a consumer group with all that is pending in it.",
)  # fmt: skip
def xgroup_destroy(ctx: Call, argv: list[bytes]) -> Outcome:
    stream = get_stream(ctx, argv[2])
    if stream.groups.pop(argv[3], None) is None:
        return ZERO
    ctx.notify(STREAM, b"xgroup-destroy", argv[2])
    record = encode_record(DESTROY_GROUP, ctx.db.number, argv[2], argv[3]) if ctx.journaling else CHANGED
    return Outcome(encode_integer(1), record, argv[2])


@command(
    "XGROUP CREATECONSUMER", key("RW INSERT"), text("group"), text("consumer"),
    group="stream", flags="write denyoom", since="6.2.0", complexity="O(1)",
    summary="Create a consumer in a group.",
)  # fmt: skip
def xgroup_createconsumer(ctx: Call, argv: list[bytes]) -> Outcome:
    group = get_group(ctx, argv)
    if argv[4] in group.consumers:
        return ZERO
    group.get_consumer(argv[4], ctx.now_ms)
    return Outcome(encode_integer(1), consumer_record(ctx, argv[2], argv[3], argv[4]))


@command(
    "XGROUP DELCONSUMER", key("RW DELETE"), text("group"), text("consumer"),
    group="stream", flags="write", since="5.0.0", complexity="O(N), N being the consumer's pending entries.",
    summary="Remove a consumer. What is pending with it is lost for the group.",
)  # fmt: skip
def xgroup_delconsumer(ctx: Call, argv: list[bytes]) -> Outcome:
    """The reply counts the pending entries that were dropped. Claim them first to keep them."""
    group = get_group(ctx, argv)
    if argv[4] not in group.consumers:
        return ZERO
    dropped = group.delete_consumer(argv[4])
    ctx.notify(STREAM, b"xgroup-delconsumer", argv[2])
    record = encode_record(DELETE_CONSUMER, ctx.db.number, *argv[2:5]) if ctx.journaling else CHANGED
    return Outcome(encode_integer(dropped), record)


@command(
    "XGROUP HELP", group="stream", flags="loading stale", since="5.0.0", complexity="O(1)",
    summary="What XGROUP can do.",
)  # fmt: skip
def xgroup_help(ctx: Call, argv: list[bytes]) -> Outcome:
    return help_reply(
        "XGROUP",
        [
            "CREATE <key> <group> <id|$> [MKSTREAM] [ENTRIESREAD <n>]",
            "    Create a group that is given the entries behind <id>.",
            "CREATECONSUMER <key> <group> <consumer>",
            "    Create a consumer in the group.",
            "DELCONSUMER <key> <group> <consumer>",
            "    Remove a consumer and drop what is pending with it.",
            "DESTROY <key> <group>",
            "    Remove the group.",
            "SETID <key> <group> <id|$> [ENTRIESREAD <n>]",
            "    Move the group's position.",
        ],
    )
