"""Durations and places in a stream, as people write them.

A duration is "250ms", "5s", "10m", "2h", "7d", a number of seconds, or a timedelta. A place is an entry ID, "now",
"beginning", a time back ("-5m"), or a datetime.
"""

import re
from datetime import datetime, timedelta
from typing import Final

from headrace.errors import ConfigError

Duration = str | int | float | timedelta
Place = str | datetime

UNIT_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")
ENTRY_ID: Final = re.compile(r"\d{1,20}(-\d{1,20})?")


def parse_duration_ms(value: Duration, what: str = "duration") -> int:
    """A duration in milliseconds. Never negative."""
    if isinstance(value, timedelta):
        milliseconds = value.total_seconds() * 1000
    elif isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ConfigError(f"{what} is {value!r}; write it like 250ms, 5s, 10m, 2h or 7d.")
    elif isinstance(value, (int, float)):
        milliseconds = float(value) * 1000
    else:
        match = DURATION.fullmatch(value.strip())
        if match is None:
            raise ConfigError(f"{what} is {value!r}; write it like 250ms, 5s, 10m, 2h or 7d.")
        milliseconds = float(match[1]) * UNIT_MS[match[2]]
    if not 0 <= milliseconds <= 2**53:
        raise ConfigError(f"{what} is {value!r}; it must be between 0 and about 285,000 years.")
    return round(milliseconds)


def parse_place(value: Place, now_ms: int, what: str = "place") -> str:
    """A place as an ID: "now" becomes $, "beginning" 0-0, times the first ID of their millisecond."""
    if isinstance(value, datetime):
        return f"{max(0, round(value.timestamp() * 1000))}-0"
    text = value.strip() if isinstance(value, str) else ""
    if text == "now":
        return "$"
    if text == "beginning":
        return "0-0"
    if text.startswith("-") and len(text) > 1:
        return f"{max(0, now_ms - parse_duration_ms(text[1:], what))}-0"
    if ENTRY_ID.fullmatch(text):
        return text
    raise ConfigError(
        f"{what} is {value!r}; write an entry ID like 1690275391705-0, 'now', 'beginning', or a time back like -5m."
    )
