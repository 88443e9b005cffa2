"""maxmemory: commands that may need more memory are refused above it. Nothing is evicted.

How much is used is an estimate (engine/encodings.py). It is made anew when what was written since the last one could
have passed the limit, and not more often than every ESTIMATE_MS, because it costs a look at many keys.
"""

from typing import Final

from headrace.commands.call import Call, State
from headrace.commands.spec import Command, find_command
from headrace.engine.encodings import estimate_database

ESTIMATE_MS: Final = 50
MEMORY_OF_A_CLIENT: Final = 4000  # Measured: a Call, its parser and its transport.
WORD_BYTES: Final = 300  # More than any word of a command takes in memory, besides its own length.
OUT_OF_MEMORY: Final = "OOM command not allowed when used memory > 'maxmemory'."


def used_memory(state: State) -> int:
    data = sum([estimate_database(database) for database in state.databases])
    return data + len(state.clients) * MEMORY_OF_A_CLIENT + state.channels.size_bytes()


def is_refused(ctx: Call, command: Command, argv: list[bytes]) -> bool:
    """Whether the command, or one that EXEC would run, may need memory that is not there."""
    if not command.denies_oom and not (command.full_name == "exec" and has_hungry(ctx)):
        return False
    state = ctx.state
    size = sum([len(word) + WORD_BYTES for word in argv])
    limit = state.settings.max_memory
    if state.memory_used + size > limit and ctx.now_ms >= state.memory_asked_ms + ESTIMATE_MS:
        state.memory_used = used_memory(state)
        state.memory_asked_ms = ctx.now_ms
    if state.memory_used + size > limit:
        return True
    state.memory_used += size
    return False


def has_hungry(ctx: Call) -> bool:
    """Whether a queued command may need memory."""
    for words in ctx.queue or []:
        found = find_command(words[0])
        if found is not None and found.denies_oom:
            return True
    return False
