"""Sockets: accept, read, write. Each loop turn's replies leave in one write per connection.

`data_received` feeds the conversation; replies wait for `flush`, which runs once per loop turn: first the journal takes
the turn's records, then every connection is written. A client that does not read its replies is not read from either,
so what is kept for it is bounded. Messages of channels come from others: a listener for whom too much waits is closed
(client-output-buffer-limit).
"""

import asyncio
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any, Final

from headrace.commands.dispatch import resolve
from headrace.commands.publishing import drop
from headrace.engine.waiters import NO_TIME
from headrace.server.conversation import Conversation, Conversations
from headrace.wire.encoder import encode_error

WRITE_HIGH_BYTES: Final = 1024 * 1024  # Unsent replies above this stop reading from the client.
WAITING_INPUT_BYTES: Final = 1024 * 1024  # Commands sent by a blocked client; above this it is not read from.
LONE_TURNS: Final = 16  # After so many turns of one and the same client, nobody else is waited for.
CRON_S: Final = 0.1  # How often keys whose time has come are looked for.


class Listener:
    """All connections of one broker."""

    def __init__(self, conversations: Conversations, now_ms: Callable[[], int]) -> None:
        self.conversations = conversations
        self.state = conversations.state
        self.state.on_read_fault = self.tell_fault
        self.state.clock_ns = perf_counter_ns
        self.now_ms = now_ms
        self.loop: Any = asyncio.get_running_loop()
        self.connections: dict[int, Connection] = {}
        self.lagging: dict[int, Connection] = {}  # Those above their soft limit: only so long, then they are closed.
        self.speaking: list[Connection] = []
        # Keeps the turn's records; whether its replies may leave. None: nothing is kept.
        self.commit: Callable[[list[bytes]], bool] | None = None
        self.held: list[Connection] = []  # Whose replies wait until the journal has what they are about.
        self.is_flush_due = False
        self.turn_ms = 0  # The time of the running loop turn; 0 between turns.
        self.last_fed: Connection | None = None
        self.lone_turns = 0  # How often in a row it was the only one.
        self.timer: Any = None
        self.timer_ms = NO_TIME
        self.cron: Any = self.loop.call_later(CRON_S, self.run_cron)

    def accept(self) -> "Connection":
        return Connection(self)

    def start_turn(self) -> int:
        """The time, read once per loop turn, at whose end `flush` runs."""
        self.turn_ms = int(self.now_ms())
        if not self.is_flush_due:
            self.is_flush_due = True
            self.loop.call_soon(self.flush)
        return self.turn_ms

    def note_fed(self, connection: "Connection") -> bool:
        """Whether this client has been the only one for a while: then its turn ends at once, without asking the loop
        whether others are there. 2 of 15 µs for one client that sends one command at a time (bench/durability.py).
        """
        if self.last_fed is not connection:
            self.last_fed = connection
            self.lone_turns = 0
            return False
        self.lone_turns += 1
        return self.lone_turns > LONE_TURNS and not self.is_flush_due

    def after_feed(self, now_ms: int) -> None:
        """One client was fed: let those go on whom it unblocked."""
        state = self.state
        if state.resumed or state.speaking:
            for conversation in self.conversations.settle(now_ms):
                connection = self.connections.get(conversation.call.id)
                if connection is not None:
                    self.mark(connection)
        if state.waiters.by_client or state.pause_until_ms > 0:
            self.set_timer(now_ms)

    def mark(self, connection: "Connection") -> None:
        """The connection has something to send."""
        if not connection.is_marked:
            connection.is_marked = True
            self.speaking.append(connection)
            if not self.is_flush_due:
                self.is_flush_due = True
                self.loop.call_soon(self.flush)

    def flush(self) -> None:
        """End the loop turn: keep what it changed, then send what it answers."""
        self.is_flush_due = False
        self.turn_ms = 0
        if self.state.records:
            self.keep()
        speaking = self.speaking
        self.speaking = []
        unfinished: list[Connection] = []
        for connection in speaking:
            connection.is_marked = False
            try:
                if connection.send():
                    unfinished.append(connection)
            except Exception as error:
                self.give_up(connection, error)
        # Only now: what these run is for the next turn's journal, and its replies with it, also those of others.
        for connection in unfinished:
            try:
                connection.go_on()
            except Exception as error:
                self.give_up(connection, error)

    def keep(self) -> bool:
        """Hand what was done so far to the journal. Whether its replies may leave."""
        records = self.state.records
        self.state.records = []
        if records and self.commit is not None and not self.commit(records):
            self.hold()
            return False
        return True

    def tell_fault(self, error: Exception) -> None:
        """A command that only reads met a fault of ours: its client gets an error, and here is where it was."""
        self.loop.call_exception_handler({"message": "a command failed", "exception": error})

    def give_up(self, connection: "Connection", error: Exception) -> None:
        """A bug met by one client is not to keep the others waiting."""
        self.loop.call_exception_handler({"message": "a client could not be served", "exception": error})
        connection.transport.abort()

    def hold(self) -> None:
        """The turn could not be kept yet: its replies wait, and those who get them are not read from."""
        speaking = self.speaking
        self.speaking = []
        for connection in speaking:
            if connection.has_only_read():
                self.speaking.append(connection)
            else:
                connection.is_held = True
                self.held.append(connection)
                connection.adjust_reading()

    def release(self) -> None:
        """All is kept now: send what waited."""
        held = self.held
        self.held = []
        for connection in held:
            connection.is_held = False
            connection.is_marked = False
            self.mark(connection)

    def set_timer(self, now_ms: int) -> None:
        """Be there when the next waiting client's time comes."""
        when = self.conversations.next_ms()
        if when == NO_TIME or (self.timer is not None and self.timer_ms <= when):
            return
        if self.timer is not None:
            self.timer.cancel()
        self.timer_ms = when
        self.timer = self.loop.call_later(max(0, when - now_ms) / 1000 + 0.0005, self.ring)

    def ring(self) -> None:
        self.timer = None
        now_ms = self.start_turn()
        self.conversations.tick(now_ms)
        self.after_feed(now_ms)

    def run_cron(self) -> None:
        self.cron = self.loop.call_later(CRON_S, self.run_cron)
        now_ms = self.start_turn()
        self.conversations.drop_expired(now_ms)
        self.after_feed(now_ms)
        for connection in list(self.lagging.values()):
            connection.check_unsent()

    def close(self) -> None:
        """Send what there is and close every connection."""
        self.cron.cancel()
        if self.timer is not None:
            self.timer.cancel()
        self.flush()
        for connection in list(self.connections.values()):
            connection.transport.close()


class Connection(asyncio.Protocol):
    """One client's socket."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.transport: Any = None
        self.conversation: Conversation | None = None
        self.is_marked = False
        self.is_held = False  # Its replies wait for the journal; it stays marked meanwhile.
        self.is_full = False  # The client does not read its replies.
        self.lagging_since_ms = 0  # Since when more waits for the client than its soft limit allows; 0: it does not.
        self.is_reading = True

    def connection_made(self, transport: Any) -> None:
        listener = self.listener
        self.transport = transport
        if len(listener.connections) >= listener.state.settings.max_clients:
            transport.write(encode_error("ERR max number of clients reached"))
            transport.close()
            return
        transport.set_write_buffer_limits(high=WRITE_HIGH_BYTES)
        conversation = listener.conversations.open(
            listener.now_ms(), address_text(transport, "peername"), address_text(transport, "sockname")
        )
        self.conversation = conversation
        listener.connections[conversation.call.id] = self

    def data_received(self, data: bytes) -> None:
        conversation = self.conversation
        if conversation is None:
            return
        listener = self.listener
        now_ms = listener.turn_ms
        is_alone = listener.note_fed(self)
        if now_ms == 0:
            now_ms = int(listener.now_ms()) if is_alone else listener.start_turn()
        conversation.feed(data, now_ms)
        call = conversation.call
        if not self.is_marked and (call.out or call.is_closing):
            self.is_marked = True
            listener.speaking.append(self)
        if call.is_halted or conversation.has_more:
            self.adjust_reading()
        state = listener.state
        if state.resumed or state.speaking or state.waiters.by_client or state.pause_until_ms > 0:
            listener.after_feed(now_ms)
        if is_alone and not listener.is_flush_due:
            listener.flush()

    def has_only_read(self) -> bool:
        """Whether its one reply promises nothing. A reply to a write may promise something that another one changed."""
        conversation = self.conversation
        if conversation is None:
            return True
        call = conversation.call
        if len(call.out) > 1 or call.reply_mode != b"ON":
            return False
        if not call.last_command:
            return True
        command = resolve(call.last_command.encode().split(b"|"))
        return "write" not in command.flags and command.group != "transactions"

    def send(self) -> bool:
        """Write everything there is. Whether the connection then has something to go on with."""
        conversation = self.conversation
        if conversation is None:
            return False
        call = conversation.call
        if call.out:
            self.transport.write(conversation.take())
            if call.is_listening or self.listener.state.settings.limits_all:
                self.check_unsent()
        if call.is_closing:
            if call.killed_by not in (0, call.id):
                self.transport.abort()  # It need not read what it was sent before.
            else:
                self.transport.close()
            return False
        return call.is_halted or conversation.has_more or not self.is_reading

    def go_on(self) -> None:
        """Run commands that waited for the replies before them to leave."""
        conversation = self.conversation
        if conversation is None:
            return
        if conversation.has_more and not self.is_full:
            call = conversation.call
            now_ms: int = self.listener.start_turn()
            conversation.run(now_ms)
            if call.out or call.is_closing:
                self.listener.mark(self)
            self.listener.after_feed(now_ms)
        self.adjust_reading()

    def check_unsent(self) -> None:
        """Close a client that lets too much pile up, or much for too long."""
        conversation = self.conversation
        if conversation is None:
            return
        listener = self.listener
        call = conversation.call
        settings = listener.state.settings
        limit = settings.listener_limit if call.is_listening else settings.normal_limit
        unsent_bytes: int = self.transport.get_write_buffer_size()
        above_soft_ms = 0
        if limit.is_above_soft(unsent_bytes):
            now_ms: int = listener.now_ms()
            self.lagging_since_ms = self.lagging_since_ms or now_ms
            listener.lagging[call.id] = self
            above_soft_ms = now_ms - self.lagging_since_ms
        elif self.lagging_since_ms:
            self.lagging_since_ms = 0
            listener.lagging.pop(call.id, None)
        if not call.is_closing and limit.is_passed(unsent_bytes, above_soft_ms):
            drop(listener.state, call)
            listener.mark(self)

    def adjust_reading(self) -> None:
        """Read only while there is room for what is read and for what it is answered with."""
        conversation = self.conversation
        if conversation is None:
            return
        is_wanted = not self.is_full and not self.is_held and not conversation.has_more
        if is_wanted and conversation.call.is_halted:
            is_wanted = conversation.parser.waiting_bytes() < WAITING_INPUT_BYTES
        if is_wanted != self.is_reading and not self.transport.is_closing():
            self.is_reading = is_wanted
            if is_wanted:
                self.transport.resume_reading()
            else:
                self.transport.pause_reading()

    def pause_writing(self) -> None:
        self.is_full = True
        if self.conversation is not None:
            self.adjust_reading()

    def resume_writing(self) -> None:
        self.is_full = False
        if self.conversation is not None:
            self.listener.mark(self)

    def eof_received(self) -> bool:
        """The client sends nothing more, but may still read: what it asked for leaves before the connection closes."""
        conversation = self.conversation
        if conversation is None or not conversation.call.out:
            return False
        conversation.call.is_closing = True
        conversation.call.is_halted = True
        self.listener.mark(self)
        return True

    def connection_lost(self, error: BaseException | None) -> None:
        conversation = self.conversation
        if conversation is not None:
            self.conversation = None
            if self.listener.last_fed is self:
                self.listener.last_fed = None
            self.listener.connections.pop(conversation.call.id, None)
            self.listener.lagging.pop(conversation.call.id, None)
            self.listener.conversations.close(conversation)


def address_text(transport: Any, which: str) -> str:
    address = transport.get_extra_info(which)
    if isinstance(address, tuple):
        return f"{address[0]}:{address[1]}"
    return str(address or "unix:0")
