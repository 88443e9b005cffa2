"""An HTTP server inside a program: bound by us, so that a port that is taken shows at once, and ended by us."""

import asyncio
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import uvicorn

from headrace.errors import ConfigError

MOST_CONNECTIONS: Final = 4000  # Beyond that uvicorn answers 503.
KEPT_S: Final = 30  # How long an idle connection is kept.
ENDING_S: Final = 2  # For requests under way at the end.


class Serving:
    """Serves an ASGI app on a port until it is stopped."""

    def __init__(self, app: Any, host: str, port: int, option: str) -> None:
        self.socket = bind(host, port, option)
        self.host = host
        self.port: int = self.socket.getsockname()[1]
        config = uvicorn.Config(
            app, log_config=None, log_level="warning", access_log=False, lifespan="off", server_header=False,
            proxy_headers=False, limit_concurrency=MOST_CONNECTIONS, timeout_keep_alive=KEPT_S,
            timeout_graceful_shutdown=ENDING_S, http="h11", ws="none", loop="none",
        )  # fmt: skip
        self.server = QuietServer(config)
        self.task: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{shown}:{self.port}"

    def start(self) -> None:
        self.task = asyncio.ensure_future(self.server.serve(sockets=[self.socket]))

    async def stop(self) -> None:
        if self.task is not None:
            self.server.should_exit = True
            await self.task
        self.socket.close()


class QuietServer(uvicorn.Server):
    """One that leaves the signals to the program around it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def bind(host: str, port: int, option: str) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=1024)
    except (OSError, UnicodeError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        if isinstance(error, OSError) and error.errno and error.errno > 0:
            reason = os.strerror(error.errno)  # create_server has put the address into the other one, once more.
        raise ConfigError(f"cannot listen on {host}:{port}: {reason}. Give another {option}.") from error
