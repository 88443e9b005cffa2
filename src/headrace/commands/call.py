"""What a handler sees: the Call (one client and the time) and behind it the State (everything clients share).

Neither knows a socket. Replies gather in `Call.out`; whoever owns the connection takes them from there. A handler that
must wait sets `ctx.blocked_on`; one that wakes more than the key in its Outcome calls `ctx.wake`.
"""

from collections.abc import Callable
from typing import Final

from headrace.commands.debugging import Debugging
from headrace.commands.keeping import Keeping
from headrace.commands.notifications import KEYEVENT, KEYSPACE
from headrace.commands.settings import Settings
from headrace.engine.chance import Chance
from headrace.engine.channels import Channels
from headrace.engine.keyspace import NEW, WRONG_TYPE, Event, Keyspace, Stored
from headrace.engine.stream import Stream
from headrace.engine.waiters import Waiter, Waiters
from headrace.errors import CommandError
from headrace.journal.record import REMOVE, encode_record

DATABASES: Final = 16


class State:
    """Everything that clients share."""

    __slots__ = (
        "settings", "databases", "clients", "waiters", "waiting_keys", "watched", "records", "journaling", "changes",
        "wakes", "resumed", "speaking", "next_client_id", "started_ms", "pause_until_ms", "pause_is_for_writes",
        "errors", "error_replies", "connections_received", "expired_keys", "expired_actively",
        "port", "build", "channels", "event_kinds", "events", "dropped_listeners", "chance", "memory_used",
        "memory_asked_ms", "dropped", "keeping", "debugging", "write_refusal",
        "on_read_fault", "on_half_done", "clock_ns",
    )  # fmt: skip

    def __init__(self, now_ms: int) -> None:
        self.settings = Settings()
        self.event_kinds = 0  # Of keyspace events (commands/notifications.py), those somebody asked for.
        self.events: list[Event] = []  # Kind, database, event, key; not published yet.
        self.dropped: list[tuple[int, bytes]] = []  # Database and key of those whose time came; not noted yet.
        self.databases = [Keyspace(number, self.events, self.dropped) for number in range(DATABASES)]
        self.clients: dict[int, Call] = {}
        self.waiters = Waiters()
        self.waiting_keys = self.waiters.by_key  # Asked after every command whether anybody waits at all.
        self.watched: dict[tuple[int, bytes], dict[int, Call]] = {}  # By place, then by client.
        self.records: list[bytes] = []  # Effects since the journal last took them.
        self.journaling = False
        self.changes = 0  # INFO: rdb_changes_since_last_save.
        self.wakes: list[tuple[int, bytes]] = []  # Keys to wake besides the one in the Outcome.
        self.resumed: list[Call] = []  # Clients that may go on with what they have sent.
        self.speaking: list[Call] = []  # Clients that got a reply through somebody else's command.
        self.next_client_id = 1
        self.started_ms = now_ms
        self.chance = Chance(now_ms)
        self.pause_until_ms = 0
        self.pause_is_for_writes = False
        self.errors: dict[str, int] = {}  # INFO: errorstat, by prefix.
        self.error_replies = 0
        self.connections_received = 0
        self.expired_keys = 0
        self.expired_actively = 0  # Of those, before anybody asked for them.
        self.port = 0
        self.build = "plain"
        self.channels = Channels()
        self.keeping = Keeping(now_ms // 1000)
        self.debugging = Debugging()
        self.write_refusal = ""  # Why no command may write; empty: they may.
        self.clock_ns: Callable[[], int] | None = None  # To measure commands with; None: they are not.
        # Told of faults of ours. None: whoever called a command is.
        self.on_read_fault: Callable[[Exception], None] | None = None  # A command that only reads; it is answered.
        self.on_half_done: Callable[[Exception], None] | None = None  # A change may be half done.
        self.dropped_listeners = 0  # Clients closed because too much waited for them.
        self.memory_used = 0  # At most: the last estimate, and all that was written since (commands/memory_limit.py).
        self.memory_asked_ms = 0

    def open_call(self, now_ms: int, address: str, local_address: str) -> "Call":
        """A new client."""
        call = Call(self, self.next_client_id, now_ms, address, local_address)
        self.next_client_id += 1
        self.connections_received += 1
        self.clients[call.id] = call
        call.refresh_gate()
        return call

    def close_call(self, call: "Call") -> None:
        """The client is gone: forget all that hangs on it."""
        self.clients.pop(call.id, None)
        self.waiters.remove(call.id)
        self.channels.forget(call.id)
        call.unwatch()

    def refuse_writes(self, reason: str) -> None:
        """From now on commands that write get this error; empty: they run again."""
        self.write_refusal = reason
        for call in self.clients.values():
            call.refresh_gate()

    def note_half_done(self, error: Exception) -> None:
        """What is in memory may not be what the journal will have."""
        if self.on_half_done is not None:
            self.on_half_done(error)

    def apply_settings(self) -> None:
        """Settings have changed: tell those who keep one at hand."""
        kinds = self.settings.event_kinds
        self.event_kinds = kinds if kinds & (KEYSPACE | KEYEVENT) else 0  # Published nowhere: the same as none.
        for database in self.databases:
            database.event_kinds = self.event_kinds
        self.memory_used = self.settings.max_memory  # So that the first command asks for an estimate.
        self.memory_asked_ms = 0
        for call in self.clients.values():
            call.refresh_gate()

    def note_expired(self) -> None:
        """Tell the journal and those who wait about keys whose time came."""
        self.expired_keys += len(self.dropped)
        for database, key in self.dropped:
            if self.journaling:
                self.records.append(encode_record(REMOVE, database, key))
            self.touch(database, key)
        self.wakes += self.dropped
        self.dropped.clear()

    def touch(self, database: int, key: bytes) -> None:
        """A key has changed: transactions that watch it will not run."""
        watchers = self.watched.get((database, key))
        if watchers is not None:
            for call in watchers.values():
                call.is_stale = True

    def touch_database(self, database: int) -> None:
        """Every key of a database may have changed."""
        for number, key in self.watched:
            if number == database:
                self.touch(database, key)

    def wake_database(self, database: int) -> None:
        """Everybody who waits for a key of the database should look again."""
        for key in self.waiters.keys_in(database):
            self.wakes.append((database, key))


class Call:
    """One client, and the command it is running."""

    __slots__ = (
        "state", "id", "db", "now_ms", "resp3", "out", "journaling",
        "is_gated", "is_halted", "is_blocked", "is_draining", "is_closing", "is_retrying", "may_block",
        "blocked_on", "postponed",
        "queue", "queue_bytes", "queue_failed", "watching", "is_stale", "reply_mode", "skips_next",
        "name", "library", "library_version", "address", "local_address", "created_ms", "active_ms", "last_command",
        "no_evict", "no_touch", "commands_run", "bytes_in", "bytes_out", "killed_by",
        "is_listening", "pushes", "pushed_bytes",
    )  # fmt: skip

    def __init__(self, state: State, number: int, now_ms: int, address: str, local_address: str) -> None:
        self.state = state
        self.id = number
        self.db = state.databases[0]
        self.now_ms = now_ms
        self.resp3 = False
        self.out: list[bytes] = []
        self.journaling = state.journaling
        self.is_gated = False  # One flag for all that is rare: MULTI, pause, CLIENT REPLY, channels, refused writes.
        self.is_halted = False  # Run nothing more for now: blocked, draining, postponed or closing.
        self.is_blocked = False
        self.is_draining = False  # A large reply leaves first.
        self.is_closing = False  # Close once the output is written.
        self.is_retrying = False  # A waiting command runs again.
        self.may_block = True
        self.blocked_on: Waiter | None = None
        self.postponed: list[bytes] | None = None  # A command held back by CLIENT PAUSE.
        self.queue: list[list[bytes]] | None = None  # Commands since MULTI.
        self.queue_bytes = 0  # What they take in memory, about.
        self.queue_failed = False
        self.watching: set[tuple[int, bytes]] = set()
        self.is_stale = False  # A watched key has changed.
        self.reply_mode = b"ON"
        self.skips_next = False
        self.name = b""
        self.library = b""
        self.library_version = b""
        self.address = address
        self.local_address = local_address
        self.created_ms = now_ms
        self.active_ms = now_ms
        self.last_command = ""
        self.no_evict = False
        self.no_touch = False
        self.commands_run = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.killed_by = 0
        self.is_listening = False  # To a channel, a pattern or a shard channel.
        self.pushes: list[bytes] = []  # Messages to itself: they leave behind the reply of the command that runs.
        self.pushed_bytes = 0  # Messages that whoever owns the connection has not taken yet.

    def refresh_gate(self) -> None:
        """Work out the one flag again after something it folds has changed."""
        self.is_gated = (
            self.queue is not None or self.state.pause_until_ms > 0 or self.reply_mode != b"ON" or self.skips_next
            or self.is_listening or self.state.settings.max_memory > 0 or self.state.write_refusal != ""
        )  # fmt: skip

    def find(self, key: bytes) -> Stored | None:
        return self.db.find(key, self.now_ms)

    def find_stream(self, key: bytes) -> Stream | None:
        """The stream, or None when the key is missing. Raises WRONGTYPE for other types."""
        db = self.db
        if db.expires_ms:
            db.drop_if_expired(key, self.now_ms)
        value = db.values.get(key)
        if value is None or isinstance(value, Stream):
            return value
        raise CommandError(WRONG_TYPE)

    def new_stream(self, key: bytes) -> Stream:
        stream = Stream(self.state.settings.limits)
        self.db.values[key] = stream
        self.notify(NEW, b"new", key)
        return stream

    def wake(self, database: int, key: bytes) -> None:
        """Let those who wait for the key look again, once the command is done."""
        self.state.wakes.append((database, key))

    def touch(self, key: bytes) -> None:
        """A key has changed, besides those that the dispatcher finds in the command's own words."""
        if self.state.watched:
            self.state.touch(self.db.number, key)

    def notify(self, kind: int, event: bytes, key: bytes) -> None:
        """A keyspace event, for those who asked for its kind. Published once the command is done."""
        if self.state.event_kinds & kind:
            self.state.events.append((kind, self.db.number, event, key))

    def watch(self, key: bytes) -> None:
        place = (self.db.number, key)
        if place not in self.watching:
            self.watching.add(place)
            self.state.watched.setdefault(place, {})[self.id] = self

    def discard(self) -> None:
        """The transaction is over."""
        self.queue = None
        self.queue_failed = False
        self.unwatch()
        self.refresh_gate()

    def unwatch(self) -> None:
        for place in self.watching:
            watchers = self.state.watched.get(place)
            if watchers is not None:
                watchers.pop(self.id, None)
                if not watchers:
                    del self.state.watched[place]
        self.watching = set()
        self.is_stale = False
