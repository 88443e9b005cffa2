"""What the steps of workers must do, whichever server they are on: one function per promise.

A row talks through `steps("HR.SETTLE", key, …)` alone. On our broker these are commands; on a Redis or Valkey the same
words go to server functions (`StepWords`). Replies are plain: bytes, int, list, None for null, ErrorReply for an error.
Each row has a stream of its own, `key`, with the group `g`; names that hold `{key}` are the row's too.
"""

from . import acknowledging, tidying, trying  # noqa: F401 - importing them fills ROWS.
from .row import ROWS, Row, WorkerSteps, words_to_step

__all__ = ["ROWS", "Row", "WorkerSteps", "words_to_step"]
