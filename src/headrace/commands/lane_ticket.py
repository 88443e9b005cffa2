"""A ticket: what is the matter with one key. Text in the hash `tickets`, so that people can read it.

    ready A [error…]                          somebody may take it
    held A fence until-ms given consumer…     somebody has it; `given` IDs at the head of its lane are with them
    waiting A until-ms [error…]               an attempt failed; not before its time
    parked A since-ms [error…]                not before somebody resumes it

A is how many attempts were begun on the message at the head. The hash is an ordinary one: whatever does not read like
this counts as `ready 0`, and its next message puts the key into the queue.
"""

from typing import Final, final

READY: Final = b"ready"
HELD: Final = b"held"
WAITING: Final = b"waiting"
PARKED: Final = b"parked"
GONE: Final = b""  # A key without messages has no ticket.
LONGEST_NUMBER: Final = 16  # Digits of 2^53, which Lua's doubles hold exactly.


@final
class Ticket:
    __slots__ = (
        "state",
        "attempts",
        "fence",
        "time_ms",
        "given",
        "consumer",
        "error",
        "is_damaged",
        "keeps_time",
        "text",
    )

    def __init__(self, state: bytes, attempts: int, time_ms: int = 0, error: bytes = b"") -> None:
        self.state = state
        self.attempts = attempts
        self.time_ms = time_ms  # The end of a lease or a pause; of a parked key when that was.
        self.error = error
        self.fence = 0  # These three of a held key only.
        self.given = 0
        self.consumer = b""
        self.is_damaged = False  # Written by somebody else: the key may not be in the queue.
        self.keeps_time = False  # Its time in `until` stays what it is.
        self.text = b""  # What `encode` gives, where it is known already.

    def encode(self) -> bytes:
        if self.text:
            return self.text
        if self.state == HELD:
            return b"held %d %d %d %d %b" % (self.attempts, self.fence, self.time_ms, self.given, self.consumer)
        head = b"ready %d" % self.attempts
        if self.state != READY:
            head = b"%b %d %d" % (self.state, self.attempts, self.time_ms)
        return head + b" " + self.error if self.error else head


def read_ticket(text: bytes) -> Ticket:
    state, _, rest = text.partition(b" ")
    if state == HELD:
        words = rest.split(b" ", 4)
        if len(words) == 5 and words[3] != b"0" and are_numbers(words, 4):
            ticket = Ticket(HELD, int(words[0]), int(words[2]))
            ticket.fence = int(words[1])
            ticket.given = int(words[3])
            ticket.consumer = words[4]
            return ticket
    elif state == READY:
        words = rest.split(b" ", 1)
        if are_numbers(words, 1):
            return Ticket(READY, int(words[0]), 0, words[1] if len(words) == 2 else b"")
    elif state in (WAITING, PARKED):
        words = rest.split(b" ", 2)
        if len(words) >= 2 and are_numbers(words, 2):
            return Ticket(state, int(words[0]), int(words[1]), words[2] if len(words) == 3 else b"")
    damaged = Ticket(READY, 0)
    damaged.is_damaged = True
    return damaged


def read_number(digits: bytes) -> int:
    """0 for what is none."""
    return int(digits) if digits.isdigit() and len(digits) <= LONGEST_NUMBER else 0


def are_numbers(words: list[bytes], count: int) -> bool:
    """Whether the first words are whole numbers, and no longer ones than they can be."""
    numbers = words[:count]
    joined = b"".join(numbers)
    return joined.isdigit() and len(joined) <= count * LONGEST_NUMBER and b"" not in numbers
