"""Runs a broker in this process, takes one message through it, and prints what was entered as JSON (test_walk.py)."""

import json
import os
import signal
import socket
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import headrace
from headrace.server import broker
from headrace.testing.running_broker import free_port

PACKAGE = Path(headrace.__file__).resolve().parent
WAIT = ["XREADGROUP", "GROUP", "billing", "ann", "BLOCK", "0", "STREAMS", "orders", ">"]
CLOCKWORK = {"run_cron", "ring"}  # Functions of server/listener.py that timers call.
TIMEOUT_S = 20


class Recorder:
    """Which of our files were entered in the current act, and the steps from room to room."""

    def __init__(self) -> None:
        self.act = ""
        self.was_fed = threading.Event()  # What was received in this act has been worked off.
        self.acts: dict[str, dict[str, list[str]]] = {}
        self.seen: dict[str, str] = {}

    def begin(self, act: str) -> None:
        self.acts[act] = {"files": [], "steps": []}
        self.was_fed.clear()
        self.act = act

    def end(self) -> None:
        self.act = ""

    def profile(self, frame: FrameType, event: str, _: Any) -> None:
        if not self.act or event not in ("call", "return") or not (file := self.file_of(frame)):
            return
        if event == "return":
            if frame.f_code.co_name == "data_received":
                self.was_fed.set()
            return
        if is_clockwork(frame):
            return
        act = self.acts[self.act]
        remember(act["files"], file)
        caller = frame.f_back
        while caller is not None and not self.file_of(caller):
            caller = caller.f_back
        if caller is not None and (came_from := room_of(self.file_of(caller))) != room_of(file):
            remember(act["steps"], f"{came_from} -> {room_of(file)}")

    def file_of(self, frame: FrameType) -> str:
        """Our file as ARCHITECTURE.md names it, or nothing. Errors, clock and assembly are not part of the walk."""
        name = frame.f_code.co_filename
        if name not in self.seen:
            path = Path(name)
            inside = path.relative_to(PACKAGE).as_posix() if path.is_relative_to(PACKAGE) else ""
            self.seen[name] = inside if "/" in inside and inside != "server/broker.py" else ""
        return self.seen[name]


def is_clockwork(frame: FrameType | None) -> bool:
    """What the broker does by the clock may fall into any act and belongs to none."""
    while frame is not None:
        if frame.f_code.co_name in CLOCKWORK:
            return True
        frame = frame.f_back
    return False


def room_of(file: str) -> str:
    return file.split("/")[0]


def remember(items: list[str], item: str) -> None:
    if item not in items:
        items.append(item)


def main() -> None:
    recorder = Recorder()
    port = free_port()
    failures: list[BaseException] = []

    def drive() -> None:
        try:
            take_one_message_through(recorder, port)
        except BaseException as error:  # Handed to the main thread, which would otherwise serve for ever.
            failures.append(error)
        finally:
            recorder.end()
            os.kill(os.getpid(), signal.SIGTERM)

    def ready(_: str) -> None:
        threading.Thread(target=drive, daemon=True).start()

    sys.setprofile(recorder.profile)  # Of this thread, which will run the broker; the driving thread has none.
    broker.serve(broker.Settings(port=port), ready)
    sys.setprofile(None)
    if failures:
        raise failures[0]
    print(json.dumps(recorder.acts))  # noqa: T201 - the output of this program.


def take_one_message_through(recorder: Recorder, port: int) -> None:
    with (
        socket.create_connection(("127.0.0.1", port)) as producer,
        socket.create_connection(("127.0.0.1", port)) as ann,
    ):
        ask(producer, "XGROUP", "CREATE", "orders", "billing", "$", "MKSTREAM")

        recorder.begin("wait")
        ann.sendall(encode(WAIT))
        assert recorder.was_fed.wait(TIMEOUT_S)
        recorder.end()

        recorder.begin("add")
        entry_id = ask(producer, "XADD", "orders", "*", "item", "tea").split(b"\r\n")[1]
        assert entry_id in ann.recv(4096)
        recorder.end()

        recorder.begin("ack")
        assert ask(ann, "XACK", "orders", "billing", entry_id.decode()) == b":1\r\n"
        recorder.end()


def ask(connection: socket.socket, *words: str) -> bytes:
    connection.sendall(encode(list(words)))
    reply = connection.recv(4096)
    assert not reply.startswith(b"-"), reply
    return reply


def encode(words: list[str]) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word.encode()) for word in words)


main()
