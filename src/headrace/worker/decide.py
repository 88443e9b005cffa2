"""What becomes of a message whose run failed: tried again, or buried. Pure."""

import concurrent.futures
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final

from headrace.app.retries import Bury, Retries, Retry
from headrace.errors import Misfit

LONGEST_ERROR: Final = 1000  # Letters kept of an error,
LONGEST_TRACEBACK: Final = 16_000  # and of its traceback: the end tells most.
OUR_FOLDERS: Final = (str(Path(__file__).parent), str(Path(concurrent.futures.__file__).parent))
BEFORE_TRACEBACK: Final = "\0"  # In the record of a message that was given up and could not be buried yet.
WORKER_ENDED: Final = "a worker ended while it ran this message"


@dataclass(frozen=True, slots=True)
class TryAgain:
    delay_ms: int
    error: str
    record: str = ""  # What is kept of it until then, when that is more than the error.


@dataclass(frozen=True, slots=True)
class GiveUp:
    error: str
    traceback: str
    is_hopeless: bool = False  # No other try could help, as the handler said or its payload shows.


def decide(error: BaseException, attempt: int, retries: Retries, chance: float) -> TryAgain | GiveUp:
    """N retries are N + 1 runs. `chance`, from 0 to 1, spreads the pauses."""
    is_hopeless = isinstance(error, (Bury, Misfit))
    if is_hopeless or attempt > retries.count:
        return GiveUp(describe(error), "" if is_hopeless else describe_traceback(error), is_hopeless)
    if isinstance(error, Retry) and error.after_ms is not None:
        return TryAgain(error.after_ms, describe(error))
    return TryAgain(retries.pause_ms(attempt, chance), describe(error))


def write_given_up(decision: GiveUp) -> str:
    """As the last error of a message that is to be buried later: what its dead letter is going to tell."""
    return decision.error.replace(BEFORE_TRACEBACK, " ") + BEFORE_TRACEBACK + decision.traceback


def read_given_up(last_error: str) -> GiveUp:
    error, _, trace = last_error.partition(BEFORE_TRACEBACK)
    return GiveUp(error, trace)


def describe(error: BaseException) -> str:
    """In one line: what a person wants to see in a list of dead letters."""
    try:
        text = str(error) if isinstance(error, (Bury, Misfit, Retry)) else f"{type(error).__name__}: {error}"
    except Exception:  # Users' code: an error whose text cannot be made is still an error.
        text = type(error).__name__
    return writable(text.removesuffix(": ")[:LONGEST_ERROR])


def describe_traceback(error: BaseException) -> str:
    """From the handler on: how the worker called it tells nothing."""
    lines = traceback.format_exception(type(error), error, skip_ours(error.__traceback__))
    return writable("".join(lines)[-LONGEST_TRACEBACK:])


def writable(text: str) -> str:
    """Halves of characters, as in names of files, have no place in UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


def skip_ours(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and trace.tb_next is not None and is_ours(trace):
        trace = trace.tb_next
    return trace


def is_ours(trace: TracebackType) -> bool:
    return trace.tb_frame.f_code.co_filename.startswith(OUR_FOLDERS)
