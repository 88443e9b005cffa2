"""What a worker has done so far, for metrics and for the line it prints at its end."""

from dataclasses import dataclass


@dataclass(slots=True)
class Counters:
    """Of one handler, in one process."""

    read: int = 0  # Messages that were given to this worker, again ones too.
    done: int = 0  # Acknowledged, and confirmed by the server.
    failed: int = 0  # Attempts that ended with an error.
    retried: int = 0
    buried: int = 0
    late: int = 0  # Finished after the lease was lost: the server refused to settle. Or its first answer was lost.
    released: int = 0  # Given back at the end.
    parked: int = 0  # Keys that stand still after the last attempt of a message.
    settlements: int = 0  # Calls that settled messages, joined.
