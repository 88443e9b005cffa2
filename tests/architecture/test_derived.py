"""Files that are written from others are what those others give."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_asyncio_client_is_what_the_client_gives() -> None:
    checked = subprocess.run([sys.executable, ROOT / "tools" / "async_client.py", "--check"], capture_output=True)

    assert checked.returncode == 0, checked.stdout.decode()
