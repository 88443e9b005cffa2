"""COMMAND INFO, COMMAND DOCS and the pages of docs/commands/, all derived from the declarations in the table.

There is one page per group of commands, and an index; `tools/command_pages.py` writes them. Nobody edits them by hand.
"""

from typing import Final

from headrace.commands.settings import DECLARED, Setting
from headrace.commands.spec import Argument, Command, KeyPlace, all_commands, find_command
from headrace.wire.values import Pairs, Status, Unordered, Value

CATEGORY_OF_GROUP: Final = {
    "generic": "keyspace", "string": "string", "list": "list", "hash": "hash", "set": "set", "sorted-set": "sortedset",
    "stream": "stream", "connection": "connection", "transactions": "transaction",
}  # fmt: skip
TITLES: Final = {
    "stream": "Streams and consumer groups",
    "generic": "Keys",
    "string": "Strings",
    "list": "Lists",
    "hash": "Hashes",
    "set": "Sets",
    "sorted-set": "Sorted sets",
    "queue": "Reliable queues",
    "pubsub": "Channels",
    "headrace": "Steps of headrace",
    "transactions": "Transactions",
    "scripting": "Scripts",
    "connection": "Connections",
    "server": "Server",
}


def every_command() -> list[Command]:
    """Commands and subcommands."""
    found: list[Command] = []
    for made in all_commands():
        found.append(made)
        found += subcommands_of(made)
    return found


def find_by_path(name: bytes) -> Command | None:
    """A command as COMMAND INFO names it: xadd, or xgroup|create."""
    words = name.upper().split(b"|")
    found = find_command(words[0])
    if found is not None and len(words) == 2:
        return found.subcommands.get(words[1])
    return found if len(words) == 1 else None


# COMMAND INFO


def command_info(made: Command) -> Value:
    subcommands: list[Value] = [command_info(sub) for sub in subcommands_of(made)]
    return [
        made.full_name,
        made.arity,
        Unordered([Status(flag) for flag in flags_of(made)]),
        made.first_key,
        made.last_key,
        made.key_step,
        Unordered([Status(category) for category in categories_of(made)]),
        Unordered(list(made.tips)),
        Unordered([describe_place(place) for place in made.key_places]),
        subcommands,
    ]


def subcommands_of(made: Command) -> list[Command]:
    return list({id(sub): sub for sub in made.subcommands.values()}.values())


def flags_of(made: Command) -> list[str]:
    has_loose_keys = any(place.keyword or place.behind or place.is_counted or place.token for place in made.key_places)
    return made.flags + ["movablekeys"] if has_loose_keys and "movablekeys" not in made.flags else made.flags


def categories_of(made: Command) -> list[str]:
    """ACL categories: some follow from the group and the flags, the rest are declared."""
    found: list[str] = []
    own = CATEGORY_OF_GROUP.get(made.group, "")
    if own and made.handler is not None:
        found.append(own)
    flags = made.flags
    if "write" in flags:
        found.append("write")
    if "readonly" in flags and own != "scripting":
        found.append("read")
    if "admin" in flags:
        found += ["admin", "dangerous"]
    if "pubsub" in flags:
        found.append("pubsub")
    found.append("fast" if "fast" in flags else "slow")
    if "blocking" in flags:
        found.append("blocking")
    found += made.categories
    return ["@" + category for category in dict.fromkeys(found)]


def describe_place(place: KeyPlace) -> Value:
    flags: list[Value] = [Status(flag) for flag in place.flags]
    search: list[Value] = ["type", "index", "spec", Pairs(["index", place.first])]
    limits: list[Value] = ["lastkey", place.last, "keystep", place.step, "limit", place.limit]
    found: list[Value] = ["type", "range", "spec", Pairs(limits)]
    if place.keyword:
        search = ["type", "keyword", "spec", Pairs(["keyword", place.keyword, "startfrom", place.keyword_start])]
    elif place.is_counted:
        found = ["type", "keynum", "spec", Pairs(["keynumidx", 0, "firstkey", 1, "keystep", place.step])]
    elif place.behind or place.token:
        search = ["type", "unknown", "spec", Pairs([])]
        found = search
    return Pairs(["flags", Unordered(flags), "begin_search", Pairs(search), "find_keys", Pairs(found)])


# COMMAND DOCS


def command_docs(made: Command) -> Value:
    items: list[Value] = [
        "summary", made.summary, "since", made.since, "group", made.group, "complexity", made.complexity,
    ]  # fmt: skip
    places = {id(argument): index for index, argument in enumerate(key_arguments(made.arguments))}
    if made.handler is not None and made.arguments:
        items += ["arguments", [describe_argument(argument, places) for argument in made.arguments]]
    if made.subcommands:
        inner: list[Value] = []
        for sub in subcommands_of(made):
            inner += [sub.full_name, command_docs(sub)]
        items += ["subcommands", Pairs(inner)]
    return Pairs(items)


def key_arguments(arguments: tuple[Argument, ...]) -> list[Argument]:
    found: list[Argument] = []
    for argument in arguments:
        if argument.kind == "key":
            found.append(argument)
        found += key_arguments(argument.parts)
    return found


def describe_argument(argument: Argument, places: dict[int, int]) -> Value:
    is_key = argument.kind == "key" and "not_key" not in argument.key_flags  # A shard channel only stands like a key.
    kind = argument.kind if is_key or argument.kind != "key" else "string"
    items: list[Value] = ["name", argument.name, "type", kind]
    if argument.kind not in ("oneof", "block"):
        items += ["display_text", argument.display or argument.name]
    if is_key:
        items += ["key_spec_index", places[id(argument)]]
    if argument.token:
        items += ["token", argument.token]
    if argument.since:
        items += ["since", argument.since]
    flags: list[Value] = []
    if argument.is_optional:
        flags.append(Status("optional"))
    if argument.is_multiple:
        flags.append(Status("multiple"))
    if argument.repeats_token:
        flags.append(Status("multiple_token"))
    if flags:
        items += ["flags", flags]
    if argument.parts:
        items += ["arguments", [describe_argument(part, places) for part in argument.parts]]
    return Pairs(items)


# The syntax line


def syntax(made: Command) -> str:
    """The command as a person would type it: XADD key [NOMKSTREAM] … field value [field value …]."""
    words = [made.full_name.replace("|", " ").upper()] + [write_argument(argument) for argument in made.arguments]
    return " ".join(words) if made.handler is not None else words[0]


def write_argument(argument: Argument) -> str:
    core = write_core(argument)
    if argument.is_multiple:
        lead = f"{argument.token} " if argument.token else ""
        if argument.repeats_token or not argument.token:
            core = f"{lead}{core} [{lead}{core} ...]"
        else:
            core = f"{lead}{core} [{core} ...]"
    elif argument.token and argument.kind != "pure-token":
        core = f"{argument.token} {core}"
    return f"[{core}]" if argument.is_optional else core


def write_core(argument: Argument) -> str:
    """An argument without its token, its repetition and its brackets."""
    if argument.kind == "pure-token":
        return argument.token or '""'
    if argument.kind == "oneof":
        choices = " | ".join(write_argument(part) for part in argument.parts)
        return choices if argument.is_optional and not argument.token else f"<{choices}>"
    if argument.kind == "block":
        return " ".join(write_argument(part) for part in argument.parts)
    return argument.display or argument.name


# Pages


def pages() -> dict[str, str]:
    """File name -> text: one page per group of commands, one about settings, and an index."""
    groups: dict[str, list[Command]] = {}
    for made in all_commands():
        groups.setdefault(made.group, []).append(made)
    order = sorted(groups, key=page_order)
    found = {"index.md": index_of(order, groups), "settings.md": settings_page()}
    for group in order:
        found[f"{group}.md"] = page_of(group, groups[group])
    return found


def page_order(group: str) -> int:
    titles = list(TITLES)
    return titles.index(group) if group in titles else len(titles)


def index_of(order: list[str], groups: dict[str, list[Command]]) -> str:
    lines = ["# Commands", "", "Generated from the declarations in `src/headrace/commands/`.", ""]
    for group in order:
        lines += [f"## {title_of(group)}", "", "| command | |", "|---|---|"]
        lines += [
            f"| [{made.name.upper()}]({group}.md#{made.name.replace('.', '')}) | {made.summary} |"
            for made in groups[group]
        ]
        lines.append("")
    lines += ["Settings that CONFIG GET and CONFIG SET know are on [their own page](settings.md).", ""]
    return "\n".join(lines)


def title_of(group: str) -> str:
    return TITLES.get(group, group.capitalize())


def page_of(group: str, commands: list[Command]) -> str:
    lines = [f"# {title_of(group)}", ""]
    for made in commands:
        lines += describe_on_page(made, "##")
        for sub in subcommands_of(made):
            lines += describe_on_page(sub, "###")
    return "\n".join(lines).rstrip("\n") + "\n"


def describe_on_page(made: Command, heading: str) -> list[str]:
    lines = [f"{heading} {made.full_name.replace('|', ' ').upper()}", "", made.summary, ""]
    if made.handler is None:
        return lines
    lines += ["```", syntax(made), "```", ""]
    if made.notes:
        for paragraph in made.notes.split("\n\n"):
            lines += [" ".join(line.strip() for line in paragraph.splitlines()), ""]
    flags = ", ".join(made.flags) or "none"
    origin = "Since headrace" if made.group in ("headrace", "queue") else "As in Redis since"
    lines += [f"{origin} {made.since}. {made.complexity.rstrip('.')}. Flags: {flags}.", ""]
    return lines


def settings_page() -> str:
    lines = ["# Settings", "", "What `CONFIG GET` and `CONFIG SET` know.", ""]
    lines += settings_table([setting for setting in DECLARED if not setting.is_inert])
    lines += ["## Accepted without effect", "", "Clients and test suites set these; nothing here depends on them.", ""]
    lines += settings_table([setting for setting in DECLARED if setting.is_inert])
    return "\n".join(lines).rstrip("\n") + "\n"


def settings_table(settings: list[Setting]) -> list[str]:
    lines = ["| setting | default | may be | |", "|---|---|---|---|"]
    for setting in settings:
        note = " Cannot be changed while running." if setting.is_fixed else ""
        default = f"`{setting.default}`" if setting.default else "empty"
        lines.append(f"| {setting.name} | {default} | {describe_range(setting)} | {setting.purpose}{note} |")
    return [*lines, ""]


def describe_range(setting: Setting) -> str:
    if setting.kind == "boolean":
        return "yes or no"
    if setting.kind == "choice":
        return ", ".join(setting.choices)
    if setting.kind == "text":
        return "any text"
    if setting.kind == "events":
        return "letters of `Ag$lshzxetdnocKEm`"
    if setting.kind == "limits":
        return "for each class of clients: hard limit, soft limit, seconds"
    unit = "bytes, with or without a unit (64kb)" if setting.kind == "memory" else "a number"
    return f"{unit}, {setting.low} to {setting.high}" if setting.high < 2**62 else f"{unit}, {setting.low} or more"
