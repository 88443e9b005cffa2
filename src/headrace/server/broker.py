"""Assembly: settings -> engine, conversations, listening sockets."""

import asyncio
import contextlib
import errno
import gc
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from time import perf_counter, sleep

import headrace.commands.dispatch
from headrace.clock import SystemClock
from headrace.commands.call import State
from headrace.errors import ConfigError, JournalError, NewerFormat
from headrace.journal.disk import RealDisk, advice_on, cannot_use
from headrace.journal.lock import folder_id, lock_folder
from headrace.journal.memory_disk import MemoryDisk
from headrace.server.conversation import Conversations
from headrace.server.doorway import Doorway
from headrace.server.durability import Durability
from headrace.server.keeper import Keeper
from headrace.server.listener import Listener
from headrace.server.sockets import check_port, open_port, open_socket_file

CLOSING_S = 2.0  # How long a stop waits for the last replies to leave.


@dataclass(frozen=True, slots=True)
class Settings:
    """Where to listen, and what to keep. port None: no TCP, only the socket file."""

    host: str = "127.0.0.1"
    port: int | None = 7379
    unixsocket: str | None = None
    max_clients: int = 10_000
    folder: str | None = None  # Where the data is kept; None: nowhere.
    fsync: str = "always"
    allows_debug: bool = False  # The command DEBUG.


def build_name() -> str:
    """Which build of the hot path is loaded: "compiled" or "plain"."""
    path = headrace.commands.dispatch.__file__ or ""
    return "plain" if path.endswith(".py") else "compiled"


def keep_silent(text: str) -> None:
    """For those who need not know."""


def serve(settings: Settings, ready: Callable[[str], None], say: Callable[[str], None] = keep_silent) -> None:
    """Run a broker until SIGTERM or SIGINT. `ready` is told the address once clients can connect.

    ConfigError when it cannot start, JournalError when the data cannot be read or kept.
    """
    fill_standard_files()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        if settings.folder is None:
            # DEBUG RELOAD and LOADAOF need something to load from.
            runner.run(run(settings, ready, load_nothing if settings.allows_debug else None))
            return
        path = Path(settings.folder)
        with contextlib.ExitStack() as held:
            disk = hold_folder(path, held) if path.exists() else None
            if settings.port is not None:  # Before a folder is made, or much is loaded, for nothing.
                runner.run(check_port(settings.host, settings.port))
            disk = disk or hold_folder(path, held)
            runner.run(run(settings, ready, lambda state: load(state, disk, settings.fsync, say), say))


def hold_folder(path: Path, held: contextlib.ExitStack) -> RealDisk:
    """The folder, for this process alone."""
    disk = RealDisk(path)
    held.callback(disk.close)
    held.callback(os.close, lock_folder(path))
    return disk


def load(state: State, disk: RealDisk, fsync: str, say: Callable[[str], None]) -> Durability:
    """Read the folder back into the empty state."""
    start_s = perf_counter()
    check_writable(disk.path)
    state.settings.assign("appendonly", "yes")
    state.settings.assign("appendfsync", fsync)
    state.settings.assign("dir", str(disk.path.absolute()))
    state.keeping.folder_id = folder_id(disk.path)
    collects = gc.isenabled()
    gc.disable()  # Nothing that is loaded can be garbage.
    try:
        durability = Durability(state, disk)
    except (JournalError, OSError) as error:
        raise JournalError(refusal(disk.path, error)) from error
    finally:
        if collects:
            gc.enable()
    loaded = durability.loaded
    for note in loaded.notes:
        say(note)
    say(
        f"loaded {count(loaded.keys, 'key')} from {disk.path} in {perf_counter() - start_s:.2f} s "
        f"({count(loaded.parts, 'part')} of a checkpoint, {count(loaded.frames, 'frame')} of the journal)"
    )
    return durability


def check_writable(path: Path) -> None:
    """A broker could go on with its journal in a folder that it may only read, and never write a checkpoint."""
    if not os.access(path, os.W_OK | os.X_OK):
        raise cannot_use(path, PermissionError(errno.EACCES, "it cannot be written to"))


def load_nothing(state: State) -> Durability:
    """A journal in memory."""
    return Durability(state, MemoryDisk())


def refusal(path: Path, error: Exception) -> str:
    """Why the data cannot be used, and what to do."""
    if isinstance(error, NewerFormat):
        return f"The data in {path} is from a newer headrace: {error}. Use that version. Nothing was changed."
    advice = advice_on(error) or advice_on(error.__cause__)  # No room, say: a repair would not help.
    advice = advice or f"To save what can be saved: headrace check {quote(str(path))} --repair"
    return f"The data in {path} cannot be used: {error}. Nothing was changed. {advice}"


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def run(
    settings: Settings,
    ready: Callable[[str], None],
    load: Callable[[State], Durability] | None = None,
    say: Callable[[str], None] = keep_silent,
) -> None:
    clock = SystemClock()
    state = State(clock.now_ms())
    state.build = build_name()
    state.settings.assign("maxclients", str(settings.max_clients))
    durability = load(state) if load is not None else None
    listener = Listener(Conversations(state), clock.now_ms)
    if settings.allows_debug:
        allow_debug(listener)
    keeper = Keeper(durability, listener) if durability is not None else None
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    if keeper is not None:
        keeper.failed.add_done_callback(lambda _: stopped.set())
    servers: list[asyncio.AbstractServer] = []
    doorway: Doorway | None = None
    socket_file: tuple[int, int] | None = None  # Ours, once it is there. Never that of another server, nor any file.
    try:
        urls: list[str] = []
        if settings.port is not None:
            opened = await open_port(listener, settings.host, settings.port)
            servers.append(opened)
            state.port = opened.sockets[0].getsockname()[1]
            host = f"[{settings.host}]" if ":" in settings.host else settings.host
            urls.append(f"redis://{host}:{state.port}")
        if settings.unixsocket is not None:
            servers.append(await open_socket_file(listener, settings.unixsocket))
            socket_file = identify(settings.unixsocket)
            urls.append(f"unix://{settings.unixsocket}")
        if settings.folder is not None:
            doorway = await open_doorway(settings.folder, listener, say)
        settle_memory()
        ready(" and ".join(urls))
        await stopped.wait()
    finally:
        if doorway is not None:
            doorway.close()
        for server in servers:
            server.close()
        listener.close()
        await until_closed(listener)
        if keeper is not None:
            await keeper.stop()
        if settings.unixsocket is not None and socket_file is not None:
            with contextlib.suppress(OSError):
                if identify(settings.unixsocket) == socket_file:
                    os.unlink(settings.unixsocket)


async def open_doorway(folder: str, listener: Listener, say: Callable[[str], None]) -> Doorway | None:
    """For programs that open the folder as embedded:FOLDER. Others come by port anyway."""
    try:
        return await Doorway.open(Path(folder), listener)
    except ConfigError as error:
        say(f"programs that open embedded:{folder} cannot attach: {error}")
        return None


def allow_debug(listener: Listener) -> None:
    state = listener.state
    state.settings.assign("enable-debug-command", "yes")
    state.debugging.is_allowed = True

    def stop_for(seconds: float) -> int:
        sleep(seconds)
        return listener.start_turn()

    state.debugging.sleep = stop_for


def identify(path: str) -> tuple[int, int]:
    """Which file this is, whatever its name."""
    found = os.stat(path)
    return found.st_dev, found.st_ino


def fill_standard_files() -> None:
    """Descriptors 0 to 2 that are closed become /dev/null: a socket there would get what is printed, and libuv aborts
    when it has to close one.
    """
    descriptor = os.open(os.devnull, os.O_RDWR)
    while descriptor <= 2:
        descriptor = os.open(os.devnull, os.O_RDWR)
    os.close(descriptor)


def settle_memory() -> None:
    """What is loaded now stays: the collector need not look at it again, nor run every few hundred objects."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


async def until_closed(listener: Listener) -> None:
    """Give the last replies a moment to leave."""
    deadline = asyncio.get_running_loop().time() + CLOSING_S
    while listener.connections and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.01)
