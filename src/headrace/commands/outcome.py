"""What a command gives back: its reply, its effect, and whom it wakes.

A plain class with slots: one is made per command, 29 ns compiled where a dataclass takes 389 (bench/broker.py).
"""

from typing import Final, final

from headrace.wire import encoder

CHANGED: Final = b""  # "Something changed", when nobody keeps a journal.


@final
class Outcome:
    __slots__ = ("reply", "record", "wake")

    def __init__(self, reply: bytes, record: bytes | None = None, wake: bytes | None = None) -> None:
        self.reply = reply  # Encoded.
        self.record = record  # Journal records, joined; None when nothing changed.
        self.wake = wake  # The key whose waiting readers should look again.


OK: Final[Outcome] = Outcome(encoder.OK)
ZERO: Final[Outcome] = Outcome(encoder.encode_integer(0))
EMPTY_ARRAY: Final[Outcome] = Outcome(encoder.EMPTY_ARRAY)
NOTHING: Final[Outcome] = Outcome(b"")  # No reply now: the client waits, or asked for none.
