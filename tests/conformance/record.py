"""Records the replies of a real Redis for every script in recorded/, and its description of the commands.

    python tests/conformance/record.py SERVER_BINARY

Use the Redis version whose replies ours must equal. The files change only when that server's answers do.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.catalogue import DESCRIBED, describe_recorded
from support.recording import play_and_normalise, read_scripts, recording_of
from support.servers import Server, redis_kind

RECORDED = Path(__file__).parent / "recorded"


def record(server: Server) -> None:
    for script_file in sorted(RECORDED.glob("*.commands")):
        sessions = {script.title: play_and_normalise(server, script) for script in read_scripts(script_file)}
        write(recording_of(script_file), server, sessions=sessions)
    for name in DESCRIBED:
        write(RECORDED / f"{name}.json", server, commands=describe_recorded(server, name))


def write(path: Path, server: Server, **content: object) -> None:
    path.write_text(laid_out({"server": server.kind.name, **content}) + "\n")
    sys.stdout.write(f"{path.name}\n")


def laid_out(value: object, depth: int = 0) -> str:
    """JSON with one step of a session, or one fact of a command, per line: a change is easy to read."""
    if depth == 3 or not value or not isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    margin = " " * depth
    if isinstance(value, list):
        lines = [laid_out(item, depth + 1) for item in value]
    else:
        lines = [f"{json.dumps(key, ensure_ascii=False)}: {laid_out(item, depth + 1)}" for key, item in value.items()]
    opening, closing = "[]" if isinstance(value, list) else "{}"
    return opening + "\n" + ",\n".join(f"{margin} {line}" for line in lines) + f"\n{margin}{closing}"


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        sys.stderr.write("usage: record.py SERVER_BINARY\n")
        return 2
    with redis_kind(arguments[0]).start() as server:
        record(server)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
