"""What clients ask of replication. There is none, so the answers are short."""

from headrace.commands.call import Call
from headrace.commands.numbers import MAX_INTEGER, parse_integer
from headrace.commands.outcome import ZERO, Outcome
from headrace.commands.spec import command, integer
from headrace.errors import CommandError


@command(
    "WAIT", integer("numreplicas"), integer("timeout"),
    group="generic", flags="blocking", categories="connection", since="3.0.0", complexity="O(1)",
    summary="How many replicas have what this client wrote: always 0, and at once.",
    tips="request_policy:all_shards response_policy:agg_min",
)  # fmt: skip
def wait(ctx: Call, argv: list[bytes]) -> Outcome:
    """Redis waits for the timeout when there are too few replicas. Here none can come, so nobody waits for one."""
    parse_integer(argv[1])
    timeout_ms = parse_integer(argv[2], "ERR timeout is not an integer or out of range")
    if timeout_ms < 0:
        raise CommandError("ERR timeout is negative")
    if timeout_ms > MAX_INTEGER - ctx.now_ms:
        raise CommandError("ERR timeout is out of range")
    return ZERO
