"""The places a client may be pointed at: ours in process and over TCP, real servers, clusters and sentinels.

    for deployment in deployments():        # nothing is started yet
        with deployment.start() as url:
            client = Client(url)

In `make test` these are ours and the Valkey of the wheel. Every other server that is present (see servers.py), and a
three-primary cluster and a Sentinel trio of each, carry `is_long`.
"""

from __future__ import annotations

import functools
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from headrace import Client
from headrace.testing import running_broker

from .servers import WAIT_TIMEOUT_S, Kind, present_kinds, wait_until
from .wire import ConnectionClosed, ErrorReply, Wire

HOST = "127.0.0.1"
SERVICE = "main"
SLOTS = ((0, 5460), (5461, 10922), (10923, 16383))
FOR_FOLDERS = (
    "test_worker", "test_worker_failures", "test_worker_leases", "test_streams", "test_groups", "test_queues",
    "test_cancellation", "test_channels", "test_ordered_workers",
)  # fmt: skip
KEEPS_NOTHING = ("--save", "", "--appendonly", "no")
KEEPS_EVERYTHING = ("--save", "", "--appendonly", "yes", "--appendfsync", "always")


@dataclass(frozen=True)
class Deployment:
    """Something with a URL that can be started."""

    name: str
    start: Callable[[], AbstractContextManager[str]]
    is_long: bool = False
    is_in_process: bool = False
    only: tuple[str, ...] = ()  # Files of the contract suite that are run on it; none named: all.

    def __str__(self) -> str:
        return self.name


@functools.cache
def deployments() -> tuple[Deployment, ...]:
    found = [
        Deployment("embedded", in_process, is_in_process=True),
        Deployment("headrace", our_broker),
        Deployment("folder", hosted_folder, only=FOR_FOLDERS),
        Deployment("folder-attached", attached_folder, only=FOR_FOLDERS),
    ]
    for kind in real_kinds():
        is_long = not is_from_wheel(kind)
        found.append(Deployment(kind.name, partial(standalone, kind), is_long=is_long))
        found.append(Deployment(f"{kind.name}-unix", partial(socket_file, kind), is_long=is_long))
        found.append(Deployment(f"{kind.name}-sentinel", partial(behind_sentinels, kind), is_long=True))
        found.append(Deployment(f"{kind.name}-cluster", partial(three_primaries, kind), is_long=True))
    return tuple(found)


def real_kinds() -> list[Kind]:
    return [kind for kind in present_kinds() if not kind.ours]


def is_from_wheel(kind: Kind) -> bool:
    return kind.name.startswith("valkey-")


class Process:
    """A real server that can be ended and started again: same port, same folder."""

    def __init__(self, kind: Kind, *options: str, arguments: tuple[str, ...] = ()) -> None:
        self.port = quiet_port()
        self.folder = Path(tempfile.mkdtemp(prefix="hr-"))  # Short: the path of a socket file has 107 bytes at most.
        self.log = self.folder / "server.log"
        self.command = [kind.command[0], *arguments, "--port", str(self.port), "--bind", HOST, *options]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://{HOST}:{self.port}"

    def start(self) -> None:
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, cwd=self.folder
            )
        wait_until(self.answers, f"{self.command[0]} to answer PING", timeout_s=60)

    def answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError(f"{self.command} ended at start:\n{self.log.read_text(errors='replace')}")
        try:
            with Wire(self.port) as wire:
                return wire("PING") == "PONG"
        except (OSError, ConnectionClosed):
            return False

    def command_reply(self, *words: str | int) -> object:
        with Wire(self.port) as wire:
            reply = wire(*words)
        assert not isinstance(reply, ErrorReply), (words, reply)
        return reply

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Tell it to end, or kill it, and wait until it is gone."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(WAIT_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def restart(self, how: signal.Signals) -> None:
        self.end(how)
        self.start()

    def __enter__(self) -> Process:
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        shutil.rmtree(self.folder, ignore_errors=True)


def quiet_port() -> int:
    """A free port that the system gives to nobody on its own, so that it is still free after a restart."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return port


# One server


@contextmanager
def in_process() -> Iterator[str]:
    yield "embedded:"


@contextmanager
def our_broker() -> Iterator[str]:
    with running_broker() as broker:
        yield broker.url


@contextmanager
def hosted_folder() -> Iterator[str]:
    """The test's own process hosts it."""
    with tempfile.TemporaryDirectory(prefix="hr-") as folder, Client(f"embedded:{folder}?fsync=no") as client:
        client.ping()
        yield client.url


HOSTING_PROGRAM = """
import sys
from headrace import Client

with Client(sys.argv[1]) as client:
    client.ping()
    print("ready", flush=True)
    sys.stdin.read()
"""


@contextmanager
def attached_folder() -> Iterator[str]:
    """Another process hosts it."""
    with tempfile.TemporaryDirectory(prefix="hr-") as folder:
        url = f"embedded:{folder}?fsync=no"
        command = [sys.executable, "-c", HOSTING_PROGRAM, url]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as host:
            assert host.stdout is not None
            assert host.stdout.readline() == b"ready\n"
            yield url
            host.communicate(timeout=WAIT_TIMEOUT_S)


@contextmanager
def standalone(kind: Kind) -> Iterator[str]:
    with Process(kind, *KEEPS_NOTHING) as server:
        yield server.url


@contextmanager
def socket_file(kind: Kind) -> Iterator[str]:
    with Process(kind, *KEEPS_NOTHING, "--unixsocket", "socket") as server:
        yield f"unix://{server.folder}/socket"


# Several servers


@contextmanager
def three_primaries(kind: Kind) -> Iterator[str]:
    with ExitStack() as stack:
        nodes = [stack.enter_context(cluster_node(kind)) for _ in SLOTS]
        for node, (first, last) in zip(nodes, SLOTS, strict=True):
            node.command_reply("CLUSTER", "ADDSLOTSRANGE", first, last)
        for epoch, node in enumerate(nodes, 1):
            node.command_reply("CLUSTER", "SET-CONFIG-EPOCH", epoch)
        for node in nodes[1:]:
            nodes[0].command_reply("CLUSTER", "MEET", HOST, node.port, bus_port(node))
        for node in nodes:
            wait_until(partial(is_joined, node), "the cluster to be whole", timeout_s=60)
        yield "redis+cluster://" + ",".join(f"{HOST}:{node.port}" for node in nodes)


def cluster_node(kind: Kind) -> Process:
    return Process(
        kind, *KEEPS_NOTHING, "--cluster-enabled", "yes", "--cluster-port", str(quiet_port()),
        "--cluster-node-timeout", "5000",
    )  # fmt: skip


def bus_port(node: Process) -> int:
    return int(node.command[node.command.index("--cluster-port") + 1])


def is_joined(node: Process) -> bool:
    reply = node.command_reply("CLUSTER", "INFO")
    assert isinstance(reply, bytes)
    facts = dict(line.split(":", 1) for line in reply.decode().splitlines() if ":" in line)
    slots = node.command_reply("CLUSTER", "SLOTS")
    assert isinstance(slots, list)
    return facts["cluster_state"] == "ok" and facts["cluster_known_nodes"] == "3" and len(slots) == 3


class SentinelTrio:
    """One primary, one replica and three sentinels that watch them."""

    def __init__(self, kind: Kind) -> None:
        self.primary = Process(kind, *KEEPS_EVERYTHING)
        replicates = ("--replicaof", f"{HOST} {self.primary.port}", "--repl-diskless-sync-delay", "0")
        self.replica = Process(kind, *KEEPS_EVERYTHING, *replicates)
        self.sentinels = [self.make_sentinel(kind) for _ in range(3)]

    def make_sentinel(self, kind: Kind) -> Process:
        sentinel = Process(kind, "--sentinel", arguments=("sentinel.conf",))
        settings = (
            f"sentinel monitor {SERVICE} {HOST} {self.primary.port} 2\n"
            f"sentinel down-after-milliseconds {SERVICE} 1000\n"
            f"sentinel failover-timeout {SERVICE} 5000\n"
        )
        (sentinel.folder / "sentinel.conf").write_text(settings)
        return sentinel

    @property
    def url(self) -> str:
        hosts = ",".join(f"{HOST}:{sentinel.port}" for sentinel in self.sentinels)
        return f"redis+sentinel://{hosts}/{SERVICE}"

    def is_whole(self) -> bool:
        """All three know each other and the replica, which is up to date."""
        for sentinel in self.sentinels:
            facts = pairs(sentinel.command_reply("SENTINEL", "MASTER", SERVICE))
            if facts[b"num-slaves"] != b"1" or facts[b"num-other-sentinels"] != b"2" or facts[b"flags"] != b"master":
                return False
        reply = self.replica.command_reply("INFO", "replication")
        return isinstance(reply, bytes) and b"master_link_status:up" in reply

    def primary_port(self) -> int:
        [host_and_port] = {
            tuple(self.sentinels[0].command_reply("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE))  # type: ignore[arg-type]
        }
        return int(host_and_port[1])

    def __enter__(self) -> SentinelTrio:
        self._stack = ExitStack()
        with self._stack:
            for process in (self.primary, self.replica, *self.sentinels):
                self._stack.enter_context(process)
            wait_until(self.is_whole, "the sentinels to know each other", timeout_s=60)
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


@contextmanager
def behind_sentinels(kind: Kind) -> Iterator[str]:
    with SentinelTrio(kind) as trio:
        yield trio.url


def pairs(reply: object) -> dict[bytes, bytes]:
    assert isinstance(reply, list)
    return dict(zip(reply[::2], reply[1::2], strict=True))


@contextmanager
def running_fleet() -> Iterator[Callable[[Deployment], str]]:
    """Gives the URL of a deployment, which is started at its first use and stopped with the block."""
    running: dict[str, str] = {}
    with ExitStack() as stack:

        def get(deployment: Deployment) -> str:
            if deployment.name not in running:
                running[deployment.name] = stack.enter_context(deployment.start())
            return running[deployment.name]

        yield get
