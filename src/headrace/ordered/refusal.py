"""What the coordinator answers when it does not do what it was asked: a status, a sentence, and what to do."""

from headrace.errors import (
    AccessDenied,
    CommandError,
    ConfigError,
    ConnectionLost,
    Fenced,
    HeadraceError,
    NoLanes,
    NotFound,
    Unsupported,
)


class Refusal(HeadraceError):
    """A request that is refused; nothing was changed."""

    def __init__(self, status: int, error: str, what_to_do: str) -> None:
        super().__init__(f"{error} {what_to_do}")
        self.status = status
        self.error = error
        self.what_to_do = what_to_do


STATUS: tuple[tuple[type[HeadraceError], int, str], ...] = (
    (Fenced, 409, "Register again, then take what is delegated to you."),
    (NotFound, 503, "The stream or its group was removed; the coordinator makes it again. Repeat the request."),
    (NoLanes, 503, "The settings of the group were removed; the coordinator writes them again. Repeat the request."),
    (ConfigError, 400, "Change the request."),
    (ConnectionLost, 503, "The coordinator reaches its broker again by itself. Repeat the request later."),
    (AccessDenied, 503, "Let the coordinator's user run this command on the broker."),
    (Unsupported, 501, "Use a broker that can: headrace serve, Redis 7.0 or later, Valkey."),
    (CommandError, 503, "See the broker's own words; repeat the request when that is mended."),
)


def refusal_of(error: HeadraceError) -> Refusal:
    if isinstance(error, Refusal):
        return error
    for kind, status, what_to_do in STATUS:
        if isinstance(error, kind):
            return Refusal(status, str(error), what_to_do)
    return Refusal(500, str(error), "See the log of the coordinator.")
