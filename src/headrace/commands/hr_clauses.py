"""Clauses of a settling step (HR.SETTLE, LANE.SETTLE): what becomes of entries, and what rides along.

EFFECT and ADD behind a clause that acknowledges happen together with it.
"""

from collections.abc import Sequence
from typing import Final

from headrace.commands.call import Call
from headrace.commands.hr_effects import OWN_KEY, Foresight, parse_effect
from headrace.commands.numbers import parse_integer
from headrace.commands.refusals import SYNTAX
from headrace.errors import CommandError

MOST_WORDS: Final = 7000  # Of an entry that is added: Lua's stack takes no more, and all servers do the same.
BAD_FIELDS: Final = f"ERR FIELDS must be followed by an even number, 2 to {MOST_WORDS}, and by as many words"


NONE: Final[list[bytes]] = []  # Shared by most clauses, and never changed.
NO_RIDERS: Final[list[list[bytes]]] = []


class Clause:
    """One clause: what is to be done with which IDs, and what goes with it."""

    __slots__ = ("verb", "ids", "names", "delay_ms", "attempt", "error", "traceback", "adds", "effects")

    def __init__(self, verb: bytes, ids: list[bytes]) -> None:
        self.verb = verb
        self.ids = ids  # As sent.
        self.names: list[bytes] = NONE  # Those of them that are this consumer's.
        self.delay_ms = 0
        self.attempt = 0
        self.error = b""
        self.traceback = b""
        self.adds: list[list[bytes]] = NO_RIDERS  # Target stream, then fields and values.
        self.effects: list[list[bytes]] = NO_RIDERS


def parse_rider(argv: list[bytes], index: int, clause: Clause) -> int:
    """Read an ADD or an EFFECT that goes with a clause; the index behind it."""
    verb = argv[index].upper()
    left = len(argv) - index - 1
    if verb == b"ADD" and left >= 3 and argv[index + 2].upper() == b"FIELDS":
        count = parse_integer(argv[index + 3], BAD_FIELDS)
        if not 2 <= count <= min(left - 3, MOST_WORDS) or count % 2:
            raise CommandError(BAD_FIELDS)
        if not clause.adds:
            clause.adds = []
        clause.adds.append([argv[index + 1], *argv[index + 4 : index + 4 + count]])
        return index + 4 + count
    if verb == b"EFFECT" and left >= 1:
        effect = parse_effect(argv, index + 1)
        if not clause.effects:
            clause.effects = []
        clause.effects.append(effect)
        return index + 2 + len(effect)
    raise CommandError(SYNTAX)


def check_effects(ctx: Call, own: set[bytes], own_prefix: bytes, clauses: Sequence[Clause]) -> None:
    """Of the clauses that happen: behind this none of their effects can fail.

    They may not touch what the step itself uses: the keys `own`, those that begin with the prefix, those it adds to.
    """
    if not any([clause.effects for clause in clauses]):
        return
    used = set(own)
    for clause in clauses:
        used.update([add[0] for add in clause.adds])
    foresight = Foresight(ctx)
    for clause in clauses:
        if clause.names:
            for effect in clause.effects:
                if effect[1] in used or (own_prefix and effect[1].startswith(own_prefix)):
                    raise CommandError(OWN_KEY)
                foresight.check(effect)
