"""How much may wait for a client that does not read: CONFIG SET client-output-buffer-limit.

    normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60

A class of clients, its hard limit, its soft limit, and for how many seconds the soft limit may be passed. 0: no limit.
A client that passes one is closed. Clients that do not listen to channels are also not read from while much waits for
them, which is why they need no limit by default. There are no replicas; their line is kept and shown.
"""

from typing import Final

NAMES: Final = {"normal": 0, "slave": 1, "replica": 1, "pubsub": 2}
SHOWN: Final = ("normal", "slave", "pubsub")
DEFAULT: Final = "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60"
MAX_SECONDS: Final = 2**31 - 1
UNITS: Final = {
    "b": 1, "": 1, "k": 1000, "kb": 1024, "m": 1000**2, "mb": 1024**2, "g": 1000**3, "gb": 1024**3,
}  # fmt: skip


class OutputLimit:
    """The limit of one class of clients."""

    __slots__ = ("hard_bytes", "soft_bytes", "soft_ms")

    def __init__(self, hard_bytes: int, soft_bytes: int, soft_s: int) -> None:
        self.hard_bytes = hard_bytes
        self.soft_bytes = soft_bytes
        self.soft_ms = soft_s * 1000

    def is_above_soft(self, size_bytes: int) -> bool:
        return 0 < self.soft_bytes <= size_bytes

    def is_passed(self, size_bytes: int, above_soft_ms: int) -> bool:
        """Whether so much is too much, when the soft limit has been passed for so long."""
        if 0 < self.hard_bytes <= size_bytes:
            return True
        return self.is_above_soft(size_bytes) and above_soft_ms > self.soft_ms


def parse_size(value: str) -> int:
    """A number of bytes, as 100, 64kb or 1g; -1 when it is none."""
    digits = value.rstrip("bkmgBKMG")
    unit = UNITS.get(value[len(digits) :].lower(), 0)
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 19 or unit == 0:
        return -1
    return int(digits) * unit


def merge_limits(value: str, current: str) -> str:
    """The limits as shown, once those in the value are set. ValueError with Redis's words."""
    words = value.split()
    if len(words) % 4:
        raise ValueError("Wrong number of arguments in buffer limit configuration.")
    merged = current.split()
    for index in range(0, len(words), 4):
        place = NAMES.get(words[index].lower(), -1)
        if place < 0:
            raise ValueError("Invalid client class specified in buffer limit configuration.")
        hard = parse_size(words[index + 1])
        soft = parse_size(words[index + 2])
        seconds = words[index + 3]
        if hard < 0 or soft < 0 or not seconds.isascii() or not seconds.isdigit() or int(seconds[:20]) > MAX_SECONDS:
            raise ValueError("Error in hard, soft or soft_seconds setting in buffer limit configuration.")
        merged[4 * place : 4 * place + 4] = [SHOWN[place], str(hard), str(soft), str(int(seconds))]
    return " ".join(merged)


def read_limit(shown: str, name: str) -> OutputLimit:
    """The limit of a class, from the line as shown."""
    words = shown.split()
    at = 4 * NAMES[name]
    return OutputLimit(int(words[at + 1]), int(words[at + 2]), int(words[at + 3]))
