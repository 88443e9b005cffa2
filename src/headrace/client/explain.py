"""A server's refusal in words that name the stream and the group.

Servers say "no such key" or "wrong kind of value" and leave it to the reader which one. The request knows. The first
word stays as the server sent it, so `error.prefix` goes on working.
"""

from typing import Any, Final

from headrace.client.requests import Request
from headrace.client.results import decode_text
from headrace.errors import HeadraceError, NotFound, WrongType

CHECK_BOTH: Final = "Create the group, or check both names."

# Where the name of the group stands in a command; what is not here has none.
GROUP_AT: Final = {
    "XREADGROUP": 2, "XPENDING": 2, "XCLAIM": 2, "XAUTOCLAIM": 2, "XACK": 2, "XACKDEL": 2, "XNACK": 2,
    "XGROUP": 3, "XINFO": 3, "FCALL": 4, "EVALSHA": 4, "EVAL": 4,
}  # fmt: skip


def explain(error: HeadraceError, request: Request[Any]) -> HeadraceError:
    """The same error, naming what was asked for; errors of other kinds as they are."""
    group = find_group(request)
    explained: HeadraceError
    if request.key is None:
        return error
    if type(error) is WrongType:
        explained = WrongType(f"WRONGTYPE {request.key!r} is not a stream but holds something else. Check the name.")
    elif type(error) is not NotFound:
        return error
    elif error.prefix == "NOGROUP" and group is not None:
        explained = NotFound(f"NOGROUP stream {request.key!r} has no group {group!r}, or does not exist. {CHECK_BOTH}")
    else:
        explained = NotFound(f"ERR there is no stream {request.key!r}. Add an entry to it, or check the name.")
    explained.__cause__ = error
    return explained


def find_group(request: Request[Any]) -> str | None:
    place = GROUP_AT.get(str(request.argv[0]))
    if place is None or place >= len(request.argv):
        return None
    name = request.argv[place]
    return decode_text(name) if isinstance(name, bytes) else str(name)
