"""Packs the worker of this checkout, with its server functions, as a sample: the old version that later ones meet.

    python tools/worker_sample.py        # before functions.VERSION is raised; commit what it makes

tests/fault/test_worker_versions.py runs every sample beside the present worker, on one server.
"""

import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "src"
SAMPLES = ROOT / "tests" / "samples" / "workers"
ROOMS = ("app", "client", "worker", "wire")
BEGINNING = (1980, 1, 1, 0, 0, 0)  # The earliest time of a zip file: the same sources make the same file.


def main() -> int:
    sys.path.insert(0, str(SOURCES))
    from headrace.client.functions import LIBRARY

    target = SAMPLES / f"{LIBRARY}.zip"
    if target.exists():
        print(f"{target} is there; a sample is never made again.")
        return 1
    write(SOURCES, target)
    print(target)
    return 0


def write(sources: Path, target: Path) -> None:
    package = sources / "headrace"
    files = [*package.glob("*.py"), *[path for room in ROOMS for path in (package / room).rglob("*")]]
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(files):
            if path.suffix in (".py", ".lua"):
                archive.writestr(zipfile.ZipInfo(str(path.relative_to(sources)), BEGINNING), path.read_bytes(),
                                 zipfile.ZIP_DEFLATED, 9)  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
