"""How a command is declared: once, with everything that is known about it.

    @command(
        "XACK", key("RW UPDATE"), text("group"), many(text("ID")),
        group="stream", flags="write fast", since="5.0.0", complexity="…", summary="…",
    )
    def xack(ctx: Call, argv: list[bytes]) -> Outcome: …

Arity, key positions, ACL categories, the syntax line, COMMAND, COMMAND DOCS and the docs pages are derived from the
declaration. The argument list is never walked while serving: handlers read `argv` by hand, in the order Redis checks
it.

A subcommand is declared as "XGROUP CREATE" under a container made with `container`.
"""

from collections.abc import Callable
from typing import Final

from headrace.commands.call import Call
from headrace.commands.outcome import Outcome

Handler = Callable[[Call, list[bytes]], Outcome]

UNLIMITED: Final = 2**31 - 1
LONGEST_COUNT: Final = 10  # Digits of a number of keys: no command has more words.
ACCESS: Final = ("RO", "RW", "OW", "RM")  # Of the key flags, only these are written in capitals.


class Argument:
    """One place in a command's syntax."""

    __slots__ = (
        "name", "kind", "token", "is_optional", "is_multiple", "repeats_token", "parts", "key_flags", "keyword",
        "keyword_start", "behind", "is_counted", "since", "display",
    )  # fmt: skip

    def __init__(self, name: str, kind: str, token: str = "", parts: tuple["Argument", ...] = ()) -> None:
        self.name = name
        self.kind = kind  # As COMMAND DOCS calls it: key, string, integer, unix-time, pure-token, oneof, block, …
        self.token = token
        self.is_optional = False
        self.is_multiple = False
        self.repeats_token = False
        self.parts = parts
        self.key_flags = ""  # Of a key: what the command does with it.
        self.keyword = ""  # Of a key: the word its list stands behind, when its place is not fixed.
        self.keyword_start = 1  # Where looking for that word begins.
        self.behind = ""  # Of keys that go to the end: the options, each with a value, that may stand before them.
        self.is_counted = False  # Of keys: the word before them says how many they are.
        self.since = ""
        self.display = ""  # How the syntax line calls it, when not by its name.

    def least_words(self) -> int:
        """How many words it takes at least."""
        if self.is_optional:
            return 0
        words = 1 if self.token else 0
        if self.kind == "oneof":
            words += min(part.least_words() for part in self.parts)
        elif self.kind == "block":
            words += sum(part.least_words() for part in self.parts)
        elif self.kind != "pure-token":
            words += 1
        return words

    def has_fixed_size(self) -> bool:
        if self.is_optional or self.is_multiple:
            return False
        if self.kind == "oneof":
            return all(part.has_fixed_size() for part in self.parts) and len({p.least_words() for p in self.parts}) == 1
        return all(part.has_fixed_size() for part in self.parts)


def key(
    flags: str, name: str = "key", token: str = "", keyword: str = "", keyword_start: int = 1, *,
    behind: str = "", counted: bool = False,
) -> Argument:  # fmt: skip
    argument = Argument(name, "key", token)
    argument.behind = behind
    argument.is_counted = counted
    argument.key_flags = flags
    argument.keyword = keyword
    argument.keyword_start = keyword_start
    return argument


def text(name: str, token: str = "") -> Argument:
    return Argument(name, "string", token)


def integer(name: str, token: str = "") -> Argument:
    return Argument(name, "integer", token)


def double(name: str, token: str = "") -> Argument:
    return Argument(name, "double", token)


def pattern(name: str, token: str = "") -> Argument:
    return Argument(name, "pattern", token)


def unix_time(name: str, token: str = "") -> Argument:
    return Argument(name, "unix-time", token)


def word(token: str, name: str = "") -> Argument:
    """A fixed word: NOACK. An empty token is written as ""."""
    return Argument(name or token.lower(), "pure-token", token)


def oneof(name: str, *parts: Argument, token: str = "") -> Argument:
    return Argument(name, "oneof", token, parts)


def block(name: str, *parts: Argument, token: str = "") -> Argument:
    return Argument(name, "block", token, parts)


def optional(argument: Argument) -> Argument:
    argument.is_optional = True
    return argument


def many(argument: Argument, *, repeats_token: bool = False) -> Argument:
    argument.is_multiple = True
    argument.repeats_token = repeats_token
    return argument


def shown(display: str, argument: Argument) -> Argument:
    """Call an argument by another word than its name in the syntax line."""
    argument.display = display
    return argument


def added(since: str, argument: Argument) -> Argument:
    """Mark an argument that came later than its command."""
    argument.since = since
    return argument


class KeyPlace:
    """Where one key argument stands: from a fixed place, behind its number, or behind a word.

    A keyword is followed by keys and then by as many other words (STREAMS); a token by one key, anywhere (STORE).
    """

    __slots__ = ("flags", "first", "keyword", "keyword_start", "behind", "is_counted", "token", "last", "step", "limit")

    def __init__(self, argument: Argument, first: int, last: int, step: int) -> None:
        self.flags = [flag if flag in ACCESS else flag.lower() for flag in argument.key_flags.upper().split()]
        self.is_counted = argument.is_counted
        self.first = first - 1 if argument.is_counted else first  # Counted: where the number stands.
        self.token = argument.token
        self.keyword = argument.keyword
        self.keyword_start = argument.keyword_start
        self.behind = argument.behind
        self.last = -1 if argument.keyword else last  # Counted from `first`; negative: from the end.
        self.step = step
        self.limit = 2 if argument.keyword else 0  # 2: the keys are the first half of what follows the keyword.


# Hot commands whose replies are always short: nobody need look how long they are.
ANSWER_LITTLE: Final = ("xadd", "xack", "xlen")
SUBSCRIBING: Final = ("SUBSCRIBE", "UNSUBSCRIBE", "PSUBSCRIBE", "PUNSUBSCRIBE", "SSUBSCRIBE", "SUNSUBSCRIBE")


class Command:
    """A declared command, and its counters."""

    __slots__ = (
        "name", "full_name", "handler", "arguments", "group", "flags", "categories", "since", "complexity", "summary",
        "tips", "notes", "arity", "least", "most", "subcommands", "parent", "calls", "failed", "rejected",
        "timed", "timed_ns",
        "waits_for_writes", "may_be_large", "may_queue", "runs_when_gated", "answers_by_push", "runs_when_listening",
        "denies_oom", "first_key", "last_key", "key_step", "keyword", "keyword_start", "behind", "count_at",
        "key_token", "key_places",
    )  # fmt: skip

    def __init__(
        self, full_name: str, handler: Handler | None, arguments: tuple[Argument, ...], *, group: str, flags: str,
        categories: str, since: str, complexity: str, summary: str, tips: str, arity: int = 0,
    ) -> None:  # fmt: skip
        words = full_name.split(" ")
        self.full_name = "|".join(words).lower()  # xgroup|create: as Redis names it.
        self.name = words[-1].lower()
        self.handler = handler
        self.arguments = arguments
        self.group = group
        self.flags = flags.split()
        self.categories = categories.split()  # Besides those that follow from group and flags.
        self.since = since
        self.complexity = complexity
        self.summary = summary
        self.tips = tips.split()
        self.notes = ((handler.__doc__ or "") if handler is not None else "").strip()
        self.least = len(words) + sum(argument.least_words() for argument in arguments)
        fixed = all(argument.has_fixed_size() for argument in arguments)
        self.most = self.least if fixed else UNLIMITED
        self.arity = self.least if fixed else -self.least
        if arity:  # Redis's own number, where the arguments do not tell it.
            self.arity = arity
            self.least = abs(arity)
            self.most = arity if arity > 0 else UNLIMITED
        self.subcommands: dict[bytes, Command] = {}
        self.parent: Command | None = None
        self.calls = 0
        self.timed = 0  # Of them so many were measured,
        self.timed_ns = 0  # and took so long together.
        self.failed = 0
        self.rejected = 0
        # Held back by CLIENT PAUSE WRITE: writes, and what Redis would send to its replicas.
        self.waits_for_writes = "write" in self.flags or full_name in ("PUBLISH", "SPUBLISH")
        self.denies_oom = "denyoom" in self.flags
        self.may_be_large = self.full_name not in ANSWER_LITTLE
        self.may_queue = "no_multi" not in self.flags
        self.first_key = 0  # Place of the first key; 0 when there is none or it has no fixed place.
        self.last_key = 0  # -1: all words to the end.
        self.key_step = 0
        self.keyword = b""  # The word the keys stand behind: STREAMS.
        self.keyword_start = 1
        self.behind: list[bytes] = []  # The options that may stand before the keys: COUNT and BLOCK of RQ.POP.
        self.count_at = 0  # Where the number of the keys behind it stands; 0 when there is none.
        self.key_token = b""  # The word that one more key stands behind: STORE.
        self.key_places: list[KeyPlace] = []
        self.place_keys(len(words))
        self.runs_when_gated = full_name in ("MULTI", "EXEC", "DISCARD", "WATCH", "UNWATCH", "QUIT", "RESET")
        self.answers_by_push = full_name in SUBSCRIBING  # Its replies are messages: CLIENT REPLY OFF lets them through.
        self.runs_when_listening = full_name in SUBSCRIBING or full_name in ("PING", "QUIT", "RESET")

    def place_keys(self, position: int) -> None:
        """Work out where the keys stand."""
        for index, argument in enumerate(self.arguments):
            inner = argument.parts if argument.kind == "block" and not argument.is_optional else (argument,)
            behind = sum([later.least_words() for later in self.arguments[index + 1 :]])
            for part in inner:
                if part.kind == "key":
                    is_list = part.is_multiple or argument.is_multiple
                    step = argument.least_words() if argument.is_multiple and argument.kind == "block" else 1
                    self.key_places.append(KeyPlace(part, position, -1 - behind if is_list else 0, step))
                position += part.least_words()
        for place in self.key_places:
            if place.keyword:
                self.keyword = place.keyword.encode()
                self.keyword_start = place.keyword_start
            elif place.behind:
                self.behind = place.behind.encode().split()
            elif place.is_counted:
                self.count_at = place.first
            elif place.token:
                self.key_token = place.token.encode()
            else:
                self.first_key = self.first_key or place.first
                self.last_key = place.last if place.last < 0 else place.first
                self.key_step = place.step

    def keys_in(self, argv: list[bytes]) -> list[bytes]:
        """The keys of a command as sent."""
        found: list[bytes] = []
        if self.first_key:
            last = self.last_key if self.last_key > 0 else len(argv) + self.last_key
            found = argv[self.first_key : last + 1 : self.key_step]
        if self.keyword:
            for index in range(self.keyword_start, len(argv)):
                if argv[index].upper() == self.keyword:
                    return argv[index + 1 : index + 1 + (len(argv) - index - 1) // 2]
        if self.behind:
            return keys_behind_options(argv, self.behind)
        if self.count_at:
            found = found + counted_keys(argv, self.count_at)
        if self.key_token:
            found = found + key_behind_token(argv, self.key_token)
        return found


def counted_keys(argv: list[bytes], count_at: int) -> list[bytes]:
    """As many keys as the number before them says; none when that cannot be."""
    number = argv[count_at]
    if not number.isdigit() or len(number) > LONGEST_COUNT or count_at + int(number) >= len(argv):
        return []
    return argv[count_at + 1 : count_at + 1 + int(number)]


def key_behind_token(argv: list[bytes], token: bytes) -> list[bytes]:
    """The key behind a word that may stand anywhere; the last one counts."""
    for index in range(len(argv) - 2, 1, -1):
        if argv[index].upper() == token:
            return [argv[index + 1]]
    return []


def keys_behind_options(argv: list[bytes], options: list[bytes]) -> list[bytes]:
    """The words from the first one on that is not an option; each option stands there once at most."""
    index = 1
    left = list(options)
    while index < len(argv) and argv[index].upper() in left:
        left.remove(argv[index].upper())
        index += 2
    return argv[index:]


TABLE: Final[dict[bytes, Command]] = {}  # Every command under its UPPER and lower case name.


def find_command(name: bytes) -> Command | None:
    """A command by name in any case."""
    found = TABLE.get(name)
    return found if found is not None else TABLE.get(name.upper())


def command(
    full_name: str, *arguments: Argument, group: str, flags: str, since: str, complexity: str, summary: str,
    categories: str = "", tips: str = "", arity: int = 0,
) -> Callable[[Handler], Handler]:  # fmt: skip
    def declare(handler: Handler) -> Handler:
        made = Command(
            full_name, handler, arguments, group=group, flags=flags, categories=categories, since=since,
            complexity=complexity, summary=summary, tips=tips, arity=arity,
        )  # fmt: skip
        register(full_name, made)
        return handler

    return declare


def container(name: str, *, group: str, since: str, summary: str, flags: str = "", categories: str = "") -> None:
    """Declare a command that only has subcommands."""
    made = Command(
        name, None, (text("subcommand"),), group=group, flags=flags, categories=categories, since=since,
        complexity="Depends on subcommand.", summary=summary, tips="",
    )  # fmt: skip
    made.arity = -2
    made.most = UNLIMITED
    register(name, made)


def register(full_name: str, made: Command) -> None:
    words = full_name.split(" ")
    names = TABLE
    if len(words) == 2:
        parent = TABLE[words[0].encode()]
        made.parent = parent
        names = parent.subcommands
    for spelling in (words[-1].upper(), words[-1].lower()):
        assert spelling.encode() not in names, f"{full_name} is declared twice"
        names[spelling.encode()] = made


def all_commands() -> list[Command]:
    """Every command once, by name; without subcommands."""
    return sorted({id(found): found for found in TABLE.values()}.values(), key=full_name_of)


def full_name_of(made: Command) -> str:
    return made.full_name
