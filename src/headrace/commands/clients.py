"""CLIENT: what connections there are, and what is done with them.

A client that is killed gets nothing more: it is marked as closing and named in `state.speaking`, so that whoever owns
the sockets closes it.
"""

from typing import Final

from headrace.commands.call import Call
from headrace.commands.connection import BAD_NAME, is_plain
from headrace.commands.dispatch import count_error, end_pause, unblock
from headrace.commands.help import help_reply
from headrace.commands.numbers import MAX_INTEGER, parse_integer, parse_within
from headrace.commands.outcome import NOTHING, OK, Outcome
from headrace.commands.refusals import SYNTAX
from headrace.commands.spec import (
    added,
    command,
    container,
    find_command,
    integer,
    many,
    oneof,
    optional,
    shown,
    text,
    word,
)  # fmt: skip
from headrace.errors import CommandError
from headrace.wire.encoder import encode, encode_error, encode_integer, encode_null_array
from headrace.wire.values import Unordered, Verbatim

UNBLOCKED: Final = "UNBLOCKED client unblocked via CLIENT UNBLOCK"
TYPES: Final = (b"NORMAL", b"MASTER", b"REPLICA", b"SLAVE", b"PUBSUB")
NOSCRIPT: Final = "noscript loading stale"
ADMIN: Final = "admin noscript loading stale"

container(
    "CLIENT", group="connection", since="2.4.0", summary="What connections there are, and what is done with them."
)


# About this connection


@command(
    "CLIENT ID",
    group="connection", flags=NOSCRIPT, since="5.0.0", complexity="O(1)", summary="The number of this connection.",
)  # fmt: skip
def client_id(ctx: Call, argv: list[bytes]) -> Outcome:
    return Outcome(encode_integer(ctx.id))


@command(
    "CLIENT GETNAME",
    group="connection", flags=NOSCRIPT, since="2.6.9", complexity="O(1)", summary="The name of this connection.",
)  # fmt: skip
def client_getname(ctx: Call, argv: list[bytes]) -> Outcome:
    return Outcome(encode(ctx.name or None, resp3=ctx.resp3))


@command(
    "CLIENT SETNAME", text("connection-name"),
    group="connection", flags=NOSCRIPT, since="2.6.9", complexity="O(1)", summary="Name this connection.",
    tips="request_policy:all_nodes response_policy:all_succeeded",
)  # fmt: skip
def client_setname(ctx: Call, argv: list[bytes]) -> Outcome:
    if not is_plain(argv[2]):
        raise CommandError(BAD_NAME)
    ctx.name = argv[2]
    return OK


@command(
    "CLIENT SETINFO", oneof("attr", text("libname", "LIB-NAME"), text("libver", "LIB-VER")),
    group="connection", flags=NOSCRIPT, since="7.2.0", complexity="O(1)",
    summary="Say which library speaks here.", tips="request_policy:all_nodes response_policy:all_succeeded",
)  # fmt: skip
def client_setinfo(ctx: Call, argv: list[bytes]) -> Outcome:
    attribute = argv[2].upper()
    asked = argv[2].decode("utf-8", "surrogateescape")
    if attribute not in (b"LIB-NAME", b"LIB-VER"):
        raise CommandError(f"ERR Unrecognized option '{asked}'")
    if not is_plain(argv[3]):
        raise CommandError(f"ERR {asked} cannot contain spaces, newlines or special characters.")
    if attribute == b"LIB-NAME":
        ctx.library = argv[3]
    else:
        ctx.library_version = argv[3]
    return OK


@command(
    "CLIENT REPLY", oneof("action", word("ON"), word("OFF"), word("SKIP")),
    group="connection", flags=NOSCRIPT, since="3.2.0", complexity="O(1)",
    summary="Turn replies on or off, or leave out the next one.",
)  # fmt: skip
def client_reply(ctx: Call, argv: list[bytes]) -> Outcome:
    mode = argv[2].upper()
    if mode not in (b"ON", b"OFF", b"SKIP"):
        raise CommandError(SYNTAX)
    if mode == b"SKIP":
        ctx.skips_next = ctx.reply_mode == b"ON"
    else:
        ctx.reply_mode = mode
        ctx.skips_next = False
    ctx.refresh_gate()
    return OK if mode == b"ON" else NOTHING


@command(
    "CLIENT NO-EVICT", oneof("enabled", word("ON"), word("OFF")),
    group="connection", flags=ADMIN, since="7.0.0", complexity="O(1)",
    summary="Accepted and shown: connections are never evicted.",
)  # fmt: skip
def client_no_evict(ctx: Call, argv: list[bytes]) -> Outcome:
    ctx.no_evict = parse_switch(argv[2])
    return OK


@command(
    "CLIENT NO-TOUCH", oneof("enabled", word("ON"), word("OFF")),
    group="connection", flags=NOSCRIPT, since="7.2.0", complexity="O(1)",
    summary="Accepted and shown: access times are not kept.",
)  # fmt: skip
def client_no_touch(ctx: Call, argv: list[bytes]) -> Outcome:
    ctx.no_touch = parse_switch(argv[2])
    return OK


def parse_switch(text_: bytes) -> bool:
    if text_.upper() not in (b"ON", b"OFF"):
        raise CommandError(SYNTAX)
    return text_.upper() == b"ON"


@command(
    "CLIENT GETREDIR",
    group="connection", flags=NOSCRIPT, since="6.0.0", complexity="O(1)", summary="-1: keys are not tracked.",
)  # fmt: skip
def client_getredir(ctx: Call, argv: list[bytes]) -> Outcome:
    return Outcome(encode_integer(-1))


@command(
    "CLIENT TRACKINGINFO",
    group="connection", flags=NOSCRIPT, since="6.2.0", complexity="O(1)", summary="Off: keys are not tracked.",
)  # fmt: skip
def client_trackinginfo(ctx: Call, argv: list[bytes]) -> Outcome:
    return Outcome(encode({"flags": Unordered(["off"]), "redirect": -1, "prefixes": []}, resp3=ctx.resp3))


# About all of them


@command(
    "CLIENT INFO",
    group="connection", flags=NOSCRIPT, since="6.2.0", complexity="O(1)", summary="This connection in one line.",
    tips="nondeterministic_output",
)  # fmt: skip
def client_info(ctx: Call, argv: list[bytes]) -> Outcome:
    return Outcome(encode(Verbatim(describe(ctx, ctx.now_ms)), resp3=ctx.resp3))


@command(
    "CLIENT LIST",
    optional(
        added("5.0.0", oneof(
            "client-type", word("NORMAL"), word("MASTER"), word("REPLICA"), word("PUBSUB"), token="TYPE"
        ))
    ),
    optional(added("6.2.0", many(integer("client-id", "ID")))),
    group="connection", flags=ADMIN, since="2.4.0", complexity="O(N) with N connections",
    summary="Connections, one line each.", tips="nondeterministic_output",
)  # fmt: skip
def client_list(ctx: Call, argv: list[bytes]) -> Outcome:
    chosen = list(ctx.state.clients.values())
    if len(argv) == 4 and argv[2].upper() == b"TYPE":
        kind = parse_type(argv[3])
        chosen = [call for call in chosen if type_of(call) == kind]
    elif len(argv) > 3 and argv[2].upper() == b"ID":
        numbers = [parse_integer(number, "ERR Invalid client ID") for number in argv[3:]]
        chosen = [ctx.state.clients[number] for number in numbers if number in ctx.state.clients]
    elif len(argv) != 2:
        raise CommandError(SYNTAX)
    lines = [describe(call, ctx.now_ms) for call in chosen]
    return Outcome(encode(Verbatim("".join(lines)), resp3=ctx.resp3))


def parse_type(text_: bytes) -> bytes:
    kind = text_.upper()
    if kind not in TYPES:
        raise CommandError(f"ERR Unknown client type '{text_.decode('utf-8', 'surrogateescape')}'")
    return kind


def type_of(call: Call) -> bytes:
    return b"PUBSUB" if call.is_listening else b"NORMAL"


def describe(call: Call, now_ms: int) -> str:
    """A connection as CLIENT LIST shows it. Buffers that are not measured are shown as 0."""
    channels = call.state.channels
    facts: dict[str, str | int] = {
        "id": call.id,
        "addr": call.address,
        "laddr": call.local_address,
        "fd": -1,
        "name": call.name.decode("ascii", "replace"),
        "age": (now_ms - call.created_ms) // 1000,
        "idle": (now_ms - call.active_ms) // 1000,
        "flags": flags_of(call),
        "db": call.db.number,
        "sub": channels.channels.count_of(call.id),
        "psub": channels.patterns.count_of(call.id),
        "ssub": channels.shards.count_of(call.id),
        "multi": -1 if call.queue is None else len(call.queue),
        "watch": len(call.watching),
        "qbuf": 0, "qbuf-free": 0, "argv-mem": 0, "multi-mem": 0, "rbs": 0, "rbp": 0, "obl": 0,
        "oll": len(call.out),
        "omem": sum([len(part) for part in call.out]),
        "tot-mem": 0,
        "events": "r",
        "cmd": call.last_command or "NULL",
        "user": "default",
        "redir": -1,
        "resp": 3 if call.resp3 else 2,
        "lib-name": call.library.decode("ascii", "replace"),
        "lib-ver": call.library_version.decode("ascii", "replace"),
        "io-thread": 0,
        "tot-net-in": call.bytes_in,
        "tot-net-out": call.bytes_out,
        "tot-cmds": call.commands_run,
    }  # fmt: skip
    return " ".join([f"{name}={value}" for name, value in facts.items()]) + "\n"


def flags_of(call: Call) -> str:
    flags = ""
    if call.is_listening:
        flags += "P"
    if call.queue is not None:
        flags += "x"
    if call.is_blocked or call.postponed is not None:
        flags += "b"
    if call.is_stale:
        flags += "d"
    if call.is_closing:
        flags += "c"
    if call.no_evict:
        flags += "e"
    if call.no_touch:
        flags += "T"
    return flags or "N"


# Ending, unblocking, pausing


class KillFilter:
    """Which clients CLIENT KILL means. What is not asked for is None or 0."""

    __slots__ = ("address", "local_address", "kind", "number", "skips_self", "age_s")

    def __init__(self) -> None:
        self.address: str | None = None
        self.local_address: str | None = None
        self.kind = b""
        self.number = 0
        self.skips_self = True
        self.age_s = 0

    def matches(self, call: Call, ctx: Call) -> bool:
        if self.address is not None and call.address != self.address:
            return False
        if self.local_address is not None and call.local_address != self.local_address:
            return False
        if self.kind not in (b"", type_of(call)):
            return False
        if self.number and call.id != self.number:
            return False
        if call is ctx and self.skips_self:
            return False
        return not (self.age_s and (ctx.now_ms - call.created_ms) // 1000 < self.age_s)


@command(
    "CLIENT KILL",
    oneof(
        "filter",
        shown("ip:port", text("old-format")),
        many(
            oneof(
                "new-format",
                added("2.8.12", optional(integer("client-id", "ID"))),
                added("2.8.12", optional(oneof(
                    "client-type", word("NORMAL"), added("3.2.0", word("MASTER")), word("SLAVE"),
                    added("5.0.0", word("REPLICA")), word("PUBSUB"), token="TYPE",
                ))),
                optional(text("username", "USER")),
                optional(shown("ip:port", text("addr", "ADDR"))),
                added("6.2.0", optional(shown("ip:port", text("laddr", "LADDR")))),
                optional(oneof("skipme", word("YES"), word("NO"), token="SKIPME")),
                added("7.4.0", optional(integer("maxage", "MAXAGE"))),
            )
        ),
    ),
    group="connection", flags=ADMIN, since="2.4.0", complexity="O(N) with N connections",
    summary="Close connections.", arity=-3,
)  # fmt: skip
def client_kill(ctx: Call, argv: list[bytes]) -> Outcome:
    """With the old form, an address alone, a client may also name itself."""
    is_old_form = len(argv) == 3
    wanted = KillFilter()
    if is_old_form:
        wanted.address = argv[2].decode("utf-8", "surrogateescape")
        wanted.skips_self = False
    else:
        parse_kill_filter(wanted, argv)
    killed = [call for call in list(ctx.state.clients.values()) if wanted.matches(call, ctx)]
    for call in killed:
        kill(call, ctx)
    if is_old_form:
        if not killed:
            raise CommandError("ERR No such client")
        return OK
    return Outcome(encode_integer(len(killed)))


def parse_kill_filter(wanted: KillFilter, argv: list[bytes]) -> None:
    for index in range(2, len(argv), 2):
        if index + 1 == len(argv):
            raise CommandError(SYNTAX)
        option = argv[index].upper()
        value = argv[index + 1]
        asked = value.decode("utf-8", "surrogateescape")
        if option == b"ID":
            error = "ERR client-id should be greater than 0"
            wanted.number = parse_within(value, 1, MAX_INTEGER, error, error)
        elif option == b"MAXAGE":
            not_a_number = "ERR maxage is not an integer or out of range"
            wanted.age_s = parse_within(value, 1, MAX_INTEGER, "ERR maxage should be greater than 0", not_a_number)
        elif option == b"TYPE":
            wanted.kind = parse_type(value)
        elif option == b"ADDR":
            wanted.address = asked
        elif option == b"LADDR":
            wanted.local_address = asked
        elif option == b"USER":
            if value != b"default":
                raise CommandError(f"ERR No such user '{asked}'")
        elif option == b"SKIPME" and value.upper() in (b"YES", b"NO"):
            wanted.skips_self = value.upper() == b"YES"
        else:
            raise CommandError(SYNTAX)


def kill(call: Call, ctx: Call) -> None:
    call.is_closing = True
    call.is_halted = True
    call.killed_by = ctx.id
    if call is not ctx:
        ctx.state.waiters.remove(call.id)
        call.is_blocked = False
        call.postponed = None
        call.out = []
        ctx.state.speaking.append(call)


@command(
    "CLIENT UNBLOCK", integer("client-id"), optional(oneof("unblock-type", word("TIMEOUT"), word("ERROR"))),
    group="connection", flags=ADMIN, since="5.0.0", complexity="O(1)",
    summary="End the waiting of a blocked client, as if its time were up or with an error.",
)  # fmt: skip
def client_unblock(ctx: Call, argv: list[bytes]) -> Outcome:
    if len(argv) > 4:
        raise CommandError("ERR unknown subcommand or wrong number of arguments for 'unblock'. Try CLIENT HELP.")
    reason = argv[3].upper() if len(argv) == 4 else b"TIMEOUT"
    if reason not in (b"TIMEOUT", b"ERROR"):
        raise CommandError("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
    state = ctx.state
    number = parse_integer(argv[2])
    call = state.clients.get(number)
    waiter = state.waiters.by_client.get(number)
    if call is None or waiter is None:
        return Outcome(encode_integer(0))
    if reason == b"ERROR":
        count_error(state, find_command(waiter.argv[0]), UNBLOCKED)
        unblock(state, call, encode_error(UNBLOCKED))
    else:
        unblock(state, call, encode_null_array(resp3=call.resp3))
    return Outcome(encode_integer(1))


@command(
    "CLIENT PAUSE", integer("timeout"), optional(added("6.2.0", oneof("mode", word("WRITE"), word("ALL")))),
    group="connection", flags=ADMIN, since="3.0.0", complexity="O(1)",
    summary="Hold back commands of all clients, or only writes, for some milliseconds.",
)  # fmt: skip
def client_pause(ctx: Call, argv: list[bytes]) -> Outcome:
    """Commands of CLIENT itself still run. A second pause can lengthen the first and widen it, never shorten it."""
    if len(argv) > 4:
        raise CommandError("ERR unknown subcommand or wrong number of arguments for 'pause'. Try CLIENT HELP.")
    is_for_writes = False
    if len(argv) == 4:
        if argv[3].upper() not in (b"WRITE", b"ALL"):
            raise CommandError("ERR CLIENT PAUSE mode must be WRITE or ALL")
        is_for_writes = argv[3].upper() == b"WRITE"
    timeout_ms = parse_integer(argv[2], "ERR timeout is not an integer or out of range")
    if timeout_ms < 0:
        raise CommandError("ERR timeout is negative")
    if timeout_ms > MAX_INTEGER - ctx.now_ms:
        raise CommandError("ERR timeout is out of range")
    state = ctx.state
    is_on = state.pause_until_ms > ctx.now_ms
    state.pause_is_for_writes = is_for_writes and (state.pause_is_for_writes or not is_on)
    state.pause_until_ms = max(state.pause_until_ms, ctx.now_ms + timeout_ms)
    for call in state.clients.values():
        call.refresh_gate()
    return OK


@command(
    "CLIENT UNPAUSE",
    group="connection", flags=ADMIN, since="6.2.0", complexity="O(N) with N paused clients",
    summary="Let held back clients go on.",
)  # fmt: skip
def client_unpause(ctx: Call, argv: list[bytes]) -> Outcome:
    end_pause(ctx.state)
    return OK


@command(
    "CLIENT HELP",
    group="connection", flags="loading stale", since="5.0.0", complexity="O(1)", summary="The subcommands of CLIENT.",
)  # fmt: skip
def client_help(ctx: Call, argv: list[bytes]) -> Outcome:
    return help_reply(
        "CLIENT",
        [
            "GETNAME", "    The name of this connection.",
            "GETREDIR", "    -1: keys are not tracked.",
            "ID", "    The number of this connection.",
            "INFO", "    This connection in one line.",
            "KILL <ip:port>", "    Close the connection from this address.",
            "KILL <option> <value> [<option> <value> [...]]",
            "    Close connections. Options: ADDR, LADDR, ID, TYPE, USER, SKIPME (YES|NO), MAXAGE <seconds>.",
            "LIST [TYPE (NORMAL|MASTER|REPLICA|PUBSUB)] [ID <client-id> [...]]", "    Connections, one line each.",
            "NO-EVICT (ON|OFF)", "    Accepted; connections are never evicted.",
            "NO-TOUCH (ON|OFF)", "    Accepted; access times are not kept.",
            "PAUSE <timeout> [WRITE|ALL]", "    Hold back writes, or everything, for <timeout> milliseconds.",
            "REPLY (ON|OFF|SKIP)", "    Turn replies on or off, or leave out the next one.",
            "SETINFO (LIB-NAME|LIB-VER) <value>", "    Say which library speaks here.",
            "SETNAME <name>", "    Name this connection.",
            "TRACKINGINFO", "    Off: keys are not tracked.",
            "UNBLOCK <client-id> [TIMEOUT|ERROR]", "    End the waiting of a blocked client.",
            "UNPAUSE", "    Let held back clients go on.",
        ],
    )  # fmt: skip
