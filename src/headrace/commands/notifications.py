"""Keyspace events: kinds, and the letters that CONFIG SET notify-keyspace-events knows them by.

A handler says `ctx.notify(LIST, b"lpush", name)` after its change. That is free while nobody asked for events. What
happens to a key as such (new, overwritten, of another type now, expired) is told by the keyspace itself.
"""

from typing import Final

from headrace.engine.keyspace import EXPIRED, NEW, OVERWRITTEN, TYPE_CHANGED

KEYSPACE: Final = 1  # K: published as __keyspace@0__:key, the message is the event
KEYEVENT: Final = 2  # E: published as __keyevent@0__:event, the message is the key
GENERIC: Final = 4  # g
STRING: Final = 8  # $
LIST: Final = 16  # l
SET: Final = 32  # s
HASH: Final = 64  # h
SORTED_SET: Final = 128  # z
EVICTED: Final = 512  # e
STREAM: Final = 1024  # t
MISSED: Final = 2048  # m: a key that was asked for and is not there
MODULE: Final = 4096  # d: reliable queues

# In the order Redis shows them. A stands for the first ten together.
KINDS: Final = {
    "g": GENERIC, "$": STRING, "l": LIST, "s": SET, "h": HASH, "z": SORTED_SET, "x": EXPIRED, "e": EVICTED,
    "t": STREAM, "d": MODULE, "n": NEW, "o": OVERWRITTEN, "c": TYPE_CHANGED,
}  # fmt: skip
PLACES: Final = {"K": KEYSPACE, "E": KEYEVENT, "m": MISSED}
ALL: Final = GENERIC | STRING | LIST | SET | HASH | SORTED_SET | EXPIRED | EVICTED | STREAM | MODULE


def parse_kinds(letters: str) -> int:
    """ValueError with Redis's words for a letter that stands for nothing."""
    kinds = 0
    for letter in letters:
        if letter == "A":
            kinds |= ALL
        elif letter in KINDS:
            kinds |= KINDS[letter]
        elif letter in PLACES:
            kinds |= PLACES[letter]
        else:
            raise ValueError("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")
    return kinds


def write_kinds(kinds: int) -> str:
    """The letters, all of them, in Redis's order."""
    letters = "".join([letter for letter, kind in KINDS.items() if kinds & kind])
    if kinds & ALL == ALL:
        letters = "A" + letters[len("g$lshzxetd") :]
    return letters + "".join([letter for letter, kind in PLACES.items() if kinds & kind])


def show_kinds(letters: str) -> str:
    """As CONFIG GET shows them. Quirk of Redis, kept: beside A the letters n, o and c are left out, yet they count."""
    return letters.translate(str.maketrans("", "", "noc")) if letters[:1] == "A" else letters
