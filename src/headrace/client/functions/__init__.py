"""Steps that a plain Redis or Valkey lacks, run inside the server so that they are one step there too.

Each `NAME.lua` beside this file is the body of one step. It is loaded as part of a library of Redis Functions (named by
version, so that two versions live side by side), or run by EVALSHA where FUNCTION is refused. A server that has lost
the library, by a flush, a restart or a failover, gets it again at the next call. Where scripts are refused too, the
features that need a step say so; the others go on.
"""

from collections.abc import Callable
from hashlib import sha1
from importlib.resources import files
from typing import Any, Final, TypeVar

from headrace.client.flow import Flow
from headrace.client.requests import Request, Word
from headrace.errors import AccessDenied, CommandError, HeadraceError, Unsupported

T = TypeVar("T")

VERSION: Final = 1  # Raised whenever a step changes what it does or how it is called.
LIBRARY: Final = f"headrace_{VERSION}"
STEPS: Final = ("ackdel", "add", "claim", "trim")


class Scripts:
    """How this server takes our steps, found out at the first one."""

    def __init__(self) -> None:
        self.uses_functions = True
        self.is_refused = False


def body_of(step: str) -> str:
    return files(__package__).joinpath(f"{step}.lua").read_text("utf-8")


def library_source() -> str:
    parts = [f"#!lua name={LIBRARY}\n"]
    for step in STEPS:
        parts.append(f"redis.register_function('{LIBRARY}_{step}', function(KEYS, ARGV)\n{body_of(step)}\nend)\n")
    return "".join(parts)


def run_step(
    scripts: Scripts, step: str, keys: tuple[str, ...], arguments: tuple[Word, ...], decode: Callable[[Any], T]
) -> Flow[T]:
    """Run one step on the server, loading it first where need be."""
    if scripts.is_refused:
        raise refusal(step)
    if scripts.uses_functions:
        try:
            return (yield from run_function(step, keys, arguments, decode))
        except (AccessDenied, CommandError) as error:
            if not is_refusal(error):
                raise
            scripts.uses_functions = False
    try:
        return (yield from run_script(step, keys, arguments, decode))
    except (AccessDenied, CommandError) as error:
        if not is_refusal(error):
            raise
        scripts.is_refused = True
        raise refusal(step) from error


def run_function(step: str, keys: tuple[str, ...], arguments: tuple[Word, ...], decode: Callable[[Any], T]) -> Flow[T]:
    request = Request(("FCALL", f"{LIBRARY}_{step}", len(keys), *keys, *arguments), decode, keys[0])
    try:
        return (yield from request.run())
    except CommandError as error:
        if "Function not found" not in str(error):
            raise
    yield from load_library(keys[0])
    return (yield from request.run())


def load_library(key: str) -> Flow[None]:
    try:
        yield from Request(("FUNCTION", "LOAD", library_source()), str, key).run()
    except CommandError as error:
        if "already exists" not in str(error):  # Another client was faster.
            raise


def run_script(step: str, keys: tuple[str, ...], arguments: tuple[Word, ...], decode: Callable[[Any], T]) -> Flow[T]:
    body = body_of(step)
    digest = sha1(body.encode(), usedforsecurity=False).hexdigest()
    rest = (len(keys), *keys, *arguments)
    try:
        return (yield from Request(("EVALSHA", digest, *rest), decode, keys[0]).run())
    except CommandError as error:
        if not str(error).startswith("NOSCRIPT"):
            raise
    return (yield from Request(("EVAL", body, *rest), decode, keys[0]).run())


def is_refusal(error: HeadraceError) -> bool:
    """The server does not let us: an access rule, or the command does not exist there."""
    return isinstance(error, AccessDenied) or "unknown command" in str(error)


def refusal(step: str) -> Unsupported:
    return Unsupported(
        f"this server runs neither functions nor scripts, which headrace needs for '{step}' here. Allow FCALL and "
        "FUNCTION, or EVAL and EVALSHA, for this user; or use a server that has the command."
    )
