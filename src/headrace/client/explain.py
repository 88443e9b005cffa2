"""A server's refusal in words that name the stream, the group, the queue or the list.

Servers say "no such key" or "wrong kind of value" and leave it to the reader which one. The request knows. The server's
first word is left out of the sentence and kept as `error.prefix`.
"""

from typing import Any, Final

from headrace.client.requests import Request
from headrace.client.results import decode_text
from headrace.errors import CommandError, HeadraceError, NotFound, WrongType

# Where the name of the group stands in a command; what is not here has none.
GROUP_AT: Final = {
    "XREADGROUP": 2, "XPENDING": 2, "XCLAIM": 2, "XAUTOCLAIM": 2, "XACK": 2, "XACKDEL": 2, "XNACK": 2,
    "XGROUP": 3, "XINFO": 3, "HR.DUE": 2, "HR.START": 2, "HR.EXTEND": 2, "HR.RELEASE": 2, "HR.SETTLE": 2, "HR.SWEEP": 2,
    "LANE.CONFIG": 2, "LANE.REGISTER": 2, "LANE.TAKE": 2, "LANE.SETTLE": 2, "LANE.EXTEND": 2, "LANE.LEAVE": 2,
    "LANE.PARK": 2, "LANE.RESUME": 2, "LANE.REBUILD": 2, "LANE.INFO": 2,
}  # fmt: skip
STEPS: Final = ("FCALL", "EVALSHA", "EVAL")  # Here it stands behind the keys, whose number is the third word.


def explain(error: HeadraceError, request: Request[Any]) -> HeadraceError:
    """The same error, naming what was asked for; errors of other kinds as they are."""
    group = find_group(request)
    explained: HeadraceError
    if request.key is None:
        return error
    if request.kind == "queue" and type(error) is CommandError:
        explained = refused_by_queue(request.key, error)
    elif type(error) is WrongType:
        explained = not_of_kind(request.kind, request.key, "something else")
    elif type(error) is not NotFound:
        return error
    elif request.kind == "queue":
        explained = no_queue(request.key)
    elif error.prefix == "NOGROUP" and group is not None:
        explained = no_group(request.key, group)
    else:
        explained = no_stream(request.key)
    if explained is not error:
        explained.__cause__ = error
    return explained


def no_stream(stream: str) -> NotFound:
    words = f"there is no stream {stream!r}. Add an entry to it, or see Client.streams() for those there are."
    return NotFound(words, "ERR", stream)


def no_queue(queue: str) -> NotFound:
    return NotFound(f"there is no queue {queue!r}. Push to it, or see Client.queues() for those there are.", "EMPTYKEY")


def refused_by_queue(queue: str, error: CommandError) -> CommandError:
    """A pause is told with its end; the server calls every ID a stream's."""
    if error.prefix == "PAUSED":
        return CommandError(
            f"queue {queue!r} is paused: it takes no new elements. End that with Queue.resume().", "PAUSED", queue
        )
    if "Invalid stream ID" in str(error):
        return CommandError("one of the IDs is not that of an element; they look like 1690275391705-1.", "ERR")
    return error


def no_group(stream: str, group: str) -> NotFound:
    """Servers say the same when it is the stream that is missing."""
    return NotFound(
        f"stream {stream!r} has no group {group!r}. Create it, or see Stream.groups() for those there are.",
        "NOGROUP", stream, group,
    )  # fmt: skip


def not_a_stream(key: str, kind: str) -> WrongType:
    return not_of_kind("stream", key, kind)


def not_of_kind(wanted: str, key: str, kind: str) -> WrongType:
    return WrongType(f"{key!r} is not a {wanted} but {kind}. Check the name.", "WRONGTYPE", key, wanted)


def find_group(request: Request[Any]) -> str | None:
    place = GROUP_AT.get(str(request.argv[0]))
    if request.argv[0] in STEPS:
        place = 3 + int(request.argv[2])
    if place is None or place >= len(request.argv):
        return None
    name = request.argv[place]
    return decode_text(name) if isinstance(name, bytes) else str(name)
