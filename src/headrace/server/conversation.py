"""The talk with each client, as bytes in and bytes out; no socket here.

`Conversation.feed` runs all complete commands of what was received; replies gather until `take`. `Conversations` keeps
them all: one client's command may give another one its reply, so whoever owns the sockets calls `settle` after feeding
and then takes from everyone named in `speaking`.
"""

from collections.abc import Callable, Iterator
from typing import Final

import headrace.commands.table  # noqa: F401  # Importing it declares every command.
from headrace.commands.call import Call, State
from headrace.commands.dispatch import execute, serve_waiters, tick
from headrace.commands.publishing import publish_events
from headrace.engine.waiters import NO_TIME
from headrace.errors import ProtocolError
from headrace.wire.encoder import encode_error
from headrace.wire.parser import Parser

EXPIRED_PER_TURN: Final = 1000  # Keys looked at per database and turn,
EXPIRY_ROUNDS: Final = 20  # up to so many times while a quarter of them were due.
COMMANDS_PER_TURN: Final = 1024  # A longer pipeline is run in parts, so that replies leave and others get their turn.


class Conversation:
    __slots__ = ("call", "parser", "commands", "has_more")

    def __init__(self, call: Call) -> None:
        self.call = call
        self.parser = Parser()
        self.parser.max_bulk_bytes = call.state.settings.max_bulk_bytes
        self.commands: Iterator[list[bytes]] = iter([])  # Parsed, not run yet: a command before them waits.
        self.has_more = False  # Stopped so that replies can be sent first; `run` goes on.

    def feed(self, data: bytes, now_ms: int) -> None:
        """Take received bytes, cut anywhere, and run every command they complete."""
        call = self.call
        if call.is_closing:
            return
        call.bytes_in += len(data)
        self.guarded_feed(data)
        if not call.is_halted and not self.has_more:
            self.run(now_ms)

    def guarded_feed(self, data: bytes) -> None:
        try:
            self.parser.feed(data)
        except ProtocolError as error:
            self.refuse(str(error))

    def run(self, now_ms: int) -> None:
        """Run the commands that are complete, until one has to wait or enough is there to send."""
        call = self.call
        self.has_more = False
        if call.is_draining:
            call.is_draining = False
            call.is_halted = call.is_blocked or call.is_closing
        call.now_ms = now_ms
        call.active_ms = now_ms
        try:
            if call.postponed is not None:
                argv = call.postponed
                call.postponed = None
                execute(call, argv)
            run_count = 0
            while not call.is_halted:
                for argv in self.commands:
                    if argv:
                        execute(call, argv)
                        if call.is_halted:
                            break
                else:
                    if not self.parser.has_bytes():
                        return
                    if run_count >= COMMANDS_PER_TURN:
                        self.has_more = True
                        return
                    batch = self.parser.next_batch(COMMANDS_PER_TURN)
                    if not batch:
                        return
                    run_count += len(batch)
                    self.commands = iter(batch)
            self.has_more = call.is_draining
        except ProtocolError as error:
            self.refuse(str(error))

    def refuse(self, text: str) -> None:
        """The bytes are not the protocol: say so and close."""
        self.call.out.append(encode_error("ERR " + text))
        self.call.is_closing = True
        self.call.is_halted = True

    def take(self) -> bytes:
        """Everything there is to send."""
        self.call.pushed_bytes = 0
        out = self.call.out
        if len(out) == 1:
            data = out[0]
        else:
            data = b"".join(out)
        self.call.out = []
        self.call.bytes_out += len(data)
        return data


class Conversations:
    """All clients of one broker."""

    __slots__ = ("state", "by_id", "on_other")

    def __init__(self, state: State) -> None:
        self.state = state
        self.by_id: dict[int, Conversation] = {}
        # Told of clients that have no conversation but are here all the same: those in this process.
        self.on_other: Callable[[Call], None] | None = None

    def open(self, now_ms: int, address: str, local_address: str) -> Conversation:
        conversation = Conversation(self.state.open_call(now_ms, address, local_address))
        self.by_id[conversation.call.id] = conversation
        return conversation

    def close(self, conversation: Conversation) -> None:
        self.by_id.pop(conversation.call.id, None)
        self.state.close_call(conversation.call)

    def settle(self, now_ms: int) -> list[Conversation]:
        """Let clients that were unblocked go on. Those who got something to send, or are to be closed."""
        state = self.state
        speaking: dict[int, Conversation] = {}
        while state.resumed or state.speaking:
            calls = state.speaking
            state.speaking = []
            resumed = state.resumed
            state.resumed = []
            for call in resumed:
                conversation = self.by_id.get(call.id)
                if conversation is not None and not call.is_halted:
                    conversation.run(now_ms)
                calls.append(call)
            for call in calls:
                conversation = self.by_id.get(call.id)
                if conversation is not None:
                    speaking[call.id] = conversation
                elif self.on_other is not None:
                    self.on_other(call)
        return list(speaking.values())

    def tick(self, now_ms: int) -> None:
        """Serve those who waited until now."""
        try:
            tick(self.state, now_ms)
        except Exception as error:  # A fault of ours.
            self.state.note_half_done(error)
            raise

    def drop_expired(self, now_ms: int) -> None:
        """Remove keys whose time has come."""
        if not self.state.debugging.expires_actively:
            return
        try:
            self.drop_due(now_ms)
        except Exception as error:  # As above.
            self.state.note_half_done(error)
            raise

    def drop_due(self, now_ms: int) -> None:
        state = self.state
        for database in state.databases:
            for _ in range(EXPIRY_ROUNDS if database.expires_ms else 0):
                before = len(database.expires_ms)
                database.drop_expired(now_ms, EXPIRED_PER_TURN)
                if before - len(database.expires_ms) < EXPIRED_PER_TURN // 4:
                    break
        state.expired_actively += len(state.dropped)
        state.note_expired()
        if state.events:
            publish_events(state, None)
        if state.wakes:
            serve_waiters(state, now_ms)

    def next_ms(self) -> int:
        """When tick has something to do next, or NO_TIME."""
        state = self.state
        when = state.waiters.next_ms()
        if state.pause_until_ms > 0 and (when == NO_TIME or state.pause_until_ms < when):
            return state.pause_until_ms
        return when
