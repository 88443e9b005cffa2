"""Listening: a TCP port, a socket file."""

import asyncio
import errno
import os
import socket
import stat

from headrace.errors import ConfigError
from headrace.server.listener import Listener

BACKLOG = 511  # Connections the system may keep waiting for us, as Redis.


async def open_port(listener: Listener, host: str, port: int) -> asyncio.Server:
    loop = asyncio.get_running_loop()
    try:
        return await loop.create_server(listener.accept, host, port, backlog=BACKLOG)
    except OSError as error:
        raise port_error(host, port, error) from error


async def check_port(host: str, port: int) -> None:
    """ConfigError when somebody listens there, or nobody can."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.create_server(asyncio.Protocol, host, port, start_serving=False)
    except OSError as error:
        raise port_error(host, port, error) from error
    found.close()


def port_error(host: str, port: int, error: OSError) -> ConfigError:
    if error.errno == errno.EADDRINUSE:
        return ConfigError(f"Port {port} on {host} is already in use. Stop the other server, or choose another port.")
    return ConfigError(f"Cannot listen on {host}:{port}: {error.strerror or error}.")


async def open_socket_file(listener: Listener, path: str) -> asyncio.AbstractServer:
    """A socket file left behind by a dead server is replaced; a live one is not."""
    if not path:
        raise ConfigError("The path of the Unix socket is empty. Name a file with --unixsocket.")
    if os.path.exists(path):
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            raise ConfigError(f"{path} exists and is not a socket. Choose another path with --unixsocket.")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            try:
                probe.connect(path)
            except OSError:
                os.unlink(path)
            else:
                raise ConfigError(f"Another server listens on {path}. Stop it, or choose another path.")
    loop = asyncio.get_running_loop()
    try:
        return await loop.create_unix_server(listener.accept, path, backlog=BACKLOG)
    except OSError as error:
        raise ConfigError(f"Cannot listen on {path}: {error.strerror or error}.") from error
