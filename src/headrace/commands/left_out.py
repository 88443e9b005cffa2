"""Commands of Redis that are left out on purpose: they are unknown here, and the answer says why."""

from typing import Final

LUA: Final = frozenset((b"EVAL_RO", b"EVALSHA_RO", b"FCALL", b"FCALL_RO", b"FUNCTION"))
NO_LUA: Final = (
    "headrace runs no Lua, because scripting is where most of Redis's security holes come from; use a command that does"
    " the step at once (SET IFEQ, DELEX, LMOVE, HR.*), MULTI with WATCH, or a real Redis or Valkey"
)


def reason_for(name: bytes) -> str:
    """Why a command is left out; empty when nothing is known about it."""
    return NO_LUA if name.upper() in LUA else ""
