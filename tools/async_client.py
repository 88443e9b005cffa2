"""Write client/async_*.py from client/client.py and its like, so that the two flavours cannot differ.

python tools/async_client.py            write them
python tools/async_client.py --check    say whether they are up to date; ends with 1 when not
"""

import re
import subprocess
import sys
from pathlib import Path

CLIENT = Path(__file__).resolve().parent.parent / "src" / "headrace" / "client"
MODULES = ("client", "reliable_queue", "linked_list", "channels")

DOCSTRING = '"""As {module}.py, awaited. Written by tools/async_client.py from that one; change it there."""\n'
CLIENT_DOCSTRING = '''"""AsyncClient: as Client, awaited. Written by tools/async_client.py from client.py.

    async with AsyncClient("redis://localhost") as client:
        orders = client.stream("orders")
        await orders.add({"id": "17"})
        async for entry in orders.follow(start="now"): …
"""
'''
SHARED = {  # Imported, not derived.
    "client": ("choose_url", "now_ms", "range_ids", "is_time", "group_place"),
}

NAMES = [
    (r"\b(Client|Stream|Group|Queue|Job|LinkedList|Channel|Channels|Subscription)\b", r"Async\1"),
    (r"\b(Transport|Listening)\b", r"Async\1"),
    (r"headrace\.client\.(client|reliable_queue|linked_list|channels)\b", r"headrace.client.async_\1"),
    (r"\bopen_transport\b", "open_async_transport"),
    (r"\brun_flow\b", "run_flow_async"),
    (r"\bIterator\b", "AsyncIterator"),
    (r"\b__enter__\b", "__aenter__"),
    (r"\b__exit__\b", "__aexit__"),
    (r"\b__iter__\b", "__aiter__"),
    (r"\b__next__\b", "__anext__"),
    (r"\bStopIteration\b", "StopAsyncIteration"),
    (r"time\.sleep\(", "await asyncio.sleep("),
    (r"(\n *)yield from entries\n", r"\1for entry in entries:\1    yield entry\n"),
]
METHODS = (
    r"self\.(?:client\.run|client\.pop_first|run|history|read|ack|info|close|"
    r"_transport\.close|open|receive)"
)
CALLS = rf"((?:{METHODS}|line\.(?:subscribe|next|close)|run_flow_async)\()"


def derive(module: str, source: str) -> str:
    """The asynchronous flavour of the synchronous source."""
    body = source.split('"""', 2)[2]
    shared = SHARED.get(module, ())
    for name in shared:
        body = re.sub(rf"\n\n\ndef {name}\(.*?(?=\n\n\n|\Z)", "", body, flags=re.S)
    for pattern, replacement in NAMES:
        body = re.sub(pattern, replacement, body)
    body = re.sub(r"(?<!await )(?<!\.)\b" + CALLS, r"await \1", body)
    body = re.sub(r"await self\.info\(\)\.lag", "(await self.info()).lag", body)
    body = re.sub(r"in self\.queue\.(ack|nack|extend)\(", r"in await self.queue.\1(", body)
    methods = re.split(r"(?=\n    (?:@property\n    )?def )", body)
    body = "".join(make_async(method) for method in methods)
    body = body.lstrip().replace("import os\n", "")
    if shared:
        line = f"from headrace.client.{module} import {', '.join(sorted(shared, key=str.lower))}\n"
        body = body.replace("from headrace.client.connect", f"{line}from headrace.client.connect", 1)
    docstring = CLIENT_DOCSTRING if module == "client" else DOCSTRING.format(module=module)
    return f"{docstring}\nimport asyncio\n{body}"


def make_async(method: str) -> str:
    is_overload = re.search(r": \.\.\.$", method, re.M) is not None
    if "await " in method or "aenter" in method or is_overload:
        return re.sub(r"\n    def ", "\n    async def ", method, count=1)
    return method


def formatted(text: str, target: Path) -> str:
    for command in (["check", "--fix", "--select", "I,F401", "--quiet"], ["format"]):
        words = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(target), "-"]
        text = subprocess.run(words, input=text, capture_output=True, text=True, check=False).stdout
    return text


def main() -> int:
    code = 0
    for module in MODULES:
        target = CLIENT / f"async_{module}.py"
        text = formatted(derive(module, (CLIENT / f"{module}.py").read_text("utf-8")), target)
        if "--check" not in sys.argv:
            target.write_text(text, "utf-8")
        elif not target.exists() or target.read_text("utf-8") != text:
            print(f"src/headrace/client/{target.name} is not what {module}.py gives: run python tools/async_client.py")
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
