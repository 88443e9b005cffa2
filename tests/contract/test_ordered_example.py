"""The example of curl and redis-cli alone, with coordinators and consumers that are killed. Rows 226, 246, 305.

Each runs with the real curl and redis-cli where both are installed, and always with stand-ins in Python that understand
what the example uses of them: a clean machine may have neither.
"""

import os
import shutil
import signal
import subprocess
import sys

import pytest

from support.command_line import start_headrace
from support.servers import free_port, present_kinds, wait_until

COUNT = 28
HAS_BOTH = bool(shutil.which("curl") and shutil.which("redis-cli"))
STAND_INS = {
    "curl": """import socket, sys
words = sys.argv[1:]
url = next(word for word in words if word.startswith("http"))
host, _, path = url.removeprefix("http://").partition("/")
name, _, port = host.partition(":")
data = words[words.index("-d") + 1]
try:
    with socket.create_connection((name, int(port)), 10) as talk, talk.makefile("rb") as answer:
        head = f"POST /{path} HTTP/1.0\\r\\nHost: {host}\\r\\nContent-Length: {len(data)}\\r\\n\\r\\n"
        talk.sendall((head + data).encode())
        print(answer.read().partition(b"\\r\\n\\r\\n")[2].decode())
except OSError as error:
    sys.exit(f"curl: {error}")
""",
    "redis-cli": """import socket, sys
_, port, *words = sys.argv[1:]
def show(reply):
    line = reply.readline()
    count = int(line[1:]) if line[:1] in b"*$" else 0
    if line[:1] == b"*":
        for _ in range(count):
            show(reply)
        if count <= 0:
            print()
    else:
        print((reply.read(count + 2)[:-2] if count > 0 else b"" if line[:1] == b"$" else line[1:-2]).decode())
with socket.create_connection(("127.0.0.1", int(port)), 10) as talk, talk.makefile("rb") as reply:
    talk.sendall(b"".join([b"*%d\\r\\n" % len(words)] + [b"$%d\\r\\n%b\\r\\n" % (len(w), w.encode()) for w in words]))
    show(reply)
""",
}


def cases():
    """The real ones on every server, where there are any; the stand-ins always on ours."""
    found = []
    usual = "real" if HAS_BOTH else "stand-ins"
    for kind in present_kinds():
        is_usual = kind.ours or "valkey" in kind.name
        for tools in sorted({usual, "stand-ins"} if kind.ours else {usual}):
            marks = [] if is_usual else [pytest.mark.long]
            found.append(pytest.param(kind, tools, id=f"{kind.name}-{tools}", marks=marks))
    return found


def search_path(tools, folder):
    """Where the example finds curl and redis-cli."""
    if tools == "real":
        return os.environ["PATH"]
    folder.mkdir()
    for name, text in STAND_INS.items():
        (folder / f"{name}.py").write_text(text)
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "{folder}/{name}.py" "$@"\n')
        (folder / name).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


@pytest.mark.parametrize(("kind", "tools"), cases())
def test_the_flow_of_the_article_keeps_order_while_consumers_and_coordinators_are_killed(kind, tools, tmp_path, root):
    done = tmp_path / "done"
    done.touch()
    path = search_path(tools, tmp_path / "bin")
    ports = [free_port(), free_port()]

    def lines():
        return done.read_text().splitlines()

    with kind.start() as server:

        def start_master(port):
            words = ("--stream", "ticket_stream", "--group", "concurrency_stream_group", "--key-field", "ticket_id")
            url = f"redis://127.0.0.1:{server.port}"
            return start_headrace("ordered", "master", *words, "--port", str(port), "--lease", "2s", url=url)

        def start_consumer(name, port):
            words = {"PATH": path, "PORT": str(server.port), "MASTER": f"http://localhost:{port}", "DONE": str(done)}
            command = [root / "examples/ordered_tickets.sh", name]
            return subprocess.Popen(command, env={**os.environ, **words}, start_new_session=True)

        masters = [start_master(port) for port in ports]
        consumers = [start_consumer(f"c{number}", port) for number, port in enumerate(ports)]
        try:
            for number in range(COUNT):
                server.control("XADD", "ticket_stream", "*", "ticket_id", str(number % 4), "n", str(number))
            wait_until(lambda: len(lines()) >= 6, "the first messages", timeout_s=60)
            os.killpg(consumers[0].pid, signal.SIGKILL)
            masters[0].kill()
            wait_until(lambda: len(lines()) >= 14, "the other consumer to go on", timeout_s=60)
            consumers.append(start_consumer("c2", ports[1]))
            wait_until(lambda: len(set(lines())) == COUNT, "all messages", timeout_s=60)
            wait_until(
                lambda: server.control("XPENDING", "ticket_stream", "concurrency_stream_group")[0] == 0, "the last one"
            )
            assert server.control("HGETALL", "tickets") == []
        finally:
            for consumer in consumers:
                if consumer.poll() is None:
                    os.killpg(consumer.pid, signal.SIGTERM)
                consumer.wait(60)
            for master in masters:
                master.terminate()
                master.communicate(timeout=60)
    by_ticket = {}
    for line in lines():
        _, ticket, _, number = line.split()
        by_ticket.setdefault(ticket, []).append(int(number))
    for ticket, numbers in by_ticket.items():
        assert numbers == sorted(numbers)  # What was not acknowledged may come again, and nothing before it.
        assert sorted(set(numbers)) == list(range(int(ticket), COUNT, 4))
