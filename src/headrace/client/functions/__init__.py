"""Steps that a plain Redis or Valkey lacks, run inside the server so that they are one step there too.

Each `NAME.lua` beside this file is the body of one step, but for those that several share: ROOMS names them. A step is
loaded as part of a library of Redis Functions (named by version, so that two versions live side by side), or run by
EVALSHA where FUNCTION is refused. A server that has lost the library, by a flush, a restart or
a failover, gets it again at the next call. Where scripts are refused too, the features that need a step say so; the
others go on.
"""

from collections.abc import Callable
from functools import cache
from hashlib import sha1
from importlib.resources import files
from typing import Any, Final, TypeVar

from headrace.client.flow import Flow
from headrace.client.requests import Request, Word
from headrace.errors import AccessDenied, CommandError, HeadraceError, Unsupported

T = TypeVar("T")

VERSION: Final = 4  # Raised whenever a step changes what it does or how it is called.
LIBRARY: Final = f"headrace_{VERSION}"
# Steps by the files that they share; those of the first row share nothing.
ROOMS: Final[dict[str, tuple[str, ...]]] = {
    "": ("claim",),
    "stream": ("ackdel", "trim"),
    "publish": ("add", "delay"),
    "stream queue": (
        "queue_ack", "queue_extend", "queue_info", "queue_inspect", "queue_nack", "queue_pause", "queue_pop",
        "queue_push", "queue_pushx", "queue_recover", "queue_wait",
    ),
    "worker worker_effects worker_clauses worker_settled": (
        "worker_due", "worker_extend", "worker_release", "worker_settle", "worker_start", "worker_sweep",
    ),
    "worker worker_effects worker_clauses worker_settled lane lane_layout lane_changes lane_ingest lane_mending": (
        "lane_config", "lane_extend", "lane_info", "lane_leave", "lane_park", "lane_rebuild", "lane_register",
        "lane_resume", "lane_settle", "lane_take",
    ),
}  # fmt: skip
STEPS: Final = tuple(step for steps in ROOMS.values() for step in steps)
# A server that is out of memory runs all others.
REFUSED_WHEN_FULL: Final = ("add", "delay", "queue_push", "queue_pushx")
NOT_THERE: Final = ("unknown command", "runs no Lua", "Could not find scripting engine", "Engine 'lua' not found")


class Scripts:
    """How this server takes our steps, found out at the first one."""

    def __init__(self) -> None:
        self.uses_functions = True
        self.refuses_undeclared = False  # Keys whose names a step makes up.


def read_file(name: str) -> str:
    return files(__package__).joinpath(f"{name}.lua").read_text("utf-8")


def read_files(names: str) -> str:
    return "".join(read_file(name) for name in names.split())


@cache
def body_of(step: str) -> str:
    """A step as a script, with all it needs."""
    for room, steps in ROOMS.items():
        if room and step in steps:
            return read_files(room) + read_file(step)
    return read_file(step)


@cache
def digest_of(step: str) -> str:
    """What EVALSHA calls it by."""
    return sha1(body_of(step).encode(), usedforsecurity=False).hexdigest()


def library_source() -> str:
    """All steps. What those of one kind share is hidden from the others by a block."""
    parts = [f"#!lua name={LIBRARY}\n"]
    for room, steps in ROOMS.items():
        parts.append(f"do\n{read_files(room)}{''.join(registration(step) for step in steps)}end\n")
    return "".join(parts)


def registration(step: str) -> str:
    flags = "" if step in REFUSED_WHEN_FULL else "'allow-oom'"
    return (
        f"redis.register_function{{function_name = '{LIBRARY}_{step}', flags = {{{flags}}}, "
        f"callback = function(KEYS, ARGV)\n{read_file(step)}\nend}}\n"
    )


def run_step(
    scripts: Scripts, step: str, keys: tuple[str, ...], arguments: tuple[Word, ...], decode: Callable[[Any], T], *,
    is_repeatable: bool = False, kind: str = "stream",
) -> Flow[T]:  # fmt: skip
    """Run one step on the server, loading it first where need be."""

    def call(*argv: Word) -> Request[T]:
        return Request((*argv, len(keys), *keys, *arguments), decode, keys[0], is_repeatable, kind=kind)

    if scripts.uses_functions:
        try:
            return (yield from run_function(call("FCALL", f"{LIBRARY}_{step}"), keys[0]))
        except (AccessDenied, CommandError) as error:
            if not is_refusal(error):
                raise
            scripts.uses_functions = False
    try:
        return (yield from run_script(call("EVALSHA", digest_of(step)), call("EVAL", body_of(step))))
    except (AccessDenied, CommandError) as error:
        if not is_refusal(error):
            raise
        scripts.uses_functions = True  # Both are tried again at the next call: rights come back.
        raise refusal(step) from error


def request_step(
    scripts: Scripts, step: str, keys: tuple[str, ...], arguments: tuple[Word, ...], decode: Callable[[Any], T]
) -> Request[T]:
    """A step that was run already, to be sent along with others. `is_missing` tells when it must be run again."""
    way = ("FCALL", f"{LIBRARY}_{step}") if scripts.uses_functions else ("EVALSHA", digest_of(step))
    return Request((*way, len(keys), *keys, *arguments), decode, keys[0])


def is_missing(error: HeadraceError) -> bool:
    """The server has lost our steps, and did nothing."""
    return isinstance(error, CommandError) and (error.prefix == "NOSCRIPT" or "Function not found" in str(error))


def run_function(call: Request[T], key: str) -> Flow[T]:
    try:
        return (yield from call.run())
    except CommandError as error:
        if not is_missing(error):
            raise
    yield from load_library(key)
    return (yield from call.run())


def load_library(key: str) -> Flow[None]:
    try:
        yield from Request(("FUNCTION", "LOAD", library_source()), str, key, is_repeatable=True).run()
    except CommandError as error:
        if "already exists" not in str(error):  # Another client was faster.
            raise


def run_script(call: Request[T], call_with_text: Request[T]) -> Flow[T]:
    """The server keeps the text of a script it was given once."""
    try:
        return (yield from call.run())
    except CommandError as error:
        if not is_missing(error):
            raise
    return (yield from call_with_text.run())


def is_refusal(error: HeadraceError) -> bool:
    """The server does not let us: an access rule on the command, no such command, or no Lua in this server.

    A key that this user may not touch is another matter: that error goes to the caller.
    """
    text = str(error)
    if isinstance(error, AccessDenied):
        return "permissions to run" in text
    return any(sign in text for sign in NOT_THERE)


def refusal(step: str) -> Unsupported:
    return Unsupported(
        f"this server runs neither functions nor scripts, which headrace needs for '{step}' here. Allow FCALL and "
        "FUNCTION, or EVAL and EVALSHA, for this user; or use a server that has the command."
    )
