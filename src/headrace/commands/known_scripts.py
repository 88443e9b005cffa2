"""EVAL, EVALSHA and SCRIPT without Lua: a few scripts are known by their digest and done natively.

They are those that plain queues of Celery and taskiq cannot do without: redis-py's Lock, the same since 2018, and the
binding tables of kombu. What they do is in `script_steps.py`. A new wording has another digest and is refused until it
stands here. Every other script is refused, with the reason (`left_out.py`).
"""

from collections.abc import Callable
from hashlib import sha1
from typing import Final

from headrace.commands.call import Call
from headrace.commands.left_out import NO_LUA
from headrace.commands.outcome import Outcome
from headrace.commands.script_steps import extend, reacquire, refresh_binding, release, sweep_bindings
from headrace.commands.spec import command, container, integer, key, many, optional, text
from headrace.errors import CommandError
from headrace.wire.encoder import encode_array, encode_bulk, encode_integer

Step = Callable[[Call, list[bytes], list[bytes]], Outcome]

# By the SHA-1 of the script's text: what to do, and how many keys and further arguments it takes.
KNOWN: Final[dict[bytes, tuple[Step, int, int]]] = {
    b"c3f8721cbb97f72bc19e972846bd7aaf91901658": (release, 1, 1),
    b"a4e8783852e6b949f9ef3a97212805108459a890": (extend, 1, 3),
    b"1cac51482acf5858da00f6d685d68f886cd6b6b2": (reacquire, 1, 2),
    b"ef7a9e205fbaf46bf959e1522ff796622fc676c7": (refresh_binding, 2, 3),  # kombu 5.7
    b"9a2b966a0a2d2d0e36ec32bc30fc89342b94a4bf": (sweep_bindings, 1, 3),  # kombu 5.7
}
SUMMARY: Final = "Refused, but for a few scripts of redis-py and kombu, which are known by their digest."


@command(
    "EVAL", text("script"), integer("numkeys"), optional(many(key("RW access update", counted=True))),
    optional(many(text("arg"))),
    group="scripting", flags="write noscript", since="2.6.0", complexity="O(1)",
    summary=SUMMARY, arity=-3,
)  # fmt: skip
def eval_(ctx: Call, argv: list[bytes]) -> Outcome:
    """headrace runs no Lua. The known scripts are steps of the broker itself: see EVALSHA."""
    return run_known(ctx, digest_of(argv[1]), argv)


@command(
    "EVALSHA", text("sha1"), integer("numkeys"), optional(many(key("RW access update", counted=True))),
    optional(many(text("arg"))),
    group="scripting", flags="write noscript", since="2.6.0", complexity="O(1)",
    summary=SUMMARY, arity=-3,
)  # fmt: skip
def evalsha(ctx: Call, argv: list[bytes]) -> Outcome:
    """So the locks of redis-py work, and the queues of Celery and taskiq with them."""
    return run_known(ctx, argv[1].lower(), argv)


def digest_of(script: bytes) -> bytes:
    return sha1(script, usedforsecurity=False).hexdigest().encode()


def run_known(ctx: Call, digest: bytes, argv: list[bytes]) -> Outcome:
    known = KNOWN.get(digest)
    if known is None:
        raise CommandError(f"ERR {NO_LUA}")
    step, keys, arguments = known
    if argv[2] != b"%d" % keys or len(argv) != 3 + keys + arguments:
        raise CommandError(f"ERR this script takes {keys} keys and {arguments} more arguments")
    return step(ctx, argv[3 : 3 + keys], argv[3 + keys :])


container(
    "SCRIPT", group="scripting", since="2.6.0", summary="Which scripts are known. No others can be loaded."
)  # fmt: skip


@command(
    "SCRIPT EXISTS", many(text("sha1")),
    group="scripting", flags="noscript", since="2.6.0", complexity="O(1) for each digest",
    summary="Which of the scripts are known: 1 or 0 for each digest.",
    tips="request_policy:all_shards response_policy:agg_logical_and",
)  # fmt: skip
def script_exists(ctx: Call, argv: list[bytes]) -> Outcome:
    return Outcome(encode_array([encode_integer(int(digest.lower() in KNOWN)) for digest in argv[2:]]))


@command(
    "SCRIPT LOAD", text("script"),
    group="scripting", flags="noscript stale", since="2.6.0", complexity="O(N) with N bytes in the script",
    summary="The digest of a script that is known; any other is refused.",
    tips="request_policy:all_nodes response_policy:all_succeeded",
)  # fmt: skip
def script_load(ctx: Call, argv: list[bytes]) -> Outcome:
    digest = digest_of(argv[2])
    if digest not in KNOWN:
        raise CommandError(f"ERR {NO_LUA}")
    return Outcome(encode_bulk(digest))
