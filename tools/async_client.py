"""Write client/async_client.py from client/client.py, so that the two flavours cannot differ.

python tools/async_client.py            write it
python tools/async_client.py --check    say whether it is up to date; ends with 1 when it is not
"""

import re
import subprocess
import sys
from pathlib import Path

CLIENT = Path(__file__).resolve().parent.parent / "src" / "headrace" / "client"
SOURCE = CLIENT / "client.py"
TARGET = CLIENT / "async_client.py"

DOCSTRING = '''"""AsyncClient: as Client, awaited. Written by tools/async_client.py from client.py; change that one.

    async with AsyncClient("redis://localhost") as client:
        orders = client.stream("orders")
        await orders.add({"id": "17"})
        async for entry in orders.follow(start="now"): …
"""
'''
SHARED = ("STREAM_GUARANTEE", "choose_url", "now_ms", "range_ids", "is_time", "group_place")  # Imported, not derived.

NAMES = [
    (r"\b(Client|Stream|Group)\b", r"Async\1"),
    (r"\bAsyncStream\(name\)", "AsyncStream(name)"),
    (r"\bTransport\b", "AsyncTransport"),
    (r"\bopen_transport\b", "open_async_transport"),
    (r"\brun_flow\b", "run_flow_async"),
    (r"\bIterator\b", "AsyncIterator"),
    (r"\b__enter__\b", "__aenter__"),
    (r"\b__exit__\b", "__aexit__"),
    (r"time\.sleep\(", "await asyncio.sleep("),
    (r"(\n *)yield from entries\n", r"\1for entry in entries:\1    yield entry\n"),
]
METHODS = r"self\.(?:client\.run|run|history|read|ack|info|close|_transport\.close)"
CALLS = rf"((?:{METHODS}|run_flow_async)\()"


def derive(source: str) -> str:
    """The asynchronous flavour of the synchronous source."""
    body = source.split('"""', 2)[2]
    for name in SHARED:
        body = re.sub(rf"\n\n\ndef {name}\(.*?(?=\n\n\n|\Z)", "", body, flags=re.S)
        body = re.sub(rf"\n{name}: Final = .*?\n(?=\n)", "\n", body, flags=re.S)
    for pattern, replacement in NAMES:
        body = re.sub(pattern, replacement, body)
    body = re.sub(r"(?<!await )(?<!\.)\b" + CALLS, r"await \1", body)
    body = re.sub(r"await self\.info\(\)\.lag", "(await self.info()).lag", body)
    methods = re.split(r"(?=\n    (?:@property\n    )?def )", body)
    body = "".join(make_async(method) for method in methods)
    imports = f"import asyncio\n{body.lstrip()}".replace("import os\n", "")
    shared = f"from headrace.client.client import {', '.join(sorted(SHARED, key=str.lower))}\n"
    return (
        DOCSTRING + "\n" + imports.replace("from headrace.client.connect", shared + "from headrace.client.connect", 1)
    )


def make_async(method: str) -> str:
    if "await " in method or "aenter" in method:
        return re.sub(r"\n    def ", "\n    async def ", method, count=1)
    return method


def formatted(text: str) -> str:
    for command in (["check", "--fix", "--select", "I,F401", "--quiet"], ["format"]):
        words = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(TARGET), "-"]
        text = subprocess.run(words, input=text, capture_output=True, text=True, check=False).stdout
    return text


def main() -> int:
    text = formatted(derive(SOURCE.read_text("utf-8")))
    if "--check" not in sys.argv:
        TARGET.write_text(text, "utf-8")
        return 0
    if TARGET.exists() and TARGET.read_text("utf-8") == text:
        return 0
    print("src/headrace/client/async_client.py is not what client.py gives: run python tools/async_client.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
