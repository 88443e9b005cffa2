"""How often and after which pause a failed message is tried again. Pure.

    Retries(5, first="1s", factor=2, longest="5m")      # 1 s, 2 s, 4 s, 8 s, 16 s; then it is buried

N retries are N + 1 runs. A handler decides for itself by `raise Retry(after="5m")`, which still counts as a run, or
`raise Bury("no such customer")`, which ends it at once.
"""

from dataclasses import dataclass
from typing import Final

from headrace.client.times import Duration, parse_duration_ms
from headrace.errors import ConfigError

MOST_RETRIES: Final = 10_000
JITTER: Final = 0.2  # A pause is up to a fifth shorter, so that what failed together does not come back together.


class Retry(Exception):
    """Raised by a handler: try this message again, after so long where it is given."""

    def __init__(self, reason: str = "the handler asked for another try", *, after: Duration | None = None) -> None:
        super().__init__(reason)
        self.after_ms = None if after is None else parse_duration_ms(after, "after")


class Bury(Exception):
    """Raised by a handler: no further try can help; to the dead letters with it."""

    def __init__(self, reason: str = "the handler gave it up") -> None:
        super().__init__(reason)


@dataclass(frozen=True, slots=True, init=False)
class Retries:
    """How often a failed message is tried again, and after which pauses."""

    count: int
    first_ms: int
    factor: float
    longest_ms: int

    def __init__(self, count: int = 5, *, first: Duration = "1s", factor: float = 2, longest: Duration = "5m") -> None:
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= MOST_RETRIES:
            raise ConfigError(f"retries is {count!r}; give a whole number from 0 to {MOST_RETRIES:,}.")
        if isinstance(factor, bool) or not isinstance(factor, (int, float)) or not 1 <= factor <= 1000:
            raise ConfigError(f"the factor of Retries is {factor!r}; give a number from 1 to 1000.")
        set_field = object.__setattr__
        set_field(self, "count", count)
        set_field(self, "first_ms", parse_duration_ms(first, "first"))
        set_field(self, "factor", float(factor))
        set_field(self, "longest_ms", parse_duration_ms(longest, "longest"))

    def pause_ms(self, attempt: int, chance: float) -> int:
        """How long to wait after a failed attempt (the first is 1). `chance` is from 0 to 1."""
        try:
            pause_ms = min(self.first_ms * self.factor ** (attempt - 1), self.longest_ms)
        except OverflowError:
            pause_ms = self.longest_ms
        return round(pause_ms * (1 - JITTER * chance))


def read_retries(value: "Retries | int | None") -> Retries:
    """What was given as retries=: a number is that many with the usual pauses."""
    if value is None:
        return Retries()
    if isinstance(value, Retries):
        return value
    if isinstance(value, int):
        return Retries(value)
    raise ConfigError(f'retries is {value!r}; give a number, or Retries(5, first="1s", factor=2, longest="5m").')
