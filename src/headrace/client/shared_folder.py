"""`embedded:FOLDER`: one broker for all processes that open the folder.

Whoever gets the folder's lock hosts the broker and calls it directly; the others are attached to its socket. A
transport here has a seat: one of the two, found at the first call. When the host ends, however it ends, those who were
attached look for another seat: one gets the lock and hosts, the rest attach to it.

What was being sent when the host ended is not known to have happened, so it is a ConnectionLost; flow.py repeats what
is harmless to repeat. What was not sent is sent to the next host.
"""

import asyncio
import os
import sys
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from headrace.client.requests import Request
from headrace.client.transport import AsyncListening, AsyncTransport, Listening, Published, Transport
from headrace.client.urls import Target
from headrace.errors import ClientClosed, ConfigError, ConnectionLost, HeadraceError, Unreachable
from headrace.journal.lock import find_holder
from headrace.journal.pointer import Pointer, answers, read_pointer

HOSTING: Final = "headrace.server.hosting"  # Loaded by name, and only by those who host: the client knows no server.
PREPARE_S: Final = 0.5  # How long an attached client lives before it gets ready to host.
POLL_S: Final = 0.01  # How often to look while nobody hosts the folder yet.


class Seat:
    """Where calls go: to this process's own broker, or to the socket of another one."""

    def __init__(self, transport: Any, host: Any, pointer: Pointer | None) -> None:
        self.transport = transport
        self.host = host  # None: attached.
        self.pointer = pointer
        self.is_doubtful = False  # A call has failed: to be looked at before the next one.

    def is_good(self) -> bool:
        """Whether its host is still there."""
        if self.pointer is None:
            return not self.host.is_over
        return answers(self.pointer)

    def release(self) -> None:
        if self.host is not None:
            import_module(HOSTING).release(self.host)


class Seats:
    """What both flavours share: finding a seat, and the end."""

    is_async = False

    def __init__(self, target: Target, timeout_s: float, *, may_host: bool) -> None:
        self.url = target.shown
        self.target = target
        self.timeout_s = timeout_s
        self.may_host = may_host and not is_spark_worker()
        self.path = folder_of(target)  # Now: the program may change its directory.
        self.seat: Seat | None = None
        self.left: list[Seat] = []  # To be closed.
        self.is_closed = False
        self.lock = threading.Lock()  # One looks for a seat, the others wait.
        TRANSPORTS.add(self)

    def look(self) -> Seat | None:
        """The seat, or a new one. None: nobody hosts the folder just now."""
        with self.lock:
            if self.is_closed:
                raise ClientClosed(f"this client of {self.url} is closed. Open another one.")
            seat = self.seat
            if seat is not None and (not seat.is_doubtful or seat.is_good()):
                seat.is_doubtful = False
                return seat
            if seat is not None:
                self.left.append(seat)
                self.seat = None
            self.seat = self.find()
            return self.seat

    def find(self) -> Seat | None:
        if HOSTING in sys.modules and import_module(HOSTING).is_hosted_here(self.path):
            return self.host()
        pointer = read_pointer(self.path)
        if pointer is not None and pointer.is_here and answers(pointer):
            # With our own number it is this process, which just begins to host; or one of another container.
            own = self.host() if pointer.pid == os.getpid() and self.may_host else None
            return own or self.attach(pointer)
        return self.host() if self.may_host else None

    def host(self) -> Seat | None:
        host = import_module(HOSTING).host_folder(self.path, self.target.fsync)
        if host is None:  # Another process has the lock.
            return None
        module = import_module("headrace.server.inprocess")
        kind = module.AsyncTransport if self.is_async else module.Transport
        return Seat(kind(self.url, host.broker), host, None)

    def attach(self, pointer: Pointer) -> Seat:
        from headrace.client.redis_transport import AsyncRedisTransport, RedisTransport

        shown = f"{self.url} (hosted by process {pointer.pid})"
        target = Target(kind="unix", shown=shown, path=pointer.socket, protocol=self.target.protocol)
        kind = AsyncRedisTransport if self.is_async else RedisTransport
        if self.may_host:
            PREPARING.begin()
        return Seat(kind(target, self.timeout_s), None, pointer)

    def closed(self, seat: Seat) -> HeadraceError:
        """What to tell about a call whose seat was closed under it."""
        if self.is_closed:
            return ClientClosed(f"this client of {self.url} was closed during the call.")
        seat.is_doubtful = True
        return ConnectionLost(f"the host of {self.url} ended; whether the call took effect is unknown.")

    def check_time(self, deadline_s: float) -> None:
        """After a look in vain."""
        if time.monotonic() >= deadline_s:
            raise Unreachable(explain(self.path, self.url, self.timeout_s, may_host=self.may_host))

    def start_closing(self) -> list[Seat]:
        """The seats to be closed by the caller, who then releases them."""
        with self.lock:
            self.is_closed = True
            seats = self.left if self.seat is None else [*self.left, self.seat]
            self.seat, self.left = None, []
            return seats

    def begin_anew(self) -> None:
        """In a forked process: it has no seat, and leaves the parent's alone."""
        self.lock = threading.Lock()
        INHERITED.append(self.seat)
        self.seat = None
        self.left = []


class FolderTransport(Seats):
    """For programs that wait."""

    def sit(self) -> Seat:
        """The seat, found when there is none."""
        seat = self.seat
        if seat is not None and not seat.is_doubtful:
            return seat
        deadline_s = time.monotonic() + self.timeout_s
        while True:
            seat = self.look()
            while self.left:
                close_seat(self.left.pop())
            if seat is not None:
                return seat
            self.check_time(deadline_s)
            time.sleep(POLL_S)

    def call(self, request: Request[Any], timeout_s: float) -> Any:
        return self.on_a_seat(lambda transport: transport.call(request, timeout_s), timeout_s)

    def call_many(self, requests: Sequence[Request[Any]], timeout_s: float) -> list[Any]:
        replies: list[Any] = self.on_a_seat(lambda transport: transport.call_many(requests, timeout_s), timeout_s)
        return replies

    def on_a_seat(self, call: Callable[[Any], Any], timeout_s: float) -> Any:
        """Make a call where there is a host; what could not be sent goes to the next one."""
        deadline_s = time.monotonic() + timeout_s
        while True:
            seat = self.sit()
            try:
                return call(seat.transport)
            except Unreachable:  # Nothing was sent.
                seat.is_doubtful = True
                self.check_time(deadline_s)
                time.sleep(POLL_S)
            except ConnectionLost:
                seat.is_doubtful = True
                raise
            except ClientClosed as error:
                raise self.closed(seat) from error

    def subscription(self) -> Listening:
        return FolderSubscription(self)

    def close(self) -> None:
        for seat in self.start_closing():
            close_seat(seat)


def close_seat(seat: Seat) -> None:
    transport: Transport = seat.transport
    transport.close()
    seat.release()


class FolderSubscription:
    """Listens where the transport sits when it subscribes."""

    def __init__(self, transport: FolderTransport) -> None:
        self.transport = transport
        self.seat: Seat | None = None
        self.inner: Any = None

    def subscribe(self, channels: Iterable[bytes] = (), patterns: Iterable[bytes] = ()) -> None:
        if self.inner is None:
            self.seat = self.transport.sit()
            self.inner = self.seat.transport.subscription()
        try:
            self.inner.subscribe(channels, patterns)
        except ConnectionLost:
            self.doubt()
            raise

    def next(self, timeout_s: float) -> Published | None:
        try:
            published: Published | None = self.inner.next(timeout_s)
        except ConnectionLost:
            self.doubt()
            raise
        return published

    def doubt(self) -> None:
        if self.seat is not None:
            self.seat.is_doubtful = True

    def close(self) -> None:
        if self.inner is not None:
            self.inner.close()


class AsyncFolderTransport(Seats):
    """The same for asyncio. The search, which may have to read a whole folder, is done in a thread."""

    is_async = True

    async def sit(self) -> Seat:
        seat = self.seat
        if seat is not None and not seat.is_doubtful:
            return seat
        deadline_s = time.monotonic() + self.timeout_s
        while True:
            seat = await asyncio.to_thread(self.look)
            while self.left:
                await close_async_seat(self.left.pop())
            if seat is not None:
                return seat
            self.check_time(deadline_s)
            await asyncio.sleep(POLL_S)

    async def call(self, request: Request[Any], timeout_s: float) -> Any:
        return await self.on_a_seat(lambda transport: transport.call(request, timeout_s), timeout_s)

    async def call_many(self, requests: Sequence[Request[Any]], timeout_s: float) -> list[Any]:
        replies: list[Any] = await self.on_a_seat(lambda transport: transport.call_many(requests, timeout_s), timeout_s)
        return replies

    async def on_a_seat(self, call: Callable[[Any], Awaitable[Any]], timeout_s: float) -> Any:
        """Make a call where there is a host; what could not be sent goes to the next one."""
        deadline_s = time.monotonic() + timeout_s
        while True:
            seat = await self.sit()
            try:
                return await call(seat.transport)
            except Unreachable:  # Nothing was sent.
                seat.is_doubtful = True
                self.check_time(deadline_s)
                await asyncio.sleep(POLL_S)
            except ConnectionLost:
                seat.is_doubtful = True
                raise
            except ClientClosed as error:
                raise self.closed(seat) from error

    def subscription(self) -> AsyncListening:
        return AsyncFolderSubscription(self)

    async def close(self) -> None:
        for seat in await asyncio.to_thread(self.start_closing):
            await close_async_seat(seat)


async def close_async_seat(seat: Seat) -> None:
    transport: AsyncTransport = seat.transport
    await transport.close()
    await asyncio.to_thread(seat.release)


class AsyncFolderSubscription:
    """As FolderSubscription."""

    def __init__(self, transport: AsyncFolderTransport) -> None:
        self.transport = transport
        self.seat: Seat | None = None
        self.inner: Any = None

    async def subscribe(self, channels: Iterable[bytes] = (), patterns: Iterable[bytes] = ()) -> None:
        if self.inner is None:
            self.seat = await self.transport.sit()
            self.inner = self.seat.transport.subscription()
        try:
            await self.inner.subscribe(channels, patterns)
        except ConnectionLost:
            self.doubt()
            raise

    async def next(self, timeout_s: float) -> Published | None:
        try:
            published: Published | None = await self.inner.next(timeout_s)
        except ConnectionLost:
            self.doubt()
            raise
        return published

    def doubt(self) -> None:
        if self.seat is not None:
            self.seat.is_doubtful = True

    async def close(self) -> None:
        if self.inner is not None:
            await self.inner.close()


def reach(target: Target, timeout_s: float) -> tuple[Target, Callable[[], None]]:
    """The socket of the folder's host, which may be this process, and what lets go of it."""
    transport = FolderTransport(target, timeout_s, may_host=True)
    try:
        seat = transport.sit()
        path: str = seat.host.doorway.socket_path if seat.pointer is None else seat.pointer.socket
    except BaseException:
        transport.close()
        raise
    return Target(kind="unix", shown=target.shown, path=path, protocol=target.protocol), transport.close


def is_spark_worker() -> bool:
    """Spark's workers come and go, several at a time: they never host, whoever opens a client in them."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec is not None and str(spec.name).startswith("pyspark.")


def folder_of(target: Target) -> Path:
    path = Path(target.path)
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:
        raise ConfigError(f"{target.shown} cannot be used as a folder: {error}.") from error


def explain(path: Path, shown: str, timeout_s: float, *, may_host: bool) -> str:
    """Why there is no seat, and what to do."""
    pointer = read_pointer(path)
    if pointer is not None and not pointer.is_here:
        return (
            f"Cannot reach {shown}: process {pointer.pid} on {pointer.machine} hosts the folder. A folder is shared by "
            "the processes of one machine; run headrace serve there, and use its URL here."
        )
    if may_host:
        return (
            f"Cannot reach {shown}: process {find_holder(path)} has the folder and did not say within {timeout_s:g} s "
            "where it listens. It may still be reading its data, or be stopped: try again later, or end it."
        )
    return (
        f"Cannot reach {shown}: no process hosts the folder, and this one may not. Start one with "
        f'"headrace serve --dir {path}", or keep a client of the folder open in a program that may host it.'
    )


# Being ready to host


class Preparing:
    """Loads the broker while another process hosts: when that one ends, everybody waits for the next.

    Not at once: a program that lives for a moment only need not load it. Never while the process forks: the child
    would find a half loaded module that nobody goes on loading.
    """

    def __init__(self) -> None:
        self.timer: threading.Timer | None = None

    def begin(self) -> None:
        if self.timer is None and HOSTING not in sys.modules:
            self.timer = threading.Timer(PREPARE_S, import_module, (HOSTING,))
            self.timer.daemon = True
            self.timer.start()

    def wait(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer.join()
            self.timer = None


PREPARING: Final = Preparing()
os.register_at_fork(before=PREPARING.wait)


# Forked processes

TRANSPORTS: Final[weakref.WeakSet[Seats]] = weakref.WeakSet()
INHERITED: Final[list[Seat | None]] = []  # The parent's: kept, so that nothing of them is closed here.


def begin_all_anew() -> None:
    for transport in list(TRANSPORTS):
        transport.begin_anew()


os.register_at_fork(after_in_child=begin_all_anew)
