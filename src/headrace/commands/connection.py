"""What a client says about its connection: HELLO, AUTH, PING, SELECT and leaving again. CLIENT is in `clients.py`.

There are no passwords yet: the user `default` is let in with any, and no other user exists.
"""

from typing import Final

from headrace.commands.call import Call
from headrace.commands.keys import get_database
from headrace.commands.numbers import parse_integer
from headrace.commands.outcome import OK, Outcome
from headrace.commands.spec import added, block, command, integer, optional, text
from headrace.errors import CommandError
from headrace.wire.encoder import encode, encode_array, encode_bulk
from headrace.wire.values import Value

REDIS_VERSION: Final = "8.6.0"  # What clients that look for features are told: whose stream commands these are.
PONG: Final = Outcome(b"+PONG\r\n")
BAD_NAME: Final = "ERR Client names cannot contain spaces, newlines or special characters."
WRONG_PASSWORD: Final = "WRONGPASS invalid username-password pair or user is disabled."  # noqa: S105
LONGEST_ATTRIBUTE: Final = 64 * 1024  # Of a client's or a library's name: it is repeated in every CLIENT LIST.


def is_plain(value: bytes) -> bool:
    """Whether the value can stand in a line of CLIENT LIST: visible ASCII only."""
    return len(value) <= LONGEST_ATTRIBUTE and all([33 <= byte <= 126 for byte in value])  # mypyc


@command(
    "HELLO",
    optional(
        block(
            "arguments",
            integer("protover"),
            optional(block("auth", text("username"), text("password"), token="AUTH")),
            optional(text("clientname", "SETNAME")),
        )
    ),
    group="connection", flags="noscript loading stale fast no_auth allow_busy", since="6.0.0", complexity="O(1)",
    summary="Choose the protocol, and introduce yourself.",
)  # fmt: skip
def hello(ctx: Call, argv: list[bytes]) -> Outcome:
    protocol = 0
    if len(argv) > 1:
        protocol = parse_integer(argv[1], "ERR Protocol version is not an integer or out of range")
        if protocol not in (2, 3):
            raise CommandError("NOPROTO unsupported protocol version")
    user = b"default"
    name: bytes | None = None
    index = 2
    while index < len(argv):
        option = argv[index].upper()
        if option == b"AUTH" and index + 2 < len(argv):
            user = argv[index + 1]
            index += 3
        elif option == b"SETNAME" and index + 1 < len(argv):
            name = argv[index + 1]
            if not is_plain(name):
                raise CommandError(BAD_NAME)
            index += 2
        else:
            asked = argv[index].decode("utf-8", "surrogateescape")
            raise CommandError(f"ERR Syntax error in HELLO option '{asked}'")
    if user != b"default":
        raise CommandError(WRONG_PASSWORD)
    if name is not None:
        ctx.name = name
    if protocol:
        ctx.resp3 = protocol == 3
    greeting: dict[str, Value] = {
        "server": "redis",
        "version": REDIS_VERSION,
        "proto": 3 if ctx.resp3 else 2,
        "id": ctx.id,
        "mode": "standalone",
        "role": "master",
        "modules": [],
    }
    return Outcome(encode(greeting, resp3=ctx.resp3))


@command(
    "AUTH", optional(added("6.0.0", text("username"))), text("password"),
    group="connection", flags="noscript loading stale fast no_auth allow_busy", since="1.0.0", complexity="O(1)",
    summary="Say who you are.",
)  # fmt: skip
def auth(ctx: Call, argv: list[bytes]) -> Outcome:
    if len(argv) > 3:
        raise CommandError("ERR syntax error")
    if len(argv) == 2:
        raise CommandError(
            "ERR AUTH <password> called without any password configured for the default user. "
            "Are you sure your configuration is correct?"
        )
    if argv[1] != b"default":
        raise CommandError(WRONG_PASSWORD)
    return OK


@command(
    "PING", optional(text("message")),
    group="connection", flags="fast", since="1.0.0", complexity="O(1)", summary="Is the server there?",
    tips="request_policy:all_shards response_policy:all_succeeded",
)  # fmt: skip
def ping(ctx: Call, argv: list[bytes]) -> Outcome:
    if len(argv) > 2:
        raise CommandError("ERR wrong number of arguments for 'ping' command")
    if ctx.is_listening and not ctx.resp3:  # Everything a listener in RESP2 gets is an array.
        return Outcome(encode_array([encode_bulk(b"pong"), encode_bulk(argv[1] if len(argv) == 2 else b"")]))
    return PONG if len(argv) == 1 else Outcome(encode_bulk(argv[1]))


@command(
    "ECHO", text("message"),
    group="connection", flags="loading stale fast", since="1.0.0", complexity="O(1)", summary="Get a message back.",
)  # fmt: skip
def echo(ctx: Call, argv: list[bytes]) -> Outcome:
    return Outcome(encode_bulk(argv[1]))


@command(
    "SELECT", integer("index"),
    group="connection", flags="loading stale fast", since="1.0.0", complexity="O(1)",
    summary="Use another database from now on.",
)  # fmt: skip
def select(ctx: Call, argv: list[bytes]) -> Outcome:
    ctx.db = get_database(ctx, argv[1])
    return OK


@command(
    "QUIT",
    group="connection", flags="noscript loading stale fast no_auth allow_busy", since="1.0.0", complexity="O(1)",
    summary="Close the connection.", arity=-1,
)  # fmt: skip
def quit_(ctx: Call, argv: list[bytes]) -> Outcome:
    ctx.is_closing = True
    ctx.is_halted = True
    return OK


@command(
    "RESET",
    group="connection", flags="noscript loading stale fast no_auth allow_busy", since="6.2.0", complexity="O(1)",
    summary="Make the connection as good as new.",
)  # fmt: skip
def reset(ctx: Call, argv: list[bytes]) -> Outcome:
    ctx.queue = None
    ctx.queue_failed = False
    ctx.unwatch()
    ctx.state.channels.forget(ctx.id)
    ctx.is_listening = False
    ctx.db = ctx.state.databases[0]
    ctx.resp3 = False
    ctx.name = b""
    ctx.reply_mode = b"ON"
    ctx.skips_next = False
    ctx.no_evict = False
    ctx.no_touch = False
    ctx.refresh_gate()
    return Outcome(b"+RESET\r\n")
