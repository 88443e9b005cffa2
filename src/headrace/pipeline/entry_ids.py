"""Entry IDs as numbers: `milliseconds << 64 | sequence`, so that comparing IDs is comparing integers. Pure.

Texts are strict here, `1690275391705-0`, as servers write them; what people may type is read by `client/times.py`.
"""

from typing import Final

from headrace.client.results import LAST_TIME_MS

MAX_PART: Final = 2**64 - 1
MIN_ID: Final = 0
MAX_ID: Final = 2**128 - 1
FIRST_TIME_MS: Final = 31_536_000_000  # The end of 1970: lower numbers are counters, not times.


def id_of(text: str) -> int:
    """The number of an ID that a server wrote. Raises ValueError for anything else."""
    ms_text, dash, seq_text = text.partition("-")
    if not dash or not (ms_text.isdecimal() and seq_text.isdecimal()):
        raise ValueError(f"{text!r} is no entry ID")
    ms, seq = int(ms_text), int(seq_text)
    if ms > MAX_PART or seq > MAX_PART:
        raise ValueError(f"{text!r} is no entry ID")
    return ms << 64 | seq


def text_of(entry_id: int) -> str:
    return f"{entry_id >> 64}-{entry_id & MAX_PART}"


def ms_of(entry_id: int) -> int:
    return entry_id >> 64


def seq_of(entry_id: int) -> int:
    return entry_id & MAX_PART


def is_time(ms: int) -> bool:
    """Whether the first half of an ID is a time. Counters begin low (`0-1`) or lie beyond the year 9999."""
    return FIRST_TIME_MS <= ms <= LAST_TIME_MS
