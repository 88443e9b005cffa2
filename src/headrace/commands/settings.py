"""Settings that CONFIG GET and CONFIG SET know, with their checks.

Two kinds. *Live* settings are read by something here; changing one has its effect at once. *Inert* ones are names that
clients and test suites set or read although nothing here depends on them: being accepted is harmless, so they are kept
and given back. Everything else of Redis's many names answers as unknown. Texts of errors are Redis's.
"""

from typing import Final

from headrace.commands.notifications import parse_kinds, show_kinds, write_kinds
from headrace.commands.output_limits import DEFAULT, OutputLimit, merge_limits, parse_size, read_limit
from headrace.engine.glob import Glob
from headrace.engine.idempotence import DEFAULT_DURATION_S, DEFAULT_MAX_SIZE
from headrace.engine.shelf import NodeLimits
from headrace.errors import CommandError

MAX_LONG: Final = 2**63 - 1
MAX_INT: Final = 2**31 - 1
LONGEST_VALUE: Final = 1024 * 1024  # No setting is longer; a value above it is a mistake.
ENTRY_GROWTH: Final = 4  # Entries are stored as replies, about so much longer than Redis packs them (engine/stream.py).


class Setting:
    """One name: what it may hold, and what it is for."""

    __slots__ = ("name", "kind", "default", "low", "high", "choices", "purpose", "is_inert", "is_fixed", "is_settled")

    def __init__(
        self, name: str, kind: str, default: str, purpose: str, *, low: int = 0, high: int = MAX_LONG, choices: str = ""
    ) -> None:
        self.name = name
        self.kind = kind  # integer, memory, boolean, choice, events, limits or text
        self.default = default
        self.low = low
        self.high = high
        self.choices = choices.split()
        self.purpose = purpose
        self.is_inert = False
        self.is_fixed = False  # Told, but not changed while running.
        self.is_settled = False  # As fixed, but setting it to what it is does no harm.

    def check(self, value: str, current: str = "") -> str:
        """The value as it will be kept. ValueError with Redis's words when it cannot be held."""
        if len(value) > LONGEST_VALUE:
            raise ValueError("argument is too long")
        if self.kind in ("integer", "memory"):
            number = parse_memory(value) if self.kind == "memory" else parse_number(value)
            if number < self.low or number > self.high:
                raise ValueError(f"argument must be between {self.low} and {self.high} inclusive")
            return str(number)
        if self.kind == "boolean":
            if value.lower() not in ("yes", "no"):
                raise ValueError("argument must be 'yes' or 'no'")
            return value.lower()
        if self.kind == "choice":
            if value.lower() not in self.choices:
                raise ValueError("argument(s) must be one of the following: " + ", ".join(self.choices))
            return value.lower()
        if self.kind == "events":
            return write_kinds(parse_kinds(value))
        if self.kind == "limits":
            return merge_limits(value, current)
        return value

    def show(self, value: str) -> str:
        """A kept value as CONFIG GET gives it."""
        return show_kinds(value) if self.kind == "events" else value


def parse_number(value: str) -> int:
    digits = value[1:] if value[:1] == "-" else value
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 19:
        raise ValueError("argument couldn't be parsed into an integer")
    return int(value)


def parse_memory(value: str) -> int:
    size = parse_size(value)
    if size < 0:
        raise ValueError("argument must be a memory value")
    return size


def inert(setting: Setting) -> Setting:
    setting.is_inert = True
    return setting


def fixed(setting: Setting) -> Setting:
    setting.is_fixed = True
    return setting


def settled(setting: Setting) -> Setting:
    setting.is_settled = True
    return setting


EVICTION: Final = (
    "volatile-lru volatile-lfu volatile-random volatile-ttl allkeys-lru allkeys-lfu allkeys-random noeviction"
)

DECLARED: Final = [
    Setting("stream-node-max-entries", "integer", "100", "Entries in one node of a stream. 0: no limit."),
    Setting("stream-node-max-bytes", "memory", "4096", "Size of one node of a stream, as Redis counts. 0: no limit."),
    Setting(
        "stream-idmp-duration", "integer", str(DEFAULT_DURATION_S), low=1, high=86400,
        purpose="Seconds for which a new stream remembers the message IDs of its producers.",
    ),
    Setting(
        "stream-idmp-maxsize", "integer", str(DEFAULT_MAX_SIZE), low=1, high=10000,
        purpose="Message IDs that a new stream remembers for each producer.",
    ),
    Setting(
        "proto-max-bulk-len", "memory", "536870912", low=1024 * 1024,
        purpose="Size of one argument of a command, for clients that connect from now on.",
    ),
    Setting("maxclients", "integer", "10000", low=1, high=2**32 - 1, purpose="Clients connected at the same time."),
    Setting("maxmemory", "memory", "0", "Above it, commands that may need memory are refused. 0: no limit."),
    Setting("notify-keyspace-events", "events", "", "Keyspace events that are published. Empty: none."),
    Setting("client-output-buffer-limit", "limits", DEFAULT, "What may wait for clients that do not read."),
    settled(Setting("appendonly", "boolean", "no", "Whether there is a journal: no with `serve --memory`.")),
    Setting(
        "appendfsync", "choice", "everysec", choices="always everysec no",
        purpose="When the journal is synced: before every reply, once a second, or when the system likes.",
    ),
    fixed(Setting("enable-debug-command", "boolean", "no", "Whether `serve --enable-debug-command` allowed DEBUG.")),
    fixed(Setting("dir", "text", "", "The folder that keeps the data. Empty: nothing is kept.")),
    fixed(Setting("databases", "integer", "16", "Numbered databases.", low=1, high=MAX_INT)),
    fixed(Setting("port", "integer", "0", "The TCP port.", high=65535)),
    inert(Setting("timeout", "integer", "0", "Silent clients are not closed.", high=MAX_INT)),
    inert(Setting("aof-use-rdb-preamble", "boolean", "yes", "The journal has one form only.")),
    inert(Setting("save", "text", "", "Nothing is saved on a schedule.")),
    inert(Setting("maxmemory-policy", "choice", "noeviction", "Nothing is evicted.", choices=EVICTION)),
    inert(Setting("lazyfree-lazy-user-del", "boolean", "yes", "Memory is freed at once either way.")),
    inert(Setting("lazyfree-lazy-user-flush", "boolean", "yes", "Memory is freed at once either way.")),
    inert(Setting("lazyfree-lazy-server-del", "boolean", "yes", "Memory is freed at once either way.")),
    inert(Setting("lazyfree-lazy-expire", "boolean", "yes", "Memory is freed at once either way.")),
    inert(Setting("list-max-listpack-size", "integer", "-2", "Lists have one form only.", low=-MAX_INT, high=MAX_INT)),
    inert(Setting("list-max-ziplist-size", "integer", "-2", "The old name of the above.", low=-MAX_INT, high=MAX_INT)),
    inert(Setting("list-compress-depth", "integer", "0", "Lists are not compressed.", high=MAX_INT)),
    inert(Setting("hash-max-listpack-entries", "integer", "512", "Hashes have one form only.")),
    inert(Setting("hash-max-listpack-value", "integer", "64", "Hashes have one form only.")),
    inert(Setting("hash-max-ziplist-entries", "integer", "512", "The old name of hash-max-listpack-entries.")),
    inert(Setting("hash-max-ziplist-value", "integer", "64", "The old name of hash-max-listpack-value.")),
    inert(Setting("set-max-intset-entries", "integer", "512", "Sets have one form only.")),
    inert(Setting("set-max-listpack-entries", "integer", "128", "Sets have one form only.")),
    inert(Setting("set-max-listpack-value", "integer", "64", "Sets have one form only.")),
    inert(Setting("zset-max-listpack-entries", "integer", "128", "Sorted sets have one form only.")),
    inert(Setting("zset-max-ziplist-entries", "integer", "128", "The old name of the above.")),
    inert(Setting("zset-max-listpack-value", "memory", "64", "Sorted sets have one form only.")),
    inert(Setting("zset-max-ziplist-value", "memory", "64", "The old name of the above.")),
    inert(Setting("sanitize-dump-payload", "choice", "yes", "Payloads are always checked.", choices="no yes clients")),
    inert(Setting("client-query-buffer-limit", "memory", "1073741824", "Fixed at this value.", low=1024 * 1024)),
    inert(Setting("close-on-replica-write", "boolean", "yes", "There are no replicas yet.")),
    inert(Setting("slowlog-log-slower-than", "integer", "10000", "There is no slow log yet.", low=-1)),
    inert(Setting("slowlog-max-len", "integer", "128", "There is no slow log yet.")),
    inert(Setting("latency-tracking", "boolean", "yes", "Latencies are not tracked.")),
    inert(Setting("busy-reply-threshold", "integer", "5000", "There are no scripts.")),
    inert(Setting("lua-time-limit", "integer", "5000", "There are no scripts.")),
]  # fmt: skip

SETTINGS: Final[dict[str, Setting]] = {setting.name: setting for setting in DECLARED}


class Settings:
    __slots__ = (
        "values", "limits", "idmp_duration_s", "idmp_max_size", "max_bulk_bytes", "max_clients", "event_kinds",
        "normal_limit", "listener_limit", "limits_all", "max_memory", "fsync",
    )  # fmt: skip

    def __init__(self) -> None:
        self.values: dict[str, str] = {}  # What differs from its default.
        self.limits = NodeLimits()
        self.idmp_duration_s = DEFAULT_DURATION_S
        self.idmp_max_size = DEFAULT_MAX_SIZE
        self.max_bulk_bytes = 0
        self.max_clients = 0
        self.max_memory = 0
        self.event_kinds = 0
        self.fsync = ""
        self.normal_limit = OutputLimit(0, 0, 0)
        self.listener_limit = OutputLimit(0, 0, 0)  # Of clients that listen to channels.
        self.limits_all = False  # Whether the others have a limit too.
        self.refresh()

    def refresh(self) -> None:
        """Bring the attributes in line with the texts."""
        self.limits.max_entries = self.number("stream-node-max-entries")
        self.limits.max_bytes = min(self.number("stream-node-max-bytes") * ENTRY_GROWTH, MAX_LONG)
        self.idmp_duration_s = self.number("stream-idmp-duration")
        self.idmp_max_size = self.number("stream-idmp-maxsize")
        self.max_bulk_bytes = self.number("proto-max-bulk-len")
        self.max_clients = self.number("maxclients")
        self.max_memory = self.number("maxmemory")
        self.event_kinds = parse_kinds(self.get("notify-keyspace-events"))
        self.fsync = self.get("appendfsync")
        self.normal_limit = read_limit(self.get("client-output-buffer-limit"), "normal")
        self.listener_limit = read_limit(self.get("client-output-buffer-limit"), "pubsub")
        self.limits_all = self.normal_limit.hard_bytes > 0 or self.normal_limit.soft_bytes > 0

    def get(self, name: str) -> str:
        return self.values.get(name, SETTINGS[name].default)

    def number(self, name: str) -> int:
        return int(self.get(name))

    def find(self, patterns: list[bytes]) -> dict[str, str]:
        """Names and values that any of the patterns matches, whatever their case."""
        globs = [Glob(pattern, ignores_case=True) for pattern in patterns]
        return {
            setting.name: setting.show(self.get(setting.name))
            for setting in DECLARED
            if any(glob.matches(setting.name.encode()) for glob in globs)
        }

    def set_many(self, words: list[bytes]) -> None:
        """Names and values in turn. All are checked before any is changed."""
        asked: list[tuple[Setting, str, str]] = []  # The setting, the name as asked, the value.
        names = [word.decode("utf-8", "surrogateescape") for word in words[::2]]
        for name in names:
            if name.lower() not in SETTINGS:
                raise CommandError(f"ERR Unknown option or number of arguments for CONFIG SET - '{name}'")
        for index, name in enumerate(names):
            setting = SETTINGS[name.lower()]
            if setting.is_fixed:
                raise refusal(name, "can't set immutable config")
            if setting in [earlier for earlier, _, _ in asked]:
                raise refusal(name, "duplicate parameter")
            asked.append((setting, name, words[2 * index + 1].decode("utf-8", "surrogateescape")))
        changed = dict(self.values)
        for setting, _, value in asked:
            try:
                changed[setting.name] = setting.check(value, self.get(setting.name))
            except ValueError as error:
                raise refusal(setting.name, str(error)) from None
            if setting.is_settled and changed[setting.name] != self.get(setting.name):
                raise refusal(setting.name, "it is chosen at the start: serve --dir or serve --memory")
        self.values = changed
        self.refresh()

    def assign(self, name: str, value: str) -> None:
        """Set a value from inside, also one that clients may only read: the port."""
        self.values[name] = SETTINGS[name].check(value)
        self.refresh()


def refusal(name: str, reason: str) -> CommandError:
    return CommandError(f"ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}")
