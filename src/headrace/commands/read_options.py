"""The options of XREAD and XREADGROUP, and how both wait."""

from typing import Final

from headrace.commands.call import Call
from headrace.commands.numbers import parse_integer
from headrace.commands.outcome import NOTHING, Outcome
from headrace.commands.refusals import SYNTAX
from headrace.engine.waiters import NO_TIME, Waiter
from headrace.errors import CommandError

NO_CLAIM: Final = -1
MAX_TIME_MS: Final = 2**63 - 1


class ReadOptions:
    __slots__ = (
        "count", "block_ms", "keys", "ids", "group", "consumer", "has_group", "acks_at_once", "claim_idle_ms", "ids_at",
        "found",
    )  # fmt: skip

    def __init__(self) -> None:
        self.count = 0  # Per stream; 0: all.
        self.block_ms = -1  # Negative: do not wait; 0: for ever.
        self.keys: list[bytes] = []
        self.ids: list[bytes] = []
        self.group = b""
        self.consumer = b""
        self.has_group = False
        self.acks_at_once = False  # NOACK: delivered entries do not become pending.
        self.claim_idle_ms = NO_CLAIM
        self.ids_at = 0  # Where the IDs begin in the argument vector.
        self.found = 0  # Streams with something to give.


def parse_read(argv: list[bytes], command: str) -> ReadOptions:
    """Options may come in any order; STREAMS ends them."""
    options = ReadOptions()
    is_group = command == "xreadgroup"
    index = 1
    while index < len(argv):
        option = argv[index].upper()
        more = len(argv) - 1 - index
        if option == b"BLOCK" and more:
            options.block_ms = parse_timeout_ms(argv[index + 1])
            index += 2
        elif option == b"COUNT" and more:
            options.count = max(0, parse_integer(argv[index + 1]))
            index += 2
        elif option == b"STREAMS" and more:
            parse_streams(options, argv, index + 1, command)
            break
        elif option == b"GROUP" and more >= 2:
            require_group(is_group, "GROUP")
            options.group = argv[index + 1]
            options.consumer = argv[index + 2]
            options.has_group = True
            index += 3
        elif option == b"NOACK":
            require_group(is_group, "NOACK")
            options.acks_at_once = True
            index += 1
        elif option == b"CLAIM" and more:
            require_group(is_group, "CLAIM")
            options.claim_idle_ms = parse_integer(
                argv[index + 1], "ERR min-idle-time is not an integer or out of range"
            )
            if options.claim_idle_ms < 0:
                raise CommandError("ERR min-idle-time must be a positive integer")
            index += 2
        else:
            raise CommandError(SYNTAX)
    if not options.keys:
        raise CommandError(SYNTAX)
    if is_group and not options.has_group:
        raise CommandError("ERR Missing GROUP option for XREADGROUP")
    return options


def require_group(is_group: bool, option: str) -> None:
    if not is_group:
        raise CommandError(f"ERR The {option} option is only supported by XREADGROUP. You called XREAD instead.")


def parse_streams(options: ReadOptions, argv: list[bytes], start: int, command: str) -> None:
    words = len(argv) - start
    if words % 2:
        wanted = "an ID or '>'" if command == "xreadgroup" else "an ID, '+', or '$'"
        raise CommandError(
            f"ERR Unbalanced '{command}' list of streams: for each stream key {wanted} must be specified."
        )
    options.ids_at = start + words // 2
    options.keys = argv[start : options.ids_at]
    options.ids = argv[options.ids_at :]


def parse_timeout_ms(text: bytes) -> int:
    timeout_ms = parse_integer(text, "ERR timeout is not an integer or out of range")
    if timeout_ms < 0:
        raise CommandError("ERR timeout is negative")
    if timeout_ms > MAX_TIME_MS - 2**42:  # Added to any clock it would overflow Redis's integers.
        raise CommandError("ERR timeout is out of range")
    return timeout_ms


def wait(ctx: Call, argv: list[bytes], options: ReadOptions, due_ms: int = NO_TIME) -> Outcome:
    """Nothing to give yet: wait for one of the keys, or until due_ms, with the IDs as they are resolved now."""
    deadline_ms = ctx.now_ms + options.block_ms if options.block_ms else NO_TIME
    again = argv[: options.ids_at] + options.ids
    ctx.blocked_on = Waiter(ctx.id, ctx.db.number, options.keys, again, deadline_ms, due_ms)
    return NOTHING
