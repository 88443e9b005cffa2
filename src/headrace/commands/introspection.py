"""COMMAND: what the server can do, as `catalogue.py` derives it from the declarations."""

from typing import Final

from headrace.commands.call import Call
from headrace.commands.catalogue import categories_of, command_docs, command_info, every_command, find_by_path
from headrace.commands.help import help_reply
from headrace.commands.outcome import Outcome
from headrace.commands.spec import (
    Command,
    all_commands,
    command,
    find_command,
    many,
    oneof,
    optional,
    pattern,
    text,
)
from headrace.engine.glob import Glob
from headrace.errors import CommandError
from headrace.wire.encoder import encode, encode_integer
from headrace.wire.values import Pairs, Status, Unordered, Value

FLAGS: Final = "loading stale"


@command(
    "COMMAND",
    group="server", flags=FLAGS, categories="connection", since="2.8.13", complexity="O(N) with N commands",
    summary="Everything about every command.", tips="nondeterministic_output_order", arity=-1,
)  # fmt: skip
def command_(ctx: Call, argv: list[bytes]) -> Outcome:
    """The one command that both does something by itself and has subcommands, so it hands those on."""
    if len(argv) == 1:
        return Outcome(encode([command_info(made) for made in all_commands()], resp3=ctx.resp3))
    own = find_command(b"COMMAND")
    assert own is not None
    found = own.subcommands.get(argv[1].upper())
    if found is None or found.handler is None:
        asked = argv[1][:128].decode("utf-8", "surrogateescape")
        raise CommandError(f"ERR unknown subcommand '{asked}'. Try COMMAND HELP.")
    if len(argv) < found.least or len(argv) > found.most:
        found.rejected += 1
        raise CommandError(f"ERR wrong number of arguments for '{found.full_name}' command")
    found.calls += 1
    return found.handler(ctx, argv)


@command(
    "COMMAND COUNT",
    group="server", flags=FLAGS, categories="connection", since="2.8.13", complexity="O(1)",
    summary="How many commands there are.",
)  # fmt: skip
def command_count(ctx: Call, argv: list[bytes]) -> Outcome:
    return Outcome(encode_integer(len(all_commands())))


@command(
    "COMMAND INFO", optional(many(text("command-name"))),
    group="server", flags=FLAGS, categories="connection", since="2.8.13", complexity="O(N) with N commands asked for",
    summary="Arity, flags and key places of commands.", tips="nondeterministic_output_order",
)  # fmt: skip
def command_info_(ctx: Call, argv: list[bytes]) -> Outcome:
    if len(argv) == 2:
        return Outcome(encode([command_info(made) for made in all_commands()], resp3=ctx.resp3))
    reply: list[Value] = []
    for name in argv[2:]:
        found = find_by_path(name)
        reply.append(None if found is None else command_info(found))
    return Outcome(encode(reply, resp3=ctx.resp3))


@command(
    "COMMAND DOCS", optional(many(text("command-name"))),
    group="server", flags=FLAGS, categories="connection", since="7.0.0", complexity="O(N) with N commands asked for",
    summary="Syntax and meaning of commands.", tips="nondeterministic_output_order",
)  # fmt: skip
def command_docs_(ctx: Call, argv: list[bytes]) -> Outcome:
    chosen: list[Command] = all_commands()
    if len(argv) > 2:
        asked = [find_by_path(name) for name in argv[2:]]
        chosen = [found for found in asked if found is not None]
    items: list[Value] = []
    for made in chosen:
        items += [made.full_name, command_docs(made)]
    return Outcome(encode(Pairs(items), resp3=ctx.resp3))


@command(
    "COMMAND LIST",
    optional(
        oneof(
            "filterby",
            text("module-name", "MODULE"),
            text("category", "ACLCAT"),
            pattern("pattern", "PATTERN"),
            token="FILTERBY",
        )
    ),
    group="server", flags=FLAGS, categories="connection", since="7.0.0", complexity="O(N) with N commands",
    summary="Names of commands.", tips="nondeterministic_output_order",
)  # fmt: skip
def command_list(ctx: Call, argv: list[bytes]) -> Outcome:
    kind = argv[3].upper() if len(argv) == 5 and argv[2].upper() == b"FILTERBY" else b""
    every = every_command()
    if len(argv) == 2:
        names = [made.full_name for made in every]
    elif kind == b"PATTERN":
        glob = Glob(argv[4], ignores_case=True)
        names = [made.full_name for made in every if glob.matches(made.full_name.encode())]
    elif kind == b"ACLCAT":
        category = "@" + argv[4].decode("utf-8", "replace").lower()
        names = [made.full_name for made in every if category in categories_of(made)]
    elif kind == b"MODULE":
        names = []
    else:
        raise CommandError("ERR syntax error")
    return Outcome(encode(names, resp3=ctx.resp3))


@command(
    "COMMAND GETKEYS", text("command"), optional(many(text("arg"))),
    group="server", flags=FLAGS, categories="connection", since="2.8.13", complexity="O(N) with N words",
    summary="The keys among the words of a command.",
)  # fmt: skip
def command_getkeys(ctx: Call, argv: list[bytes]) -> Outcome:
    return Outcome(encode(find_keys(argv[2:]), resp3=ctx.resp3))


@command(
    "COMMAND GETKEYSANDFLAGS", text("command"), optional(many(text("arg"))),
    group="server", flags=FLAGS, categories="connection", since="7.0.0", complexity="O(N) with N words",
    summary="The keys among the words of a command, and what it does with each.",
)  # fmt: skip
def command_getkeysandflags(ctx: Call, argv: list[bytes]) -> Outcome:
    made = get_command(argv[2:])
    names = find_keys(argv[2:])
    reply: list[Value] = []
    for index, name in enumerate(names):
        place = made.key_places[min(index, len(made.key_places) - 1)]
        reply.append([name, Unordered([Status(flag) for flag in place.flags])])
    return Outcome(encode(reply, resp3=ctx.resp3))


def get_command(words: list[bytes]) -> Command:
    found = find_command(words[0])
    if found is not None and found.subcommands and len(words) > 1:
        found = found.subcommands.get(words[1].upper(), found)
    if found is None or found.handler is None:
        raise CommandError("ERR Invalid command specified")
    return found


def find_keys(words: list[bytes]) -> list[bytes]:
    made = get_command(words)
    if not made.key_places or "not_key" in made.key_places[0].flags:
        raise CommandError("ERR The command has no key arguments")
    if len(words) < made.least or len(words) > made.most:
        raise CommandError("ERR Invalid number of arguments specified for command")
    names = made.keys_in(words)
    if not names:
        raise CommandError("ERR Invalid arguments specified for command")
    return names


@command(
    "COMMAND HELP",
    group="server", flags=FLAGS, categories="connection", since="5.0.0", complexity="O(1)",
    summary="The subcommands of COMMAND.",
)  # fmt: skip
def command_help(ctx: Call, argv: list[bytes]) -> Outcome:
    return help_reply(
        "COMMAND",
        [
            "(no subcommand)", "    Everything about every command.",
            "COUNT", "    How many commands there are.",
            "DOCS [<command-name> ...]", "    Syntax and meaning of commands.",
            "GETKEYS <full-command>", "    The keys among the words of a command.",
            "GETKEYSANDFLAGS <full-command>", "    The keys, and what the command does with each.",
            "INFO [<command-name> ...]", "    Arity, flags and key places of commands.",
            "LIST [FILTERBY (MODULE <name>|ACLCAT <category>|PATTERN <pattern>)]", "    Names of commands.",
        ],
    )  # fmt: skip
