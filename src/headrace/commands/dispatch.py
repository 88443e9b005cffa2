"""Look up, check, run: from an argument vector to a reply in the client's output.

`execute` is the road of every command. What is rare (MULTI, CLIENT PAUSE, CLIENT REPLY, listening to channels) hides
behind one flag. Errors are exceptions and cost nothing until raised. After a command its changes are noted for the
journal and for WATCH and published as keyspace events, then those who waited for its key run their commands again, in
the order they blocked.
"""

from typing import Final

from headrace.commands.call import Call, State
from headrace.commands.left_out import NO_LUA, reason_for
from headrace.commands.memory_limit import OUT_OF_MEMORY, is_refused
from headrace.commands.outcome import Outcome
from headrace.commands.publishing import notice_missed, publish_events
from headrace.commands.spec import TABLE, Command, find_command
from headrace.engine.keyspace import QUEUE_TYPE, type_name
from headrace.engine.waiters import NO_TIME, Waiter
from headrace.errors import CommandError, JournalError
from headrace.wire.encoder import QUEUED, encode_error, encode_null_array

LARGE_REPLY_BYTES: Final = 256 * 1024  # A reply of this size leaves before the client's next command runs.
SAMPLED: Final = 63  # Of so many calls + 1 of a command one is measured: the clock costs more than some commands.
BESIDE_ENTRIES: Final = frozenset(
    ("xreadgroup", "xack", "xackdel", "xclaim", "xautoclaim", "xnack", "xsetid", "xcfgset", "xidmprecord")
    + ("xgroup|create", "xgroup|setid", "xgroup|destroy", "xgroup|createconsumer", "xgroup|delconsumer")
)
# These name several keys and change some of them, which they touch themselves.
CHANGE_ONE: Final = frozenset(
    ("blpop", "brpop", "lmpop", "blmpop", "sort", "rq.pop", "bzpopmin", "bzpopmax", "zmpop", "bzmpop", "smove")
    + ("sunionstore", "sinterstore", "sdiffstore", "zunionstore", "zinterstore", "zdiffstore", "zrangestore")
    + ("copy", "del", "unlink", "hr.due", "hr.start", "hr.extend", "hr.release", "hr.settle", "hr.sweep")
    + ("lane.config", "lane.register", "lane.take", "lane.settle", "lane.extend", "lane.leave", "lane.park")
    + ("lane.resume", "lane.rebuild")
)
# How a browser begins: a web page must not be able to send commands in the body of its request. As in Redis.
WEB_WORDS: Final = (b"POST", b"HOST:")
MAX_QUEUE_BYTES: Final = 1024 * 1024 * 1024  # Of one transaction: client-query-buffer-limit, which ends it in Redis.
WORD_BYTES: Final = 64  # What a word takes besides its letters: many short ones are large too.
SHOWN_ARGUMENTS: Final = 128  # Characters of arguments quoted in "unknown command", as Redis does.


def execute(ctx: Call, argv: list[bytes]) -> None:
    """Run one command of a client."""
    command = TABLE.get(argv[0])
    try:
        try:
            size = len(argv)
            if command is None or command.handler is None or size < command.least or size > command.most:
                command = check_or_spoil(ctx, argv)
            ctx.last_command = command.full_name
            if ctx.is_gated:
                execute_gated(ctx, command, argv)
                return
            # From here on `run`, written out: 150 ns a command in plain Python (bench/broker.py).
            calls = command.calls + 1
            command.calls = calls
            if calls & SAMPLED == 1:
                outcome = run_timed(ctx, command, argv)
            else:
                outcome = command.handler(ctx, argv)  # type: ignore[misc]  # Checked above.
        except CommandError as error:
            refuse(ctx, command, str(error))
            return
        except Exception as error:
            refuse(ctx, command, describe_fault(ctx.state, command, error))
            return
        state = ctx.state
        if state.dropped:
            state.note_expired()  # Before the command's own record: it may have made the key anew.
        record = outcome.record
        if record is not None:
            state.changes += 1
            if record:
                state.records.append(record)
            if state.watched:
                touch_keys(ctx, command, argv)
        reply = outcome.reply
        if reply:
            ctx.out.append(reply)
            if command.may_be_large and len(reply) > LARGE_REPLY_BYTES:
                ctx.is_draining = True
                ctx.is_halted = True
        elif ctx.blocked_on is not None:
            block(ctx)
        if state.event_kinds:
            tell_events(ctx, command, argv)
        if state.waiting_keys and outcome.wake is not None:
            state.wakes.append((ctx.db.number, outcome.wake))
        if state.wakes:
            serve_waiters(state, ctx.now_ms)
    except Exception as error:  # A fault of ours, in the midst of a change.
        ctx.state.note_half_done(error)
        raise


def describe_fault(state: State, command: Command | None, error: Exception) -> str:
    """The reply to a command that met a fault of ours. Raised again, unless the command only reads."""
    is_read = command is not None and "write" not in command.flags and command.group != "transactions"
    if state.on_read_fault is None or not is_read or isinstance(error, JournalError):
        raise error
    state.on_read_fault(error)
    return f"ERR internal error: {error!r}. This is a fault of headrace; nothing was changed"


def run(ctx: Call, command: Command, argv: list[bytes]) -> Outcome:
    """Call the handler and note what it changed. The caller counts the call: a waiting one counts once."""
    if command.calls & SAMPLED == 1:
        outcome = run_timed(ctx, command, argv)
    else:
        handler = command.handler
        assert handler is not None
        outcome = handler(ctx, argv)
    record = outcome.record
    state = ctx.state
    if state.dropped:
        state.note_expired()
    if record is not None:
        state.changes += 1
        if record:
            state.records.append(record)
        if state.watched:
            touch_keys(ctx, command, argv)
    if state.event_kinds:
        tell_events(ctx, command, argv)
    return outcome


def run_timed(ctx: Call, command: Command, argv: list[bytes]) -> Outcome:
    """Call the handler and measure it, as a sample of all its calls."""
    handler = command.handler
    assert handler is not None
    clock_ns = ctx.state.clock_ns
    if clock_ns is None:
        return handler(ctx, argv)
    start_ns = clock_ns()
    outcome = handler(ctx, argv)
    command.timed_ns += clock_ns() - start_ns
    command.timed += 1
    return outcome


def tell_events(ctx: Call, command: Command, argv: list[bytes]) -> None:
    """Publish the keyspace events of a command."""
    notice_missed(ctx, command, argv)
    if ctx.state.events:
        publish_events(ctx.state, ctx)


def touch_keys(ctx: Call, command: Command, argv: list[bytes]) -> None:
    """Transactions that watch a key of this command will not run. As in Redis, only the entries of a stream count."""
    if command.full_name in BESIDE_ENTRIES or command.full_name in CHANGE_ONE:
        return
    for key in command.keys_in(argv):
        ctx.state.touch(ctx.db.number, key)


def check_or_spoil(ctx: Call, argv: list[bytes]) -> Command:
    """As check; a command that cannot run spoils the transaction it stands in."""
    if argv[0].upper() in WEB_WORDS:
        ctx.is_closing = True
        ctx.is_halted = True
        raise CommandError("ERR This is the Redis protocol, not HTTP")
    try:
        return check(argv)
    except CommandError as error:
        raise spoiled(ctx, argv[0], str(error)) from None


def spoiled(ctx: Call, name: bytes, text: str) -> CommandError:
    """The error of a command that cannot run: it spoils the transaction it stands in, and EXEC itself ends it."""
    ctx.queue_failed = True
    if name.upper() != b"EXEC":
        return CommandError(text)
    ctx.discard()
    return CommandError(f"EXECABORT Transaction discarded because of: {text.removeprefix('ERR ')}")


def check(argv: list[bytes]) -> Command:
    """The command of an argument vector of the right length, or the error."""
    command = resolve(argv)
    if len(argv) < command.least or len(argv) > command.most:
        command.rejected += 1
        raise CommandError(f"ERR wrong number of arguments for '{command.full_name}' command")
    return command


def resolve(argv: list[bytes]) -> Command:
    """A command in any case, a subcommand, or the error that it does not exist."""
    command = find_command(argv[0])
    if command is None:
        raise CommandError(unknown_command(argv))
    if command.handler is not None:
        return command
    if len(argv) < 2:
        raise CommandError(f"ERR wrong number of arguments for '{command.full_name}' command")
    found = command.subcommands.get(argv[1])
    if found is None:
        found = command.subcommands.get(argv[1].upper())
    if found is None and command.group == "scripting":
        raise CommandError(f"ERR {NO_LUA}")
    if found is None:
        asked = argv[1][:SHOWN_ARGUMENTS].decode("utf-8", "surrogateescape")
        raise CommandError(f"ERR unknown subcommand '{asked}'. Try {command.name.upper()} HELP.")
    return found


def unknown_command(argv: list[bytes]) -> str:
    name = argv[0][:SHOWN_ARGUMENTS].decode("utf-8", "surrogateescape")
    reason = reason_for(argv[0])
    if reason:
        return f"ERR unknown command '{name}': {reason}"
    shown = ""
    for argument in argv[1:]:
        if len(shown) >= SHOWN_ARGUMENTS:
            break
        shown += f"'{argument[: SHOWN_ARGUMENTS - len(shown)].decode('utf-8', 'surrogateescape')}' "
    return f"ERR unknown command '{name}'" + (f", with args beginning with: {shown}" if shown else "")


def refuse(ctx: Call, command: Command | None, text: str) -> None:
    """Answer with an error."""
    count_error(ctx.state, command, text)
    if ctx.reply_mode == b"ON" and not ctx.skips_next:
        ctx.out.append(encode_error(text))
    elif ctx.skips_next:
        ctx.skips_next = False
        ctx.refresh_gate()
    if ctx.state.events:  # Also a command that is refused may have met a key whose time had come.
        publish_events(ctx.state, ctx)
    if ctx.pushes:
        send_pushes(ctx)


def count_error(state: State, command: Command | None, text: str) -> None:
    state.error_replies += 1
    prefix = text.split(" ", 1)[0]
    if prefix in state.errors or len(state.errors) < 128:
        state.errors[prefix] = state.errors.get(prefix, 0) + 1
    if command is not None:
        command.failed += 1


# The rare roads


def execute_gated(ctx: Call, command: Command, argv: list[bytes]) -> None:
    """Run a command while something out of the ordinary is on: pause, MULTI, listening, or replies turned off."""
    state = ctx.state
    if state.settings.max_memory > 0 and is_refused(ctx, command, argv):
        raise spoiled(ctx, argv[0], OUT_OF_MEMORY)
    if ctx.is_listening and not ctx.resp3 and not command.runs_when_listening:
        text = (
            f"ERR Can't execute '{command.full_name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET "
            "are allowed in this context"
        )
        raise spoiled(ctx, argv[0], text)
    if state.write_refusal and would_write(ctx, command):
        raise spoiled(ctx, argv[0], state.write_refusal)
    if state.pause_until_ms > 0 and is_held_back(ctx, command):
        ctx.postponed = argv
        ctx.is_halted = True
        return
    skips = ctx.skips_next
    is_silent = ctx.reply_mode != b"ON"
    reply = queue_or_run(ctx, command, argv)
    if skips and command.full_name != "client|reply":  # CLIENT REPLY has set everything itself.
        ctx.skips_next = False
        ctx.refresh_gate()
        if command.answers_by_push and ctx.queue is None:
            ctx.out.append(reply)
    elif reply and (not (is_silent and ctx.reply_mode != b"ON") or (command.answers_by_push and ctx.queue is None)):
        ctx.out.append(reply)
        if len(reply) > LARGE_REPLY_BYTES:
            ctx.is_draining = True
            ctx.is_halted = True
    if ctx.pushes:
        send_pushes(ctx)
    if ctx.blocked_on is not None:
        block(ctx)
    if state.wakes:
        serve_waiters(state, ctx.now_ms)


def send_pushes(call: Call) -> None:
    """The reply has been given: now the messages that the client sent to itself."""
    call.out += call.pushes
    call.pushes = []
    call.state.speaking.append(call)


def queue_or_run(ctx: Call, command: Command, argv: list[bytes]) -> bytes:
    if ctx.queue is not None and not command.runs_when_gated:
        if not command.may_queue:
            ctx.queue_failed = True
            raise CommandError("ERR Command not allowed inside a transaction")
        add_to_queue(ctx, ctx.queue, argv)
        return QUEUED
    command.calls += 1
    outcome = run(ctx, command, argv)
    if outcome.wake is not None:
        ctx.wake(ctx.db.number, outcome.wake)
    return outcome.reply


def add_to_queue(ctx: Call, queue: list[list[bytes]], argv: list[bytes]) -> None:
    ctx.queue_bytes += sum([len(word) + WORD_BYTES for word in argv])
    if ctx.queue_bytes > MAX_QUEUE_BYTES:
        queue.clear()
        ctx.is_closing = True
        ctx.is_halted = True
        raise CommandError("ERR the commands since MULTI exceed the query buffer limit")
    queue.append(argv)


def is_held_back(ctx: Call, command: Command) -> bool:
    """Whether CLIENT PAUSE keeps this command waiting."""
    state = ctx.state
    if ctx.now_ms >= state.pause_until_ms:
        end_pause(state)
        return False
    if command.full_name.startswith("client|") or command.full_name in ("quit", "reset", "hello", "auth"):
        return False
    if not state.pause_is_for_writes:
        return True
    if command.full_name == "exec" and ctx.queue is not None:
        found = [find_command(queued[0]) for queued in ctx.queue]
        return any([one is not None and one.waits_for_writes for one in found])
    return command.waits_for_writes and ctx.queue is None


def would_write(ctx: Call, command: Command) -> bool:
    """Whether the command may change something; EXEC, when one of those queued may."""
    if command.full_name == "exec" and ctx.queue is not None:
        return any(["write" in resolve(queued).flags for queued in ctx.queue])
    return "write" in command.flags


def end_pause(state: State) -> None:
    """Clients held back by CLIENT PAUSE go on, and those who wait look again."""
    state.pause_until_ms = 0
    state.wakes += state.waiters.by_key
    for call in state.clients.values():
        call.refresh_gate()
        if call.postponed is not None:
            call.is_halted = call.is_blocked or call.is_closing or call.is_draining
            state.resumed.append(call)


# Waiting


def block(ctx: Call) -> None:
    """The handler has nothing to give yet: the client waits."""
    waiter = ctx.blocked_on
    assert waiter is not None
    ctx.blocked_on = None
    ctx.is_blocked = True
    ctx.is_halted = True
    ctx.state.waiters.add(waiter)


def unblock(state: State, call: Call, reply: bytes) -> None:
    """The client's waiting is over, with this reply."""
    state.waiters.remove(call.id)
    call.is_blocked = False
    call.is_halted = call.is_closing or call.is_draining or call.postponed is not None
    if reply and call.reply_mode == b"ON":
        call.out.append(reply)
        state.speaking.append(call)
    state.resumed.append(call)


def serve_waiters(state: State, now_ms: int) -> None:
    """Run the commands of those who wait for keys that changed. What they change may wake others in turn."""
    if now_ms < state.pause_until_ms:
        state.wakes = []  # Everybody looks again when the pause is over.
    while state.wakes:
        wakes = dict.fromkeys(state.wakes)  # A key that was named twice is looked at once, in its first place.
        state.wakes = []
        for database, key in wakes:
            serve_key(state, database, key, now_ms)


def serve_key(state: State, database: int, key: bytes, now_ms: int) -> None:
    """Serve those who wait for one key, longest first, for as long as it holds what they wait for."""
    held: str | None = None  # The type of its value; None: not looked at since the last one was served.
    empty = ""  # A type that may be empty: the one before has looked in vain, so the next would too.
    due_ms = NO_TIME
    for waiter in state.waiters.on_key(database, key):
        if waiter.wants:
            if waiter.wants == empty:
                state.waiters.bring_forward(waiter, due_ms)
                continue
            if held is None:
                held = held_type(state, database, key, now_ms)
            if waiter.wants != held:
                continue
        retry(state, waiter, now_ms)
        held = None
        if state.waiters.by_client.get(waiter.client_id) is waiter:
            empty = waiter.wants
            due_ms = waiter.due_ms


def held_type(state: State, database: int, key: bytes, now_ms: int) -> str:
    """The type of what a key holds now; empty when it holds nothing."""
    value = state.databases[database].find(key, now_ms)
    if state.dropped:
        state.note_expired()
    return "" if value is None else type_name(value)


def retry(state: State, waiter: Waiter, now_ms: int) -> None:
    """Run a waiting command again. It either gets its reply now or goes on waiting in its place."""
    call = state.clients.get(waiter.client_id)
    if call is None or state.waiters.by_client.get(waiter.client_id) is not waiter:
        return
    call.now_ms = now_ms
    call.is_retrying = True
    command = find_command(waiter.argv[0])
    assert command is not None
    try:
        outcome = run(call, command, waiter.argv)
    except CommandError as error:
        count_error(state, command, str(error))
        unblock(state, call, encode_error(str(error)))
        return
    except Exception as error:
        unblock(state, call, encode_error(describe_fault(state, command, error)))
        return
    finally:
        call.is_retrying = False
    again = call.blocked_on
    if again is not None:
        call.blocked_on = None
        waiter.due_ms = again.due_ms
        state.waiters.schedule(waiter)
        if call.pushes:
            send_pushes(call)
        return
    if outcome.wake is not None:
        call.wake(call.db.number, outcome.wake)
    unblock(state, call, outcome.reply)
    if call.pushes:
        send_pushes(call)


def look_again(state: State, waiter: Waiter, now_ms: int, in_vain: dict[tuple[int, bytes], int]) -> None:
    """A waiter's own time has come. Of many who wait for one queue, only the first that gets nothing has to look."""
    place = (waiter.database, waiter.keys[0])
    is_alike = waiter.wants == QUEUE_TYPE and len(waiter.keys) == 1
    if is_alike and place in in_vain:
        waiter.due_ms = in_vain[place]
        state.waiters.schedule(waiter)
        return
    retry(state, waiter, now_ms)
    if is_alike and state.waiters.by_client.get(waiter.client_id) is waiter:
        in_vain[place] = waiter.due_ms


def tick(state: State, now_ms: int) -> None:
    """Serve those whose time has come: deadlines, and entries that have become idle enough to claim."""
    if state.pause_until_ms > 0 and now_ms >= state.pause_until_ms:
        end_pause(state)
    in_vain: dict[tuple[int, bytes], int] = {}  # Queues that have nothing to give now, and when they may have.
    for waiter in state.waiters.due(now_ms):
        call = state.clients[waiter.client_id]
        if waiter.deadline_ms != NO_TIME and waiter.deadline_ms <= now_ms:
            unblock(state, call, encode_null_array(resp3=call.resp3))
        elif state.pause_until_ms > 0:
            waiter.due_ms = NO_TIME  # It looks again when the pause is over.
            state.waiters.schedule(waiter)
        else:
            look_again(state, waiter, now_ms, in_vain)
    if state.wakes:
        serve_waiters(state, now_ms)
