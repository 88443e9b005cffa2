"""Hosting a folder from within a program: `embedded:FOLDER`.

The process that has the folder's lock hosts its broker. Clients of the process call it directly; a thread with an event
loop serves other processes, which are attached by a socket, and keeps the journal. All clients of the process share one
host; the last one to close ends it, and so does the end of the process. Then the folder is handed over: everything is
written, the pointer goes, connections close behind their last replies, and the lock is free for somebody else.

A process made by fork hosts nothing. It closes what it inherited: a lock or a connection that it kept would outlive the
host.
"""

import asyncio
import atexit
import contextlib
import logging
import os
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final

from headrace.clock import SystemClock
from headrace.commands.call import State
from headrace.errors import ClientClosed, JournalError
from headrace.journal.disk import RealDisk
from headrace.journal.lock import try_lock
from headrace.server.broker import load, until_closed
from headrace.server.doorway import Doorway
from headrace.server.hosted_broker import HostedBroker
from headrace.server.sockets import open_port

LOG_BYTES: Final = 1024 * 1024  # A longer log is worth a checkpoint: a host must be quick to take over.

log = logging.getLogger("headrace")


class Host:
    """A folder whose lock this process has. It is being served when the constructor returns."""

    def __init__(self, path: Path, disk: RealDisk, lock: int, fsync: str) -> None:
        self.path = path
        self.disk = disk
        self.lock = lock
        self.users = 0
        state = State(SystemClock().now_ms())
        try:
            durability = load(state, disk, fsync, log.info)
            durability.log_bytes = LOG_BYTES
            self.broker = HostedBroker(state, durability, str(path))
        except BaseException:
            self.let_go()
            raise
        self.doorway: Doorway | None = None
        self.ports: list[asyncio.Server] = []
        self.stopping: asyncio.Event | None = None
        self.is_ready: Future[None] = Future()
        self.thread = threading.Thread(target=self.run, name="headrace", daemon=True)
        self.thread.start()
        try:
            self.is_ready.result()
        except BaseException:  # Also Ctrl-C.
            self.close()
            raise

    @property
    def is_over(self) -> bool:
        """Given up by an interrupted call; the folder can be opened again."""
        return self.broker.failure is not None and not isinstance(self.broker.failure, JournalError)

    # The thread

    def run(self) -> None:
        lock = self.broker.selector.lock
        lock.acquire()
        try:
            with asyncio.Runner(loop_factory=self.make_loop) as runner:
                runner.run(self.serve())
        except BaseException as error:  # For those who wait for the start, or for all who call.
            if not self.is_ready.done():
                self.is_ready.set_exception(error)
            elif self.broker.failure is None:
                self.broker.end(JournalError(f"the data of {self.path} cannot be kept: {error!r}"))
        finally:
            lock.release()

    def make_loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.SelectorEventLoop(self.broker.selector)

    async def serve(self) -> None:
        broker = self.broker
        self.stopping = asyncio.Event()
        broker.open()
        broker.keeper.failed.add_done_callback(lambda _: self.stop())
        try:
            self.doorway = await Doorway.open(self.path, broker.listener)
            self.is_ready.set_result(None)
            await self.stopping.wait()
        finally:
            await self.end()

    def stop(self) -> None:
        if self.stopping is not None:
            self.stopping.set()

    async def end(self) -> None:
        """Hand the folder over, or after a failure just let go of it."""
        broker = self.broker
        try:
            if self.doorway is not None:
                self.doorway.close()
            for port in self.ports:
                port.close()
            if broker.failure is None:
                broker.end(ClientClosed(f"the broker of {self.path} was closed by its process."))
            broker.listener.close()
            await until_closed(broker.listener)
            folder = broker.durability.folder
            await broker.keeper.stop(log_bytes=max(LOG_BYTES, folder.manifest.checkpoint_bytes))
        except JournalError as error:  # Those who call are told; at the end of a process nobody calls any more.
            if not self.is_over or isinstance(broker.failure, ClientClosed):
                log.error("%s: %s", self.path, error)
        finally:
            self.let_go()

    def let_go(self) -> None:
        self.disk.close()
        os.close(self.lock)

    # For other threads

    def close(self) -> None:
        """Hand the folder over. It is free when this returns."""
        with contextlib.suppress(RuntimeError):  # The loop is closed already.
            if self.broker.loop is not None:
                self.broker.loop.call_soon_threadsafe(self.stop)
        self.thread.join()

    def open_port(self, address: str, port: int) -> asyncio.Server:
        """Listen on a TCP port as well."""
        opening = open_port(self.broker.listener, address, port)
        server = asyncio.run_coroutine_threadsafe(opening, self.broker.loop).result()
        self.ports.append(server)
        self.broker.state.port = server.sockets[0].getsockname()[1]
        return server

    def close_port(self, server: asyncio.Server) -> None:
        with contextlib.suppress(RuntimeError):  # The loop is closed: the host has failed.
            self.broker.loop.call_soon_threadsafe(self.drop_port, server)

    def drop_port(self, server: asyncio.Server) -> None:
        self.ports.remove(server)
        places = [one.getsockname() for one in server.sockets]
        server.close()
        for connection in list(self.broker.listener.connections.values()):
            if connection.transport.get_extra_info("sockname") in places:
                connection.transport.close()

    def leave_behind(self) -> None:
        """In a forked process: close what the parent must be the only one to hold."""
        os.close(self.lock)
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        servers: list[Any] = [*self.ports, *([self.doorway.server] if self.doorway is not None else [])]
        sockets = [one for server in servers for one in server.sockets]
        sockets += [one.transport.get_extra_info("socket") for one in self.broker.listener.connections.values()]
        for one in sockets:
            with contextlib.suppress(OSError, AttributeError):  # One that was just being closed.
                os.dup2(null, one.fileno(), inheritable=False)  # Its owner may close it once more, later.
        os.close(null)


# Hosts of this process

HOSTS: Final[dict[Path, Host]] = {}
HOSTS_LOCK = threading.Lock()
ENDING = threading.Event()  # The process comes to its end.


def host_folder(path: Path, fsync: str) -> Host | None:
    """This process's host of the folder; None when another process has its lock. Each needs one `release`.

    ConfigError or JournalError when the folder cannot be used. It is opened in a thread, where Ctrl-C cannot leave it
    half open, with a lock that nobody knows of.
    """
    if ENDING.is_set():
        raise ClientClosed(f"{path} is not opened again: this process comes to its end.")
    is_open: Future[None] = Future()
    threading.Thread(target=open_aside, args=(path, fsync, is_open), name="headrace open", daemon=True).start()
    is_open.result()
    with HOSTS_LOCK:
        host = HOSTS.get(path)
        if host is not None:
            if host.broker.failure is not None:
                raise host.broker.told()
            host.users += 1
        return host


def open_aside(path: Path, fsync: str, is_open: "Future[None]") -> None:
    """Have the folder hosted, if no other process has it."""
    try:
        with HOSTS_LOCK:
            host = HOSTS.get(path)
            if host is not None and host.is_over:
                del HOSTS[path]
                host.close()
                host = None
            if host is None:
                host = open_host(path, fsync)
                if host is not None:
                    HOSTS[path] = host
    except BaseException as error:  # For the one who waits.
        is_open.set_exception(error)
    else:
        is_open.set_result(None)


def open_host(path: Path, fsync: str) -> Host | None:
    disk = RealDisk(path)
    try:
        lock = try_lock(path)
    except BaseException:
        disk.close()
        raise
    if lock is None:
        disk.close()
        return None
    return Host(path, disk, lock, fsync)


def is_hosted_here(path: Path) -> bool:
    return path in HOSTS


def release(host: Host) -> None:
    """One user less. The last one hands the folder over."""
    with HOSTS_LOCK:
        host.users -= 1
        if host.users == 0:
            if HOSTS.get(host.path) is host:
                del HOSTS[host.path]
            host.close()


def close_all() -> None:
    with HOSTS_LOCK:
        ENDING.set()
        for host in HOSTS.values():
            host.close()
        HOSTS.clear()


def hold_still() -> None:
    """Before a fork: a folder that is just being opened has a lock that nobody knows of yet."""
    HOSTS_LOCK.acquire()


def go_on() -> None:
    HOSTS_LOCK.release()


def leave_all_behind() -> None:
    """In the child."""
    global HOSTS_LOCK
    HOSTS_LOCK = threading.Lock()
    for host in HOSTS.values():
        host.leave_behind()
    HOSTS.clear()


atexit.register(close_all)
os.register_at_fork(before=hold_still, after_in_parent=go_on, after_in_child=leave_all_behind)
