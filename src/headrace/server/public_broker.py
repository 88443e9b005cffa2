"""Broker: a folder's broker in this program, with a TCP port for any client of the Redis protocol.

    with Broker("./data", port=7379) as broker:
        print(broker.url)

Clients of this program need no port: `Client("embedded:./data")` calls the same broker directly. It lives until the
last of them is closed; the port, until the Broker is.
"""

from pathlib import Path
from types import TracebackType
from typing import Self

from headrace.errors import ConfigError
from headrace.journal.lock import find_holder
from headrace.server.hosting import Host, host_folder, release

FSYNC = ("always", "everysec", "no")
HIGHEST_PORT = 65535


class Broker:
    """Serves from its making until it is closed. ConfigError when the folder or the port is taken."""

    def __init__(self, folder: str | Path, *, port: int = 7379, host: str = "127.0.0.1", fsync: str = "always") -> None:
        """port 0: a free one, see `port`. fsync: always, everysec or no."""
        if not str(folder):
            raise ConfigError("a Broker needs the name of a folder.")
        if fsync not in FSYNC:
            raise ConfigError(f"fsync {fsync!r} is none of {', '.join(FSYNC)}.")
        if not 0 <= port <= HIGHEST_PORT:
            raise ConfigError(f"port {port} is none of 0 (any that is free) to {HIGHEST_PORT}.")
        try:
            path = Path(folder).expanduser().resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise ConfigError(f"{str(folder)!r} cannot be used as a folder: {error}.") from error
        found = host_folder(path, fsync)
        if found is None:
            raise ConfigError(
                f"The folder {path} is in use by process {find_holder(path)}. Stop it, choose another folder, or use "
                f"embedded:{path} to attach to it."
            )
        self._host: Host | None = found
        self._address = f"[{host}]" if ":" in host else host
        try:
            self._server = found.open_port(host, port)
        except BaseException:
            release(found)
            raise
        self.port: int = self._server.sockets[0].getsockname()[1]

    def __repr__(self) -> str:
        return f"Broker({self.url!r})"

    @property
    def url(self) -> str:
        """For clients in other processes."""
        return f"headrace://{self._address}:{self.port}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Harmless to repeat."""
        host, self._host = self._host, None
        if host is not None:
            host.close_port(self._server)
            release(host)
