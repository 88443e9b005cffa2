"""What DEBUG may change, and what it needs from whoever owns the clock.

The server fills in the rest when it was told to allow DEBUG; otherwise nothing here ever changes.
"""

from collections.abc import Callable


def no_sleep(seconds: float) -> int:
    raise AssertionError("nobody said how to sleep")


class Debugging:
    __slots__ = ("is_allowed", "expires_actively", "sleep")

    def __init__(self) -> None:
        self.is_allowed = False
        self.expires_actively = True  # Otherwise a key whose time has come stays until somebody asks for it.
        self.sleep: Callable[[float], int] = no_sleep  # Stops the whole broker for a while; the time afterwards.
