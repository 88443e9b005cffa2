"""Where other processes attach to the broker of a folder: a socket of its own, and the pointer to it in the folder."""

import asyncio
from pathlib import Path
from typing import Self

from headrace.journal.pointer import (
    make_socket_path,
    new_pointer,
    remove_pointer,
    remove_socket,
    write_pointer,
)
from headrace.server.listener import Listener
from headrace.server.sockets import open_socket_file


class Doorway:
    def __init__(self, folder: Path, socket_path: str, server: asyncio.AbstractServer) -> None:
        self.folder = folder
        self.socket_path = socket_path
        self.server = server

    @classmethod
    async def open(cls, folder: Path, listener: Listener) -> Self:
        """To be called by the process that has the lock. ConfigError when there is no place for a socket."""
        socket_path = make_socket_path()
        server = await open_socket_file(listener, socket_path)
        doorway = cls(folder, socket_path, server)
        try:
            write_pointer(folder, new_pointer(socket_path))
        except BaseException:
            doorway.close()
            raise
        return doorway

    def close(self) -> None:
        """Nobody comes in any more. Those who are inside stay."""
        remove_pointer(self.folder)
        remove_socket(self.socket_path)
        self.server.close()
